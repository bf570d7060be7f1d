// SPDX-License-Identifier: Apache-2.0
// box_facts.cpp - each thread adds up bricks for itself.
#include "voxel/operations/box_facts.hpp"

#include <bit>
#include <mutex>

#include "base/parallel.hpp"

namespace quarry {
namespace {

constexpr size_t kBricksAtATime = 256;

Box3 box_of(Int3 brick) {
  const Int3 min{brick.x * kBrickEdge, brick.y * kBrickEdge, brick.z * kBrickEdge};
  return {min, {min.x + kBrickEdge - 1, min.y + kBrickEdge - 1, min.z + kBrickEdge - 1}};
}

void add_brick(const BrickPut& put, const Box3& box, BoxFacts& to) {
  const Box3 whole = box_of(put.brick), part = intersected(whole, box);
  if (const uint8_t material = put.value.material()) {
    const auto edge = [](int32_t low, int32_t high) { return uint64_t(int64_t{high} - low + 1); };
    const uint64_t voxels = edge(part.min.x, part.max.x) * edge(part.min.y, part.max.y) * edge(part.min.z, part.max.z);
    to.voxels += voxels;
    to.of_material[material] += voxels;
    to.bounds = united(to.bounds, part);
    ++to.bricks;
    return;
  }
  const BrickView brick = *put.value;
  BrickMask inside = brick.mask;
  if (part != whole)
    for (uint32_t i = 0; i < kVoxelsPerBrick; ++i) {
      const Int3 at = whole.min + voxel_from_index(i);
      if (intersected({at, at}, part).empty()) inside[i / 64] &= ~(uint64_t(1) << (i % 64));
    }
  const uint32_t voxels = count_of(inside);
  if (voxels == 0) return;
  for (uint32_t word = 0; word < inside.size(); ++word)
    for (uint64_t bits = inside[word]; bits != 0; bits &= bits - 1)
      ++to.of_material[brick.materials[word * 64 + uint32_t(std::countr_zero(bits))]];
  to.voxels += voxels;
  to.bounds = united(to.bounds, voxel_bounds(put.brick, inside));
  ++to.bricks;
}

}  // namespace

BoxFacts box_facts(const BrickMap& bricks, const Box3& voxels) {
  BoxFacts facts;
  if (voxels.empty()) return facts;
  const std::vector<BrickPut> met = bricks.within({brick_of(voxels.min), brick_of(voxels.max)});
  std::mutex lock;
  parallel_for(met.size(), kBricksAtATime, [&](size_t begin, size_t end) {
    BoxFacts some;
    for (size_t i = begin; i < end; ++i) add_brick(met[i], voxels, some);
    const std::lock_guard hold(lock);
    facts.voxels += some.voxels;
    facts.bricks += some.bricks;
    facts.bounds = united(facts.bounds, some.bounds);
    for (size_t m = 0; m < facts.of_material.size(); ++m) facts.of_material[m] += some.of_material[m];
  });
  return facts;
}

}  // namespace quarry
