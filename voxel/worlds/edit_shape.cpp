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

int64_t square(int64_t v) { return v * v; }

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

// Calls inside(x, y, z) for every voxel of a brick, in 64-bit coordinates.
template <class Inside>
BrickMask mask_where(Int3 brick, const Inside& inside) {
  BrickMask mask{};
  for (uint32_t z = 0; z < 8; ++z)
    for (uint32_t y = 0; y < 8; ++y) {
      uint64_t row = 0;
      for (uint32_t x = 0; x < 8; ++x)
        row |= uint64_t(inside(int64_t(brick.x) * 8 + x, int64_t(brick.y) * 8 + y, int64_t(brick.z) * 8 + z)) << x;
      put_row(mask, y, z, row);
    }
  return mask;
}

BrickMask all_ones() {
  BrickMask mask;
  mask.fill(~uint64_t(0));
  return mask;
}

// Distance from `at` to the nearest and to the farthest of the cells [low, low + edge).
int64_t nearest(int64_t at, int64_t low, int64_t edge) {
  return at < low ? low - at : at >= low + edge ? at - (low + edge - 1) : 0;
}
int64_t farthest(int64_t at, int64_t low, int64_t edge) {
  return std::max(std::abs(at - low), std::abs(low + edge - 1 - at));
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
  shape.shape_ = Shape::connected;
  shape.a_ = shape.b_ = voxel;
  const uint8_t material = bricks.get(voxel);
  if (!material) return shape;
  Connection connection(bricks, material);
  if (!connection.run(voxel, most))
    return fail(ErrorCode::full, "edit: more than " + std::to_string(most) +
                                     " bricks of 8 x 8 x 8 voxels are connected there; edit a part of them by a shape");
  shape.listed_ = connection.take();
  for (const auto& [at, mask] : shape.listed_) shape.bounds_ = united(shape.bounds_, voxel_bounds(at, mask));
  return shape;
}

Result<EditShape> EditShape::create(const Edit& edit) {
  if (edit.shape == Shape::connected) {
    EditShape shape;
    shape.shape_ = edit.shape;
    shape.a_ = shape.b_ = edit.a;
    shape.bounds_ = {edit.a, edit.a};
    return shape;
  }
  const bool round = edit.shape != Shape::box;
  if (round && !(edit.radius >= 0 && edit.radius <= kMostEditRadius))
    return fail(ErrorCode::invalid_argument, "edit: the radius must be between 0 and " +
                                                 std::to_string(kMostEditRadius) + " voxels, not " +
                                                 std::to_string(edit.radius));
  EditShape shape;
  shape.shape_ = edit.shape;
  shape.a_ = edit.a;
  shape.b_ = edit.shape == Shape::sphere ? edit.a : edit.b;
  shape.radius_ = round ? edit.radius : 0;
  shape.radius2_ = floor_of_square_times(shape.radius_, 1);

  const auto reach = int64_t(std::floor(shape.radius_));
  const int64_t a[3] = {shape.a_.x, shape.a_.y, shape.a_.z}, b[3] = {shape.b_.x, shape.b_.y, shape.b_.z};
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
    shape.segment2_ += square(b[i] - a[i]);
  }
  shape.bounds_ = {{int32_t(low[0]), int32_t(low[1]), int32_t(low[2])},
                   {int32_t(high[0]), int32_t(high[1]), int32_t(high[2])}};
  if (edit.shape == Shape::line) {
    if (edit.radius > 0) shape.cross2_ = floor_of_square_times(edit.radius, uint64_t(shape.segment2_));
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

bool EditShape::in_capsule(int64_t x, int64_t y, int64_t z) const {
  const int64_t v[3] = {x - a_.x, y - a_.y, z - a_.z};
  const int64_t d[3] = {int64_t(b_.x) - a_.x, int64_t(b_.y) - a_.y, int64_t(b_.z) - a_.z};
  const int64_t along = v[0] * d[0] + v[1] * d[1] + v[2] * d[2];
  if (along <= 0) return square(v[0]) + square(v[1]) + square(v[2]) <= radius2_;
  if (along >= segment2_) return square(v[0] - d[0]) + square(v[1] - d[1]) + square(v[2] - d[2]) <= radius2_;
  // Between the ends: distance^2 = |v x d|^2 / |d|^2. The bound is at most 4096^2 * 3 * 2^30 < 2^56, so a component
  // beyond 2^29 decides, and squares of smaller ones fit.
  const int64_t c[3] = {v[1] * d[2] - v[2] * d[1], v[2] * d[0] - v[0] * d[2], v[0] * d[1] - v[1] * d[0]};
  constexpr int64_t kFar = int64_t(1) << 29;
  if (std::abs(c[0]) > kFar || std::abs(c[1]) > kFar || std::abs(c[2]) > kFar) return false;
  return square(c[0]) + square(c[1]) + square(c[2]) <= cross2_;
}

bool EditShape::holds(Int3 brick) const {
  const int64_t low[3] = {int64_t(brick.x) * 8, int64_t(brick.y) * 8, int64_t(brick.z) * 8};
  if (shape_ == Shape::box)
    return bounds_.min.x <= low[0] && bounds_.min.y <= low[1] && bounds_.min.z <= low[2] &&
           bounds_.max.x >= low[0] + 7 && bounds_.max.y >= low[1] + 7 && bounds_.max.z >= low[2] + 7;
  return shape_ == Shape::sphere &&
         square(farthest(a_.x, low[0], 8)) + square(farthest(a_.y, low[1], 8)) + square(farthest(a_.z, low[2], 8)) <=
             radius2_;
}

BrickMask EditShape::mask(Int3 brick) const {
  if (is_listed()) {
    const auto found = std::lower_bound(listed_.begin(), listed_.end(), brick,
                                        [](const auto& listed, Int3 at) { return listed.first < at; });
    return found != listed_.end() && found->first == brick ? found->second : BrickMask{};
  }
  const int64_t low[3] = {int64_t(brick.x) * 8, int64_t(brick.y) * 8, int64_t(brick.z) * 8};
  if (holds(brick)) return all_ones();
  if (shape_ == Shape::box) {
    return mask_where(brick, [&](int64_t x, int64_t y, int64_t z) {
      return x >= bounds_.min.x && x <= bounds_.max.x && y >= bounds_.min.y && y <= bounds_.max.y &&
             z >= bounds_.min.z && z <= bounds_.max.z;
    });
  }
  if (!meets_cube(brick.x, brick.y, brick.z, 0)) return {};
  if (shape_ == Shape::sphere) {
    int64_t across[8];
    for (int64_t x = 0; x < 8; ++x) across[x] = square(low[0] + x - a_.x);
    BrickMask mask{};
    for (uint32_t z = 0; z < 8; ++z)
      for (uint32_t y = 0; y < 8; ++y) {
        const int64_t left = radius2_ - square(low[1] + y - a_.y) - square(low[2] + z - a_.z);
        uint64_t row = 0;
        for (uint32_t x = 0; x < 8; ++x) row |= uint64_t(across[x] <= left) << x;
        put_row(mask, y, z, row);
      }
    return mask;
  }
  // A capsule is convex: if its corners are inside, the whole brick is.
  bool all = true;
  for (uint32_t corner = 0; corner < 8 && all; ++corner)
    all = in_capsule(low[0] + (corner & 1u) * 7, low[1] + (corner >> 1 & 1u) * 7, low[2] + (corner >> 2) * 7);
  if (all) return all_ones();
  return mask_where(brick, [&](int64_t x, int64_t y, int64_t z) { return in_capsule(x, y, z); });
}

// The cube of 2^level bricks along each axis that begins at the given brick.
bool EditShape::meets_cube(int64_t brick_x, int64_t brick_y, int64_t brick_z, uint32_t level) const {
  const int64_t low[3] = {brick_x * 8, brick_y * 8, brick_z * 8}, edge = int64_t(8) << level;
  const int64_t from[3] = {bounds_.min.x, bounds_.min.y, bounds_.min.z},
                to[3] = {bounds_.max.x, bounds_.max.y, bounds_.max.z};
  for (size_t i = 0; i < 3; ++i)
    if (low[i] > to[i] || low[i] + edge <= from[i]) return false;
  if (shape_ == Shape::box) return true;
  if (shape_ == Shape::sphere)
    return square(nearest(a_.x, low[0], edge)) + square(nearest(a_.y, low[1], edge)) +
               square(nearest(a_.z, low[2], edge)) <=
           radius2_;
  // Compares a ball around the cube's cells with the segment. One voxel of margin covers rounding, and the thin line,
  // which deviates from its segment by less than that.
  const double half = double(edge - 1) / 2;
  double v[3], d[3], along = 0;
  const int64_t a[3] = {a_.x, a_.y, a_.z}, b[3] = {b_.x, b_.y, b_.z};
  for (size_t i = 0; i < 3; ++i) {
    v[i] = double(low[i] - a[i]) + half;
    d[i] = double(b[i] - a[i]);
    along += v[i] * d[i];
  }
  const double t = segment2_ ? std::clamp(along / double(segment2_), 0.0, 1.0) : 0.0;
  double distance2 = 0;
  for (size_t i = 0; i < 3; ++i) distance2 += (v[i] - t * d[i]) * (v[i] - t * d[i]);
  const double near_enough = radius_ + half * 1.7320508075688773 + 1;
  return distance2 <= near_enough * near_enough;
}

bool EditShape::collect(int64_t brick_x, int64_t brick_y, int64_t brick_z, uint32_t level, size_t most,
                        std::vector<Int3>& out) const {
  if (!meets_cube(brick_x, brick_y, brick_z, level)) return true;
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
  const Int3 first = brick_of(bounds_.min), last = brick_of(bounds_.max);
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
        int64_t low = bounds_.min.z, high = bounds_.max.z, whole_low = low, whole_high = high;
        if (shape_ == Shape::sphere) {
          const int64_t left = radius2_ - square(nearest(a_.x, x * 8, 8)) - square(nearest(a_.y, y * 8, 8));
          const int64_t whole = radius2_ - square(farthest(a_.x, x * 8, 8)) - square(farthest(a_.y, y * 8, 8));
          if (left < 0) continue;
          low = a_.z - root(left);
          high = a_.z + root(left);
          whole_low = a_.z - (whole < 0 ? -1 : root(whole));
          whole_high = a_.z + (whole < 0 ? -1 : root(whole));
        } else if (bounds_.min.x > x * 8 || bounds_.max.x < x * 8 + 7 || bounds_.min.y > y * 8 ||
                   bounds_.max.y < y * 8 + 7) {
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
