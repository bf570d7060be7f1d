// SPDX-License-Identifier: Apache-2.0
// process.cpp - posix_spawn, non-blocking pipes, poll up to the deadline, and one sentence for each way in which the
// process can die.
#include "voxel/foreign/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/program_place.hpp"

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
Result<Pipe> new_pipe(const ReaderProgram& program) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return fail(ErrorCode::io, std::string("cannot make a pipe to ") + program.role + ": " + std::strerror(errno));
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}
// Makes the program's standard input. It is a socket, because a write to a pipe without a reader would kill the host
// program by SIGPIPE.
Result<Pipe> new_input(const ReaderProgram& program) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return fail(ErrorCode::io, std::string("cannot make a socket to ") + program.role + ": " + std::strerror(errno));
  ::fcntl(ends[1], F_SETFL, O_NONBLOCK);
  return Pipe{Fd(ends[0]), Fd(ends[1])};
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

// A running reader. The destructor kills and reaps it in every case.
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

Result<pid_t> spawn(const fs::path& reader, const std::vector<std::string>& arguments, int in_fd, int out_fd,
                    int err_fd) {
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  if (in_fd >= 0) posix_spawn_file_actions_adddup2(&actions, in_fd, STDIN_FILENO);
  else posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out_fd, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err_fd, STDERR_FILENO);
  // A host program may ignore or block signals, but the reader's own faults must still kill it.
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

// Reads the available bytes and gives them to `take`. Returns false at the end of the stream.
template <class Take>
bool drain(Fd& fd, const Take& take) {
  uint8_t buffer[1 << 16];
  const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (got == 0) return false;
  take(std::span<const uint8_t>(buffer, size_t(got)));
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

// Sends as much as the socket accepts. Returns false once everything is sent or the other side has stopped reading.
bool feed(Fd& fd, const ByteSource& input, std::span<const uint8_t>& piece) {
  if (piece.empty()) piece = input();
  if (piece.empty()) return false;
  const ssize_t sent = ::send(fd.get(), piece.data(), std::min<size_t>(piece.size(), 1 << 18), MSG_NOSIGNAL);
  if (sent < 0) return errno == EINTR || errno == EAGAIN;
  piece = piece.subspan(size_t(sent));
  return true;
}

struct Run {
  ByteBuffer stream;
  std::vector<uint8_t> complaints;
  int status = 0;
  uint64_t memory_limit_bytes = 0;  // that the program was given
  bool silent = true;               // nothing of the stream came
};

// While the stream arrives: the room that must be left, and the bytes between two checks of it.
constexpr uint64_t kStreamSpareBytes = uint64_t(2) << 20, kStreamLookBytes = uint64_t(1) << 20;

Result<Run> run(const ReaderProgram& program, const fs::path& path, const std::vector<std::string>& arguments,
                const io::ReadOptions& options, const ByteSource& input, const ByteTaker& take) {
  QRY_TRY_ASSIGN(auto out, new_pipe(program));
  QRY_TRY_ASSIGN(auto err, new_pipe(program));
  Pipe in;
  if (input) {
    QRY_TRY_ASSIGN(auto made, new_input(program));
    in = std::move(made);
  }
  const double time_limit = options.time_limit_s > 0 ? options.time_limit_s : 1e9;
  Run run;
  run.memory_limit_bytes = options.memory_limit_bytes;
  if (options.budget) {
    const uint64_t available_bytes = options.budget->available_bytes();
    if (available_bytes < program.own_bytes)
      return tl::unexpected(
          options.budget->too_little(program.own_bytes, std::string("reading it in ") + program.role + "'s process"));
    run.memory_limit_bytes = std::min(run.memory_limit_bytes, available_bytes);
  }
  std::vector<std::string> all{path.string(), "--memory", std::to_string(run.memory_limit_bytes), "--cpu-seconds",
                               std::to_string(uint64_t(std::ceil(std::min(time_limit, 1e9))) + 1)};
  all.insert(all.end(), arguments.begin(), arguments.end());
  QRY_TRY_ASSIGN(const auto pid, spawn(path, all, in.read.get(), out.write.get(), err.write.get()));
  Child child(pid);
  in.read.reset();
  out.write.reset();
  err.write.reset();

  uint64_t looked_at = 0;  // bytes of the stream
  std::span<const uint8_t> piece;
  auto deadline = Clock::now() +
                  std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::min(time_limit, 1e8)));
  bool too_much = false;
  Result<void> taken;
  const auto keep = [&](std::span<const uint8_t> bytes) {
    run.silent = false;
    if (take) {
      const auto began = Clock::now();
      taken = take(bytes, run.memory_limit_bytes);
      deadline += Clock::now() - began;
    } else if (run.stream.size() + bytes.size() > size_t(options.memory_limit_bytes)) {
      too_much = true;
    } else {
      run.stream.append(bytes);
    }
  };
  const auto complain = [&](std::span<const uint8_t> bytes) {
    if (run.complaints.size() + bytes.size() <= kMaxStderr)
      run.complaints.insert(run.complaints.end(), bytes.begin(), bytes.end());
  };
  while (out.read.open() || err.read.open()) {
    if (options.progress.cancelled())
      return fail(ErrorCode::cancelled, std::string("cancelled while ") + program.role + " was at work");
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0)
      return fail(ErrorCode::io, "it took longer than the limit of " + seconds_text(options.time_limit_s) +
                                     " s and was stopped; the file may be malformed, or raise the time limit.");
    // poll() skips negative descriptors.
    pollfd fds[3] = {{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}, {in.write.get(), POLLOUT, 0}};
    if (::poll(fds, 3, int(std::min<int64_t>(left, 100))) < 0 && errno != EINTR)
      return fail(ErrorCode::io, std::string("cannot listen to ") + program.role + ": " + std::strerror(errno));
    if (fds[0].revents && !drain(out.read, keep)) out.read.reset();
    if (fds[1].revents && !drain(err.read, complain)) err.read.reset();
    QRY_TRY(taken);
    if (fds[2].revents && !feed(in.write, input, piece)) in.write.reset();
    // The check adds up the memory that the program holds, that is held here, and that is still to come.
    if (options.budget && run.stream.size() - looked_at >= kStreamLookBytes) {
      looked_at = run.stream.size();
      if (options.budget->available_bytes() < kStreamLookBytes + kStreamSpareBytes)
        return tl::unexpected(options.budget->used_up("the " + std::string(program.subject) + ", beside " +
                                                      program.role + "'s process,"));
    }
    if (too_much)
      return fail(ErrorCode::out_of_memory, std::string("the ") + program.subject + " is larger than the limit of " +
                                                std::to_string(options.memory_limit_bytes >> 20) +
                                                " MiB; raise the memory limit or use a smaller one.");
  }
  run.status = child.wait();
  return run;
}

Error death(const ReaderProgram& program, const Run& run, const io::ReadOptions& options) {
  if (WIFSIGNALED(run.status)) {
    const int number = WTERMSIG(run.status);
    if (number == SIGXCPU)
      return {ErrorCode::io, "it took longer than the limit of " + seconds_text(options.time_limit_s) +
                                 " s of processor time and was stopped; the file may be malformed, or raise the time "
                                 "limit."};
    if (number == SIGKILL || number == SIGTERM)
      return {ErrorCode::io, std::string(program.role) + " was killed from outside (signal " + signal_name(number) +
                                 "); the machine may have run out of memory."};
    return {ErrorCode::malformed_input, std::string(program.library) + " crashed (signal " + signal_name(number) +
                                            ") while reading it; the file is probably malformed. Try re-exporting it."};
  }
  const std::string message = last_line(run.complaints);
  return {ErrorCode::io, std::string(program.role) + " ended with exit code " +
                             std::to_string(WEXITSTATUS(run.status)) + " and no " + program.subject +
                             (message.empty() ? "." : ": " + message)};
}

Result<ReaderAnswer> answer_of(const ReaderProgram& program, const std::vector<std::string>& arguments,
                               const io::ReadOptions& options, const ByteSource& input, const ByteTaker& take) {
  QRY_TRY_ASSIGN(const auto path, find_program(program.name, program.variable, program.task));
  QRY_TRY_ASSIGN(auto done, run(program, path, arguments, options, input, take));
  // A reader that died may have sent half a stream, so only a clean end counts.
  const bool exited = WIFEXITED(done.status);
  if (!exited || (WEXITSTATUS(done.status) != 0 && done.silent)) return tl::unexpected(death(program, done, options));
  ReaderAnswer answer;
  if (WEXITSTATUS(done.status) > 1) answer.end = death(program, done, options);
  answer.stream = std::move(done.stream);
  answer.memory_limit_bytes = done.memory_limit_bytes;
  return answer;
}

}  // namespace

Result<ReaderAnswer> run_reader(const ReaderProgram& program, const std::vector<std::string>& arguments,
                                const io::ReadOptions& options, const ByteSource& input) {
  return answer_of(program, arguments, options, input, {});
}

Result<ReaderAnswer> run_reader_in_pieces(const ReaderProgram& program, const std::vector<std::string>& arguments,
                                          const io::ReadOptions& options, const ByteTaker& take) {
  return answer_of(program, arguments, options, {}, take);
}

Result<void> check_readable(const fs::path& file) {
  std::error_code error;
  const auto status = fs::status(file, error);
  if (status.type() == fs::file_type::not_found) return fail(ErrorCode::not_found, "there is no such file.");
  if (error) return fail(ErrorCode::io, error.message());
  if (status.type() != fs::file_type::regular) return fail(ErrorCode::invalid_argument, "it is not a regular file.");
  if (::access(file.c_str(), R_OK) != 0)
    return fail(ErrorCode::io, std::string("it cannot be read: ") + std::strerror(errno));
  if (fs::file_size(file, error) == 0 && !error) return fail(ErrorCode::malformed_input, "the file is empty.");
  return {};
}

}  // namespace quarry
