// edit.hpp - edits as batches: a shape, a mode, a material; the same batch gives the same world whatever the number of threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hashgrid/result.hpp"
#include "voxel/brick_map.hpp"

namespace quarry {

enum class Shape : uint8_t {
  box,      // all voxels of [a, b], corners in any order
  sphere,   // voxels whose centre is within `radius` of the centre of voxel a
  line,     // voxels whose centre is within `radius` of the segment from a's to b's centre (a capsule); radius 0: the 6-connected line
};
enum class Mode : uint8_t {
  add,      // empty voxels become `material`; set ones stay
  remove,   // set voxels go
  paint,    // set voxels become `material`; empty ones stay
  replace,  // set voxels whose material is `from` become `material` (0: they go)
  fill,     // all voxels become `material`
};

struct Edit {
  Shape shape = Shape::box;
  Mode mode = Mode::add;
  Int3 a, b;
  double radius = 0;       // in voxels, 0..4096
  uint8_t material = 1;
  uint8_t from = 0;
};

// One brick before and after. An absent brick is an empty one.
struct BrickChange {
  Int3 brick;
  Brick before, after;
};

// Restores exactly: applying `before` (undo) or `after` (redo) of every change in any order. Sorted by brick coordinate.
struct UndoRecord {
  uint32_t volume = 0;
  std::string label;  // "add sphere", for the history list
  std::vector<BrickChange> changes;
  uint64_t voxels_changed = 0;
};

// One edit changes at most this many bricks (537 million voxels, 1.2 GiB of undo record).
constexpr size_t kMostBricksPerEdit = size_t(1) << 20;

// The tight box of the edit's shape. Errors: invalid_argument (radius not in 0..4096, a line longer than 32768 voxels along an axis),
// out_of_bounds (the shape leaves the range of 32-bit coordinates).
Result<Box3> edit_bounds(const Edit& edit);

// The voxels of the edit's shape in one brick. The edit must be one that edit_bounds accepts. Exact: integers only.
BrickMask edit_mask(const Edit& edit, Int3 brick);

// What the edit would do to these bricks: a record of the bricks that differ, with `volume` left 0. Deterministic whatever `threads`.
// Bricks wholly inside or outside the shape are settled without looking at voxels, empty regions without looking at bricks.
// Errors: those of edit_bounds; full (more than kMostBricksPerEdit bricks).
Result<UndoRecord> plan_edit(const BrickMap& bricks, const Edit& edit, uint32_t threads = 0);

}  // namespace quarry
