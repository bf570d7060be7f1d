// SPDX-License-Identifier: Apache-2.0
// region_sink.hpp - where a scene's bricks go that are made or read region by region, because all of them would not fit
// the memory there is. voxelize/regions.hpp and readers of files (io/streams/format.hpp) hand them over;
// io/quarry/writer.hpp takes them.
//
// A region is a box of chunks (8^3 bricks); those of a volume follow each other by x, then y, then z, as a world file's
// chunks do.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "base/result.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry {

// Called on the thread that makes the regions. An error ends the run and is its result.
struct RegionSink {
  // How many bytes may be taken now, beside all that the process holds already; asked when what does not depend on
  // regions is there.
  std::function<uint64_t()> available_bytes;
  // A file beside which, without a name, what will be needed again may wait; empty: it is made again instead.
  std::filesystem::path beside;
  // The scene without its bricks, once, before the first region.
  std::function<Result<void>(const Scene& scene)> begin;
  // Bricks of a volume (rising), whole chunks (rising by x, y, z over all calls for that volume).
  std::function<Result<void>(uint32_t volume, BrickMap&& bricks)> take;
};

struct RegionsDone {
  uint64_t regions = 0;
};

}  // namespace quarry
