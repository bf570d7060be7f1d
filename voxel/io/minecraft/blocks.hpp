// SPDX-License-Identifier: Apache-2.0
// blocks.hpp - converts block states ("minecraft:oak_stairs[facing=east]") to materials: a colour by the block's name,
// and the name. The colours are our own. They were chosen by eye for a block's look from afar, and no texture of the
// game was read for them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "voxel/worlds/scene.hpp"

namespace quarry::io {

// "minecraft:oak_stairs[facing=east]" -> "minecraft:oak_stairs".
std::string_view block_name(std::string_view state);
// Whether a block is air of any kind, or an invisible block that only marks a place (structure_void, barrier, light).
bool block_is_empty(std::string_view state);
// A name that matches no pattern gets a colour made from the name, the same on every machine.
Material block_material(std::string_view state);

class BlockTable {
 public:
  uint32_t id_of(const std::string& state);  // the same number for the same state
  void count(uint32_t id, uint64_t voxels) { blocks_[id].voxels += voxels; }
  bool empty(uint32_t id) const { return blocks_[id].empty; }
  // Makes a material for each used state, with its name, in order of the numbers. If there are more than 255, it makes
  // one for each block name. If these are too many too, the most frequent blocks keep theirs, and others get the
  // nearest colour among them (with warnings).
  void finish(Scene& scene, std::vector<std::string>* warnings);
  uint8_t material(uint32_t id) const { return blocks_[id].material; }  // 0 for empty ones

 private:
  struct Block {
    std::string state;
    bool empty = false;
    uint64_t voxels = 0;
    uint8_t material = 0;
  };
  std::vector<Block> blocks_;
  std::map<std::string, uint32_t, std::less<>> ids_;
};

}  // namespace quarry::io
