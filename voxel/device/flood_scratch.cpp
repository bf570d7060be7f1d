// SPDX-License-Identifier: Apache-2.0
// flood_scratch.cpp - launches the rounds of a flood, some at once, until none is left, and makes room between them.
#include "voxel/device/flood_scratch.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "voxel/bricks/brick.hpp"

namespace quarry::device {
namespace {

constexpr uint64_t kMoreRoom = 4;
// Rounds that are launched at once. One that is of no brick costs its launch; to ask whether there is more to do costs
// as much as some of these.
constexpr uint32_t kFirstRounds = 8, kMostRounds = 32;
// Blocks of threads that are launched, at least, and for each brick of the last round that is known: it is not known
// how many bricks the next ones have.
constexpr uint64_t kFewestBlocks = 256, kBlocksForOne = 8;

// The table is never more than half full.
uint64_t slots_for(uint64_t bricks) { return std::bit_ceil(bricks * 2); }

}  // namespace

Result<std::unique_ptr<FloodScratch>> FloodScratch::create(Executor& executor, uint64_t first_room) {
  std::unique_ptr<FloodScratch> scratch(new FloodScratch(executor, first_room));
  const auto reserve = [&](Range& range, uint64_t count, uint64_t element_bytes, const char* label) -> Result<void> {
    QRY_TRY_ASSIGN(range, executor.reserve(size_t(count * element_bytes), label));
    return {};
  };
  QRY_TRY(reserve(scratch->slots_, slots_for(kMostFlooded), sizeof(uint32_t), "a table of a flood's keys"));
  QRY_TRY(reserve(scratch->numbers_, slots_for(kMostFlooded), sizeof(uint32_t), "numbers of a flood's bricks"));
  QRY_TRY(reserve(scratch->same_, kMostFlooded, sizeof(BrickMask), "voxels of a flood's material"));
  QRY_TRY(reserve(scratch->queued_, kMostFlooded, sizeof(uint32_t), "rounds of a flood's bricks"));
  for (Range& range : scratch->frontiers_)
    QRY_TRY(reserve(range, kMostFlooded, sizeof(uint32_t), "the frontier of a flood"));
  return scratch;
}

FloodScratch::~FloodScratch() {
  for (Range* const range : all())
    if (range->data) executor_.release(*range);
}

// What is in the list, and each brick's voxels of the material, stay as they are. The table is to be filled anew.
Result<void> FloodScratch::make_room(Memory& memory, Range& keys, Range& masks, uint64_t bricks) {
  const uint64_t slots = slots_for(bricks);
  QRY_TRY(executor_.grow(keys, size_t(bricks * sizeof(uint32_t))));
  QRY_TRY(executor_.grow(masks, size_t(bricks * sizeof(BrickMask))));
  QRY_TRY(executor_.grow(slots_, size_t(slots * sizeof(uint32_t))));
  QRY_TRY(executor_.grow(numbers_, size_t(slots * sizeof(uint32_t))));
  QRY_TRY(executor_.grow(same_, size_t(bricks * sizeof(BrickMask))));
  QRY_TRY(executor_.grow(queued_, size_t(bricks * sizeof(uint32_t))));
  for (Range& range : frontiers_) QRY_TRY(executor_.grow(range, size_t(bricks * sizeof(uint32_t))));
  memory.listed_keys = static_cast<uint32_t*>(keys.data);
  memory.listed_masks = static_cast<uint64_t*>(masks.data);
  Flood& flood = memory.flood;
  flood.table = {static_cast<uint32_t*>(slots_.data), static_cast<uint32_t*>(numbers_.data), uint32_t(slots - 1)};
  flood.same = static_cast<uint64_t*>(same_.data);
  flood.queued = static_cast<uint32_t*>(queued_.data);
  for (size_t i = 0; i < 2; ++i) flood.frontier[i] = static_cast<uint32_t*>(frontiers_[i].data);
  flood.brick_room = uint32_t(bricks);
  return {};
}

Result<uint32_t> FloodScratch::find_connected(Memory& memory, Range& keys, Range& masks, Int3 voxel, uint64_t most) {
  most = std::clamp<uint64_t>(most, 1, kMostFlooded);
  QRY_TRY(make_room(memory, keys, masks, std::min(first_room_, most)));
  EditCall call{};
  call.shape.a = voxel;
  const auto clear = [&] {
    return executor_.run(StepId::clear_table, memory, call, uint64_t(memory.flood.table.last_slot) + 1);
  };
  QRY_TRY(clear());
  QRY_TRY(executor_.run(StepId::seed_flood, memory, call, 1));
  uint64_t blocks = kFewestBlocks;
  for (uint32_t rounds = kFirstRounds;; rounds = std::min(rounds * 2, kMostRounds)) {
    for (uint32_t i = 0; i < rounds; ++i) QRY_TRY(executor_.run(StepId::flood_round, memory, call, blocks));
    Control control;
    QRY_TRY(executor_.copy_out(&control, memory.control, sizeof control));
    const uint32_t bricks = control.flood_fronts[control.flood_round & 1u];
    if (!control.list_full && bricks == 0) return control.list_bricks;
    blocks = std::max(kFewestBlocks, bricks * kBlocksForOne);
    if (!control.list_full) continue;
    const uint64_t room = memory.flood.brick_room;
    if (room == most)
      return fail(ErrorCode::full, "edit: more than " + std::to_string(most) +
                                       " bricks of 8 x 8 x 8 voxels are connected there; edit a part of them by a "
                                       "shape");
    QRY_TRY(make_room(memory, keys, masks, std::min(room * kMoreRoom, most)));
    control.list_bricks = control.flood_known = uint32_t(room);
    control.list_full = 0;
    control.flood_all = 1;
    QRY_TRY(executor_.copy_in(memory.control, &control, sizeof control));
    QRY_TRY(clear());
    QRY_TRY(executor_.run(StepId::number_bricks, memory, call, room));
    blocks = room;
  }
}

}  // namespace quarry::device
