// SPDX-License-Identifier: Apache-2.0
// temporary_name.cpp - makes and parses temporary names, and removes stale ones. A file whose lock is free has lost its
// owner.
#include "voxel/io/files/temporary_name.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "voxel/io/files/bytes.hpp"
#include "voxel/io/files/sidecar_marker.hpp"

namespace quarry::io {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMachineDigits = 8;
constexpr size_t kMaxName = 255, kAnyName = 128;  // the limit of Linux; a length that every file system accepts
constexpr time_t kElsewhereSeconds = 24 * 3600;
// A temporary world is not locked for a moment between its writing and its reading.
constexpr time_t kPassingSeconds = 10;

}  // namespace

const std::string& machine_start() {
  static const std::string digits = [] {
    std::string id;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
    uint32_t h = 2166136261u;
    for (const char c : id) h = (h ^ uint8_t(c)) * 16777619u;
    std::string out(kMachineDigits, '0');
    for (size_t i = 0; i < kMachineDigits; ++i, h >>= 4) out[i] = "0123456789abcdef"[h & 15];
    return out;
  }();
  return digits;
}

namespace {

enum class Owner : uint8_t { nobody_of_ours, here, elsewhere };

enum class Kind : uint8_t { whole, passing, mark };
constexpr std::pair<std::string_view, Kind> kKinds[] = {
    {".new-", Kind::whole}, {".regions-", Kind::passing}, {".set-", Kind::mark}};

// The owner of a name, and its kind.
Owner owner_of(std::string_view name, Kind* what) {
  if (!name.starts_with('.')) return Owner::nobody_of_ours;
  for (const auto& [kind, meaning] : kKinds) {
    const size_t at = name.rfind(kind);
    if (at == std::string_view::npos || at == 0) continue;
    std::string_view rest = name.substr(at + kind.size());
    if (rest.size() <= kMachineDigits || rest[kMachineDigits] != '-' ||
        rest.substr(0, kMachineDigits).find_first_not_of("0123456789abcdef") != std::string_view::npos)
      continue;
    const std::string_view who = rest.substr(0, kMachineDigits);
    rest.remove_prefix(kMachineDigits + 1);
    const size_t dash = rest.find('-');
    if (dash == 0 || dash == std::string_view::npos || dash + 1 == rest.size()) continue;
    if (rest.substr(0, dash).find_first_not_of("0123456789") != std::string_view::npos ||
        rest.substr(dash + 1).find_first_not_of("0123456789") != std::string_view::npos)
      continue;
    *what = meaning;
    return who == machine_start() ? Owner::here : Owner::elsewhere;
  }
  return Owner::nobody_of_ours;
}

// Locks a file that was just made. Returns false if a process that took it for stale holds the lock or has removed the
// file.
bool lock_own(int fd) {
  struct stat info {};
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  // A file system without flock returns another error. Nobody gets a lock there, so nobody removes anything.
  return ::fstat(fd, &info) == 0 && info.st_nlink > 0;
}

bool remove_if_stale(const fs::path& path, Owner owner, Kind kind, std::vector<std::string>* repaired) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  struct stat info {};
  const bool known =
      ::fstat(fd, &info) == 0 && (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) && info.st_uid == ::geteuid();
  const time_t still = std::time(nullptr) - info.st_mtim.tv_sec;
  bool stale = known && still >= (owner == Owner::elsewhere ? kElsewhereSeconds
                                  : kind == Kind::passing   ? kPassingSeconds
                                                            : 0);
  stale = stale && ::flock(fd, LOCK_EX | LOCK_NB) == 0;
  std::error_code error;
  if (stale && kind == Kind::mark) {
    std::string message = SidecarMarker::repair(path);
    if (repaired && !message.empty()) repaired->push_back(std::move(message));
    stale = !fs::exists(path, error);
  } else if (stale) stale = S_ISDIR(info.st_mode) ? fs::remove_all(path, error) > 0 : fs::remove(path, error);
  ::close(fd);
  return stale && !error;
}

// The prefix of a name, of at most `bytes` and whole UTF-8 characters. The process and number after it keep two such
// names distinct.
std::string_view prefix(std::string_view name, size_t bytes) {
  if (name.size() <= bytes) return name;
  while (bytes > 0 && (uint8_t(name[bytes]) & 0xc0) == 0x80) --bytes;
  return name.substr(0, bytes);
}

}  // namespace

fs::path temporary_name(const fs::path& file, const char* kind) {
  static std::atomic<uint32_t> counter{0};
  const fs::path folder = file.parent_path();
  const std::string name = file.filename().string();
  const std::string tail = std::string(".") + kind + "-" + machine_start() + "-" + std::to_string(::getpid()) + "-" +
                           std::to_string(counter++);
  size_t most = kMaxName;
  // The limit is queried only if it may matter. FAT counts characters, and reports more than it accepts.
  if (name.size() + tail.size() + 1 > kAnyName)
    if (const long limit = ::pathconf(folder.empty() ? "." : folder.c_str(), _PC_NAME_MAX); limit > 0)
      most = std::min(most, size_t(limit));
  const size_t rest = tail.size() + 1;
  return folder / ("." + std::string(prefix(name, most > rest ? most - rest : 0)) + tail);
}

Result<TemporaryHandle> make_temporary_file(const fs::path& file, mode_t mode, const char* kind) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    TemporaryHandle made{temporary_name(file, kind)};
    do made.fd = ::open(made.path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    while (made.fd < 0 && errno == EINTR);
    if (made.fd < 0 && errno != EEXIST)
      return tl::unexpected(
          error_from_errno("cannot make a new file in " + fs::absolute(file).parent_path().string(), errno));
    if (made.fd < 0) continue;
    if (lock_own(made.fd)) return made;
    ::close(made.fd);
  }
  return fail(ErrorCode::io, "every name for a temporary file beside it is taken");
}

Result<TemporaryHandle> make_temporary_folder(const fs::path& folder) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    TemporaryHandle made{temporary_name(folder)};
    if (::mkdir(made.path.c_str(), 0777) != 0) {
      if (errno == EEXIST) continue;
      return tl::unexpected(
          error_from_errno("cannot make a folder in " + fs::absolute(folder).parent_path().string(), errno));
    }
    made.fd = ::open(made.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (made.fd >= 0 && lock_own(made.fd)) return made;
    if (made.fd >= 0) ::close(made.fd);
  }
  return fail(ErrorCode::io, "every name for a temporary folder beside it is taken");
}

size_t remove_stale_temporaries(const fs::path& folder, std::vector<std::string>* repaired) {
  struct Found {
    fs::path path;
    Owner owner;
    Kind kind;
  };
  size_t removed = 0;
  std::error_code error;
  std::vector<Found> found;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    Kind kind{};
    const Owner owner = owner_of(at->path().filename().string(), &kind);
    if (owner != Owner::nobody_of_ours) found.push_back({at->path(), owner, kind});
  }
  for (const Found& f : found) removed += remove_if_stale(f.path, f.owner, f.kind, repaired);
  return removed;
}

}  // namespace quarry::io
