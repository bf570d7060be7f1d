// SPDX-License-Identifier: Apache-2.0
// stage.hpp - the data that the voxeliser's stages share: the job, the snapped mesh, surface voxels by blocks.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "voxel/bricks/brick.hpp"
#include "voxel/voxelize/color.hpp"
#include "voxel/voxelize/overlap.hpp"
#include "voxel/voxelize/palette.hpp"
#include "voxel/voxelize/triangles.hpp"

namespace quarry::voxelize_detail {

constexpr int kBrickShift = kFractionBits + 3;

// A brick and a triangle that touches it, in one word. Words are ordered by (brick x, y, z, triangle).
//   triangle 30 bits | z 11 | y 10 | x 11       brick coordinates biased by 1024, 0, 1024
using Pair = uint64_t;
constexpr int kTriangleBits = 30;
constexpr int kPairBits = kTriangleBits + 32;
QRY_HD inline Pair pair_of(int32_t x, int32_t y, int32_t z, uint32_t triangle) {
  return uint64_t(uint32_t(x + 1024)) << (kTriangleBits + 21) | uint64_t(uint32_t(y)) << (kTriangleBits + 11) |
         uint64_t(uint32_t(z + 1024)) << kTriangleBits | triangle;
}
QRY_HD inline uint32_t triangle_of_pair(Pair p) { return uint32_t(p) & ((1u << kTriangleBits) - 1); }
QRY_HD inline Int3 brick_of_pair(Pair p) {
  return {int32_t(p >> (kTriangleBits + 21)) - 1024, int32_t(p >> (kTriangleBits + 11) & 1023),
          int32_t(p >> kTriangleBits & 2047) - 1024};
}

// Converts a position to fixed point on one axis: an odd multiple of 2^-16 voxel inside [0, dim), then shifted.
QRY_HD inline int32_t snapped(float position, double origin, double scale, int32_t dim, int32_t shift) {
  constexpr auto kHalf = int64_t(kUnit / 2);
  const int64_t odd = 2 * int64_t(std::floor((double(position) - origin) * scale * double(kHalf))) + 1;
  return int32_t(lesser(greater(odd, int64_t(1)), dim * kUnit - 1) + shift * kUnit);
}

// Computes the voxels of `range` that the triangle sets, as rows.
QRY_HD inline void set_rows(const FixedTriangle& t, bool thin, const CellRange& range, BlockRows& rows) {
  if (thin) crosshair_block(t, range, rows);
  else overlap_block(t, kFractionBits, range, rows);
}
// Adds the rows of `range` to a brick's mask.
QRY_HD inline void rows_to_mask(const BlockRows& rows, const CellRange& range, uint64_t mask[8]) {
  for (int32_t z = range.lo[2]; z <= range.hi[2]; ++z)
    for (int32_t y = range.lo[1]; y <= range.hi[1]; ++y) {
      // A row of eight voxels lies as two runs of four bits in two octants.
      const uint32_t bits = uint32_t(rows.row[(z - range.lo[2]) * 8 + (y - range.lo[1])]) << (range.lo[0] & 7);
      const uint32_t word = ((uint32_t(y) >> 2 & 1u) << 1) | ((uint32_t(z) >> 2 & 1u) << 2);
      const uint32_t bit = ((uint32_t(y) & 3u) << 2) | ((uint32_t(z) & 3u) << 4);
      mask[word] |= uint64_t(bits & 15u) << bit;
      mask[word + 1] |= uint64_t(bits >> 4) << bit;
    }
}

// The mesh in fixed point.
struct FixedMesh {
  const uint32_t* indices;
  std::vector<int32_t> vertices;  // 3 per vertex, units of 2^-16 voxel

  FixedTriangle triangle(size_t t) const {
    FixedTriangle f;
    for (size_t i = 0; i < 3; ++i)
      for (size_t k = 0; k < 3; ++k) f.v[i][k] = vertices[size_t(indices[t * 3 + i]) * 3 + k];
    return f;
  }
};

// One run of voxelize(): its options, its threads, and how its parallel parts report, stop and run out of memory.
class VoxelizeJob {
 public:
  VoxelizeJob(const Mesh& of, const VoxelizeOptions& how, const VoxelFrame& in)
      : mesh(of), options(how), frame(in), threads(how.threads ? how.threads : thread_count()), surface(of, threads) {}

  const Mesh& mesh;
  const VoxelizeOptions& options;
  const VoxelFrame frame;
  const uint32_t threads;
  const Surface surface;

  bool thin() const { return options.surface == SurfaceVoxels::thin; }

  // A parallel_for that reports progress, unless `from` is `to`, and whose body may throw bad_alloc. Check going()
  // afterwards.
  template <class Body>
  void in_parallel(double from, double to, size_t count, size_t grain, Body&& body) {
    std::atomic<size_t> done{0};
    parallel_for(
        count, grain,
        [&](size_t begin, size_t end) {
          if (out_of_memory_.load(std::memory_order_relaxed) || options.progress.cancelled()) return;
          try {
            body(begin, end);
          } catch (const std::bad_alloc&) {
            out_of_memory_.store(true, std::memory_order_relaxed);
          }
          const size_t now = done.fetch_add(end - begin, std::memory_order_relaxed) + (end - begin);
          if (options.progress.report && from < to)
            if (const std::unique_lock lock(report_mutex_, std::try_to_lock); lock)
              say(from + (to - from) * double(now) / double(count));
        },
        threads);
  }
  // Reports progress within the part of the whole that set_window() chose.
  void say(double fraction) const {
    options.progress.say("voxelise", window_from_ + (window_to_ - window_from_) * fraction);
  }
  void set_window(double from, double to) {
    window_from_ = from;
    window_to_ = to;
  }
  Result<void> going() const {
    if (options.progress.cancelled()) return fail(ErrorCode::cancelled, "cancelled while voxelising");
    if (out_of_memory_)
      return fail(ErrorCode::out_of_memory, "not enough memory to voxelise at this resolution; use a lower one");
    return {};
  }

  // Sorts distinct words. The order does not depend on the threads.
  void sort(std::vector<uint64_t>& words, double from, double to) {
    const size_t part = std::max<size_t>(1 << 14, (words.size() + threads - 1) / threads);
    const auto at = [&](size_t i) { return words.begin() + std::ptrdiff_t(std::min(i, words.size())); };
    in_parallel(from, (from + to) / 2, (words.size() + part - 1) / part, 1,
                [&](size_t begin, size_t) { std::sort(at(begin * part), at((begin + 1) * part)); });
    for (size_t width = part; width < words.size(); width *= 2)
      in_parallel((from + to) / 2, to, (words.size() + 2 * width - 1) / (2 * width), 1, [&](size_t begin, size_t) {
        std::inplace_merge(at(begin * 2 * width), at(begin * 2 * width + width), at((begin + 1) * 2 * width));
      });
  }

 private:
  std::atomic<bool> out_of_memory_{false};
  std::mutex report_mutex_;
  double window_from_ = 0, window_to_ = 1;
};

FixedMesh fixed_mesh(VoxelizeJob& job);
// Returns the frame if mesh and options are valid.
Result<VoxelFrame> checked_frame(const Mesh& mesh, const VoxelizeOptions& options);

// A block of the surface's bricks. Bricks rise by their coordinates (x, y, z), within blocks and from block to block.
struct SurfaceBlock {
  std::vector<std::pair<Int3, BrickMask>> bricks;
  // One for each set voxel in the order of the masks' bits, until the palette is known; empty if uniform.
  std::vector<PackedMaterial> packed;
  std::vector<uint8_t> materials;  // the same afterwards; empty: all 1
};
struct SurfaceResult {
  std::vector<SurfaceBlock> blocks;
  Palette palette;
  size_t distinct = 1;  // materials before quantisation
  double rms_error = 0;
};

// A region to voxelise at once: a box of bricks and the triangles that may touch it.
struct SurfaceRegion {
  Box3 bricks;
  const uint32_t* triangles = nullptr;  // null: all; then `triangle_count` is that of the mesh
  size_t triangle_count = 0;
};
struct RegionSurface {
  std::vector<SurfaceBlock> blocks;                // with `packed`
  std::vector<std::vector<MaterialCount>> counts;  // of the materials, by block, rising; empty if uniform
};
// The box of all bricks of the job.
Box3 all_bricks(const VoxelizeJob& job);
// Voxelises the region's surface. Check job.going() afterwards.
RegionSurface surface_in_region(VoxelizeJob& job, const FixedMesh& mesh, const SurfaceRegion& region);
// Converts packed materials to indices.
void give_materials(VoxelizeJob& job, const Quantised& quantised, std::vector<SurfaceBlock>& blocks);
// The palette of a uniform surface.
Palette uniform_palette(const VoxelizeJob& job);

// Makes the surfaces of a job's regions one by one: on the job's host threads, or on a CUDA device. One thread at a
// time uses it; makers on devices may work at once. A maker may keep what it has counted until it is asked for that
// region, by its number: regions are counted in order, if at all.
class SurfaceMaker {
 public:
  SurfaceMaker() = default;
  SurfaceMaker(const SurfaceMaker&) = delete;
  SurfaceMaker& operator=(const SurfaceMaker&) = delete;
  virtual ~SurfaceMaker() = default;
  // The materials of the region's voxels, distinct in each list. Not asked for if the surface is uniform.
  virtual Result<std::vector<std::vector<MaterialCount>>> count_materials(const Box3& bricks) = 0;
  // The region's surface, whose materials are those that `quantised` gives them; null: uniform.
  virtual Result<std::vector<SurfaceBlock>> make(size_t number, const Box3& bricks, const Quantised* quantised) = 0;
  // The bytes of a device's memory that a region may take; 0: it takes none.
  virtual uint64_t device_bytes() const { return 0; }
  // Of each chunk of all bricks' box (x, y, z as nested loops), the bricks in it that each triangle touches, added up.
  virtual Result<std::vector<uint32_t>> count_pairs() = 0;
};
using SurfaceMakers = std::vector<std::unique_ptr<SurfaceMaker>>;
// Two for each of the first `devices` CUDA devices (0: of all), so that one copies to the host while the other works;
// each device has the mesh. Errors: those of cuda_for_voxelize(), out_of_memory, device; not_found with the numbers
// (fewer devices than asked for).
Result<SurfaceMakers> makers_on_cuda(VoxelizeJob& job, uint32_t devices);
// Whether the job is large enough for CUDA, by its options and what it takes to start CUDA.
bool cuda_is_wanted(const VoxelizeJob& job);

// The executors. Both fill `materials`, not `packed`.
Result<SurfaceResult> surface_on_host(VoxelizeJob& job);
Result<SurfaceResult> surface_on_cuda(VoxelizeJob& job);
// The same, but its bricks go to the sink, and the result has no block. `begun`: the sink was given something; if not,
// another executor may take the job. Errors: unsupported (another device than the voxeliser's), those of
// surface_on_cuda() and of the sink; invalid_argument (no voxel).
Result<SurfaceResult> surface_to_device(VoxelizeJob& job, const DeviceSink& sink, bool& begun);

// Whether CUDA can be used: success, or an error with the reason. The first call starts CUDA and finds the answer for
// the whole process.
Result<void> cuda_for_voxelize();
// Whether that call has returned with a device, so that using it needs no start.
bool cuda_has_started();

}  // namespace quarry::voxelize_detail
