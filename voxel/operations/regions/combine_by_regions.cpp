// SPDX-License-Identifier: Apache-2.0
// combine_by_regions.cpp - sources made of sources: of several scenes, of what instances place into a box, of two
// volumes combined.
#include "voxel/operations/regions/combine_by_regions.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "voxel/operations/internal.hpp"
#include "voxel/worlds/flatten.hpp"

namespace quarry {
using namespace operations_detail;
namespace {

using Pass = SceneByRegions::Pass;
using Needed = SceneByRegions::Needed;

// The volumes of all scenes, one after the other.
BrickSource joined(std::vector<SceneByRegions> scenes, const Progress& progress) {
  struct Volumes {
    std::vector<SceneByRegions> scenes;
    std::vector<std::pair<size_t, uint32_t>> places;  // scene, volume there
  };
  const auto all = std::make_shared<Volumes>();
  all->scenes = std::move(scenes);
  for (size_t s = 0; s < all->scenes.size(); ++s)
    for (uint32_t v = 0; v < all->scenes[s].bounds().size(); ++v) all->places.emplace_back(s, v);
  return {[all](uint32_t volume, const Box3& bricks) {
            const auto& [scene, its] = all->places[volume];
            return all->scenes[scene].held(its, bricks);
          },
          [all, quiet = only_cancel(progress)](uint32_t volume, const Box3& bricks, BrickMap& into) -> Result<void> {
            const auto& [scene, its] = all->places[volume];
            QRY_TRY_ASSIGN(const BrickMap made, all->scenes[scene].read(its, bricks, quiet));
            into.put(made.within(bricks));
            return {};
          }};
}

std::vector<Box3> all_bounds(const std::vector<SceneByRegions>& scenes) {
  std::vector<Box3> bounds;
  for (const SceneByRegions& scene : scenes) bounds.insert(bounds.end(), scene.bounds().begin(), scene.bounds().end());
  return bounds;
}

// What places voxels into a box of world bricks: the instances, in their order, and the bricks that they show there.
struct PlacedThere {
  std::vector<Instance> instances;
  std::vector<Needed> needed;
};
PlacedThere placed_there(const Scene& scene, const std::vector<Box3>& bounds, const Box3& bricks) {
  PlacedThere out;
  const Box3 least{brick_of(kSceneMin), brick_of(kSceneMax)};
  const Box3 within = intersected(bricks, least);
  if (within.empty()) return out;
  const Box3 cells = box_of_voxels(within);
  for (const Instance& instance : scene.instances) {
    if (!scene.instance_visible(instance)) continue;
    const Box3 here = intersected(box_in_volume(instance, cells), bounds[instance.volume]);
    if (here.empty()) continue;
    out.instances.push_back(instance);
    const Needed needed{instance.volume, {brick_of(here.min), brick_of(here.max)}};
    if (std::ranges::none_of(out.needed, [&](const Needed& other) {
          return other.volume == needed.volume && intersected(needed.bricks, other.bricks) == needed.bricks;
        }))
      out.needed.push_back(needed);
  }
  return out;
}

// Volumes 0 and 1 of a source.
BrickSource combined(const BrickSource& from, BooleanKind kind, const Progress& progress) {
  return {[from](uint32_t, const Box3& bricks) -> Result<uint64_t> {
            QRY_TRY_ASSIGN(const uint64_t a, from.count(0, bricks));
            QRY_TRY_ASSIGN(const uint64_t b, from.count(1, bricks));
            return a + b + std::min(a, b);  // new bricks come only where both have one
          },
          [from, kind, quiet = only_cancel(progress)](uint32_t, const Box3& bricks, BrickMap& into) -> Result<void> {
            BrickMap a, b;
            QRY_TRY(from.read(0, bricks, a));
            if (a.empty() && kind != BooleanKind::union_of) return {};
            QRY_TRY(from.read(1, bricks, b));
            QRY_TRY_ASSIGN(const BrickMap both, boolean(a, b, kind, quiet));
            into.put(both.within(bricks));
            return {};
          }};
}

}  // namespace

Result<SceneByRegions> flattened(SceneByRegions scene, const char* name, const Pass& pass, const Progress& progress) {
  QRY_TRY(check(scene.scene()));
  QRY_TRY(scene.tighten(pass));  // so that it is known what is too far out
  Scene head = scene.scene();
  std::vector<Box3> bounds = scene.bounds();
  Box3 all;
  for (const uint32_t i : shown_instances(head, true)) {
    const Instance& instance = head.instances[i];
    if (bounds[instance.volume].empty()) continue;
    const Box3 box = placed(instance, bounds[instance.volume]);
    if (!in_scene(box)) return tl::unexpected(instance_too_far(head, i));
    all = united(all, box);
  }
  Scene flat = single({}, head.palette, name);
  std::vector<SceneByRegions> only;
  only.push_back(std::move(scene));
  const BrickSource from = joined(std::move(only), progress);
  const auto shown = std::make_shared<const std::pair<Scene, std::vector<Box3>>>(std::move(head), std::move(bounds));
  BrickSource source;
  source.count = [from, shown](uint32_t, const Box3& bricks) -> Result<uint64_t> {
    uint64_t sum = 0;
    for (const Needed& needed : placed_there(shown->first, shown->second, bricks).needed) {
      QRY_TRY_ASSIGN(const uint64_t its, from.count(needed.volume, needed.bricks));
      sum += its;
    }
    return 2 * sum;
  };
  source.read = [from, shown](uint32_t, const Box3& bricks, BrickMap& into) -> Result<void> {
    PlacedThere there = placed_there(shown->first, shown->second, bricks);
    Scene some;
    some.volumes.resize(shown->first.volumes.size());
    some.overlap = shown->first.overlap;
    some.layers = shown->first.layers;
    some.instances = std::move(there.instances);
    for (const Needed& needed : there.needed)
      QRY_TRY(from.read(needed.volume, needed.bricks, some.volumes[needed.volume].bricks));
    QRY_TRY_ASSIGN(const BrickMap visible, flatten(some, true));
    into.put(visible.within(bricks));
    return {};
  };
  return SceneByRegions(std::move(flat), {all}, std::move(source));
}

Result<SceneByRegions> merge(std::vector<SceneByRegions> scenes, const Pass& pass, const Progress& progress,
                             PaletteError* error) {
  std::vector<const Scene*> heads;
  std::vector<MaterialCounts> counts;
  for (SceneByRegions& scene : scenes) {
    QRY_TRY(check(scene.scene()));
    QRY_TRY_ASSIGN(const auto volumes, scene.summaries(pass));
    counts.push_back(material_counts(volumes));
    heads.push_back(&scene.scene());
  }
  QRY_TRY_ASSIGN(MergePlan plan, plan_merge(heads, counts));
  if (error) *error = plan.error;
  std::vector<Box3> bounds = all_bounds(scenes);
  SceneByRegions out(std::move(plan.scene), std::move(bounds), joined(std::move(scenes), progress));
  out.remap(std::move(plan.tables));
  return out;
}

Result<SceneByRegions> boolean(SceneByRegions a, SceneByRegions b, BooleanKind kind, const Pass& pass,
                               const Progress& progress, PaletteError* error) {
  if (error) *error = {};
  const char* name = kind == BooleanKind::union_of       ? "union"
                     : kind == BooleanKind::intersection ? "intersection"
                                                         : "difference";
  std::vector<SceneByRegions> both;
  for (SceneByRegions* scene : {&a, &b}) {
    QRY_TRY_ASSIGN(auto flat, flattened(std::move(*scene), name, pass, progress));
    both.push_back(std::move(flat));
  }
  const Box3 first = both[0].bounds()[0], second = both[1].bounds()[0];
  const bool unites = kind == BooleanKind::union_of;
  const Box3 bounds = unites                              ? united(first, second)
                      : kind == BooleanKind::intersection ? intersected(first, second)
                                                          : first;
  Scene out = single({}, both[0].scene().palette, name);
  if (unites) {
    QRY_TRY_ASSIGN(auto merged, merge(std::move(both), pass, progress, error));
    out.palette = merged.scene().palette;
    both.clear();
    both.push_back(std::move(merged));
  }
  return SceneByRegions(std::move(out), {bounds}, combined(joined(std::move(both), progress), kind, progress), unites);
}

Result<std::vector<PartByRegions>> split(SceneByRegions scene, SplitKind kind, int32_t edge, const Pass& pass) {
  QRY_TRY(check_split(scene.scene(), kind, edge));
  std::vector<PartByRegions> parts;
  if (kind == SplitKind::regions) {
    QRY_TRY(scene.tighten(pass));  // once, instead of for each region
    SplitCubes cubes(edge);
    QRY_TRY(pass(scene, [&](uint32_t volume, const BrickMap& bricks) -> Result<void> {
      for (const Instance& instance : scene.scene().instances)
        if (instance.volume == volume) QRY_TRY(cubes.add(instance, bricks));
      return {};
    }));
    for (SplitCubes::Cube& cube : cubes.all()) {
      SceneByRegions part = scene;
      QRY_TRY(part.crop(cube.cells, pass));
      if (!part.scene().instances.empty()) parts.push_back({std::move(cube.name), std::move(part)});
    }
    return parts;
  }
  std::vector<std::array<bool, 256>> used(scene.bounds().size());
  if (kind == SplitKind::materials) {
    QRY_TRY_ASSIGN(const auto volumes, scene.summaries(pass));
    for (size_t v = 0; v < used.size(); ++v)
      for (size_t m = 1; m < 256; ++m) used[v][m] = volumes[v].materials[m] > 0;
  } else {
    QRY_TRY(scene.tighten(pass));
  }
  for (size_t v = 0; v < used.size(); ++v) used[v][0] = !scene.bounds()[v].empty();
  QRY_TRY_ASSIGN(auto plans, plan_split(scene.scene(), used, kind));
  for (SplitPlan& plan : plans) {
    SceneByRegions part = scene;
    part.select(std::move(plan.scene), plan.from, plan.material);
    parts.push_back({std::move(plan.name), std::move(part)});
  }
  return parts;
}

}  // namespace quarry
