// output_file.hpp - where commands may write: never over a file that is there unless told so, never over their own input.
#pragma once

#include <filesystem>
#include <string>

#include "hashgrid/result.hpp"

namespace quarry::app {

// Removes what killed runs left in the folder (temporary_name.hpp), and says so. Refuses (conflict) an existing file without `overwrite`, (invalid_argument) a directory or a missing parent directory.
Result<void> check_output(const std::filesystem::path& output, bool overwrite);
// What replacing that file takes away beside it, for people to hear: edits of a world whose log is damaged. "": nothing.
std::string replaced_beside(const std::filesystem::path& output);

}  // namespace quarry::app
