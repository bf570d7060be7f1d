// SPDX-License-Identifier: Apache-2.0
// scene_cells.hpp - scenes as plain maps of cells, and random ones, for operations that are done again voxel by voxel.
#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "voxel/worlds/scene.hpp"

namespace quarry::test {

using Cells = std::map<Int3, uint8_t>;

inline Cells cells_of(const BrickMap& bricks) {
  Cells out;
  for (const auto& [at, brick] : bricks.bricks())
    for (uint32_t i = 0; i < kVoxelsPerBrick; ++i)
      if (brick.materials[i]) out[Int3{at.x * 8, at.y * 8, at.z * 8} + voxel_from_index(i)] = brick.materials[i];
  return out;
}
inline BrickMap bricks_of(const Cells& cells) {
  BrickMap out;
  for (const auto& [at, m] : cells) out.set(at, m);
  return out;
}
// Every instance's voxels in world axes, one list for each.
inline std::vector<Cells> placed(const Scene& s) {
  std::vector<Cells> out;
  for (const Instance& i : s.instances) {
    out.emplace_back();
    for (const auto& [at, m] : cells_of(s.volumes[i.volume].bricks))
      out.back()[i.rotation.apply_to_cell(at) + i.offset] = m;
  }
  return out;
}
inline Cells flat(const Scene& s) { return cells_of(*flatten(s, true)); }

inline Rotation some_rotation(std::mt19937& random) {
  Rotation r;
  std::shuffle(r.axis.begin(), r.axis.end(), random);
  for (int8_t& s : r.sign) s = random() % 2 ? int8_t(1) : int8_t(-1);
  return r;
}

inline Scene random_scene(uint32_t seed, int materials = 5) {
  std::mt19937 random(seed);
  Scene s;
  s.layers = {{"a", false}, {"b", true}};
  s.volumes.resize(3);
  for (Volume& v : s.volumes) {
    v.name.assign(1, char('a' + (&v - s.volumes.data())));
    for (int i = 0; i < 700; ++i)
      v.bricks.set({int32_t(random() % 20) - 7, int32_t(random() % 14) - 3, int32_t(random() % 17) - 9},
                   uint8_t(1 + random() % uint32_t(materials)));
  }
  for (int i = 0; i < 6; ++i)
    s.instances.push_back({uint32_t(i % 3),
                           some_rotation(random),
                           {int32_t(random() % 31) - 15, int32_t(random() % 31) - 15, int32_t(random() % 31) - 15},
                           i == 4 ? 1 : 0,
                           i == 5,
                           std::string(1, char('k' + i)),
                           "g"});
  s.cameras.push_back({"c", {1, 2, 3}, {4, 5, 6}, 50});
  return s;
}

}  // namespace quarry::test
