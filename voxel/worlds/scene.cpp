// SPDX-License-Identifier: Apache-2.0
// scene.cpp - checks of volumes and instances, and order-independent facts: counts, bounds, checksum.
#include "voxel/worlds/scene.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>

#include "base/parallel.hpp"
#include "voxel/worlds/flatten.hpp"

namespace quarry {

VoxelSums sums_of(const BrickMap& bricks, const VoxelHash& hash) {
  std::vector<BrickMap::Entry> list;
  list.reserve(bricks.bricks().size());
  for (const auto& brick : bricks.bricks()) list.push_back(brick);
  VoxelSums sums;
  std::mutex lock;
  parallel_for(list.size(), 256, [&](size_t begin, size_t end) {
    VoxelSums some;
    for (size_t i = begin; i < end; ++i) hash.add(list[i].first, list[i].second(), some);
    const std::lock_guard hold(lock);
    sums.add(some);
  });
  return sums;
}

namespace {

// Adds a brick's voxels. Neighbours are often of one material: their counts are kept apart, so that none waits for the
// one before it.
void count_materials(const BrickView& brick, std::array<std::array<uint32_t, 256>, 4>& counts) {
  const BrickMaterials& materials = brick.materials;
  for (uint32_t word = 0; word < 8; ++word) {
    uint64_t bits = brick.mask[word];
    for (uint32_t i = 0; bits; bits &= bits - 1, ++i)
      ++counts[i & 3u][materials[word * 64 + uint32_t(std::countr_zero(bits))]];
  }
}

}  // namespace

void VolumeSummary::add(const BrickMap& bricks) {
  bounds = united(bounds, bricks.bounds());
  std::mutex lock;
  bricks.visit_pieces([&](size_t, std::span<const Int3>, std::span<const SharedBrick> some) {
    std::array<uint64_t, 256> full{};
    std::array<std::array<uint32_t, 256>, 4> counts{};
    for (const SharedBrick& brick : some) {
      if (const uint8_t material = brick.material()) full[material] += kVoxelsPerBrick;
      else count_materials(*brick, counts);
    }
    uint64_t sum = 0;
    const std::lock_guard hold(lock);
    for (size_t m = 1; m < 256; ++m) {
      const uint64_t its = full[m] + counts[0][m] + counts[1][m] + counts[2][m] + counts[3][m];
      materials[m] += its;
      sum += its;
    }
    voxels += sum;
  });
}

Box3 placed(const Instance& instance, const Box3& cells) {
  if (cells.empty()) return cells;
  const auto cell = [&](Int3 at) {
    const Int3 turned = instance.rotation.apply_to_cell(at);
    const auto sum = [](int32_t a, int32_t b) {
      return int32_t(std::clamp<int64_t>(int64_t{a} + b, INT32_MIN, INT32_MAX));
    };
    const Int3& by = instance.offset;
    return Int3{sum(turned.x, by.x), sum(turned.y, by.y), sum(turned.z, by.z)};
  };
  const Int3 a = cell(cells.min), b = cell(cells.max);
  return united({a, a}, {b, b});
}

bool Scene::instance_visible(const Instance& instance) const {
  const bool layer_hidden =
      instance.layer >= 0 && size_t(instance.layer) < layers.size() && layers[size_t(instance.layer)].hidden;
  return !instance.hidden && !layer_hidden;
}

Result<BrickMap> flatten(const Scene& scene, bool visible_only, const BrickPool& pool) {
  QRY_TRY(check_instances(scene));
  return Flattener(scene, visible_only).all(false, pool);
}

Result<BrickMap> flatten_for_world(const Scene& scene, bool visible_only, const BrickPool& pool) {
  QRY_TRY(check_instances(scene));
  return Flattener(scene, visible_only).all(true, pool);
}

Brick flatten_brick(const Scene& scene, Int3 brick, bool visible_only) {
  return Flattener(scene, visible_only).brick(brick);
}

Result<SceneFacts> scene_facts(const Scene& scene, Axes axes) {
  QRY_TRY_ASSIGN(const auto all, flatten(scene, false));

  SceneFacts facts;
  facts.volumes = scene.volumes.size();
  facts.instances = scene.instances.size();
  std::vector<uint64_t> volume_voxels(scene.volumes.size());
  std::vector<uint8_t> volume_placed(scene.volumes.size());
  for (size_t v = 0; v < scene.volumes.size(); ++v) volume_voxels[v] = scene.volumes[v].bricks.voxel_count();
  for (const Instance& instance : scene.instances) {
    facts.placed += volume_voxels[instance.volume];
    volume_placed[instance.volume] = 1;
  }
  std::array<uint8_t, 256> used{};
  for (size_t v = 0; v < scene.volumes.size(); ++v) {
    if (!volume_placed[v]) continue;
    for (const auto& [at, brick] : scene.volumes[v].bricks.bricks())
      for (const uint8_t material : brick.materials) used[material] = 1;
  }
  facts.colors_used = uint32_t(std::count(used.begin() + 1, used.end(), uint8_t(1)));

  const VoxelSums sums = sums_of(all, VoxelHash(scene.palette, axes));
  facts.pos_sum = sums.pos_sum;
  facts.col_sum = sums.col_sum;
  facts.flat_all = facts.flat_visible = sums.voxels;
  if (std::any_of(scene.instances.begin(), scene.instances.end(),
                  [&](const Instance& i) { return !scene.instance_visible(i); })) {
    QRY_TRY_ASSIGN(const auto visible, flatten(scene, true));
    facts.flat_visible = visible.voxel_count();
  }
  facts.bounds = in_axes(all.bounds(), axes);
  return facts;
}

Box3 in_axes(const Box3& world, Axes axes) {
  if (axes == Axes::y_up || world.empty()) return world;
  return {{world.min.x, -1 - world.max.z, world.min.y}, {world.max.x, -1 - world.min.z, world.max.y}};
}

void VoxelSums::add(const VoxelSums& other) {
  voxels += other.voxels;
  pos_sum += other.pos_sum;
  col_sum += other.col_sum;
  for (size_t m = 1; m < used.size(); ++m) used[m] = used[m] || other.used[m];
}

VoxelHash::VoxelHash(const Palette& palette, Axes axes) : z_up_(axes == Axes::z_up) {
  for (size_t m = 0; m < 256; ++m) colors_[m] = rgba_word(palette.materials[m]);
  for (uint32_t i = 0; i < kVoxelsPerBrick; ++i) {
    const Int3 local = voxel_from_index(i);
    places_[i] = {uint8_t(local.x + 8 * (z_up_ ? local.z : local.y)), uint8_t(z_up_ ? local.y : local.z)};
  }
}

void VoxelHash::add(Int3 brick_at, const BrickView& brick, VoxelSums& to) const {
  // The hash takes x, then a second and a third axis: a column of up to eight voxels shares its first two rounds.
  std::array<uint64_t, 64> columns;
  for (uint32_t x = 0; x < 8; ++x) {
    const uint64_t first = mixed_hash(kVoxelHash + uint32_t(brick_at.x * 8 + int32_t(x)));
    for (int32_t s = 0; s < 8; ++s)
      columns[x + 8 * uint32_t(s)] =
          mixed_hash(first + uint32_t(z_up_ ? -1 - (brick_at.z * 8 + s) : brick_at.y * 8 + s));
  }
  const auto third = uint32_t(z_up_ ? brick_at.y * 8 : brick_at.z * 8);
  uint64_t positions = 0, coloured = 0;
  for (uint32_t w = 0; w < 8; ++w) {
    to.voxels += uint64_t(std::popcount(brick.mask[w]));
    for (uint64_t left = brick.mask[w]; left; left &= left - 1) {
      const uint32_t index = w * 64 + uint32_t(std::countr_zero(left));
      const uint8_t material = brick.materials[index];
      const uint64_t h = mixed_hash(columns[places_[index].column] + (third + places_[index].third));
      positions += h;
      coloured += mixed_hash(h + colors_[material]);
      to.used[material] = true;
    }
  }
  to.pos_sum += positions;
  to.col_sum += coloured;
}

}  // namespace quarry
