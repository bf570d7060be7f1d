// SPDX-License-Identifier: Apache-2.0
// scene_by_regions.hpp - operations of whole_scene.hpp on scenes whose bricks do not fit memory: those of which each
// brick depends on the bricks near it alone. The scene, without bricks, is changed at once; bricks are made box by box,
// from what a file has in the box and around it. They are those that the whole scene would have.
//
//   source (a world file) ─► needs(): which box ─► crop, shrink, dilate ... ─► make(): the bricks of a box
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "voxel/operations/morphology.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry {

class SceneByRegions {
 public:
  // `scene` has no bricks. `bounds`: of each volume's voxels, tight; empty where there are none.
  SceneByRegions(Scene scene, std::vector<Box3> bounds)
      : scene_(std::move(scene)), bounds_(std::move(bounds)), tight_(true) {}

  // As the steps so far make it, without bricks.
  const Scene& scene() const { return scene_; }
  Scene& scene() { return scene_; }  // whose volumes and instances are not to be changed
  // Outside of which a volume has no voxel.
  const std::vector<Box3>& bounds() const { return bounds_; }

  // Steps, in the order of the calls; each is its namesake of whole_scene.hpp, with the same errors.
  Result<void> turn(const Rotation& rotation);
  Result<void> enlarge(uint32_t n);
  Result<void> shrink(uint32_t n);
  Result<void> hollow(uint32_t thickness);
  Result<void> dilate(Connectivity neighbours, uint32_t steps);
  Result<void> erode(Connectivity neighbours, uint32_t steps);
  // The tight bounds of all volumes of a scene, by making them. crop() asks for them: which instances stay, and which
  // of them have a volume in common, depends on each voxel.
  using Measure = std::function<Result<std::vector<Box3>>(const SceneByRegions& scene)>;
  Result<void> crop(const Box3& box, const Measure& measure);

  // What of the source is needed to make a volume's bricks in a box; an empty box: nothing, there are none.
  struct Needed {
    uint32_t volume;
    Box3 bricks;
  };
  Needed needs(uint32_t volume, const Box3& bricks) const;
  // About the most bricks that are in memory while so many in a box are made of so many of the source.
  uint64_t held(const Box3& bricks, uint64_t source) const;
  // The bricks in the box. `source` has at least those that are needed. Free-threaded. Errors: those of the operations,
  // cancelled.
  Result<BrickMap> make(uint32_t volume, const Box3& bricks, const BrickMap& source, const Progress& progress) const;
  // Whether a brick depends on others beside it.
  bool reaches() const;

 private:
  struct Step {
    std::function<Needed(uint32_t volume, const Box3& bricks)> needs;
    std::function<Result<BrickMap>(uint32_t volume, const Box3& bricks, const BrickMap& before, const Progress&)> make;
    uint32_t reach = 0;  // in bricks
    uint64_t grows = 1;  // bricks that come of one, at most
  };
  // A step that looks at voxels up to `reach` away, in the same volume.
  void add_near(uint32_t reach, uint64_t grows, std::function<Result<BrickMap>(const BrickMap&, const Progress&)> make);

  Scene scene_;
  std::vector<Box3> bounds_;
  bool tight_;
  std::vector<Step> steps_;
};

}  // namespace quarry
