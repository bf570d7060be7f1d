// SPDX-License-Identifier: Apache-2.0
// frame_log.hpp - times of frames and tiles, one line of JSON each, which show what keeps input waiting; and what the
// session has done and holds, for those who drive it.
// $QUARRY_EDITOR_LOG names the file.
#pragma once

#include <chrono>
#include <cstdio>
#include <memory>
#include <string_view>

#include "engine/render/ray_marcher.hpp"

namespace quarry::app {

class FrameLog {
 public:
  FrameLog();  // off if the variable is not set or the file cannot be written
  bool on() const { return file_ != nullptr; }
  // Times in milliseconds: waiting for the previous frame, input and panels, preparing the picture, recording and
  // showing it. `rays` is the number of rays of the frame's picture; 0 if the frame shows the last one again. `ms` is
  // the device time of the newest such picture.
  void frame(double waited, double input, double prepared, double drawn, double rays, double ms);
  // A finished tile of a picture of that size. `steps` is the number of steps of light paths; 0: quick shading.
  void tile(const engine::Tile& tile, uint32_t width, uint32_t height, uint32_t steps, double ms);
  // What the session has done since it began, and what its document is now.
  struct Session {
    std::string_view home;  // the document's
    uint64_t edits = 0, undone = 0, redone = 0, opened = 0, saved = 0;
    uint64_t published = 0;  // versions that were handed to a picture
    uint64_t voxels = 0, history_bytes = 0, device_bytes = 0;
    bool unsaved = false, asks = false, complains = false;  // a question or menu is open; the status line has an error
    friend bool operator==(const Session&, const Session&) = default;
  };
  void session(const Session& now);  // a line if something has changed

 private:
  double now() const;
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
  Session last_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

}  // namespace quarry::app
