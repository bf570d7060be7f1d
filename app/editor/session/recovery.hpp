// SPDX-License-Identifier: Apache-2.0
// recovery.hpp - where edits of documents that have no world file yet are kept safe: one .quarry file each, in the
// user's state directory ($XDG_STATE_HOME/quarry/recovery, or ~/.local/state/quarry/recovery). A clean end removes it;
// a crash leaves it, and the next start of the editor offers it.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace quarry::app {

struct RecoveryFile {
  std::filesystem::path file;
  std::string title;  // what it was made from
  uint64_t bytes = 0;
  std::filesystem::file_time_type changed;
  std::vector<std::string> warnings;  // of what lay beside it
};

// Not made yet; empty if neither variable nor home directory is there.
std::filesystem::path recovery_dir();
// A name in `dir` that no file has: title, time and process number. Makes the directory.
Result<std::filesystem::path> new_recovery_file(const std::filesystem::path& dir, const std::string& title);
// Files that no running editor has open, newest first. `damaged` gets why each of the others cannot be opened.
std::vector<RecoveryFile> recoverable_files(const std::filesystem::path& dir,
                                            std::vector<std::pair<std::filesystem::path, Error>>* damaged = nullptr);

}  // namespace quarry::app
