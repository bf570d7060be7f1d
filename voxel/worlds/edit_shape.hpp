// SPDX-License-Identifier: Apache-2.0
// edit_shape.hpp - the shape of one edit, prepared for evaluation brick by brick. Integers decide membership, so that a
// sphere is the same on every machine; floating point only skips regions that are safely far away.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "voxel/bricks/map.hpp"
#include "voxel/shapes/shape.hpp"
#include "voxel/worlds/edit.hpp"

namespace quarry {

class EditShape {
 public:
  // Errors: see edit_bounds(). Of Shape::connected it has no voxel.
  static Result<EditShape> create(const Edit& edit);
  // What Shape::connected means in a volume: the voxels that are connected with `voxel`, through faces, by voxels of
  // its material. None if it is empty. It floods brick by brick, 64 voxels at a time. Traffic: each reached brick and
  // those around it once, 76 bytes a brick. Errors: full (more bricks than `most`).
  static Result<EditShape> connected(const BrickMap& bricks, Int3 voxel, size_t most);

  // Bricks next to each other along z.
  struct Row {
    Int3 first;
    uint32_t count;
    // Those of them that are wholly in the shape: [whole_first, whole_end), of the row's own numbers. There may be more
    // in capsules.
    uint32_t whole_first, whole_end;
    Int3 at(uint32_t number) const { return {first.x, first.y, int32_t(int64_t(first.z) + number)}; }
  };

  const Box3& bounds() const { return solid_.bounds; }
  // A box, a ball or a capsule is this; null: all of its voxels are listed.
  const SolidShape* solid() const { return is_listed() ? nullptr : &solid_; }
  // True if its box holds many more bricks than the shape may meet.
  bool is_sparse() const { return solid_.shape == Shape::line || solid_.shape == Shape::connected; }
  BrickMask mask(Int3 brick) const;
  // The bricks that may hold a voxel of the shape (few hold none), in rows that rise. Errors: full (more bricks than
  // `most`).
  Result<std::vector<Row>> rows(size_t most) const;
  // False if no voxel of the brick is in the shape; true if some may be.
  bool may_meet(Int3 brick) const { return solid_.meets_cube(brick.x, brick.y, brick.z, 0); }

 private:
  EditShape() = default;
  bool collect(int64_t brick_x, int64_t brick_y, int64_t brick_z, uint32_t level, size_t most,
               std::vector<Int3>& out) const;
  // True if listed_ has all of its voxels.
  bool is_listed() const {
    return solid_.shape == Shape::connected || (solid_.shape == Shape::line && solid_.radius <= 0);
  }
  void walk_line(Int3 from, Int3 to);

  SolidShape solid_;
  // Of a line of radius 0 and of connected(): its bricks, rising, with their voxels.
  std::vector<std::pair<Int3, BrickMask>> listed_;
};

}  // namespace quarry
