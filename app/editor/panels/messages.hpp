// SPDX-License-Identifier: Apache-2.0
// messages.hpp - the text of the status line: the newest message or error, and its time.
#pragma once

#include <chrono>
#include <string>

#include "base/result.hpp"

namespace quarry::app {

struct Messages {
  std::string text;
  bool is_error = false;
  std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();

  void say(std::string what);
  void complain(const Error& error);        // also written to standard error
  bool report(const Result<void>& result);  // complains about an error; true on success
};

}  // namespace quarry::app
