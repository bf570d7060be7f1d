// SPDX-License-Identifier: Apache-2.0
// list_scratch.cpp - makes room for a list of voxels, sends it, and launches the steps that make bricks of it.
#include "voxel/device/list_scratch.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "voxel/device/lists.hpp"

namespace quarry::device {
Result<std::unique_ptr<ListScratch>> ListScratch::create(Executor& executor) {
  std::unique_ptr<ListScratch> scratch(new ListScratch(executor));
  const auto reserve = [&](Range& range, uint64_t most_bytes, const char* label) -> Result<void> {
    QRY_TRY_ASSIGN(range, executor.reserve(size_t(most_bytes), label));
    return {};
  };
  QRY_TRY(reserve(scratch->xyz_, kMostListed * 3 * sizeof(int32_t), "positions of a list"));
  QRY_TRY(reserve(scratch->materials_, kMostListed, "materials of a list"));
  for (Range& range : scratch->bricks_) QRY_TRY(reserve(range, kMostListed * sizeof(uint32_t), "bricks of a list"));
  for (Range& range : scratch->packed_) QRY_TRY(reserve(range, kMostListed * sizeof(uint32_t), "voxels of a list"));
  QRY_TRY(reserve(scratch->starts_, kMostListed * sizeof(uint32_t), "where a list's bricks begin"));
  return scratch;
}

ListScratch::~ListScratch() {
  for (Range* const range : all())
    if (range->data) executor_.release(*range);
}

Executor::Pairs ListScratch::pairs() {
  const auto at = [](const Range& range) { return static_cast<uint32_t*>(range.data); };
  return {{at(bricks_[0]), at(bricks_[1])}, {at(packed_[0]), at(packed_[1])}};
}

Result<ListScratch::Found> ListScratch::find_bricks(Memory& memory, Range& keys, const GivenVoxels& list) {
  if (list.count > kMostListed)
    return fail(ErrorCode::full, "a device groups at most " + std::to_string(kMostListed) + " voxels, not " +
                                     std::to_string(list.count));
  // Lists that become longer and longer do not ask for memory each time.
  const auto grow = [&](Range& range, uint64_t element_bytes) -> Result<void> {
    const uint64_t bytes = list.count * element_bytes;
    if (bytes <= range.size_bytes) return {};
    const uint64_t more = std::max<uint64_t>(bytes, range.size_bytes + range.size_bytes / 2);
    return executor_.grow(range, size_t(std::min<uint64_t>(more, range.most_bytes)));
  };
  for (Range* const range : {&keys, &bricks_[0], &bricks_[1], &packed_[0], &packed_[1], &starts_})
    QRY_TRY(grow(*range, sizeof(uint32_t)));
  ListedVoxels& voxels = memory.voxels;
  voxels = {list.xyz, list.materials, nullptr, nullptr, static_cast<uint32_t*>(starts_.data), uint32_t(list.count), {},
            {}};
  if (list.side == Side::host) {
    QRY_TRY(grow(xyz_, 3 * sizeof(int32_t)));
    QRY_TRY(grow(materials_, 1));
    QRY_TRY(executor_.copy_in(xyz_.data, list.xyz, list.count * 3 * sizeof(int32_t)));
    voxels.xyz = static_cast<const int32_t*>(xyz_.data);
    voxels.materials = static_cast<const uint8_t*>(materials_.data);
  }
  memory.listed_keys = static_cast<uint32_t*>(keys.data);
  QRY_TRY(executor_.run(StepId::begin_list, memory, {}, 1));
  QRY_TRY(executor_.run(StepId::survey_list, memory, {}, list.count));
  if (list.side == Side::host) QRY_TRY(executor_.copy_in(materials_.data, list.materials, list.count));

  Control control;
  QRY_TRY(executor_.copy_out(&control, memory.control, sizeof control));
  if (control.list_outside != kNoVoxel) {
    const auto number = size_t(control.list_outside);
    int32_t at[3];
    if (list.side == Side::device) QRY_TRY(executor_.copy_out(at, list.xyz + 3 * number, sizeof at));
    else std::copy_n(list.xyz + 3 * number, 3, at);
    return tl::unexpected(outside_of_world({at[0], at[1], at[2]}, number));
  }
  uint32_t bits = 0;
  for (uint32_t axis = 0; axis < 3; ++axis) {
    voxels.low[axis] = control.low[axis];
    bits += voxels.bits[axis] = uint32_t(std::bit_width(uint32_t(control.high[axis] - control.low[axis])));
  }
  const Executor::Pairs both = pairs();
  voxels.bricks = both.keys[0];
  voxels.packed = both.values[0];
  QRY_TRY(executor_.run(StepId::key_voxels, memory, {}, list.count));
  if (bits) {
    QRY_TRY_ASSIGN(const uint32_t sorted, executor_.sort(both, uint32_t(list.count), bits));
    voxels.bricks = both.keys[sorted];
    voxels.packed = both.values[sorted];
  }
  QRY_TRY(executor_.run(StepId::begin_bricks, memory, {}, list.count));
  uint32_t bricks = 0;
  QRY_TRY(executor_.copy_out(&bricks, &memory.control->list_bricks, sizeof bricks));
  const int32_t* const low = control.low;
  const int32_t* const high = control.high;
  return Found{bricks, {{low[0] * 8, low[1] * 8, low[2] * 8}, {high[0] * 8 + 7, high[1] * 8 + 7, high[2] * 8 + 7}}};
}

Error outside_of_world(Int3 voxel, size_t number) {
  return {ErrorCode::out_of_bounds,
          "voxel (" + std::to_string(voxel.x) + ", " + std::to_string(voxel.y) + ", " + std::to_string(voxel.z) +
              "), number " + std::to_string(number) +
              " of the array, lies outside the world: the world is x and z in [-8192, 8191], y in [-4096, 4095], "
              "without the brick at its upper corner (x and z from 8184, y from 4088)"};
}

Result<void> ListScratch::fill_bricks(const Memory& memory, uint32_t bricks) {
  EditCall call{};
  call.listed = bricks;
  return executor_.run(StepId::assemble, memory, call, (uint64_t(bricks) + Assemble::kBricks - 1) / Assemble::kBricks);
}

}  // namespace quarry::device
