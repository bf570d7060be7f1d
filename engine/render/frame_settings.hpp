// SPDX-License-Identifier: Apache-2.0
// frame_settings.hpp - converts a picture's settings and view for the shaders, and has the checks, and the order of
// tiles, for both kinds of frame.
#pragma once

#include <algorithm>
#include <vector>

#include "engine/render/ray_marcher.hpp"
#include "shaders/shared/environment.h"

namespace quarry::engine {

// Fails if a setting is invalid and names it.
Result<void> check_settings(const RenderSettings& settings);
constexpr uint32_t kFrames = 4, kOwnFrame = kFrames;  // frames in flight of record(), and the one of render()
// Fails if a frame with these settings cannot be recorded now and says why.
Result<void> check_frame(const RenderSettings& settings, const SharedWorld& world, uint32_t frame_index,
                         uint32_t frames = kFrames);

// Fails if `tile` is no tile of such a picture and says why.
Result<void> check_tile(const RenderSettings& settings, const Tile& tile);

// Records a frame by `record`, and, of a world of which some pages are not there, that the host is told to which its
// rays come (Residency::reached). `frame`: as for SharedWorld::frame_submitted. Errors: those of `record`,
// out_of_memory, device.
Result<void> record_reached(VkCommandBuffer commands, SharedWorld& world, const View& view,
                            const RenderSettings& settings, uint64_t frame,
                            const std::function<Result<void>()>& record);

// The order in which tiles of a picture are made of a world of which some pages are not there (sharing/residency.hpp):
// each as often as its rays come to pages that are missing, and in parts if its pages do not fit memory together.
class PagedTiles {
 public:
  // The edge for such a device. Only a tile that misses something is made again, so small ones repeat less: that counts
  // where the host makes the picture (docs/results/two-core-host/paged.md). Large ones ask for more pages at once, and
  // keep a GPU busy (docs/results/h100/paged.md).
  static uint32_t edge_for(VkPhysicalDeviceType type);
  // All of a picture, by tiles of at most `edge` pixels an edge. Corners of tiles are at multiples of `unit` pixels, of
  // which the edge is one, or at the picture's end.
  PagedTiles(uint32_t width, uint32_t height, uint32_t unit, uint32_t edge);

  // The tile that is to be made now; null: all are done. Valid until settle().
  const Tile* next() const { return left_.empty() ? nullptr : &left_.back(); }
  // Says what came of it. Errors: out_of_memory if the pages of one unit do not fit memory.
  Result<void> settle(PagesBrought brought);

 private:
  std::vector<Tile> left_;  // the next is the last
  uint32_t unit_;
};

// `frame` is a QryFrame or a QryPathFrame.
void put_view(const View& view, auto& frame) {
  std::copy_n(&view.origin.x, 3, frame.origin);
  std::copy_n(&view.forward.x, 3, frame.forward);
  std::copy_n(&view.right.x, 3, frame.right);
  std::copy_n(&view.up.x, 3, frame.up);
}

// `root` gives the world's size. The start of the ground and of the fog depend on it.
QryEnvironment environment_of(const RenderSettings& settings, const QryWorldRoot& root);

}  // namespace quarry::engine
