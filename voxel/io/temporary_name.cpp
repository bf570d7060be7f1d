#include "voxel/io/temporary_name.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "voxel/io/file_bytes.hpp"

namespace quarry::io {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMachineDigits = 8;
constexpr time_t kElsewhereSeconds = 24 * 3600;
constexpr time_t kPassingSeconds = 10;  // a world that is passed through is not locked for the moment between writing and reading it

const std::string& machine() {
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

enum class Maker : uint8_t { nobody_of_ours, here, elsewhere };

// Whose a name is. `passing`: it is of a world that is passed through.
Maker maker_of(std::string_view name, bool* passing) {
  if (!name.starts_with('.')) return Maker::nobody_of_ours;
  for (const std::string_view kind : {std::string_view(".new-"), std::string_view(".regions-")}) {
    const size_t at = name.rfind(kind);
    if (at == std::string_view::npos || at == 0) continue;
    std::string_view rest = name.substr(at + kind.size());
    if (rest.size() <= kMachineDigits || rest[kMachineDigits] != '-' || rest.substr(0, kMachineDigits).find_first_not_of("0123456789abcdef") != std::string_view::npos) continue;
    const std::string_view who = rest.substr(0, kMachineDigits);
    rest.remove_prefix(kMachineDigits + 1);
    const size_t dash = rest.find('-');
    if (dash == 0 || dash == std::string_view::npos || dash + 1 == rest.size()) continue;
    if (rest.substr(0, dash).find_first_not_of("0123456789") != std::string_view::npos || rest.substr(dash + 1).find_first_not_of("0123456789") != std::string_view::npos) continue;
    *passing = kind == ".regions-";
    return who == machine() ? Maker::here : Maker::elsewhere;
  }
  return Maker::nobody_of_ours;
}

// Locks what was just made. False: somebody who took it for left behind has it, or has removed it already.
bool lock_own(int fd) {
  struct stat info {};
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  // A file system without flock gives another error; nobody gets a lock there, and so nobody removes anything.
  return ::fstat(fd, &info) == 0 && info.st_nlink > 0;
}

bool remove_if_stale(const fs::path& path, Maker maker, bool passing) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  struct stat info {};
  const bool known = ::fstat(fd, &info) == 0 && (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) && info.st_uid == ::geteuid();
  const time_t still = std::time(nullptr) - info.st_mtim.tv_sec;
  bool stale = known && still >= (maker == Maker::elsewhere ? kElsewhereSeconds : passing ? kPassingSeconds : 0);
  stale = stale && ::flock(fd, LOCK_EX | LOCK_NB) == 0;
  std::error_code error;
  if (stale) stale = S_ISDIR(info.st_mode) ? fs::remove_all(path, error) > 0 : fs::remove(path, error);
  ::close(fd);
  return stale && !error;
}

}  // namespace

fs::path temporary_name(const fs::path& file, const char* kind) {
  static std::atomic<uint32_t> counter{0};
  return file.parent_path() / ("." + file.filename().string() + "." + kind + "-" + machine() + "-" + std::to_string(::getpid()) + "-" + std::to_string(counter++));
}

Result<TemporaryHandle> make_temporary_file(const fs::path& file, mode_t mode) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    TemporaryHandle made{temporary_name(file)};
    made.fd = ::open(made.path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (made.fd < 0 && errno != EEXIST) return tl::unexpected(error_from_errno("cannot make a new file in " + fs::absolute(file).parent_path().string(), errno));
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
      return tl::unexpected(error_from_errno("cannot make a folder in " + fs::absolute(folder).parent_path().string(), errno));
    }
    made.fd = ::open(made.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (made.fd >= 0 && lock_own(made.fd)) return made;
    if (made.fd >= 0) ::close(made.fd);
  }
  return fail(ErrorCode::io, "every name for a temporary folder beside it is taken");
}

size_t remove_stale_temporaries(const fs::path& folder) {
  size_t removed = 0;
  std::error_code error;
  std::vector<std::pair<fs::path, std::pair<Maker, bool>>> found;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    bool passing = false;
    const Maker maker = maker_of(at->path().filename().string(), &passing);
    if (maker != Maker::nobody_of_ours) found.push_back({at->path(), {maker, passing}});
  }
  for (const auto& [path, whose] : found) removed += remove_if_stale(path, whose.first, whose.second);
  return removed;
}

}  // namespace quarry::io
