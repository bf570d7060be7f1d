// SPDX-License-Identifier: Apache-2.0
// internal.hpp - what the files of operations/whole_scene.hpp share.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "voxel/operations/whole_scene.hpp"

namespace quarry::operations_detail {

Result<void> check(const Scene& scene);
// Rounded down; n is above 0.
constexpr int64_t floor_div(int64_t a, int64_t n) { return a >= 0 ? a / n : -((-a + n - 1) / n); }
// Removes metadata that a reader left about a file's palette, materials or layers and that no longer holds.
void forget_file_tables(Scene& scene);

struct WeightedMaterial {
  Material material;
  uint64_t voxels = 0;
};
struct QuantisedMaterials {
  std::vector<uint32_t> cluster;    // of each input
  std::vector<Material> materials;  // of each cluster
  std::vector<uint32_t> commonest;  // the input with the most voxels in each cluster
  PaletteError error;
};
// At most `count` clusters. Inputs without voxels come last and have no weight.
QuantisedMaterials quantise_materials(const std::vector<WeightedMaterial>& inputs, uint32_t count);

// What crop() keeps: the scene without bricks, whose volume i has the voxels of the box parts[i].kept of that volume.
struct CropPlan {
  Scene scene;
  struct Part {
    uint32_t volume;
    Box3 kept;
    bool whole;  // all voxels of the volume
  };
  std::vector<Part> parts;
};
// `bounds`: of each volume's voxels, tight.
CropPlan plan_crop(const Scene& scene, std::span<const Box3> bounds, const Box3& box);
// Takes away the volumes that turned out to be empty, and their instances. Returns the numbers of those that stay.
std::vector<uint32_t> drop_volumes(Scene& scene, const std::vector<bool>& empty);
// The voxels in a box of voxels; bricks wholly inside are shared.
BrickMap cut(const BrickMap& bricks, const Box3& box);

// What shrink() makes: the scene without bricks, whose volume i is that volume, shrunk with that phase.
struct ShrinkPlan {
  Scene scene;
  struct Part {
    uint32_t volume;
    Int3 phase;
  };
  std::vector<Part> parts;
};
// Errors: those of shrink().
Result<ShrinkPlan> plan_shrink(const Scene& scene, uint32_t n);
// Cell c of the volume becomes floor((c + phase) / n).
BrickMap shrunk(const BrickMap& bricks, Int3 phase, int64_t n, uint32_t threshold);
// The scene of enlarge() without bricks. `bounds`: as above. Errors: those of enlarge().
Result<Scene> plan_enlarge(const Scene& scene, std::span<const Box3> bounds, uint32_t n);
// The enlarged volume's bricks in a box of bricks: up to n^3 for each source brick.
BrickMap enlarged(const BrickMap& bricks, int32_t n, const Box3& within);

// Whether voxels in a box, empty or tight, can grow by so many steps. Errors: those of dilate().
Result<void> check_dilate(const Box3& bounds, uint32_t steps);

Result<void> check_hollow(uint32_t thickness);
Result<BrickMap> hollowed(const BrickMap& bricks, uint32_t thickness, const Progress& progress);

}  // namespace quarry::operations_detail
