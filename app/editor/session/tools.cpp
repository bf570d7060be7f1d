// SPDX-License-Identifier: Apache-2.0
// tools.cpp - turns brushes and strokes into edits: plane of the stroke, spacing of dabs, boxes that are shown before
// the edit.
#include "app/editor/session/tools.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

namespace quarry::app {
namespace {

constexpr const char* kModeNames[] = {"add", "remove", "paint", "replace", "fill"};
constexpr const char* kShapeNames[] = {"sphere", "cube", "box", "line", "connected"};

// Modes that set voxels in empty space work in front of the picked face.
bool works_in_front(Mode mode) { return mode == Mode::add || mode == Mode::fill; }

Int3 grown(Int3 v, int by) { return {v.x + by, v.y + by, v.z + by}; }

}  // namespace

const char* mode_name(Mode mode) { return kModeNames[int(mode)]; }
const char* brush_shape_name(BrushShape shape) { return kShapeNames[int(shape)]; }

std::optional<Mode> mode_from_name(std::string_view name) {
  for (size_t i = 0; i < std::size(kModeNames); ++i)
    if (name == kModeNames[i]) return static_cast<Mode>(i);
  return {};
}
std::optional<BrushShape> brush_shape_from_name(std::string_view name) {
  for (size_t i = 0; i < std::size(kShapeNames); ++i)
    if (name == kShapeNames[i]) return static_cast<BrushShape>(i);
  return {};
}

bool spans_drag(BrushShape shape) { return shape == BrushShape::box || shape == BrushShape::line; }

Int3 brush_voxel(const Brush& brush, const Pick& pick) {
  const bool in_front = works_in_front(brush.mode) && brush.shape != BrushShape::connected;
  return in_front ? pick.voxel + pick.normal : pick.voxel;
}

Edit brush_edit(const Brush& brush, Int3 a, Int3 b) {
  Edit edit;
  edit.mode = brush.mode;
  edit.material = brush.material;
  edit.from = brush.from;
  edit.a = a;
  edit.b = b;
  edit.radius = brush.radius;
  switch (brush.shape) {
    case BrushShape::sphere: edit.shape = a == b ? Shape::sphere : Shape::line; break;
    case BrushShape::cube:
    case BrushShape::box: {
      edit.shape = Shape::box;
      edit.radius = 0;
      const int by = brush.shape == BrushShape::cube ? brush.radius : 0;
      edit.a = grown({std::min(a.x, b.x), std::min(a.y, b.y), std::min(a.z, b.z)}, -by);
      edit.b = grown({std::max(a.x, b.x), std::max(a.y, b.y), std::max(a.z, b.z)}, by);
      break;
    }
    case BrushShape::line: edit.shape = Shape::line; break;
    case BrushShape::connected:
      edit.shape = Shape::connected;
      edit.radius = 0;
      if (works_in_front(edit.mode)) edit.mode = Mode::paint;
      break;
  }
  return edit;
}

Box3 touched_box(const Edit& edit) {
  const bool of_one = edit.shape == Shape::sphere || edit.shape == Shape::connected;
  const Int3 a = edit.a, b = of_one ? edit.a : edit.b;
  const int by = edit.shape == Shape::box || edit.shape == Shape::connected ? 0 : int(std::floor(edit.radius));
  return {grown({std::min(a.x, b.x), std::min(a.y, b.y), std::min(a.z, b.z)}, -by),
          grown({std::max(a.x, b.x), std::max(a.y, b.y), std::max(a.z, b.z)}, by)};
}

Stroke::Stroke(const Brush& brush, const Pick& start) : brush_(brush) {
  if (brush_.mode == Mode::replace && brush_.from == 0) brush_.from = start.material;
  first_ = last_ = brush_voxel(brush_, start);
  in_front_ = works_in_front(brush_.mode);
  const Int3 n = start.normal == Int3{} ? Int3{0, 1, 0} : start.normal;
  axis_ = n.x != 0 ? 0 : n.y != 0 ? 1 : 2;
  positive_ = n.x + n.y + n.z > 0;
  const int32_t cell[3] = {start.voxel.x, start.voxel.y, start.voxel.z};
  plane_ = cell[axis_] + (positive_ ? 1 : 0);
}

std::optional<Int3> Stroke::follow(const PickVoxel& pick, const Ray& ray) const {
  if (brush_.mode == Mode::paint || brush_.mode == Mode::replace) {
    const auto hit = pick(ray);
    if (!hit) return {};
    return hit->voxel;
  }
  auto voxel = voxel_on_plane(ray, axis_, plane_, positive_);
  if (voxel && in_front_) {
    const int towards = positive_ ? 1 : -1;
    if (axis_ == 0) voxel->x += towards;
    if (axis_ == 1) voxel->y += towards;
    if (axis_ == 2) voxel->z += towards;
  }
  return voxel;
}

std::vector<Edit> Stroke::begin() const {
  if (spans_drag(brush_.shape)) return {};
  return {brush_edit(brush_, first_, first_)};
}

std::vector<Edit> Stroke::move(const PickVoxel& pick, const Ray& ray) {
  if (brush_.shape == BrushShape::connected) return {};  // where it was clicked, and no further
  const auto voxel = follow(pick, ray);
  if (!voxel || *voxel == last_) return {};
  const Int3 from = last_;
  last_ = *voxel;
  if (brush_.shape == BrushShape::sphere) return {brush_edit(brush_, from, last_)};
  if (brush_.shape != BrushShape::cube) return {};
  // A cube drawn along the path: the dabs are so close that there is no gap.
  const Int3 way = last_ - from;
  const int longest = std::max({std::abs(way.x), std::abs(way.y), std::abs(way.z)});
  const int steps = std::max(1, (longest + brush_.radius) / std::max(1, brush_.radius));
  std::vector<Edit> edits;
  for (int i = 1; i <= steps; ++i) {
    const auto between = [&](int32_t start, int32_t length) {
      return start + int32_t(std::lround(double(length) * i / steps));
    };
    const Int3 at{between(from.x, way.x), between(from.y, way.y), between(from.z, way.z)};
    edits.push_back(brush_edit(brush_, at, at));
  }
  return edits;
}

std::vector<Edit> Stroke::end() const {
  if (!spans_drag(brush_.shape)) return {};
  return {brush_edit(brush_, first_, last_)};
}

Edit Stroke::preview() const { return brush_edit(brush_, spans_drag(brush_.shape) ? first_ : last_, last_); }

}  // namespace quarry::app
