// SPDX-License-Identifier: Apache-2.0
// paged_tiles.cpp - tiles in rows, there and back, so that each needs much of what the one before needed.
#include "engine/render/paged_tiles.hpp"

#include <algorithm>

namespace quarry::engine {
namespace {

// Only a tile that misses something is made again, so small tiles repeat less (docs/results/two-core-host/paged.md).
constexpr uint32_t kEdge = 32;

}  // namespace

PagedTiles::PagedTiles(uint32_t width, uint32_t height, uint32_t unit) : unit_(unit) {
  bool there = true;
  for (uint32_t y = 0; y < height; y += kEdge, there = !there) {
    const size_t row = left_.size();
    for (uint32_t x = 0; x < width; x += kEdge)
      left_.push_back({x, y, std::min(kEdge, width - x), std::min(kEdge, height - y)});
    if (!there) std::reverse(left_.begin() + std::ptrdiff_t(row), left_.end());
  }
  std::ranges::reverse(left_);
}

Result<void> PagedTiles::settle(PagesBrought brought) {
  if (brought == PagesBrought::some) return {};
  const Tile tile = left_.back();
  left_.pop_back();
  if (brought == PagesBrought::none_missing) return {};
  if (tile.width <= unit_ && tile.height <= unit_)
    return fail(ErrorCode::out_of_memory, "what the rays of " + std::to_string(unit_ * unit_) +
                                              (unit_ == 1 ? " pixel" : " pixels") +
                                              " come to does not fit the memory that the world may take; allow more");
  Tile first = tile, second = tile;
  const auto half = [&](uint32_t size) { return (size / 2 + unit_ - 1) / unit_ * unit_; };
  if (tile.width >= tile.height) {
    first.width = half(tile.width);
    second.x += first.width;
    second.width -= first.width;
  } else {
    first.height = half(tile.height);
    second.y += first.height;
    second.height -= first.height;
  }
  left_.push_back(second);
  left_.push_back(first);
  return {};
}

}  // namespace quarry::engine
