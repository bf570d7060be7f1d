// SPDX-License-Identifier: Apache-2.0
// region_sink.hpp - receives a scene's bricks that are made or read region by region, because they would not all fit in
// memory. voxelize/regions.hpp and file readers (io/streams/format.hpp) produce them; io/quarry/writer.hpp receives
// them.
//
// A region is a box of chunks (8^3 bricks); a volume's regions are ordered by x, then y, then z, like the chunks of a
// world file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "base/result.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry {

// Called on the thread that makes the regions. An error ends the run and is its result.
struct RegionSink {
  // How many bytes may be allocated now, besides all that the process holds already. Regions are planned by what it
  // says after everything that does not depend on them is in memory.
  std::function<uint64_t()> available_bytes;
  // Data that is needed again may wait in an unnamed file beside this one; empty: the data is made again instead.
  std::filesystem::path beside;
  // Receives the scene without its bricks, once, before the first region.
  std::function<Result<void>(const Scene& scene)> begin;
  // Receives bricks of a volume (rising), whole chunks (rising by x, y, z over all calls for that volume).
  std::function<Result<void>(uint32_t volume, BrickMap&& bricks)> take;
};

struct RegionsDone {
  uint64_t regions = 0;
};

}  // namespace quarry
