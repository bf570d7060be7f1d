// SPDX-License-Identifier: Apache-2.0
// edit_shape.cpp - exact membership tests in 64-bit integers, the 6-connected line, and the octree walk that finds a
// shape's bricks.
#include "voxel/worlds/edit_shape.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

namespace quarry {
namespace {

using shape_detail::farthest;
using shape_detail::nearest;
using shape_detail::square;

__extension__ typedef unsigned __int128 Wide;

// Along one axis: twice the world's extent, and small enough for cross products in 64 bits.
constexpr int64_t kLongestLine = 32768;

// floor(radius^2 * factor), exactly. radius in 0..4096, factor below 2^33.
int64_t floor_of_square_times(double radius, uint64_t factor) {
  if (radius <= 0) return 0;
  int exponent = 0;
  const double mantissa = std::frexp(radius, &exponent);  // radius = mantissa * 2^exponent, mantissa in [0.5, 1)
  const auto m = uint64_t(std::ldexp(mantissa, 53));
  const int shift = 2 * (53 - exponent);  // radius^2 = m^2 / 2^shift; exponent <= 13, so shift >= 80
  const Wide square = Wide(m) * m;        // 106 bits: times `factor` in two halves
  const Wide low = Wide(uint64_t(square)) * factor;
  // The product without its lowest 64 bits, which the shift drops anyway.
  const Wide high = (square >> 64) * factor + (low >> 64);
  return shift - 64 >= 128 ? 0 : int64_t(high >> (shift - 64));
}

// floor(sqrt(v)), exactly; v at most 2^52.
int64_t root(int64_t v) {
  auto r = int64_t(std::sqrt(double(v)));
  while (r * r > v) --r;
  while ((r + 1) * (r + 1) <= v) ++r;
  return r;
}

// Adds the eight voxels of a row along x.
void put_row(BrickMask& mask, uint32_t y, uint32_t z, uint64_t row) {
  const uint32_t octant = (y >> 2) << 1 | (z >> 2) << 2, shift = (y & 3u) << 2 | (z & 3u) << 4;
  mask[octant] |= (row & 15u) << shift;
  mask[octant + 1] |= (row >> 4) << shift;
}

BrickMask all_ones() {
  BrickMask mask;
  mask.fill(~uint64_t(0));
  return mask;
}

// A brick's voxels in planes across z: bit x | y << 3.
using Planes = std::array<uint64_t, 8>;

Planes planes_of(const BrickMask& mask) {
  Planes planes{};
  for (uint32_t z = 0; z < 8; ++z)
    for (uint32_t y = 0; y < 8; ++y) {
      const uint32_t octant = (y >> 2) << 1 | (z >> 2) << 2, shift = (y & 3u) << 2 | (z & 3u) << 4;
      planes[z] |= ((mask[octant] >> shift & 15u) | (mask[octant + 1] >> shift & 15u) << 4) << (8 * y);
    }
  return planes;
}
BrickMask mask_of(const Planes& planes) {
  BrickMask mask{};
  for (uint32_t z = 0; z < 8; ++z)
    for (uint32_t y = 0; y < 8; ++y) put_row(mask, y, z, planes[z] >> (8 * y) & 255u);
  return mask;
}

Planes of_material(const SharedBrick& brick, uint8_t material) {
  Planes planes{};
  if (const uint8_t full = brick.material()) {
    if (full == material) planes.fill(~uint64_t(0));
    return planes;
  }
  if (!brick) return planes;
  BrickMask mask{};
  const BrickView view = *brick;
  for (uint32_t i = 0; i < kVoxelsPerBrick; ++i) mask[i >> 6] |= uint64_t(view.materials[i] == material) << (i & 63u);
  return planes_of(mask);
}

// The voxels of one material that are connected with a first one.
class Connection {
 public:
  Connection(const BrickMap& bricks, uint8_t material) : bricks_(bricks), material_(material) {}

  // False: there are more than `most` bricks.
  bool run(Int3 voxel, size_t most) {
    Planes first{};
    first[size_t(voxel.z & 7)] = uint64_t(1) << ((voxel.x & 7) | (voxel.y & 7) << 3);
    reach(brick_of(voxel), first);
    while (!queue_.empty()) {
      const uint32_t number = queue_.back();
      queue_.pop_back();
      nodes_[number].queued = false;
      spread(nodes_[number]);
      const Int3 at = nodes_[number].at;
      const Planes from = nodes_[number].reached;     // reach() may move the nodes
      constexpr uint64_t kLow = 0x0101010101010101u;  // x 0
      Planes seeds[6] = {};
      for (size_t z = 0; z < 8; ++z) {
        seeds[0][z] = (from[z] & kLow) << 7;
        seeds[1][z] = from[z] >> 7 & kLow;
        seeds[2][z] = from[z] << 56;
        seeds[3][z] = from[z] >> 56;
      }
      seeds[4][7] = from[0];
      seeds[5][0] = from[7];
      for (size_t face = 0; face < 6; ++face) {
        const int32_t way = face & 1u ? 1 : -1;
        reach(at + Int3{face / 2 == 0 ? way : 0, face / 2 == 1 ? way : 0, face / 2 == 2 ? way : 0}, seeds[face]);
      }
      if (reached_bricks_ > most) return false;
    }
    return true;
  }
  std::vector<std::pair<Int3, BrickMask>> take() {
    std::vector<std::pair<Int3, BrickMask>> found;
    found.reserve(reached_bricks_);
    for (const Node& node : nodes_)
      if (any(node.reached)) found.emplace_back(node.at, mask_of(node.reached));
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return found;
  }

 private:
  struct Node {
    Int3 at;
    Planes same, reached;  // voxels of the material; those of them that are connected
    bool queued = false;
  };
  struct Hash {
    size_t operator()(Int3 b) const {
      const uint64_t low = uint32_t(b.x) | uint64_t(uint32_t(b.y)) << 32;
      return size_t((low * 0x9E3779B97F4A7C15u ^ uint32_t(b.z)) * 0xC2B2AE3D27D4EB4Fu >> 16);
    }
  };

  static bool any(const Planes& planes) {
    uint64_t all = 0;
    for (const uint64_t plane : planes) all |= plane;
    return all != 0;
  }

  void reach(Int3 at, const Planes& seeds) {
    if (!any(seeds)) return;
    const auto [found, is_new] = numbers_.try_emplace(at, uint32_t(nodes_.size()));
    if (is_new) nodes_.push_back({at, of_material(bricks_.share(at), material_), {}});
    Node& node = nodes_[found->second];
    const bool was_reached = any(node.reached);
    bool more = false;
    for (size_t z = 0; z < 8; ++z) {
      const uint64_t fresh = seeds[z] & node.same[z] & ~node.reached[z];
      more |= fresh != 0;
      node.reached[z] |= fresh;
    }
    if (!more) return;
    reached_bricks_ += !was_reached;
    if (std::exchange(node.queued, true)) return;
    queue_.push_back(found->second);
  }

  static void spread(Node& node) {
    constexpr uint64_t kNotLow = 0xFEFEFEFEFEFEFEFEu, kNotHigh = 0x7F7F7F7F7F7F7F7Fu;
    for (bool more = true; more;) {
      more = false;
      for (size_t z = 0; z < 8; ++z) {
        const uint64_t before = node.reached[z];
        uint64_t now = before;
        if (z > 0) now |= node.reached[z - 1];
        if (z < 7) now |= node.reached[z + 1];
        now |= (before << 1 & kNotLow) | (before >> 1 & kNotHigh) | before << 8 | before >> 8;
        node.reached[z] = now & node.same[z];
        more |= node.reached[z] != before;
      }
    }
  }

  const BrickMap& bricks_;
  const uint8_t material_;
  std::unordered_map<Int3, uint32_t, Hash> numbers_;
  std::vector<Node> nodes_;
  std::vector<uint32_t> queue_;
  size_t reached_bricks_ = 0;
};

}  // namespace

Result<EditShape> EditShape::connected(const BrickMap& bricks, Int3 voxel, size_t most) {
  EditShape shape;
  shape.solid_.shape = Shape::connected;
  shape.solid_.a = shape.solid_.b = voxel;
  const uint8_t material = bricks.get(voxel);
  if (!material) return shape;
  Connection connection(bricks, material);
  if (!connection.run(voxel, most))
    return fail(ErrorCode::full, "edit: more than " + std::to_string(most) +
                                     " bricks of 8 x 8 x 8 voxels are connected there; edit a part of them by a shape");
  shape.listed_ = connection.take();
  for (const auto& [at, mask] : shape.listed_)
    shape.solid_.bounds = united(shape.solid_.bounds, voxel_bounds(at, mask));
  return shape;
}

Result<EditShape> EditShape::create(const Edit& edit) {
  if (edit.shape == Shape::connected) {
    EditShape shape;
    shape.solid_.shape = edit.shape;
    shape.solid_.a = shape.solid_.b = edit.a;
    shape.solid_.bounds = {edit.a, edit.a};
    return shape;
  }
  const bool round = edit.shape != Shape::box;
  if (round && !(edit.radius >= 0 && edit.radius <= kMostEditRadius))
    return fail(ErrorCode::invalid_argument, "edit: the radius must be between 0 and " +
                                                 std::to_string(kMostEditRadius) + " voxels, not " +
                                                 std::to_string(edit.radius));
  EditShape shape;
  shape.solid_.shape = edit.shape;
  shape.solid_.a = edit.a;
  shape.solid_.b = edit.shape == Shape::sphere ? edit.a : edit.b;
  shape.solid_.radius = round ? edit.radius : 0;
  shape.solid_.radius2 = floor_of_square_times(shape.solid_.radius, 1);

  const auto reach = int64_t(std::floor(shape.solid_.radius));
  const int64_t a[3] = {shape.solid_.a.x, shape.solid_.a.y, shape.solid_.a.z},
                b[3] = {shape.solid_.b.x, shape.solid_.b.y, shape.solid_.b.z};
  int64_t low[3], high[3];
  for (size_t i = 0; i < 3; ++i) {
    low[i] = std::min(a[i], b[i]) - reach;
    high[i] = std::max(a[i], b[i]) + reach;
    if (low[i] < std::numeric_limits<int32_t>::min() || high[i] > std::numeric_limits<int32_t>::max())
      return fail(ErrorCode::out_of_bounds, "edit: the shape reaches beyond the range of 32-bit voxel coordinates");
    if (edit.shape != Shape::line) continue;
    if (std::abs(b[i] - a[i]) > kLongestLine)
      return fail(ErrorCode::invalid_argument, "edit: a line may span at most 32768 voxels along each axis, not " +
                                                   std::to_string(std::abs(b[i] - a[i])));
    shape.solid_.segment2 += square(b[i] - a[i]);
  }
  shape.solid_.bounds = {{int32_t(low[0]), int32_t(low[1]), int32_t(low[2])},
                         {int32_t(high[0]), int32_t(high[1]), int32_t(high[2])}};
  if (edit.shape == Shape::line) {
    if (edit.radius > 0) shape.solid_.cross2 = floor_of_square_times(edit.radius, uint64_t(shape.solid_.segment2));
    else shape.walk_line(edit.a, edit.b);
  }
  return shape;
}

// The 6-connected line: from centre to centre, through the faces in the order in which the segment crosses them; x
// before y before z if it crosses an edge or corner. The next face of axis i is crossed at t = (2 k_i + 1) / (2 |d_i|)
// after k_i steps: compared by cross-multiplication, in integers. After J. Amanatides, A. Woo, "A fast voxel traversal
// algorithm for ray tracing", 1987.
void EditShape::walk_line(Int3 from, Int3 to) {
  std::map<Int3, BrickMask> voxels;
  int32_t at[3] = {from.x, from.y, from.z};
  const int64_t delta[3] = {int64_t(to.x) - from.x, int64_t(to.y) - from.y, int64_t(to.z) - from.z};
  int64_t taken[3] = {0, 0, 0};
  const auto mark = [&] {
    const Int3 v{at[0], at[1], at[2]};
    voxels[brick_of(v)][octant_of(v)] |= uint64_t(1) << bit_of(v);
  };
  mark();
  for (int64_t left = std::abs(delta[0]) + std::abs(delta[1]) + std::abs(delta[2]); left > 0; --left) {
    int next = -1;
    for (int i = 0; i < 3; ++i) {
      if (taken[i] == std::abs(delta[i])) continue;
      if (next < 0 || (2 * taken[i] + 1) * std::abs(delta[next]) < (2 * taken[next] + 1) * std::abs(delta[i])) next = i;
    }
    ++taken[next];
    at[next] += delta[next] > 0 ? 1 : -1;
    mark();
  }
  listed_.assign(voxels.begin(), voxels.end());
}

BrickMask EditShape::mask(Int3 brick) const {
  if (is_listed()) {
    const auto found = std::lower_bound(listed_.begin(), listed_.end(), brick,
                                        [](const auto& listed, Int3 at) { return listed.first < at; });
    return found != listed_.end() && found->first == brick ? found->second : BrickMask{};
  }
  if (solid_.holds(brick)) return all_ones();
  if (!may_meet(brick)) return {};
  if (solid_.shape == Shape::line) {
    // A capsule is convex: if its corners are inside, the whole brick is.
    const int64_t low[3] = {int64_t(brick.x) * 8, int64_t(brick.y) * 8, int64_t(brick.z) * 8};
    bool all = true;
    for (uint32_t corner = 0; corner < 8 && all; ++corner)
      all = solid_.in_capsule(low[0] + (corner & 1u) * 7, low[1] + (corner >> 1 & 1u) * 7, low[2] + (corner >> 2) * 7);
    if (all) return all_ones();
  }
  BrickMask mask;
  for (uint32_t octant = 0; octant < 8; ++octant) mask[octant] = solid_.octant(brick, octant);
  return mask;
}

bool EditShape::collect(int64_t brick_x, int64_t brick_y, int64_t brick_z, uint32_t level, size_t most,
                        std::vector<Int3>& out) const {
  if (!solid_.meets_cube(brick_x, brick_y, brick_z, level)) return true;
  if (level == 0) {
    out.push_back({int32_t(brick_x), int32_t(brick_y), int32_t(brick_z)});
    return out.size() <= most;
  }
  const int64_t half = int64_t(1) << (level - 1);
  for (uint32_t child = 0; child < 8; ++child)
    if (!collect(brick_x + (child & 1u) * half, brick_y + (child >> 1 & 1u) * half, brick_z + (child >> 2) * half,
                 level - 1, most, out))
      return false;
  return true;
}

Result<std::vector<EditShape::Row>> EditShape::rows(size_t most) const {
  std::vector<Row> rows;
  bool fits = true;
  const Int3 first = brick_of(solid_.bounds.min), last = brick_of(solid_.bounds.max);
  if (is_sparse()) {
    std::vector<Int3> found;
    if (is_listed()) {
      fits = listed_.size() <= most;
      for (const auto& [at, mask] : listed_) found.push_back(at);
    } else {
      const int64_t longest =
          std::max({int64_t(last.x) - first.x, int64_t(last.y) - first.y, int64_t(last.z) - first.z}) + 1;
      uint32_t level = 0;
      while ((int64_t(1) << level) < longest) ++level;
      fits = collect(first.x, first.y, first.z, level, most, found);
      std::sort(found.begin(), found.end());
    }
    for (const Int3 at : found) {
      if (!rows.empty() && rows.back().first.x == at.x && rows.back().first.y == at.y &&
          int64_t(rows.back().first.z) + rows.back().count == at.z)
        ++rows.back().count;
      else rows.push_back({at, 1, 0, 0});
    }
  } else {
    size_t count = 0;
    for (int64_t x = first.x; x <= last.x && fits; ++x)
      for (int64_t y = first.y; y <= last.y && fits; ++y) {
        // Of the row's voxels: those that may be in the shape, and those along which all of each brick's face is.
        int64_t low = solid_.bounds.min.z, high = solid_.bounds.max.z, whole_low = low, whole_high = high;
        if (solid_.shape == Shape::sphere) {
          const int64_t left =
              solid_.radius2 - square(nearest(solid_.a.x, x * 8, 8)) - square(nearest(solid_.a.y, y * 8, 8));
          const int64_t whole =
              solid_.radius2 - square(farthest(solid_.a.x, x * 8, 8)) - square(farthest(solid_.a.y, y * 8, 8));
          if (left < 0) continue;
          low = solid_.a.z - root(left);
          high = solid_.a.z + root(left);
          whole_low = solid_.a.z - (whole < 0 ? -1 : root(whole));
          whole_high = solid_.a.z + (whole < 0 ? -1 : root(whole));
        } else if (solid_.bounds.min.x > x * 8 || solid_.bounds.max.x < x * 8 + 7 || solid_.bounds.min.y > y * 8 ||
                   solid_.bounds.max.y < y * 8 + 7) {
          whole_high = whole_low - 1;
        }
        const int64_t from = low >> 3, to = high >> 3, whole_from = (whole_low + 7) >> 3,
                      whole_end = std::max((whole_high + 1) >> 3, whole_from);
        fits = uint64_t(to - from + 1) <= most - count;
        count += size_t(to - from + 1);
        rows.push_back({{int32_t(x), int32_t(y), int32_t(from)},
                        uint32_t(to - from + 1),
                        uint32_t(whole_from - from),
                        uint32_t(whole_end - from)});
      }
  }
  if (!fits)
    return fail(ErrorCode::full, "edit: the shape covers more than " + std::to_string(most) +
                                     " bricks of 8 x 8 x 8 voxels; make it smaller or split it");
  return rows;
}

}  // namespace quarry
