// store_file.hpp - the file that a world lies in: its lock, its temporary neighbour, opening it for reading. Internal to the store; what is in
// the tables is store_tables.hpp's.
//
// Who edits holds flock() on the file for that long, readers hold it shared while they read. SQLite's own locks would not do: POSIX
// drops them when any descriptor of the file is closed in the process (sqlite.org, "How To Corrupt An SQLite Database File", 2.2).
#pragma once

#include <filesystem>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "hashgrid/result.hpp"
#include "voxel/io/sqlite_db.hpp"
#include "voxel/io/sqlite_view.hpp"

namespace quarry::io {

// The file, open and locked. Unlocked when closed or when the process ends, however it ends.
class LockedFile {
 public:
  int fd = -1;
  LockedFile() = default;
  LockedFile(LockedFile&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
  LockedFile& operator=(LockedFile&& other) noexcept {
    std::swap(fd, other.fd);
    return *this;
  }
  ~LockedFile();
};

// `lock` is LOCK_SH or LOCK_EX, never waited for. Errors: conflict (somebody has it), io.
Result<LockedFile> lock_file(const std::filesystem::path& file, int open_flags, int lock);
// The first 16 bytes: a better message than SQLite's for what is no database at all.
Result<void> check_header(const LockedFile& file);
// The machine's, or what this process may take of it.
uint64_t physical_memory();
std::filesystem::path beside(const std::filesystem::path& file, const char* suffix);
// The database as it is with what a killed program left beside it. Errors: malformed_input (that is damaged, so that edits would be missing),
// conflict (a program that is not ours has it open), io. Warnings: an edit at the log's end that is not whole, a log that is missing, a journal
// that is not this file's and does not count.
Result<DatabaseView> view_with_leftovers(const LockedFile& locked, const std::filesystem::path& file, std::vector<std::string>* warnings);
// Opens that for reading. Neither the file nor what is beside it is changed.
Result<Db> open_for_reading(const LockedFile& locked, const std::filesystem::path& file, std::vector<std::string>* warnings);
Result<void> sync_path(const std::filesystem::path& path, int flags);

// A name that nobody else uses, in the folder of `file`, with the file's mode if it is there. Gone again unless kept.
class TemporaryFile {
 public:
  std::filesystem::path path;
  LockedFile lock;  // says that its maker lives
  bool keep = false;
  TemporaryFile() = default;
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();
};
Result<void> make_temporary(const std::filesystem::path& file, TemporaryFile* out);
// Before `file` is replaced: whatever a crashed editor left beside it is folded into it, so that at no instant is a new file beside an old log.
void fold_in_leftovers(const std::filesystem::path& file);
// A finished temporary file becomes `file`: on disk first, then under its name. `replaces`: `file` is there, and its lock is held.
Result<void> put_in_place(TemporaryFile& temporary, const std::filesystem::path& file, bool replaces);

// What `work` gives, with the file's name before its message, and a lack of memory as an error like others.
template <class Work>
auto guarded(const std::filesystem::path& file, const Work& work) -> decltype(work()) {
  try {
    auto result = work();
    if (!result) {
      const std::string prefix = file.string() + ": ";
      if (result.error().message.compare(0, prefix.size(), prefix) != 0) result.error().message.insert(0, prefix);
    }
    return result;
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, file.string() + ": not enough memory");
  }
}

}  // namespace quarry::io
