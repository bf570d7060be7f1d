// SPDX-License-Identifier: Apache-2.0
// recovery.hpp - files that keep the edits of documents without a world file safe. Each document has one .quarry file
// in the user's state directory ($XDG_STATE_HOME/quarry/recovery, or ~/.local/state/quarry/recovery). A clean end
// removes the file. A crash leaves it, and the next start of the editor offers it.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace quarry::app {

struct RecoveryFile {
  std::filesystem::path file;
  std::string title;  // the title of the document it was made from
  uint64_t bytes = 0;
  std::filesystem::file_time_type changed;
  std::vector<std::string> warnings;  // about files next to it
};

// The directory of recovery files. It may not exist yet. Empty if neither the variable nor a home directory is set.
std::filesystem::path recovery_dir();
// A name in `dir` that no file has: title, time and process number. Makes the directory.
Result<std::filesystem::path> new_recovery_file(const std::filesystem::path& dir, const std::string& title);
// Files that no running editor has open, newest first. `damaged` gets, for each file that cannot be opened, the reason.
std::vector<RecoveryFile> recoverable_files(const std::filesystem::path& dir,
                                            std::vector<std::pair<std::filesystem::path, Error>>* damaged = nullptr);

}  // namespace quarry::app
