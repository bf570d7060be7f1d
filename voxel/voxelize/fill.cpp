// SPDX-License-Identifier: Apache-2.0
// fill.cpp - finds crossings of voxel centre lines in exact integers, sorts them by line, and sums them up to inside or
// outside. The three axes vote.
#include "voxel/voxelize/fill.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace quarry::voxelize_detail {
namespace {

constexpr size_t kFillTrianglesPerTask = 2048;

// A crossing of a centre line. It counts +1 or -1 by direction, from the first voxel whose centre is not below it. It
// is one word, whose order groups lines: along x within a layer of bricks (each layer is swept once), along y and z
// over their whole length. Coordinates are local, 15 bits.
//   x: x >> 3 | y | z | x & 7 | down       y: x | z | y | down       z: x | y | z | down
using Crossing = uint64_t;
Crossing crossing_of(int axis, const uint32_t at[3], bool down) {
  if (axis == 0)
    return uint64_t(at[0] >> 3) << 34 | uint64_t(at[1]) << 19 | uint64_t(at[2]) << 4 | (at[0] & 7u) << 1 |
           uint64_t(down);
  return uint64_t(at[0]) << 31 | uint64_t(axis == 1 ? at[2] : at[1]) << 16 | uint64_t(at[axis]) << 1 | uint64_t(down);
}
int direction(Crossing c) { return c & 1 ? -1 : 1; }

// The crossings of one triangle inside one block of cells. Each belongs to the cell that contains it (a cell includes
// its lower face), so it belongs to one block only.
template <class Wide>
void find_crossings(const CellRange& range, const int64_t v[3][3], const int32_t base[3],
                    std::array<std::vector<Crossing>, 3>& out) {
  const int count[3] = {range.hi[0] - range.lo[0] + 1, range.hi[1] - range.lo[1] + 1, range.hi[2] - range.lo[2] + 1};
  visit_columns<Wide>(v, count, false, [&](int k, int i, int j, Wide height, int64_t n) {
    const bool down = n < 0;
    if (down) {
      height = -height;
      n = -n;
    }
    // height + n c rises with c. It is 0 at the crossing.
    for (int c = 0; c < count[k]; ++c) {
      const Wide from = height + Wide(n) * (c * kUnit);
      if (from > 0 || from + Wide(n) * kUnit <= 0) continue;
      const int first = from + Wide(n) * (kUnit / 2) >= 0 ? c : c + 1;
      const int32_t cell[3] = {k == 0 ? first : i, k == 1 ? first : k == 0 ? i : j, k == 2 ? first : j};
      uint32_t at[3];
      for (int a = 0; a < 3; ++a) at[a] = uint32_t(range.lo[a] + cell[a] - base[a]);
      out[size_t(k)].push_back(crossing_of(k, at, down));
      return;
    }
  });
}

// The words of a layer: one per x. Bit y | z << 3 is the voxel in its brick.
using Layer = std::vector<uint64_t>;

BrickMask brick_mask(const uint64_t* words) {
  BrickMask mask{};
  for (int x = 0; x < 8; ++x)
    for (uint64_t bits = words[x]; bits; bits &= bits - 1) {
      const int at = std::countr_zero(bits);
      const uint32_t index = voxel_index({x, at & 7, at >> 3});
      mask[index >> 6] |= uint64_t(1) << (index & 63u);
    }
  return mask;
}

// A byte with bits [from, to) set.
uint64_t run_of(int from, int to) { return ((1u << to) - 1u) & ~((1u << from) - 1u); }

}  // namespace

struct InsideLayers::State {
  VoxelizeJob& job;
  const FixedMesh& mesh;
  FillRule rule;
  int32_t base[3];                                 // of local coordinates, in voxels; whole bricks
  int32_t bricks[3];                               // of the bounds
  std::array<std::vector<Crossing>, 3> crossings;  // of the layers that are loaded
  std::array<size_t, 3> cursor{};
  // Whether any line of this axis has no vote. Along y and z, only lines of the loaded layers count.
  std::array<bool, 3> holes{};
  int32_t layer = 0, loaded = 0;
  std::vector<Crossing> later;   // along x, found in a layer's last voxels but counted from the next layer on
  std::vector<int32_t> count_x;  // for winding: crossings so far of each line along x, by y and z
  std::vector<uint64_t> open_x;  // lines along x that have no vote, as bits of a brick's side; empty if there are none
  std::vector<uint64_t> now_x;   // lines along x that are inside after the layers so far, in the same form
  std::array<Layer, 3> yes, none;  // votes for inside; lines without a vote (empty if there are none)

  bool inside(int32_t count) const { return rule == FillRule::parity ? count & 1 : count != 0; }
  bool votes(int32_t total) const { return rule == FillRule::parity ? !(total & 1) : total == 0; }
  size_t sides() const { return size_t(bricks[1]) * size_t(bricks[2]); }
  size_t side(uint32_t y, uint32_t z) const { return size_t(y >> 3) * size_t(bricks[2]) + (z >> 3); }
  size_t line_x(uint32_t y, uint32_t z) const { return size_t(y) * size_t(bricks[2]) * 8 + z; }
  static uint64_t bit_x(uint32_t y, uint32_t z) { return uint64_t(1) << ((y & 7u) | (z & 7u) << 3); }

  // Lines along x are swept layer by layer, so their final count is needed before the first layer. Seen along x, every
  // column of a triangle has one crossing, wherever it is.
  void find_open_x() {
    std::vector<uint64_t> open(sides());
    if (rule == FillRule::winding) count_x.assign(sides() * 64, 0);
    for (size_t t = 0; t < job.mesh.triangle_count(); ++t) {
      if (t % kFillTrianglesPerTask == 0 && !job.going()) return;
      const FixedTriangle f = mesh.triangle(t);
      const CellRange range = cells_of(f, kFractionBits);
      int64_t v[3][3], n[3];
      from_cell(f, kFractionBits, range.lo, v);
      normal_of(v, n);
      if (n[0] == 0) continue;
      for (int32_t y = range.lo[1]; y <= range.hi[1]; y = (y & ~7) + 8)
        for (int32_t z = range.lo[2]; z <= range.hi[2]; z = (z & ~7) + 8) {
          const int32_t at[3] = {range.lo[0], y, z};
          const int count_y = std::min(range.hi[1], y | 7) - y + 1, count_z = std::min(range.hi[2], z | 7) - z + 1;
          uint8_t columns[8];
          from_cell(f, kFractionBits, at, v);
          columns_through(v, 1, 2, count_y, count_z, false, columns);
          for (int j = 0; j < count_z; ++j)
            for (uint32_t bits = columns[j]; bits; bits &= bits - 1) {
              const auto line_y = uint32_t(y + std::countr_zero(bits) - base[1]), line_z = uint32_t(z + j - base[2]);
              if (rule == FillRule::winding) count_x[line_x(line_y, line_z)] += n[0] < 0 ? -1 : 1;
              else open[side(line_y, line_z)] ^= bit_x(line_y, line_z);
            }
        }
    }
    for (size_t line = 0; line < count_x.size(); ++line)
      if (std::exchange(count_x[line], 0) != 0) {
        const auto y = uint32_t(line / (size_t(bricks[2]) * 8)), z = uint32_t(line % (size_t(bricks[2]) * 8));
        open[side(y, z)] |= bit_x(y, z);
      }
    holes[0] = std::ranges::any_of(open, [](uint64_t word) { return word != 0; });
    if (holes[0]) open_x = std::move(open);
  }

  void prepare() {
    find_open_x();
    now_x.assign(sides(), 0);
    for (size_t axis = 0; axis < 3; ++axis) yes[axis].resize(sides() * 8);
    if (holes[0]) none[0].resize(sides() * 8);
  }

  void load(const uint32_t* triangles, size_t count, int32_t layers) {
    const int32_t first = base[0] / 8 + loaded;
    loaded += layers;
    std::vector<std::array<std::vector<Crossing>, 3>> found((count + kFillTrianglesPerTask - 1) /
                                                            kFillTrianglesPerTask);
    job.in_parallel(0.94, 0.95, count, kFillTrianglesPerTask, [&](size_t begin, size_t end) {
      auto& out = found[begin / kFillTrianglesPerTask];
      for (size_t i = begin; i < end; ++i) {
        const FixedTriangle f = mesh.triangle(triangles ? triangles[i] : i);
        CellRange touched = cells_of(f, kBrickShift);
        touched.lo[0] = std::max(touched.lo[0], first);
        touched.hi[0] = std::min(touched.hi[0], first + layers - 1);
        if (touched.lo[0] > touched.hi[0]) continue;
        visit_cells(f, kBrickShift, touched, [&](int32_t x, int32_t y, int32_t z) {
          const int32_t corner[3] = {x * 8, y * 8, z * 8};
          const CellRange range = clipped_to_block(cells_of(f, kFractionBits), corner);
          int64_t v[3][3];
          if (fits_64(from_cell(f, kFractionBits, range.lo, v), kUnit)) find_crossings<int64_t>(range, v, base, out);
          else find_crossings<Int128>(range, v, base, out);
        });
      }
    });
    for (size_t axis = 0; axis < 3; ++axis) {
      auto& all = crossings[axis];
      all.clear();
      cursor[axis] = 0;
      size_t total = axis == 0 ? later.size() : 0;
      for (const auto& part : found) total += part[axis].size();
      if (all.capacity() < total) std::vector<Crossing>().swap(all);
      all.reserve(total);
      if (axis == 0) all = later;
      for (auto& part : found) {
        all.insert(all.end(), part[axis].begin(), part[axis].end());
        std::vector<Crossing>().swap(part[axis]);
      }
      job.sort(all, 0.95, 0.96);
    }
    later.clear();
    auto& along_x = crossings[0];
    while (!along_x.empty() && int32_t(along_x.back() >> 34) >= loaded) {
      later.push_back(along_x.back());
      along_x.pop_back();
    }
    for (size_t axis = 1; axis < 3; ++axis) {
      holes[axis] = false;
      for_lines(axis, 0, crossings[axis].size(), [&](size_t begin, size_t end) {
        int32_t total = 0;
        for (size_t i = begin; i < end; ++i) total += direction_of(crossings[axis][i]);
        holes[axis] = holes[axis] || !votes(total);
      });
      if (holes[axis]) none[axis].resize(sides() * 8);
    }
  }

  // The number that one crossing adds to its line's count.
  int32_t direction_of(Crossing c) const { return rule == FillRule::parity ? 1 : direction(c); }

  // Calls body(begin, end) for each line's crossings among [from, to) of an axis that is not x.
  template <class Body>
  void for_lines(size_t axis, size_t from, size_t to, Body&& body) const {
    const auto& all = crossings[axis];
    for (size_t begin = from; begin < to;) {
      size_t end = begin + 1;
      while (end < to && all[end] >> 16 == all[begin] >> 16) ++end;
      body(begin, end);
      begin = end;
    }
  }

  void vote_x() {
    for (size_t s = 0; s < now_x.size(); ++s) {
      for (size_t x = 0; x < 8; ++x) yes[0][s * 8 + x] = now_x[s];
      if (holes[0])
        for (size_t x = 0; x < 8; ++x) none[0][s * 8 + x] = open_x[s];
    }
    const auto& all = crossings[0];
    for (size_t& i = cursor[0]; i < all.size() && int32_t(all[i] >> 34) == layer; ++i) {
      const uint32_t y = uint32_t(all[i] >> 19) & 0x7FFF, z = uint32_t(all[i] >> 4) & 0x7FFF;
      const size_t s = side(y, z);
      const uint64_t bit = bit_x(y, z);
      const bool in = rule == FillRule::parity ? !(now_x[s] & bit) : (count_x[line_x(y, z)] += direction(all[i])) != 0;
      const auto set = [&](uint64_t& word) { word = in ? word | bit : word & ~bit; };
      for (size_t x = all[i] >> 1 & 7; x < 8; ++x) set(yes[0][s * 8 + x]);
      set(now_x[s]);
    }
  }

  // Sets the voxels [from, to) of a line along y (at x, z) or z (at x, y).
  void fill_run(size_t axis, Layer& words, uint32_t x, uint32_t other, int32_t from, int32_t to) const {
    for (int32_t b = from >> 3; b * 8 < to; ++b) {
      const uint64_t run = run_of(std::max(from - b * 8, 0), std::min(to - b * 8, 8));
      if (axis == 1) {
        words[side(uint32_t(b) * 8, other) * 8 + (x & 7u)] |= run << ((other & 7u) * 8);
      } else {
        uint64_t spread = 0;  // bit z to bit 8 z
        for (int z = 0; z < 8; ++z) spread |= (run >> z & 1) << (8 * z);
        words[side(other, uint32_t(b) * 8) * 8 + (x & 7u)] |= spread << (other & 7u);
      }
    }
  }

  void vote(size_t axis) {
    std::fill(yes[axis].begin(), yes[axis].end(), 0);
    std::fill(none[axis].begin(), none[axis].end(), 0);
    const auto& all = crossings[axis];
    const size_t from = cursor[axis];
    size_t to = from;
    while (to < all.size() && int32_t(all[to] >> 34) == layer) ++to;
    cursor[axis] = to;
    const int32_t length = bricks[axis] * 8;
    for_lines(axis, from, to, [&](size_t begin, size_t end) {
      const auto x = uint32_t(all[begin] >> 31), other = uint32_t(all[begin] >> 16) & 0x7FFF;
      int32_t total = 0;
      for (size_t i = begin; i < end; ++i) total += direction_of(all[i]);
      if (!votes(total)) {
        fill_run(axis, none[axis], x, other, 0, length);
        return;
      }
      int32_t count = 0, since = 0;
      for (size_t i = begin; i < end; ++i) {
        const auto at = int32_t(all[i] >> 1 & 0x7FFF);
        if (inside(count) && at > since) fill_run(axis, yes[axis], x, other, since, std::min(at, length));
        count += direction_of(all[i]);
        since = at;
      }
    });
  }

  InsideLayer counted_votes() const {
    InsideLayer out;
    for (int32_t y = 0; y < bricks[1]; ++y)
      for (int32_t z = 0; z < bricks[2]; ++z) {
        const size_t at = (size_t(y) * size_t(bricks[2]) + size_t(z)) * 8;
        uint64_t words[8], any = 0, full = ~uint64_t(0);
        for (size_t x = 0; x < 8; ++x) {
          uint64_t y_[3], n_[3];
          for (size_t a = 0; a < 3; ++a) {
            const uint64_t silent = holes[a] ? none[a][at + x] : 0;
            y_[a] = yes[a][at + x] & ~silent;
            n_[a] = ~yes[a][at + x] & ~silent;
          }
          // A voxel is inside with two or three votes for, or with one for and none against.
          words[x] = (y_[0] & y_[1]) | (y_[0] & y_[2]) | (y_[1] & y_[2]) |
                     ((y_[0] | y_[1] | y_[2]) & ~(n_[0] | n_[1] | n_[2]));
          any |= words[x];
          full &= words[x];
        }
        if (!any) continue;
        const Int3 brick{base[0] / 8 + layer, base[1] / 8 + y, base[2] / 8 + z};
        const bool whole = full == ~uint64_t(0);
        out.bricks.emplace_back(brick, whole ? InsideLayer::kFull : uint32_t(out.masks.size()));
        if (!whole) out.masks.push_back(brick_mask(words));
      }
    return out;
  }
};

BrickMask InsideLayer::mask(uint32_t number) const {
  BrickMask full;
  full.fill(~uint64_t(0));
  return number == kFull ? full : masks[number];
}

InsideLayers::InsideLayers(VoxelizeJob& job, const FixedMesh& mesh, FillRule rule)
    : state_(new State{.job = job,
                       .mesh = mesh,
                       .rule = rule,
                       .base = {},
                       .bricks = {},
                       .crossings = {},
                       .later = {},
                       .count_x = {},
                       .open_x = {},
                       .now_x = {},
                       .yes = {},
                       .none = {}}) {
  const Box3 all = all_bricks(job);
  const int32_t low[3] = {all.min.x, all.min.y, all.min.z}, high[3] = {all.max.x, all.max.y, all.max.z};
  for (int k = 0; k < 3; ++k) {
    state_->base[k] = low[k] * 8;
    state_->bricks[k] = high[k] - low[k] + 1;
  }
  state_->prepare();
}
InsideLayers::~InsideLayers() = default;

int32_t InsideLayers::first() const { return state_->base[0] / 8; }
int32_t InsideLayers::count() const { return state_->bricks[0]; }

void InsideLayers::load(const uint32_t* triangles, size_t triangle_count, int32_t layers) {
  state_->load(triangles, triangle_count, layers);
}

InsideLayer InsideLayers::next() {
  state_->vote_x();
  state_->vote(1);
  state_->vote(2);
  auto out = state_->counted_votes();
  ++state_->layer;
  return out;
}

}  // namespace quarry::voxelize_detail
