// SPDX-License-Identifier: Apache-2.0
// tiling.hpp - a picture cut into tiles while it is made: which comes next, and how large it may be so that it takes
// about so long. Knows no device. The picture lies in blocks of kBlock pixels squared; a tile is a rectangle of blocks,
// the nearest that are left to where one looks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/render/ray_marcher.hpp"

namespace quarry::app {

class Tiling {
 public:
  static constexpr uint32_t kBlock = 32;

  // A new picture, from around a place in it outwards.
  void begin(uint32_t width, uint32_t height, double x, double y);
  // Of so many pixels at most, but for a single block. None: all have had their turn.
  std::optional<engine::Tile> next(double most_pixels);
  uint32_t blocks_left() const { return left_; }

 private:
  bool is_left(uint32_t across, uint32_t down) const { return left_in_[down * across_ + across] != 0; }
  uint32_t width_ = 0, height_ = 0, across_ = 0, down_ = 0, left_ = 0;
  std::vector<uint8_t> left_in_;  // 1: its turn is to come
  // Blocks, the nearest last; those that had their turn are taken off when they are met.
  std::vector<uint32_t> by_distance_;
};

// What a pixel takes, so that the next tile takes as long as is wanted. Quick to believe that it takes more, slow to
// believe that it takes less: sky takes next to nothing, and the ground comes at once behind it. So never less than the
// mean of the picture so far.
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
  double ms_a_pixel_ = 0, ms_ = 0, pixels_ = 0;  // the last two: of the tiles since the last guess
};

}  // namespace quarry::app
