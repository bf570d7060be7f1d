// SPDX-License-Identifier: Apache-2.0
// deferred_sync.cpp - one syncfs for each file system that was written to, or fsync if files are few. Afterwards each
// file is asked for errors.
#include "voxel/io/files/deferred_sync.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "voxel/io/files/names.hpp"

namespace quarry::io {
namespace fs = std::filesystem;
namespace {

// Up to this many files are fsynced one by one, because syncfs also waits for the writes of all other programs to that
// file system.
constexpr size_t kFew = 8;
constexpr size_t kNamed = 20;
constexpr long kFuse = 0x65735546;  // FUSE_SUPER_MAGIC: syncfs does not reach the program that serves the files

// Opens for reading, without blocking. Returns -1 with errno on failure.
int open_quietly(const fs::path& path, int flags = 0) {
  int fd;
  do fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
  while (fd < 0 && errno == EINTR);
  return fd;
}

bool can_sync_whole(int fd) {
  struct statfs info {};
  return ::fstatfs(fd, &info) == 0 && info.f_type != kFuse;
}

// Asks whether the file's bytes could be written, after syncfs has brought them to disk. syncfs does not report this if
// one file system lies on another (overlayfs). Unlike an fsync it does not flush the disk's cache. A process that may
// not read its own file (a umask of 0777) cannot ask.
int ask_file(const fs::path& file) {
  const int fd = open_quietly(file);
  if (fd < 0) return errno == ENOENT || errno == EACCES ? 0 : errno;  // it was moved since
  int failed;
  do
    failed = ::sync_file_range(fd, 0, 0,
                               SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER) == 0
                 ? 0
                 : errno;
  while (failed == EINTR);
  if (failed != EIO && failed != ENOSPC && failed != EDQUOT) failed = 0;  // this file system does not support it
  ::close(fd);
  return failed;
}

int sync_whole(int fd) {
  while (::syncfs(fd) != 0)
    if (errno != EINTR) return errno;
  return 0;
}

int sync_one(const fs::path& file) {
  const int fd = open_quietly(file);
  if (fd < 0) return errno == ENOENT ? 0 : errno;
  const int failed = sync_file(fd);
  ::close(fd);
  return failed;
}

Result<void> not_on_disk(const fs::path& folder, const std::vector<fs::path>& files, int number) {
  std::string names;
  for (size_t i = 0; i < std::min(files.size(), kNamed); ++i) names += (i ? ", " : "") + files[i].filename().string();
  if (files.size() > kNamed) names += " and " + std::to_string(files.size() - kNamed) + " more";
  return fail(ErrorCode::io, folder.string() + ": what was written there could not be brought to disk: " +
                                 std::strerror(number) + (names.empty() ? "" : "; convert again: " + names));
}

}  // namespace

int sync_file(int fd) {
  while (::fsync(fd) != 0)
    if (errno != EINTR) return errno;
  return 0;
}

int sync_folder(const fs::path& folder, int fd) {
  const int opened = open_quietly(folder, O_DIRECTORY);
  int failed = opened < 0 ? errno : sync_file(opened);
  if (opened >= 0) ::close(opened);
  if ((failed == EACCES || failed == EINVAL || failed == ENOSYS || failed == ENOTSUP) && fd >= 0)
    failed = sync_whole(fd);
  return failed;
}

DeferredSync::~DeferredSync() {
  for (const auto& [device, fd] : watched_) ::close(fd);
}

void DeferredSync::watch(const fs::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return;
  const std::scoped_lock lock(mutex_);
  if (watched_.contains(info.st_dev)) return;
  // It is opened anew, because a duplicate of the writer's descriptor would keep its lock.
  int fd = open_quietly(folder_of(file), O_DIRECTORY);
  if (fd < 0) fd = open_quietly(file);
  if (fd >= 0) watched_.emplace(info.st_dev, fd);
}

void DeferredSync::add(const fs::path& file) {
  const std::scoped_lock lock(mutex_);
  files_.push_back(file);
}

Result<void> DeferredSync::make_folders(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> above;
  for (fs::path at = folder; !at.empty() && !fs::exists(at, error); at = at.parent_path()) {
    above.push_back(folder_of(at));
    if (at == at.parent_path()) break;
  }
  fs::create_directories(folder, error);
  if (error) return fail(ErrorCode::io, folder.string() + ": the directory cannot be made: " + error.message());
  const std::scoped_lock lock(mutex_);
  folders_.insert(above.begin(), above.end());
  return {};
}

Result<void> DeferredSync::settle() {
  const std::scoped_lock lock(mutex_);
  std::map<fs::path, std::vector<fs::path>> by_folder;
  for (fs::path& file : files_) {
    const fs::path folder = folder_of(file);
    by_folder[folder].push_back(std::move(file));
  }
  const bool few = files_.size() <= kFew;
  std::map<dev_t, int> whole;  // the result of syncfs for each file system
  if (!few)
    for (const auto& [device, fd] : watched_)
      if (can_sync_whole(fd)) {
        const int number = sync_whole(fd);
        if (number != ENOSYS) whole[device] = number;
      }
  Result<void> done;
  const auto note = [&](const fs::path& folder, const std::vector<fs::path>& files, int number) {
    if (number && done) done = not_on_disk(folder, files, number);
  };
  for (const auto& [folder, files] : by_folder) {
    struct stat info {};
    const auto synced = ::stat(folder.c_str(), &info) == 0 ? whole.find(info.st_dev) : whole.end();
    if (synced != whole.end() && synced->second) {
      note(folder, files, synced->second);
      continue;
    }
    std::vector<fs::path> lost;
    int number = 0;
    for (const fs::path& file : files)
      if (const int failed = synced != whole.end() ? ask_file(file) : sync_one(file))
        number = failed, lost.push_back(file);
    if (number) note(folder, lost, number);
    else if (synced == whole.end()) folders_.insert(folder);
  }
  for (const fs::path& folder : folders_) {
    struct stat info {};
    if (::stat(folder.c_str(), &info) != 0) continue;  // it was moved since
    if (whole.contains(info.st_dev)) continue;
    const auto watched = watched_.find(info.st_dev);
    note(folder, by_folder[folder], sync_folder(folder, watched == watched_.end() ? -1 : watched->second));
  }
  files_.clear();
  folders_.clear();
  return done;
}

}  // namespace quarry::io
