// SPDX-License-Identifier: Apache-2.0
// placed_volumes.cpp - sends volumes, and launches the steps that find what their placements make of a world.
#include "voxel/device/placed_volumes.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <string>

#include "voxel/device/bodies/flatten.hpp"
#include "voxel/device/store.hpp"

namespace quarry::device {
namespace {

// Addresses, not memory: no world is made of more.
constexpr uint64_t kMostSent = uint64_t(1) << 27, kMostPairs = uint64_t(1) << 27,
                   kMostContributions = uint64_t(1) << 28, kMostPlaced = uint64_t(1) << 27;

Placed placed_of(const Placement& placement, uint64_t first_pair, uint64_t first_brick) {
  Placed placed{uint32_t(first_pair), uint32_t(first_brick), 0, {}};
  const Int3 offset = placement.offset;
  placed.offset[0] = offset.x, placed.offset[1] = offset.y, placed.offset[2] = offset.z;
  for (uint32_t axis = 0; axis < 3; ++axis)
    placed.turn |= (uint32_t(placement.rotation.axis[axis]) | (placement.rotation.sign[axis] < 0 ? 4u : 0u))
                   << (3 * axis);
  return placed;
}

// The bricks of the world that a placed volume may meet, as far as they are in it.
Box3 reached(const Placed& placed, const Box3& bricks) {
  const Target a = target_of(placed, bricks.min), b = target_of(placed, bricks.max);
  const Int3 world_min = brick_of(kWorldMin), world_max = brick_of(kWorldMax);
  const auto low = [&](uint32_t axis, int32_t min) {
    return int32_t(std::max<int64_t>(std::min(a.at[axis], b.at[axis]), min));
  };
  const auto high = [&](uint32_t axis, int32_t max) {
    return int32_t(std::min<int64_t>(std::max(a.at[axis], b.at[axis]) + (shift_of(placed, axis) != 0), max));
  };
  // What is wholly outside has no box; comparisons of 64 bits have seen to it that nothing wraps.
  for (uint32_t axis = 0; axis < 3; ++axis) {
    const int64_t min = axis == 1 ? world_min.y : world_min.x, max = axis == 1 ? world_max.y : world_max.x;
    if (std::min(a.at[axis], b.at[axis]) > max || std::max(a.at[axis], b.at[axis]) + 1 < min) return {};
  }
  return {{low(0, world_min.x), low(1, world_min.y), low(2, world_min.z)},
          {high(0, world_max.x), high(1, world_max.y), high(2, world_max.z)}};
}

}  // namespace

PlacedVolumes::PlacedVolumes(Store& store) : executor_(store.executor()), control_(store.memory().control) {}

Result<std::unique_ptr<PlacedVolumes>> PlacedVolumes::create(Store& store) {
  std::unique_ptr<PlacedVolumes> volumes(new PlacedVolumes(store));
  Executor& executor = store.executor();
  const auto reserve = [&](Range& range, uint64_t count, size_t element_bytes, const char* label) -> Result<void> {
    QRY_TRY_ASSIGN(range, executor.reserve(size_t(count) * element_bytes, label));
    return {};
  };
  QRY_TRY(reserve(volumes->at_, kMostSent, sizeof(Int3), "where bricks of volumes are"));
  QRY_TRY(reserve(volumes->indices_, kMostSent, sizeof(uint32_t), "bricks of volumes"));
  QRY_TRY(reserve(volumes->masks_, kMostSent, sizeof(BrickMask), "masks of volumes"));
  QRY_TRY(reserve(volumes->materials_, kMostSent, sizeof(BrickMaterials), "materials of volumes"));
  QRY_TRY(reserve(volumes->numbers_, kMostSent, sizeof(uint32_t), "numbers of sent bricks"));
  QRY_TRY(reserve(volumes->sent_indices_, kMostSent, sizeof(uint32_t), "sent bricks"));
  QRY_TRY(reserve(volumes->sent_at_, kMostSent, sizeof(Int3), "where sent bricks are"));
  QRY_TRY(reserve(volumes->placed_, kMostPlaced + 1, sizeof(Placed), "placements"));
  QRY_TRY(reserve(volumes->parts_, kMostPairs, 1, "parts of placed bricks"));
  QRY_TRY(reserve(volumes->before_, kMostPairs / kPairRun + 1, sizeof(uint32_t), "counts of contributions"));
  for (Range& range : volumes->bricks_)
    QRY_TRY(reserve(range, kMostContributions, sizeof(uint32_t), "bricks of contributions"));
  for (Range& range : volumes->sources_)
    QRY_TRY(reserve(range, kMostContributions, sizeof(uint32_t), "sources of contributions"));
  return volumes;
}

PlacedVolumes::~PlacedVolumes() {
  (void)executor_.wait();
  for (Range* const range : all())
    if (range->data) executor_.release(*range);
}

Result<void> PlacedVolumes::grow(Range& range, uint64_t count, size_t element_bytes, bool ahead) {
  uint64_t bytes = count * element_bytes;
  if (bytes <= range.size_bytes) return {};
  if (ahead) bytes = std::max<uint64_t>(bytes, std::min(range.size_bytes + range.size_bytes / 2, range.most_bytes));
  const auto begin = std::chrono::steady_clock::now();
  auto grown = executor_.grow(range, size_t(bytes));
  room_ms_ += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  return grown;
}

Result<void> PlacedVolumes::begin(std::span<const uint64_t> bricks) {
  uint64_t all = 0;
  volumes_.clear();
  for (const uint64_t count : bricks) {
    volumes_.push_back({all, count, 0, {}});
    all += count;
    if (count > kMostSent || all > kMostSent)
      return fail(ErrorCode::full, "volumes with more than " + std::to_string(kMostSent) +
                                       " bricks are more than a device flattens at once");
  }
  QRY_TRY(grow(at_, all, sizeof(Int3)));
  return grow(indices_, all, sizeof(uint32_t));
}

Result<void> PlacedVolumes::send(const Bricks& bricks) {
  const size_t count = bricks.at.size(), stored = bricks.materials.size();
  if (count == 0) return {};
  QRY_TRY(grow(masks_, stored_ + stored, sizeof(BrickMask), true));
  QRY_TRY(grow(materials_, stored_ + stored, sizeof(BrickMaterials), true));
  QRY_TRY(grow(numbers_, count, sizeof(uint32_t), true));
  QRY_TRY(grow(sent_indices_, count, sizeof(uint32_t), true));
  QRY_TRY(grow(sent_at_, count, sizeof(Int3), true));
  std::vector<uint32_t> numbers, indices(bricks.indices.begin(), bricks.indices.end());
  numbers.reserve(count);
  for (const Row& row : bricks.rows) {
    Volume& volume = volumes_[row.volume];
    if (volume.sent + row.count > volume.count)
      return fail(ErrorCode::full, "volume " + std::to_string(row.volume) + " has more bricks than was said");
    for (uint32_t i = 0; i < row.count; ++i) {
      const Int3 at = bricks.at[numbers.size()];
      volume.bricks = united(volume.bricks, {at, at});
      numbers.push_back(uint32_t(volume.first + volume.sent++));
    }
  }
  // Those that are not full are numbered as they come.
  auto next = uint32_t(kFullBricks + stored_);
  for (uint32_t& index : indices)
    if (!is_full_index(index)) index = next++;
  const auto send = [&](Range& range, auto from) {
    return executor_.copy_in(range.data, from.data(), from.size_bytes());
  };
  QRY_TRY(send(numbers_, std::span<const uint32_t>(numbers)));
  QRY_TRY(send(sent_indices_, std::span<const uint32_t>(indices)));
  QRY_TRY(send(sent_at_, bricks.at));
  Memory memory{};
  memory.control = control_;
  PlacedBricks& p = memory.placed;
  p.at = static_cast<Int3*>(at_.data);
  p.indices = static_cast<uint32_t*>(indices_.data);
  p.sent_numbers = static_cast<const uint32_t*>(numbers_.data);
  p.sent_indices = static_cast<const uint32_t*>(sent_indices_.data);
  p.sent_at = static_cast<const Int3*>(sent_at_.data);
  EditCall call{};
  call.listed = uint32_t(count);
  QRY_TRY(executor_.run(StepId::sort_in, memory, call, count));
  if (stored == 0) return {};
  auto* const materials = static_cast<BrickMaterials*>(materials_.data) + stored_;
  QRY_TRY(executor_.copy_in(materials, bricks.materials.data(), bricks.materials.size_bytes()));
  p.masks = static_cast<uint64_t*>(masks_.data) + stored_ * 8;
  p.materials = static_cast<const uint64_t*>(materials_.data) + stored_ * 64;
  call.listed = uint32_t(stored);
  stored_ += stored;
  return executor_.run(StepId::mask_bricks, memory, call, stored * 64);
}

Result<PlacedVolumes::Found> PlacedVolumes::group(Memory& memory, std::span<const Placement> placements) {
  std::vector<Placed> placed;
  std::vector<size_t> numbers;  // of the placements
  uint64_t pairs = 0;
  Box3 box;
  for (size_t i = 0; i < placements.size(); ++i) {
    const Volume& volume = volumes_[placements[i].volume];
    if (volume.sent == 0) continue;
    placed.push_back(placed_of(placements[i], pairs, volume.first));
    numbers.push_back(i);
    box = united(box, reached(placed.back(), volume.bricks));
    pairs += volume.sent;
    if (pairs > kMostPairs)
      return fail(ErrorCode::full, "instances with more than " + std::to_string(kMostPairs) +
                                       " bricks are more than a device flattens at once");
  }
  if (placed.empty()) return Found{};
  placed.push_back({uint32_t(pairs), 0, 0, {}});
  if (box.empty()) box = {};  // all of it is outside, as the device will find
  QRY_TRY(grow(placed_, placed.size(), sizeof(Placed)));
  QRY_TRY(grow(parts_, pairs, 1));
  const uint64_t runs = (pairs + kPairRun - 1) / kPairRun;
  QRY_TRY(grow(before_, runs, sizeof(uint32_t)));
  QRY_TRY(executor_.copy_in(placed_.data, placed.data(), placed.size() * sizeof(Placed)));
  PlacedBricks& p = memory.placed;
  p = {};
  p.at = static_cast<Int3*>(at_.data);
  p.indices = static_cast<uint32_t*>(indices_.data);
  p.masks = static_cast<uint64_t*>(masks_.data);
  p.materials = static_cast<const uint64_t*>(materials_.data);
  p.placed = static_cast<const Placed*>(placed_.data);
  p.placed_count = uint32_t(placed.size() - 1);
  p.pairs = uint32_t(pairs);
  p.parts = static_cast<uint8_t*>(parts_.data);
  p.before = static_cast<uint32_t*>(before_.data);
  uint32_t bits = 0;
  const int32_t low[3] = {box.min.x, box.min.y, box.min.z}, high[3] = {box.max.x, box.max.y, box.max.z};
  for (uint32_t axis = 0; axis < 3; ++axis) {
    p.box.low[axis] = low[axis];
    bits += p.box.bits[axis] = uint32_t(std::bit_width(uint32_t(std::max(high[axis] - low[axis], 0))));
  }
  QRY_TRY(executor_.run(StepId::begin_list, memory, {}, 1));
  QRY_TRY(executor_.run(StepId::survey_placed, memory, {}, runs));
  QRY_TRY(executor_.run(StepId::scan_placed, memory, {}, 1));
  Control control;
  QRY_TRY(executor_.copy_out(&control, memory.control, sizeof control));
  if (control.list_outside != kNoVoxel) {
    const auto after = std::upper_bound(placed.begin(), placed.end() - 1, uint32_t(control.list_outside),
                                        [](uint32_t pair, const Placed& one) { return pair < one.first_pair; });
    outside_ = numbers[size_t(after - placed.begin()) - 1];
    return fail(ErrorCode::out_of_bounds, "placement " + std::to_string(outside_) + " has voxels outside of the world");
  }
  const uint64_t contributions = control.contributions;
  if (contributions > kMostContributions)
    return fail(ErrorCode::full, "instances meet " + std::to_string(contributions) +
                                     " bricks of the world, which is more than a device flattens at once");
  if (contributions == 0) return Found{};
  for (Range* const range : {&bricks_[0], &bricks_[1], &sources_[0], &sources_[1]})
    QRY_TRY(grow(*range, contributions, sizeof(uint32_t)));
  const auto at = [](const Range& range) { return static_cast<uint32_t*>(range.data); };
  const Executor::Pairs both = {{at(bricks_[0]), at(bricks_[1])}, {at(sources_[0]), at(sources_[1])}};
  p.bricks = both.keys[0];
  p.sources = both.values[0];
  p.starts = both.keys[1];
  p.count = uint32_t(contributions);
  QRY_TRY(executor_.run(StepId::contribute, memory, {}, runs));
  if (bits) {
    QRY_TRY_ASSIGN(const uint32_t sorted, executor_.sort(both, p.count, bits));
    p.bricks = both.keys[sorted];
    p.sources = both.values[sorted];
    p.starts = both.keys[1 - sorted];
  }
  QRY_TRY(executor_.run(StepId::group_placed, memory, {}, (contributions + kContributionRun - 1) / kContributionRun));
  QRY_TRY(executor_.copy_out(&control, memory.control, sizeof control));
  const Int3 first = box.min, last = box.max;
  return Found{control.list_whole,
               control.list_bricks,
               p.pairs,
               p.count,
               {{first.x * 8, first.y * 8, first.z * 8}, {last.x * 8 + 7, last.y * 8 + 7, last.z * 8 + 7}}};
}

}  // namespace quarry::device
