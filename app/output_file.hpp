// output_file.hpp - where commands may write: never over a file that is there unless told so, never over their own input.
#pragma once

#include <filesystem>

#include "hashgrid/result.hpp"

namespace quarry::app {

// Removes what killed runs left in the folder (temporary_name.hpp), and says so. Refuses (conflict) an existing file without `overwrite`, (invalid_argument) a directory or a missing parent directory.
Result<void> check_output(const std::filesystem::path& output, bool overwrite);

}  // namespace quarry::app
