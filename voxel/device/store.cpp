// SPDX-License-Identifier: Apache-2.0
// store.cpp - launches edits, hears what became of them, and makes room.
#include "voxel/device/store.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "voxel/bricks/shared.hpp"
#include "voxel/device/bodies/compare.hpp"
#include "voxel/device/bodies/growth.hpp"
#include "voxel/device/bodies/pack.hpp"

namespace quarry::device {
namespace {

// Of a new world.
constexpr uint64_t kFirstBricks = 1u << 15, kFirstScratch = 1u << 16, kFirstRecords = 1u << 18, kFirstSteps = 1u << 12,
                   kFirstNodes = 1u << 18, kFirstKeys = 1u << 17;
// Addresses, not memory: no world has more of either.
constexpr uint64_t kMostBricks = uint64_t(1) << 28, kMostNodes = uint64_t(1) << 31, kMostRecords = uint64_t(1) << 32,
                   kMostScratch = uint64_t(1) << 27, kMostSteps = uint64_t(1) << 26;
// Bricks: memory is given back by growths, which are few.
constexpr uint64_t kMostGrowth = uint64_t(1) << 21;
// Of a trim: while bricks are left for frames, edits may need them to move once more.
constexpr uint32_t kGathers = 16;
// A dense box is as large as a call allows, and is read in pieces of so many bytes.
constexpr uint64_t kMostDense = uint64_t(1) << 32;
constexpr size_t kDenseBytes = size_t(64) << 20;
// The grid is not fuller: keys are inserted one by one, each in one of two buckets, and few may find no place.
constexpr double kFullest = 0.7;

// Granules of the pyramid that a brick of a list is expected to need at most, however many one has needed.
constexpr double kMostListNodes = 2;

// a + sign * b; what is less than 0 is 0.
template <class Need>
Need sum(const Need& a, const Need& b, int64_t sign) {
  const auto add = [sign](uint64_t x, uint64_t y) {
    const int64_t value = int64_t(x) + sign * int64_t(y);
    return value < 0 ? uint64_t(0) : uint64_t(value);
  };
  return {add(a.records, b.records), add(a.bricks, b.bricks), add(a.nodes, b.nodes), add(a.keys, b.keys)};
}

uint32_t pages_for(uint64_t keys) { return uint32_t(double(keys) / (kFullest * kQrySlotsPerPage)) + 1; }

uint64_t records_in(const std::vector<Step>& steps) {
  uint64_t records = 0;
  for (const Step& step : steps) records += step.count;
  return records;
}

EditCall call_of(const Edit& edit) {
  EditCall call{};
  call.mode = edit.mode;
  call.material = material_after(edit.mode, edit.material);
  call.from = edit.from;
  // Without a material these two remove.
  if (call.material == 0 && (edit.mode == Mode::paint || edit.mode == Mode::fill)) call.mode = Mode::remove;
  return call;
}

}  // namespace

struct Store::Arrays {
  Range grid, masks, materials, packed, nodes, records, steps, free_bricks, control, cuts, unused, tiles, touched2,
      touched3, numbers2, regions, tops, made2, listed_keys, listed_full, listed_masks, listed_materials, dense,
      morphed, retired[2];
  std::array<Range*, 26> all() {
    return {
        &grid,       &masks,     &materials,   &packed,      &nodes,        &records,          &steps,    &free_bricks,
        &control,    &cuts,      &unused,      &tiles,       &touched2,     &touched3,         &numbers2, &regions,
        &tops,       &made2,     &listed_keys, &listed_full, &listed_masks, &listed_materials, &dense,    &morphed,
        &retired[0], &retired[1]};
  }
};

Store::Store(std::unique_ptr<Executor> executor, uint32_t max_bricks)
    : executor_(std::move(executor)), max_bricks_(max_bricks), arrays_(std::make_unique<Arrays>()) {}

Store::~Store() {
  (void)executor_->wait();
  for (Old& old : old_) executor_->release(old.range);
  for (Range* range : arrays_->all())
    if (range->data) executor_->release(*range);
}

Result<std::unique_ptr<Store>> Store::create(std::unique_ptr<Executor> executor, uint32_t max_bricks) {
  std::unique_ptr<Store> store(new Store(std::move(executor), max_bricks));
  QRY_TRY(store->open());
  return store;
}

Result<void> Store::open() {
  Arrays& a = *arrays_;
  Executor& e = *executor_;
  Memory& m = memory_;
  // `count` elements at `at`, and no memory yet.
  const auto open = [&]<class Element>(Range& range, Element*& at, uint64_t count, const char* label,
                                       bool for_shaders = false) -> Result<void> {
    QRY_TRY_ASSIGN(range, e.reserve(size_t(count) * sizeof(Element), label, for_shaders));
    at = static_cast<Element*>(range.data);
    return {};
  };
  QRY_TRY(open(a.masks, m.masks, kMostBricks * 8, "masks", true));
  QRY_TRY(open(a.materials, m.materials, kMostBricks * 64, "materials", true));
  QRY_TRY(open(a.free_bricks, m.free_bricks, kMostBricks, "free bricks"));
  for (size_t i = 0; i < 2; ++i) QRY_TRY(open(a.retired[i], m.retired[i], kMostBricks, "retired bricks"));
  QRY_TRY(open(a.nodes, m.nodes, kMostNodes, "the pyramid", true));
  QRY_TRY(open(a.records, m.records, kMostRecords, "records"));
  QRY_TRY(open(a.steps, m.steps, kMostSteps, "steps"));
  QRY_TRY(open(a.cuts, m.cuts, kMostScratch, "an edit's cuts"));
  QRY_TRY(open(a.unused, m.unused, kMostScratch, "unused places"));
  QRY_TRY(open(a.tiles, m.tiles, kMostScratch, "a capsule's tiles"));
  QRY_TRY(open(a.listed_keys, m.listed_keys, kMostScratch, "a list's keys"));
  QRY_TRY(open(a.listed_full, m.listed_full, kMostScratch, "a list's full bricks"));
  QRY_TRY(open(a.listed_masks, m.listed_masks, kMostScratch * 8, "a list's voxels"));
  QRY_TRY(open(a.listed_materials, m.listed_materials, kMostScratch * 64, "a list's materials"));
  QRY_TRY(open(a.morphed, m.morphed, kMostScratch / kScratchOfNode, "nodes whose bricks may change"));
  QRY_TRY(open(a.dense, m.box.voxels, kMostDense, "a dense box"));
  // What has one size.
  const auto fixed = [&](Range& range, auto*& at, uint64_t count, const char* label) -> Result<void> {
    QRY_TRY(open(range, at, count, label));
    return e.grow(range, size_t(count) * sizeof *at);
  };
  QRY_TRY(fixed(a.control, m.control, 1, "counters"));
  QRY_TRY(fixed(a.touched2, m.touched2, kLevel2Nodes, "touched nodes of level 2"));
  QRY_TRY(fixed(a.touched3, m.touched3, kLevel3Nodes, "touched nodes of level 3"));
  QRY_TRY(fixed(a.numbers2, m.numbers2, kLevel2Nodes, "numbers of nodes"));
  QRY_TRY(fixed(a.regions, m.regions, kLevel2Nodes, "touched regions"));
  QRY_TRY(fixed(a.tops, m.tops, kLevel3Nodes, "touched tops"));
  QRY_TRY(fixed(a.made2, m.made2, kLevel2Nodes, "new nodes of level 2"));
  m.outcomes = e.outcomes();
  QRY_TRY(grow_bricks(kFirstBricks));
  QRY_TRY(grow_scratch(kFirstScratch));
  QRY_TRY(grow_records(kFirstRecords));
  QRY_TRY(grow_steps(kFirstSteps));
  QRY_TRY(grow_nodes(kFirstNodes));

  Control control{};
  control.bricks_top = kFullBricks;
  control.nodes_top = kFirstRun;
  QRY_TRY(e.copy_in(m.control, &control, sizeof control));
  std::vector<BrickMask> masks;
  std::vector<BrickMaterials> materials;
  for (uint32_t material = 1; material <= kFullBricks; ++material) {
    const Brick& brick = full_brick(uint8_t(material));
    masks.push_back(brick.mask);
    materials.push_back(brick.materials);
  }
  QRY_TRY(e.copy_in(m.masks, masks.data(), masks.size() * sizeof(BrickMask)));
  QRY_TRY(e.copy_in(m.materials, materials.data(), materials.size() * sizeof(BrickMaterials)));
  return grow_grid(kFirstKeys);
}

// ---- Edits

Result<Store::Ticket> Store::edit(const SolidShape& shape, const Edit& edit, const std::optional<Box3>& part) {
  begin_times();
  Pending pending{0, Kind::edit, Touch::box, call_of(edit)};
  EditCall& call = pending.call;
  call.shape = shape;
  const bool creates = edit.creates();
  Box3 inside = intersected(shape.bounds, {kWorldMin, kWorldMax});
  const Int3 corner = brick_of(kWorldMax);
  if (creates) {
    bool outside = !(inside == shape.bounds);
    if (!outside && brick_of(inside.max) == corner && shape.meets_cube(corner.x, corner.y, corner.z, 0))
      for (uint32_t octant = 0; octant < 8; ++octant) outside |= shape.octant(corner, octant) != 0;
    if (outside)
      return fail(ErrorCode::out_of_bounds,
                  "edit: the shape would set voxels outside of the world, x and z in [-8192, 8191], y in [-4096, "
                  "4095], without the brick at its upper corner");
  }
  if (part) inside = intersected(inside, *part);
  pending.box = inside;
  const bool adds_nothing = edit.mode == Mode::add && edit.material == 0;
  if (!inside.empty() && !adds_nothing) {
    const Int3 first = brick_of(inside.min), last = brick_of(inside.max);
    const int32_t low[3] = {first.x + 1024, first.y + 512, first.z + 1024},
                  high[3] = {last.x + 1024, last.y + 512, last.z + 1024};
    for (size_t i = 0; i < 3; ++i) {
      call.first_tile[i] = uint32_t(low[i]) >> 3;
      call.tiles[i] = (uint32_t(high[i]) >> 3) - call.first_tile[i] + 1;
    }
  }
  if (creates) reach_ = united(reach_, inside);
  const uint64_t tiles = uint64_t(call.tiles[0]) * call.tiles[1] * call.tiles[2];
  if (!creates && !part && tiles * 512 > uint64_t(memory_.grid.page_count) * kQrySlotsPerPage)
    pending.touch = Touch::grid;
  else if (shape.shape == Shape::line) pending.touch = Touch::tiles;
  return launch_new(pending);
}

Result<Store::Change> Store::write(std::span<const uint32_t> keys, std::span<const BrickMask> voxels,
                                   std::span<const BrickMaterials> materials, const Edit& edit) {
  return write_list(call_of(edit), {{}, {}, keys, materials}, voxels);
}

Result<Store::Change> Store::write_voxels(const GivenVoxels& voxels) {
  begin_times();
  QRY_TRY(free_list());
  ListScratch::Found found;
  if (voxels.count) {
    const auto find = [&]() -> Result<ListScratch::Found> {
      if (!lists_) {
        QRY_TRY_ASSIGN(lists_, ListScratch::create(*executor_));
      }
      return lists_->find_bricks(memory_, arrays_->listed_keys, voxels);
    };
    auto its = find();
    if (!its) {
      if (!device_failed(its.error()) && its.error().code != ErrorCode::out_of_bounds)
        its.error().code = ErrorCode::unsupported;
      return tl::unexpected(its.error());
    }
    found = *its;
    QRY_TRY(room_for_listed(found.bricks));
    QRY_TRY(lists_->fill_bricks(memory_, found.bricks));
  }
  reach_ = united(reach_, found.box);
  return make_listed({}, found.bricks);
}

// Of keys, masks and materials.
Result<void> Store::room_for_listed(uint64_t bricks) {
  Arrays& a = *arrays_;
  QRY_TRY(executor_->grow(a.listed_keys, bricks * sizeof(uint32_t)));
  QRY_TRY(executor_->grow(a.listed_masks, bricks * sizeof(BrickMask)));
  QRY_TRY(executor_->grow(a.listed_materials, bricks * sizeof(BrickMaterials)));
  memory_.listed_keys = static_cast<uint32_t*>(a.listed_keys.data);
  memory_.listed_masks = static_cast<uint64_t*>(a.listed_masks.data);
  memory_.listed_materials = static_cast<uint64_t*>(a.listed_materials.data);
  return {};
}

namespace {

DenseBox dense_box(const Box3& box, uint8_t* voxels) {
  const Int3 first = brick_of(box.min), last = brick_of(box.max), bricks = last - first + Int3{1, 1, 1};
  return {voxels,
          {box.min.x, box.min.y, box.min.z},
          {box.max.x, box.max.y, box.max.z},
          {first.x, first.y, first.z},
          {uint32_t(bricks.x), uint32_t(bricks.y), uint32_t(bricks.z)}};
}
uint64_t bricks_in(const DenseBox& box) { return uint64_t(box.bricks[0]) * box.bricks[1] * box.bricks[2]; }
size_t voxels_in(const Box3& box) {
  return (size_t(int64_t(box.max.x) - box.min.x) + 1) * (size_t(int64_t(box.max.y) - box.min.y) + 1) *
         (size_t(int64_t(box.max.z) - box.min.z) + 1);
}

}  // namespace

Result<Store::Change> Store::write_box(const Box3& box, const uint8_t* materials, Side side) {
  begin_times();
  QRY_TRY(free_list());
  memory_.box = dense_box(box, const_cast<uint8_t*>(materials));
  if (side == Side::host) {
    QRY_TRY(executor_->grow(arrays_->dense, voxels_in(box)));
    memory_.box.voxels = static_cast<uint8_t*>(arrays_->dense.data);
    QRY_TRY(executor_->copy_in(memory_.box.voxels, materials, voxels_in(box)));
  }
  const uint64_t bricks = bricks_in(memory_.box);
  if (bricks > kMostScratch)
    return fail(ErrorCode::full, "a box of " + std::to_string(bricks) + " bricks is more than a device lists at once");
  QRY_TRY(room_for_listed(bricks));
  EditCall call{};
  call.listed = uint32_t(bricks);
  QRY_TRY(executor_->run(StepId::list_box, memory_, call, bricks * 64));
  reach_ = united(reach_, box);
  return make_listed(call, uint32_t(bricks));
}

Result<void> Store::read_box(const Box3& box, uint8_t* materials, Side side) {
  QRY_TRY(wait_all());
  const auto read = [&](const Box3& part, uint8_t* to) {
    Memory memory = memory_;
    memory.box = dense_box(part, to);
    return executor_->run(StepId::read_box, memory, {}, bricks_in(memory.box) * 64);
  };
  if (side == Side::device) return read(box, materials);
  // Layer by layer of bricks, as many as a small array takes.
  const size_t plane = voxels_in({box.min, {box.max.x, box.max.y, box.min.z}});
  const size_t most = grows_little_ ? kDenseBytes / 16 : kDenseBytes;
  const auto layers = int64_t(std::max<size_t>(1, most / (plane * 8)) * 8);
  for (int64_t z = box.min.z; z <= box.max.z;) {
    const int64_t last = std::min<int64_t>(box.max.z, ((z >> 3) << 3) + layers - 1);
    const Box3 part{{box.min.x, box.min.y, int32_t(z)}, {box.max.x, box.max.y, int32_t(last)}};
    QRY_TRY(executor_->grow(arrays_->dense, voxels_in(part)));
    auto* const at = static_cast<uint8_t*>(arrays_->dense.data);
    QRY_TRY(read(part, at));
    QRY_TRY(executor_->copy_out(materials + plane * size_t(z - box.min.z), at, voxels_in(part)));
    z = last + 1;
  }
  return {};
}

Result<Store::Change> Store::combine(Store& other, Combination combination, const NewMaterials* materials) {
  begin_times();
  if (other.executor_->device() != executor_->device())
    return fail(ErrorCode::unsupported, "the two worlds are in memory of different devices");
  QRY_TRY(wait_all());
  QRY_TRY(other.wait_all());
  const bool is_union = combination == Combination::union_of;
  Arrays& a = *arrays_;
  memory_.other = other.read_only();
  memory_.listed_masks = static_cast<uint64_t*>(a.listed_masks.data);
  memory_.listed_materials = is_union ? static_cast<uint64_t*>(a.listed_materials.data) : nullptr;
  EditCall call{};
  call.combination = combination;
  if (!is_union) call.mode = Mode::remove;
  const uint32_t pages = (combination == Combination::intersection ? memory_ : other.memory_).grid.page_count;
  const auto list = [&]() -> Result<void> {
    QRY_TRY(executor_->run(StepId::begin_list, memory_, call, 1));
    return executor_->run(StepId::list_combined, memory_, call, uint64_t(pages) * kQryPageWords);
  };
  QRY_TRY(list());
  QRY_TRY_ASSIGN(const Control found, counters());
  const uint64_t parts = found.list_bricks, bricks = found.list_whole + parts;
  if (bricks > kMostScratch)
    return fail(ErrorCode::full,
                "combining changes " + std::to_string(bricks) + " bricks, which is more than a device lists at once");
  constexpr size_t kTableBytes = sizeof(uint32_t) * 256;
  call.maps = is_union && materials;
  QRY_TRY(executor_->grow(a.listed_keys, bricks * sizeof(uint32_t) + (call.maps ? kTableBytes : 0)));
  QRY_TRY(executor_->grow(a.listed_full, found.list_whole));
  QRY_TRY(executor_->grow(a.listed_masks, parts * sizeof(BrickMask)));
  if (is_union) QRY_TRY(executor_->grow(a.listed_materials, parts * sizeof(BrickMaterials)));
  memory_.listed_keys = static_cast<uint32_t*>(a.listed_keys.data);
  memory_.listed_full = static_cast<uint8_t*>(a.listed_full.data);
  call.fills = 1;
  call.listed_full = found.list_whole;
  call.listed = uint32_t(bricks);
  if (call.maps) {
    std::array<uint32_t, 256> to{};
    std::copy(materials->begin(), materials->end(), to.begin());
    QRY_TRY(executor_->copy_in(memory_.listed_keys + bricks, to.data(), kTableBytes));
    memory_.looks = memory_.listed_keys + bricks;
  }
  if (bricks) {
    QRY_TRY(list());
    if (is_union) QRY_TRY(executor_->run(StepId::copy_materials, memory_, call, (parts + 15) / 16));
  }
  if (is_union) reach_ = united(reach_, other.reach_);
  return make_listed(call, uint32_t(bricks));
}

Result<Store::Change> Store::grow(uint32_t neighbours) {
  EditCall call{};
  call.neighbours = uint8_t(neighbours);
  call.grows = 1;
  const auto outside = [] {
    return fail(ErrorCode::out_of_bounds, std::string("voxels would be outside of the world: ") + kWorldExtent);
  };
  const auto at_border = [](const Box3& box) {
    const auto touches = [](int32_t low, int32_t high, int32_t min, int32_t max) { return low <= min || high >= max; };
    return !box.empty() && (touches(box.min.x, box.max.x, kWorldMin.x, kWorldMax.x) ||
                            touches(box.min.y, box.max.y, kWorldMin.y, kWorldMax.y) ||
                            touches(box.min.z, box.max.z, kWorldMin.z, kWorldMax.z));
  };
  if (at_border(reach_)) {
    QRY_TRY_ASSIGN(const State now, state());
    if (at_border(now.bounds)) return outside();
  }
  auto change = morph(call);
  if (!change && change.error().code == ErrorCode::out_of_bounds) return outside();
  if (change && !reach_.empty())
    reach_ = intersected({reach_.min - Int3{1, 1, 1}, reach_.max + Int3{1, 1, 1}}, {kWorldMin, kWorldMax});
  return change;
}

Result<Store::Change> Store::erode(uint32_t neighbours) {
  EditCall call{};
  call.neighbours = uint8_t(neighbours);
  call.mode = Mode::remove;
  return morph(call);
}

Result<Store::Change> Store::morph(EditCall call) {
  begin_times();
  QRY_TRY(wait_all());
  QRY_TRY(unpack());
  if (retires_ && used_.bricks + used_.keys + kFullBricks > memory_.brick_room) QRY_TRY(free_retired());
  QRY_TRY_ASSIGN(const Ticket ticket, launch_new({0, Kind::edit, Touch::around, call}));
  auto change = wait(ticket);
  if (!change || change->voxels || !call.grows) return change;
  QRY_TRY_ASSIGN(const Control control, counters());
  if (control.list_full) return fail(ErrorCode::out_of_bounds, "the world has no brick at its upper corner");
  return change;
}

Result<Store::Change> Store::edit_connected(const Edit& edit, uint64_t most) {
  begin_times();
  // It floods the world that the edits under way leave.
  QRY_TRY(wait_all());
  uint32_t bricks = 0;
  if (voxel_in_world(edit.a)) {
    QRY_TRY(unpack());
    if (!floods_) {
      QRY_TRY_ASSIGN(floods_, FloodScratch::create(*executor_));
    }
    QRY_TRY_ASSIGN(bricks, floods_->find_connected(memory_, arrays_->listed_keys, arrays_->listed_masks, edit.a, most));
  }
  memory_.listed_materials = nullptr;
  return make_listed(call_of(edit), bricks, true);
}

Result<std::vector<PartScratch::Part>> Store::find_parts(uint32_t neighbours) {
  QRY_TRY(wait_all());
  QRY_TRY_ASSIGN(const Control control, counters());
  if (!parts_) {
    QRY_TRY_ASSIGN(parts_, PartScratch::create(*executor_));
  }
  return parts_->find(memory_, control.keys, neighbours);
}

Result<Store::Change> Store::keep_parts(uint32_t neighbours, uint64_t most, uint64_t least) {
  begin_times();
  QRY_TRY_ASSIGN(const auto parts, find_parts(neighbours));
  const auto is_large = [least](const PartScratch::Part& part) { return part.voxels >= least; };
  const auto large = size_t(std::partition_point(parts.begin(), parts.end(), is_large) - parts.begin());
  QRY_TRY_ASSIGN(const uint32_t bricks, parts_->list_lost(memory_, arrays_->listed_keys, arrays_->listed_masks, parts,
                                                          size_t(std::min<uint64_t>(large, most))));
  memory_.listed_materials = nullptr;
  EditCall call{};
  call.mode = Mode::remove;
  return make_listed(call, bricks, true);
}

// No voxel outside of these bricks comes to be.
void Store::reach(std::span<const uint32_t> keys) {
  Box3 bricks;
  for (const uint32_t key : keys) {
    const Int3 at = brick_from_key(key);
    bricks = united(bricks, {at, at});
  }
  reach(bricks);
}

void Store::reach(const Box3& bricks) {
  if (bricks.empty()) return;
  const Int3 low = bricks.min, high = bricks.max;
  reach_ = united(reach_, {{low.x * 8, low.y * 8, low.z * 8}, {high.x * 8 + 7, high.y * 8 + 7, high.z * 8 + 7}});
}

// What is empty is not sent, and its pointer is null.
// Waits for the edit that still reads the last list.
Result<void> Store::free_list() { return list_ ? await(*std::exchange(list_, std::nullopt)) : Result<void>(); }

Result<void> Store::send_list(const Bricks& bricks, std::span<const BrickMask> voxels) {
  begin_times();
  QRY_TRY(free_list());
  const auto send = [&](Range& range, auto from, auto*& at) -> Result<void> {
    at = nullptr;
    if (from.empty()) return {};
    QRY_TRY(executor_->grow(range, from.size_bytes()));
    at = static_cast<std::remove_reference_t<decltype(at)>>(range.data);
    return executor_->copy_in(range.data, from.data(), from.size_bytes());
  };
  const size_t full = bricks.full_keys.size();
  QRY_TRY(executor_->grow(arrays_->listed_keys, (full + bricks.keys.size()) * sizeof(uint32_t)));
  memory_.listed_keys = static_cast<uint32_t*>(arrays_->listed_keys.data);
  QRY_TRY(executor_->copy_in(memory_.listed_keys, bricks.full_keys.data(), bricks.full_keys.size_bytes()));
  QRY_TRY(executor_->copy_in(memory_.listed_keys + full, bricks.keys.data(), bricks.keys.size_bytes()));
  QRY_TRY(send(arrays_->listed_full, bricks.full, memory_.listed_full));
  QRY_TRY(send(arrays_->listed_masks, voxels, memory_.listed_masks));
  QRY_TRY(send(arrays_->listed_materials, bricks.materials, memory_.listed_materials));
  if (!bricks.bricks.empty()) QRY_TRY(send_bricks(bricks.bricks));
  if (!bricks.parts.empty()) QRY_TRY(send_parts(bricks.parts));
  reach(bricks.full_keys);
  reach(bricks.keys);
  return {};
}

Result<Store::Change> Store::write_list(EditCall call, const Bricks& bricks, std::span<const BrickMask> voxels) {
  QRY_TRY(send_list(bricks, voxels));
  call.listed_full = uint32_t(bricks.full_keys.size());
  return make_listed(call, uint32_t(bricks.full_keys.size() + bricks.keys.size()));
}

// Each is copied once, to where the device's copies start.
Result<void> Store::send_bricks(std::span<const SharedBrick> bricks) {
  constexpr size_t kWords = sizeof(BrickMaterials) / sizeof(uint64_t);
  QRY_TRY(executor_->grow(arrays_->listed_materials, bricks.size() * sizeof(BrickMaterials)));
  memory_.listed_materials = static_cast<uint64_t*>(arrays_->listed_materials.data);
  return executor_->copy_in_made(
      memory_.listed_materials, bricks.size() * kWords, [&](size_t first, std::span<uint64_t> to) {
        for (size_t done = 0; done < to.size();) {
          const size_t word = (first + done) % kWords, some = std::min(kWords - word, to.size() - done);
          std::memcpy(to.data() + done, bricks[(first + done) / kWords]->materials.data() + word * sizeof(uint64_t),
                      some * sizeof(uint64_t));
          done += some;
        }
      });
}

Result<void> Store::send_parts(std::span<const Bricks::Part> parts) {
  size_t bytes = 0;
  for (const Bricks::Part& part : parts) bytes += part.materials.size_bytes();
  QRY_TRY(executor_->grow(arrays_->listed_materials, bytes));
  auto* to = static_cast<char*>(arrays_->listed_materials.data);
  memory_.listed_materials = static_cast<uint64_t*>(arrays_->listed_materials.data);
  for (const Bricks::Part& part : parts) {
    const size_t size = part.materials.size_bytes();
    QRY_TRY(part.kept ? executor_->copy_in_kept(to, part.materials.data(), size)
                      : executor_->copy_in(to, part.materials.data(), size));
    to += size;
  }
  return {};
}

// The list is there until the next one: but for exchange(), edits by lists are not left under way.
Result<Store::Change> Store::make_listed(EditCall call, uint32_t bricks, bool there) {
  call.listed = bricks;
  QRY_TRY_ASSIGN(const Ticket ticket, launch_new({0, Kind::edit, Touch::list, call, 0, there ? bricks : 0}));
  return wait(ticket);
}

Result<Store::Change> Store::write_bricks(const Bricks& bricks) { return write_list({}, bricks, {}); }

Result<void> Store::put(const Bricks& bricks) {
  EditCall call{};
  call.no_step = 1;
  QRY_TRY(write_list(call, bricks, {}));
  return {};
}

Result<Store::Ticket> Store::exchange(const Bricks& coming, std::span<const uint32_t> going) {
  std::vector<uint32_t> full_keys(going.begin(), going.end());
  std::vector<uint8_t> full(going.size(), 0);
  full_keys.insert(full_keys.end(), coming.full_keys.begin(), coming.full_keys.end());
  full.insert(full.end(), coming.full.begin(), coming.full.end());
  Bricks all = coming;
  all.full_keys = full_keys;
  all.full = full;
  QRY_TRY(send_list(all, {}));
  EditCall call{};
  call.no_step = 1;
  call.listed_full = uint32_t(full.size());
  call.listed = uint32_t(full.size() + coming.keys.size());
  QRY_TRY_ASSIGN(const Ticket ticket, launch_new({0, Kind::edit, Touch::list, call, 0, going.size()}));
  list_ = ticket;
  ++exchanges_;
  return ticket;
}

Result<void> Store::put_there(uint32_t bricks, const uint32_t* keys, const uint64_t* materials, const Box3& box,
                              void* stream) {
  if (bricks == 0) return {};
  begin_times();
  QRY_TRY(free_list());
  QRY_TRY(executor_->wait_for(stream));
  // Lists are only read.
  memory_.listed_keys = const_cast<uint32_t*>(keys);
  memory_.listed_full = nullptr;
  memory_.listed_masks = nullptr;
  memory_.listed_materials = const_cast<uint64_t*>(materials);
  reach(box);
  EditCall call{};
  call.no_step = 1;
  const auto made = make_listed(call, bricks);
  memory_.listed_keys = nullptr;
  memory_.listed_materials = nullptr;
  QRY_TRY(made);
  return {};
}

Result<Store::Flattened> Store::flatten(PlacedVolumes& volumes, std::span<const Placement> placements,
                                        uint32_t most_made) {
  using Clock = std::chrono::steady_clock;
  const auto ms_since = [](Clock::time_point begin) {
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  };
  QRY_TRY(wait_all());
  begin_times();
  const auto begin = Clock::now();
  Flattened done;
  const double room_before_ms = volumes.room_ms();
  QRY_TRY_ASSIGN(done.found, volumes.group(memory_, placements));
  done.room_ms = volumes.room_ms() - room_before_ms;
  const uint32_t filled = done.found.filled, made = done.found.made, at_once = std::min(made, most_made);
  if (filled + uint64_t(made) == 0) return done;
  if (filled + uint64_t(made) > kMostScratch)
    return fail(ErrorCode::full, "the world would have " + std::to_string(uint64_t(filled) + made) +
                                     " bricks, which is more than a device flattens at once");
  const auto begin_room = Clock::now();
  Arrays& a = *arrays_;
  QRY_TRY(reserve(filled + made, made));
  QRY_TRY(room_for_listed(at_once));
  QRY_TRY(executor_->grow(a.listed_keys, (uint64_t(filled) + at_once) * sizeof(uint32_t)));
  QRY_TRY(executor_->grow(a.listed_full, filled));
  QRY_TRY(executor_->wait());
  done.room_ms += ms_since(begin_room);
  memory_.listed_full = static_cast<uint8_t*>(a.listed_full.data);
  memory_.listed_masks = nullptr;  // whole bricks
  EditCall call{};
  call.no_step = 1;
  call.listed_full = filled;
  for (uint32_t first = 0; first == 0 || first < made; first += at_once) {
    memory_.placed.first_made = first;
    const uint32_t some = std::min(at_once, made - first);
    call.listed = call.listed_full + some;
    if (call.listed_full) QRY_TRY(executor_->run(StepId::list_filled, memory_, call, call.listed_full));
    if (some) QRY_TRY(executor_->run(StepId::compose, memory_, call, some));
    QRY_TRY(make_listed(call, call.listed));
    call.listed_full = 0;
    if (some == 0) break;
  }
  memory_.placed = {};
  reach_ = united(reach_, done.found.box);
  done.made_ms = ms_since(begin) - done.room_ms;
  QRY_TRY(wait_all());
  QRY_TRY(trim_scratch());
  return done;
}

Result<void> Store::forget() {
  QRY_TRY(wait_all());
  uint64_t bricks = 1;
  for (const uint64_t its : step_bricks_) bricks += its;
  EditCall call{};
  call.hold = hold_;
  QRY_TRY(executor_->run(StepId::forget, memory_, call, bricks));
  QRY_TRY_ASSIGN(Control control, counters());
  control.record_top = 0;
  control.step_count = control.step_position = 0;
  step_bricks_.clear();
  lists_in_history_ = false;
  step_begun_.reset();
  step_ = 0;
  measured_.clear();
  most_held_ = 0;
  QRY_TRY(executor_->copy_in(memory_.control, &control, sizeof control));
  QRY_TRY_ASSIGN(const State now, state());
  reach_ = now.bounds;
  return {};
}

// ---- The history's budget

namespace {

constexpr uint64_t kBrickBytes = sizeof(BrickMask) + sizeof(BrickMaterials);

}  // namespace

// What the steps take. Of those that have been counted, the records are not read again.
Result<uint64_t> Store::measure(const std::vector<Step>& steps) {
  size_t known = 0;
  uint64_t bytes = 0;
  std::vector<Record> records;
  for (const Step& step : steps) {
    const size_t number = known++;
    const bool same =
        number < measured_.size() && measured_[number].first == step.first && measured_[number].count == step.count;
    if (!same) {
      measured_.resize(number);
      records.resize(step.count);
      QRY_TRY(executor_->copy_out(records.data(), memory_.records + step.first, step.count * sizeof(Record)));
      uint32_t before = 0, after = 0;
      for (const Record& record : records) {
        if (record.before == record.after) continue;
        before += is_stored_index(record.before);
        after += is_stored_index(record.after);
      }
      measured_.push_back({step.first, step.count, std::max(before, after)});
    }
    bytes += sizeof(Step) + step.count * sizeof(Record) + measured_[number].bricks * kBrickBytes;
  }
  measured_.resize(known);
  return bytes;
}

// Frees what records [first, end) hold, which are of applied steps or of undone ones, and makes them `nothing`.
// Nothing is under way.
Result<void> Store::free_records(uint64_t first, uint64_t end, bool applied, std::span<const Record> nothing) {
  if (first == end) return {};
  QRY_TRY_ASSIGN(const Control control, counters());
  // They are taken for the whole history, of which all is applied or nothing.
  Control part = control;
  part.record_top = end - first;
  if (!applied) part.step_position = 0;
  Memory memory = memory_;
  memory.records += first;
  QRY_TRY(executor_->copy_in(memory_.control, &part, sizeof part));
  EditCall call{};
  call.hold = hold_;
  const auto ran = executor_->run(StepId::forget, memory, call, end - first);
  QRY_TRY_ASSIGN(Control after, counters());
  after.record_top = control.record_top;
  after.step_position = control.step_position;
  QRY_TRY(executor_->copy_in(memory_.control, &after, sizeof after));
  used_.records = after.record_top;
  QRY_TRY(ran);
  // From the host a few, and then each copy is as long as what is there.
  uint64_t there = std::min<uint64_t>(end - first, nothing.size());
  QRY_TRY(executor_->copy_in(memory.records, nothing.data(), there * sizeof(Record)));
  while (there < end - first) {
    const uint64_t more_records = std::min(there, end - first - there);
    QRY_TRY(executor_->copy_within(memory.records + there, memory.records, more_records * sizeof(Record)));
    there += more_records;
  }
  return {};
}

// What is over the budget goes, as set_history_budget() says.
Result<void> Store::keep_budget() {
  if (budget_ == 0 || most_held_ <= budget_) return {};
  QRY_TRY(wait_all());
  QRY_TRY_ASSIGN(auto steps, history());
  QRY_TRY_ASSIGN(most_held_, measure(steps));
  if (most_held_ <= budget_) return {};
  QRY_TRY_ASSIGN(Control control, counters());
  const auto bytes_of = [&](size_t number) {
    return sizeof(Step) + steps[number].count * sizeof(Record) + measured_[number].bricks * kBrickBytes;
  };
  uint64_t left = most_held_;
  const size_t position = control.step_position;
  size_t first = 0, end = steps.size();
  // What undo takes next: a step, or the parts of the one that has begun.
  size_t last = position - (position > 0);
  if (step_begun_) last = std::min(last, size_t(*step_begun_ - dropped_));
  while (first < last && left > budget_) left -= bytes_of(first++);
  const size_t kept = std::max<size_t>(position, 1);
  while (end > kept && left > budget_) left -= bytes_of(--end);
  if (first == 0 && end == steps.size()) return {};
  const size_t all = steps.size();
  QRY_TRY(keep_steps(std::move(steps), first, end));
  cut_off_ += all - end;
  dropped_ += first;
  most_held_ = left;
  return {};
}

// Of the history's steps those from `first` to `end`, among which is where it is. The others' bricks are freed.
Result<void> Store::keep_steps(std::vector<Step> steps, size_t first, size_t end) {
  QRY_TRY_ASSIGN(Control control, counters());
  const size_t position = control.step_position;
  // From here on the host takes no memory: it must not end in the middle.
  const std::vector<Record> nothing(4096, Record{kNone, kNone, kNone});
  if (first > 0) QRY_TRY(free_records(steps[0].first, steps[first].first, true, nothing));
  if (end < steps.size()) QRY_TRY(free_records(steps[end].first, control.record_top, false, nothing));
  const auto keep = [&](auto& list) {
    list.resize(std::min(list.size(), end));
    list.erase(list.begin(), list.begin() + std::ptrdiff_t(std::min(list.size(), first)));
  };
  keep(steps);
  keep(measured_);
  keep(step_bricks_);
  step_ -= std::min(step_, first);
  QRY_TRY_ASSIGN(control, counters());
  control.step_count = uint32_t(steps.size());
  control.step_position = uint32_t(position - first);
  QRY_TRY(executor_->copy_in(memory_.steps, steps.data(), steps.size() * sizeof(Step)));
  return executor_->copy_in(memory_.control, &control, sizeof control);
}

Result<void> Store::forget_redo() {
  QRY_TRY(wait_all());
  QRY_TRY(end_step());
  QRY_TRY_ASSIGN(auto steps, history());
  QRY_TRY_ASSIGN(const Control control, counters());
  if (control.step_position == steps.size()) return {};
  return keep_steps(std::move(steps), 0, control.step_position);
}

Result<void> Store::set_history_budget(uint64_t bytes) {
  budget_ = bytes;
  most_held_ = uint64_t(1) << 62;  // as long as there was none it was not added up
  return keep_budget();
}

Result<Store::HistoryUse> Store::history_use() {
  QRY_TRY(wait_all());
  QRY_TRY(end_step());
  QRY_TRY(keep_budget());
  QRY_TRY_ASSIGN(const auto steps, history());
  HistoryUse use;
  QRY_TRY_ASSIGN(use.bytes, measure(steps));
  QRY_TRY_ASSIGN(const Control control, counters());
  use.steps = control.step_count;
  use.position = control.step_position;
  use.dropped = dropped_;
  use.cut_off = cut_off_;
  return use;
}

// ---- Steps of several edits

Result<void> Store::begin_step(bool continues) {
  QRY_TRY(end_step());
  QRY_TRY(wait_all());
  QRY_TRY_ASSIGN(const Control control, counters());
  step_begun_ = control.step_position + dropped_ - (continues && control.step_position ? 1 : 0);
  return {};
}

Result<void> Store::end_step() {
  if (!step_begun_) return {};
  QRY_TRY(wait_all());
  QRY_TRY_ASSIGN(const Control control, counters());
  const uint64_t position = control.step_position + dropped_;
  if (position > *step_begun_ + 1) QRY_TRY(join_steps(uint32_t(position - *step_begun_)));
  step_begun_.reset();
  return keep_budget();
}

// The last steps, all of which are applied. Nothing is under way. Lists are not either: their memory is used.
Result<void> Store::join_steps(uint32_t count) {
  QRY_TRY_ASSIGN(auto steps, history());
  const auto joined = std::span(steps).last(count);
  Step one = joined.front();
  const uint64_t records = joined.back().first + joined.back().count - one.first;  // with gaps, which change nothing
  if (records > kMostScratch)
    return fail(ErrorCode::full, "a step of " + std::to_string(records) +
                                     " records is more than a device lists at once: its parts are steps of their own");
  for (const Step& step : joined.subspan(1)) {
    one.more += step.more;
    one.changed += step.changed;
  }
  Arrays& a = *arrays_;
  QRY_TRY(executor_->grow(a.listed_keys, records * sizeof(uint32_t)));
  QRY_TRY(executor_->grow(a.listed_masks, records * sizeof(Record)));
  QRY_TRY(executor_->grow(a.listed_materials, records * 3 * sizeof(uint32_t)));
  const auto words = [](const Range& range) { return static_cast<uint32_t*>(range.data); };
  const Executor::Pairs pairs{{words(a.listed_keys), words(a.listed_materials) + 2 * records},
                              {words(a.listed_materials), words(a.listed_materials) + records}};
  Memory memory = memory_;
  memory.joined = {pairs.keys[0], pairs.values[0], one.first, uint32_t(records),
                   static_cast<Record*>(a.listed_masks.data)};
  EditCall call{};
  call.hold = hold_;
  QRY_TRY(executor_->run(StepId::begin_list, memory, call, 1));
  QRY_TRY(executor_->run(StepId::list_records, memory, call, records));
  QRY_TRY_ASSIGN(const uint32_t sorted, executor_->sort(pairs, uint32_t(records), 32));
  memory.joined.keys = pairs.keys[sorted];
  memory.joined.numbers = pairs.values[sorted];
  QRY_TRY(executor_->run(StepId::join_records, memory, call, records));
  QRY_TRY_ASSIGN(Control control, counters());
  one.count = control.list_bricks;
  QRY_TRY(executor_->copy_within(memory_.records + one.first, memory.joined.to, one.count * sizeof(Record)));
  const size_t number = steps.size() - count;
  control.record_top = one.first + one.count;
  control.step_count = control.step_position = uint32_t(number + 1);
  QRY_TRY(executor_->copy_in(memory_.steps + number, &one, sizeof one));
  QRY_TRY(executor_->copy_in(memory_.control, &control, sizeof control));
  used_.records = control.record_top;
  measured_.resize(std::min(measured_.size(), number));
  step_bricks_.resize(number + 1);
  step_bricks_.back() = one.count;
  lists_in_history_ = true;
  step_ = number + 1;
  return {};
}

// The step is made the other way round, and undone; what its records have before and after is exchanged then. Meanwhile
// the history is set aside.
Result<Store::Change> Store::recall_step(const Bricks& before) {
  QRY_TRY(end_step());
  QRY_TRY(wait_all());
  QRY_TRY_ASSIGN(auto steps, history());
  QRY_TRY_ASSIGN(Control control, counters());
  if (control.step_position != 0) return fail(ErrorCode::invalid_argument, "the history has steps that are applied");
  QRY_TRY(unpack());
  const uint64_t records = control.record_top + before.full_keys.size() + before.keys.size();
  if (records > memory_.record_room) {
    QRY_TRY(make_record_room(records));
    QRY_TRY_ASSIGN(steps, history());
    QRY_TRY_ASSIGN(control, counters());
  }
  const uint64_t budget = std::exchange(budget_, 0);
  auto bricks_of_steps = std::exchange(step_bricks_, {});
  const auto put_steps = [&](std::span<const Step> all, uint32_t applied) -> Result<void> {
    QRY_TRY_ASSIGN(Control now, counters());
    now.step_count = uint32_t(all.size());
    now.step_position = applied;
    if (all.size() > memory_.step_room) QRY_TRY(grow_steps(more(all.size(), memory_.step_room)));
    QRY_TRY(executor_->copy_in(memory_.steps, all.data(), all.size_bytes()));
    return executor_->copy_in(memory_.control, &now, sizeof now);
  };
  const auto make = [&]() -> Result<Change> {
    QRY_TRY(put_steps({}, 0));
    QRY_TRY_ASSIGN(const Change made, write_bricks(before));
    if (made.voxels == 0) return made;
    QRY_TRY_ASSIGN(const Ticket undone, undo());
    QRY_TRY_ASSIGN(const Change back, wait(undone));
    QRY_TRY_ASSIGN(const auto alone, history());
    Step step = alone.front();
    step.more = -step.more;
    std::vector<Record> its(step.count);
    QRY_TRY(executor_->copy_out(its.data(), memory_.records + step.first, its.size() * sizeof(Record)));
    for (Record& record : its) std::swap(record.before, record.after);
    QRY_TRY(executor_->copy_in(memory_.records + step.first, its.data(), its.size() * sizeof(Record)));
    steps.insert(steps.begin(), step);
    bricks_of_steps.insert(bricks_of_steps.begin(), step.count);
    return back;
  };
  const size_t others = steps.size();
  auto made = make();
  const auto settle = [&]() -> Result<void> {
    QRY_TRY(put_steps(steps, uint32_t(steps.size() - others)));
    if (others == 0 || steps.size() == others) return {};
    // Records are in the order of their steps.
    const uint64_t live = records_in(steps);
    auto packed = pack_records(steps, live + live / 2 + 4096);
    if (packed || device_failed(packed.error())) return packed;
    const Step gone = steps.front();
    const Record nothing{kNone, kNone, kNone};
    QRY_TRY(free_records(gone.first, gone.first + gone.count, true, {&nothing, 1}));
    steps.erase(steps.begin());
    bricks_of_steps.erase(bricks_of_steps.begin());
    QRY_TRY(put_steps(steps, 0));
    return packed;
  };
  const auto settled = settle();
  step_bricks_ = std::move(bricks_of_steps);
  step_ = steps.size() - others;
  measured_.clear();
  budget_ = budget;
  if (!settled) return tl::unexpected(settled.error());
  QRY_TRY(made);
  if (budget_) QRY_TRY(set_history_budget(budget_));
  return made;
}

// How much there is to do is known on the device alone; this is near enough.
Result<Store::Ticket> Store::undo() {
  QRY_TRY(end_step());
  begin_times();
  QRY_TRY(unpack_for_step(true));
  const size_t after = step_ - (step_ > 0);
  QRY_TRY_ASSIGN(const Ticket ticket,
                 launch_new({0, Kind::undo, Touch::box, {}, after < step_bricks_.size() ? step_bricks_[after] : 1}));
  step_ = after;
  return ticket;
}
Result<Store::Ticket> Store::redo() {
  QRY_TRY(end_step());
  begin_times();
  QRY_TRY(unpack_for_step(false));
  const bool is_known = step_ < step_bricks_.size();
  QRY_TRY_ASSIGN(const Ticket ticket, launch_new({0, Kind::redo, Touch::box, {}, is_known ? step_bricks_[step_] : 1}));
  step_ += is_known;
  return ticket;
}

// A world that has no such step stays packed. Of one that is packed nothing is under way.
Result<void> Store::unpack_for_step(bool back) {
  if (!packed()) return {};
  QRY_TRY_ASSIGN(const Control control, counters());
  const bool there = back ? control.step_position > 0 : control.step_position < control.step_count;
  return there ? unpack() : Result<void>();
}

Result<Store::Ticket> Store::launch_new(Pending pending) {
  QRY_TRY(keep_budget());
  // What writes bricks writes materials of all their voxels.
  if (packed() && pending.kind == Kind::edit && (pending.touch != Touch::list || pending.call.listed > 0))
    QRY_TRY(unpack());
  // An answer's place is used again: its last one must have been heard.
  if (pending_.size() >= kOutcomes / 2) QRY_TRY(await(pending_.front().ticket));
  pending.ticket = pending.call.ticket = last_ + 1;
  const bool is_step = pending.kind == Kind::edit && !pending.call.no_step;
  retires_ |= pending.kind == Kind::edit && (!is_step || step_ < step_bricks_.size());
  if (pending.kind == Kind::edit) {
    const EditCall& call = pending.call;
    pending.bricks = pending.touch == Touch::list     ? call.listed
                     : pending.touch == Touch::around ? used_.keys + used_.keys / 2 + 64
                     : pending.touch == Touch::grid   ? uint64_t(memory_.grid.page_count) * kQryPageWords
                                                      : uint64_t(call.tiles[0]) * call.tiles[1] * call.tiles[2] * 512;
  }
  pending.call.hold = hold_;
  pending.need = need_of(pending);
  QRY_TRY(make_room_ahead(pending.need));
  // What the host needs for it is there before the device has it.
  if (is_step && step_bricks_.capacity() <= step_) step_bricks_.reserve(2 * step_ + 64);
  pending_.push_back(pending);
  if (auto launched = launch(pending); !launched) {
    pending_.pop_back();
    return tl::unexpected(launched.error());
  }
  if (is_step) {
    lists_in_history_ |= pending.touch == Touch::list;
    step_bricks_.resize(step_);
    step_bricks_.push_back(pending.bricks);
    ++step_;
  }
  expected_ = sum(expected_, pending.need, 1);
  return ++last_;
}

// Slots freed by what was launched before may be used again.
void Store::begin_phase() {
  if (++memory_.grid.phase == kQryPhaseNever) memory_.grid.phase = 0;
}

Result<void> Store::launch(const Pending& pending) {
  Executor& e = *executor_;
  const EditCall& call = pending.call;
  begin_phase();
  const Memory& m = memory_;
  uint64_t tiles = uint64_t(call.tiles[0]) * call.tiles[1] * call.tiles[2], bricks = tiles * 512;
  if (pending.kind == Kind::edit) {
    switch (pending.touch) {
      case Touch::box: QRY_TRY(e.run(StepId::touch_box, m, call, tiles)); break;
      case Touch::tiles:
        QRY_TRY(e.run(StepId::find_tiles, m, call, tiles));
        QRY_TRY(e.run(StepId::touch_tiles, m, call, tiles));
        break;
      case Touch::grid:
        bricks = uint64_t(m.grid.page_count) * kQryPageWords;
        QRY_TRY(e.run(StepId::touch_grid, m, call, bricks));
        break;
      case Touch::list:
        bricks = call.listed;
        QRY_TRY(e.run(StepId::touch_list, m, call, bricks));
        break;
      case Touch::around:
        bricks = pending.bricks;
        // What a step before it may have left is nothing now.
        QRY_TRY(e.run(StepId::begin_list, m, call, 1));
        QRY_TRY(e.run(StepId::find_around, m, call, kLevel3Nodes));
        QRY_TRY(e.run(StepId::list_around, m, call, bricks));
        QRY_TRY(e.run(StepId::morph_masks, m, call, bricks));
        QRY_TRY(e.run(StepId::morph_materials, m, call, bricks));
        break;
    }
    if (pending.touch != Touch::box) tiles = bricks;  // they need not be next to each other
    if (pending.touch != Touch::around)
      QRY_TRY(e.run(pending.touch == Touch::list ? StepId::cut_list : StepId::cut, m, call, bricks / 8 + 1));
  } else {
    bricks = pending.bricks;
    tiles = bricks / 64 + 8;
    QRY_TRY(e.run(pending.kind == Kind::undo ? StepId::settle_undo : StepId::settle_redo, m, call, bricks));
  }
  QRY_TRY(e.run(StepId::keys, m, call, bricks));
  // Of a shape, keys come or go, never both, and then `keys` erases: undo and redo need no more.
  const bool erases = pending.kind == Kind::edit
                          ? pending.touch == Touch::list || (pending.touch != Touch::around && call.material == 0)
                          : lists_in_history_;
  if (erases) QRY_TRY(e.run(StepId::erase, m, call, bricks));
  QRY_TRY(e.run(StepId::regions, m, call, tiles));
  QRY_TRY(e.run(StepId::tops, m, call, tiles / 64 + 8));
  if (pending.kind == Kind::edit) QRY_TRY(e.run(StepId::release, m, call, bricks / 8 + 1));
  return {};
}

// ---- Room ahead

// So that few edits are refused: that costs all those under way once more.
Store::Need Store::need_of(const Pending& pending) const {
  if (pending.kind != Kind::edit) return {0, 0, pending.bricks / 4 + 64, pending.bricks};
  if (pending.touch == Touch::around) {
    // The device counts it before it does what takes long. Ahead there is what costs little, and is often enough.
    const uint64_t some = grows_little_ ? 0 : std::min<uint64_t>(pending.bricks, 1u << 20);
    return {some, 0, some / 2, 0};
  }
  const EditCall& call = pending.call;
  const bool all_there = pending.touch == Touch::list && pending.there == pending.bricks,
             sets = !all_there && (pending.touch == Touch::list || sets_absent(call));
  double touched = double(pending.bricks), cut = touched - call.listed_full;
  if (pending.touch == Touch::grid || (pending.touch != Touch::list && pending.box.empty())) {
    touched = cut = 0;  // what it meets is not known, or nothing
  } else if (pending.touch != Touch::list) {
    const double x = double(pending.box.max.x) - pending.box.min.x + 9,
                 y = double(pending.box.max.y) - pending.box.min.y + 9,
                 z = double(pending.box.max.z) - pending.box.min.z + 9;
    const bool box = call.shape.shape == Shape::box;
    touched = x * y * z / 512 * (box ? 1 : 0.55) + 64;
    cut = (x * y + y * z + z * x) / 64 * 2 * (box ? 1 : 0.85) + 64;
    if (call.shape.shape == Shape::line) touched = cut;  // of one that is long and thin
    touched = std::min(touched, double(pending.bricks));
    cut = std::min(cut, touched);
  }
  // A brick that is full is whole in the list, and what becomes of it takes none.
  if (all_there) cut = std::min(cut, double(used_.bricks));
  const auto records = uint64_t(touched);
  const bool is_list = pending.touch == Touch::list;
  return {records, uint64_t(cut), uint64_t(touched * (is_list ? list_nodes_ : 1.0 / 3)) + 4096,
          sets ? records - std::min(records, pending.there) : 0};
}

// What cannot be had is left to the edit's own answer.
Result<void> Store::make_room_ahead(const Need& need) {
  const auto fits = [&](const Need& all) {
    return all.records <= memory_.record_room && all.bricks + kFullBricks <= memory_.brick_room &&
           all.nodes <= memory_.node_room && all.keys <= memory_.grid_limit;
  };
  if (fits(sum(sum(used_, expected_, 1), need, 1))) return {};
  // Those under way may need less than was expected.
  if (!pending_.empty()) QRY_TRY(await(pending_.back().ticket));
  Need all = sum(used_, need, 1);
  if (fits(all)) return {};
  QRY_TRY(executor_->wait());
  if (all.bricks + kFullBricks > memory_.brick_room) {
    QRY_TRY(free_retired());
    all = sum(used_, need, 1);
    if (fits(all)) return {};
  }
  const auto refused = [](const Result<void>& made) { return !made && device_failed(made.error()); };
  Result<void> made;
  if (all.records > memory_.record_room) made = make_record_room(all.records);
  if (!refused(made) && all.bricks + kFullBricks > memory_.brick_room)
    made = grow_bricks(more(all.bricks + kFullBricks, memory_.brick_room));
  if (!refused(made) && all.nodes > memory_.node_room) made = make_node_room(all.nodes);
  // The grid is written anew. It waits until the keys are there, because many may be there already.
  if (!refused(made) && all.keys > memory_.grid_limit && used_.keys * 10 > uint64_t(memory_.grid_limit) * 7)
    made = grow_grid(memory_.grid_limit + memory_.grid_limit / (grows_little_ ? 8 : 2));
  if (refused(made)) return made;
  return {};
}

// ---- Answers

Result<void> Store::advance() {
  while (!pending_.empty()) {
    const Ticket ticket = pending_.front().ticket;
    Outcome& outcome = memory_.outcomes[ticket % kOutcomes];
    // Written last, by the device.
    if (std::atomic_ref(outcome.ticket).load(std::memory_order_acquire) != ticket) return {};
    const Answer answer = outcome.answer;
    if (answer == Answer::done && budget_ && pending_.front().kind == Kind::edit && outcome.records > used_.records) {
      const uint64_t records = outcome.records - used_.records;
      most_held_ += sizeof(Step) + records * (sizeof(Record) + kBrickBytes);
    }
    const uint64_t records_before = used_.records;
    used_ = {outcome.records, outcome.bricks, outcome.nodes, outcome.keys};
    nodes_live_ = outcome.nodes_live;
    if (answer == Answer::refused || answer == Answer::skipped) {
      QRY_TRY(answer_refusal());
      continue;
    }
    // Now it is known how many bricks it has changed.
    if (answer == Answer::done && pending_.front().touch == Touch::around && step_ > 0)
      step_bricks_[step_ - 1] = used_.records - std::min(used_.records, records_before);
    // It has become no step.
    if (answer == Answer::unchanged && pending_.front().kind == Kind::edit && !pending_.front().call.no_step &&
        pending_.size() == 1 && step_ > 0) {
      step_bricks_.resize(--step_);
    }
    finish_oldest(Change{outcome.changed, outcome.version});
  }
  return {};
}

void Store::finish_oldest(Result<Change> change) {
  finished_[pending_.front().ticket % kOutcomes] = {pending_.front().ticket, std::move(change)};
  expected_ = sum(expected_, pending_.front().need, -1);
  pending_.pop_front();
  if (!pending_.empty()) return;
  expected_ = {};
  if (!timing_) return;
  times_.add(executor_->take_times());
  edit_times_ = times_;
}

void Store::time_edits(bool on) {
  if (on != timing_) executor_->time_steps(on);
  timing_ = on;
}

// What was timed since the last edits is not the next one's.
void Store::begin_times() {
  if (!timing_ || !pending_.empty()) return;
  (void)executor_->take_times();
  times_ = {};
}

Result<void> Store::await(Ticket ticket) {
  using namespace std::chrono;
  const auto begin = steady_clock::now();
  for (;;) {
    QRY_TRY(advance());
    if (pending_.empty() || pending_.front().ticket > ticket) return {};
    // The answer comes in some microseconds, or it takes longer, and the thread may sleep.
    if (steady_clock::now() - begin > microseconds(300)) {
      QRY_TRY(executor_->wait());
      Outcome& outcome = memory_.outcomes[pending_.front().ticket % kOutcomes];
      if (std::atomic_ref(outcome.ticket).load() != pending_.front().ticket)
        return fail(ErrorCode::device, "the device has lost an edit: its steps have run, and it did not answer");
    }
  }
}

Result<bool> Store::is_done(Ticket ticket) {
  QRY_TRY(advance());
  return pending_.empty() || pending_.front().ticket > ticket;
}

Result<Store::Change> Store::wait(Ticket ticket) {
  QRY_TRY(await(ticket));
  try {
    if (pending_.empty()) QRY_TRY(keep_budget());
  } catch (const std::bad_alloc&) {
    // The change is made all the same. What is over the budget goes before the next one, or is counted again.
  }
  const Finished& found = finished_[ticket % kOutcomes];
  if (found.ticket != ticket || !found.change)
    return fail(ErrorCode::invalid_argument, "no edit has the ticket " + std::to_string(ticket) +
                                                 ", or it was made too long ago: the last 4096 are known");
  return *found.change;
}

Result<void> Store::wait_all() {
  if (!pending_.empty()) QRY_TRY(await(last_));
  return executor_->wait();
}

// The oldest edit without an answer lacked room, and those after it did nothing. Its counters are still there.
Result<void> Store::answer_refusal() {
  ++refusals_;
  QRY_TRY(executor_->wait());
  QRY_TRY_ASSIGN(const Control control, counters());
  if (const Pending& refused = pending_.front(); refused.touch == Touch::list && control.missing & kMissingNodes)
    list_nodes_ = std::clamp(double(control.needed_nodes) / double(std::max<uint64_t>(refused.bricks, 1)), list_nodes_,
                             kMostListNodes);
  if (control.missing & kMissingPlace) {
    begin_phase();
    QRY_TRY(executor_->run(StepId::roll_back, memory_, {}, control.touched));
  }
  // First, because it moves things, and sets the counters that tell where.
  Control free = control;
  end_edit(free);
  free.stopped = 0;
  QRY_TRY(executor_->copy_in(memory_.control, &free, sizeof free));
  auto made = [&]() -> Result<void> {
    try {
      return make_room(control);
    } catch (const std::bad_alloc&) {
      return fail(ErrorCode::out_of_memory, "no host memory to make room for an edit");
    }
  }();
  if (!made) {
    if (device_failed(made.error())) return made;
    finish_oldest(tl::unexpected(made.error()));
  }
  for (const Pending& pending : pending_) {
    std::atomic_ref(memory_.outcomes[pending.ticket % kOutcomes].ticket).store(0);
    QRY_TRY(launch(pending));
  }
  return {};
}

// ---- Room

Result<void> Store::make_room(const Control& control) {
  const uint32_t missing = control.missing;
  const uint64_t keys = uint64_t(control.keys) + control.inserted;
  if (missing & kMissingScratch)
    QRY_TRY(grow_scratch(more(std::max(control.touched, control.tiles), memory_.scratch_room)));
  if (missing & kMissingRecords) QRY_TRY(make_record_room(control.record_top + control.touched));
  if (missing & kMissingBricks) {
    QRY_TRY(free_retired());
    QRY_TRY_ASSIGN(const Control now, counters());
    const uint64_t wanted = uint64_t(now.bricks_top) + control.cut - std::min(control.cut, now.free_count);
    if (wanted > memory_.brick_room || now.free_count == control.free_count)
      QRY_TRY(grow_bricks(more(wanted, memory_.brick_room)));
  }
  if (missing & kMissingNodes) QRY_TRY(make_node_room(uint64_t(control.nodes_top) + control.needed_nodes));
  if (missing & kMissingSteps) QRY_TRY(grow_steps(more(control.step_count + 1, memory_.step_room)));
  if (missing & (kMissingKeys | kMissingPlace)) {
    if (keys > max_bricks_)
      return fail(ErrorCode::full, "the world would have " + std::to_string(keys) + " bricks, more than the " +
                                       std::to_string(max_bricks_) + " that it may have");
    QRY_TRY(grow_grid(std::max<uint64_t>(keys, memory_.grid_limit + memory_.grid_limit / 2)));
  }
  return {};
}

namespace {

Result<void> grow_to(Executor& e, Range& range, uint64_t count, size_t element_bytes) {
  return e.grow(range, size_t(count) * element_bytes);
}

}  // namespace

// Small arrays grow by half, large ones by an eighth: they grow where they are, and nothing is copied.
uint64_t Store::more(uint64_t wanted, uint64_t now) const {
  return std::max(wanted, now + (now < (1u << 20) && !grows_little_ ? now / 2 : now / 8));
}

// What is free behind an array that was written anew without gaps: as much as it has, and much more while that is
// little, because writing anew takes longer than most edits.
uint64_t Store::spare_room(uint64_t live, size_t element_bytes) const {
  const uint64_t little = (uint64_t(grows_little_ ? 4 : 32) << 20) / element_bytes;
  return std::max(live, std::min(8 * live, little));
}

Result<void> Store::grow_bricks(uint64_t bricks) {
  // By whole slabs, of which shaders have a table.
  bricks = std::min((bricks + kBricksPerSlab - 1) / kBricksPerSlab * kBricksPerSlab, kMostBricks);
  if (executor_->shares() && !grows_little_)
    bricks = std::min((bricks + 8 * kBricksPerSlab - 1) / (8 * kBricksPerSlab) * (8 * kBricksPerSlab), kMostBricks);
  if (bricks <= memory_.brick_room)
    return fail(ErrorCode::full, "a world on a device has room for " + std::to_string(kMostBricks) + " bricks");
  while (memory_.brick_room < bricks) {
    const uint64_t room = std::min(bricks, memory_.brick_room + kMostGrowth);
    QRY_TRY(grow_to(*executor_, arrays_->masks, room, sizeof(BrickMask)));
    QRY_TRY(grow_to(*executor_, arrays_->free_bricks, room, sizeof(uint32_t)));
    if (executor_->shares())
      for (Range& range : arrays_->retired) QRY_TRY(grow_to(*executor_, range, room, sizeof(uint32_t)));
    QRY_TRY(grow_to(*executor_, arrays_->materials, room, sizeof(BrickMaterials)));
    memory_.brick_room = uint32_t(room);
  }
  return {};
}
Result<void> Store::grow_scratch(uint64_t items) {
  QRY_TRY(grow_to(*executor_, arrays_->cuts, items, sizeof(Cut)));
  QRY_TRY(grow_to(*executor_, arrays_->unused, items, sizeof(uint32_t)));
  QRY_TRY(grow_to(*executor_, arrays_->tiles, items, sizeof(uint32_t)));
  QRY_TRY(grow_to(*executor_, arrays_->morphed, items / kScratchOfNode, sizeof(MorphedNode)));
  memory_.scratch_room = uint32_t(items);
  return {};
}
Result<void> Store::grow_records(uint64_t records) {
  QRY_TRY(grow_to(*executor_, arrays_->records, records, sizeof(Record)));
  memory_.record_room = records;
  return {};
}
Result<void> Store::grow_steps(uint64_t steps) {
  QRY_TRY(grow_to(*executor_, arrays_->steps, steps, sizeof(Step)));
  memory_.step_room = uint32_t(steps);
  return {};
}
Result<void> Store::grow_nodes(uint64_t granules) {
  granules = std::min(granules, kMostNodes);
  QRY_TRY(grow_to(*executor_, arrays_->nodes, granules, sizeof(OccupancyNode)));
  memory_.node_room = uint32_t(granules);
  return {};
}

// Nodes that no node reaches are left behind by every edit. Where they are more than half, what is reached is written
// anew, without gaps.
Result<void> Store::make_node_room(uint64_t granules) {
  const uint64_t live = nodes_live_ + kFirstRun, more_than_top = granules - std::min(granules, used_.nodes);
  // Shaders reach nodes from one address: there they do not grow where they are.
  if (live * 2 < used_.nodes || executor_->shares()) {
    const uint64_t spare = spare_room(live, sizeof(OccupancyNode));
    return pack_nodes(live + std::max(spare, more_than_top) + more_than_top);
  }
  return grow_nodes(more(granules, memory_.node_room));
}

Result<void> Store::pack_nodes(uint64_t room) {
  old_.reserve(old_.size() + 1);
  QRY_TRY_ASSIGN(Range range, executor_->reserve(size_t(kMostNodes) * sizeof(OccupancyNode), "the pyramid", true));
  Memory fresh = memory_;
  fresh.old_nodes = memory_.nodes;
  fresh.nodes = static_cast<OccupancyNode*>(range.data);
  const auto write = [&]() -> Result<void> {
    QRY_TRY(grow_to(*executor_, range, room, sizeof(OccupancyNode)));
    const uint32_t top = kFirstRun;
    QRY_TRY(executor_->copy_in(&memory_.control->nodes_top, &top, sizeof top));
    QRY_TRY(executor_->run(StepId::copy_pyramid, fresh, {}, kLevel3Nodes));
    return executor_->wait();
  };
  if (auto written = write(); !written) {
    executor_->release(range);
    const auto top = uint32_t(used_.nodes);
    (void)executor_->copy_in(&memory_.control->nodes_top, &top, sizeof top);
    return written;
  }
  retire(arrays_->nodes);
  arrays_->nodes = std::move(range);
  top_ = kTopCopies;  // what is published is in the old one
  std::fill_n(top_frames_, kTopCopies, 0);
  memory_.nodes = fresh.nodes;
  memory_.node_room = uint32_t(room);
  uint32_t top = 0;
  QRY_TRY(executor_->copy_out(&top, &memory_.control->nodes_top, sizeof top));
  used_.nodes = top;
  return {};
}

Result<std::vector<Step>> Store::history() {
  QRY_TRY_ASSIGN(const Control control, counters());
  std::vector<Step> steps(control.step_count);
  QRY_TRY(executor_->copy_out(steps.data(), memory_.steps, steps.size() * sizeof(Step)));
  return steps;
}

// Records of steps that can no longer be redone leave gaps.
Result<void> Store::make_record_room(uint64_t records) {
  QRY_TRY_ASSIGN(auto steps, history());
  const uint64_t live = records_in(steps), more_than_top = records - std::min(records, used_.records);
  if (live * 2 < used_.records) {
    const uint64_t spare = spare_room(live, sizeof(Record));
    return pack_records(std::move(steps), live + std::max(spare, more_than_top) + more_than_top);
  }
  return grow_records(more(records, memory_.record_room));
}

Result<void> Store::pack_records(std::vector<Step> steps, uint64_t room) {
  QRY_TRY_ASSIGN(Range range, executor_->reserve(size_t(kMostRecords) * sizeof(Record), "records"));
  auto* const to = static_cast<Record*>(range.data);
  uint64_t top = 0;
  std::vector<Measured> measured;  // those of the steps that have been counted, where they will be
  const auto copy = [&]() -> Result<void> {
    QRY_TRY(grow_to(*executor_, range, room, sizeof(Record)));
    for (Step& step : steps) {
      const size_t number = measured.size();
      if (number < measured_.size() && measured_[number].first == step.first && measured_[number].count == step.count)
        measured.push_back({top, step.count, measured_[number].bricks});
      else measured_.resize(std::min(measured_.size(), number));
      QRY_TRY(executor_->copy_within(to + top, memory_.records + step.first, step.count * sizeof(Record)));
      step.first = top;
      top += step.count;
    }
    return executor_->wait();
  };
  if (auto copied = copy(); !copied) {
    executor_->release(range);
    return copied;
  }
  QRY_TRY(executor_->copy_in(memory_.steps, steps.data(), steps.size() * sizeof(Step)));
  QRY_TRY(executor_->copy_in(&memory_.control->record_top, &top, sizeof top));
  executor_->release(arrays_->records);
  arrays_->records = std::move(range);
  memory_.records = to;
  memory_.record_room = room;
  used_.records = top;
  measured_ = std::move(measured);
  return {};
}

Result<void> Store::trim() {
  QRY_TRY(wait_all());
  lists_.reset();
  floods_.reset();
  parts_.reset();
  QRY_TRY(trim_scratch());
  QRY_TRY_ASSIGN(auto steps, history());
  const uint64_t live = records_in(steps);
  QRY_TRY(pack_records(std::move(steps), live + live / 64 + 4096));
  if (const uint32_t pages = trimmed_pages(); pages != memory_.grid.page_count) QRY_TRY(make_grid(pages));
  const OccupancyNode* const nodes = memory_.nodes;
  gathers_ = kGathers;
  QRY_TRY(gather_bricks());
  // Where bricks have moved it is written anew already.
  return memory_.nodes == nodes ? pack_nodes(packed_nodes()) : Result<void>();
}

uint32_t Store::trimmed_pages() const {
  if (used_.keys * 4 < memory_.grid_limit && memory_.grid_limit > 2 * kFirstKeys)
    return pages_for(std::max(used_.keys + used_.keys / 2, kFirstKeys));
  return memory_.grid.page_count;
}

uint64_t Store::packed_nodes() const { return nodes_live_ + nodes_live_ / 64 + kFirstRun + 4096; }

// What one edit needed has no content after it.
Result<void> Store::trim_scratch() {
  Arrays& a = *arrays_;
  for (Range* range : {&a.listed_keys, &a.listed_full, &a.listed_masks, &a.listed_materials, &a.dense})
    executor_->shrink(*range, 0);
  executor_->shrink(a.cuts, kFirstScratch * sizeof(Cut));
  for (Range* range : {&a.unused, &a.tiles}) executor_->shrink(*range, kFirstScratch * sizeof(uint32_t));
  executor_->shrink(a.morphed, kFirstScratch / kScratchOfNode * sizeof(MorphedNode));
  memory_.scratch_room = uint32_t(
      std::min({a.cuts.size_bytes / sizeof(Cut), a.unused.size_bytes / sizeof(uint32_t),
                a.tiles.size_bytes / sizeof(uint32_t), a.morphed.size_bytes / sizeof(MorphedNode) * kScratchOfNode}));
  return {};
}

// Moves bricks to free places, so that those that are held are the first ones, and what is behind them can be given
// back. As long as frames read some places not all bricks can move, and those that have are still there for them: then
// publish() does it again.
Result<void> Store::gather_bricks() {
  QRY_TRY_ASSIGN(Control control, counters());
  const auto first = uint32_t(control.bricks_top - control.free_count - retired_);
  if (control.free_count > 0) {
    QRY_TRY_ASSIGN(const bool left, move_bricks(control, first));
    if (left && hold_ != 0) return {};
  }
  if (retired_ > 0) return {};
  // Free are those at `first` and behind it, and no others.
  QRY_TRY_ASSIGN(control, counters());
  control.bricks_top = first;
  control.free_count = 0;
  QRY_TRY(executor_->copy_in(memory_.control, &control, sizeof control));
  QRY_TRY(counters());
  gathers_ = 0;
  if (published_.nodes) leave_frame_ = kNotKnown;
  else QRY_TRY(give_back_bricks());
  return {};
}

// Until the pyramid is written only what nobody reads has changed. True: places were left.
Result<bool> Store::move_bricks(const Control& control, uint32_t first) {
  const uint64_t places = control.bricks_top - first;
  QRY_TRY_ASSIGN(Range range, executor_->reserve(size_t(places) * 3 * sizeof(uint32_t), "bricks that move"));
  auto* const to = static_cast<uint32_t*>(range.data);
  const auto move = [&]() -> Result<bool> {
    Executor& e = *executor_;
    QRY_TRY(grow_to(e, range, places * 3, sizeof(uint32_t)));
    memory_.moves = {first, control.bricks_top, to, to + places, to + 2 * places};
    Control counted = control;
    counted.moves = counted.places_before = counted.places_behind = 0;
    QRY_TRY(e.copy_in(memory_.control, &counted, sizeof counted));
    const uint64_t holders = uint64_t(memory_.grid.page_count) * kQryPageWords + control.record_top;
    QRY_TRY(e.run(StepId::find_places, memory_, {}, control.free_count));
    QRY_TRY(e.run(StepId::find_moves, memory_, {}, holders));
    QRY_TRY_ASSIGN(counted, counters());
    if (counted.moves == 0 || counted.places_before == 0) return false;
    QRY_TRY(e.run(StepId::move_bricks, memory_, {}, places * MoveBricks::kWords));
    QRY_TRY(pack_nodes(packed_nodes()));
    QRY_TRY(e.run(StepId::redirect, memory_, {}, holders));
    const uint32_t none = 0;
    QRY_TRY(e.copy_in(&memory_.control->free_count, &none, sizeof none));
    EditCall call{};
    call.hold = hold_;
    QRY_TRY(e.run(StepId::list_places, memory_, call, control.free_count));
    QRY_TRY(e.run(StepId::leave_places, memory_, call, places));
    QRY_TRY(e.wait());
    return true;
  };
  auto done = move();
  memory_.moves = {};
  executor_->release(range);
  return done;
}

Result<void> Store::give_back_bricks() {
  QRY_TRY(executor_->wait());
  QRY_TRY_ASSIGN(const Control control, counters());
  Arrays& a = *arrays_;
  const uint64_t room = std::max<uint64_t>(control.bricks_top, kFirstBricks);
  uint64_t left = kMostBricks;
  const auto shrink = [&](Range& range, size_t element_bytes) {
    if (range.size_bytes == 0) return;
    executor_->shrink(range, size_t(room) * element_bytes);
    left = std::min<uint64_t>(left, range.size_bytes / element_bytes);
  };
  shrink(a.masks, sizeof(BrickMask));
  shrink(a.materials, sizeof(BrickMaterials));
  for (Range* range : {&a.free_bricks, &a.retired[0], &a.retired[1]}) shrink(*range, sizeof(uint32_t));
  memory_.brick_room = uint32_t(std::min<uint64_t>(memory_.brick_room, left / kBricksPerSlab * kBricksPerSlab));
  return {};
}

Result<void> Store::grow_grid(uint64_t keys) {
  // Nothing is under way: the counters of edits are free for its own.
  uint32_t pages = pages_for(std::min<uint64_t>(keys, max_bricks_));
  if (pages <= memory_.grid.page_count) pages = memory_.grid.page_count + memory_.grid.page_count / 3 + 1;
  return make_grid(pages);
}

Result<void> Store::make_grid(uint32_t pages) {
  old_.reserve(old_.size() + 1);
  for (;; pages += pages / 3 + 1) {
    const size_t bytes = size_t(pages) * kQryPageWords * sizeof(uint64_t);
    QRY_TRY_ASSIGN(Range range, executor_->reserve(bytes, "the hash grid", true));
    Memory larger = memory_;
    larger.old_grid = memory_.grid;
    larger.grid = {static_cast<uint64_t*>(range.data), pages, 0, kQryPlain};
    const auto fill = [&]() -> Result<bool> {
      QRY_TRY(executor_->grow(range, bytes));
      const uint32_t none = 0;
      QRY_TRY(executor_->copy_in(&memory_.control->missing, &none, sizeof none));
      QRY_TRY(executor_->run(StepId::clear_grid, larger, {}, uint64_t(pages) * kQryPageWords));
      if (memory_.grid.page_count)
        QRY_TRY(executor_->run(StepId::rehash, larger, {}, uint64_t(memory_.grid.page_count) * kQryPageWords));
      uint32_t missing = 0;
      QRY_TRY(executor_->copy_out(&missing, &memory_.control->missing, sizeof missing));
      return missing == 0;
    };
    const auto filled = fill();
    if (!filled || !*filled) {
      executor_->release(range);
      if (!filled) return tl::unexpected(filled.error());
      continue;
    }
    if (arrays_->grid.data) retire(arrays_->grid);
    arrays_->grid = std::move(range);
    memory_.grid = larger.grid;
    memory_.grid_limit =
        uint32_t(std::min<uint64_t>(max_bricks_, uint64_t(double(pages) * kQrySlotsPerPage * kFullest)));
    return {};
  }
}

Result<void> Store::reserve(uint32_t keys, uint32_t bricks) {
  QRY_TRY(wait_all());
  QRY_TRY(unpack());
  if (uint64_t(bricks) + kFullBricks > memory_.brick_room) QRY_TRY(grow_bricks(uint64_t(bricks) + kFullBricks));
  if (keys > memory_.grid_limit) QRY_TRY(grow_grid(keys));
  if (keys > memory_.record_room) QRY_TRY(grow_records(keys));
  const uint64_t nodes = uint64_t(keys) / 2 + kFirstNodes;
  if (nodes > memory_.node_room) QRY_TRY(executor_->shares() ? pack_nodes(nodes) : grow_nodes(nodes));
  const uint64_t scratch = std::min<uint64_t>(keys, uint64_t(1) << 24);
  if (scratch > memory_.scratch_room) QRY_TRY(grow_scratch(scratch));
  return {};
}

// ---- The packed form

namespace {

// Behind the last brick's words. A view of the grid may show a frame a brick that is newer than it: it reads the mask
// of that with the start of one which the place had before, and so up to a brick's words too many.
constexpr uint64_t kWordsBehind = kVoxelsPerBrick / 4;

// Memory of a range by whole slabs but for the last one, as shaders have them.
Result<void> grow_slabs(Executor& e, Range& range, uint64_t size_bytes) {
  constexpr uint64_t kMost = kMostGrowth * sizeof(BrickMaterials);
  for (uint64_t size = 0; size < size_bytes;) {
    size = std::min(size_bytes, size + kMost);
    QRY_TRY(e.grow(range, size_t(size)));
  }
  return {};
}

}  // namespace

Result<void> Store::pack() {
  if (packed()) return {};
  QRY_TRY(trim());
  QRY_TRY_ASSIGN(const Control control, counters());
  Executor& e = *executor_;
  const uint64_t places = control.bricks_top, runs = (places + kPlaceRun - 1) / kPlaceRun;
  const uint64_t scratch_bytes = runs * sizeof(uint64_t) + places * sizeof(uint32_t);
  Range scratch, fresh, words;  // `fresh`: addresses of materials that may come back; frames may read the old ones
  old_.reserve(old_.size() + 1);
  // What is refused is refused while no step runs.
  const auto make = [&]() -> Result<void> {
    QRY_TRY_ASSIGN(fresh, e.reserve(size_t(kMostBricks) * sizeof(BrickMaterials), "materials", true));
    QRY_TRY_ASSIGN(scratch, e.reserve(size_t(scratch_bytes), "words of bricks"));
    QRY_TRY(e.grow(scratch, size_t(scratch_bytes)));
    Memory memory = memory_;
    auto* const before = static_cast<uint64_t*>(scratch.data);
    memory.packing = {uint32_t(places), reinterpret_cast<uint32_t*>(before + runs), before};
    const uint64_t holders = uint64_t(memory_.grid.page_count) * kQryPageWords + control.record_top;
    QRY_TRY(e.run(StepId::count_words, memory, {}, kFullBricks + holders));
    QRY_TRY(e.run(StepId::survey_words, memory, {}, runs));
    QRY_TRY(e.run(StepId::scan_words, memory, {}, 1));
    QRY_TRY_ASSIGN(const Control counted, counters());
    const uint64_t all = counted.packed_words + kWordsBehind;
    if (all > 0xFFFFFFFFu)
      return fail(ErrorCode::full, "more than 16 GiB of materials cannot be packed; keep the world as it is");
    QRY_TRY_ASSIGN(words, e.reserve(size_t(all) * sizeof(uint32_t), "packed materials", true));
    QRY_TRY(grow_slabs(e, words, all * sizeof(uint32_t)));
    memory.packed = static_cast<uint32_t*>(words.data);
    QRY_TRY(e.run(StepId::place_words, memory, {}, runs));
    QRY_TRY(e.run(StepId::pack_bricks, memory, {}, (places + PackBricks::kBricks - 1) / PackBricks::kBricks));
    return e.wait();
  };
  auto made = make();
  e.release(scratch);
  if (!made) {
    e.release(fresh);
    e.release(words);
    return made;
  }
  retire(arrays_->materials);
  arrays_->materials = std::move(fresh);
  arrays_->packed = std::move(words);
  memory_.materials = static_cast<uint64_t*>(arrays_->materials.data);
  memory_.packed = static_cast<uint32_t*>(arrays_->packed.data);
  packed_places_ = places;
  form_changed_ = true;
  return {};
}

Result<void> Store::unpack() {
  if (!packed()) return {};
  QRY_TRY(wait_all());
  Range& materials = arrays_->materials;
  old_.reserve(old_.size() + 1);
  const auto write = [&]() -> Result<void> {
    QRY_TRY_ASSIGN(const Control control, counters());
    // By growths of the same bricks as those of the masks, which a trim gives back together.
    for (const Range::Part& part : arrays_->masks.parts) {
      const uint64_t bricks = (part.offset_bytes + part.size_bytes) / sizeof(BrickMask);
      QRY_TRY(grow_to(*executor_, materials, std::min<uint64_t>(bricks, memory_.brick_room), sizeof(BrickMaterials)));
    }
    Memory memory = memory_;
    memory.packing.places = uint32_t(std::min<uint64_t>(control.bricks_top, packed_places_));
    QRY_TRY(executor_->run(StepId::unpack_bricks, memory, {}, uint64_t(memory.packing.places) * 64));
    return executor_->wait();
  };
  if (auto written = write(); !written) {
    executor_->shrink(materials, 0);
    return written;
  }
  memory_.packed = nullptr;
  retire(arrays_->packed);
  packed_places_ = 0;
  form_changed_ = true;
  return {};
}

// Of grid, masks, materials and pyramid. What trim() would leave is known but for places that frames read.
Result<uint64_t> Store::expect_packed_bytes() {
  QRY_TRY(executor_->run(StepId::begin_words, memory_, {}, 1));
  const uint64_t holders = uint64_t(memory_.grid.page_count) * kQryPageWords + used_.records;
  QRY_TRY(executor_->run(StepId::sum_words, memory_, {}, kFullBricks + holders));
  QRY_TRY_ASSIGN(const Control control, counters());
  const Arrays& a = *arrays_;
  const auto places = uint64_t(control.bricks_top) - control.free_count - retired_;
  uint64_t bytes = 0;
  const auto room = std::max<uint64_t>(places, kFirstBricks) * sizeof(BrickMask);
  for (const Range::Part& part : a.masks.parts)
    if (part.offset_bytes < room) bytes += part.size_bytes;
  const auto add = [&](uint64_t size_bytes) { bytes += executor_->rounded(size_t(size_bytes)); };
  add(uint64_t(trimmed_pages()) * kQryPageWords * sizeof(uint64_t));
  add(packed_nodes() * sizeof(OccupancyNode));
  add((places + control.packed_words + kWordsBehind) * sizeof(uint32_t));
  return bytes;
}

// ---- Frames

// Nothing of it is used by the device any more.
void Store::retire(Range& range) {
  if (published_.nodes) old_.push_back({std::move(range), kNotKnown});
  else executor_->release(range);
  range = {};
}

void Store::free_old(const Frames& frames) {
  for (Old& old : old_)
    if (old.last_frame == kNotKnown) old.last_frame = frames.recorded;
  std::erase_if(old_, [&](Old& old) {
    if (old.last_frame > frames.done) return false;
    executor_->release(old.range);
    return true;
  });
}

Result<const Store::Published*> Store::publish(const Frames& frames) {
  if (!executor_->shares()) return fail(ErrorCode::unsupported, "this world's memory is not shared with shaders");
  QRY_TRY_ASSIGN(const uint64_t its_version, version());
  free_old(frames);
  if (gathers_ > 0 && retired_ == 0) {
    --gathers_;
    QRY_TRY(gather_bricks());
  }
  const uint32_t room = memory_.brick_room;
  if (leave_frame_ && *leave_frame_ <= frames.done) {
    QRY_TRY(give_back_bricks());
    leave_frame_.reset();
  } else if (leave_frame_ == kNotKnown) {
    leave_frame_ = frames.recorded;
  }
  const bool same = published_.nodes && top_ != kTopCopies && its_version == published_.version &&
                    room == memory_.brick_room && !form_changed_;
  if (hold_ == 0) hold_ = 1;
  else QRY_TRY(recycle_retired(frames));
  if (same) return &published_;
  // A copy of level 3 that no frame reads. One that was published, but to no frame, is such a one.
  if (top_ != kTopCopies) top_frames_[top_] = frames.recorded > recorded_ ? frames.recorded : 0;
  recorded_ = frames.recorded;
  uint32_t free = 0;
  while (free < kTopCopies && top_frames_[free] > frames.done) ++free;
  if (free == kTopCopies) {
    QRY_TRY(pack_nodes(memory_.node_room));
    free = 0;
  }
  OccupancyNode* const top = memory_.nodes + size_t(kLevel3Nodes) * (1 + free);
  QRY_TRY(executor_->copy_within(top, memory_.nodes, size_t(kLevel3Nodes) * sizeof(OccupancyNode)));
  QRY_TRY_ASSIGN(const State now, state());
  top_ = free;
  Published& p = published_;
  ++p.number;
  p.version = now.version;
  p.changed = now.version - exchanges_;
  p.keys = now.keys;
  p.bounds = now.bounds;
  p.grid = arrays_->grid.parts.front().block.address;
  p.grid_pages = memory_.grid.page_count;
  p.nodes = arrays_->nodes.parts.front().block.address;
  p.node_room = memory_.node_room;
  p.level3 = kLevel3Nodes * (1 + free);
  p.packed = packed();
  p.brick_room = p.packed ? uint32_t(std::min<uint64_t>(packed_places_, memory_.brick_room)) : memory_.brick_room;
  // `least_bytes`: what a slab must have.
  const auto slabs = [](const Range& range, size_t slab_bytes, size_t least_bytes) {
    std::vector<uint64_t> addresses;
    for (const Range::Part& part : range.parts)
      for (size_t at = 0; at + least_bytes <= part.size_bytes; at += slab_bytes)
        addresses.push_back(part.block.address + at);
    return addresses;
  };
  constexpr size_t kMasks = kBricksPerSlab * sizeof(BrickMask), kMaterials = kBricksPerSlab * sizeof(BrickMaterials);
  p.masks = slabs(arrays_->masks, kMasks, kMasks);
  p.materials = p.packed ? slabs(arrays_->packed, kMaterials, 1) : slabs(arrays_->materials, kMaterials, kMaterials);
  form_changed_ = false;
  return &p;
}

// Two lists of bricks in turn: one takes what goes out of use, the other waits for frames that were recorded before it
// was closed.
Result<void> Store::recycle_retired(const Frames& frames) {
  if (hold_ == 0 || closed_ > frames.done) return {};
  EditCall call{};
  call.hold = 3 - hold_;
  QRY_TRY(executor_->run(StepId::recycle, memory_, call, 1u << 16));
  hold_ = 3 - hold_;
  closed_ = frames.recorded;
  return {};
}

// Nothing is under way.
Result<void> Store::free_retired() {
  retires_ = !pending_.empty();
  const std::optional<Frames> frames = ask_frames_ && hold_ ? ask_frames_() : std::nullopt;
  return frames ? recycle_all_retired(*frames) : Result<void>();
}

Result<void> Store::recycle_all_retired(const Frames& frames) {
  // What waits, and then what was retired since.
  QRY_TRY(recycle_retired(frames));
  QRY_TRY(recycle_retired(frames));
  QRY_TRY(counters());
  return {};
}

Result<void> Store::recycle(const Frames& frames) {
  QRY_TRY(wait_all());
  free_old(frames);
  return recycle_all_retired(frames);
}

// ---- Questions

// What is in use is known of them, too.
Result<Control> Store::counters() {
  Control control;
  QRY_TRY(executor_->copy_out(&control, memory_.control, sizeof control));
  used_ = {control.record_top, uint64_t(control.bricks_top) - control.free_count, control.nodes_top, control.keys};
  nodes_live_ = control.nodes_live;
  retired_ = uint64_t(control.retired[0]) + control.retired[1];
  return control;
}

Result<uint64_t> Store::version() {
  QRY_TRY(wait_all());
  QRY_TRY_ASSIGN(const Control control, counters());
  return control.version;
}

// An edit's answer is written before what it has replaced is free.
Result<Store::Used> Store::used() {
  QRY_TRY(wait_all());
  QRY_TRY(counters());
  return Used{used_.keys, used_.bricks - std::min<uint64_t>(used_.bricks, kFullBricks), retired_, used_.records,
              executor_->size_bytes()};
}

Result<Store::State> Store::state() {
  QRY_TRY(wait_all());
  QRY_TRY(keep_budget());
  QRY_TRY(executor_->run(StepId::begin_bounds, memory_, {}, 1));
  QRY_TRY(executor_->run(StepId::bounds, memory_, {},
                         uint64_t(memory_.grid.page_count) * kQryPageWords / Bounds::kPart + 1));
  QRY_TRY_ASSIGN(const Control control, counters());
  State state;
  if (control.keys)
    state.bounds = {{control.low[0], control.low[1], control.low[2]},
                    {control.high[0], control.high[1], control.high[2]}};
  state.voxels = control.voxels;
  state.version = control.version;
  state.keys = control.keys;
  state.bricks = control.bricks_top - kFullBricks - control.free_count;
  state.retired = uint32_t(retired_);
  state.steps = control.step_count;
  state.position = control.step_position;
  state.size_bytes = executor_->size_bytes();
  const Arrays& a = *arrays_;
  state.world_bytes =
      a.grid.size_bytes + a.masks.size_bytes + a.materials.size_bytes + a.packed.size_bytes + a.nodes.size_bytes;
  return state;
}

Result<Store::MemoryUse> Store::memory_use() {
  QRY_TRY(wait_all());
  QRY_TRY(keep_budget());
  QRY_TRY_ASSIGN(const auto there, entries());
  QRY_TRY_ASSIGN(const auto steps, history());
  const Arrays& a = *arrays_;
  MemoryUse use;
  use.grid_bytes = a.grid.size_bytes;
  use.mask_bytes = a.masks.size_bytes;
  use.material_bytes = a.materials.size_bytes + a.packed.size_bytes;
  use.pyramid_bytes = a.nodes.size_bytes;
  use.history_bytes = a.records.size_bytes + a.steps.size_bytes;
  use.spare_bytes = (memory_.brick_room - used_.bricks) * (packed() ? sizeof(BrickMask) : kBrickBytes);
  use.history_changes = records_in(steps);
  use.full_keys = uint32_t(
      std::count_if(there.begin(), there.end(), [](const Entry& entry) { return is_full_index(entry.index); }));
  use.packed_bytes = use.grid_bytes + use.mask_bytes + use.material_bytes + use.pyramid_bytes;
  use.packed = packed();
  if (!use.packed) {
    QRY_TRY_ASSIGN(use.packed_bytes, expect_packed_bytes());
  }
  return use;
}

RayWorld Store::ray_world() const {
  RayWorld world;
  world.nodes = memory_.nodes;
  world.masks = memory_.masks;
  world.materials = reinterpret_cast<const uint8_t*>(memory_.materials);
  world.packed = memory_.packed;
  world.brick_count = 1;  // what is empty has no node
  world.set_box(reach_);
  return world;
}

Result<void> Store::trace_there(const Ray* rays, size_t count, RayHit* hits) {
  if (!pending_.empty()) QRY_TRY(await(last_));
  return executor_->trace_there(ray_world(), memory_.grid, rays, count, hits);
}

// Where a list's keys would be.
Result<void> Store::send_looks(std::span<const uint32_t> looks) {
  QRY_TRY(executor_->grow(arrays_->listed_keys, looks.size_bytes()));
  QRY_TRY(executor_->copy_in(arrays_->listed_keys.data, looks.data(), looks.size_bytes()));
  memory_.looks = static_cast<const uint32_t*>(arrays_->listed_keys.data);
  return executor_->run(StepId::begin_compare, memory_, {}, 1);
}

Result<Store::VoxelSums> Store::voxel_sums(std::span<const uint32_t, 256> colours) {
  QRY_TRY(wait_all());
  QRY_TRY(send_looks(colours));
  QRY_TRY(executor_->run(StepId::sum_voxels, memory_, {}, SumVoxels::items(memory_, {})));
  QRY_TRY_ASSIGN(const Control sums, counters());
  return VoxelSums{sums.voxels, sums.place_sum, sums.colour_sum};
}

Result<Store::Comparison> Store::compare(Store& other, std::span<const uint32_t, 512> looks) {
  if (other.executor_->device() != executor_->device())
    return fail(ErrorCode::unsupported, "the two worlds are in memory of different devices");
  QRY_TRY(wait_all());
  QRY_TRY(other.wait_all());
  QRY_TRY(send_looks(looks));
  memory_.other = other.read_only();
  EditCall call{};
  call.same_looks = std::equal(looks.begin(), looks.begin() + 256, looks.begin() + 256);
  QRY_TRY(executor_->run(StepId::compare_bricks, memory_, call, CompareBricks::items(memory_, call)));
  call.walks_other = 1;
  QRY_TRY(executor_->run(StepId::compare_bricks, memory_, call, CompareBricks::items(memory_, call)));
  QRY_TRY_ASSIGN(const Control found, counters());
  const auto kind = [&](Difference which) -> Comparison::Kind {
    const Differing& its = found.differing[which];
    if (its.voxels == 0) return {};
    return {its.voxels, {{its.low[0], its.low[1], its.low[2]}, {its.high[0], its.high[1], its.high[2]}}};
  };
  return Comparison{kind(kAdded), kind(kRemoved), kind(kRecoloured), found.alike};
}

Result<hashgrid::Stats> Store::grid_stats() {
  QRY_TRY(wait_all());
  QRY_TRY(executor_->run(StepId::begin_grid_stats, memory_, {}, 1));
  QRY_TRY(executor_->run(StepId::sum_grid_stats, memory_, {}, memory_.grid.page_count));
  QRY_TRY_ASSIGN(const Control control, counters());
  hashgrid::Stats stats = hashgrid::kernels::stats_of(control.grid);
  hashgrid::detail::finish_stats(stats, memory_.grid.page_count, kQrySlotsPerPage);
  stats.version = control.version;
  return stats;
}

Result<void> Store::trace(size_t count, const Executor::FillRays& fill, const Executor::TakeHits& take) {
  for (;;) {
    const uint64_t refusals = refusals_;
    QRY_TRY(executor_->trace(ray_world(), memory_.grid, count, fill, take));
    // The edits before it have run: if one of them lacked room, the rays have met a world without it.
    QRY_TRY(advance());
    if (refusals == refusals_) return {};
    QRY_TRY(wait_all());
  }
}

Result<std::vector<Store::Entry>> Store::entries() {
  QRY_TRY(wait_all());
  std::vector<uint64_t> words(size_t(memory_.grid.page_count) * kQryPageWords);
  QRY_TRY(executor_->copy_out(words.data(), memory_.grid.words, words.size() * sizeof(uint64_t)));
  hashgrid::GridView copy = memory_.grid;
  copy.words = words.data();
  std::vector<Entry> found;
  for (size_t i = 0; i < words.size(); ++i)
    if (const Pair pair = pair_at(copy, i); pair.there) found.push_back({pair.key, pair.index});
  std::sort(found.begin(), found.end(), [](const Entry& a, const Entry& b) { return a.key < b.key; });
  return found;
}

Result<std::vector<Store::Entry>> Store::pyramid_entries() {
  QRY_TRY(wait_all());
  QRY_TRY_ASSIGN(const Control control, counters());
  std::vector<OccupancyNode> nodes(control.nodes_top);
  QRY_TRY(executor_->copy_out(nodes.data(), memory_.nodes, nodes.size() * sizeof(OccupancyNode)));
  std::vector<Entry> found;
  const auto child = [](uint32_t at, uint32_t bit, uint32_t axis) { return at * 4 + (bit >> (2 * axis) & 3u); };
  for (uint32_t top = 0; top < kLevel3Nodes; ++top) {
    uint32_t in2 = 0;
    for (uint32_t b2 = 0; b2 < 64; ++b2) {
      if (!(nodes[top].mask >> b2 & 1u)) continue;
      const OccupancyNode& node2 = nodes[nodes[top].child + in2++];
      uint32_t in1 = 0;
      for (uint32_t b1 = 0; b1 < 64; ++b1) {
        if (!(node2.mask >> b1 & 1u)) continue;
        const OccupancyNode& node1 = nodes[node2.child + in1++];
        const auto* const table = reinterpret_cast<const uint32_t*>(nodes.data() + node1.child);
        uint32_t in0 = 0;
        for (uint32_t b0 = 0; b0 < 64; ++b0) {
          if (!(node1.mask >> b0 & 1u)) continue;
          const uint32_t x = child(child(child(top & 31u, b2, 0), b1, 0), b0, 0),
                         y = child(child(child(top >> 5 & 15u, b2, 1), b1, 1), b0, 1),
                         z = child(child(child(top >> 9, b2, 2), b1, 2), b0, 2);
          found.push_back({x | y << 11 | z << 21, table[in0++]});
        }
      }
    }
  }
  std::sort(found.begin(), found.end(), [](const Entry& a, const Entry& b) { return a.key < b.key; });
  return found;
}

Result<void> Store::read(std::span<const uint32_t> keys, std::span<BrickMaterials> materials) {
  QRY_TRY(wait_all());
  QRY_TRY(room_for_listed(keys.size()));
  QRY_TRY(executor_->copy_in(memory_.listed_keys, keys.data(), keys.size_bytes()));
  EditCall call{};
  call.listed = uint32_t(keys.size());
  QRY_TRY(executor_->run(StepId::gather, memory_, call, keys.size() * 64));
  return executor_->copy_out(materials.data(), memory_.listed_materials, materials.size_bytes());
}

Result<void> Store::look_up(std::span<const uint32_t> keys, std::span<uint32_t> indices) {
  QRY_TRY(wait_all());
  QRY_TRY(executor_->grow(arrays_->listed_keys, keys.size_bytes()));
  memory_.listed_keys = static_cast<uint32_t*>(arrays_->listed_keys.data);
  QRY_TRY(executor_->copy_in(memory_.listed_keys, keys.data(), keys.size_bytes()));
  EditCall call{};
  call.listed = uint32_t(keys.size());
  QRY_TRY(executor_->run(StepId::look_up, memory_, call, keys.size()));
  return executor_->copy_out(indices.data(), memory_.listed_keys, indices.size_bytes());
}

Result<void> Store::read_places(std::span<const uint32_t> places, std::span<BrickMaterials> materials) {
  QRY_TRY(wait_all());
  QRY_TRY(room_for_listed(places.size()));
  QRY_TRY(executor_->copy_in(memory_.listed_keys, places.data(), places.size_bytes()));
  EditCall call{};
  call.listed = uint32_t(places.size());
  QRY_TRY(executor_->run(StepId::gather_places, memory_, call, places.size() * 64));
  return executor_->copy_out(materials.data(), memory_.listed_materials, materials.size_bytes());
}

Result<std::vector<Store::StepRecords>> Store::step_records(uint64_t first, uint64_t most) {
  QRY_TRY(wait_all());
  QRY_TRY(end_step());
  QRY_TRY_ASSIGN(const auto steps, history());
  std::vector<StepRecords> found;
  uint64_t records = 0;
  for (size_t i = size_t(std::min<uint64_t>(first, steps.size())); i < steps.size(); ++i) {
    records += steps[i].count;
    if (records > most && !found.empty()) break;
    found.push_back({steps[i].changed, std::vector<Record>(steps[i].count)});
    QRY_TRY(executor_->copy_out(found.back().records.data(), memory_.records + steps[i].first,
                                steps[i].count * sizeof(Record)));
  }
  return found;
}

Result<Brick> Store::brick(uint32_t index) {
  Brick brick;
  QRY_TRY(executor_->copy_out(&brick.mask, memory_.masks + size_t(index) * 8, sizeof brick.mask));
  if (!packed()) {
    QRY_TRY(executor_->copy_out(&brick.materials, memory_.materials + size_t(index) * 64, sizeof brick.materials));
    return brick;
  }
  // As the only brick of a world.
  uint32_t start = 0, set = 0;
  for (const uint64_t word : brick.mask) set += bit_count(word);
  std::array<uint32_t, 1 + kVoxelsPerBrick / 4> words{1};
  QRY_TRY(executor_->copy_out(&start, memory_.packed + index, sizeof start));
  QRY_TRY(executor_->copy_out(&words[1], memory_.packed + start, (set + 3) / 4 * sizeof(uint32_t)));
  Memory alone{};
  alone.masks = brick.mask.data();
  alone.packed = words.data();
  for (uint32_t at = 0; at < 64; ++at) {
    const uint64_t eight = eight_materials(alone, 0, at);
    std::copy_n(reinterpret_cast<const uint8_t*>(&eight), sizeof eight, &brick.materials[at * 8]);
  }
  return brick;
}

}  // namespace quarry::device
