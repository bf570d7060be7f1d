// SPDX-License-Identifier: Apache-2.0
// edit.hpp - edits as batches: a shape, a mode, a material. The same batch gives the same world for any number of
// threads. Records of changed voxels or palette entries restore both states exactly.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "voxel/bricks/map.hpp"
#include "voxel/shapes/shape.hpp"
#include "voxel/worlds/palette.hpp"

namespace quarry {

// One material of the palette before and after.
struct MaterialChange {
  uint8_t index = 0;
  Material before, after;
  std::string name_before, name_after;
  friend bool operator==(const MaterialChange&, const MaterialChange&) = default;
};

// Restores exactly: by applying `before` (undo) or `after` (redo) of every change, in any order. It has either voxels
// of one volume, sorted by brick coordinate, or palette entries, sorted by index; never both.
struct UndoRecord {
  uint32_t volume = 0;
  std::string label;  // "add sphere", for the history list
  std::vector<BrickChange> changes;
  uint64_t voxels_changed = 0;
  std::vector<MaterialChange> materials;
  // The record belongs to the step of the previous one, as the later dabs of a stroke do: both are undone and redone
  // together.
  bool continues = false;
  bool of_palette() const { return !materials.empty(); }
};

// An edit may change at most this many bricks: 8.6 thousand million voxels. A brick that becomes full of one material
// takes at most 32 bytes of the undo record, a row of them no more, any other 592 more.
constexpr size_t kMostBricksPerEdit = size_t(1) << 24;

// The tight box of the edit's shape; of `connected` the voxel alone where it begins. Errors: invalid_argument (radius
// not in 0..4096, a line longer than 32768 voxels along an axis), out_of_bounds (the shape leaves the range of 32-bit
// coordinates).
Result<Box3> edit_bounds(const Edit& edit);

// As its record says it: "add sphere".
std::string edit_label(const Edit& edit);

// The voxels of the edit's shape, which is not `connected`, in one brick. edit_bounds must accept the edit. Exact:
// integers only.
BrickMask edit_mask(const Edit& edit, Int3 brick);

// What the edit would change: a record of the bricks that differ, with `volume` left 0. Deterministic for any
// `threads`. Bricks wholly inside or outside the shape are decided without reading voxels, empty regions without
// reading bricks. Traffic: 64 to 1200 bytes for each brick that the shape's surface cuts, 40 for each other that is
// there, 32 for a row of those that are not. Errors: those of edit_bounds; full (more than kMostBricksPerEdit bricks).
Result<UndoRecord> plan_edit(const BrickMap& bricks, const Edit& edit, uint32_t threads = 0);

// What one piece of a plan changes. Pieces are planned by several threads; joined in their order, they do not depend on
// the threads.
struct PlannedChanges {
  std::vector<BrickChange> changes;
  uint64_t voxels = 0;  // that differ
};
// The record of all pieces, which are emptied. Their bricks rise from piece to piece.
UndoRecord joined(std::vector<PlannedChanges>& pieces);

// The record that changes one palette into the other. Its label describes the change: "material 12: roughness 0.35 to
// 0.87".
UndoRecord plan_palette_change(const Palette& before, const Palette& after);

}  // namespace quarry
