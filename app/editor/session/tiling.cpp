// SPDX-License-Identifier: Apache-2.0
// tiling.cpp - chooses the next tile: the block nearest to where the user looks, grown one side at a time up to what
// the time allows.
#include "app/editor/session/tiling.hpp"

#include <algorithm>
#include <numeric>

namespace quarry::app {

void Tiling::begin(uint32_t width, uint32_t height, double x, double y) {
  width_ = width, height_ = height;
  across_ = (width + kBlock - 1) / kBlock, down_ = (height + kBlock - 1) / kBlock;
  left_ = across_ * down_;
  left_in_.assign(left_, 1);
  by_distance_.resize(left_);
  std::iota(by_distance_.begin(), by_distance_.end(), 0u);
  const auto distance = [&](uint32_t block) {
    const uint32_t column = block % across_, row = block / across_;
    const double dx = (column + 0.5) * kBlock - x, dy = (row + 0.5) * kBlock - y;
    return dx * dx + dy * dy;
  };
  std::stable_sort(by_distance_.begin(), by_distance_.end(),
                   [&](uint32_t a, uint32_t b) { return distance(a) > distance(b); });
}

std::optional<engine::Tile> Tiling::next(double most_pixels) {
  while (!by_distance_.empty() && !left_in_[by_distance_.back()]) by_distance_.pop_back();
  if (by_distance_.empty()) return std::nullopt;
  const auto most = uint32_t(std::clamp(most_pixels / (double(kBlock) * kBlock), 1.0, double(across_) * down_));
  // Starts at the nearest block and grows one side at a time, the shorter side first, over blocks that are left.
  uint32_t left = by_distance_.back() % across_, top = by_distance_.back() / across_, right = left + 1,
           bottom = top + 1;
  const auto free = [&](uint32_t x0, uint32_t y0, uint32_t x1, uint32_t y1) {
    for (uint32_t y = y0; y < y1; ++y)
      for (uint32_t x = x0; x < x1; ++x)
        if (!is_left(x, y)) return false;
    return true;
  };
  for (bool grew = true; grew;) {
    const uint32_t wide = right - left, high = bottom - top;
    const bool may_widen = (wide + 1) * high <= most, may_heighten = wide * (high + 1) <= most;
    const auto widen = [&] {
      if (!may_widen) return false;
      if (right < across_ && free(right, top, right + 1, bottom)) return ++right, true;
      if (left > 0 && free(left - 1, top, left, bottom)) return --left, true;
      return false;
    };
    const auto heighten = [&] {
      if (!may_heighten) return false;
      if (bottom < down_ && free(left, bottom, right, bottom + 1)) return ++bottom, true;
      if (top > 0 && free(left, top - 1, right, top)) return --top, true;
      return false;
    };
    grew = wide <= high ? widen() || heighten() : heighten() || widen();
  }
  for (uint32_t y = top; y < bottom; ++y) std::fill_n(left_in_.begin() + y * across_ + left, right - left, uint8_t(0));
  left_ -= (right - left) * (bottom - top);
  engine::Tile tile{left * kBlock, top * kBlock, 0, 0};
  tile.width = std::min(right * kBlock, width_) - tile.x;
  tile.height = std::min(bottom * kBlock, height_) - tile.y;
  return tile;
}

void TileCost::measured(double ms, double pixels) {
  if (!(ms > 0 && pixels > 0)) return;
  ms_ += ms, pixels_ += pixels;
  ms_a_pixel_ = std::max({ms / pixels, kForgets * ms_a_pixel_, ms_ / pixels_});
}

}  // namespace quarry::app
