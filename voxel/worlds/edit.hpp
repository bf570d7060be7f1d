// SPDX-License-Identifier: Apache-2.0
// edit.hpp - edits as batches: a shape, a mode, a material; the same batch gives the same world whatever the number of
// threads. And records of what changed, voxels or palette, from which both ways are restored exactly.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "voxel/bricks/map.hpp"
#include "voxel/worlds/palette.hpp"

namespace quarry {

enum class Shape : uint8_t {
  box,      // all voxels of [a, b], corners in any order
  sphere,   // voxels whose centre is within `radius` of the centre of voxel a
  // Voxels whose centre is within `radius` of the segment from a's to b's centre (a capsule); radius 0: the 6-connected
  // line.
  line,
};
enum class Mode : uint8_t {
  add,      // empty voxels become `material`; set ones stay
  remove,   // set voxels go
  paint,    // set voxels become `material`; empty ones stay
  replace,  // set voxels whose material is `from` become `material` (0: they go)
  fill,     // all voxels become `material`
};

constexpr int kMostEditRadius = 4096;

struct Edit {
  Shape shape = Shape::box;
  Mode mode = Mode::add;
  Int3 a, b;
  double radius = 0;       // in voxels, 0..kMostEditRadius
  uint8_t material = 1;
  uint8_t from = 0;
};

// One brick before and after. An absent brick is an empty one.
struct BrickChange {
  Int3 brick;
  Brick before, after;
};

// One material of the palette before and after.
struct MaterialChange {
  uint8_t index = 0;
  Material before, after;
  std::string name_before, name_after;
  friend bool operator==(const MaterialChange&, const MaterialChange&) = default;
};

// Restores exactly: applying `before` (undo) or `after` (redo) of every change in any order. Of voxels of one volume,
// sorted by brick coordinate, or of the palette, sorted by index; never of both.
struct UndoRecord {
  uint32_t volume = 0;
  std::string label;  // "add sphere", for the history list
  std::vector<BrickChange> changes;
  uint64_t voxels_changed = 0;
  std::vector<MaterialChange> materials;
  // It belongs to the step of the record before it, as the later dabs of a stroke do: both are undone and redone
  // together.
  bool continues = false;
  bool of_palette() const { return !materials.empty(); }
};

// One edit changes at most this many bricks (537 million voxels, 1.2 GiB of undo record).
constexpr size_t kMostBricksPerEdit = size_t(1) << 20;

// The tight box of the edit's shape. Errors: invalid_argument (radius not in 0..4096, a line longer than 32768 voxels
// along an axis), out_of_bounds (the shape leaves the range of 32-bit coordinates).
Result<Box3> edit_bounds(const Edit& edit);

// The voxels of the edit's shape in one brick. The edit must be one that edit_bounds accepts. Exact: integers only.
BrickMask edit_mask(const Edit& edit, Int3 brick);

// What the edit would do to these bricks: a record of the bricks that differ, with `volume` left 0. Deterministic
// whatever `threads`. Bricks wholly inside or outside the shape are settled without looking at voxels, empty regions
// without looking at bricks.
// Errors: those of edit_bounds; full (more than kMostBricksPerEdit bricks).
Result<UndoRecord> plan_edit(const BrickMap& bricks, const Edit& edit, uint32_t threads = 0);

// The record that turns one palette into the other. Its label names what changed: "material 12: roughness 0.35 to
// 0.87".
UndoRecord plan_palette_change(const Palette& before, const Palette& after);

}  // namespace quarry
