// SPDX-License-Identifier: Apache-2.0
// scene_in_regions.hpp - scenes for tests of what is made region by region, and all that is made, as one scene.
#pragma once

#include <catch2/catch.hpp>
#include <random>

#include "tests/voxel/io/quarry/store_edits.hpp"
#include "tests/voxel/scene_cells.hpp"
#include "voxel/operations/regions/make_by_regions.hpp"
#include "voxel/operations/regions/scene_by_regions.hpp"

namespace quarry::test {

// Volumes over many chunks, some with large solid parts, one empty; turned, mirrored, hidden instances at odd offsets,
// several of one volume.
inline Scene wide_scene(uint32_t seed) {
  std::mt19937 random(seed);
  const auto number = [&](int32_t low, int32_t high) { return low + int32_t(random() % uint32_t(high - low + 1)); };
  Scene s;
  for (size_t v = 0; v < 4; ++v) {
    s.volumes.push_back({std::string(1, char('a' + v)), {}, {number(0, 200), 7, number(0, 9)}});
    if (v == 3) break;  // without a voxel
    BrickMap& bricks = s.volumes[v].bricks;
    for (int blob = 0; blob < 4; ++blob) {
      const Int3 low{number(-90, 80), number(-70, 60), number(-100, 60)};
      const Int3 size{number(1, 20), number(1, 20), number(1, 20)};
      const auto material = uint8_t(number(1, 255));
      for (int32_t x = 0; x < size.x; ++x)
        for (int32_t y = 0; y < size.y; ++y)
          for (int32_t z = 0; z < size.z; ++z) bricks.set(low + Int3{x, y, z}, material);
    }
    for (int i = 0; i < 60; ++i)
      bricks.set({number(-100, 90), number(-70, 70), number(-100, 90)}, uint8_t(number(1, 255)));
  }
  for (int i = 0; i < 6; ++i) {
    Instance n;
    n.volume = uint32_t(number(0, 3));
    n.rotation = some_rotation(random);
    n.offset = {number(-60, 60), number(-60, 60), number(-60, 60)};
    n.hidden = i == 4;
    n.name = "instance " + std::to_string(i);
    s.instances.push_back(n);
  }
  s.cameras.push_back({"camera", {1, 2, 3}, {-4, 5, 6}, 40});
  s.metadata["voxel_size"] = "0.5";
  return s;
}

inline BrickSource source_of(const Scene& scene, uint64_t* most_read = nullptr) {
  const auto within = [&scene](uint32_t volume, const Box3& bricks) {
    return scene.volumes.at(volume).bricks.within(bricks);
  };
  return {[within](uint32_t volume, const Box3& bricks) -> Result<uint64_t> { return within(volume, bricks).size(); },
          [within, most_read](uint32_t volume, const Box3& bricks, BrickMap& into) -> Result<void> {
            into.put(within(volume, bricks));
            if (most_read) *most_read = std::max(*most_read, uint64_t(into.bricks().size()));
            return {};
          }};
}

inline SceneByRegions begin(const Scene& scene, BrickSource source) {
  Scene head = scene;
  std::vector<Box3> bounds;
  for (Volume& volume : head.volumes) {
    bounds.push_back(volume.bricks.bounds());
    volume.bricks.clear();
  }
  return {std::move(head), std::move(bounds), std::move(source)};
}

// All of it. It is shown in whole chunks, rising by x, y, z, each once, as a world file's writer wants them.
inline Result<Scene> made_of(const SceneByRegions& scene, uint64_t bytes) {
  Scene out = scene.scene();
  std::vector<Int3> last(out.volumes.size(), Int3{INT32_MIN, 0, 0});
  uint32_t at = 0;
  const auto take = [&](uint32_t volume, const BrickMap& bricks) -> Result<void> {
    CHECK(volume >= at);
    at = volume;
    std::vector<Int3> chunks;
    for (const auto& [where, brick] : bricks.bricks())
      if (const Int3 chunk{where.x >> 3, where.y >> 3, where.z >> 3}; chunks.empty() || chunks.back() != chunk)
        chunks.push_back(chunk);
    std::ranges::sort(chunks);
    REQUIRE((chunks.empty() || last[volume] < chunks.front()));
    if (!chunks.empty()) last[volume] = chunks.back();
    out.volumes[volume].bricks.put(bricks.within(bricks.brick_bounds()));
    return {};
  };
  auto done = make_by_regions(
      scene, [bytes] { return bytes; }, {}, take);
  if (!done) return tl::unexpected(done.error());
  return out;
}

}  // namespace quarry::test
