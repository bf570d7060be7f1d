// SPDX-License-Identifier: Apache-2.0
// world.cpp - a write to grid, pool and pyramid that is rolled back as a whole if any of them fails; packing and
// unpacking.
#include "voxel/worlds/world.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <functional>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "base/parallel.hpp"

namespace quarry {
namespace {

constexpr size_t kWorldBricksPerTask = 256;  // for one thread at a time: 150 KiB
// Load factors of a packed world's grid, tried in turn: the first at which all keys find a place is used.
constexpr double kPackedLoads[] = {0.95, 0.93, 0.90, 0.85};
// Load factors of a grid sized for its keys, and of the same grid before it grows.
constexpr double kFitted = 0.8, kFullest = 0.9;

void sort_unique(std::vector<uint32_t>& keys) {
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
}

std::string name_of(Int3 brick) {
  return "(" + std::to_string(brick.x) + ", " + std::to_string(brick.y) + ", " + std::to_string(brick.z) + ")";
}

}  // namespace

struct World::State {
  std::unique_ptr<hashgrid::Executor> own_executor;
  hashgrid::Executor* executor = nullptr;
  MemorySource* source = nullptr;
  uint32_t max_bricks = 0;
  hashgrid::Grid grid;
  BrickPool pool;
  OccupancyPyramid pyramid;
  uint64_t version = 0, voxels = 0;
  uint32_t key_count = 0;  // of the grid; those whose bricks are full of one material share a brick of the pool
  std::vector<uint32_t> dirty_keys;
  size_t dirty_sorted = 0;    // how many dirty keys were left after the last compaction
  bool dirty_wanted = false;  // somebody has taken them before
  mutable std::mutex bounds_lock;
  mutable Box3 bounds;
  mutable uint64_t bounds_version = 0;

  State(std::unique_ptr<hashgrid::Executor> its_executor, hashgrid::Grid its_grid, BrickPool its_pool,
        OccupancyPyramid its_pyramid)
      : own_executor(std::move(its_executor)),
        grid(std::move(its_grid)),
        pool(std::move(its_pool)),
        pyramid(std::move(its_pyramid)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { free_bricks(); }

  // Ends the world's handles of its bricks. Its keys must go, or get others.
  void free_bricks() {
    const std::vector<bool> full = full_bricks();
    pyramid.for_each_index([&](uint32_t index) {
      if (!full[index]) pool.free(index);
    });
  }

  // By index: true for those that any number of keys has, with one handle, the pool's.
  std::vector<bool> full_bricks() const {
    std::vector<bool> full(pool.high_water());
    for (uint32_t m = 1; m < 256; ++m)
      if (const uint32_t index = pool.full(uint8_t(m)); index != kNoBrick) full[index] = true;
    return full;
  }

  void note_dirty(std::span<const uint32_t> keys) {
    if (!dirty_wanted) return;
    dirty_keys.insert(dirty_keys.end(), keys.begin(), keys.end());
    // Without compaction they would only grow in a long session in which nobody takes them any more.
    if (dirty_keys.size() > 2 * dirty_sorted + (size_t(1) << 20)) {
      sort_unique(dirty_keys);
      dirty_sorted = dirty_keys.size();
    }
  }

  // The grid and the pyramid of these keys, their bricks at these indices.
  struct Tables {
    hashgrid::Grid grid;
    OccupancyPyramid pyramid;
  };
  Result<Tables> tables_of(const std::vector<uint32_t>& keys, const std::vector<uint32_t>& indices, bool packed) {
    QRY_TRY_ASSIGN(auto fresh_grid, grid_of(keys, indices, packed));
    QRY_TRY_ASSIGN(auto fresh_pyramid, OccupancyPyramid::create(*source));
    QRY_TRY(fresh_pyramid.add(keys, indices));
    QRY_TRY(fresh_pyramid.shrink_to_fit(!packed));
    return Tables{std::move(fresh_grid), std::move(fresh_pyramid)};
  }

  // A grid that gets no memory to grow fills up and then is `full`. Here it is the memory that is missing.
  static Result<void> insert(hashgrid::Grid& into, const std::vector<uint32_t>& keys,
                             const std::vector<uint32_t>& indices) {
    const auto placed = into.insert(keys, indices);
    if (placed) return {};
    if (placed.error().code != ErrorCode::full) return tl::unexpected(placed.error());
    QRY_TRY(into.reserve(into.size() + keys.size()));
    QRY_TRY(into.insert(keys, indices));
    return {};
  }

  // A packed world's table is as full as its keys allow; under edit it may reach that load before it grows.
  Result<hashgrid::Grid> grid_of(const std::vector<uint32_t>& keys, const std::vector<uint32_t>& indices, bool full) {
    for (const double load : kPackedLoads) {
      if (!full) break;
      auto fresh = hashgrid::Grid::create(
          *executor, {.capacity = keys.size(), .max_load_factor = load, .may_grow = false}, source);
      QRY_TRY(fresh);
      auto placed = fresh->insert(keys, indices);
      if (placed) return fresh;
      if (placed.error().code != ErrorCode::full) return tl::unexpected(placed.error());
    }
    auto fresh = hashgrid::Grid::create(
        *executor, {.capacity = uint64_t(double(keys.size()) * kFullest / kFitted), .max_load_factor = kFullest},
        source);
    QRY_TRY(fresh);
    QRY_TRY(insert(*fresh, keys, indices));
    return fresh;
  }

  // What a write has done so far. It is rolled back unless committed, whether an error or an exception ends the write.
  struct Rollback {
    State& world;
    const std::vector<uint32_t>& allocated;        // indices
    std::span<const uint8_t> stored;               // materials whose full bricks are new
    const std::vector<uint32_t>& added;            // keys
    const std::vector<uint32_t>&changed, &before;  // keys and their former indices
    bool pyramid = false, grid = false, assigned = false, committed = false;
    ~Rollback() {
      if (committed) return;
      if (assigned) (void)world.grid.assign(changed, before);
      if (grid) (void)world.grid.erase(added);
      if (pyramid) world.pyramid.remove(added);
      world.pool.free_full(stored);
      for (const uint32_t index : allocated) world.pool.free(index);
    }
  };

  // Moves the bricks to a new pool: together, in the order of their places.
  Result<void> move_bricks(bool packed, const OtherHandles& others) {
    const std::vector<uint32_t> keys = keys_by_place();
    std::vector<uint32_t> indices(keys.size());
    QRY_TRY(grid.find(keys, indices));
    BrickMove move(pool);
    for (const uint32_t index : indices) move.add(index);
    if (others) others([&](SharedBrick& brick) { move.add(brick); }, nullptr);
    QRY_TRY_ASSIGN(auto fresh, move.make(*source, packed));
    const std::vector<bool> is_full = full_bricks();
    std::vector<uint32_t> own;  // new indices of the keys whose bricks are not full
    own.reserve(keys.size());
    for (uint32_t& index : indices) {
      const bool shared_by_keys = is_full[index];
      index = move.place(index);
      if (!shared_by_keys) own.push_back(index);
    }
    std::array<uint32_t, 256> full;
    full.fill(kNoBrick);
    for (uint32_t m = 1; m < 256; ++m)
      if (const uint32_t index = pool.full(uint8_t(m)); index != kNoBrick) full[m] = move.place(index);
    QRY_TRY_ASSIGN(auto tables, tables_of(keys, indices, packed));

    // From here on nothing fails.
    for (const uint32_t index : own) fresh.share(index);
    for (const uint32_t index : full)
      if (index != kNoBrick) fresh.share(index);
    fresh.set_full(full);
    if (others) others([&](SharedBrick& brick) { brick = move.moved(brick); }, &fresh);
    free_bricks();
    grid = std::move(tables.grid);
    pyramid = std::move(tables.pyramid);
    pool = std::move(fresh);
    return {};
  }

  Result<void> pack(const OtherHandles& others) { return pool.packed() ? Result<void>{} : move_bricks(true, others); }
  Result<void> unpack(const OtherHandles& others) {
    return pool.packed() ? move_bricks(false, others) : Result<void>{};
  }

  Result<void> shrink_to_fit(const OtherHandles& others) {
    if (pool.packed()) return {};
    const uint64_t live = pool.live(), slabs = pool.mask_slabs().slabs().size();
    // Gaps between bricks, and slab numbers lost to earlier cuts, disappear only if the bricks move.
    const bool move = pool.free_count() > live / 16 || slabs > 2 * (live / kBricksPerSlab) + 8;
    if (move) return move_bricks(false, others);
    std::optional<hashgrid::Grid> fresh;
    if (double(key_count) <= kFitted * double(grid.page_count() - 1) * kQrySlotsPerPage) {
      const std::vector<uint32_t> all = pyramid.keys();
      std::vector<uint32_t> indices(all.size());
      QRY_TRY(grid.find(all, indices));
      QRY_TRY_ASSIGN(auto made, grid_of(all, indices, false));
      fresh = std::move(made);
    }
    QRY_TRY(pyramid.shrink_to_fit(true));
    if (fresh && fresh->page_count() < grid.page_count()) grid = std::move(*fresh);
    pool.trim();
    return {};
  }

  // In the order of the pyramid's levels: bricks that are close in space are close in memory.
  std::vector<uint32_t> keys_by_place() const {
    std::vector<std::pair<uint32_t, uint32_t>> places;
    for (const uint32_t key : pyramid.keys()) {
      const PyramidPlace at = pyramid_place(brick_from_key(key));
      places.emplace_back(at.level3 << 18 | at.level3_bit << 12 | at.level2_bit << 6 | at.level1_bit, key);
    }
    std::sort(places.begin(), places.end());
    std::vector<uint32_t> sorted(places.size());
    for (size_t i = 0; i < sorted.size(); ++i) sorted[i] = places[i].second;
    return sorted;
  }

  tl::unexpected<Error> too_many(uint64_t asked, uint64_t there) const {
    return tl::unexpected(Error{ErrorCode::full, "brick pool: " + std::to_string(asked) + " bricks asked for, " +
                                                     std::to_string(there) + " of at most " +
                                                     std::to_string(max_bricks) +
                                                     " are in use; remove voxels or allow more bricks"});
  }
  static tl::unexpected<Error> outside(Int3 brick) {
    return tl::unexpected(
        Error{ErrorCode::out_of_bounds,
              "brick " + name_of(brick) + " lies outside the world's x and z in [-1024, 1023], y in [-512, 511]"});
  }

  Result<void> fill(BrickMap bricks, const Progress& progress) {
    const size_t count = bricks.bricks().size();
    if (key_count) return fail(ErrorCode::invalid_argument, "a world is filled while it is empty");
    if (count > max_bricks) return too_many(count, 0);
    const auto next = [&](double fraction) -> Result<void> {
      if (progress.cancelled()) return fail(ErrorCode::cancelled, "building the world was cancelled");
      progress.say("building the world", fraction);
      return {};
    };
    QRY_TRY(next(0));
    if (!count) return {};  // tables of no size would grow at the first edit
    QRY_TRY(unpack({}));
    QRY_TRY(bricks.move_to(pool));
    std::vector<uint32_t> keys(count), indices(count);
    std::vector<uint8_t> materials(count);  // of full bricks
    std::array<bool, 256> in_use{};
    std::optional<Int3> beyond;
    std::mutex lock;
    bricks.visit_pieces([&](size_t first, std::span<const Int3> at, std::span<const SharedBrick> handles) {
      std::array<bool, 256> full{};
      for (size_t k = 0; k < at.size(); ++k) {
        if (!brick_in_world(at[k])) {
          const std::lock_guard hold(lock);
          if (!beyond || at[k] < *beyond) beyond = at[k];
        }
        keys[first + k] = brick_key(at[k]);
        indices[first + k] = pool.index_of(handles[k]);
        materials[first + k] = handles[k].material();
        full[materials[first + k]] = true;
      }
      const std::lock_guard hold(lock);
      for (size_t m = 1; m < full.size(); ++m) in_use[m] |= full[m];
    });
    if (beyond) return outside(*beyond);
    std::vector<uint8_t> new_full;
    for (uint32_t m = 1; m < 256; ++m)
      if (in_use[m] && pool.full(uint8_t(m)) == kNoBrick) new_full.push_back(uint8_t(m));
    QRY_TRY(pool.store_full(new_full));
    auto tables = [&]() -> Result<Tables> {
      QRY_TRY(next(0.5));
      for (size_t k = 0; k < count; ++k)
        if (materials[k]) indices[k] = pool.full(materials[k]);
      return tables_of(keys, indices, false);
    }();
    if (!tables) {
      pool.free_full(new_full);
      return tl::unexpected(tables.error());
    }

    // From here on nothing fails.
    parallel_for(count, kWorldBricksPerTask, [&](size_t begin, size_t end) {
      for (size_t k = begin; k < end; ++k)
        if (!materials[k]) pool.share(indices[k]);
    });
    grid = std::move(tables->grid);
    pyramid = std::move(tables->pyramid);
    key_count = uint32_t(count);
    voxels = bricks.voxel_count();
    note_dirty(keys);
    ++version;
    progress.say("building the world", 1);
    return {};
  }

  enum class Change : uint8_t {
    none,     // absent and empty, or the same brick
    added,    // absent before
    removed,  // empty afterwards
    other,    // the same key with another brick
  };

  Result<void> write(std::span<const BrickPut> puts) {
    const size_t count = puts.size();
    std::vector<uint32_t> its_keys(count);
    std::atomic<bool> some_outside{false}, rises{true};
    parallel_for(count, kWorldBricksPerTask, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        if (!brick_in_world(puts[i].brick)) some_outside = true;
        if (i > 0 && !(puts[i - 1].brick < puts[i].brick)) rises = false;
        its_keys[i] = brick_key(puts[i].brick);
      }
    });
    if (some_outside) {
      const Int3 brick =
          std::find_if(puts.begin(), puts.end(), [](const BrickPut& put) { return !brick_in_world(put.brick); })->brick;
      return outside(brick);
    }
    if (!rises) {
      std::vector<uint32_t> sorted = its_keys;
      std::sort(sorted.begin(), sorted.end());
      if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
        return fail(ErrorCode::invalid_argument,
                    "brick " + name_of(brick_from_key(*twice)) + " is in the batch more than once");
    }

    QRY_TRY(unpack({}));
    std::vector<uint32_t> indices(count);  // of the bricks that are there
    std::vector<uint32_t> fresh(count);    // of those that come
    QRY_TRY(grid.find(its_keys, indices));
    std::vector<Change> changes(count);
    std::vector<uint8_t> was_full(count);
    std::atomic<int64_t> more_voxels{0};
    parallel_for(count, kWorldBricksPerTask, [&](size_t begin, size_t end) {
      int64_t more = 0;
      for (size_t i = begin; i < end; ++i) {
        const SharedBrick& value = puts[i].value;
        const bool empty = !value;
        fresh[i] = pool.index_of(value);
        if (fresh[i] != kNoBrick && fresh[i] == indices[i]) continue;
        more += value.voxels();
        if (indices[i] == kNoBrick) {
          changes[i] = empty ? Change::none : Change::added;
          continue;
        }
        was_full[i] = pool.full_material(indices[i]);
        more -= was_full[i] ? kVoxelsPerBrick : count_of(std::as_const(pool).mask(indices[i]));
        changes[i] = empty ? Change::removed : Change::other;
      }
      more_voxels.fetch_add(more, std::memory_order_relaxed);
    });

    std::vector<uint32_t> added, added_indices, removed, changed, before, after;
    std::vector<uint32_t> freed;  // indices of which the world has a handle less afterwards
    std::vector<size_t> copied;   // positions of bricks that come from elsewhere
    std::array<bool, 256> in_use{};
    std::array<size_t, 4> of{};  // how many of each kind of change
    for (const Change change : changes) ++of[size_t(change)];
    added.reserve(of[size_t(Change::added)]);
    removed.reserve(of[size_t(Change::removed)]);
    changed.reserve(of[size_t(Change::other)]);
    before.reserve(of[size_t(Change::other)]);
    for (size_t i = 0; i < count; ++i) {
      const Change change = changes[i];
      if (change == Change::none) continue;
      if (change == Change::added) added.push_back(its_keys[i]);
      if (change == Change::removed) removed.push_back(its_keys[i]);
      if (change == Change::other) changed.push_back(its_keys[i]), before.push_back(indices[i]);
      if (change != Change::added && !was_full[i]) freed.push_back(indices[i]);
      if (change == Change::removed) continue;
      if (const uint8_t full = puts[i].value.material()) in_use[full] = true;
      else if (fresh[i] == kNoBrick) copied.push_back(i);
    }
    std::vector<uint8_t> new_full;
    for (uint32_t m = 1; m < 256; ++m)
      if (in_use[m] && pool.full(uint8_t(m)) == kNoBrick) new_full.push_back(uint8_t(m));
    if (uint64_t(key_count) + added.size() > uint64_t(max_bricks) + removed.size())
      return too_many(added.size() - removed.size(), key_count);

    // All memory first: after the first change, only steps that can be rolled back may fail.
    added_indices.reserve(added.size());
    after.reserve(changed.size());
    pyramid.reserve_changes(count);
    if (dirty_wanted && dirty_keys.capacity() < dirty_keys.size() + count)
      dirty_keys.reserve(std::max(dirty_keys.size() + count, 2 * dirty_keys.capacity()));

    QRY_TRY_ASSIGN(const auto allocated, pool.allocate(copied.size()));
    Rollback rollback{*this, allocated, new_full, added, changed, before};
    QRY_TRY(pool.store_full(new_full));
    for (size_t i = 0; i < copied.size(); ++i) fresh[copied[i]] = allocated[i];
    parallel_for(copied.size(), kWorldBricksPerTask, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) pool.put(allocated[i], *puts[copied[i]].value);
    });
    for (size_t i = 0; i < count; ++i) {
      if (changes[i] != Change::added && changes[i] != Change::other) continue;
      if (const uint8_t full = puts[i].value.material()) fresh[i] = pool.full(full);
      (changes[i] == Change::added ? added_indices : after).push_back(fresh[i]);
    }
    if (!added.empty()) {
      QRY_TRY(pyramid.add(added, added_indices));
      rollback.pyramid = true;
    }
    QRY_TRY(pyramid.reserve_copies({removed, changed}));
    source->wait_for_readers();
    if (!added.empty()) {
      rollback.grid = true;  // some keys may be placed before others are refused
      QRY_TRY(insert(grid, added, added_indices));
    }
    if (!changed.empty()) {
      rollback.assigned = true;
      QRY_TRY(grid.assign(changed, after));
    }
    if (!removed.empty()) {
      QRY_TRY(grid.erase(removed));
      pyramid.remove(removed);
    }
    rollback.committed = true;

    // From here on nothing fails. Copies have their handle already.
    pyramid.replace(changed, after);
    for (const size_t i : copied) changes[i] = Change::none;
    for (size_t i = 0; i < count; ++i)
      if ((changes[i] == Change::added || changes[i] == Change::other) && !puts[i].value.material())
        pool.share(fresh[i]);
    for (const uint32_t index : freed) pool.free(index);
    key_count = uint32_t(key_count + added.size() - removed.size());
    voxels = uint64_t(int64_t(voxels) + more_voxels);
    note_dirty(its_keys);
    ++version;
    return {};
  }
};

World::World(std::unique_ptr<State> state) : state_(std::move(state)) {}
World::World(World&&) noexcept = default;
World& World::operator=(World&&) noexcept = default;
World::~World() = default;

Result<World> World::create(const WorldMemory& memory) {
  std::unique_ptr<hashgrid::Executor> own;
  hashgrid::Executor* executor = memory.executor;
  if (!executor) {
    own = hashgrid::make_host_executor();
    executor = own.get();
  }
  if (executor->kind() != hashgrid::ExecutorKind::host)
    return fail(ErrorCode::unsupported, std::string("a world works with a host executor, not \"") +
                                            to_string(executor->kind()) +
                                            "\": give it none and mirror it to the device");
  MemorySource& source = memory.source();
  QRY_TRY_ASSIGN(auto grid, hashgrid::Grid::create(*executor, {}, &source));
  QRY_TRY_ASSIGN(auto pyramid, OccupancyPyramid::create(source));
  auto state = std::make_unique<State>(std::move(own), std::move(grid), memory.pool ? *memory.pool : BrickPool(source),
                                       std::move(pyramid));
  state->executor = executor;
  state->source = &source;
  state->max_bricks = memory.max_bricks;
  return World(std::move(state));
}

Result<void> World::write(std::span<const BrickWrite> writes) {
  std::vector<BrickPut> puts(writes.size());
  for (size_t i = 0; i < writes.size(); ++i) puts[i] = {writes[i].brick, SharedBrick(writes[i].value)};
  return write(puts);
}

Result<void> World::write(std::span<const BrickPut> puts) { return state_->write(puts); }
Result<void> World::fill(BrickMap bricks, const Progress& progress) {
  return state_->fill(std::move(bricks), progress);
}

Result<void> World::pack(const OtherHandles& others) { return state_->pack(others); }
Result<void> World::unpack(const OtherHandles& others) { return state_->unpack(others); }
Result<void> World::shrink_to_fit(const OtherHandles& others) { return state_->shrink_to_fit(others); }
bool World::packed() const { return state_->pool.packed(); }

Result<void> World::clear() {
  QRY_TRY(state_->unpack({}));
  const std::vector<uint32_t> keys = state_->pyramid.keys();
  std::optional<OccupancyPyramid> fresh;  // what is published stays as it is
  if (state_->source->epoch()) {
    QRY_TRY_ASSIGN(fresh, OccupancyPyramid::create(*state_->source));
  }
  state_->source->wait_for_readers();
  QRY_TRY(state_->grid.clear());
  state_->free_bricks();
  std::array<uint8_t, 255> materials;
  std::iota(materials.begin(), materials.end(), uint8_t(1));
  state_->pool.free_full(materials);
  if (fresh) state_->pyramid = std::move(*fresh);
  else state_->pyramid.clear();
  state_->voxels = 0;
  state_->key_count = 0;
  state_->note_dirty(keys);
  ++state_->version;
  return {};
}

uint8_t World::get(Int3 voxel) const {
  if (!voxel_in_world(voxel)) return 0;
  const hashgrid::Found found = hashgrid::find(state_->grid.view(), brick_key(brick_of(voxel)));
  return found.hit ? state_->pool.material(found.value, voxel_index(voxel)) : uint8_t(0);
}

bool World::find_brick(Int3 brick, Brick* out) const {
  if (!brick_in_world(brick)) return false;
  const hashgrid::Found found = hashgrid::find(state_->grid.view(), brick_key(brick));
  if (found.hit) *out = state_->pool.get(found.value);
  return found.hit;
}

uint64_t World::version() const { return state_->version; }
uint64_t World::voxel_count() const { return state_->voxels; }
uint32_t World::brick_count() const { return state_->key_count; }
uint64_t World::size_bytes() const {
  return state_->grid.block().size_bytes + state_->pool.size_bytes() + state_->pyramid.size_bytes();
}
uint64_t World::spare_bytes() const {
  const State& s = *state_;
  const uint64_t pool = s.pool.packed() ? 0 : s.pool.size_bytes() - s.pool.live() * uint64_t(sizeof(Brick));
  return pool + s.pyramid.size_bytes() - s.pyramid.used_bytes();
}
uint64_t World::packed_bytes() const {
  const State& s = *state_;
  if (s.pool.packed()) return size_bytes();
  uint64_t bricks = 0, words = 0;
  s.pool.for_each_brick([&](uint32_t index) {
    ++bricks;
    words += (count_of(s.pool.mask(index)) + 3) / 4;
  });
  const uint64_t materials =
      ((words + bricks) * 4 + sizeof(BrickMaterials) - 1) / sizeof(BrickMaterials) * sizeof(BrickMaterials);
  const auto pages = uint64_t(double(s.key_count) / (kPackedLoads[0] * kQrySlotsPerPage)) + 1;
  return pages * kQryPageBytes + bricks * sizeof(BrickMask) + materials + s.pyramid.used_bytes() + 64 * kGranuleBytes;
}
const hashgrid::Grid& World::grid() const { return state_->grid; }
const BrickPool& World::pool() const { return state_->pool; }
const OccupancyPyramid& World::pyramid() const { return state_->pyramid; }
std::vector<uint32_t> World::take_dirty_level2() { return state_->pyramid.take_dirty_level2(); }
Result<hashgrid::Stats> World::stats() const { return state_->grid.stats(); }

std::vector<uint32_t> World::take_dirty_keys() {
  if (!std::exchange(state_->dirty_wanted, true)) return state_->pyramid.keys();
  sort_unique(state_->dirty_keys);
  state_->dirty_sorted = 0;
  return std::exchange(state_->dirty_keys, {});
}

void World::drop_dirty() {
  state_->dirty_wanted = true;
  state_->dirty_keys.clear();
  state_->dirty_sorted = 0;
  (void)take_dirty_level2();
}

Box3 World::bounds() const {
  const std::lock_guard lock(state_->bounds_lock);
  if (state_->bounds_version == state_->version) return state_->bounds;
  // No brick is empty: only the outermost ones can hold an extreme voxel.
  std::vector<Int3> outermost;
  (void)state_->pyramid.brick_bounds(&outermost);
  Box3 box;
  for (const Int3 at : outermost) {
    const uint32_t index = hashgrid::find(state_->grid.view(), brick_key(at)).value;
    box = united(box, voxel_bounds(at, std::as_const(state_->pool).mask(index)));
  }
  state_->bounds = box;
  state_->bounds_version = state_->version;
  return box;
}

void World::for_each_brick(const std::function<void(Int3, const Brick&)>& visit) const {
  for (const uint32_t key : state_->pyramid.keys())
    visit(brick_from_key(key), state_->pool.get(hashgrid::find(state_->grid.view(), key).value));
}

}  // namespace quarry
