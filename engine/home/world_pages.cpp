// SPDX-License-Identifier: Apache-2.0
// world_pages.cpp - finds the pages of a file, and exchanges those in memory.
#include "engine/home/world_pages.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "voxel/bricks/occupancy.hpp"
#include "voxel/io/quarry/codec.hpp"
#include "voxel/io/quarry/visible_regions.hpp"

namespace quarry::engine {
namespace {

// Of a brick that is there: masks and materials, unless it is full of one material; and its pairs of the grid at a load
// of a half and its places in the pyramid, with what both leave behind when they change.
constexpr uint64_t kVoxelBytes = 584, kKeyBytes = 40;
// Bricks are read this share of the budget at a time; while they are flattened they are there twice.
constexpr uint64_t kReadShare = 8;

// Adds the cells of 32^3 voxels that a box meets to the outlines of their pages.
void outline(const Box3& voxels, std::unordered_map<uint32_t, uint64_t>& outlines) {
  const Box3 box = intersected(voxels, {kWorldMin, kWorldMax});
  if (box.empty()) return;
  for (int32_t z = box.min.z >> 5; z <= box.max.z >> 5; ++z)
    for (int32_t y = box.min.y >> 5; y <= box.max.y >> 5; ++y)
      for (int32_t x = box.min.x >> 5; x <= box.max.x >> 5; ++x) {
        const Int3 brick{x * 4, y * 4, z * 4};
        outlines[page_of(brick)] |= uint64_t(1) << pyramid_place(brick).level2_bit;
      }
}

// Of the bricks that are there; the rest is for those that are read.
uint64_t most_bytes(uint64_t budget_bytes) { return budget_bytes - budget_bytes / kReadShare * 2; }

uint64_t bytes_of(const BrickPut& put) { return kKeyBytes + (put.value.material() ? 0 : kVoxelBytes); }

}  // namespace

uint32_t WorldPages::most_bricks(uint64_t budget_bytes) {
  return uint32_t(std::min<uint64_t>(most_bytes(budget_bytes) / (kVoxelBytes + kKeyBytes), 0xFFFFFFFEu));
}

WorldPages::~WorldPages() { shared_->set_residency(nullptr); }

Result<std::unique_ptr<WorldPages>> WorldPages::open(io::StoreReader file, Device& device, SharedWorld& shared,
                                                     uint64_t budget_bytes, Exchange exchange,
                                                     const Progress& progress) {
  if (budget_bytes < kLeastBytes)
    return fail(ErrorCode::invalid_argument,
                "a world is drawn in parts in " + std::to_string(kLeastBytes >> 20) + " MiB at least");
  std::unique_ptr<WorldPages> self(new WorldPages(std::move(file), shared, budget_bytes, std::move(exchange)));
  QRY_TRY(self->look_at_file(device, progress));
  shared.set_residency(self->residency_.get());
  return self;
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
  outlines_.assign(size_t(kLevel3Nodes) * 64, 0);
  std::mutex lock;
  QRY_TRY(file_.visit_all(
      [&](uint32_t volume, const io::PackedChunk& chunk) -> Result<void> {
        Extent some;
        std::unordered_map<uint32_t, uint64_t> outlines;
        QRY_TRY(chunk.each([&](Int3 at, const Brick& brick, uint8_t full) {
          const Box3 own = voxel_bounds(at, brick.mask);
          ++some.bricks;
          some.voxels += full ? kVoxelsPerBrick : count_of(brick.mask);
          some.bounds = united(some.bounds, own);
          for (const Instance* const instance : shown[volume]) outline(placed(*instance, own), outlines);
        }));
        const std::lock_guard hold(lock);
        Extent& all = extents[volume];
        all.voxels += some.voxels;
        all.bricks += some.bricks;
        all.bounds = united(all.bounds, some.bounds);
        for (const auto& [page, cells] : outlines) outlines_[page] |= cells;
        return {};
      },
      progress));
  for (size_t i = 0; i < scene.instances.size(); ++i) {
    const Instance& instance = scene.instances[i];
    if (!scene.instance_visible(instance)) continue;
    const Box3 box = placed(instance, extents[instance.volume].bounds);
    if (intersected(box, {kWorldMin, kWorldMax}) != box)
      return fail(ErrorCode::out_of_bounds,
                  "instance " + std::to_string(i) + " ('" + instance.name + "') reaches outside the world");
    bounds_ = united(bounds_, box);
    voxels_ += extents[instance.volume].voxels;
    bricks_ += extents[instance.volume].bricks;
  }
  for (const Extent& extent : extents) volume_bounds_.push_back(extent.bounds);
  counters_.pages = uint64_t(std::ranges::count_if(outlines_, [](uint64_t cells) { return cells != 0; }));
  QRY_TRY_ASSIGN(residency_, Residency::create(device, bounds_, outlines_));
  return {};
}

// Lets pages leave that this round has not reached, those first that were reached longest ago. False: too few.
Result<bool> WorldPages::make_room(uint64_t bytes) {
  const uint64_t most = most_bytes(budget_bytes_);
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
  for (const uint32_t page : residency_->reached()) {
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
  for (const uint32_t page : missing) {
    if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped");
    const Box3 voxels = voxels_of_page(page);
    uint64_t read = 0;
    QRY_TRY_ASSIGN(const BrickMap bricks, io::visible_in_box(file_, voxels, &read, {}, &volume_bounds_));
    counters_.bricks_read += read;
    const std::vector<BrickPut> own = bricks.within({brick_of(voxels.min), brick_of(voxels.max)});
    Page its;
    its.round = round_;
    its.keys.reserve(own.size());
    for (const BrickPut& put : own) {
      its.bytes += bytes_of(put);
      its.keys.push_back(brick_key(put.brick));
    }
    if (bytes + its.bytes > budget_bytes_ / kReadShare && !pages.empty()) {
      QRY_TRY_ASSIGN(const bool fits, settle());
      if (!fits) return PagesBrought::too_many;
    }
    arrived.insert(arrived.end(), own.begin(), own.end());
    bytes += its.bytes;
    pages.emplace_back(page, std::move(its));
  }
  QRY_TRY_ASSIGN(const bool fits, settle());
  return fits ? PagesBrought::some : PagesBrought::too_many;
}

Result<BrickMap> WorldPages::bricks_with(const std::array<bool, 256>& materials, const Progress& progress) {
  BrickMap found;
  uint64_t done = 0;
  for (uint32_t page = 0; page < outlines_.size(); ++page) {
    if (!outlines_[page]) continue;
    if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped");
    progress.say("looking for lights", double(done++) / double(counters_.pages));
    const Box3 own = voxels_of_page(page);
    uint64_t read = 0;
    QRY_TRY_ASSIGN(const BrickMap bricks, io::visible_in_box(file_, {own.min - Int3{8, 8, 8}, own.max + Int3{8, 8, 8}},
                                                             &read, {}, &volume_bounds_));
    for (const BrickPut& put : bricks.within({brick_of(own.min), brick_of(own.max)})) {
      const BrickView brick = *put.value;
      bool has = false;
      for (uint32_t i = 0; i < kVoxelsPerBrick && !has; ++i) has = materials[brick.get(i)];
      if (!has) continue;
      for (const Int3 beside :
           {Int3{0, 0, 0}, Int3{1, 0, 0}, Int3{-1, 0, 0}, Int3{0, 1, 0}, Int3{0, -1, 0}, Int3{0, 0, 1}, Int3{0, 0, -1}})
        if (SharedBrick there = bricks.share(put.brick + beside)) found.put(put.brick + beside, std::move(there));
    }
  }
  return found;
}

}  // namespace quarry::engine
