// SPDX-License-Identifier: Apache-2.0
// recovery.cpp - names of recovery files, and which of them no editor has open. If the lock of a file is free, its
// editor has ended.
#include "app/editor/session/recovery.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <ctime>

#include "voxel/io/quarry/store.hpp"

namespace quarry::app {
namespace fs = std::filesystem;

fs::path recovery_dir() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state && *state) return fs::path(state) / "quarry" / "recovery";
  const char* home = std::getenv("HOME");
  if (home && *home) return fs::path(home) / ".local" / "state" / "quarry" / "recovery";
  return {};
}

Result<fs::path> new_recovery_file(const fs::path& dir, const std::string& title) {
  std::error_code error;
  fs::create_directories(dir, error);
  if (error)
    return fail(ErrorCode::io,
                fmt::format("{}: the directory for unsaved work cannot be made: {}", dir.string(), error.message()));
  std::string name;
  for (const char c : title) name += std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' ? c : '_';
  if (name.size() > 64) name.resize(64);
  if (name.empty()) name = "untitled";
  char when[32];
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::strftime(when, sizeof when, "%Y%m%d-%H%M%S", &local);
  for (int attempt = 0;; ++attempt) {
    const fs::path file =
        dir / fmt::format("{}.{}.{}{}.quarry", name, when, getpid(), attempt ? fmt::format("-{}", attempt) : "");
    if (!fs::exists(file, error)) return file;
  }
}

std::vector<RecoveryFile> recoverable_files(const fs::path& dir, std::vector<std::pair<fs::path, Error>>* damaged) {
  std::vector<RecoveryFile> files;
  std::error_code error;
  for (fs::directory_iterator at(dir, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() != ".quarry" || !at->is_regular_file(error)) continue;
    // Opening takes the file's exclusive lock, so it fails for a file that another editor works on.
    const auto opened = io::Store::open(at->path());
    if (!opened) {
      if (damaged && opened.error().code != ErrorCode::conflict) damaged->emplace_back(at->path(), opened.error());
      continue;
    }
    RecoveryFile file;
    file.warnings = opened->warnings();
    file.file = at->path();
    file.title = at->path().filename().string();
    file.title = file.title.substr(0, file.title.find('.'));
    file.bytes = at->file_size(error);
    file.changed = at->last_write_time(error);
    files.push_back(std::move(file));
  }
  std::ranges::sort(files, [](const RecoveryFile& a, const RecoveryFile& b) { return a.changed > b.changed; });
  return files;
}

}  // namespace quarry::app
