// SPDX-License-Identifier: Apache-2.0
// light_tree.hpp - the emissive faces of a world, so that light paths can sample them instead of hitting them by
// chance.
//
//   World, Palette -> LightTree (cells of 4^3 voxels with emissive faces that touch air, a tree over them) -> image()
//   -> light_tree.glsl
//
// The tree only helps to choose lights. Scattered rays still find faces that are not in it, and the picture converges
// to the same result (path.comp.glsl weighs both ways). So the tree may have a limit: it keeps the strongest cells with
// at most kMostFaces faces. Literature: a tree of lights from which one is drawn by its likely share, A. Conty Estevez
// and C. Kulla, "Importance Sampling of Many Lights with Adaptive Tree Splitting", 2018. Our tree is split by the bits
// of Morton numbers, so that the path to a face that was hit is known.
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
  // A face takes 8 bytes, and a cell 120 bytes. That is 256 MiB at worst and 32 MiB for a wall.
  static constexpr size_t kMostFaces = size_t(1) << 21;

  // Tests pass a smaller limit.
  explicit LightTree(size_t most_faces = kMostFaces) : most_faces_(most_faces) {}

  // Remembers the changes since the last call without examining them. It is cheap enough for every publish().
  void note(const WorldChanges& changes);
  // Brings the tree up to date with the world. All noted changes must belong to this world. It examines every brick the
  // first time, whenever the palette's lights change, and when the limit was reached. Otherwise it examines the changed
  // bricks and their neighbours. A palette without emission costs nothing. The tree depends only on the world, not on
  // the edits that led to it. Only one thread may call it at a time, and no thread may write the world meanwhile.
  void update(const World& world, const Palette& palette);

  // The number changes whenever update() changes the tree. No two trees of this process share one. 0 means that the
  // tree was always empty.
  uint64_t version() const { return version_; }
  // True if nothing was noted since update().
  bool up_to_date() const { return !everything_ && changed_.empty(); }
  size_t cell_count() const { return cells_.size(); }
  size_t face_count() const { return faces_.size(); }
  // The bytes that shaders read, for memory at this device address (a multiple of 16): QryLights, nodes, cells, faces.
  // They are empty if nothing is emissive.
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
    bool cut = false;  // some cells were left out
  };

  void scan_brick(const World& world, Int3 brick, Found& out) const;
  Found scan(const World& world, const std::vector<uint32_t>& keys) const;
  void keep_strongest(Found& found) const;

  size_t most_faces_;
  std::array<float, 256> powers_{};
  std::vector<Cell> cells_;  // by Morton number
  std::vector<QryLightFace> faces_;
  std::vector<uint32_t> changed_;  // keys that were noted
  bool everything_ = true;         // all bricks must be examined
  bool cut_ = false;               // the limit was reached
  uint64_t version_ = 0;
};

}  // namespace quarry::engine
