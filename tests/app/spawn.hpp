// SPDX-License-Identifier: Apache-2.0
// spawn.hpp - runs the real program without a shell, and a private X server for its window.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace quarry::test {

struct Outcome {
  int code = -1;           // exit code; 128 + number for a signal
  bool timed_out = false;  // the program was killed
  std::string out, err;
};

// A running program. Its standard streams are read while it runs.
class Process {
 public:
  Process(const std::vector<std::string>& words, const std::map<std::string, std::string>& environment = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  bool started() const { return pid_ > 0; }
  // Reads until `text` appears on standard output, the program ends, or the time is over.
  bool wait_for_output(const std::string& text, double seconds);
  void signal(int number);
  Outcome finish(double seconds);
  const std::string& out() const { return outcome_.out; }

 private:
  bool read_some(double seconds);  // false if both streams are closed
  pid_t pid_ = -1;
  int out_ = -1, err_ = -1;
  Outcome outcome_;
};

// The built program. Variables with the value "" are removed from its environment.
std::filesystem::path quarry_program();
Outcome run_quarry(const std::vector<std::string>& words, const std::map<std::string, std::string>& environment = {},
                   double seconds = 120);

// Xvfb on a free display; name() is empty if it is not installed.
class InvisibleDisplay {
 public:
  InvisibleDisplay(int width, int height);
  ~InvisibleDisplay();
  InvisibleDisplay(const InvisibleDisplay&) = delete;
  InvisibleDisplay& operator=(const InvisibleDisplay&) = delete;
  const std::string& name() const { return name_; }  // ":7"

 private:
  pid_t pid_ = -1;
  std::string name_;
};

}  // namespace quarry::test
