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
constexpr uint32_t kNextAlongZ = 1u << 21;  // from a key to that of the next brick

void sort_unique(std::vector<uint32_t>& keys) {
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
}

std::string name_of(Int3 brick) {
  return "(" + std::to_string(brick.x) + ", " + std::to_string(brick.y) + ", " + std::to_string(brick.z) + ")";
}

}  // namespace

struct World::State {
  // The world as its volumes see it.
  class Table final : public BrickTable {
   public:
    explicit Table(const State& state) : state_(state) {}
    uint64_t brick_count() const override { return state_.key_count; }
    uint64_t voxel_count() const override { return state_.voxels; }
    Box3 bounds() const override { return state_.tight_bounds(); }
    Box3 brick_bounds() const override { return state_.pyramid.brick_bounds(); }
    SharedBrick share(Int3 brick) const override {
      const auto index = state_.pyramid.find_brick(brick);
      return index ? state_.pool.at(*index) : SharedBrick();
    }
    std::vector<BrickPut> within(const Box3& bricks) const override { return state_.within(bricks); }
    const BrickPool& pool() const override { return state_.pool; }

   private:
    const State& state_;
  };

  std::unique_ptr<hashgrid::Executor> own_executor;
  hashgrid::Executor* executor = nullptr;
  MemorySource* source = nullptr;
  uint32_t max_bricks = 0;
  hashgrid::Grid grid;
  BrickPool pool;
  OccupancyPyramid pyramid;
  uint64_t version = 0, voxels = 0;
  bool grid_fitted = false;  // it came from grid_of()
  uint32_t key_count = 0;    // of the grid; those whose bricks are full of one material share a brick of the pool
  std::vector<uint32_t> dirty_keys;
  size_t dirty_sorted = 0;    // how many dirty keys were left after the last compaction
  bool dirty_wanted = false;  // somebody has taken them before
  mutable std::mutex bounds_lock;
  mutable Box3 bounds;
  mutable uint64_t bounds_version = 0;
  const Table table{*this};

  State(std::unique_ptr<hashgrid::Executor> its_executor, hashgrid::Grid its_grid, BrickPool its_pool,
        OccupancyPyramid its_pyramid)
      : own_executor(std::move(its_executor)),
        grid(std::move(its_grid)),
        pool(std::move(its_pool)),
        pyramid(std::move(its_pyramid)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { free_bricks(); }

  Box3 tight_bounds() const {
    const std::lock_guard lock(bounds_lock);
    if (bounds_version == version) return bounds;
    // No brick is empty: only the outermost ones can hold an extreme voxel.
    std::vector<Int3> outermost;
    (void)pyramid.brick_bounds(&outermost);
    Box3 box;
    for (const Int3 at : outermost)
      box = united(box, voxel_bounds(at, std::as_const(pool).mask(*pyramid.find_brick(at))));
    bounds = box;
    bounds_version = version;
    return box;
  }

  std::vector<BrickPut> within(const Box3& bricks) const {
    const Box3 all = intersected(bricks, {brick_of(kWorldMin), brick_of(kWorldMax)});
    if (all.empty()) return {};
    // Slabs along x, whose bricks follow each other in the order; small boxes are not worth the threads.
    constexpr int32_t kSlabEdge = 4, kSmallEdge = 32;
    const int32_t edge = std::max({all.max.x - all.min.x, all.max.y - all.min.y, all.max.z - all.min.z}) + 1;
    const int32_t slab_edge = edge <= kSmallEdge ? edge : kSlabEdge;
    struct Found {
      uint32_t key, index;  // an ordered key
    };
    std::vector<std::vector<Found>> slabs(size_t((all.max.x - all.min.x) / slab_edge) + 1);
    parallel_for(slabs.size(), 1, [&](size_t i, size_t) {
      Box3 slab = all;
      slab.min.x += int32_t(i) * slab_edge;
      slab.max.x = std::min(slab.max.x, slab.min.x + slab_edge - 1);
      pyramid.visit_box(slab, [&](Int3 at, uint32_t index) { slabs[i].push_back({ordered_key(at), index}); });
      std::sort(slabs[i].begin(), slabs[i].end(), [](const Found& a, const Found& b) { return a.key < b.key; });
    });
    std::vector<size_t> begins(slabs.size() + 1);
    for (size_t i = 0; i < slabs.size(); ++i) begins[i + 1] = begins[i] + slabs[i].size();
    std::vector<BrickPut> found(begins.back());
    parallel_for(slabs.size(), 1, [&](size_t i, size_t) {
      for (size_t k = 0; k < slabs[i].size(); ++k)
        found[begins[i] + k] = {brick_from_ordered_key(slabs[i][k].key), pool.at(slabs[i][k].index)};
    });
    return found;
  }

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
  static Result<void> insert(hashgrid::Grid& into, std::span<const uint32_t> keys, std::span<const uint32_t> indices) {
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

  // What a commit has done so far. It is rolled back unless committed, whether an error or an exception ends it.
  struct Rollback {
    State& world;
    const std::vector<uint32_t>& allocated;         // indices
    std::span<const uint8_t> stored;                // materials whose full bricks are new
    std::span<const uint32_t> added{};              // keys
    std::span<const uint32_t> changed{}, before{};  // keys and their former indices
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
    std::vector<uint32_t> keys = keys_by_place(), indices(keys.size());
    QRY_TRY(grid.find(keys, indices));
    BrickMove move(pool);
    for (const uint32_t index : indices) move.add(index);
    // Tables under edit do not depend on what was moved.
    if (!packed) keys.clear(), indices.clear(), list_all(keys, indices);
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
    grid = std::move(tables.grid), grid_fitted = true;
    pyramid = std::move(tables.pyramid);
    pool = std::move(fresh);
    return {};
  }

  Result<void> pack(const OtherHandles& others) { return pool.packed() ? Result<void>{} : move_bricks(true, others); }
  Result<void> unpack(const OtherHandles& others) {
    return pool.packed() ? move_bricks(false, others) : Result<void>{};
  }

  // Moves bricks from the end of the pool to free places before them, and makes the tables anew.
  Result<void> gather_bricks(const OtherHandles& others) {
    BrickGather gather(pool);
    std::vector<uint32_t> keys, indices;
    list_all(keys, indices);
    const std::vector<bool> is_full = full_bricks();
    for (const uint32_t index : indices)
      if (!is_full[index]) gather.add(index);
    std::array<uint32_t, 256> full;
    for (uint32_t m = 0; m < 256; ++m) gather.add(full[m] = pool.full(uint8_t(m)));
    if (others) others([&](SharedBrick& brick) { gather.add(brick); }, nullptr);
    gather.take();
    const auto place = [&](uint32_t index) { return index == kNoBrick ? index : gather.place(index); };
    for (uint32_t& index : indices) index = place(index);
    for (uint32_t& index : full) index = place(index);
    QRY_TRY_ASSIGN(auto tables, tables_of(keys, indices, false));

    // From here on nothing fails.
    gather.copy();
    pool.set_full(full);
    if (others) others([&](SharedBrick& brick) { gather.exchange(brick); }, &pool);
    grid = std::move(tables.grid), grid_fitted = true;
    pyramid = std::move(tables.pyramid);
    gather.end();
    return {};
  }

  // All keys in the order of their bricks, and the bricks' indices.
  void list_all(std::vector<uint32_t>& keys, std::vector<uint32_t>& indices) const {
    const Box3 all = pyramid.brick_bounds();
    if (all.empty()) return;
    constexpr int32_t kSlabEdge = 4;
    std::vector<std::vector<std::pair<uint32_t, uint32_t>>> slabs(size_t((all.max.x - all.min.x) / kSlabEdge) + 1);
    parallel_for(slabs.size(), 1, [&](size_t i, size_t) {
      Box3 slab = all;
      slab.min.x += int32_t(i) * kSlabEdge;
      slab.max.x = std::min(slab.max.x, slab.min.x + kSlabEdge - 1);
      pyramid.visit_box(slab, [&](Int3 at, uint32_t index) { slabs[i].emplace_back(ordered_key(at), index); });
      std::sort(slabs[i].begin(), slabs[i].end());
    });
    keys.reserve(key_count), indices.reserve(key_count);
    for (auto& slab : slabs) {
      for (const auto& [key, index] : slab) {
        keys.push_back(brick_key(brick_from_ordered_key(key)));
        indices.push_back(index);
      }
      std::vector<std::pair<uint32_t, uint32_t>>().swap(slab);
    }
  }

  Result<void> shrink_to_fit(const OtherHandles& others) {
    if (pool.packed()) return {};
    const uint64_t live = pool.live();
    const bool gaps = pool.free_count() > live / 16;
    const uint32_t end = gaps ? pool.gathered_end() : pool.high_water();
    // Slab numbers that were lost to small growth and earlier cuts come back only in a new pool, which a large world
    // seldom needs; and so do ends of blocks, if the source takes back whole ones alone.
    const uint64_t slabs = (uint64_t(end) + kBricksPerSlab - 1) / kBricksPerSlab;
    if (slabs > 2 * (live / kBricksPerSlab) + 8 || (gaps && pool.material_slabs().unused_after_trim(end) > live / 16))
      return move_bricks(false, others);
    if (gaps) return gather_bricks(others);
    std::optional<hashgrid::Grid> fresh;
    if (!grid_fitted || double(key_count) <= kFitted * double(grid.page_count() - 1) * kQrySlotsPerPage) {
      std::vector<uint32_t> all, indices;
      list_all(all, indices);
      QRY_TRY_ASSIGN(auto made, grid_of(all, indices, false));
      fresh = std::move(made);
    }
    QRY_TRY(pyramid.shrink_to_fit(true));
    if (fresh && fresh->page_count() < grid.page_count() + !grid_fitted) {
      grid = std::move(*fresh);
      grid_fitted = true;
    }
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
    voxels = bricks.voxel_count();
    bricks.hand_over(pool);
    grid = std::move(tables->grid), grid_fitted = true;
    pyramid = std::move(tables->pyramid);
    key_count = uint32_t(count);
    note_dirty(keys);
    ++version;
    progress.say("building the world", 1);
    return {};
  }

  // A change of the table, brick by brick: different keys with the indices that they have and get.
  struct Batch {
    // An index from here on, in `after`, is a brick full of material index - kFullBrick.
    static constexpr uint32_t kFullBrick = 0xFFFFFE00u;
    std::vector<uint32_t> keys, before, after;
    // What comes in addition: bricks from elsewhere with their positions, and materials of full bricks.
    struct Fresh {
      std::vector<std::pair<size_t, SharedBrick>> copied;
      std::array<bool, 256> full{};
    };
    std::vector<std::pair<size_t, SharedBrick>> copied;
    std::array<bool, 256> full{};

    explicit Batch(size_t count) : keys(count), before(count), after(count) {}
    void add(Fresh fresh) {
      copied.insert(copied.end(), std::make_move_iterator(fresh.copied.begin()),
                    std::make_move_iterator(fresh.copied.end()));
      for (size_t m = 0; m < full.size(); ++m) full[m] |= fresh.full[m];
    }
  };
  uint32_t index_after(const SharedBrick& value, size_t at, Batch::Fresh& fresh) const {
    if (const uint8_t material = value.material()) {
      fresh.full[material] = true;
      return Batch::kFullBrick + material;
    }
    const uint32_t index = pool.index_of(value);
    if (index == kNoBrick && value) fresh.copied.emplace_back(at, value);
    return index;
  }

  Result<void> write(std::span<const BrickPut> puts) {
    QRY_TRY(unpack({}));
    Batch batch(puts.size());
    std::atomic<bool> some_outside{false}, rises{true};
    std::mutex lock;
    parallel_for(puts.size(), kWorldBricksPerTask, [&](size_t begin, size_t end) {
      Batch::Fresh fresh;
      for (size_t i = begin; i < end; ++i) {
        if (!brick_in_world(puts[i].brick)) some_outside = true;
        if (i > 0 && !(puts[i - 1].brick < puts[i].brick)) rises = false;
        batch.keys[i] = brick_key(puts[i].brick);
        batch.after[i] = index_after(puts[i].value, i, fresh);
      }
      const std::lock_guard hold(lock);
      batch.add(std::move(fresh));
    });
    if (some_outside) {
      const Int3 brick =
          std::find_if(puts.begin(), puts.end(), [](const BrickPut& put) { return !brick_in_world(put.brick); })->brick;
      return outside(brick);
    }
    if (!rises) {
      std::vector<uint32_t> sorted = batch.keys;
      std::sort(sorted.begin(), sorted.end());
      if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
        return fail(ErrorCode::invalid_argument,
                    "brick " + name_of(brick_from_key(*twice)) + " is in the batch more than once");
    }
    QRY_TRY(grid.find(batch.keys, batch.before));
    return commit(batch);
  }

  Result<void> exchange(std::span<const BrickChange> changes, bool forward, bool planned_now) {
    QRY_TRY(unpack({}));
    std::vector<size_t> begins(changes.size());
    size_t count = 0;
    for (size_t i = 0; i < changes.size(); ++i) {
      const BrickChange& change = changes[i];
      if (!brick_in_world(change.brick)) return outside(change.brick);
      if (!brick_in_world(change.last())) return outside(change.last());
      if (i > 0 && !(changes[i - 1].last() < change.brick))
        return fail(ErrorCode::invalid_argument, "brick " + name_of(change.brick) + " is out of order in its record");
      begins[i] = std::exchange(count, count + change.count);
    }
    Batch batch(count);
    std::mutex lock;
    parallel_for(changes.size(), kWorldBricksPerTask, [&](size_t begin, size_t end) {
      Batch::Fresh fresh;
      for (size_t i = begin; i < end; ++i) {
        const BrickChange& change = changes[i];
        const size_t from = begins[i];
        uint32_t key = brick_key(change.brick);
        const uint32_t after = index_after(forward ? change.after : change.before, from, fresh);
        for (uint32_t k = 0; k < change.count; ++k, key += kNextAlongZ) {
          batch.keys[from + k] = key;
          batch.after[from + k] = after;
        }
        if (!planned_now) continue;
        const SharedBrick& was = forward ? change.before : change.after;
        const uint32_t before = was.material() ? pool.full(was.material()) : pool.index_of(was);
        std::fill_n(batch.before.begin() + std::ptrdiff_t(from), change.count, before);
      }
      const std::lock_guard hold(lock);
      batch.add(std::move(fresh));
    });
    if (!planned_now) QRY_TRY(grid.find(batch.keys, batch.before));
    return commit(batch);
  }

  enum class Kind : uint8_t {
    none,     // absent and empty, or the same brick
    added,    // absent before
    removed,  // empty afterwards
    other,    // the same key with another brick
  };
  struct BrickKind {
    Kind kind = Kind::none;
    bool was_full = false, is_full = false;  // of one material, with the brick that all such keys share
  };
  // The positions of a batch by kind: the batch's own lists if all are of one, as in large edits of uniform space.
  struct ByKind {
    std::vector<uint32_t> lists[6];
    std::span<const uint32_t> added, added_indices, removed, changed, changed_before, changed_after;

    void sort(const Batch& batch, std::span<const BrickKind> kinds, const std::array<size_t, 4>& of) {
      const auto all = [&](Kind kind) { return of[size_t(kind)] == kinds.size(); };
      if (all(Kind::added)) {
        added = batch.keys, added_indices = batch.after;
      } else if (all(Kind::removed)) {
        removed = batch.keys;
      } else if (all(Kind::other)) {
        changed = batch.keys, changed_before = batch.before, changed_after = batch.after;
      } else {
        for (const size_t l : {0, 1}) lists[l].reserve(of[size_t(Kind::added)]);
        lists[2].reserve(of[size_t(Kind::removed)]);
        for (const size_t l : {3, 4, 5}) lists[l].reserve(of[size_t(Kind::other)]);
        for (size_t i = 0; i < kinds.size(); ++i) {
          switch (kinds[i].kind) {
            case Kind::none: break;
            case Kind::added:
              lists[0].push_back(batch.keys[i]);
              lists[1].push_back(batch.after[i]);
              break;
            case Kind::removed: lists[2].push_back(batch.keys[i]); break;
            case Kind::other:
              lists[3].push_back(batch.keys[i]);
              lists[4].push_back(batch.before[i]);
              lists[5].push_back(batch.after[i]);
              break;
          }
        }
        added = lists[0], added_indices = lists[1], removed = lists[2];
        changed = lists[3], changed_before = lists[4], changed_after = lists[5];
      }
    }
  };

  // Makes the batch's change: all of it or, with an error or an exception, nothing.
  Result<void> commit(Batch& batch) {
    const size_t count = batch.keys.size();
    std::vector<uint8_t> new_full;
    for (uint32_t m = 1; m < 256; ++m)
      if (batch.full[m] && pool.full(uint8_t(m)) == kNoBrick) new_full.push_back(uint8_t(m));
    QRY_TRY_ASSIGN(const auto allocated, pool.allocate(batch.copied.size()));
    ByKind to;
    Rollback rollback{*this, allocated, new_full};  // uses `to`, which must outlive it
    QRY_TRY(pool.store_full(new_full));
    parallel_for(batch.copied.size(), kWorldBricksPerTask, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        pool.put(allocated[i], *batch.copied[i].second);
        batch.after[batch.copied[i].first] = allocated[i];
      }
    });

    std::vector<BrickKind> kinds(count);
    std::array<size_t, 4> of{};
    int64_t more_voxels = 0;
    std::mutex lock;
    parallel_for(count, kWorldBricksPerTask, [&](size_t begin, size_t end) {
      std::array<size_t, 4> of_here{};
      int64_t more = 0;
      for (size_t i = begin; i < end; ++i) {
        const uint32_t before = batch.before[i];
        uint32_t& after = batch.after[i];
        BrickKind& kind = kinds[i];
        if (after != kNoBrick && after >= Batch::kFullBrick) {
          kind.is_full = true;
          after = pool.full(uint8_t(after - Batch::kFullBrick));
        }
        if (before != after) {
          if (after != kNoBrick) more += kind.is_full ? kVoxelsPerBrick : count_of(std::as_const(pool).mask(after));
          if (before != kNoBrick) {
            kind.was_full = pool.full_material(before) != 0;
            more -= kind.was_full ? kVoxelsPerBrick : count_of(std::as_const(pool).mask(before));
          }
          kind.kind = before == kNoBrick ? Kind::added : after == kNoBrick ? Kind::removed : Kind::other;
        }
        ++of_here[size_t(kind.kind)];
      }
      const std::lock_guard hold(lock);
      for (size_t k = 0; k < of.size(); ++k) of[k] += of_here[k];
      more_voxels += more;
    });
    to.sort(batch, kinds, of);
    if (uint64_t(key_count) + to.added.size() > uint64_t(max_bricks) + to.removed.size())
      return too_many(to.added.size() - to.removed.size(), key_count);

    // All memory first: after the first change, only steps that can be rolled back may fail.
    pyramid.reserve_changes(count);
    if (dirty_wanted && dirty_keys.capacity() < dirty_keys.size() + count)
      dirty_keys.reserve(std::max(dirty_keys.size() + count, 2 * dirty_keys.capacity()));
    // Handles come and go last. Copies have theirs already.
    const std::function<void(size_t, size_t)> settle_handles = [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        if (kinds[i].kind == Kind::none) continue;
        if (kinds[i].kind != Kind::removed && !kinds[i].is_full) pool.share(batch.after[i]);
        if (kinds[i].kind != Kind::added && !kinds[i].was_full) pool.free(batch.before[i]);
      }
    };
    rollback.added = to.added, rollback.changed = to.changed, rollback.before = to.changed_before;
    if (!to.added.empty()) {
      QRY_TRY(pyramid.add(to.added, to.added_indices));
      rollback.pyramid = true;
    }
    QRY_TRY(pyramid.reserve_copies({to.removed, to.changed}));
    source->wait_for_readers();
    if (!to.added.empty()) {
      rollback.grid = true;  // some keys may be placed before others are refused
      QRY_TRY(insert(grid, to.added, to.added_indices));
    }
    if (!to.changed.empty()) {
      rollback.assigned = true;
      QRY_TRY(grid.assign(to.changed, to.changed_after));
    }
    if (!to.removed.empty()) {
      QRY_TRY(grid.erase(to.removed));
      pyramid.remove(to.removed);
    }
    rollback.committed = true;

    // From here on nothing fails.
    pyramid.replace(to.changed, to.changed_after);
    for (const auto& [at, brick] : batch.copied) kinds[at].is_full = true;  // no handle more
    parallel_for(count, kWorldBricksPerTask, settle_handles);
    key_count = uint32_t(key_count + to.added.size() - to.removed.size());
    voxels = uint64_t(int64_t(voxels) + more_voxels);
    note_dirty(batch.keys);
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
Result<void> World::exchange(std::span<const BrickChange> changes, bool forward, bool planned_now) {
  return state_->exchange(changes, forward, planned_now);
}
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

Box3 World::bounds() const { return state_->tight_bounds(); }
const BrickTable& World::table() const { return state_->table; }

void World::for_each_brick(const std::function<void(Int3, const Brick&)>& visit) const {
  for (const uint32_t key : state_->pyramid.keys())
    visit(brick_from_key(key), state_->pool.get(hashgrid::find(state_->grid.view(), key).value));
}

}  // namespace quarry
