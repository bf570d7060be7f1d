// mesh_reader_main.cpp - quarry-mesh-reader: reads one mesh file through Assimp and writes it to standard output as a mesh stream
// (mesh_stream.hpp). A process of its own because Assimp 5.2 dies by a signal on some files; it limits itself before it opens one.
//
//   quarry-mesh-reader [--memory BYTES] [--cpu-seconds N] [--up y|z|auto] [--] FILE
// Exit code 0: a mesh was written; 1: an error was written; 2: wrong usage or nobody listens.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <new>

#include "voxel/mesh_reader.hpp"
#include "voxel/mesh_stream.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define QRY_SANITIZED 1
// A crash must look like a crash to the client, not like a report and exit code 1.
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

namespace {
using namespace quarry;

constexpr uint64_t kBaseBytes = uint64_t(192) << 20;  // the program and its libraries, before any file

void set_limit(int resource, uint64_t value) {
  rlimit limit{};
  if (getrlimit(__rlimit_resource(resource), &limit) != 0) return;
  const rlim_t wanted = limit.rlim_max == RLIM_INFINITY ? value : std::min<rlim_t>(value, limit.rlim_max);
  limit.rlim_cur = limit.rlim_max = wanted;
  setrlimit(__rlimit_resource(resource), &limit);
}

void limit_self(uint64_t memory_bytes, uint64_t cpu_seconds) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  set_limit(RLIMIT_CORE, 0);
  set_limit(RLIMIT_FSIZE, 0);  // it writes to pipes only
  if (cpu_seconds) {
    // The soft limit sends SIGXCPU, which the client knows; the hard one is SIGKILL.
    rlimit limit{cpu_seconds, cpu_seconds + 2};
    setrlimit(RLIMIT_CPU, &limit);
  }
#ifndef QRY_SANITIZED  // sanitizers reserve terabytes of addresses
  if (memory_bytes) set_limit(RLIMIT_AS, memory_bytes + kBaseBytes);
#else
  (void)memory_bytes;
  (void)kBaseBytes;
#endif
}

bool parse_number(const char* text, uint64_t& value) {
  char* end = nullptr;
  errno = 0;
  value = std::strtoull(text, &end, 10);
  return errno == 0 && end != text && *end == 0;
}

int usage() {
  std::cerr << "usage: quarry-mesh-reader [--memory BYTES] [--cpu-seconds N] [--up y|z|auto] [--] FILE\n"
               "Reads a mesh file and writes it as a binary stream to standard output, for other programs of Quarry.\n";
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t memory_bytes = 0, cpu_seconds = 0;
  std::string up = "auto", file;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool has_value = i + 1 < argc;
    if (argument == "--memory" && has_value && parse_number(argv[i + 1], memory_bytes)) ++i;
    else if (argument == "--cpu-seconds" && has_value && parse_number(argv[i + 1], cpu_seconds)) ++i;
    else if (argument == "--up" && has_value) up = argv[++i];
    else if (argument == "--" && i + 2 == argc) file = argv[++i];
    else if (!argument.empty() && argument[0] != '-' && file.empty()) file = argument;
    else return usage();
  }
  if (file.empty() || (up != "auto" && up != "y" && up != "z")) return usage();
  if (isatty(STDOUT_FILENO)) {
    std::cerr << "quarry-mesh-reader: standard output is a terminal; this program writes binary data for other programs of Quarry.\n";
    return 2;
  }
  limit_self(memory_bytes, cpu_seconds);
  std::signal(SIGPIPE, SIG_IGN);

  // The stream keeps the pipe for itself: what a library prints goes to standard error.
  const int out = dup(STDOUT_FILENO);
  if (out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return 2;
  const ByteSink sink = [out](std::span<const uint8_t> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(out, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return false;
      bytes = bytes.subspan(size_t(written));
    }
    return true;
  };

  std::vector<std::string> warnings;
  Result<Mesh> mesh = fail(ErrorCode::malformed_input, "nothing was read");
  try {
    mesh = mesh_reader::read_file(file, up, warnings);
  } catch (const std::bad_alloc&) {
    mesh = fail(ErrorCode::out_of_memory, "");
  } catch (const std::exception& e) {
    mesh = fail(ErrorCode::malformed_input, std::string("the mesh library gave up: ") + e.what());
  }
  if (!mesh && mesh.error().code == ErrorCode::out_of_memory)
    mesh = fail(ErrorCode::out_of_memory, "reading it needs more memory than the limit of " + std::to_string(memory_bytes >> 20) +
                                              " MiB; raise the memory limit or use a smaller mesh.");
  const bool sent = mesh ? write_mesh_stream(*mesh, warnings, sink) : write_error_stream(mesh.error(), warnings, sink);
  // No destructors: nothing is left to save, and a damaged heap must not spoil a mesh that is already out.
  _exit(!sent ? 2 : mesh ? 0 : 1);
}
