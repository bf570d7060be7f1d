// SPDX-License-Identifier: Apache-2.0
// sidecars.hpp - the sidecars of a world file: the log of a killed editor's last edits, the journal of an unfinished
// edit, or those of another file or another state of this one. Their owner is found before they are used
// (docs/world-file.md has the table). Internal to the store.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "voxel/io/quarry/file.hpp"
#include "voxel/io/sqlite/view.hpp"

namespace quarry::io {

// The bytes of a log or a journal; they need not fit memory. Errors: those of read_file.
Result<ByteSource> open_sidecar(const std::filesystem::path& path);

// Returns the database together with the sidecars of a killed program. Those of another file are marked foreign in
// `view.pages.log()` and `journal()`, and are not used. Errors: malformed_input (this file's sidecar is damaged, so
// that edits would be missing), conflict (a program other than Quarry has it open), io. Warnings: an edit at the log's
// end that is not whole, a log that is missing.
Result<DatabaseView> view_with_journals(const LockedFile& locked, const std::filesystem::path& file,
                                        std::vector<std::string>* warnings);

// The same database, opened for reading. If neither name nor number tells a sidecar's owner, the checksums of the world
// with it and without it decide. Neither the file nor its sidecars are changed.
struct OpenedView {
  struct Foreign {
    std::filesystem::path path;
    std::string sentence;  // why it is not used
  };
  Db db;
  std::vector<Foreign> foreign;
  std::vector<std::string> warnings;  // the others
};
Result<OpenedView> open_with_journals(const LockedFile& locked, const std::filesystem::path& file,
                                      ViewWrites writes = ViewWrites::refused);
// The same, with a warning for each. A step that is not whole is taken back in memory, which a warning says, too.
Result<Db> open_for_reading(const LockedFile& locked, const std::filesystem::path& file,
                            std::vector<std::string>* warnings);

// Checks that the file alone is the world, without sidecars of its own, so that it may be copied. Errors: io (it has
// such a sidecar), and those above.
Result<void> check_single_file(const LockedFile& locked, const std::filesystem::path& file);

// The name under which a log or journal of another file is kept: FILE-wal.of-another-state-N. SQLite does not look for
// it, and no file has it.
std::filesystem::path quarantine_name(const std::filesystem::path& path);

// Renames foreign sidecars. The destructor restores the names, unless committed.
class Quarantine {
 public:
  Quarantine() = default;
  Quarantine(const Quarantine&) = delete;
  Quarantine& operator=(const Quarantine&) = delete;
  ~Quarantine();
  // Renames `path`. It does nothing if there is no such file. The new name is on disk after commit().
  Result<void> put(const std::filesystem::path& path);
  Result<void> commit();
  // The old and the new name of each.
  const std::vector<std::pair<std::filesystem::path, std::filesystem::path>>& names() const { return names_; }

 private:
  std::vector<std::pair<std::filesystem::path, std::filesystem::path>> names_;
};

// The sidecars of a file that is about to be replaced or made. They are checked before and cleared afterwards. Those of
// the old file are removed with it. Others, or those without a file, may be all that is left of someone's edits, so
// they are set aside. A new file is a closed one, which accepts no log, so it never forms one world with an old log.
class SidecarFiles {
 public:
  // `there`: the file exists, and its lock is held.
  SidecarFiles(const std::filesystem::path& file, bool there);
  Result<void> clear();
  bool with_pages() const { return with_pages_; }  // whether a log or a journal has something in it
  // A sentence about the files that clear() will set aside, for the caller who replaces the file; "" if there are none.
  std::string message() const;

 private:
  std::vector<std::filesystem::path> gone_, kept_;
  bool with_pages_ = false;
};

}  // namespace quarry::io
