// SPDX-License-Identifier: Apache-2.0
// host_shaders.hpp - host threads in the place of shaders: what a frame finds from what a store has published for it.
#pragma once

#include <bit>
#include <cstring>
#include <map>
#include <memory>

#include "voxel/bricks/shared.hpp"
#include "voxel/device/store.hpp"

namespace quarry::test {

using Bricks = std::map<uint32_t, BrickMaterials>;  // by key

// Shaders that are host threads: their addresses are the host's.
class HostShaders final : public device::ShaderMemory {
 public:
  Result<Exported> allocate(size_t, const char*) override {
    return fail(ErrorCode::unsupported, "it has no memory of its own");
  }
  Result<Block> import_host(void* data, size_t size_bytes, const char*) override {
    bytes += size_bytes;
    return Block{uint64_t(reinterpret_cast<uintptr_t>(data)),
                 std::shared_ptr<void>(data, [this, size_bytes](void*) { bytes -= size_bytes; })};
  }
  size_t bytes = 0;  // that shaders could read
};

// What an address of a shader is to host threads.
template <class T>
const T* at_address(uint64_t address) {
  return reinterpret_cast<const T*>(uintptr_t(address));  // NOLINT(performance-no-int-to-ptr): as shaders do
}

// Of the brick at a place, each as shaders/library/world.glsl reads it.
inline BrickMaterials materials_seen(const device::Store::Published& published, uint32_t index) {
  if (!published.packed)
    return at_address<BrickMaterials>(published.materials[index / kBricksPerSlab])[index % kBricksPerSlab];
  const auto word = [&](uint64_t number) {
    constexpr uint64_t kWords = kBricksPerSlab * 128;
    return at_address<uint32_t>(published.materials.at(number / kWords))[number % kWords];
  };
  const BrickMask& mask = at_address<BrickMask>(published.masks[index / kBricksPerSlab])[index % kBricksPerSlab];
  BrickMaterials materials{};
  uint32_t number = 0;
  for (uint32_t voxel = 0; voxel < 512; ++voxel)
    if (mask[voxel >> 6] >> (voxel & 63u) & 1u) {
      materials[voxel] = uint8_t(word(word(index) + number / 4) >> (number % 4 * 8));
      ++number;
    }
  return materials;
}

// The bricks that a frame finds from what was published for it.
inline Bricks seen_by_frame(const device::Store::Published& published) {
  const auto* const nodes = at_address<OccupancyNode>(published.nodes);
  Bricks bricks;
  const auto children = [&](const OccupancyNode& node, const auto& each) {
    uint32_t number = 0;
    for (uint32_t bit = 0; bit < 64; ++bit)
      if (node.mask >> bit & 1u) each(bit, node.child, number++);
  };
  const auto cell = [](uint32_t at, uint32_t bit, uint32_t axis) { return at * 4 + (bit >> (2 * axis) & 3u); };
  for (uint32_t top = 0; top < kLevel3Nodes; ++top)
    children(nodes[published.level3 + top], [&](uint32_t b2, uint32_t run2, uint32_t n2) {
      children(nodes[run2 + n2], [&](uint32_t b1, uint32_t run1, uint32_t n1) {
        children(nodes[run1 + n1], [&](uint32_t b0, uint32_t table, uint32_t n0) {
          const uint32_t index = reinterpret_cast<const uint32_t*>(nodes + table)[n0];
          const uint32_t x = cell(cell(cell(top & 31u, b2, 0), b1, 0), b0, 0),
                         y = cell(cell(cell(top >> 5 & 15u, b2, 1), b1, 1), b0, 1),
                         z = cell(cell(cell(top >> 9, b2, 2), b1, 2), b0, 2);
          if (index < published.brick_room) bricks.emplace(x | y << 11 | z << 21, materials_seen(published, index));
        });
      });
    });
  return bricks;
}

}  // namespace quarry::test
