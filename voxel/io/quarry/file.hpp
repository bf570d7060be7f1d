// SPDX-License-Identifier: Apache-2.0
// file.hpp - the file that a world lies in: its lock, what of it is replaced. Internal to the store; what lies beside
// it is quarry/sidecars.hpp's, what is in the tables quarry/tables.hpp's.
//
// Who edits holds flock() on the file for that long, readers hold it shared while they read. SQLite's own locks would
// not do: POSIX drops them when any descriptor of the file is closed in the process (sqlite.org, "How To Corrupt An
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
std::filesystem::path sidecar_path(const std::filesystem::path& file, const char* suffix);
// The file that is there already and that `to` would replace, locked, so that it is not replaced while somebody edits
// it; readers keep the old file. Not open: none is there. Errors: those of find_target() and of lock_file().
Result<LockedFile> lock_replaced(const Destination& to);
// A finished world becomes its target; what belonged to the old one goes. `old`: what lock_replaced() gave.
Result<void> put_in_place(AtomicFile& world, const LockedFile& old);

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
