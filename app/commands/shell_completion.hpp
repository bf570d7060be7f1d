// SPDX-License-Identifier: Apache-2.0
// shell_completion.hpp - completion scripts for shells, and the manual page. They are made from the commands' own
// definitions (arguments.hpp), so they always match the program. `quarry completion` and `quarry man` print them; the
// build installs them.
#pragma once

#include <string>
#include <vector>

#include "app/console/arguments.hpp"

namespace quarry::app {

// For bash, zsh or fish; "" for another name.
std::string completion_script(const std::string& shell, const std::vector<CommandText>& commands);
// In troff's man macros: quarry(1).
std::string manual_page(const std::vector<CommandText>& commands, const std::string& version);

}  // namespace quarry::app
