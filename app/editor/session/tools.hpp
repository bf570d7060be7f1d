// SPDX-License-Identifier: Apache-2.0
// tools.hpp - from a mouse to edits: what a brush does at a picked voxel, and how a dragged mouse becomes a stroke.
#pragma once

#include <optional>
#include <vector>

#include "app/editor/session/pick.hpp"
#include "voxel/worlds/edit.hpp"

namespace quarry::app {

enum class BrushShape : uint8_t {
  sphere,  // a ball at the voxel, drawn along the drag
  cube,    // the same with a cube
  box,     // from corner to corner of the drag
  line,    // from end to end of the drag
};

constexpr int kLargestBrush = kMostEditRadius;

struct Brush {
  Mode mode = Mode::add;
  BrushShape shape = BrushShape::sphere;
  int radius = 3;  // voxels; 0: one voxel
  uint8_t material = 1;
  uint8_t from = 0;  // replace: which material goes; 0: that of the voxel where the stroke began
};

const char* mode_name(Mode mode);
const char* brush_shape_name(BrushShape shape);
std::optional<Mode> mode_from_name(std::string_view name);
std::optional<BrushShape> brush_shape_from_name(std::string_view name);

// The voxel a brush works at: the one in front of the face for modes that put voxels into empty space, else the one
// picked.
Int3 brush_voxel(const Brush& brush, const Pick& pick);
// The edit from `a` to `b` (equal: a dab). World axes.
Edit brush_edit(const Brush& brush, Int3 a, Int3 b);
// Every voxel the edit may touch.
Box3 touched_box(const Edit& edit);

// One press of the mouse button until its release. Modes that change the surface stay in the plane of the face where
// they began, so that a stroke neither climbs what it adds nor drills into what it removes; painting follows the
// surface.
class Stroke {
 public:
  Stroke(const Brush& brush, const Pick& start);
  // Edits to apply now, for sphere and cube: the first dab at once, then what the mouse's way since the last call
  // covers.
  std::vector<Edit> begin() const;
  std::vector<Edit> move(const World& world, const Ray& ray);
  // What the release applies: box and line.
  std::vector<Edit> end() const;
  // What would be touched by the release (box, line) or by a dab here.
  Edit preview() const;
  const Brush& brush() const { return brush_; }

 private:
  std::optional<Int3> follow(const World& world, const Ray& ray) const;

  Brush brush_;
  Int3 first_, last_;
  int axis_ = 1;
  double plane_ = 0;
  bool positive_ = true, in_front_ = true;
};

}  // namespace quarry::app
