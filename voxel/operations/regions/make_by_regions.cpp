// SPDX-License-Identifier: Apache-2.0
// make_by_regions.cpp - plans regions that fit the room, and makes each, in parts if it must be.
#include "voxel/operations/regions/make_by_regions.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace quarry {
namespace {

constexpr uint64_t kBrickBytes = 700;  // in a map, with what a step has beside it
constexpr double kPlanned = 0.7;       // of the room

uint64_t bricks_that_fit(uint64_t bytes) { return uint64_t(double(bytes) * kPlanned) / kBrickBytes; }

// The bricks of a region. If what it is made from does not fit, its halves are made one after the other.
Result<BrickMap> region(const SceneByRegions& scene, uint32_t volume, const Box3& bricks, uint64_t most,
                        const Progress& progress) {
  const Int3 size = bricks.max - bricks.min;
  const int32_t longest = std::max({size.x, size.y, size.z});
  QRY_TRY_ASSIGN(const uint64_t its, scene.held(volume, bricks));
  if (its <= most || longest == 0) return scene.read(volume, bricks, progress);
  Box3 first = bricks, second = bricks;
  const auto part = [](int32_t low, int32_t high, int32_t& end, int32_t& begin) {
    end = low + (high - low) / 2;
    begin = end + 1;
  };
  if (size.x == longest) part(bricks.min.x, bricks.max.x, first.max.x, second.min.x);
  else if (size.y == longest) part(bricks.min.y, bricks.max.y, first.max.y, second.min.y);
  else part(bricks.min.z, bricks.max.z, first.max.z, second.min.z);
  QRY_TRY_ASSIGN(const uint64_t of_first, scene.held(volume, first));
  QRY_TRY_ASSIGN(const uint64_t of_second, scene.held(volume, second));
  if (std::max(of_first, of_second) >= its) return scene.read(volume, bricks, progress);  // each needs all of a chunk
  QRY_TRY_ASSIGN(BrickMap made, region(scene, volume, first, most, progress));
  QRY_TRY_ASSIGN(const BrickMap more, region(scene, volume, second, most, progress));
  made.put(more.within(second));
  return made;
}

// Boxes of chunks that fit the room, in the order of chunks: as many layers along x as do, or parts of one along y, or
// parts of a row along z.
class Plan {
 public:
  Plan(const SceneByRegions& scene, uint32_t volume, const Box3& chunks)
      : scene_(&scene), volume_(volume), all_(chunks), at_(chunks.min) {}

  bool done() const { return all_.empty() || at_.x > all_.max.x; }
  // The next one. A single chunk is always taken: it is made in parts, if it must be.
  Result<Box3> next(uint64_t most_held) {
    // Only what begins a layer, or a row, may be whole layers, or rows.
    size_t axis = at_.z > all_.min.z ? 2 : at_.y > all_.min.y ? 1 : 0;
    int32_t count = left(axis);
    for (;;) {
      const Box3 box = from_here(axis, count), bricks = box_of_bricks(box);
      QRY_TRY_ASSIGN(const uint64_t its, scene_->held(volume_, bricks));
      if (its <= most_held || (axis == 2 && count == 1)) {
        go_on(axis, box);
        return bricks;
      }
      if (count > 1) count -= count / 2;
      else count = left(++axis);
    }
  }

 private:
  int32_t left(size_t axis) const {
    return 1 + (axis == 0 ? all_.max.x - at_.x : axis == 1 ? all_.max.y - at_.y : all_.max.z - at_.z);
  }
  Box3 from_here(size_t axis, int32_t count) const {
    Box3 box{at_, all_.max};
    if (axis == 0) {
      box.max.x = at_.x + count - 1;
    } else {
      box.max.x = at_.x;
      if (axis == 1) box.max.y = at_.y + count - 1;
      else box.max.y = at_.y, box.max.z = at_.z + count - 1;
    }
    return box;
  }
  void go_on(size_t axis, const Box3& box) {
    if (axis == 2 && box.max.z < all_.max.z) {
      at_.z = box.max.z + 1;
    } else if (axis >= 1 && box.max.y < all_.max.y) {
      at_ = {at_.x, box.max.y + 1, all_.min.z};
    } else {
      at_ = {box.max.x + 1, all_.min.y, all_.min.z};
    }
  }

  const SceneByRegions* scene_;
  uint32_t volume_;
  Box3 all_;
  Int3 at_;
};

}  // namespace

Result<uint64_t> make_by_regions(const SceneByRegions& scene, const std::function<uint64_t()>& available_bytes,
                                 const Progress& progress, const SceneByRegions::TakeRegion& take) {
  uint64_t regions = 0;
  for (uint32_t volume = 0; volume < scene.bounds().size(); ++volume) {
    if (scene.bounds()[volume].empty()) continue;
    const Box3 bricks{brick_of(scene.bounds()[volume].min), brick_of(scene.bounds()[volume].max)};
    const auto chunk = [](Int3 v) { return Int3{v.x >> 3, v.y >> 3, v.z >> 3}; };
    Plan plan(scene, volume, {chunk(bricks.min), chunk(bricks.max)});
    while (!plan.done()) {
      if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped");
      const uint64_t most = bricks_that_fit(available_bytes());
      QRY_TRY_ASSIGN(const Box3 box, plan.next(most));
      QRY_TRY_ASSIGN(BrickMap made, region(scene, volume, box, most, progress));
      ++regions;
      if (!made.empty()) QRY_TRY(take(volume, std::move(made)));
    }
  }
  return regions;
}

SceneByRegions::Pass pass_by_regions(const std::function<uint64_t()>& available_bytes, const Progress& progress) {
  return {[=](const SceneByRegions& scene, const SceneByRegions::TakeRegion& take) -> Result<void> {
            QRY_TRY(make_by_regions(scene, available_bytes, progress, take));
            return {};
          },
          available_bytes};
}

}  // namespace quarry
