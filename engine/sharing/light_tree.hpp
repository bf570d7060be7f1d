// SPDX-License-Identifier: Apache-2.0
// light_tree.hpp - which faces of a world are emissive, so that light paths can sample them instead of meeting them by
// chance.
//
//   World, Palette -> LightTree (cells of 4^3 voxels with emissive faces that touch air, a tree over them) -> image()
//   -> light_tree.glsl
//
// Only a help for choosing: what is not in the tree is still found by scattered rays, and the picture it converges to
// is the same (path.comp.glsl weighs both ways). So there may be a limit: the strongest cells with at most kMostFaces
// faces are kept. Literature: a tree of lights from which one is drawn by its likely share, A. Conty Estevez and C.
// Kulla, "Importance Sampling of Many Lights with Adaptive Tree Splitting", 2018; ours is split by the bits of Morton
// numbers, so that the way to a face that was hit is known.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/sharing/world_changes.hpp"
#include "shaders/shared/light_tree.h"
#include "voxel/worlds/palette.hpp"

namespace quarry::engine {

class LightTree {
 public:
  // 8 bytes each, and 120 for each cell: at worst 256 MiB, on a wall 32 MiB.
  static constexpr size_t kMostFaces = size_t(1) << 21;

  // A smaller limit, for tests.
  explicit LightTree(size_t most_faces = kMostFaces) : most_faces_(most_faces) {}

  // Remembers what changed since the call before, without looking at it: cheap enough for every publish().
  void note(const WorldChanges& changes);
  // Brings the tree up to date with the world, to which everything noted must belong: looks at every brick the first
  // time, whenever the palette's lights change and when the limit was reached; else at the bricks that were changed and
  // their neighbours. A palette without emission costs nothing. Depends on the world alone, not on the edits that led
  // to it. One thread at a time, and nobody writing the world.
  void update(const World& world, const Palette& palette);

  // Another number whenever update() changed the tree, and for every tree of this process; 0: nothing was ever in it.
  uint64_t version() const { return version_; }
  // Nothing was noted since update().
  bool up_to_date() const { return !everything_ && changed_.empty(); }
  size_t cell_count() const { return cells_.size(); }
  size_t face_count() const { return faces_.size(); }
  // What shaders read, for memory at this device address (a multiple of 16): QryLights, nodes, cells, faces. Empty if
  // nothing is emissive.
  std::vector<uint8_t> image(uint64_t address) const;
  uint64_t image_bytes() const;

 private:
  struct Cell {
    uint64_t morton = 0;  // of biased voxel >> 2
    std::array<float, 6> powers{};
    std::array<uint16_t, 6> ends{};
    uint32_t first = 0;
    Int3 at;  // biased voxel >> 2
  };
  struct Found {
    std::vector<Cell> cells;
    std::vector<QryLightFace> faces;
    bool cut = false;  // some were left out
  };

  void scan_brick(const World& world, Int3 brick, Found& out) const;
  Found scan(const World& world, const std::vector<uint32_t>& keys) const;
  void keep_strongest(Found& found) const;

  size_t most_faces_;
  std::array<float, 256> powers_{};
  std::vector<Cell> cells_;  // by Morton number
  std::vector<QryLightFace> faces_;
  std::vector<uint32_t> changed_;  // keys noted
  bool everything_ = true;         // must be looked at
  bool cut_ = false;               // the limit was reached
  uint64_t version_ = 0;
};

}  // namespace quarry::engine
