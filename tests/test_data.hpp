// SPDX-License-Identifier: Apache-2.0
// test_data.hpp - where tests find real files, and how they say aloud that something is not there.
#pragma once

#include <filesystem>
#include <string>

namespace quarry::test {

// $QUARRY_TEST_DATA, or shared/data beside or inside the source tree; empty if absent.
std::filesystem::path data_dir();
// A file of the source tree's assets/.
std::filesystem::path asset(const std::string& name);
// A fresh empty directory for this process and name, removed at exit.
std::filesystem::path scratch_dir(const std::string& name);
// Prints "SKIPPED: <why>" and counts it; the process prints the number of skips at its end. A test that needs a device
// or file that is not there calls this and returns: never a silent pass.
void skip(const std::string& why);

}  // namespace quarry::test
