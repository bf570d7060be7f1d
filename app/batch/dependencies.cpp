// SPDX-License-Identifier: Apache-2.0
// dependencies.cpp - one XXH3 sum over the requested files: which exist, and their contents. There is no sum if a file
// changed since reading began.
#include "app/batch/dependencies.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "app/batch/checksum.hpp"

namespace quarry::app {
namespace {
namespace fs = std::filesystem;

constexpr size_t kMostDependencies = 4096, kMostDependencyNames = size_t{1} << 20;

int64_t in_nanoseconds(const timespec& time) { return int64_t(time.tv_sec) * 1'000'000'000 + time.tv_nsec; }

// False if the file's content is not known: it was changed since, or cannot be read.
bool add_dependency(const fs::path& file, int64_t since, const std::atomic<bool>* cancel, Checksum& hash) {
  constexpr uint64_t kAbsent = 0, kThere = 1, kNoFile = 2;
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) {
    hash.add_number(kAbsent);
    return true;
  }
  if (!S_ISREG(info.st_mode)) {  // no reader opens a folder or a device
    hash.add_number(kNoFile);
    return true;
  }
  if (in_nanoseconds(info.st_mtim) >= since) return false;
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  hash.add_number(kThere);
  std::vector<char> buffer(size_t{1} << 20);
  uint64_t total = 0;
  ssize_t got = 0;
  while (!(cancel && cancel->load(std::memory_order_relaxed)) &&
         ((got = ::read(fd, buffer.data(), buffer.size())) > 0 || (got < 0 && errno == EINTR))) {
    if (got < 0) continue;
    hash.add({buffer.data(), size_t(got)});
    total += uint64_t(got);
  }
  ::close(fd);
  hash.add_number(total);
  return got == 0;
}

std::string dependency_hash(const std::vector<std::string>& files, const fs::path& folder, int64_t since,
                            const std::atomic<bool>* cancel) {
  Checksum hash;
  for (const std::string& name : files) {
    hash.add({name.data(), name.size()});
    if (!add_dependency(folder / name, since, cancel, hash)) return {};
  }
  return hash.hex();
}

}  // namespace

int64_t file_clock_now() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return in_nanoseconds(now);
}

Dependencies dependencies_now(const fs::path& folder, const std::vector<fs::path>& accessed_files, int64_t since,
                              const std::atomic<bool>* cancel) {
  Dependencies out;
  std::error_code ignored;
  const fs::path from = fs::absolute(folder, ignored).lexically_normal();
  for (const fs::path& file : accessed_files) out.files.push_back(file.lexically_proximate(from).generic_string());
  std::ranges::sort(out.files);
  out.files.erase(std::unique(out.files.begin(), out.files.end()), out.files.end());
  size_t bytes = 0;
  for (const std::string& name : out.files) bytes += name.size();
  if (out.files.size() > kMostDependencies || bytes > kMostDependencyNames) return {};
  out.hash = dependency_hash(out.files, folder, since, cancel);
  return out;
}

bool unchanged(const Dependencies& before, const fs::path& folder, const std::atomic<bool>* cancel) {
  return !before.hash.empty() && before.files.size() <= kMostDependencies &&
         dependency_hash(before.files, folder, INT64_MAX, cancel) == before.hash;
}

}  // namespace quarry::app
