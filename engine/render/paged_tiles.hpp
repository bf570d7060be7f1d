// SPDX-License-Identifier: Apache-2.0
// paged_tiles.hpp - the order in which tiles of a picture are made of a world of which some pages are not there
// (sharing/residency.hpp): each as often as its rays come to pages that are missing, and in parts if its pages do not
// fit memory together.
#pragma once

#include <vector>

#include "engine/render/ray_marcher.hpp"

namespace quarry::engine {

class PagedTiles {
 public:
  // All of a picture. Corners of tiles are at multiples of `unit` pixels, or at the picture's end.
  PagedTiles(uint32_t width, uint32_t height, uint32_t unit);

  // The tile that is to be made now; null: all are done. Valid until settle().
  const Tile* next() const { return left_.empty() ? nullptr : &left_.back(); }
  // Says what came of it. Errors: out_of_memory if the pages of one unit do not fit memory.
  Result<void> settle(PagesBrought brought);

 private:
  std::vector<Tile> left_;  // the next is the last
  uint32_t unit_;
};

}  // namespace quarry::engine
