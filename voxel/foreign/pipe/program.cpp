// SPDX-License-Identifier: Apache-2.0
// program.cpp - sets rlimits on memory and processor time, based on the memory that is already resident. Standard
// output carries only the stream.
#include "voxel/foreign/pipe/program.hpp"

#include <malloc.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define QRY_SANITIZED 1
// The client must see a crash as a crash, not as a report and exit code 1.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "handle_segv=0:handle_abort=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:abort_on_error=1:detect_leaks=0:"
         "alloc_dealloc_mismatch=0:detect_odr_violation=0:detect_container_overflow=0";
}
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() {
  return "handle_segv=0:handle_abort=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:abort_on_error=1";
}
#endif

namespace quarry {
namespace {

#ifndef QRY_SANITIZED
// Counts this process's pages: those mapped private and writable, and those resident.
bool own_pages(uint64_t& data, uint64_t& resident) {
  std::ifstream in("/proc/self/statm");
  uint64_t size = 0, shared = 0, text = 0, library = 0;
  if (!(in >> size >> resident >> shared >> text >> library >> data)) return false;
  const auto page = uint64_t(sysconf(_SC_PAGESIZE));
  data *= page;
  resident *= page;
  return true;
}
#endif

void set_limit(int resource, uint64_t value) {
  rlimit limit{};
  if (getrlimit(__rlimit_resource(resource), &limit) != 0) return;
  const rlim_t wanted = limit.rlim_max == RLIM_INFINITY ? value : std::min<rlim_t>(value, limit.rlim_max);
  limit.rlim_cur = limit.rlim_max = wanted;
  setrlimit(__rlimit_resource(resource), &limit);
}

}  // namespace

void limit_self(const ReaderLimits& limits) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  set_limit(RLIMIT_CORE, 0);
  if (!limits.writes_file) set_limit(RLIMIT_FSIZE, 0);
  else std::signal(SIGXFSZ, SIG_IGN);  // a file past the user's limit is a write error, not a crash
  if (limits.cpu_seconds) {
    // The soft limit sends SIGXCPU, which the client recognises. The hard limit sends SIGKILL.
    rlimit limit{limits.cpu_seconds, limits.cpu_seconds + 2};
    setrlimit(RLIMIT_CPU, &limit);
  }
#ifndef QRY_SANITIZED  // sanitizers reserve terabytes of addresses
  // The resident memory of a process cannot be limited. Its addresses can, but libraries map far more than they use.
  // The limit on writable memory (heap, mappings, stacks) is close enough: together with the pages already resident and
  // the code still to be loaded, it stays within the limit.
  uint64_t data = 0, resident = 0;
  if (limits.memory_bytes && own_pages(data, resident)) {
    mallopt(M_ARENA_MAX, 1);  // one heap, so no mapping is reserved for each thread
    const uint64_t held = resident + limits.code_bytes;
    set_limit(RLIMIT_DATA, data + (limits.memory_bytes > held ? limits.memory_bytes - held : 0));
  }
#endif
}

bool parse_number(const char* text, uint64_t& value) {
  char* end = nullptr;
  errno = 0;
  value = std::strtoull(text, &end, 10);
  return errno == 0 && end != text && *end == 0;
}

ByteSink take_standard_output(const char* program) {
  if (isatty(STDOUT_FILENO)) {
    std::cerr << program
              << ": standard output is a terminal; this program writes binary data for other programs of Quarry.\n";
    return {};
  }
  std::signal(SIGPIPE, SIG_IGN);
  const int out = dup(STDOUT_FILENO);
  if (out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return {};
  return [out](std::span<const uint8_t> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(out, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return false;
      bytes = bytes.subspan(size_t(written));
    }
    return true;
  };
}

}  // namespace quarry
