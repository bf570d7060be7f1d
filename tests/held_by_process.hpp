// SPDX-License-Identifier: Apache-2.0
// held_by_process.hpp - what this process holds, for tests of long sessions: memory, open files, threads.
#pragma once

#include <malloc.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace quarry::test {

struct HeldByProcess {
  uint64_t resident_bytes = 0;
  size_t files = 0, threads = 0;
};
// What is free, and only not given back to the system, does not count.
inline HeldByProcess held_by_process() {
  const auto entries = [](const char* folder) {
    return size_t(std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
  };
  malloc_trim(0);
  std::ifstream statm("/proc/self/statm");
  uint64_t pages = 0, resident = 0;
  statm >> pages >> resident;
  return {resident * uint64_t(sysconf(_SC_PAGESIZE)), entries("/proc/self/fd"), entries("/proc/self/task")};
}

}  // namespace quarry::test
