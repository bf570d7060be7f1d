// SPDX-License-Identifier: Apache-2.0
// frame_log.hpp - times of frames and tiles, one line of JSON each. They show what keeps input waiting.
// $QUARRY_EDITOR_LOG names the file.
#pragma once

#include <chrono>
#include <cstdio>
#include <memory>

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

 private:
  double now() const;
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

}  // namespace quarry::app
