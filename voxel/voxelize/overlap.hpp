// SPDX-License-Identifier: Apache-2.0
// overlap.hpp - finds the cells of a block of up to 8^3 that a triangle touches, and those whose crosshair it meets:
// exact tests in integers, the same code for host threads and CUDA.
//
// The walk over a mesh is elsewhere (voxelize/host.cpp, voxelize/cuda.cu). The tests use no floating point, and no
// memory except the caller's.
// Numbers: coordinates are in units of 2^-16 voxel, at most 2^30 apart (16384 voxels). Products of two fit 62 bits. The
// plane test multiplies three, and uses 128 bits if the triangle is longer than 2^20 (16 voxels).
//
// Paper: T. Akenine-Moeller, "Fast 3D Triangle-Box Overlap Testing", 2001, for the thirteen axes. Our change: each of
// the nine edge axes depends on two coordinates only, so it is tested once per cell of an 8x8 shadow of the block. The
// three shadows are intersected row by row, and the plane is tested for the remaining cells. The test works for
// degenerate triangles too: a zero normal separates nothing, and the edge axes are those of a segment.
// The crosshair (three segments through the cell's centre, from face to face) is the target of S. Laine, "A Topological
// Approach to Voxelization", 2013. It makes the voxels of a surface 6-separating: every step between face neighbours
// runs along two halves of such segments.
#pragma once

#include <cstdint>

#include "hashgrid/pairs/view.hpp"

namespace quarry::voxelize_detail {

constexpr int kFractionBits = 16;
constexpr int64_t kUnit = int64_t(1) << kFractionBits;  // one voxel
__extension__ typedef __int128 Int128;

struct FixedTriangle {
  int32_t v[3][3];  // vertex, axis; all are odd
};

struct CellRange {  // inclusive
  int32_t lo[3], hi[3];
};

template <class T>
QRY_HD inline T lesser(T a, T b) {
  return b < a ? b : a;
}
template <class T>
QRY_HD inline T greater(T a, T b) {
  return a < b ? b : a;
}

// Cells of edge 2^shift that the triangle's bounding box touches. Vertices are odd and faces even, so there is no tie.
QRY_HD inline CellRange cells_of(const FixedTriangle& t, int shift) {
  CellRange r;
  for (int k = 0; k < 3; ++k) {
    r.lo[k] = lesser(t.v[0][k], lesser(t.v[1][k], t.v[2][k])) >> shift;
    r.hi[k] = greater(t.v[0][k], greater(t.v[1][k], t.v[2][k])) >> shift;
  }
  return r;
}
// The cells of `range` that lie in the block of 8^3 cells whose first is `first`.
QRY_HD inline CellRange clipped_to_block(CellRange range, const int32_t first[3]) {
  for (int k = 0; k < 3; ++k) {
    range.lo[k] = greater(range.lo[k], first[k]);
    range.hi[k] = lesser(range.hi[k], first[k] + 7);
  }
  return range;
}

// Row [z * 8 + y], bit x: the cell lo + (x, y, z) is touched. Rows outside the range are not written.
struct BlockRows {
  uint8_t row[64];
};

// Computes the shadow on the plane of axes (a, b). Bit i of shadow[j] is set if none of the three edge axes in that
// plane separates the cell (lo[a] + i, lo[b] + j) from the triangle.
QRY_HD inline void cast_shadow(const int64_t v[3][3], int a, int b, int count_a, int count_b, int64_t size,
                               uint8_t shadow[8]) {
  for (int j = 0; j < count_b; ++j) shadow[j] = uint8_t((1u << count_a) - 1);
  for (int e = 0; e < 3; ++e) {
    const int64_t* p = v[e];
    const int64_t* q = v[(e + 1) % 3];
    const int64_t* r = v[(e + 2) % 3];
    const int64_t da = q[b] - p[b], db = p[a] - q[a];  // the edge's normal in the plane
    const int64_t on_edge = da * p[a] + db * p[b], opposite = da * r[a] + db * r[b];
    const int64_t low = lesser(on_edge, opposite), high = greater(on_edge, opposite);
    const int64_t step_a = da * size, step_b = db * size;
    const int64_t from = low - greater<int64_t>(step_a, 0) - greater<int64_t>(step_b, 0);
    const int64_t to = high - lesser<int64_t>(step_a, 0) - lesser<int64_t>(step_b, 0);
    int64_t base = 0;
    for (int j = 0; j < count_b; ++j, base += step_b) {
      int64_t at = base;
      uint32_t bits = 0;
      for (int i = 0; i < count_a; ++i, at += step_a) bits |= uint32_t(from <= at && at <= to) << i;
      shadow[j] = uint8_t(shadow[j] & bits);
    }
  }
}

QRY_HD inline void normal_of(const int64_t v[3][3], int64_t n[3]) {
  const int64_t e0[3] = {v[1][0] - v[0][0], v[1][1] - v[0][1], v[1][2] - v[0][2]};
  const int64_t e1[3] = {v[2][0] - v[0][0], v[2][1] - v[0][1], v[2][2] - v[0][2]};
  n[0] = e0[1] * e1[2] - e0[2] * e1[1];
  n[1] = e0[2] * e1[0] - e0[0] * e1[2];
  n[2] = e0[0] * e1[1] - e0[1] * e1[0];
}

// Computes the triangle's corners relative to the corner of the cell `lo`. Returns the largest magnitude among them.
QRY_HD inline int64_t from_cell(const FixedTriangle& t, int shift, const int32_t lo[3], int64_t v[3][3]) {
  int64_t longest = 0;
  for (int i = 0; i < 3; ++i)
    for (int k = 0; k < 3; ++k) {
      v[i][k] = int64_t(t.v[i][k]) - (int64_t(lo[k]) << shift);
      longest = greater(longest, v[i][k] < 0 ? -v[i][k] : v[i][k]);
    }
  return longest;
}
// Whether the plane's arithmetic fits 64 bits. |n| <= 2 (2 longest)^2, and it is multiplied in three products with at
// most longest or 8 cells, whichever is more.
QRY_HD inline bool fits_64(int64_t longest, int64_t size) { return greater(longest, size * 8) <= (int64_t(1) << 19); }

template <class Wide>
QRY_HD inline void cut_by_plane(const int64_t v[3][3], const int count[3], int64_t size, BlockRows& out) {
  int64_t n[3];
  normal_of(v, n);
  const Wide d = Wide(n[0]) * v[0][0] + Wide(n[1]) * v[0][1] + Wide(n[2]) * v[0][2];
  Wide step[3], from = d, to = d;
  for (int k = 0; k < 3; ++k) {
    step[k] = Wide(n[k]) * size;
    if (step[k] > 0) from -= step[k];
    else to -= step[k];
  }
  Wide base_z = 0;
  for (int z = 0; z < count[2]; ++z, base_z += step[2]) {
    Wide base = base_z;
    for (int y = 0; y < count[1]; ++y, base += step[1]) {
      const uint32_t bits = out.row[z * 8 + y];
      if (bits == 0) continue;
      uint32_t kept = 0;
      Wide at = base;
      for (int x = 0; x < count[0]; ++x, at += step[0]) kept |= uint32_t(from <= at && at <= to) << x;
      out.row[z * 8 + y] = uint8_t(bits & kept);
    }
  }
}

// Tests the cells of `range` (at most 8 on each axis, inside the triangle's bounding box) of edge 2^shift.
QRY_HD inline void overlap_block(const FixedTriangle& t, int shift, const CellRange& range, BlockRows& out) {
  const int count[3] = {range.hi[0] - range.lo[0] + 1, range.hi[1] - range.lo[1] + 1, range.hi[2] - range.lo[2] + 1};
  if (count[0] == 1 && count[1] == 1 && count[2] == 1) {
    // The triangle may still miss the only cell, because the range may be a part of the bounding box. In most cases a
    // vertex inside the cell decides.
    for (const auto& vertex : t.v)
      if (vertex[0] >> shift == range.lo[0] && vertex[1] >> shift == range.lo[1] && vertex[2] >> shift == range.lo[2]) {
        out.row[0] = 1;
        return;
      }
  }
  const int64_t size = int64_t(1) << shift;
  int64_t v[3][3];
  const int64_t longest = from_cell(t, shift, range.lo, v);
  uint8_t yz[8], xz[8], xy[8];
  cast_shadow(v, 1, 2, count[1], count[2], size, yz);
  cast_shadow(v, 0, 2, count[0], count[2], size, xz);
  cast_shadow(v, 0, 1, count[0], count[1], size, xy);
  for (int z = 0; z < count[2]; ++z)
    for (int y = 0; y < count[1]; ++y) out.row[z * 8 + y] = (yz[z] >> y & 1) ? uint8_t(xz[z] & xy[y]) : uint8_t(0);
  if (fits_64(longest, size)) cut_by_plane<int64_t>(v, count, size, out);
  else cut_by_plane<Int128>(v, count, size, out);
}

// Finds the columns of cells along axis k whose centre lines pass through the triangle, seen along k. Bit i of
// columns[j] is the column (lo[a] + i, lo[b] + j), where a < b are the other two axes. Vertices are odd and centres
// even, so only edges can be hit exactly. If `closed`, an edge belongs to the triangle. Else it belongs to one of the
// two triangles that share it: the one that the line meets after an infinitely small step along a and an infinitely
// smaller one along b. So a line meets a closed surface an even number of times.
QRY_HD inline void columns_through(const int64_t v[3][3], int a, int b, int count_a, int count_b, bool closed,
                                   uint8_t columns[8]) {
  for (int j = 0; j < count_b; ++j) columns[j] = uint8_t((1u << count_a) - 1);
  for (int e = 0; e < 3; ++e) {
    const int64_t* p = v[e];
    const int64_t* q = v[e == 2 ? 0 : e + 1];
    const int64_t* r = v[e == 0 ? 2 : e - 1];
    int64_t da = q[b] - p[b], db = p[a] - q[a];
    int64_t level = da * p[a] + db * p[b];
    if (da * r[a] + db * r[b] < level) {  // makes the triangle's side of the edge the greater one
      da = -da;
      db = -db;
      level = -level;
    }
    const bool with_edge = closed || da > 0 || (da == 0 && db > 0);
    for (int j = 0; j < count_b; ++j) {
      uint32_t bits = 0;
      for (int i = 0; i < count_a; ++i) {
        const int64_t at = da * (i * kUnit + kUnit / 2) + db * (j * kUnit + kUnit / 2);
        bits |= uint32_t(at > level || (with_edge && at == level)) << i;
      }
      columns[j] = uint8_t(columns[j] & bits);
    }
  }
}

// Calls visit(axis k, cells (i, j) of the block on the other two axes, the plane's height there) for each column whose
// centre line passes through the triangle. The height is value(c) = base + n * c at the point c units (2^-16 voxel)
// along k from the block. It is 0 on the plane, and n is not 0.
template <class Wide, class Visit>
QRY_HD inline void visit_columns(const int64_t v[3][3], const int count[3], bool closed, Visit&& visit) {
  int64_t n[3];
  normal_of(v, n);
  const Wide d = Wide(n[0]) * v[0][0] + Wide(n[1]) * v[0][1] + Wide(n[2]) * v[0][2];
  for (int k = 0; k < 3; ++k) {
    if (n[k] == 0) continue;  // the triangle is edge-on here; the other axes see it
    const int a = k == 0 ? 1 : 0, b = k == 2 ? 1 : 2;
    uint8_t columns[8];
    columns_through(v, a, b, count[a], count[b], closed, columns);
    for (int j = 0; j < count[b]; ++j)
      for (int i = 0; i < count[a]; ++i)
        if (columns[j] >> i & 1)
          visit(k, i, j, Wide(n[a]) * (i * kUnit + kUnit / 2) + Wide(n[b]) * (j * kUnit + kUnit / 2) - d, n[k]);
  }
}

template <class Wide>
QRY_HD inline void cut_by_crosshair(const int64_t v[3][3], const int count[3], BlockRows& out) {
  for (int z = 0; z < count[2]; ++z)
    for (int y = 0; y < count[1]; ++y) out.row[z * 8 + y] = 0;
  visit_columns<Wide>(v, count, true, [&](int k, int i, int j, Wide base, int64_t n) {
    for (int c = 0; c < count[k]; ++c) {
      const Wide from = base + Wide(n) * (c * kUnit), to = from + Wide(n) * kUnit;
      if ((from > 0 && to > 0) || (from < 0 && to < 0)) continue;
      const int x = k == 0 ? c : i, y = k == 1 ? c : k == 0 ? i : j, z = k == 2 ? c : j;
      out.row[z * 8 + y] = uint8_t(out.row[z * 8 + y] | 1u << x);
    }
  });
}

// Finds the cells of `range` (of one voxel each, at most 8 on each axis) with a crosshair segment that meets the
// triangle at one point. The triangle and the segment are closed. A triangle that contains a piece of a segment (seen
// edge-on) does not meet it.
QRY_HD inline void crosshair_block(const FixedTriangle& t, const CellRange& range, BlockRows& out) {
  const int count[3] = {range.hi[0] - range.lo[0] + 1, range.hi[1] - range.lo[1] + 1, range.hi[2] - range.lo[2] + 1};
  int64_t v[3][3];
  if (fits_64(from_cell(t, kFractionBits, range.lo, v), kUnit)) cut_by_crosshair<int64_t>(v, count, out);
  else cut_by_crosshair<Int128>(v, count, out);
}

// A visitor of one type for any callee. Otherwise the recursion below would make a new type for each level.
struct CellCall {
  const void* self;
  void (*run)(const void*, int32_t, int32_t, int32_t);
  void operator()(int32_t x, int32_t y, int32_t z) const { run(self, x, y, z); }
};

// Calls visit(x, y, z) for every cell of edge 2^shift in `range` that the triangle touches.
template <class Visit>
void visit_cells(const FixedTriangle& t, int shift, const CellRange& range, Visit&& visit) {
  bool small = true;
  for (int k = 0; k < 3; ++k) small = small && range.hi[k] - range.lo[k] < 8;
  if (small) {
    BlockRows rows;
    overlap_block(t, shift, range, rows);
    for (int z = 0; z <= range.hi[2] - range.lo[2]; ++z)
      for (int y = 0; y <= range.hi[1] - range.lo[1]; ++y)
        for (uint32_t bits = rows.row[z * 8 + y]; bits; bits &= bits - 1)
          visit(range.lo[0] + __builtin_ctz(bits), range.lo[1] + y, range.lo[2] + z);
    return;
  }
  CellRange coarse;
  for (int k = 0; k < 3; ++k) {
    coarse.lo[k] = range.lo[k] >> 3;
    coarse.hi[k] = range.hi[k] >> 3;
  }
  const auto inside = [&](int32_t x, int32_t y, int32_t z) {
    const int32_t c[3] = {x, y, z};
    CellRange fine;
    for (int k = 0; k < 3; ++k) {
      fine.lo[k] = std::max(range.lo[k], c[k] * 8);
      fine.hi[k] = std::min(range.hi[k], c[k] * 8 + 7);
    }
    BlockRows rows;
    overlap_block(t, shift, fine, rows);
    for (int fz = 0; fz <= fine.hi[2] - fine.lo[2]; ++fz)
      for (int fy = 0; fy <= fine.hi[1] - fine.lo[1]; ++fy)
        for (uint32_t bits = rows.row[fz * 8 + fy]; bits; bits &= bits - 1)
          visit(fine.lo[0] + __builtin_ctz(bits), fine.lo[1] + fy, fine.lo[2] + fz);
  };
  visit_cells(t, shift + 3, coarse, CellCall{&inside, [](const void* self, int32_t x, int32_t y, int32_t z) {
                                               (*static_cast<const decltype(inside)*>(self))(x, y, z);
                                             }});
}

}  // namespace quarry::voxelize_detail
