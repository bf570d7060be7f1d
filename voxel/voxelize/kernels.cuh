// SPDX-License-Identifier: Apache-2.0
// kernels.cuh - the voxeliser's kernels: one thread a triangle, a pair of brick and triangle, a word of a brick's mask,
// or a voxel. The voxels and their colours are decided by code that the host runs too (voxelize/overlap.hpp,
// voxelize/texturing.hpp). Only the order of unsorted pairs depends on the order in which threads run. Launches and
// memory are in voxelize/cuda.cu.
#pragma once

#include <cstdint>

#include "voxel/voxelize/stage.hpp"

namespace quarry::voxelize_detail::kernels {

constexpr uint32_t kThreads = 128;
// The grid size of cells_of_cells, which strides over a list whose length only the device knows.
constexpr uint32_t kCellBlocks = 1024;
constexpr int kLevels = 4;  // cells of 1, 8, 64 and 512 bricks: 8 of the last span any world

__device__ inline uint32_t thread_index() { return blockIdx.x * kThreads + threadIdx.x; }

struct VertexFrame {
  double origin[3], scale;
  int32_t dims[3], shift[3];
};

__global__ void __launch_bounds__(kThreads)
    snap_vertices(const float* positions, uint32_t count, VertexFrame frame, int32_t* out) {
  const uint32_t i = thread_index();
  if (i >= count) return;
  for (int k = 0; k < 3; ++k)
    out[uint64_t(i) * 3 + k] =
        snapped(positions[uint64_t(i) * 3 + k], frame.origin[k], frame.scale, frame.dims[k], frame.shift[k]);
}

struct MeshView {
  const int32_t* vertices;
  const uint32_t* indices;
  __device__ FixedTriangle triangle(uint32_t t) const {
    FixedTriangle f;
    for (int i = 0; i < 3; ++i) {
      const uint64_t vertex = indices[uint64_t(t) * 3 + i];
      for (int k = 0; k < 3; ++k) f.v[i][k] = vertices[vertex * 3 + k];
    }
    return f;
  }
};

// Cells of one level that triangles touch, in any order. If there is no room, `count` rises past `capacity`, and only
// the cells beyond it are lost: all of `capacity` are written, because the level below reads them. The caller then
// makes room for `count` cells and runs again.
struct CellList {
  Pair* cells;
  unsigned long long* count;
  uint64_t capacity;
};

// Appends the cells of `range` (none if `active` is false) of edge 2^shift that the triangle touches. The whole warp
// must call this.
__device__ inline void append_cells(bool active, const FixedTriangle& t, uint32_t triangle, int shift,
                                    const CellRange& range, const CellList& out) {
  BlockRows rows;
  uint32_t mine = 0;
  if (active) {
    overlap_block(t, shift, range, rows);
    for (int z = 0; z <= range.hi[2] - range.lo[2]; ++z)
      for (int y = 0; y <= range.hi[1] - range.lo[1]; ++y) mine += uint32_t(__popc(rows.row[z * 8 + y]));
  }
  // One atomic a warp.
  const uint32_t lane = threadIdx.x & 31u;
  uint32_t until = mine;
  for (uint32_t step = 1; step < 32; step *= 2) {
    const uint32_t other = __shfl_up_sync(~0u, until, step);
    if (lane >= step) until += other;
  }
  unsigned long long base = 0;
  if (lane == 31 && until > 0) base = atomicAdd(out.count, static_cast<unsigned long long>(until));
  base = __shfl_sync(~0u, base, 31) + (until - mine);
  if (mine == 0) return;
  for (int z = 0; z <= range.hi[2] - range.lo[2]; ++z)
    for (int y = 0; y <= range.hi[1] - range.lo[1]; ++y)
      for (uint32_t bits = rows.row[z * 8 + y]; bits && base < out.capacity; bits &= bits - 1)
        out.cells[base++] = pair_of(range.lo[0] + __ffs(int(bits)) - 1, range.lo[1] + y, range.lo[2] + z, triangle);
}

// The bricks of a region, both ends included.
struct BrickBox {
  int32_t lo[3], hi[3];
  // Clips a range of cells of 8^level bricks. Returns whether something is left.
  __device__ bool clip(CellRange& range, int level) const {
    bool any = true;
    for (int k = 0; k < 3; ++k) {
      range.lo[k] = greater(range.lo[k], lo[k] >> (3 * level));
      range.hi[k] = lesser(range.hi[k], hi[k] >> (3 * level));
      any = any && range.lo[k] <= range.hi[k];
    }
    return any;
  }
};

// The number of bricks of triangles that each chunk has, a brick as often as triangles touch it.
struct ChunkCounts {
  uint32_t* counts;           // x, y, z as nested loops
  int32_t first[3], size[3];  // chunks
};

// Counts the bricks of `range`, as append_cells appends them.
__device__ inline void append_cells(bool active, const FixedTriangle& t, uint32_t, int shift, const CellRange& range,
                                    const ChunkCounts& out) {
  if (!active) return;
  BlockRows rows;
  overlap_block(t, shift, range, rows);
  // At most 8 bricks on each axis: of one chunk or of two.
  const int32_t chunk[3] = {range.lo[0] >> 3, range.lo[1] >> 3, range.lo[2] >> 3};
  const uint32_t in_first = (8u - (uint32_t(range.lo[0]) & 7u)), lower = (1u << in_first) - 1;
  for (int z = 0; z < 2; ++z)
    for (int y = 0; y < 2; ++y) {
      uint32_t near = 0, far = 0;
      const int32_t to_z = lesser(range.hi[2], (chunk[2] + z) * 8 + 7),
                    to_y = lesser(range.hi[1], (chunk[1] + y) * 8 + 7);
      for (int32_t bz = greater(range.lo[2], (chunk[2] + z) * 8); bz <= to_z; ++bz)
        for (int32_t by = greater(range.lo[1], (chunk[1] + y) * 8); by <= to_y; ++by) {
          const uint32_t bits = rows.row[(bz - range.lo[2]) * 8 + (by - range.lo[1])];
          near += uint32_t(__popc(bits & lower));
          far += uint32_t(__popc(bits & ~lower));
        }
      uint32_t* const row =
          out.counts +
          (uint64_t(chunk[0] - out.first[0]) * uint32_t(out.size[1]) + uint32_t(chunk[1] + y - out.first[1])) *
              uint32_t(out.size[2]) +
          uint32_t(chunk[2] + z - out.first[2]);
      if (near) atomicAdd(row, near);
      if (far) atomicAdd(row + uint64_t(uint32_t(out.size[1])) * uint32_t(out.size[2]), far);
    }
}

// Takes the triangles whose bounds are less than 8 cells of this level, but not of the level below.
template <class Cells>
__global__ void __launch_bounds__(kThreads)
    cells_of_triangles(MeshView mesh, uint32_t count, int level, BrickBox box, Cells out) {
  const uint32_t t = thread_index();
  bool active = t < count;
  FixedTriangle f;
  CellRange range;
  if (active) {
    f = mesh.triangle(t);
    int own = 0;
    for (; own < kLevels - 1; ++own) {
      range = cells_of(f, kBrickShift + 3 * own);
      if (range.hi[0] - range.lo[0] < 8 && range.hi[1] - range.lo[1] < 8 && range.hi[2] - range.lo[2] < 8) break;
    }
    active = own == level;
    range = cells_of(f, kBrickShift + 3 * level);
    active = box.clip(range, level) && active;
  }
  append_cells(active, f, t, kBrickShift + 3 * level, range, out);
}

// Finds the cells of `level` inside those of the level above.
template <class Cells>
__global__ void __launch_bounds__(kThreads)
    cells_of_cells(MeshView mesh, int level, BrickBox box, CellList from, Cells out) {
  const uint64_t count = *from.count < from.capacity ? *from.count : from.capacity;
  const uint64_t rounded = (count + 31) / 32 * 32;
  for (uint64_t i = thread_index(); i < rounded; i += uint64_t(gridDim.x) * kThreads) {
    bool active = i < count;
    const Pair cell = from.cells[active ? i : 0];
    const uint32_t t = triangle_of_pair(cell);
    const Int3 at = brick_of_pair(cell);
    const int32_t first[3] = {at.x * 8, at.y * 8, at.z * 8};
    const FixedTriangle f = mesh.triangle(t);
    CellRange range = clipped_to_block(cells_of(f, kBrickShift + 3 * level), first);
    active = box.clip(range, level) && active;
    append_cells(active, f, t, kBrickShift + 3 * level, range, out);
  }
}

// True where the upper bits of a sorted array change: these are the beginnings of its runs.
struct RunBegins {
  const uint64_t* words;
  int shift;
  __device__ bool operator()(uint32_t i) const { return i == 0 || words[i] >> shift != words[i - 1] >> shift; }
};

__global__ void __launch_bounds__(kThreads)
    masks_of_pairs(MeshView mesh, const Pair* pairs, uint32_t count, bool thin, uint64_t* masks) {
  const uint32_t i = thread_index();
  if (i >= count) return;
  const FixedTriangle f = mesh.triangle(triangle_of_pair(pairs[i]));
  const Int3 brick = brick_of_pair(pairs[i]);
  const int32_t first[3] = {brick.x * 8, brick.y * 8, brick.z * 8};
  const CellRange range = clipped_to_block(cells_of(f, kFractionBits), first);
  BlockRows rows;
  set_rows(f, thin, range, rows);
  uint64_t mask[8] = {};
  rows_to_mask(rows, range, mask);
  for (int w = 0; w < 8; ++w) masks[uint64_t(i) * 8 + w] = mask[w];
}

// One thread a word. `shared`: voxels that more than one triangle sets.
__global__ void __launch_bounds__(kThreads)
    masks_of_bricks(const Pair* pairs, const uint32_t* starts, uint32_t bricks, uint32_t pair_count,
                    const uint64_t* pair_masks, uint64_t* masks, uint64_t* shared, uint32_t* keys, uint32_t* voxels) {
  const uint32_t b = thread_index() / 8, word = thread_index() % 8;
  uint64_t all = 0, twice = 0;
  if (b < bricks) {
    const uint32_t end = b + 1 < bricks ? starts[b + 1] : pair_count;
    for (uint32_t i = starts[b]; i < end; ++i) {
      const uint64_t mask = pair_masks[uint64_t(i) * 8 + word];
      twice |= all & mask;
      all |= mask;
    }
    masks[uint64_t(b) * 8 + word] = all;
    shared[uint64_t(b) * 8 + word] = twice;
  }
  uint32_t set = uint32_t(__popcll(all));
  for (int step = 1; step < 8; step *= 2) set += __shfl_xor_sync(~0u, set, step);
  if (b < bricks && word == 0) {
    voxels[b] = set;
    keys[b] = uint32_t(pairs[starts[b]] >> kTriangleBits);
  }
}

__global__ void __launch_bounds__(kThreads)
    texture_levels(SurfaceView surface, uint32_t count, double scale, uint8_t* levels) {
  const uint32_t t = thread_index();
  if (t < count) levels[t] = uint8_t(level_for(surface, t, scale));
}

struct ColorJob {
  SurfaceView surface;
  MeshView mesh;
  const uint8_t* levels;  // by triangle
  const Pair* pairs;
  const uint64_t* pair_masks;
  const uint32_t* starts;   // by brick
  const uint32_t* offsets;  // by brick: voxels before it
  const uint64_t* masks;    // by brick, 8 words
  const uint64_t* shared;
  uint32_t bricks, pair_count;
};

// One thread a voxel, in the order of bricks and of the masks' bits.
__global__ void __launch_bounds__(kThreads)
    packed_materials_of_voxels(ColorJob job, uint32_t voxels, PackedMaterial* packed) {
  const uint32_t v = thread_index();
  if (v >= voxels) return;
  // The last brick that begins at or before v. (One without voxels begins where the next one does.)
  uint32_t low = 0, high = job.bricks;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    if (job.offsets[middle] <= v) low = middle;
    else high = middle;
  }
  const uint32_t b = low;
  uint32_t word = 0, rest = v - job.offsets[b];
  uint64_t bits = job.masks[uint64_t(b) * 8];
  while (rest >= uint32_t(__popcll(bits))) {
    rest -= uint32_t(__popcll(bits));
    bits = job.masks[uint64_t(b) * 8 + ++word];
  }
  for (; rest > 0; --rest) bits &= bits - 1;
  const uint64_t bit = bits & (~bits + 1);
  const uint32_t index = word * 64 + uint32_t(__ffsll(static_cast<long long>(bit)) - 1);
  const Int3 at{int32_t((index & 3u) | ((index >> 6 & 1u) << 2)), int32_t((index >> 2 & 3u) | ((index >> 7 & 1u) << 2)),
                int32_t((index >> 4 & 3u) | ((index >> 8 & 1u) << 2))};
  const double cell[3] = {double(at.x), double(at.y), double(at.z)}, centre[3] = {at.x + 0.5, at.y + 0.5, at.z + 0.5};
  const bool one = !(job.shared[uint64_t(b) * 8 + word] & bit);
  const uint32_t end = b + 1 < job.bricks ? job.starts[b + 1] : job.pair_count;
  SurfaceColorSum sum;
  for (uint32_t i = job.starts[b];; ++i) {
    while (i < end && !(job.pair_masks[uint64_t(i) * 8 + word] & bit)) ++i;
    if (i >= end) break;
    const uint32_t t = triangle_of_pair(job.pairs[i]);
    double corner[3][3], w[3];
    corners_in_brick(job.mesh.triangle(t), brick_of_pair(job.pairs[i]), corner);
    nearest_point(corner, centre, w);
    sum.add(surface_color_at(job.surface, t, w, job.levels[t]), one ? 1 : weight_in_cell(corner, cell));
  }
  packed[v] = pack(*job.surface.srgb, sum.mean());
}

// Converts packed materials to indices. `distinct` is sorted and contains what is left of each voxel's under the mask.
// materials[i] belongs to distinct[i].
__global__ void __launch_bounds__(kThreads)
    materials_of_voxels(const PackedMaterial* packed, uint32_t voxels, PackedMaterial mask,
                        const PackedMaterial* distinct, const uint8_t* materials, uint32_t count, uint8_t* out) {
  const uint32_t v = thread_index();
  if (v >= voxels) return;
  const PackedMaterial own = packed[v] & mask;
  uint32_t low = 0, high = count;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    if (distinct[middle] <= own) low = middle;
    else high = middle;
  }
  out[v] = materials[low];
}

// One thread a word of a brick's mask: its 64 voxels, with their materials, 1 if there are none; and the world's keys.
__global__ void __launch_bounds__(kThreads)
    whole_bricks(const uint32_t* pair_keys, const uint64_t* masks, const uint32_t* offsets, const uint8_t* materials,
                 uint32_t bricks, uint32_t* keys, uint64_t* out) {
  const uint32_t b = thread_index() / 8, word = thread_index() % 8;
  const bool own = b < bricks;
  const uint64_t mask = own ? masks[uint64_t(b) * 8 + word] : 0;
  // Voxels of the words before, by the eight threads of the brick.
  uint32_t before = uint32_t(__popcll(mask));
  const uint32_t set = before;
  for (uint32_t step = 1; step < 8; step *= 2) {
    const uint32_t lower = __shfl_up_sync(~0u, before, step, 8);
    if (word >= step) before += lower;
  }
  before -= set;
  if (!own) return;
  if (word == 0) keys[b] = brick_key(brick_of_pair(Pair(pair_keys[b]) << kTriangleBits));
  const uint8_t* const from = materials ? materials + offsets[b] + before : nullptr;
  uint32_t next = 0;
  for (uint32_t i = 0; i < 8; ++i) {
    uint64_t eight = 0;
    for (uint32_t k = 0; k < 8; ++k)
      if (mask >> (i * 8 + k) & 1u) eight |= uint64_t(from ? from[next++] : uint8_t(1)) << (k * 8);
    out[uint64_t(b) * 64 + word * 8 + i] = eight;
  }
}

__global__ void __launch_bounds__(kThreads)
    gather_words(const uint64_t* words, const uint32_t* positions, uint32_t count, uint64_t* out) {
  const uint32_t i = thread_index();
  if (i < count) out[i] = words[positions[i]];
}

}  // namespace quarry::voxelize_detail::kernels
