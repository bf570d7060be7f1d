// SPDX-License-Identifier: Apache-2.0
// deferred_sync.hpp - what a batch has written comes to disk at its end, all of it at once, so that a small file does
// not wait for the disk (an fsync takes longer than its whole conversion). Until settle() has said yes, new files may
// be lost to a power cut; nothing that was there before can be, for a file that replaces another is brought to disk
// before it takes the name (atomic_file.hpp).
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "base/result.hpp"

namespace quarry::io {

// Any number of threads. Destroyed without settle(): nothing is waited for, as suits files that go again.
class DeferredSync {
 public:
  DeferredSync() = default;
  DeferredSync(const DeferredSync&) = delete;
  DeferredSync& operator=(const DeferredSync&) = delete;
  ~DeferredSync();
  // The file is there and about to be written. From the first of a file system on, that one's failures to write are
  // watched.
  void watch(const std::filesystem::path& file);
  // A file is whole and has its name; or a folder was made.
  void add(const std::filesystem::path& file);
  // Makes a folder and those above it, and remembers which. Errors: io.
  Result<void> make_folders(const std::filesystem::path& folder);
  // Waits until all that was added is on disk with its name; then begins anew. Some files: fsync of each and of their
  // folders. Many: one syncfs a file system, and each is asked whether it could be written. Errors: io; names the
  // folder and the files.
  Result<void> settle();

 private:
  std::mutex mutex_;
  std::map<dev_t, int> watched_;  // a descriptor of each file system, open since before the first write
  std::vector<std::filesystem::path> files_;
  std::set<std::filesystem::path> folders_;  // whose entries are new
};

// What was written to an open file, and where it is; what was renamed, made or removed in a folder. 0 or an errno. A
// folder that may be written to but not opened, or a file system that knows no such thing, counts as done once `fd`'s
// file system is synced.
int sync_file(int fd);
int sync_folder(const std::filesystem::path& folder, int fd = -1);

}  // namespace quarry::io
