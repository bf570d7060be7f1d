// SPDX-License-Identifier: Apache-2.0
// scene_by_regions.hpp - operations of whole_scene.hpp on scenes whose bricks do not fit memory: those of which each
// brick depends on the bricks near it alone, or on what a pass over all of them tells. The scene, without bricks, is
// changed at once; bricks are made box by box, from what a source has in the box and around it. They are those that the
// whole scene would have.
//
//   source (a world file, or other scenes: combine_by_regions.hpp)
//     ─► needs(): which box ─► crop, shrink, dilate ... ─► make(): the bricks of a box
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "voxel/operations/morphology.hpp"
#include "voxel/operations/whole_scene.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry {

// Where the bricks are before all steps. Boxes are of brick coordinates, both corners included.
struct BrickSource {
  // About the most bricks that are in memory while read() puts those of the box.
  std::function<Result<uint64_t>(uint32_t volume, const Box3& bricks)> count;
  // Puts at least the volume's bricks in the box. By one thread at a time.
  std::function<Result<void>(uint32_t volume, const Box3& bricks, BrickMap& into)> read;
};

class SceneByRegions {
 public:
  // `scene` has no bricks; they are in `source`. `bounds`: of each volume's voxels, empty where there are none; tight,
  // unless that is denied.
  SceneByRegions(Scene scene, std::vector<Box3> bounds, BrickSource source, bool tight = true)
      : scene_(std::move(scene)), bounds_(std::move(bounds)), tight_(tight), source_(std::move(source)) {}

  // As the steps so far make it, without bricks.
  const Scene& scene() const { return scene_; }
  Scene& scene() { return scene_; }  // whose volumes and instances are not to be changed
  // Outside of which a volume has no voxel.
  const std::vector<Box3>& bounds() const { return bounds_; }
  bool tight() const { return tight_; }  // the bounds are

  // Makes all bricks of a scene once and shows them, region by region: whole chunks, in their order. Steps ask for it
  // that depend on each voxel.
  using TakeRegion = std::function<Result<void>(uint32_t volume, BrickMap&& bricks)>;
  struct Pass {
    std::function<Result<void>(const SceneByRegions& scene, const TakeRegion& take)> run;
    std::function<uint64_t()> available_bytes;  // the room that is left, also while regions are shown
    Result<void> operator()(const SceneByRegions& scene, const TakeRegion& take) const { return run(scene, take); }
  };
  // What such a pass tells of each volume; the bounds are tight then.
  Result<std::vector<VolumeSummary>> summaries(const Pass& pass);
  Result<void> tighten(const Pass& pass);  // the bounds, unless they are

  // Steps, in the order of the calls; each is its namesake of whole_scene.hpp, with the same errors.
  Result<void> turn(const Rotation& rotation);
  Result<void> enlarge(uint32_t n);
  Result<void> shrink(uint32_t n);
  Result<void> hollow(uint32_t thickness);
  Result<void> dilate(Connectivity neighbours, uint32_t steps);
  Result<void> erode(Connectivity neighbours, uint32_t steps);
  // Which instances stay, and which of them have a volume in common, depends on each voxel.
  Result<void> crop(const Box3& box, const Pass& pass);
  // So does which materials are commonest.
  Result<void> quantise(uint32_t count, const Pass& pass, PaletteError* error = nullptr);
  // Voxels with other material indices, by a table for each volume. The palette stays.
  void remap(std::vector<MaterialTable> tables);
  // Becomes `scene`, without bricks, whose volume i is volume from[i] of this one; of `material` alone if that is not
  // 0.
  void select(Scene scene, const std::vector<uint32_t>& from, uint8_t material = 0);

  // Becomes `scene`, without bricks, of as many volumes, whose bricks are made chunk by chunk (8^3 bricks).
  struct ChunkStep {
    // Those of a box of chunks that may keep voxels, boxed; an empty box: none does.
    std::function<Box3(uint32_t volume, const Box3& chunks)> needs;
    // Free-threaded.
    std::function<Result<BrickMap>(uint32_t volume, Int3 chunk, const BrickMap& before, const Progress&)> make;
    // Those of a box of chunks that get voxels although they have none; full bricks. May be left out.
    std::function<std::vector<Int3>(uint32_t volume, const Box3& chunks)> fills = {};
  };
  // `bounds`: tight, if those before were and `tight`.
  void change_chunks(Scene scene, std::vector<Box3> bounds, bool tight, ChunkStep step);

  // What of the source is needed to make a volume's bricks in a box; an empty box: nothing, there are none.
  struct Needed {
    uint32_t volume;
    Box3 bricks;
  };
  Needed needs(uint32_t volume, const Box3& bricks) const;
  // About the most bricks that are in memory while those of a box are made. Errors: those of the source.
  Result<uint64_t> held(uint32_t volume, const Box3& bricks) const;
  // The bricks in the box. `before` has at least those of the source that are needed. Free-threaded. Errors: those of
  // the operations, cancelled.
  Result<BrickMap> make(uint32_t volume, const Box3& bricks, const BrickMap& before, const Progress& progress) const;
  // The same, read from the source, and made by all threads.
  Result<BrickMap> read(uint32_t volume, const Box3& bricks, const Progress& progress) const;

 private:
  struct Step {
    std::function<Needed(uint32_t volume, const Box3& bricks)> needs;
    std::function<Result<BrickMap>(uint32_t volume, const Box3& bricks, const BrickMap& before, const Progress&)> make;
    uint32_t reach = 0;  // in bricks
    uint64_t grows = 1;  // bricks that come of one, at most
    bool by_chunks = false;
    // How many full bricks come of none; may be left out.
    std::function<uint64_t(uint32_t volume, const Box3& bricks)> fills = {};
  };
  // A step that looks at voxels up to `reach` away, in the same volume.
  void add_near(uint32_t reach, uint64_t grows, std::function<Result<BrickMap>(const BrickMap&, const Progress&)> make);
  bool reaches() const;    // whether a brick depends on others beside it
  bool by_chunks() const;  // whether all of a chunk is made at once
  bool fills() const;      // whether there may be bricks where the source has none
  // What must be there of the source, and after each step, so that a volume's bricks in a box can be made; empty boxes:
  // nothing.
  std::vector<Needed> wanted(uint32_t volume, const Box3& bricks) const;

  Scene scene_;
  std::vector<Box3> bounds_;
  bool tight_;
  BrickSource source_;
  std::vector<Step> steps_;
};

}  // namespace quarry
