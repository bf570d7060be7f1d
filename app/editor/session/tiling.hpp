// SPDX-License-Identifier: Apache-2.0
// tiling.hpp - the tiles of a picture while it is made: which comes next, and how large it may be to take about a given
// time. It knows no device. The picture is divided into blocks of kBlock pixels squared. A tile is a rectangle of
// blocks: of those left, the nearest to where the user looks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/render/ray_marcher.hpp"

namespace quarry::app {

class Tiling {
 public:
  static constexpr uint32_t kBlock = 32;

  // Begins a new picture, from a place in it outwards.
  void begin(uint32_t width, uint32_t height, double x, double y);
  // The next tile. It has at most `most_pixels`, but always at least one block. None: all blocks are done.
  std::optional<engine::Tile> next(double most_pixels);
  uint32_t blocks_left() const { return left_; }

 private:
  bool is_left(uint32_t across, uint32_t down) const { return left_in_[down * across_ + across] != 0; }
  uint32_t width_ = 0, height_ = 0, across_ = 0, down_ = 0, left_ = 0;
  std::vector<uint8_t> left_in_;  // 1: not done yet
  // Blocks, the nearest last. Finished ones are removed when they are met.
  std::vector<uint32_t> by_distance_;
};

// The time that a pixel takes, to size the next tile for a wanted time. The estimate rises quickly and falls slowly:
// sky takes almost no time, and the ground may follow at once. So it is never less than the mean of the picture so far.
class TileCost {
 public:
  void guess(double ms_a_pixel) {
    ms_a_pixel_ = kCautious * ms_a_pixel, ms_ = pixels_ = 0;
  }  // from a coarser picture of the whole
  void measured(double ms, double pixels);
  double pixels_in(double ms) const { return ms_a_pixel_ > 0 ? ms / ms_a_pixel_ : 0; }
  double ms_a_pixel() const { return ms_a_pixel_; }

 private:
  static constexpr double kCautious = 2, kForgets = 0.85;
  double ms_a_pixel_ = 0, ms_ = 0, pixels_ = 0;  // ms_ and pixels_: of the tiles since the last guess
};

}  // namespace quarry::app
