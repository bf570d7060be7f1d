// SPDX-License-Identifier: Apache-2.0
// world_pages.cpp - finds the pages of a file, and exchanges those in memory.
#include "engine/home/world_pages.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>

#include "voxel/bricks/occupancy.hpp"
#include "voxel/io/quarry/codec.hpp"
#include "voxel/io/quarry/visible_regions.hpp"

namespace quarry::engine {
namespace {

// Of full pages, each twice while it is flattened.
size_t pages_at_once(uint64_t budget_bytes) {
  return size_t(budget_bytes / kReadShare / (2 * kPageBricks * (kVoxelBytes + kKeyBytes)));
}

uint64_t bytes_of(const BrickPut& put) { return kKeyBytes + (put.value.material() ? 0 : kVoxelBytes); }

}  // namespace

uint32_t WorldPages::most_bricks(uint64_t budget_bytes) {
  return uint32_t(std::min<uint64_t>(most_bytes_there(budget_bytes) / (kVoxelBytes + kKeyBytes), 0xFFFFFFFEu));
}

WorldPages::~WorldPages() { shared_->set_residency(nullptr); }

Result<std::unique_ptr<WorldPages>> WorldPages::open(io::StoreReader file, Device& device, SharedWorld& shared,
                                                     const SceneWindow& window, uint64_t budget_bytes,
                                                     Exchange exchange, const Progress& progress) {
  if (budget_bytes < kLeastBytes)
    return fail(ErrorCode::invalid_argument,
                "a world is drawn in parts in " + std::to_string(kLeastBytes >> 20) + " MiB at least");
  std::unique_ptr<WorldPages> self(new WorldPages(std::move(file), shared, window, budget_bytes, std::move(exchange)));
  QRY_TRY(self->look_at_file(device, progress));
  shared.set_residency(self->residency_.get());
  return self;
}

Box3 WorldPages::in_scene(const Box3& world) const { return {world.min + window_.origin, world.max + window_.origin}; }

// Those that the window keeps, at their places in the world.
std::vector<BrickPut> WorldPages::in_world(std::vector<BrickPut> of_scene) const {
  const auto is_in = [](const Box3& voxels, Int3 brick) {
    const Box3 its = box_of_voxels({brick, brick});
    return intersected(voxels, its) == its;
  };
  std::erase_if(of_scene, [&](const BrickPut& put) {
    return !is_in(window_.kept, put.brick) || is_in(window_.left_out, put.brick);
  });
  for (BrickPut& put : of_scene) put.brick = put.brick - brick_of(window_.origin);
  return of_scene;
}

Result<void> WorldPages::look_at_file(Device& device, const Progress& progress) {
  const Scene& scene = file_.scene();
  struct Extent {
    uint64_t voxels = 0, bricks = 0;
    Box3 bounds;  // tight
  };
  std::vector<Extent> extents(scene.volumes.size());
  std::vector<std::vector<const Instance*>> shown(scene.volumes.size());
  for (const Instance& instance : scene.instances)
    if (scene.instance_visible(instance)) shown[instance.volume].push_back(&instance);
  std::mutex lock;
  QRY_TRY(file_.visit_all(
      [&](uint32_t volume, const io::PackedChunk& chunk) -> Result<void> {
        Extent some;
        CoarseCells coarse;
        QRY_TRY(chunk.each([&](Int3 at, const Brick& brick, uint8_t full) {
          const Box3 own = voxel_bounds(at, brick.mask);
          ++some.bricks;
          some.voxels += full ? kVoxelsPerBrick : count_of(brick.mask);
          some.bounds = united(some.bounds, own);
          if (shown[volume].empty()) return;
          const uint8_t material = full ? full : coarse_material(brick);
          for (const Instance* const instance : shown[volume]) {
            const Box3 seen = intersected(placed(*instance, own), window_.kept);
            if (seen.empty() || intersected(seen, window_.left_out) == seen) continue;
            add_coarse({seen.min - window_.origin, seen.max - window_.origin}, material, coarse);
          }
        }));
        const std::lock_guard hold(lock);
        Extent& all = extents[volume];
        all.voxels += some.voxels;
        all.bricks += some.bricks;
        all.bounds = united(all.bounds, some.bounds);
        coarse_.merge(coarse);
        return {};
      },
      progress));
  for (size_t i = 0; i < scene.instances.size(); ++i) {
    const Instance& instance = scene.instances[i];
    if (!scene.instance_visible(instance)) continue;
    Box3 box = intersected(placed(instance, extents[instance.volume].bounds), window_.kept);
    if (!box.empty()) box = {box.min - window_.origin, box.max - window_.origin};
    if (intersected(box, {kWorldMin, kWorldMax}) != box)
      return fail(ErrorCode::out_of_bounds,
                  "instance " + std::to_string(i) + " ('" + instance.name + "') reaches outside the world");
    bounds_ = united(bounds_, box);
    voxels_ += extents[instance.volume].voxels;
    bricks_ += extents[instance.volume].bricks;
  }
  for (const Extent& extent : extents) volume_bounds_.push_back(extent.bounds);
  QRY_TRY_ASSIGN(residency_, Residency::create(device, bounds_, coarse_));
  coarse_.each_page([&](uint32_t page) {
    ++counters_.pages;
    residency_->set_absent(page, true);
  });
  return {};
}

// Lets pages leave that this round has not reached, those first that were reached longest ago. False: too few.
Result<bool> WorldPages::make_room(uint64_t bytes) {
  const uint64_t most = most_bytes_there(budget_bytes_);
  if (counters_.bytes + bytes <= most) return true;
  std::vector<std::pair<uint64_t, uint32_t>> old;
  for (const auto& [page, its] : there_)
    if (its.round != round_) old.emplace_back(its.round, page);
  std::ranges::sort(old);
  std::vector<BrickPut> gone;
  for (const auto& [round, page] : old) {
    if (counters_.bytes + bytes <= most) break;
    const auto at = there_.find(page);
    for (const uint32_t key : at->second.keys) gone.push_back({brick_from_key(key), {}});
    counters_.bytes -= at->second.bytes;
    there_.erase(at);
    ++counters_.left;
    residency_->set_absent(page, true);
  }
  if (!gone.empty()) QRY_TRY(exchange_(gone));
  return counters_.bytes + bytes <= most;
}

Result<PagesBrought> WorldPages::bring(const Progress& progress) {
  if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped");
  ++round_;
  std::vector<uint32_t> missing;
  for (const uint32_t page : residency_->reached().pages) {
    if (residency_->absent(page)) missing.push_back(page);
    else if (const auto at = there_.find(page); at != there_.end()) at->second.round = round_;
  }
  if (missing.empty()) return PagesBrought::none_missing;
  ++counters_.rounds;
  progress.say("drawing, and reading what is seen", -1);
  std::vector<BrickPut> arrived;
  std::vector<std::pair<uint32_t, Page>> pages;  // of these
  uint64_t bytes = 0;
  const auto settle = [&]() -> Result<bool> {
    QRY_TRY_ASSIGN(const bool fits, make_room(bytes));
    if (!fits) return false;
    if (!arrived.empty()) QRY_TRY(exchange_(arrived));
    for (auto& [page, its] : pages) {
      there_[page] = std::move(its);
      residency_->set_absent(page, false);
    }
    counters_.brought += pages.size();
    counters_.bytes += bytes;
    counters_.most_bytes = std::max(counters_.most_bytes, counters_.bytes);
    arrived.clear();
    pages.clear();
    bytes = 0;
    return true;
  };
  std::vector<Box3> boxes;
  boxes.reserve(missing.size());
  for (const uint32_t page : missing) boxes.push_back(in_scene(voxels_of_page(page)));
  struct Read {
    Page its;
    std::vector<BrickPut> bricks;
    uint64_t read = 0;
  };
  std::vector<Read> reads(missing.size());
  bool fits = true;
  const auto take = [&](size_t i, const BrickMap& bricks, uint64_t read) -> Result<void> {
    Read& one = reads[i];
    one.read = read;
    one.bricks = in_world(bricks.within({brick_of(boxes[i].min), brick_of(boxes[i].max)}));
    one.its.round = round_;
    one.its.keys.reserve(one.bricks.size());
    for (const BrickPut& put : one.bricks) {
      one.its.bytes += bytes_of(put);
      one.its.keys.push_back(brick_key(put.brick));
    }
    return {};
  };
  const auto put = [&](size_t i) -> Result<void> {
    Read one = std::exchange(reads[i], {});
    counters_.bricks_read += one.read;
    if (bytes + one.its.bytes > budget_bytes_ / kReadShare && !pages.empty()) {
      QRY_TRY_ASSIGN(fits, settle());
      if (!fits) return fail(ErrorCode::cancelled, "too many");
    }
    arrived.insert(arrived.end(), std::make_move_iterator(one.bricks.begin()),
                   std::make_move_iterator(one.bricks.end()));
    bytes += one.its.bytes;
    pages.emplace_back(missing[i], std::move(one.its));
    return {};
  };
  const auto done = io::visible_in_boxes(file_, boxes, volume_bounds_, {take, put},
                                         {.report = {}, .cancel = progress.cancel}, pages_at_once(budget_bytes_));
  if (!fits) return PagesBrought::too_many;
  QRY_TRY(done);
  QRY_TRY_ASSIGN(fits, settle());
  return fits ? PagesBrought::some : PagesBrought::too_many;
}

Result<BrickMap> WorldPages::bricks_with(const std::array<bool, 256>& materials, const Progress& progress) {
  std::vector<uint32_t> pages;
  coarse_.each_page([&](uint32_t page) { pages.push_back(page); });
  std::ranges::sort(pages);
  std::vector<Box3> own, boxes;
  for (const uint32_t page : pages) {
    own.push_back(in_scene(voxels_of_page(page)));
    boxes.push_back({own.back().min - Int3{8, 8, 8}, own.back().max + Int3{8, 8, 8}});
  }
  std::vector<std::vector<BrickPut>> of_pages(boxes.size());
  const auto take = [&](size_t i, const BrickMap& bricks, uint64_t) -> Result<void> {
    for (const BrickPut& put : bricks.within({brick_of(own[i].min), brick_of(own[i].max)})) {
      const BrickView brick = *put.value;
      bool has = false;
      for (uint32_t v = 0; v < kVoxelsPerBrick && !has; ++v) has = materials[brick.get(v)];
      if (!has) continue;
      for (const Int3 beside :
           {Int3{0, 0, 0}, Int3{1, 0, 0}, Int3{-1, 0, 0}, Int3{0, 1, 0}, Int3{0, -1, 0}, Int3{0, 0, 1}, Int3{0, 0, -1}})
        if (SharedBrick there = bricks.share(put.brick + beside))
          of_pages[i].push_back({put.brick + beside, std::move(there)});
    }
    return {};
  };
  BrickMap found;
  PieceProgress looked(progress, "looking for lights");
  looked.begin(boxes.size(), 0, 1);
  const auto put = [&](size_t i) -> Result<void> {
    if (!looked.piece_done()) return fail(ErrorCode::cancelled, "stopped");
    for (BrickPut& one : in_world(std::exchange(of_pages[i], {}))) found.put(one.brick, std::move(one.value));
    return {};
  };
  QRY_TRY(io::visible_in_boxes(file_, boxes, volume_bounds_, {take, put}, {.report = {}, .cancel = progress.cancel},
                               pages_at_once(budget_bytes_)));
  return found;
}

}  // namespace quarry::engine
