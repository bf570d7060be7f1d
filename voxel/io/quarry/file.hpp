// SPDX-License-Identifier: Apache-2.0
// file.hpp - the file of a world: its lock and its replacement. Internal to the store. quarry/sidecars.hpp handles its
// sidecars, quarry/tables.hpp its tables.
//
// An editor holds flock() on the file while it edits. Readers hold it shared while they read. SQLite's own locks are
// not enough: POSIX drops them when any descriptor of the file is closed in the process (sqlite.org, "How To Corrupt An
// SQLite Database File", 2.2).
#pragma once

#include <filesystem>
#include <new>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "voxel/io/files/atomic_file.hpp"
#include "voxel/io/sqlite/db.hpp"

namespace quarry::io {

// The file, open and locked. The lock ends when the file is closed or when the process ends, in any way.
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

// `lock` is LOCK_SH or LOCK_EX. The call never waits. Errors: conflict (another process holds it), io.
Result<LockedFile> lock_file(const std::filesystem::path& file, int open_flags, int lock);
// Checks the first 16 bytes. Its message is better than SQLite's for a file that is no database.
Result<void> check_header(const LockedFile& file);
// The memory of the machine, or this process's limit if that is lower.
uint64_t physical_memory();
std::filesystem::path sidecar_path(const std::filesystem::path& file, const char* suffix);
// Locks the existing file that `to` would replace, so that it is not replaced during an edit. Readers keep the old
// file. The result is not open if there is no such file. Errors: those of find_target() and of lock_file().
Result<LockedFile> lock_replaced(const Destination& to);
// Renames a finished world to its target and removes the sidecars of the old one. `old` is the result of
// lock_replaced().
Result<void> put_in_place(AtomicFile& world, const LockedFile& old);

// Returns the result of `work`, with the file's name before its message. A lack of memory becomes an ordinary error.
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
