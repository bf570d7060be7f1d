// SPDX-License-Identifier: Apache-2.0
// program_place.hpp - finds the programs of Quarry's own that it starts: beside the running program or library, or in
// the installation.
#pragma once

#include <filesystem>

#include "base/result.hpp"

namespace quarry {

// The path of the program `name`. Searched in this order: the environment variable `variable`, exclusively if it is
// set; beside this executable and in its ../libexec/quarry; likewise for the shared library that holds this code; the
// installation. `task`: what the program does, as "reads meshes", for the message of not_found, which lists the places
// searched.
Result<std::filesystem::path> find_program(const char* name, const char* variable, const char* task);

}  // namespace quarry
