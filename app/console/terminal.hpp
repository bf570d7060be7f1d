// SPDX-License-Identifier: Apache-2.0
// terminal.hpp - the program's output on stderr while it works: errors and progress. Also the handling of Ctrl+C.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>

#include "base/progress.hpp"
#include "base/result.hpp"

namespace quarry::app {

// Prints "quarry: SUBJECT: message" (the subject once, even if the message begins with it). "" : no subject.
void say_error(const std::string& subject, const Error& error);
void say_error(const std::string& subject, const std::string& message);
void say_warning(const std::string& subject, const std::string& message);
// bad_usage: 2, cancelled: 130, all others: 1.
int exit_code_of(const Error& error);

// True once the user has asked to stop. The first SIGINT or SIGTERM sets it; a second one ends the process at once.
const std::atomic<bool>& interrupt_flag();
void listen_for_interrupts();

// A progress bar on a terminal. In a log it prints plain lines for work that takes longer than two seconds. It shows
// the time left of a stage once that has taken two seconds. Its destructor ends the line cleanly.
class ProgressLine {
 public:
  explicit ProgressLine(std::string subject);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  Progress progress();  // valid while this lives; carries interrupt_flag()
  void clear();         // call it before anything else is printed

 private:
  void show(std::string_view stage, double fraction);
  std::string subject_, stage_;
  bool terminal_, drawn_ = false;
  std::chrono::steady_clock::time_point start_, last_, stage_start_;
};

// "1,234,567"; "12.3 MiB"
std::string with_commas(uint64_t number);
std::string bytes_text(uint64_t bytes);
// The path as UTF-8 text for messages.
std::string shown(const std::filesystem::path& path);

}  // namespace quarry::app
