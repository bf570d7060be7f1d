// SPDX-License-Identifier: Apache-2.0
// tools.hpp - from a mouse to edits: the action of a brush at a picked voxel, and how a dragged mouse becomes a stroke.
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
  // The voxels of one material that are connected with the picked one. A click; modes that set voxels in empty space
  // paint.
  connected,
};

constexpr int kLargestBrush = kMostEditRadius;

struct Brush {
  Mode mode = Mode::add;
  BrushShape shape = BrushShape::sphere;
  int radius = 3;  // voxels; 0: one voxel
  uint8_t material = 1;
  uint8_t from = 0;  // replace: the material to be replaced; 0: that of the voxel where the stroke began
};

const char* mode_name(Mode mode);
const char* brush_shape_name(BrushShape shape);
std::optional<Mode> mode_from_name(std::string_view name);
std::optional<BrushShape> brush_shape_from_name(std::string_view name);

// True of shapes that a drag spans from end to end, and that its release applies.
bool spans_drag(BrushShape shape);
// The voxel a brush works at. Modes that set voxels in empty space use the one in front of the face, others the picked
// one.
Int3 brush_voxel(const Brush& brush, const Pick& pick);
// The edit from `a` to `b` (equal: a dab). World axes.
Edit brush_edit(const Brush& brush, Int3 a, Int3 b);
// Every voxel the edit may touch; of `connected` the voxel where it begins.
Box3 touched_box(const Edit& edit);

// One press of the mouse button until its release. Modes that change the surface stay in the plane of the face where
// they began. So a stroke neither climbs on what it adds nor drills into what it removes. Painting follows the surface.
class Stroke {
 public:
  Stroke(const Brush& brush, const Pick& start);
  // Edits to apply now, for sphere and cube. The first dab is applied at once; later calls cover the mouse's path since
  // the last one.
  std::vector<Edit> begin() const;
  std::vector<Edit> move(const PickVoxel& pick, const Ray& ray);
  // The edits that the release applies, for box and line.
  std::vector<Edit> end() const;
  // The edit that the release would apply (box, line), or a dab here.
  Edit preview() const;
  const Brush& brush() const { return brush_; }

 private:
  std::optional<Int3> follow(const PickVoxel& pick, const Ray& ray) const;

  Brush brush_;
  Int3 first_, last_;
  int axis_ = 1;
  double plane_ = 0;
  bool positive_ = true, in_front_ = true;
};

}  // namespace quarry::app
