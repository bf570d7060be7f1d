// SPDX-License-Identifier: Apache-2.0
// memory_budget.cpp - resident memory of this process and its children, read from /proc. A promise is added before it
// is compared.
#include "base/memory_budget.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace quarry {
namespace {

constexpr uint64_t kMebibyte = uint64_t(1) << 20;

// The beginning of a small text file.
template <size_t N>
bool read_proc(const char* file, char (&text)[N]) {
  const int fd = ::open(file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t got = ::read(fd, text, N - 1);
  ::close(fd);
  text[got > 0 ? got : 0] = 0;
  return got > 0;
}

uint64_t resident_bytes(const char* process) {
  char file[64], text[128];
  std::snprintf(file, sizeof file, "/proc/%s/statm", process);
  unsigned long long total = 0, resident = 0;
  if (!read_proc(file, text) || std::sscanf(text, "%llu %llu", &total, &resident) != 2) return 0;
  return uint64_t(resident) * uint64_t(::sysconf(_SC_PAGESIZE));
}

// In the form that an option takes: whole mebibytes, rounded up.
std::string option_text(uint64_t bytes) { return std::to_string((bytes + kMebibyte - 1) / kMebibyte) + "M"; }

}  // namespace

uint64_t memory_in_use() {
  uint64_t sum = resident_bytes("self");
  // Reader processes are children of the thread that started them.
  DIR* const tasks = ::opendir("/proc/self/task");
  if (!tasks) return sum;
  while (const dirent* task = ::readdir(tasks)) {
    if (task->d_name[0] == '.') continue;
    char file[320], text[4096];
    std::snprintf(file, sizeof file, "/proc/self/task/%s/children", task->d_name);
    if (!read_proc(file, text)) continue;
    for (char *at = text, *end = nullptr;; at = end) {
      const unsigned long child = std::strtoul(at, &end, 10);
      if (end == at) break;
      char name[32];
      std::snprintf(name, sizeof name, "%lu", child);
      sum += resident_bytes(name);
    }
  }
  ::closedir(tasks);
  return sum;
}

std::string memory_text(uint64_t bytes) {
  char text[32];
  const uint64_t tenths = (bytes * 10 + kMebibyte - 1) / kMebibyte;
  if (bytes < 10 * kMebibyte) std::snprintf(text, sizeof text, "%.1f MiB", double(tenths) / 10);
  else
    std::snprintf(text, sizeof text, "%llu MiB", static_cast<unsigned long long>((bytes + kMebibyte - 1) / kMebibyte));
  return text;
}

uint64_t MemoryBudget::held() const {
  const uint64_t now = memory_in_use() + promised_.load(std::memory_order_relaxed);
  if (now <= limit_ / 4 * 3) return now;
  ::malloc_trim(0);
  return memory_in_use() + promised_.load(std::memory_order_relaxed);
}

uint64_t MemoryBudget::available_bytes() const {
  const uint64_t now = held();
  return limit_ > now ? limit_ - now : 0;
}

Error MemoryBudget::too_little(uint64_t bytes, const std::string& what) const {
  const uint64_t held = memory_in_use() + promised_.load(std::memory_order_relaxed);
  return {ErrorCode::out_of_memory, what + " takes at least " + memory_text(bytes) + "; " + option_ + " is " +
                                        memory_text(limit_) + ", of which " + memory_text(held) + " are in use: give " +
                                        option_ + " " + option_text(held + bytes) + " or more"};
}

Error MemoryBudget::used_up(const std::string& what) const {
  return {ErrorCode::out_of_memory, what + " takes more memory than there is for it: " + option_ + " is " +
                                        memory_text(limit_) + ", and with " + memory_text(memory_in_use()) +
                                        " in use it was stopped; give more, or make it coarser or smaller"};
}

Result<MemoryBudget::Promise> MemoryBudget::promise(uint64_t bytes, const std::string& what) const {
  // Added before it is compared, so that of two concurrent requests neither counts on the other's room.
  promised_ += bytes;
  Promise out(this, bytes);
  if (bytes > limit_ || held() > limit_) {
    out.taken(bytes);
    return tl::unexpected(too_little(bytes, what));
  }
  return out;
}

}  // namespace quarry
