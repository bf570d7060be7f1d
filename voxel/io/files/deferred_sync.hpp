// SPDX-License-Identifier: Apache-2.0
// deferred_sync.hpp - brings all files of a batch to disk at once at its end, so that a small file does not wait for
// the disk (an fsync takes longer than its whole conversion). Until settle() has succeeded, a power cut may lose new
// files. It cannot lose older ones, because a file that replaces another is brought to disk before the rename
// (atomic_file.hpp).
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "base/result.hpp"

namespace quarry::io {

// Any number of threads may use it. Without settle() the destructor waits for nothing, which suits files that are
// removed again.
class DeferredSync {
 public:
  DeferredSync() = default;
  DeferredSync(const DeferredSync&) = delete;
  DeferredSync& operator=(const DeferredSync&) = delete;
  ~DeferredSync();
  // Call it when the file exists and is about to be written. From the first such file of a file system on, that file
  // system's write failures are watched.
  void watch(const std::filesystem::path& file);
  // Call it when a file is whole and has its name, or when a folder was made.
  void add(const std::filesystem::path& file);
  // Makes a folder and its missing parents, and remembers those it made. Errors: io.
  Result<void> make_folders(const std::filesystem::path& folder);
  // Waits until everything added is on disk with its name, then begins anew. A few files are fsynced one by one, with
  // their folders. For many there is one syncfs a file system, and each file is asked whether it could be written.
  // Errors: io; names the folder and the files.
  Result<void> settle();

 private:
  std::mutex mutex_;
  std::map<dev_t, int> watched_;  // a descriptor of each file system, open since before the first write
  std::vector<std::filesystem::path> files_;
  std::set<std::filesystem::path> folders_;  // whose entries are new
};

// sync_file() brings an open file's bytes and their places to disk, sync_folder() the names that were renamed, made or
// removed in a folder. Both return 0 or an errno. If a folder may be written to but not opened, or the file system does
// not support this, syncing `fd`'s file system is enough.
int sync_file(int fd);
int sync_folder(const std::filesystem::path& folder, int fd = -1);

}  // namespace quarry::io
