// SPDX-License-Identifier: Apache-2.0
// bricks.cpp - converts blocks of surface to bricks in parallel, and adds the inside layer by layer.
#include "voxel/voxelize/bricks.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>

#include "voxel/worlds/source_units.hpp"

namespace quarry::voxelize_detail {
namespace {

void add_inside(Brick& brick, const BrickMask& inside, uint8_t material) {
  for (uint32_t word = 0; word < 8; ++word) {
    for (uint64_t bits = inside[word] & ~brick.mask[word]; bits; bits &= bits - 1)
      brick.materials[word * 64 + uint32_t(std::countr_zero(bits))] = material;
    brick.mask[word] |= inside[word];
  }
}

void keep_only(Brick& brick, const BrickMask& inside) {
  for (uint32_t word = 0; word < 8; ++word) {
    for (uint64_t bits = brick.mask[word] & ~inside[word]; bits; bits &= bits - 1)
      brick.materials[word * 64 + uint32_t(std::countr_zero(bits))] = 0;
    brick.mask[word] &= inside[word];
  }
}

}  // namespace

Brick BlockWalk::take() {
  SurfaceBlock& block = blocks_[block_];
  Brick out;
  out.mask = block.bricks[brick_].second;
  for (uint32_t word = 0; word < 8; ++word)
    for (uint64_t bits = out.mask[word]; bits; bits &= bits - 1)
      out.materials[word * 64 + uint32_t(std::countr_zero(bits))] =
          block.materials.empty() ? uint8_t(1) : block.materials[voxel_++];
  ++brick_;
  skip_empty();
  return out;
}

void BlockWalk::skip_empty() {
  while (block_ < end_ && brick_ == blocks_[block_].bricks.size()) {
    blocks_[block_++] = SurfaceBlock{};
    brick_ = voxel_ = 0;
  }
}

// Each thread makes maps of some consecutive blocks. Blocks are in rising order, so the maps are too.
Result<void> build_shell(VoxelizeJob& job, std::vector<SurfaceBlock>& blocks, BrickMap& bricks, double from,
                         double to) {
  constexpr size_t kBlocks = 16;
  size_t all = 0;
  for (const SurfaceBlock& block : blocks) all += block.bricks.size();
  std::vector<BrickMap> parts;
  for (size_t i = 0; i < blocks.size(); i += kBlocks) parts.emplace_back(bricks.pool());
  job.in_parallel(from, to, blocks.size(), kBlocks, [&](size_t begin, size_t end) {
    BrickMap& part = parts[begin / kBlocks];
    size_t own = 0;
    for (size_t i = begin; i < end; ++i) own += blocks[i].bricks.size();
    BrickWriter writer(bricks.pool(), own, all);
    for (BlockWalk walk(blocks, begin, end); !walk.done();) {
      const Int3 where = walk.where();
      part.put(where, writer.make(walk.take()));
    }
  });
  for (BrickMap& part : parts) bricks.append(std::move(part));
  return job.going();
}

uint8_t most_frequent(const std::vector<SurfaceBlock>& blocks) {
  std::array<uint64_t, 256> counts{};
  for (const SurfaceBlock& block : blocks)
    for (const uint8_t m : block.materials) ++counts[m];
  return most_frequent(counts);
}

uint8_t most_frequent(const std::array<uint64_t, 256>& counts) {
  const auto most = std::max_element(counts.begin() + 1, counts.end());
  return *most ? uint8_t(most - counts.begin()) : uint8_t(1);
}

void SolidBuilder::surface_until(const Int3* where) {
  while (!walk_.done() && (!where || walk_.where() < *where)) {
    const Int3 at = walk_.where();
    const Brick brick = walk_.take();
    if (with_surface_) into_.put(at, brick);
  }
}

void SolidBuilder::add(const InsideLayer& layer, const Box3& box) {
  const auto from = std::ranges::lower_bound(layer.bricks, box.min.y, {}, [](const auto& b) { return b.first.y; });
  for (auto it = from; it != layer.bricks.end() && it->first.y <= box.max.y; ++it) {
    const Int3 at = it->first;
    if (at.z < box.min.z || at.z > box.max.z) continue;
    surface_until(&at);
    const BrickMask inside = layer.mask(it->second);
    Brick brick;
    if (!walk_.done() && walk_.where() == at) brick = walk_.take();
    if (!with_surface_) keep_only(brick, inside);
    add_inside(brick, inside, material_);
    into_.put(at, brick);
  }
}

void SolidBuilder::finish() { surface_until(nullptr); }

Scene scene_without_bricks(const VoxelizeJob& job, const Palette& palette, size_t distinct, double rms_error) {
  Scene scene;
  scene.palette = palette;
  scene.volumes.emplace_back().name = job.options.name;
  Instance instance;
  instance.name = job.options.name;
  scene.instances.push_back(instance);
  char text[64];
  SourceUnits units{1 / job.frame.scale, {}};
  const int32_t shift[3] = {job.frame.shift.x, job.frame.shift.y, job.frame.shift.z};
  for (size_t k = 0; k < 3; ++k) units.origin[k] = job.frame.origin[k] - shift[k] * units.voxel_size;
  set_source_units(scene, units);
  scene.metadata["mesh_triangles"] = std::to_string(job.mesh.triangle_count());
  scene.metadata["palette_distinct"] = std::to_string(distinct);
  std::snprintf(text, sizeof text, "%.3f", rms_error);
  scene.metadata["palette_rms_error"] = text;
  scene.metadata["voxelize_surface"] = job.thin()                                    ? "6-separating"
                                       : job.options.surface == SurfaceVoxels::cover ? "26-separating"
                                                                                     : "none";
  scene.metadata["voxelize_fill"] = job.options.fill == FillRule::none     ? "none"
                                    : job.options.fill == FillRule::parity ? "parity"
                                                                           : "winding";
  return scene;
}

Error too_thin() {
  return {
      ErrorCode::invalid_argument,
      "the mesh is too thin for any voxel of this kind at this resolution; use a higher one, or 26-separating voxels"};
}

}  // namespace quarry::voxelize_detail
