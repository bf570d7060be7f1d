// SPDX-License-Identifier: Apache-2.0
// terminal.cpp - errors, the progress line and the handler of SIGINT and SIGTERM. The handler touches only lock-free
// atomics.
#include "app/console/terminal.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "app/console/command.hpp"

namespace quarry::app {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set inside a signal handler");

std::atomic<int64_t> interrupted_ms{0};
static_assert(std::atomic<int64_t>::is_always_lock_free, "set inside a signal handler");

// The first signal asks for a clean end. A second one, a second later or more, ends the process at once. A sooner one
// counts as the same signal, because timeout(1) and job managers send theirs to the program and to its group.
void on_interrupt(int) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t ms = int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
  int64_t none = 0;
  if (!interrupted_ms.compare_exchange_strong(none, ms) && ms - none >= 1000) _exit(kExitCancelled);
  interrupted = true;
}

// "45 s", "3:07", "1:02:40"
std::string time_text(double seconds) {
  const auto s = int64_t(std::llround(seconds));
  if (s < 60) return fmt::format("{} s", s);
  return s < 3600 ? fmt::format("{}:{:02}", s / 60, s % 60)
                  : fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

int terminal_columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

}  // namespace

void say_error(const std::string& subject, const std::string& message) {
  const bool named = subject.empty() || message.starts_with(subject);
  fmt::print(stderr, "quarry: {}{}{}\n", named ? "" : subject, named ? "" : ": ", message);
}
void say_error(const std::string& subject, const Error& error) { say_error(subject, error.message); }
void say_warning(const std::string& subject, const std::string& message) {
  const bool named = subject.empty() || message.starts_with(subject);
  fmt::print(stderr, "quarry: {}{}warning: {}\n", named ? "" : subject, named ? "" : ": ", message);
}

int exit_code_of(const Error& error) {
  if (error.code == ErrorCode::bad_usage) return kExitUsage;
  return error.code == ErrorCode::cancelled ? kExitCancelled : kExitFailed;
}

const std::atomic<bool>& interrupt_flag() { return interrupted; }

void listen_for_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // A reader that closes our output early must not kill the program in the middle of a file.
  signal(SIGPIPE, SIG_IGN);
}

ProgressLine::ProgressLine(std::string subject)
    : subject_(std::move(subject)),
      terminal_(isatty(STDERR_FILENO) != 0),
      start_(std::chrono::steady_clock::now()),
      last_(start_),
      stage_start_(start_) {}
ProgressLine::~ProgressLine() { clear(); }

Progress ProgressLine::progress() {
  Progress progress;
  progress.report = [this](std::string_view stage, double fraction) { show(stage, fraction); };
  progress.cancel = &interrupt_flag();
  return progress;
}

void ProgressLine::clear() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
  drawn_ = false;
}

void ProgressLine::show(std::string_view stage, double fraction) {
  const auto now = std::chrono::steady_clock::now();
  const bool new_stage = stage != stage_;
  const auto pause = terminal_ ? std::chrono::milliseconds(50) : std::chrono::milliseconds(5000);
  if (!new_stage && now - last_ < pause) return;
  if (!terminal_ && now - start_ < std::chrono::seconds(2)) return;
  if (new_stage) stage_start_ = now;
  stage_ = stage;
  last_ = now;
  // The time left, if the rest goes at the same rate.
  const double spent = std::chrono::duration<double>(now - stage_start_).count();
  const std::string left =
      spent > 2 && fraction > 0.01 && fraction < 1 ? ", " + time_text(spent / fraction * (1 - fraction)) + " left" : "";
  if (!terminal_) {
    if (fraction < 0) fmt::print(stderr, "quarry: {}: {}\n", subject_, stage);
    else fmt::print(stderr, "quarry: {}: {}, {:.0f}%{}\n", subject_, stage, std::clamp(fraction, 0.0, 1.0) * 100, left);
    return;
  }
  constexpr int kBar = 24;
  std::string line;
  if (fraction >= 0) {
    const int full = int(std::clamp(fraction, 0.0, 1.0) * kBar);
    line = fmt::format("[{:=<{}}{: <{}}] {:3.0f}%  ", "", full, "", kBar - full, std::clamp(fraction, 0.0, 1.0) * 100);
  }
  line += fmt::format("{}: {}{}", subject_, stage, left);
  line.resize(std::min(line.size(), size_t(terminal_columns() - 1)));
  fmt::print(stderr, "\r{}\x1b[K", line);
  drawn_ = true;
}

std::string with_commas(uint64_t number) {
  std::string text = std::to_string(number);
  for (int at = int(text.size()) - 3; at > 0; at -= 3) text.insert(size_t(at), ",");
  return text;
}

std::string bytes_text(uint64_t bytes) {
  const double kib = double(bytes) / 1024;
  if (kib < 1) return fmt::format("{} B", bytes);
  if (kib < 1024) return fmt::format("{:.1f} KiB", kib);
  if (kib < 1024 * 1024) return fmt::format("{:.1f} MiB", kib / 1024);
  return fmt::format("{:.2f} GiB", kib / (1024 * 1024));
}

std::string shown(const std::filesystem::path& path) { return path.string(); }

}  // namespace quarry::app
