// SPDX-License-Identifier: Apache-2.0
// script_runner.hpp - carries out a script between frames. Each command is acknowledged on standard output ("ok LINE:
// text") once it is done. If it changes the document, it is on disk by then. A test that kills the program counts those
// lines.
#pragma once

#include <chrono>
#include <filesystem>
#include <vector>

#include "app/editor/panels/editor.hpp"
#include "app/editor/session/script.hpp"

namespace quarry::app {

class ScriptRunner {
 public:
  explicit ScriptRunner(std::vector<ScriptCommand> commands) : commands_(std::move(commands)) {}
  // Runs before each frame: begins the next command if the last one is finished. Errors carry the script's line.
  Result<void> before_frame(Editor& editor);
  bool wants_screenshot(const Editor& editor) const;  // in the next frame
  Result<void> after_frame(Editor& editor, bool took_screenshot);
  bool finished() const { return next_ == commands_.size() && !running_; }

 private:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;

  Result<void> start(Editor& editor, const ScriptCommand& command);
  Result<void> start_edit(Editor& editor, const ScriptCommand& command);
  bool done(const Editor& editor) const;

  std::vector<ScriptCommand> commands_;
  size_t next_ = 0;
  bool running_ = false;
  int frames_left_ = 0;
  Clock::time_point wait_until_;
  std::filesystem::path screenshot_;  // requested and not written yet
};

// Writes the window's picture as a PNG.
Result<void> write_screenshot(Editor& editor, const std::filesystem::path& file);

}  // namespace quarry::app
