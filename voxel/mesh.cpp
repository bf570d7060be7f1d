// mesh.cpp - the client of quarry-mesh-reader: starts it, listens with a deadline, and turns whatever becomes of it into a mesh or
// one sentence. The reader's limits on memory and processor time are set by itself before it opens the file (mesh_reader_main.cpp);
// the wall clock is kept here.
#include "voxel/mesh.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "voxel/mesh_stream.hpp"

extern char** environ;

namespace quarry {
namespace {
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr size_t kMaxStderr = 1 << 16;

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    reset();
    fd_ = std::exchange(other.fd_, -1);
    return *this;
  }
  ~Fd() { reset(); }
  void reset() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

struct Pipe {
  Fd read, write;
};
Result<Pipe> new_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return fail(ErrorCode::io, std::string("cannot make a pipe to the mesh reader: ") + std::strerror(errno));
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

// Where the reader may be, in the order of search.
std::vector<fs::path> reader_candidates() {
  if (const char* given = std::getenv("QUARRY_MESH_READER"); given && *given) return {given};
  std::vector<fs::path> places;
  const auto beside = [&](const fs::path& program) {
    const fs::path dir = program.parent_path();
    places.push_back(dir / "quarry-mesh-reader");
    places.push_back(dir / "../libexec/quarry/quarry-mesh-reader");
  };
  std::error_code error;
  if (const fs::path self = fs::read_symlink("/proc/self/exe", error); !error) beside(self);
  // In a shared library inside a foreign program: beside the library.
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&read_mesh), &info) && info.dli_fname) {
    const fs::path library = fs::weakly_canonical(info.dli_fname, error);
    if (!error && !library.empty()) {
      beside(library);
      places.push_back(library.parent_path() / "../../libexec/quarry/quarry-mesh-reader");  // lib/<triplet>/libquarry.so
      places.push_back(library.parent_path() / "../bin/quarry-mesh-reader");
    }
  }
#ifdef QRY_LIBEXEC_DIR
  places.emplace_back(fs::path(QRY_LIBEXEC_DIR) / "quarry-mesh-reader");
#endif
  return places;
}

Result<fs::path> find_reader() {
  std::string looked;
  for (const fs::path& place : reader_candidates()) {
    if (::access(place.c_str(), X_OK) == 0 && fs::is_regular_file(place)) return place;
    const std::string text = place.lexically_normal().string();
    if (looked.find(text) == std::string::npos) looked += (looked.empty() ? "" : ", ") + text;
  }
  return fail(ErrorCode::not_found, "the program that reads meshes, quarry-mesh-reader, is not at " + looked +
                                        ". Reinstall Quarry, or set QUARRY_MESH_READER to its path.");
}

const char* signal_name(int number) {
  switch (number) {
    case SIGSEGV: return "SIGSEGV";
    case SIGABRT: return "SIGABRT";
    case SIGBUS: return "SIGBUS";
    case SIGFPE: return "SIGFPE";
    case SIGILL: return "SIGILL";
    case SIGKILL: return "SIGKILL";
    case SIGTERM: return "SIGTERM";
    case SIGSYS: return "SIGSYS";
    case SIGTRAP: return "SIGTRAP";
    case SIGXFSZ: return "SIGXFSZ";
    case SIGPIPE: return "SIGPIPE";
    default: return "another signal";
  }
}

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", seconds);
  return text;
}

// A running reader; killed and collected on the way out, whatever happens.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      wait();
    }
  }
  int wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_;
};

Result<pid_t> spawn(const fs::path& reader, const std::vector<std::string>& arguments, int out_fd, int err_fd) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out_fd, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err_fd, STDERR_FILENO);
  // A host program may ignore or block signals; the reader must die of its own faults all the same.
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, reader.c_str(), &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return fail(ErrorCode::io, "cannot start " + reader.string() + ": " + std::strerror(error));
  return pid;
}

// Reads what is there. False at the end of the stream.
bool drain(Fd& fd, std::vector<uint8_t>& into, size_t limit, bool& over_limit) {
  uint8_t buffer[1 << 16];
  const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (got == 0) return false;
  if (into.size() + size_t(got) > limit) {
    over_limit = true;
    return true;
  }
  into.insert(into.end(), buffer, buffer + got);
  return true;
}

std::string last_line(const std::vector<uint8_t>& bytes) {
  std::string text(bytes.begin(), bytes.end()), line;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  line = text.substr(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1).substr(0, 300);
  for (char& c : line)
    if (uint8_t(c) < 0x20 || c == 0x7F) c = ' ';
  return line;
}

struct Run {
  std::vector<uint8_t> stream, complaints;
  int status = 0;
};

Result<Run> run_reader(const fs::path& reader, const fs::path& file, const io::ReadOptions& options) {
  auto out = new_pipe(), err = new_pipe();
  if (!out) return tl::unexpected(out.error());
  if (!err) return tl::unexpected(err.error());
  const double time_limit = options.time_limit_s > 0 ? options.time_limit_s : 1e9;
  const auto pid = spawn(reader,
                         {reader.string(), "--memory", std::to_string(options.memory_limit_bytes), "--cpu-seconds",
                          std::to_string(uint64_t(std::ceil(std::min(time_limit, 1e9))) + 1), "--up",
                          options.up.empty() ? "auto" : options.up, "--", fs::absolute(file).string()},
                         out->write.get(), err->write.get());
  if (!pid) return tl::unexpected(pid.error());
  Child child(*pid);
  out->write.reset();
  err->write.reset();

  Run run;
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::min(time_limit, 1e8)));
  bool too_much = false, ignored = false;
  while (out->read.open() || err->read.open()) {
    if (options.progress.cancelled()) return fail(ErrorCode::cancelled, "cancelled while reading the mesh");
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0)
      return fail(ErrorCode::io, "reading it took longer than the limit of " + seconds_text(options.time_limit_s) +
                                     " s and was stopped; the file may be malformed, or raise the time limit.");
    pollfd fds[2] = {{out->read.get(), POLLIN, 0}, {err->read.get(), POLLIN, 0}};
    if (::poll(fds, 2, int(std::min<int64_t>(left, 100))) < 0 && errno != EINTR)
      return fail(ErrorCode::io, std::string("cannot listen to the mesh reader: ") + std::strerror(errno));
    if (fds[0].revents && !drain(out->read, run.stream, size_t(options.memory_limit_bytes), too_much)) out->read.reset();
    if (fds[1].revents && !drain(err->read, run.complaints, kMaxStderr, ignored)) err->read.reset();
    if (too_much)
      return fail(ErrorCode::out_of_memory, "the mesh is larger than the limit of " + std::to_string(options.memory_limit_bytes >> 20) +
                                                " MiB; raise the memory limit or use a smaller mesh.");
  }
  run.status = child.wait();
  return run;
}

Error death(int status, const Run& run, const io::ReadOptions& options) {
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    if (number == SIGXCPU)
      return {ErrorCode::io, "reading it took longer than the limit of " + seconds_text(options.time_limit_s) +
                                 " s of processor time and was stopped; the file may be malformed, or raise the time limit."};
    if (number == SIGKILL || number == SIGTERM)
      return {ErrorCode::io, std::string("the mesh reader was killed from outside (signal ") + signal_name(number) +
                                 "); the machine may have run out of memory."};
    return {ErrorCode::malformed_input, std::string("the mesh library crashed (signal ") + signal_name(number) +
                                            ") while reading it; the file is probably malformed. Try re-exporting it."};
  }
  const std::string said = last_line(run.complaints);
  return {ErrorCode::io, "the mesh reader ended with exit code " + std::to_string(WEXITSTATUS(status)) + " and no mesh" +
                             (said.empty() ? "." : ": " + said)};
}

}  // namespace

Result<Mesh> read_mesh(const fs::path& file, const io::ReadOptions& options) {
  const auto about = [&](const Error& error) { return fail(error.code, file.string() + ": " + error.message); };
  std::error_code error;
  const auto status = fs::status(file, error);
  if (status.type() == fs::file_type::not_found) return about({ErrorCode::not_found, "there is no such file."});
  if (error) return about({ErrorCode::io, error.message()});
  if (status.type() != fs::file_type::regular) return about({ErrorCode::invalid_argument, "it is not a regular file."});
  if (::access(file.c_str(), R_OK) != 0) return about({ErrorCode::io, std::string("it cannot be read: ") + std::strerror(errno)});
  if (fs::file_size(file, error) == 0 && !error) return about({ErrorCode::malformed_input, "the file is empty."});
  if (options.up != "" && options.up != "y" && options.up != "z")
    return about({ErrorCode::invalid_argument, "the up axis must be y or z, not '" + options.up + "'."});

  const auto reader = find_reader();
  if (!reader) return about(reader.error());
  auto run = run_reader(*reader, file, options);
  if (!run) return about(run.error());
  // A reader that died may have sent half a mesh: only a clean end counts.
  if (!WIFEXITED(run->status) || (WEXITSTATUS(run->status) != 0 && run->stream.empty())) return about(death(run->status, *run, options));
  std::vector<std::string> warnings;
  auto mesh = parse_mesh_stream(run->stream, &warnings);
  if (options.warnings)
    for (const std::string& warning : warnings) options.warnings->push_back(file.filename().string() + ": " + warning);
  if (!mesh)
    return about(WEXITSTATUS(run->status) == 0 || WEXITSTATUS(run->status) == 1 ? mesh.error() : death(run->status, *run, options));
  return mesh;
}

}  // namespace quarry
