// SPDX-License-Identifier: Apache-2.0
// spawn.cpp - fork and exec with pipes and a deadline. Xvfb chooses its display number itself and writes it to a pipe.
#include "tests/app/spawn.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>
#include <utility>

extern char** environ;

namespace quarry::test {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point then) { return std::chrono::duration<double>(Clock::now() - then).count(); }

std::vector<std::string> environment_with(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> all;
  for (char** at = environ; *at; ++at) {
    const std::string entry = *at;
    if (!changes.count(entry.substr(0, entry.find('=')))) all.push_back(entry);
  }
  for (const auto& [name, value] : changes)
    if (!value.empty()) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

Process::Process(const std::vector<std::string>& words_in, const std::map<std::string, std::string>& environment) {
  std::vector<std::string> words = words_in, variables = environment_with(environment);
  const std::vector<char*> arguments = pointers(words), values = pointers(variables);
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) return;
  pid_ = fork();
  if (pid_ == 0) {
    const int null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    dup2(out[1], 1);
    dup2(err[1], 2);
    execvpe(arguments[0], arguments.data(), values.data());
    _exit(127);
  }
  close(out[1]);
  close(err[1]);
  out_ = out[0];
  err_ = err[0];
}

Process::~Process() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (out_ >= 0) close(out_);
  if (err_ >= 0) close(err_);
}

bool Process::read_some(double seconds) {
  pollfd fds[2] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};
  if (out_ < 0 && err_ < 0) return false;
  if (poll(fds, 2, int(seconds * 1000)) <= 0) return true;
  char buffer[4096];
  for (int i = 0; i < 2; ++i) {
    if (!(fds[i].revents & (POLLIN | POLLHUP))) continue;
    const ssize_t count = read(fds[i].fd, buffer, sizeof buffer);
    if (count > 0) {
      (i == 0 ? outcome_.out : outcome_.err).append(buffer, size_t(count));
    } else if (count == 0) {
      close(fds[i].fd);
      (i == 0 ? out_ : err_) = -1;
    }
  }
  return true;
}

bool Process::wait_for_output(const std::string& text, double seconds) {
  const auto start = Clock::now();
  while (outcome_.out.find(text) == std::string::npos)
    if (seconds_since(start) > seconds || !read_some(0.05)) return outcome_.out.find(text) != std::string::npos;
  return true;
}

void Process::signal(int number) {
  if (pid_ > 0) kill(pid_, number);
}

Outcome Process::finish(double seconds) {
  const auto start = Clock::now();
  while (read_some(0.05))
    if (seconds_since(start) > seconds && !outcome_.timed_out) {
      outcome_.timed_out = true;
      kill(pid_, SIGKILL);
    }
  int status = 0;
  if (pid_ > 0) waitpid(pid_, &status, 0);
  pid_ = -1;
  outcome_.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome_;
}

std::filesystem::path quarry_program() { return QRY_QUARRY_PROGRAM; }

// What is written in the tick of the clock in which reading begins is converted again the next time: nobody knows which
// content was read. So what a test has written must lie in an earlier tick. Linux since 6.13 stamps some files with the
// exact time, which is ahead of the clock of stamps; so that clock must have passed the exact time.
static void wait_for_later_stamps() {
  const auto now = [](clockid_t clock) {
    timespec time{};
    ::clock_gettime(clock, &time);
    return std::pair(time.tv_sec, time.tv_nsec);
  };
  const auto written = now(CLOCK_REALTIME);
  while (now(CLOCK_REALTIME_COARSE) <= written) std::this_thread::yield();
}

Outcome run_quarry(const std::vector<std::string>& words, const std::map<std::string, std::string>& environment,
                   double seconds) {
  if (std::find(words.begin(), words.end(), "--resume") != words.end()) wait_for_later_stamps();
  std::vector<std::string> all{quarry_program().string()};
  all.insert(all.end(), words.begin(), words.end());
  return Process(all, environment).finish(seconds);
}

InvisibleDisplay::InvisibleDisplay(int width, int height) {
  int ready[2];
  if (pipe(ready) != 0) return;
  const std::string screen = std::to_string(width) + "x" + std::to_string(height) + "x24",
                    fd = std::to_string(ready[1]);
  pid_ = fork();
  if (pid_ == 0) {
    close(ready[0]);
    const int null = open("/dev/null", O_RDWR);
    dup2(null, 1);
    dup2(null, 2);
    execlp("Xvfb", "Xvfb", "-displayfd", fd.c_str(), "-screen", "0", screen.c_str(), "-nolisten", "tcp",
           static_cast<char*>(nullptr));
    _exit(127);
  }
  close(ready[1]);
  // When the server accepts clients, it writes its display number and a line end.
  std::string number;
  char c;
  while (read(ready[0], &c, 1) == 1 && c != '\n') number += c;
  close(ready[0]);
  if (!number.empty()) name_ = ":" + number;
}

InvisibleDisplay::~InvisibleDisplay() {
  if (pid_ <= 0) return;
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
}

}  // namespace quarry::test
