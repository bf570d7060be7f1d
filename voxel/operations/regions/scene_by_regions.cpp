// SPDX-License-Identifier: Apache-2.0
// scene_by_regions.cpp - boxes go back through the steps to the source, bricks come forward.
#include "voxel/operations/regions/scene_by_regions.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "base/parallel.hpp"
#include "voxel/operations/internal.hpp"
#include "voxel/operations/regions/chunk_pieces.hpp"

namespace quarry {
using namespace operations_detail;
namespace {

constexpr int32_t kLowest = -(1 << 28), kHighest = (1 << 28) - 1;  // bricks, so that voxels have 32 bits

int32_t brick_coordinate(int64_t v) { return int32_t(std::clamp<int64_t>(v, kLowest, kHighest)); }

Box3 widened(const Box3& bricks, int32_t by) {
  const auto low = [by](int32_t v) { return brick_coordinate(int64_t(v) - by); };
  const auto high = [by](int32_t v) { return brick_coordinate(int64_t(v) + by); };
  return {{low(bricks.min.x), low(bricks.min.y), low(bricks.min.z)},
          {high(bricks.max.x), high(bricks.max.y), high(bricks.max.z)}};
}

// Voxels of a box, widened; what is beyond 32 bits is at their end.
Box3 widened_voxels(const Box3& voxels, int64_t by) {
  if (voxels.empty()) return voxels;
  const auto at = [](int64_t v) { return int32_t(std::clamp<int64_t>(v, INT32_MIN, INT32_MAX)); };
  return {{at(voxels.min.x - by), at(voxels.min.y - by), at(voxels.min.z - by)},
          {at(voxels.max.x + by), at(voxels.max.y + by), at(voxels.max.z + by)}};
}

Box3 bricks_of(const Box3& voxels) {
  return voxels.empty() ? Box3{} : Box3{brick_of(voxels.min), brick_of(voxels.max)};
}

BrickMap trimmed(const BrickMap& bricks, const Box3& box) {
  BrickMap out;
  out.put(bricks.within(box));
  return out;
}

uint64_t volume_of(const Box3& box) {
  if (box.empty()) return 0;
  return uint64_t(int64_t(box.max.x) - box.min.x + 1) * uint64_t(int64_t(box.max.y) - box.min.y + 1) *
         uint64_t(int64_t(box.max.z) - box.min.z + 1);
}

}  // namespace

Result<std::vector<VolumeSummary>> SceneByRegions::summaries(const Pass& pass) {
  std::vector<VolumeSummary> all(bounds_.size());
  QRY_TRY(pass(*this, [&](uint32_t volume, const BrickMap& bricks) -> Result<void> {
    all[volume].add(bricks);
    return {};
  }));
  for (size_t v = 0; v < all.size(); ++v) bounds_[v] = all[v].bounds;
  tight_ = true;
  return all;
}

Result<void> SceneByRegions::tighten(const Pass& pass) {
  if (!tight_) QRY_TRY(summaries(pass));
  return {};
}

Result<void> SceneByRegions::turn(const Rotation& rotation) {
  QRY_TRY_ASSIGN(scene_, quarry::turn(scene_, rotation));
  return {};
}

Result<void> SceneByRegions::enlarge(uint32_t n) {
  QRY_TRY_ASSIGN(scene_, plan_enlarge(scene_, bounds_, n));
  if (n == 1) return {};
  const auto factor = int64_t(n);
  for (Box3& box : bounds_) {
    if (box.empty()) continue;
    const auto low = [&](int32_t v) { return int32_t(v * factor); };
    const auto high = [&](int32_t v) { return int32_t(v * factor + factor - 1); };
    box = {{low(box.min.x), low(box.min.y), low(box.min.z)}, {high(box.max.x), high(box.max.y), high(box.max.z)}};
  }
  Step step;
  step.needs = [factor](uint32_t volume, const Box3& bricks) -> Needed {
    const auto at = [&](int32_t v) { return int32_t(floor_div(v, factor)); };
    return {volume,
            {{at(bricks.min.x), at(bricks.min.y), at(bricks.min.z)},
             {at(bricks.max.x), at(bricks.max.y), at(bricks.max.z)}}};
  };
  step.make = [n](uint32_t, const Box3& bricks, const BrickMap& before, const Progress&) -> Result<BrickMap> {
    return enlarged(before, int32_t(n), bricks);
  };
  step.grows = uint64_t(n) * n * n;
  steps_.push_back(std::move(step));
  return {};
}

Result<void> SceneByRegions::shrink(uint32_t n) {
  QRY_TRY_ASSIGN(ShrinkPlan plan, plan_shrink(scene_, n));
  if (n == 1) return {};
  const auto edge = int64_t(n);
  std::vector<Box3> bounds;
  for (const ShrinkPlan::Part& part : plan.parts) {
    const Box3& box = bounds_[part.volume];
    const Int3 p = part.phase;
    const auto at = [&](int32_t v, int32_t phase) { return int32_t(floor_div(int64_t(v) + phase, edge)); };
    bounds.push_back(box.empty() ? box
                                 : Box3{{at(box.min.x, p.x), at(box.min.y, p.y), at(box.min.z, p.z)},
                                        {at(box.max.x, p.x), at(box.max.y, p.y), at(box.max.z, p.z)}});
  }
  scene_ = std::move(plan.scene);
  bounds_ = std::move(bounds);
  const auto parts = std::make_shared<const std::vector<ShrinkPlan::Part>>(std::move(plan.parts));
  Step step;
  step.needs = [parts, edge](uint32_t volume, const Box3& bricks) -> Needed {
    const auto& [from, p] = (*parts)[volume];
    const auto low = [&](int32_t v, int32_t phase) { return brick_coordinate((int64_t(v) * 8 * edge - phase) >> 3); };
    const auto high = [&](int32_t v, int32_t phase) {
      return brick_coordinate(((int64_t(v) * 8 + 8) * edge - 1 - phase) >> 3);
    };
    return {from,
            {{low(bricks.min.x, p.x), low(bricks.min.y, p.y), low(bricks.min.z, p.z)},
             {high(bricks.max.x, p.x), high(bricks.max.y, p.y), high(bricks.max.z, p.z)}}};
  };
  step.make = [parts, edge](uint32_t volume, const Box3& bricks, const BrickMap& before,
                            const Progress&) -> Result<BrickMap> {
    return trimmed(shrunk(before, (*parts)[volume].phase, edge, 1), bricks);
  };
  steps_.push_back(std::move(step));
  return {};
}

void SceneByRegions::add_near(uint32_t reach, uint64_t grows,
                              std::function<Result<BrickMap>(const BrickMap&, const Progress&)> make) {
  Step step;
  step.reach = (reach + 7) / 8;
  step.grows = grows;
  step.needs = [by = int32_t(step.reach)](uint32_t volume, const Box3& bricks) -> Needed {
    return {volume, widened(bricks, by)};
  };
  step.make = [make = std::move(make)](uint32_t, const Box3& bricks, const BrickMap& before,
                                       const Progress& progress) -> Result<BrickMap> {
    QRY_TRY_ASSIGN(const BrickMap made, make(before, progress));
    return trimmed(made, bricks);
  };
  steps_.push_back(std::move(step));
}

Result<void> SceneByRegions::hollow(uint32_t thickness) {
  QRY_TRY(check(scene_));
  QRY_TRY(check_hollow(thickness));
  // A voxel is taken away if none within `thickness` of it is empty. So the bounds stay.
  add_near(thickness, 1, [thickness](const BrickMap& bricks, const Progress& progress) {
    return hollowed(bricks, thickness, progress);
  });
  return {};
}

Result<void> SceneByRegions::dilate(Connectivity neighbours, uint32_t steps) {
  QRY_TRY(check(scene_));
  for (size_t v = 0; v < bounds_.size(); ++v) {
    Box3& box = bounds_[v];
    if (const auto fits = check_dilate(box, steps); !fits)
      return fail(fits.error().code, "volume " + std::to_string(v) + ": " + fits.error().message);
    box = widened_voxels(box, steps);  // as the voxels that bound it grow along each axis
  }
  add_near(steps, 2 + steps / 8, [neighbours, steps](const BrickMap& bricks, const Progress& progress) {
    return quarry::dilate(bricks, neighbours, steps, progress);
  });
  return {};
}

Result<void> SceneByRegions::erode(Connectivity neighbours, uint32_t steps) {
  QRY_TRY(check(scene_));
  tight_ = tight_ && steps == 0;
  add_near(steps, 1, [neighbours, steps](const BrickMap& bricks, const Progress& progress) {
    return quarry::erode(bricks, neighbours, steps, progress);
  });
  return {};
}

Result<void> SceneByRegions::crop(const Box3& box, const Pass& pass) {
  QRY_TRY(check(scene_));
  QRY_TRY(tighten(pass));
  CropPlan plan = plan_crop(scene_, bounds_, box);
  const bool all_whole = std::ranges::all_of(plan.parts, [](const CropPlan::Part& part) { return part.whole; });
  auto parts = std::make_shared<std::vector<CropPlan::Part>>(plan.parts);
  Step step;
  step.needs = [parts](uint32_t volume, const Box3& bricks) -> Needed {
    const CropPlan::Part& part = (*parts)[volume];
    return {part.volume, intersected(bricks, bricks_of(part.kept))};
  };
  step.make = [parts](uint32_t volume, const Box3& bricks, const BrickMap& before,
                      const Progress&) -> Result<BrickMap> {
    return trimmed(cut(before, (*parts)[volume].kept), bricks);
  };
  steps_.push_back(std::move(step));
  scene_ = std::move(plan.scene);
  bounds_.clear();
  for (const CropPlan::Part& part : *parts) bounds_.push_back(part.kept);
  if (all_whole) return {};
  // What is left of a volume, if anything is.
  QRY_TRY(summaries(pass));
  std::vector<bool> empty;
  for (const Box3& left : bounds_) empty.push_back(left.empty());
  const std::vector<uint32_t> stay = drop_volumes(scene_, empty);
  std::vector<CropPlan::Part> kept;
  std::vector<Box3> bounds;
  for (const uint32_t v : stay) {
    kept.push_back((*parts)[v]);
    bounds.push_back(bounds_[v]);
  }
  *parts = std::move(kept);
  bounds_ = std::move(bounds);
  return {};
}

Result<void> SceneByRegions::quantise(uint32_t count, const Pass& pass, PaletteError* error) {
  QRY_TRY_ASSIGN(const auto volumes, summaries(pass));
  QRY_TRY_ASSIGN(QuantisePlan plan, plan_quantise(scene_, material_counts(volumes), count));
  if (error) *error = plan.error;
  scene_ = std::move(plan.scene);
  remap(std::vector(bounds_.size(), plan.table));
  return {};
}

void SceneByRegions::remap(std::vector<MaterialTable> tables) {
  Step step;
  step.needs = [](uint32_t volume, const Box3& bricks) -> Needed { return {volume, bricks}; };
  step.make = [tables = std::make_shared<const std::vector<MaterialTable>>(std::move(tables))](
                  uint32_t volume, const Box3&, const BrickMap& before, const Progress&) -> Result<BrickMap> {
    return remapped(before, (*tables)[volume]);
  };
  steps_.push_back(std::move(step));
}

void SceneByRegions::select(Scene scene, const std::vector<uint32_t>& from, uint8_t material) {
  scene_ = std::move(scene);
  std::vector<Box3> bounds;
  bounds.reserve(from.size());
  for (const uint32_t volume : from) bounds.push_back(bounds_[volume]);
  bounds_ = std::move(bounds);
  tight_ = tight_ && material == 0;
  Step step;
  step.needs = [from](uint32_t volume, const Box3& bricks) -> Needed { return {from[volume], bricks}; };
  step.make = [material](uint32_t, const Box3&, const BrickMap& before, const Progress&) -> Result<BrickMap> {
    return material ? of_material(before, material) : before;
  };
  steps_.push_back(std::move(step));
}

void SceneByRegions::change_chunks(Scene scene, std::vector<Box3> bounds, bool tight, ChunkStep step) {
  scene_ = std::move(scene);
  bounds_ = std::move(bounds);
  tight_ = tight_ && tight;
  Step added;
  added.by_chunks = true;
  added.needs = [needs = std::move(step.needs)](uint32_t volume, const Box3& bricks) -> Needed {
    const Box3 chunks = needs(volume, chunks_of(bricks));
    if (chunks.empty()) return {volume, chunks};
    return {volume, box_of_bricks(chunks)};
  };
  if (step.fills)
    added.fills = [fills = step.fills](uint32_t volume, const Box3& bricks) {
      return fills(volume, chunks_of(bricks)).size() * kVoxelsPerBrick;  // a chunk has as many bricks as a brick voxels
    };
  added.make = [make = std::move(step.make), fills = std::move(step.fills)](
                   uint32_t volume, const Box3& bricks, const BrickMap& before,
                   const Progress& progress) -> Result<BrickMap> {
    std::vector<Int3> chunks = before.chunks();
    if (fills) {
      const std::vector<Int3> filled = fills(volume, chunks_of(bricks));
      chunks.insert(chunks.end(), filled.begin(), filled.end());
    }
    std::vector<Result<BrickMap>> made(chunks.size());
    parallel_for(chunks.size(), 1, [&](size_t i, size_t) {
      made[i] = progress.cancelled()
                    ? fail(ErrorCode::cancelled, "stopped")
                    : make(volume, chunks[i], trimmed(before, box_of_bricks({chunks[i], chunks[i]})), progress);
    });
    BrickMap all;
    for (Result<BrickMap>& chunk : made) {
      QRY_TRY(chunk);
      all.put(chunk->within(bricks));
      chunk->clear();
    }
    return all;
  };
  steps_.push_back(std::move(added));
}

std::vector<SceneByRegions::Needed> SceneByRegions::wanted(uint32_t volume, const Box3& bricks) const {
  std::vector<Needed> all(steps_.size() + 1, Needed{volume, bricks});
  for (size_t i = steps_.size(); i-- > 0;)
    all[i] = all[i + 1].bricks.empty() ? all[i + 1] : steps_[i].needs(all[i + 1].volume, all[i + 1].bricks);
  return all;
}

SceneByRegions::Needed SceneByRegions::needs(uint32_t volume, const Box3& bricks) const {
  return wanted(volume, bricks).front();
}

Result<uint64_t> SceneByRegions::held(uint32_t volume, const Box3& bricks) const {
  const std::vector<Needed> all_wanted = wanted(volume, bricks);
  uint64_t made = 0;
  if (const Needed& first = all_wanted.front(); !first.bricks.empty()) {
    QRY_TRY_ASSIGN(made, source_.count(first.volume, first.bricks));
  }
  const uint64_t most = volume_of(bricks);
  uint64_t all = made;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    // A step whose bricks come from far more than the box makes no more than those of the box in the end.
    if (step.grows > 1) made = std::min(made * step.grows, std::max(most, made));
    const Needed& its = all_wanted[i + 1];
    // A full brick takes a place in a map, several times while maps are put together; that is an eighth of a brick.
    if (step.fills && !its.bricks.empty()) made += step.fills(its.volume, its.bricks) / 8;
    all += made;
  }
  return all;
}

Result<BrickMap> SceneByRegions::make(uint32_t volume, const Box3& bricks, const BrickMap& source,
                                      const Progress& progress) const {
  const std::vector<Needed> all_wanted = wanted(volume, bricks);
  BrickMap now;
  if (!all_wanted.front().bricks.empty()) now = trimmed(source, all_wanted.front().bricks);
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped");
    const Needed& made = all_wanted[i + 1];
    if (made.bricks.empty() || (now.empty() && !steps_[i].fills)) continue;
    QRY_TRY_ASSIGN(now, steps_[i].make(made.volume, made.bricks, now, progress));
  }
  return now;
}

// By slabs along x, each by a thread.
Result<BrickMap> SceneByRegions::read(uint32_t volume, const Box3& bricks, const Progress& progress) const {
  const Needed needed = needs(volume, bricks);
  const Progress quiet = only_cancel(progress);
  BrickMap before;
  if (!needed.bricks.empty()) QRY_TRY(source_.read(needed.volume, needed.bricks, before));
  if (before.empty() && !fills()) return BrickMap{};
  if (steps_.empty()) return trimmed(before, bricks);
  // Thin slabs keep threads busy; but what is beside a slab, or of the same chunk, is made twice.
  const int32_t layers = bricks.max.x - bricks.min.x + 1, least = by_chunks() ? 8 : reaches() ? 4 : 1;
  const int32_t thick = std::max(layers / 1024 + 1, std::clamp(layers / int32_t(2 * thread_count()), least, 8));
  const auto count = size_t((layers + thick - 1) / thick);
  std::vector<Result<BrickMap>> slabs(count);
  parallel_for(count, 1, [&](size_t i, size_t) {
    Box3 slab = bricks;
    slab.min.x = bricks.min.x + int32_t(i) * thick;
    slab.max.x = std::min(bricks.max.x, slab.min.x + thick - 1);
    slabs[i] = make(volume, slab, before, quiet);
  });
  BrickMap made;
  for (Result<BrickMap>& slab : slabs) {
    QRY_TRY(slab);
    made.append(std::move(*slab));
  }
  return made;
}

bool SceneByRegions::reaches() const {
  return std::ranges::any_of(steps_, [](const Step& step) { return step.reach > 0; });
}

bool SceneByRegions::fills() const {
  return std::ranges::any_of(steps_, [](const Step& step) { return step.fills != nullptr; });
}

bool SceneByRegions::by_chunks() const {
  return std::ranges::any_of(steps_, [](const Step& step) { return step.by_chunks; });
}

}  // namespace quarry
