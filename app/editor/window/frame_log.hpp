// SPDX-License-Identifier: Apache-2.0
// frame_log.hpp - what frames and tiles took, a line of JSON each, for whoever looks for what keeps input waiting.
// $QUARRY_EDITOR_LOG names the file.
#pragma once

#include <chrono>
#include <cstdio>
#include <memory>

#include "engine/render/ray_marcher.hpp"

namespace quarry::app {

class FrameLog {
 public:
  FrameLog();  // off where the variable is not set or the file cannot be written
  bool on() const { return file_ != nullptr; }
  // Milliseconds: waited for the frame before, took input and drew panels, prepared the picture, recorded and showed
  // it. `rays` of its picture, 0: it shows the last one; `ms` that the newest such picture took the device.
  void frame(double waited, double input, double prepared, double drawn, double rays, double ms);
  // A tile that is done, of a picture of that size. `steps` of light paths, 0: quick shading.
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
