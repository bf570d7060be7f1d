// SPDX-License-Identifier: Apache-2.0
// list_scratch.cpp - makes room for a list of voxels, sends it, and launches the steps that make bricks of it.
#include "voxel/device/list_scratch.hpp"

#include <algorithm>
#include <bit>
#include <string>

namespace quarry::device {
namespace {

// A fuller table is searched for too long.
constexpr uint32_t kMostListBricks = kMostListSlots / 10 * 7;

// The table is never more than half full, unless it is as large as it gets.
uint32_t slots_for(uint32_t voxels) {
  return std::clamp<uint32_t>(std::bit_ceil(voxels) * 2, 1u << 10, kMostListSlots);
}

}  // namespace

Result<std::unique_ptr<ListScratch>> ListScratch::create(Executor& executor) {
  std::unique_ptr<ListScratch> scratch(new ListScratch(executor));
  const auto reserve = [&](Range& range, uint64_t most_bytes, const char* label) -> Result<void> {
    QRY_TRY_ASSIGN(range, executor.reserve(size_t(most_bytes), label));
    return {};
  };
  QRY_TRY(reserve(scratch->xyz_, uint64_t(kListPiece) * 3 * sizeof(int32_t), "positions of a list"));
  QRY_TRY(reserve(scratch->materials_, kMostListed, "materials of a list"));
  QRY_TRY(reserve(scratch->places_, kMostListed * sizeof(uint32_t), "places of a list's voxels"));
  QRY_TRY(reserve(scratch->last_, kMostListed * sizeof(int32_t), "last of a list's voxels"));
  QRY_TRY(reserve(scratch->firsts_, uint64_t(kMostListBricks) * 8 * sizeof(uint32_t), "octants of a list"));
  QRY_TRY(reserve(scratch->slots_, uint64_t(kMostListSlots) * sizeof(uint32_t), "a table of a list's keys"));
  QRY_TRY(reserve(scratch->numbers_, uint64_t(kMostListSlots) * sizeof(uint32_t), "numbers of a list's bricks"));
  return scratch;
}

ListScratch::~ListScratch() {
  for (Range* const range : all())
    if (range->data) executor_.release(*range);
}

Result<void> ListScratch::make_room(Memory& memory, Range& keys, uint32_t voxels) {
  // Lists that become longer and longer do not ask for memory each time.
  const auto grow = [&](Range& range, uint64_t count, uint64_t element_bytes) -> Result<void> {
    const uint64_t bytes = count * element_bytes;
    if (bytes <= range.size_bytes) return {};
    const uint64_t more = std::max<uint64_t>(bytes, range.size_bytes + range.size_bytes / 2);
    return executor_.grow(range, size_t(std::min<uint64_t>(more, range.most_bytes)));
  };
  ListedVoxels& list = memory.voxels;
  list.last_slot = slots_for(voxels) - 1;
  list.brick_room = std::min(voxels, kMostListBricks);
  list.count = voxels;
  QRY_TRY(grow(keys, list.brick_room, sizeof(uint32_t)));
  QRY_TRY(grow(xyz_, std::min(voxels, kListPiece), 3 * sizeof(int32_t)));
  QRY_TRY(grow(materials_, voxels, 1));
  QRY_TRY(grow(places_, voxels, sizeof(uint32_t)));
  QRY_TRY(grow(last_, voxels, sizeof(int32_t)));
  QRY_TRY(grow(slots_, uint64_t(list.last_slot) + 1, sizeof(uint32_t)));
  QRY_TRY(grow(numbers_, uint64_t(list.last_slot) + 1, sizeof(uint32_t)));
  memory.listed_keys = static_cast<uint32_t*>(keys.data);
  list.xyz = static_cast<const int32_t*>(xyz_.data);
  list.materials = static_cast<const uint8_t*>(materials_.data);
  list.places = static_cast<uint32_t*>(places_.data);
  list.last = static_cast<int32_t*>(last_.data);
  list.firsts = static_cast<uint32_t*>(firsts_.data);
  list.slots = static_cast<uint32_t*>(slots_.data);
  list.numbers = static_cast<uint32_t*>(numbers_.data);
  return {};
}

Result<ListScratch::Found> ListScratch::find_bricks(Memory& memory, Range& keys, std::span<const int32_t> xyz,
                                                    std::span<const uint8_t> materials) {
  if (materials.size() > kMostListed)
    return fail(ErrorCode::full, "a device groups at most " + std::to_string(kMostListed) + " voxels, not " +
                                     std::to_string(materials.size()));
  QRY_TRY(make_room(memory, keys, uint32_t(materials.size())));
  QRY_TRY(executor_.run(StepId::begin_list, memory, {}, uint64_t(memory.voxels.last_slot) + 1));
  // A piece is copied while the device still groups the one before it.
  for (size_t first = 0; first < materials.size(); first += kListPiece) {
    const size_t size = std::min<size_t>(kListPiece, materials.size() - first);
    memory.voxels.first = uint32_t(first);
    memory.voxels.size = uint32_t(size);
    QRY_TRY(executor_.copy_in(xyz_.data, xyz.data() + 3 * first, size * 3 * sizeof(int32_t)));
    QRY_TRY(executor_.run(StepId::find_bricks, memory, {}, size));
  }
  QRY_TRY(executor_.copy_in(materials_.data, materials.data(), materials.size()));
  Control control;
  QRY_TRY(executor_.copy_out(&control, memory.control, sizeof control));
  if (control.list_full)
    return fail(ErrorCode::full, "a device groups a list of at most " + std::to_string(kMostListBricks) + " bricks");
  return Found{control.list_bricks,
               {{control.low[0], control.low[1], control.low[2]}, {control.high[0], control.high[1], control.high[2]}}};
}

Result<void> ListScratch::fill_bricks(const Memory& memory, uint32_t bricks) {
  QRY_TRY(executor_.grow(firsts_, size_t(bricks) * 8 * sizeof(uint32_t)));
  const uint64_t voxels = memory.voxels.count;
  EditCall call{};
  call.listed = bricks;
  QRY_TRY(executor_.run(StepId::clear_masks, memory, call, uint64_t(bricks) * 8));
  QRY_TRY(executor_.run(StepId::mark_voxels, memory, call, voxels));
  // These have nothing to do if no voxel comes twice.
  QRY_TRY(executor_.run(StepId::place_octants, memory, call, voxels));
  QRY_TRY(executor_.run(StepId::find_last, memory, call, voxels));
  return executor_.run(StepId::fill_materials, memory, call, uint64_t(bricks) * 64);
}

}  // namespace quarry::device
