// SPDX-License-Identifier: Apache-2.0
// program_place.hpp - where the programs of Quarry's own are that it starts: beside the running program or library, or
// where they were installed.
#pragma once

#include <filesystem>

#include "base/result.hpp"

namespace quarry {

// The path of the program `name`. Looked at, in this order: the environment's `variable`, alone if it is set; beside
// this executable and in ../libexec/quarry of it; likewise for the shared library that this code is in; where it was
// installed. `task`: what it does, as "reads meshes", for the message of not_found, which has the places that were
// looked at.
Result<std::filesystem::path> find_program(const char* name, const char* variable, const char* task);

}  // namespace quarry
