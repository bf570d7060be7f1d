// edit.hpp - edits as batches: a shape, a mode, a material; the same batch gives the same world whatever the number of threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "voxel/brick.hpp"

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

}  // namespace quarry
