// SPDX-License-Identifier: Apache-2.0
// surface_rectangles.hpp - the steps from voxels to a surface, one by one: faces of bricks, rectangles of faces,
// triangles of rectangles. surface_mesh.cpp runs them with everything in memory, io/meshes/surface_source.cpp plane by
// plane. Internal to the two.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "voxel/bricks/map.hpp"
#include "voxel/worlds/palette.hpp"

namespace quarry::surface_detail {

using Coords = std::array<int32_t, 3>;

constexpr int32_t kBias = 1 << 20;  // makes coordinates positive; far beyond the world
constexpr size_t kGrain = 4096;     // rectangles made into triangles at a time

// A face rectangle: across `axis` at plane w, [u0, u1) x [v0, v1) on the next two axes. `up`: seen from the positive
// side.
struct Rectangle {
  int32_t w, u0, v0, u1, v1;
  uint8_t axis, up, material, reserved;
};

inline Coords coords_of(Int3 v) { return {v.x, v.y, v.z}; }

// Faces of one slice seen from one side: v | u | material, from the highest bits down.
using FaceKeys = std::vector<uint64_t>;
using Slices = std::array<FaceKeys, 16>;  // of a layer of bricks: [2 * (place along the axis) + up]

class FaceFinder {
 public:
  explicit FaceFinder(const Palette& palette);
  // Adds the faces of a brick across `axis`. `before`, `next`: its neighbours along the axis, null if they are empty.
  void find(uint32_t axis, Int3 at, const BrickView& brick, const std::optional<BrickView>& before,
            const std::optional<BrickView>& next, Slices& slices) const;

 private:
  BrickMask clear_voxels(const std::optional<BrickView>& brick) const;
  std::array<bool, 256> clear_{};
  bool any_clear_ = false;
};

// Merges faces of one plane, seen from one side, into rectangles: runs of a row (along u), merged with equal runs of
// the row before. Rows may come in several calls, each row complete and after (in v) all earlier ones.
class RowMerger {
 public:
  // Sorts the faces and adds the finished rectangles, rising by v1, then u0.
  void add(FaceKeys& faces, uint32_t axis, bool up, int32_t w, std::vector<Rectangle>& out);
  // Adds the rectangles that end with the last row.
  void finish(std::vector<Rectangle>& out);

 private:
  void close_row(int32_t v, std::vector<Rectangle>& out);
  std::vector<Rectangle> open_, row_;  // rising u0
};
inline int32_t plane_of_slice(int32_t along, int32_t slice) { return along * 8 + (slice >> 1) + (slice & 1); }
// Adds the rectangles of a layer's slices; `along` is its brick coordinate. They rise by plane, then faces seen from
// above first, then by v1, then u0.
void merge_slices(Slices& slices, uint32_t axis, int32_t along, std::vector<Rectangle>& out);

// Corners packed into 63 bits, so that they sort by the first coordinate, then the second, then the third.
inline uint64_t pack(int32_t a, int32_t b, int32_t c) {
  return uint64_t(a + kBias) << 42 | uint64_t(b + kBias) << 21 | uint64_t(c + kBias);
}
inline Coords unpack(uint64_t p) {
  return {int32_t(p >> 42) - kBias, int32_t(p >> 21 & 0x1fffffu) - kBias, int32_t(p & 0x1fffffu) - kBias};
}

inline Coords corner_at(const Rectangle& r, int32_t u, int32_t v) {
  Coords c{};
  c[r.axis] = r.w;
  c[(r.axis + 1u) % 3] = u;
  c[(r.axis + 2u) % 3] = v;
  return c;
}

struct CornerOnLine {
  int32_t along;   // the coordinate along the line
  uint32_t index;  // of the corner
};

// Makes a rectangle with corners on its edges into triangles, none of zero area: fans close the left and the right
// edge, a strip between the bottom and the top chain does the rest. Corners has between(from, axis, end, out): the
// corners from `from` (a corner) to `end` along `axis` on its line, both included.
template <class Corners>
class Triangulation {
 public:
  explicit Triangulation(const Corners& corners) : corners_(corners) {}

  void add(const Rectangle& r, std::vector<uint32_t>& out) {
    const size_t u_axis = (r.axis + 1u) % 3, v_axis = (r.axis + 2u) % 3;
    corners_.between(corner_at(r, r.u0, r.v0), u_axis, r.u1, bottom_);
    corners_.between(corner_at(r, r.u0, r.v1), u_axis, r.u1, top_);
    corners_.between(corner_at(r, r.u0, r.v0), v_axis, r.v1, left_);
    corners_.between(corner_at(r, r.u1, r.v0), v_axis, r.v1, right_);
    const auto triangle = [&](uint32_t a, uint32_t b, uint32_t c) {
      out.push_back(a);
      out.push_back(r.up ? b : c);
      out.push_back(r.up ? c : b);
    };
    const uint32_t left_apex = bottom_[1].index, right_apex = top_[top_.size() - 2].index;
    for (size_t i = 0; i + 1 < left_.size(); ++i) triangle(left_[i].index, left_apex, left_[i + 1].index);
    for (size_t i = 0; i + 1 < right_.size(); ++i) triangle(right_[i].index, right_[i + 1].index, right_apex);
    const size_t b_end = bottom_.size() - 1, t_end = top_.size() - 2;
    for (size_t b = 1, t = 0; b < b_end || t < t_end;) {
      if (b < b_end && (t == t_end || bottom_[b + 1].along <= top_[t + 1].along)) {
        triangle(bottom_[b].index, bottom_[b + 1].index, top_[t].index);
        ++b;
      } else {
        triangle(bottom_[b].index, top_[t + 1].index, top_[t].index);
        ++t;
      }
    }
  }

 private:
  const Corners& corners_;
  std::vector<CornerOnLine> bottom_, top_, left_, right_;
};

struct BrickLayer {  // bricks with one coordinate along the axis
  uint32_t axis;
  int32_t along;
  std::vector<BrickMap::Entry> bricks;
};
// For bricks in rising order, along one axis; the layers rise.
void add_layers(std::vector<BrickMap::Entry> bricks, uint32_t axis, std::vector<BrickLayer>& layers);

}  // namespace quarry::surface_detail
