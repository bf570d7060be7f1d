// SPDX-License-Identifier: Apache-2.0
// internal.hpp - what the files of operations/whole_scene.hpp share.
#pragma once

#include <array>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "voxel/operations/whole_scene.hpp"

namespace quarry::operations_detail {

// For one of several threads, none of which reports.
inline Progress only_cancel(const Progress& progress) { return {.report = {}, .cancel = progress.cancel}; }

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

// Voxels of each material over all volumes, each volume counted once; none of 0.
using MaterialCounts = std::array<uint64_t, 256>;
MaterialCounts material_counts(std::span<const VolumeSummary> volumes);
// What quantise() makes: the scene with its new palette, and the new indices of its voxels, which it has not yet.
struct QuantisePlan {
  Scene scene;
  MaterialTable table;
  PaletteError error;
};
// Errors: those of quantise().
Result<QuantisePlan> plan_quantise(const Scene& scene, const MaterialCounts& counts, uint32_t count);
// What merge() makes: the scene without bricks, whose volumes are those of the scenes in their order; and of each of
// them the new indices of its voxels.
struct MergePlan {
  Scene scene;
  std::vector<MaterialTable> tables;
  PaletteError error;
};
// `counts`: of each scene. Errors: those of merge().
Result<MergePlan> plan_merge(std::span<const Scene* const> scenes, std::span<const MaterialCounts> counts);

// The voxels of a material.
BrickMap of_material(const BrickMap& bricks, uint8_t material);

// The volume's cells that the instance maps into the box, clamped to 32 bits.
Box3 box_in_volume(const Instance& instance, const Box3& box);
// A scene of one volume.
Scene single(BrickMap bricks, const Palette& palette, const char* name);

// A part of what split() makes of a scene; regions are not planned, but cropped. Its volume i has the bricks of volume
// from[i] of the scene, of `material` alone if that is not 0.
struct SplitPlan {
  std::string name;
  Scene scene;  // with the bricks that the scene has
  std::vector<uint32_t> from;
  uint8_t material = 0;
};
// `used`: which materials each volume has, by index; [0]: any. Errors: those of split().
Result<std::vector<SplitPlan>> plan_split(const Scene& scene, std::span<const std::array<bool, 256>> used,
                                          SplitKind kind);
// Cubes of edge^3 world cells that voxels may be in.
class SplitCubes {
 public:
  explicit SplitCubes(int32_t edge) : edge_(edge) {}
  // Those of a volume's bricks, as an instance places them. Errors: unsupported (more parts than split() makes).
  Result<void> add(const Instance& instance, const BrickMap& bricks);
  struct Cube {
    std::string name;
    Box3 cells;
  };
  std::vector<Cube> all() const;

 private:
  int32_t edge_;
  std::set<Int3> cubes_;
};
Result<void> check_split(const Scene& scene, SplitKind kind, int32_t edge);
// The scene of keep_parts(), with one volume, whose bricks are not chosen yet: that volume is from[0] of the scene, or,
// if `from` is empty, all that is visible.
SplitPlan plan_keep_parts(const Scene& scene);
// The part of split_parts() with this number, and bricks; of a scene whose bricks do not matter.
ScenePart connected_part(const Scene& scene, size_t number, BrickMap bricks);
// Errors: those of split_parts().
Result<void> check_connected_parts(size_t count);

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

// `bricks`: of a volume's bounds, not empty. Errors: those of fill().
Result<void> check_fill(size_t volume, const Box3& bricks);
// The material of the most voxels, of several the lowest.
uint8_t commonest(const MaterialCounts& counts);

Result<void> check_hollow(uint32_t thickness);
Result<BrickMap> hollowed(const BrickMap& bricks, uint32_t thickness, const Progress& progress);

}  // namespace quarry::operations_detail
