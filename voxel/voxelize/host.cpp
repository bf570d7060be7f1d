// SPDX-License-Identifier: Apache-2.0
// host.cpp - the surface's voxels on host threads. The decisions are made by the same code as on CUDA
// (voxelize/overlap.hpp, voxelize/texturing.hpp). This file holds the walk over pairs of brick and triangle, and the
// palette.
#include <array>
#include <bit>
#include <unordered_map>

#include "voxel/voxelize/stage.hpp"

namespace quarry::voxelize_detail {
namespace {

constexpr size_t kTrianglesPerTask = 2048, kBricksPerTask = 128;

class HostSurface {
 public:
  HostSurface(VoxelizeJob& job, const FixedMesh& mesh, const SurfaceRegion& region)
      : job_(job), view_(job.surface.view()), mesh_(mesh), region_(region) {}

  RegionSurface run() {
    collect_pairs();
    if (!job_.going()) return {};
    job_.sort(pairs_, 0.2, 0.3);
    for (size_t i = 0; i < pairs_.size(); ++i)
      if (i == 0 || pairs_[i] >> kTriangleBits != pairs_[i - 1] >> kTriangleBits) starts_.push_back(i);
    starts_.push_back(pairs_.size());
    voxelize_bricks();
    return std::move(out_);
  }

 private:
  void collect_pairs() {
    const size_t count = region_.triangle_count;
    const Box3& box = region_.bricks;
    const int32_t low[3] = {box.min.x, box.min.y, box.min.z}, high[3] = {box.max.x, box.max.y, box.max.z};
    std::vector<std::vector<Pair>> found((count + kTrianglesPerTask - 1) / kTrianglesPerTask);
    job_.in_parallel(0.02, 0.2, count, kTrianglesPerTask, [&](size_t begin, size_t end) {
      std::vector<Pair>& out = found[begin / kTrianglesPerTask];
      for (size_t i = begin; i < end; ++i) {
        const uint32_t t = region_.triangles ? region_.triangles[i] : uint32_t(i);
        const FixedTriangle f = mesh_.triangle(t);
        CellRange range = cells_of(f, kBrickShift);
        bool any = true;
        for (int k = 0; k < 3; ++k) {
          range.lo[k] = std::max(range.lo[k], low[k]);
          range.hi[k] = std::min(range.hi[k], high[k]);
          any = any && range.lo[k] <= range.hi[k];
        }
        if (any)
          visit_cells(f, kBrickShift, range,
                      [&](int32_t x, int32_t y, int32_t z) { out.push_back(pair_of(x, y, z, t)); });
      }
    });
    size_t total = 0;
    for (const auto& part : found) total += part.size();
    pairs_.reserve(total);
    for (auto& part : found) {
      pairs_.insert(pairs_.end(), part.begin(), part.end());
      std::vector<Pair>().swap(part);
    }
  }

  void voxelize_bricks() {
    const size_t count = starts_.size() - 1;
    out_.blocks.resize((count + kBricksPerTask - 1) / kBricksPerTask);
    if (!job_.surface.uniform()) out_.counts.resize(out_.blocks.size());
    job_.in_parallel(0.3, 0.9, count, kBricksPerTask, [&](size_t begin, size_t end) {
      SurfaceBlock& block = out_.blocks[begin / kBricksPerTask];
      block.bricks.reserve(end - begin);
      std::vector<BrickMask> masks;
      for (size_t b = begin; b < end; ++b) voxelize_brick(b, masks, block);
      if (!job_.surface.uniform()) out_.counts[begin / kBricksPerTask] = counted(block.packed);
    });
  }

  void voxelize_brick(size_t b, std::vector<BrickMask>& masks, SurfaceBlock& block) const {
    const Int3 brick = brick_of_pair(pairs_[starts_[b]]);
    const int32_t first[3] = {brick.x * 8, brick.y * 8, brick.z * 8};
    masks.assign(starts_[b + 1] - starts_[b], BrickMask{});
    BrickMask all{}, shared{};  // set by any triangle; set by more than one
    for (size_t i = starts_[b]; i < starts_[b + 1]; ++i) {
      const FixedTriangle f = mesh_.triangle(triangle_of_pair(pairs_[i]));
      const CellRange range = clipped_to_block(cells_of(f, kFractionBits), first);
      BlockRows rows;
      set_rows(f, job_.thin(), range, rows);
      BrickMask& mask = masks[i - starts_[b]];
      rows_to_mask(rows, range, mask.data());
      for (size_t w = 0; w < 8; ++w) {
        shared[w] |= all[w] & mask[w];
        all[w] |= mask[w];
      }
    }
    uint64_t any = 0;
    for (const uint64_t word : all) any |= word;
    if (!any) return;
    block.bricks.emplace_back(brick, all);
    if (!job_.surface.uniform()) color_brick(b, brick, masks, all, shared, block.packed);
  }

  void color_brick(size_t b, Int3 brick, const std::vector<BrickMask>& masks, const BrickMask& all,
                   const BrickMask& shared, std::vector<PackedMaterial>& packed) const {
    std::array<SurfaceColorSum, kVoxelsPerBrick> sums{};
    for (size_t i = starts_[b]; i < starts_[b + 1]; ++i) {
      const uint32_t t = triangle_of_pair(pairs_[i]);
      double corner[3][3];
      corners_in_brick(mesh_.triangle(t), brick, corner);
      const int level = level_for(view_, t, job_.frame.scale);
      for (uint32_t word = 0; word < 8; ++word)
        for (uint64_t bits = masks[i - starts_[b]][word]; bits; bits &= bits - 1) {
          const uint32_t index = word * 64 + uint32_t(std::countr_zero(bits));
          const Int3 v = voxel_from_index(index);
          const double cell[3] = {double(v.x), double(v.y), double(v.z)}, centre[3] = {v.x + 0.5, v.y + 0.5, v.z + 0.5};
          double w[3];
          nearest_point(corner, centre, w);
          // The area matters only if triangles share the voxel.
          const bool one = !(shared[word] >> (index & 63u) & 1u);
          sums[index].add(surface_color_at(view_, t, w, level), one ? 1 : weight_in_cell(corner, cell));
        }
    }
    for (uint32_t word = 0; word < 8; ++word)
      for (uint64_t bits = all[word]; bits; bits &= bits - 1)
        packed.push_back(pack(*view_.srgb, sums[word * 64 + uint32_t(std::countr_zero(bits))].mean()));
  }

  static std::vector<MaterialCount> counted(std::vector<PackedMaterial> packed) {
    std::sort(packed.begin(), packed.end());
    std::vector<MaterialCount> out;
    for (const PackedMaterial material : packed) {
      if (out.empty() || out.back().material != material) out.push_back({material, 0});
      ++out.back().count;
    }
    return out;
  }

  VoxelizeJob& job_;
  const SurfaceView view_;
  const FixedMesh& mesh_;
  const SurfaceRegion& region_;
  std::vector<Pair> pairs_;     // sorted
  std::vector<size_t> starts_;  // of each brick in pairs_, and the end
  RegionSurface out_;
};

}  // namespace

FixedMesh fixed_mesh(VoxelizeJob& job) {
  FixedMesh out{job.mesh.indices.data(), std::vector<int32_t>(job.mesh.positions.size())};
  const VoxelFrame& frame = job.frame;
  const int32_t dims[3] = {frame.dims.x, frame.dims.y, frame.dims.z},
                shift[3] = {frame.shift.x, frame.shift.y, frame.shift.z};
  job.in_parallel(0, 0.02, job.mesh.vertex_count(), 1 << 16, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      for (size_t k = 0; k < 3; ++k)
        out.vertices[i * 3 + k] =
            snapped(job.mesh.positions[i * 3 + k], frame.origin[k], frame.scale, dims[k], shift[k]);
  });
  return out;
}

Box3 all_bricks(const VoxelizeJob& job) {
  const Int3 first = job.frame.shift, last = first + job.frame.dims - Int3{1, 1, 1};
  return {brick_of(first), brick_of(last)};
}

RegionSurface surface_in_region(VoxelizeJob& job, const FixedMesh& mesh, const SurfaceRegion& region) {
  return HostSurface(job, mesh, region).run();
}

Palette uniform_palette(const VoxelizeJob& job) {
  const SurfaceView& view = job.surface.view();
  const double middle[3] = {1.0 / 3, 1.0 / 3, 1.0 / 3};
  return quantise({{pack(*view.srgb, surface_color_at(view, 0, middle, 0)), 1}}, job.threads).palette;
}

void give_materials(VoxelizeJob& job, const Quantised& quantised, std::vector<SurfaceBlock>& blocks) {
  job.in_parallel(0.92, 0.94, blocks.size(), 16, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      SurfaceBlock& block = blocks[i];
      block.materials.reserve(block.packed.size());
      PackedMaterial last = 0;
      uint8_t material = 0;  // of `last`; neighbours often have equal materials
      for (const PackedMaterial packed : block.packed) {
        if (material == 0 || packed != last) material = quantised.of(packed);
        last = packed;
        block.materials.push_back(material);
      }
      std::vector<PackedMaterial>().swap(block.packed);
    }
  });
}

Result<SurfaceResult> surface_on_host(VoxelizeJob& job) {
  RegionSurface surface;
  {
    const FixedMesh mesh = fixed_mesh(job);
    surface = surface_in_region(job, mesh, {all_bricks(job), nullptr, job.mesh.triangle_count()});
  }
  QRY_TRY(job.going());
  SurfaceResult out;
  out.blocks = std::move(surface.blocks);
  if (job.surface.uniform()) {
    out.palette = uniform_palette(job);
  } else {
    std::unordered_map<PackedMaterial, uint64_t> counts;
    for (std::vector<MaterialCount>& part : surface.counts) {
      for (const MaterialCount& l : part) counts[l.material] += l.count;
      std::vector<MaterialCount>().swap(part);
    }
    out.distinct = counts.size();
    std::vector<MaterialCount> materials;
    materials.reserve(counts.size());
    for (const auto& [material, count] : counts) materials.push_back({material, count});
    const Quantised quantised = quantise(std::move(materials), job.threads);
    out.palette = quantised.palette;
    out.rms_error = quantised.rms_error;
    give_materials(job, quantised, out.blocks);
  }
  QRY_TRY(job.going());
  return out;
}

}  // namespace quarry::voxelize_detail
