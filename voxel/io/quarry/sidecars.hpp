// SPDX-License-Identifier: Apache-2.0
// sidecars.hpp - what lies beside a world file: the log of a killed editor's last edits, the journal of an edit that
// was not finished, or those of another file or another state of this one. Whose they are is found before anything
// counts (docs/world-file.md has the table). Internal to the store.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "voxel/io/quarry/file.hpp"
#include "voxel/io/sqlite/view.hpp"

namespace quarry::io {

// The database as it is with what a killed program left beside it. What is not this file's is in `view.pages.log()` and
// `journal()` as foreign, and does not count. Errors: malformed_input (what is this file's is damaged, so that edits
// would be missing), conflict (a program that is not ours has it open), io. Warnings: an edit at the log's end that is
// not whole, a log that is missing.
Result<DatabaseView> view_with_journals(const LockedFile& locked, const std::filesystem::path& file,
                                        std::vector<std::string>* warnings);

// That, opened for reading. Where neither name nor number says whose something is, the checksums of the world with it
// and without it decide. Neither the file nor what is beside it is changed.
struct OpenedView {
  struct Foreign {
    std::filesystem::path path;
    std::string sentence;  // why it does not count
  };
  Db db;
  std::vector<Foreign> foreign;
  std::vector<std::string> warnings;  // the others
};
Result<OpenedView> open_with_journals(const LockedFile& locked, const std::filesystem::path& file);
Result<Db> open_for_reading(const LockedFile& locked, const std::filesystem::path& file,
                            std::vector<std::string>* warnings);

// Whether the file alone is the world, so that it may be copied: nothing that belongs to it lies beside it. Errors: io
// (something does), and those above.
Result<void> check_single_file(const LockedFile& locked, const std::filesystem::path& file);

// The name under which a log or journal that is not this file's is kept: FILE-wal.of-another-state-N. SQLite does not
// look for it, and nobody has it.
std::filesystem::path quarantine_name(const std::filesystem::path& path);

// Renames what is not this file's. Named back when destroyed, unless committed.
class Quarantine {
 public:
  Quarantine() = default;
  Quarantine(const Quarantine&) = delete;
  Quarantine& operator=(const Quarantine&) = delete;
  ~Quarantine();
  // Nothing is there: nothing is done. On disk after commit().
  Result<void> put(const std::filesystem::path& path);
  Result<void> commit();
  // From, to.
  const std::vector<std::pair<std::filesystem::path, std::filesystem::path>>& names() const { return names_; }

 private:
  std::vector<std::pair<std::filesystem::path, std::filesystem::path>> names_;
};

// What lies beside a file that is about to be replaced, or made: looked at before, cleared behind it. What was the old
// file's goes with it; what was not, or lies there without a file, may be all that is left of somebody's edits, and is
// set aside. A new file is a closed one, which takes no log: there is no instant at which it and an old log are one
// world.
class SidecarFiles {
 public:
  // `there`: the file is, and its lock is held.
  SidecarFiles(const std::filesystem::path& file, bool there);
  Result<void> clear();
  // What clear() will set aside, in a sentence for whoever replaces the file; "": nothing.
  std::string message() const;

 private:
  std::vector<std::filesystem::path> gone_, kept_;
};

}  // namespace quarry::io
