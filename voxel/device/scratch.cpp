// SPDX-License-Identifier: Apache-2.0
// scratch.cpp - makes room for a list of voxels, sends it, and launches the steps that make bricks of it; launches the
// rounds of a flood, some at once, until none is left, and makes room between them; launches the steps that find parts,
// and puts the parts in order.
#include "voxel/device/scratch.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <string>

#include "voxel/bricks/brick.hpp"
#include "voxel/device/bodies/lists.hpp"
#include "voxel/device/bodies/parts.hpp"

namespace quarry::device {

Result<std::unique_ptr<ListScratch>> ListScratch::create(Executor& executor) {
  std::unique_ptr<ListScratch> scratch(new ListScratch(executor));
  const auto reserve = [&](Range& range, uint64_t most_bytes, const char* label) -> Result<void> {
    QRY_TRY_ASSIGN(range, executor.reserve(size_t(most_bytes), label));
    return {};
  };
  QRY_TRY(reserve(scratch->words_, kMostListed * sizeof(uint64_t), "a list from the host"));
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

namespace {

// Four 32-bit words at once. What is read is asked for 1 KiB ahead: the copy to a device waits for the list to come
// from memory, not for the work on it (docs/results/h100/home.md).
using Four [[gnu::vector_size(16)]] = uint32_t;
Four load_four(const void* from) {
  Four out;
  std::memcpy(&out, from, sizeof out);
  return out;
}

// Writes the words of the voxels. False: one of them, or more, is outside of the world; then words are of no use.
bool make_words(const int32_t* xyz, const uint8_t* materials, std::span<uint64_t> words) {
  Four beyond{}, in_corner{};  // not 0: outside of the axes; in the last brick of all three, which has no key
  const auto make_four = [&](const int32_t* from, uint32_t bytes, uint64_t* to) {
    const Four a = load_four(from), b = load_four(from + 4), c = load_four(from + 8);
    const Four x = __builtin_shufflevector(__builtin_shufflevector(a, b, 0, 3, 6, 6), c, 0, 1, 2, 5) -
                   uint32_t(kWorldMin.x),
               y = __builtin_shufflevector(__builtin_shufflevector(a, b, 1, 4, 7, 7), c, 0, 1, 2, 6) -
                   uint32_t(kWorldMin.y),
               z = __builtin_shufflevector(__builtin_shufflevector(a, b, 2, 5, 5, 5), c, 0, 1, 4, 7) -
                   uint32_t(kWorldMin.z);
    const Four material{bytes & 255u, bytes >> 8 & 255u, bytes >> 16 & 255u, bytes >> 24};
    beyond |= x >> 14 | y >> 13 | z >> 14;
    in_corner |= Four((x & z & (y << 1 | 15u)) >= 16376u);
    const Four low = x | y << 14 | z << 27, high = z >> 5 | material << 9;
    const Four two = __builtin_shufflevector(low, high, 0, 4, 1, 5),
               others = __builtin_shufflevector(low, high, 2, 6, 3, 7);
    std::memcpy(to, &two, sizeof two);
    std::memcpy(to + 2, &others, sizeof others);
  };
  size_t i = 0;
  for (; i + 4 <= words.size(); i += 4) {
    uint32_t bytes = 0;
    std::memcpy(&bytes, materials + i, sizeof bytes);
    __builtin_prefetch(xyz + 3 * i + 256);
    make_four(xyz + 3 * i, bytes, words.data() + i);
  }
  if (const size_t left = words.size() - i; left) {
    int32_t last[12] = {};
    uint32_t bytes = 0;
    uint64_t made[4];
    std::copy_n(xyz + 3 * i, 3 * left, last);
    std::memcpy(&bytes, materials + i, left);
    make_four(last, bytes, made);
    std::copy_n(made, left, words.data() + i);
  }
  const Four bad = beyond | in_corner;
  return (bad[0] | bad[1] | bad[2] | bad[3]) == 0;
}

}  // namespace

// Words have no room for what is outside of the world: that is found here.
Result<void> ListScratch::send(const GivenVoxels& list) {
  std::atomic<size_t> outside{SIZE_MAX};
  QRY_TRY(executor_.copy_in_made(
      static_cast<uint64_t*>(words_.data), list.count, [&](size_t first, std::span<uint64_t> words) {
        const int32_t* const xyz = list.xyz + 3 * first;
        if (make_words(xyz, list.materials + first, words)) return;
        for (size_t i = 0; i < words.size(); ++i) {
          if (voxel_in_world({xyz[3 * i], xyz[3 * i + 1], xyz[3 * i + 2]})) continue;
          for (size_t now = outside; first + i < now && !outside.compare_exchange_weak(now, first + i);) {
          }
          return;
        }
      }));
  if (const size_t number = outside; number != SIZE_MAX) {
    const int32_t* const at = list.xyz + 3 * number;
    return tl::unexpected(outside_of_world({at[0], at[1], at[2]}, number));
  }
  return {};
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
  voxels = {
      nullptr, list.xyz, list.materials, nullptr, nullptr, static_cast<uint32_t*>(starts_.data), uint32_t(list.count),
      {}};
  if (list.side == Side::host) {
    QRY_TRY(grow(words_, sizeof(uint64_t)));
    QRY_TRY(send(list));
    voxels.words = static_cast<const uint64_t*>(words_.data);
  }
  memory.listed_keys = static_cast<uint32_t*>(keys.data);
  QRY_TRY(executor_.run(StepId::begin_list, memory, {}, 1));
  const uint64_t parts = (list.count + kListPart - 1) / kListPart;
  QRY_TRY(executor_.run(StepId::survey_list, memory, {}, parts));

  Control control;
  QRY_TRY(executor_.copy_out(&control, memory.control, sizeof control));
  if (control.list_outside != kNoVoxel) {
    const auto number = size_t(control.list_outside);
    int32_t at[3];
    QRY_TRY(executor_.copy_out(at, list.xyz + 3 * number, sizeof at));
    return tl::unexpected(outside_of_world({at[0], at[1], at[2]}, number));
  }
  uint32_t bits = 0;
  for (uint32_t axis = 0; axis < 3; ++axis) {
    voxels.box.low[axis] = control.low[axis];
    bits += voxels.box.bits[axis] = uint32_t(std::bit_width(uint32_t(control.high[axis] - control.low[axis])));
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
  QRY_TRY(executor_.run(StepId::begin_bricks, memory, {}, parts));
  uint32_t bricks = 0;
  QRY_TRY(executor_.copy_out(&bricks, &memory.control->list_bricks, sizeof bricks));
  const int32_t* const low = control.low;
  const int32_t* const high = control.high;
  return Found{bricks, {{low[0] * 8, low[1] * 8, low[2] * 8}, {high[0] * 8 + 7, high[1] * 8 + 7, high[2] * 8 + 7}}};
}

Error outside_of_world(Int3 voxel, size_t number) {
  return {ErrorCode::out_of_bounds, "voxel (" + std::to_string(voxel.x) + ", " + std::to_string(voxel.y) + ", " +
                                        std::to_string(voxel.z) + "), number " + std::to_string(number) +
                                        " of the array, lies outside the world: " + kWorldExtent};
}

Result<void> ListScratch::fill_bricks(const Memory& memory, uint32_t bricks) {
  EditCall call{};
  call.listed = bricks;
  return executor_.run(StepId::assemble, memory, call, (uint64_t(bricks) + Assemble::kBricks - 1) / Assemble::kBricks);
}

// ---- Floods

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

// ---- Parts

namespace {

// Addresses, not memory.
constexpr uint64_t kMostPieces = uint64_t(1) << 30, kMostShares = uint64_t(1) << 28;

}  // namespace

Result<std::unique_ptr<PartScratch>> PartScratch::create(Executor& executor, uint64_t first_shares) {
  std::unique_ptr<PartScratch> scratch(new PartScratch(executor, first_shares));
  const auto reserve = [&](Range& range, uint64_t count, uint64_t element_bytes, const char* label) -> Result<void> {
    QRY_TRY_ASSIGN(range, executor.reserve(size_t(count * element_bytes), label));
    return {};
  };
  PartScratch& s = *scratch;
  QRY_TRY(reserve(s.slots_, slots_for(kMostFlooded), sizeof(uint32_t), "a table of a world's keys"));
  QRY_TRY(reserve(s.slot_numbers_, slots_for(kMostFlooded), sizeof(uint32_t), "numbers of a world's bricks"));
  QRY_TRY(reserve(s.keys_, kMostFlooded, sizeof(uint32_t), "a world's keys"));
  QRY_TRY(reserve(s.indices_, kMostFlooded, sizeof(uint32_t), "a world's bricks"));
  QRY_TRY(reserve(s.firsts_, kMostFlooded, sizeof(uint32_t), "first pieces of bricks"));
  QRY_TRY(reserve(s.labels_, kMostFlooded, sizeof(uint32_t), "bricks of several pieces"));
  QRY_TRY(reserve(s.voxel_labels_, kMostFlooded, kVoxelsPerBrick, "pieces of voxels"));
  QRY_TRY(reserve(s.pieces_, kMostPieces, sizeof(PartPiece), "pieces of bricks"));
  QRY_TRY(reserve(s.numbers_, kMostPieces, sizeof(uint32_t), "numbers of parts"));
  QRY_TRY(reserve(s.found_, kMostPieces, sizeof(PartFound), "parts"));
  QRY_TRY(reserve(s.share_keys_, kMostShares, sizeof(uint64_t), "materials of parts"));
  QRY_TRY(reserve(s.share_counts_, kMostShares, sizeof(uint64_t), "voxels of a material"));
  QRY_TRY(reserve(s.keeps_, kMostPieces, 1, "parts that stay"));
  return scratch;
}

PartScratch::~PartScratch() {
  for (Range* const range : all())
    if (range->data) executor_.release(*range);
}

Result<void> PartScratch::make_brick_room(Memory& memory, uint32_t bricks) {
  const uint64_t slots = slots_for(bricks);
  for (Range* const range : {&slots_, &slot_numbers_})
    QRY_TRY(executor_.grow(*range, size_t(slots * sizeof(uint32_t))));
  for (Range* const range : {&keys_, &indices_, &firsts_, &labels_})
    QRY_TRY(executor_.grow(*range, bricks * sizeof(uint32_t)));
  const auto at = [](const Range& range) { return static_cast<uint32_t*>(range.data); };
  memory.flood.table = {at(slots_), at(slot_numbers_), uint32_t(slots - 1)};
  Parts& p = memory.parts;
  p.keys = at(keys_);
  p.indices = at(indices_);
  p.firsts = at(firsts_);
  p.labels = at(labels_);
  p.brick_room = bricks;
  return {};
}

Result<void> PartScratch::make_piece_room(Memory& memory, uint64_t pieces, uint64_t labels) {
  QRY_TRY(executor_.grow(pieces_, size_t(pieces * sizeof(PartPiece))));
  QRY_TRY(executor_.grow(numbers_, size_t(pieces * sizeof(uint32_t))));
  QRY_TRY(executor_.grow(voxel_labels_, size_t(labels * kVoxelsPerBrick)));
  Parts& p = memory.parts;
  p.pieces = static_cast<PartPiece*>(pieces_.data);
  p.numbers = static_cast<uint32_t*>(numbers_.data);
  p.piece_room = uint32_t(std::min(pieces_.size_bytes / sizeof(PartPiece), numbers_.size_bytes / sizeof(uint32_t)));
  p.voxel_labels = static_cast<uint64_t*>(voxel_labels_.data);
  p.label_room = uint32_t(voxel_labels_.size_bytes / kVoxelsPerBrick);
  return {};
}

Result<void> PartScratch::make_share_room(Memory& memory, uint64_t slots) {
  if (slots > kMostShares) return fail(ErrorCode::full, "the parts have more materials together than a device counts");
  for (Range* const range : {&share_keys_, &share_counts_})
    QRY_TRY(executor_.grow(*range, size_t(slots * sizeof(uint64_t))));
  Parts& p = memory.parts;
  p.share_keys = static_cast<unsigned long long*>(share_keys_.data);
  p.share_counts = static_cast<unsigned long long*>(share_counts_.data);
  p.last_share = uint32_t(slots - 1);
  return {};
}

Result<std::vector<PartScratch::Part>> PartScratch::find(Memory& memory, uint32_t bricks, uint32_t neighbours) {
  bricks_ = bricks;
  if (bricks == 0) return std::vector<Part>();
  if (bricks > kMostFlooded)
    return fail(ErrorCode::full, "a device looks for parts in at most " + std::to_string(kMostFlooded) +
                                     " bricks, not " + std::to_string(bricks));
  QRY_TRY(make_brick_room(memory, bricks));
  // Most bricks are one piece. Where that is not so, it is found out below.
  QRY_TRY(make_piece_room(memory, bricks + uint64_t(bricks) / 4 + 256, uint64_t(bricks) / 16 + 64));
  EditCall call{};
  call.neighbours = uint8_t(neighbours);
  const auto run = [&](StepId step, uint64_t items) { return executor_.run(step, memory, call, items); };
  Control control;
  const auto ask = [&] { return executor_.copy_out(&control, memory.control, sizeof control); };
  QRY_TRY(run(StepId::begin_parts, 1));
  QRY_TRY(run(StepId::clear_table, uint64_t(memory.flood.table.last_slot) + 1));
  QRY_TRY(run(StepId::list_bricks, uint64_t(memory.grid.page_count) * kQryPageWords));
  call.fills = 1;
  const uint64_t label_blocks = (uint64_t(bricks) + LabelBricks::kBricks - 1) / LabelBricks::kBricks;
  QRY_TRY(run(StepId::label_bricks, label_blocks));
  QRY_TRY(ask());
  if (control.list_full || control.list_bricks != bricks)
    return fail(ErrorCode::device, "the grid has " + std::to_string(control.list_bricks) + " keys, and not " +
                                       std::to_string(bricks) + " as it was told");
  if (control.part_pieces > memory.parts.piece_room || control.part_labels > memory.parts.label_room) {
    QRY_TRY(make_piece_room(memory, control.part_pieces, control.part_labels));
    QRY_TRY(run(StepId::begin_parts, 1));
    QRY_TRY(run(StepId::label_bricks, label_blocks));
  }
  const uint64_t pieces = control.part_pieces;
  QRY_TRY(run(StepId::join_bricks, bricks));
  QRY_TRY(run(StepId::number_parts, pieces));
  QRY_TRY(ask());
  const uint64_t parts = control.part_count;
  QRY_TRY(executor_.grow(found_, size_t(parts * sizeof(PartFound))));
  memory.parts.found = static_cast<PartFound*>(found_.data);
  for (uint64_t slots = std::bit_ceil(std::max(first_shares_, parts * 4));; slots *= 4) {
    QRY_TRY(make_share_room(memory, slots));
    QRY_TRY(run(StepId::clear_parts, std::max(slots, parts)));
    QRY_TRY(run(StepId::measure_pieces, pieces));
    QRY_TRY(run(StepId::count_materials, bricks));
    QRY_TRY(run(StepId::pick_materials, slots));
    QRY_TRY(ask());
    if (!control.list_full) break;
    control.list_full = 0;
    QRY_TRY(executor_.copy_in(memory.control, &control, sizeof control));
  }
  std::vector<PartFound> found(parts);
  QRY_TRY(executor_.copy_out(found.data(), memory.parts.found, parts * sizeof(PartFound)));

  std::vector<uint32_t> order(parts);
  for (uint32_t i = 0; i < parts; ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return found[a].voxels != found[b].voxels ? found[a].voxels > found[b].voxels : found[a].first < found[b].first;
  });
  std::vector<Part> sorted;
  sorted.reserve(parts);
  for (const uint32_t i : order) {
    const PartFound& f = found[i];
    const auto corner = [](const int32_t(&at)[3]) { return Int3{at[0], at[1], at[2]} + kWorldMin; };
    sorted.push_back({f.voxels, {corner(f.low), corner(f.high)}, uint8_t(255 - (f.material & 255)), i});
  }
  return sorted;
}

Result<uint32_t> PartScratch::list_lost(Memory& memory, Range& keys, Range& masks, std::span<const Part> parts,
                                        size_t count) {
  if (count >= parts.size()) return 0u;
  std::vector<uint8_t> keeps(parts.size());
  for (const Part& part : parts.first(count)) keeps[part.number] = 1;
  QRY_TRY(executor_.grow(keeps_, keeps.size()));
  QRY_TRY(executor_.grow(keys, bricks_ * sizeof(uint32_t)));
  QRY_TRY(executor_.grow(masks, bricks_ * sizeof(BrickMask)));
  QRY_TRY(executor_.copy_in(keeps_.data, keeps.data(), keeps.size()));
  memory.parts.keeps = static_cast<const uint8_t*>(keeps_.data);
  memory.listed_keys = static_cast<uint32_t*>(keys.data);
  memory.listed_masks = static_cast<uint64_t*>(masks.data);
  EditCall call{};
  call.listed = bricks_;
  QRY_TRY(executor_.run(StepId::begin_list, memory, call, 1));
  QRY_TRY(executor_.run(StepId::list_lost, memory, call, bricks_));
  uint32_t bricks = 0;
  QRY_TRY(executor_.copy_out(&bricks, &memory.control->list_bricks, sizeof bricks));
  return bricks;
}

}  // namespace quarry::device
