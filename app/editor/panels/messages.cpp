// SPDX-License-Identifier: Apache-2.0
// messages.cpp - sets the message of the status line, and how long it stays.
#include "app/editor/panels/messages.hpp"

#include <utility>

#include "app/console/terminal.hpp"

namespace quarry::app {

void Messages::say(std::string what) {
  text = std::move(what);
  is_error = false;
  since = std::chrono::steady_clock::now();
}

void Messages::complain(const Error& error) {
  text = error.message;
  is_error = true;
  since = std::chrono::steady_clock::now();
  say_error("edit", error);
}

bool Messages::report(const Result<void>& result) {
  if (!result) complain(result.error());
  return result.has_value();
}

}  // namespace quarry::app
