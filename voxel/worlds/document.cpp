// SPDX-License-Identifier: Apache-2.0
// document.cpp - a scene, its flattened world, and the history of its edits.
//
//   edit -> plan_edit: bricks of one volume, before and after -> the volume's BrickMap
//                                                             -> the affected world bricks, flattened again -> World
// The volume that alone is shown, at the origin and not turned, is the world's own table: its BrickMap is a view of it,
// and a record's bricks are exchanged there.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "voxel/worlds/document.hpp"
#include "voxel/worlds/flatten.hpp"

namespace quarry {
namespace {

constexpr int32_t kMostBrick = (1 << 28) - 1;  // beyond it a brick's voxels have no 32-bit coordinates

bool has_voxel_coordinates(Int3 b) {
  const auto fits = [](int32_t c) { return c >= -kMostBrick - 1 && c <= kMostBrick; };
  return fits(b.x) && fits(b.y) && fits(b.z);
}

std::string brick_text(Int3 b) {
  return "brick (" + std::to_string(b.x) + ", " + std::to_string(b.y) + ", " + std::to_string(b.z) + ")";
}

// What a record takes of the history's budget: undone or not, it holds the bricks of one side.
uint64_t history_bytes(const UndoRecord& record) {
  uint64_t before = 0, after = 0;
  for (const BrickChange& change : record.changes) {
    before += change.before.size_bytes();
    after += change.after.size_bytes();
  }
  return sizeof(UndoRecord) + record.changes.size() * sizeof(BrickChange) +
         record.materials.size() * sizeof(MaterialChange) + std::max(before, after);
}

// Sorts the bricks. Of several for one coordinate the last stays.
void keep_last(std::vector<BrickPut>& puts) {
  const auto rises = [](const BrickPut& a, const BrickPut& b) { return a.brick < b.brick; };
  if (std::adjacent_find(puts.begin(), puts.end(), [&](const auto& a, const auto& b) { return !rises(a, b); }) ==
      puts.end())
    return;
  std::stable_sort(puts.begin(), puts.end(), rises);
  size_t kept = 0;
  for (size_t i = 0; i < puts.size(); ++i) {
    if (kept && puts[kept - 1].brick == puts[i].brick) --kept;
    if (kept != i) puts[kept] = std::move(puts[i]);
    ++kept;
  }
  puts.resize(kept);
}

}  // namespace

struct Document::State {
  Scene scene;
  Flattener flattener;  // refers to `scene`, which stays where it is
  World world;
  std::vector<UndoRecord> history;
  size_t position = 0;
  // With a budget: what each record of the history takes of it, and all of them.
  uint64_t budget = 0, bytes = 0, dropped_steps = 0;
  std::vector<uint64_t> record_bytes;
  UndoRecord nothing;  // the record of an edit that changed nothing
  uint64_t version = 0;
  // Of the file that follows the document: how many of the history's first records it has, and how many of these are
  // applied in it. Those that it had as applied, and that the history has lost since, have changed the regions.
  struct Followed {
    size_t kept = 0, applied = 0;
    std::map<uint32_t, std::set<Int3>> lost;
  };
  std::optional<Followed> followed;
  uint64_t dropped_records = 0;  // the oldest ones, since the document was made

  State(Scene its_scene, World its_world)
      : scene(std::move(its_scene)), flattener(scene, true), world(std::move(its_world)) {}

  Result<void> check_volume(uint32_t volume) const {
    if (volume < scene.volumes.size()) return {};
    return fail(ErrorCode::invalid_argument, "there is no volume " + std::to_string(volume) + "; the scene has " +
                                                 std::to_string(scene.volumes.size()));
  }

  // The handles that volumes, history and `fresh` have of the pool's bricks.
  OtherHandles handles(UndoRecord* fresh = nullptr) {
    return [this, fresh](const VisitBrick& visit, const BrickPool* to) {
      const auto visit_record = [&](UndoRecord& record) {
        for (BrickChange& change : record.changes) visit(change.before), visit(change.after);
      };
      for (Volume& volume : scene.volumes) volume.bricks.visit_handles(visit, to);
      for (UndoRecord& record : history) visit_record(record);
      if (fresh) visit_record(*fresh);
    };
  }

  // Restores volumes and palette unless the change is committed, also after running out of memory.
  struct Rollback {
    Scene& scene;
    std::map<uint32_t, BrickMap> bricks;  // share everything: a copy costs one pointer per leaf
    std::optional<Palette> palette;
    bool committed = false;
    ~Rollback() {
      if (committed) return;
      for (auto& [volume, saved] : bricks) scene.volumes[volume].bricks = std::move(saved);
      if (palette) scene.palette = std::move(*palette);
    }
  };

  // Changes the scene to `after` of the records (forward) or to `before`, and the world to the flattened scene. Several
  // records are one change: all or nothing, and each world brick is written once. `planned_now`: the records were
  // planned from the present state.
  Result<void> commit(std::span<const UndoRecord> records, bool forward, bool planned_now = false) {
    Rollback old{scene, {}, {}};
    for (size_t i = 0; i < records.size(); ++i) {
      const UndoRecord& record = records[forward ? i : records.size() - 1 - i];
      if (record.of_palette() && !old.palette) old.palette = scene.palette;
      for (const MaterialChange& change : record.materials) {
        scene.palette.materials[change.index] = forward ? change.after : change.before;
        scene.palette.names[change.index] = forward ? change.name_after : change.name_before;
      }
    }
    QRY_TRY(commit_voxels(records, forward, planned_now, old));
    old.committed = true;
    ++version;
    return {};
  }

  Result<void> commit_voxels(std::span<const UndoRecord> records, bool forward, bool planned_now, Rollback& old) {
    const UndoRecord* only = nullptr;  // the record with changes, if there is one
    size_t with_changes = 0;
    bool alone = true;
    for (const UndoRecord& record : records) {
      if (record.changes.empty()) continue;
      QRY_TRY(check_volume(record.volume));
      only = &record;
      ++with_changes;
      alone = alone && flattener.alone(record.volume);
    }
    if (with_changes == 0) return {};
    if (with_changes == 1 && scene.volumes[only->volume].bricks.is_view()) {
      for (const BrickChange& change : only->changes)
        if (!brick_in_world(change.brick) || !brick_in_world(change.last()))
          return tl::unexpected(flattener.outside(only->volume));
      scene.volumes[only->volume].bricks.table_changes();
      return world.exchange(only->changes, forward, planned_now);
    }

    // What each volume's bricks become: of several changes of one brick the last counts.
    std::map<uint32_t, std::vector<BrickPut>> puts;
    std::vector<Int3> places;  // the world bricks that they reach
    for (size_t i = 0; i < records.size(); ++i) {
      const UndoRecord& record = records[forward ? i : records.size() - 1 - i];
      if (record.changes.empty()) continue;
      std::vector<BrickPut>& of_volume = puts[record.volume];
      of_volume.reserve(of_volume.size() + bricks_in(record.changes));
      for (const BrickChange& change : record.changes) {
        BrickMask either;
        const BrickView before = *change.before, after = *change.after;
        for (size_t w = 0; w < 8; ++w) either[w] = before.mask[w] | after.mask[w];
        for (uint32_t k = 0; k < change.count; ++k) {
          of_volume.push_back({change.at(k), forward ? change.after : change.before});
          if (!alone) QRY_TRY(flattener.touched(record.volume, change.at(k), either, places));
        }
      }
    }
    for (auto& [volume, of_volume] : puts) keep_last(of_volume);
    std::vector<BrickPut> moved;
    std::span<const BrickPut> writes;  // of the world
    if (alone) {
      QRY_TRY_ASSIGN(writes, flattener.in_world(puts.begin()->first, puts.begin()->second, moved));
    }
    for (const auto& [volume, of_volume] : puts) {
      BrickMap& bricks = scene.volumes[volume].bricks;
      if (bricks.is_view()) {
        bricks.table_changes();
        continue;
      }
      old.bricks.try_emplace(volume, bricks);
      bricks.put(of_volume);
      Box3 box;
      for (const BrickPut& put : of_volume)
        if (put.value) box = united(box, {put.brick, put.brick});
      flattener.volume_has(volume, box);
    }
    if (!alone) {
      std::sort(places.begin(), places.end());
      places.erase(std::unique(places.begin(), places.end()), places.end());
      moved.resize(places.size());
      for (size_t i = 0; i < places.size(); ++i) moved[i].brick = places[i];
      flattener.bricks(moved, world.pool());
      writes = moved;
    }
    return writes.empty() ? Result<void>() : world.write(writes);
  }

  // The same, and persists it elsewhere; both or neither. The world's former state fits its memory again.
  Result<void> commit_and_persist(std::span<const UndoRecord> records, bool forward, const Persist& persist,
                                  bool planned_now = false) {
    if (auto ok = commit(records, forward, planned_now); !ok || !persist) return ok;
    auto persisted = persist(records);
    if (!persisted)
      if (auto back = commit(records, !forward); !back)
        return fail(back.error().code,
                    persisted.error().message + "; and it could not be taken back: " + back.error().message);
    return persisted;
  }

  // Lets the bricks of the records be the pool's.
  static Result<void> adopt(const BrickPool& pool, std::span<UndoRecord> records) {
    std::vector<SharedBrick*> handles;
    for (UndoRecord& record : records)
      for (BrickChange& change : record.changes) handles.insert(handles.end(), {&change.before, &change.after});
    return pool.adopt(handles);
  }

  // The part of the history that an undo or redo reaches, to be changed by it.
  Result<std::span<const UndoRecord>> step(size_t first, size_t end) {
    const std::span<const UndoRecord> records(history.data() + first, end - first);
    if (std::any_of(records.begin(), records.end(), [](const UndoRecord& record) { return !record.changes.empty(); }))
      QRY_TRY(world.unpack(handles()));
    return records;
  }

  static std::vector<uint64_t> measured(std::span<const UndoRecord> records) {
    std::vector<uint64_t> bytes;
    bytes.reserve(records.size());
    for (const UndoRecord& record : records) bytes.push_back(history_bytes(record));
    return bytes;
  }

  void measure(std::vector<uint64_t> bytes_of_records) {
    record_bytes = std::move(bytes_of_records);
    bytes = std::accumulate(record_bytes.begin(), record_bytes.end(), uint64_t(0));
  }

  // Drops records [first, end), which are whole steps: the oldest or the last ones.
  void drop(size_t first, size_t end) {
    if (first == end) return;
    const auto cut = [&](auto& list) {
      list.erase(list.begin() + std::ptrdiff_t(first), list.begin() + std::ptrdiff_t(end));
    };
    for (size_t i = first; i < end; ++i) {
      dropped_steps += history[i].continues ? 0 : 1;
      bytes -= record_bytes[i];
    }
    cut(history);
    cut(record_bytes);
    if (first == 0) {
      position -= std::min(position, end);
      dropped_records += end;
    }
  }

  // What is over the budget goes, as set_history_budget() says.
  void keep_budget() {
    if (budget == 0 || bytes <= budget || followed) return;
    // The step that undo takes next, or, where nothing is applied, redo.
    size_t kept = position ? position - 1 : 0;
    while (kept > 0 && history[kept].continues) --kept;
    size_t first = 0;
    for (uint64_t left = bytes; first < kept && left > budget;) do
        left -= record_bytes[first++];
      while (first < kept && history[first].continues);
    drop(0, first);
    size_t end = history.size(), last = position ? position : 1;
    while (last < end && history[last].continues) ++last;
    for (uint64_t left = bytes; end > last && left > budget;) do
        left -= record_bytes[--end];
      while (end > last && history[end].continues);
    drop(end, history.size());
  }

  // Before the history loses what could be redone. Regions that were noted for nothing do no harm.
  void note_lost() {
    if (!followed) return;
    for (size_t i = position; i < std::min(followed->applied, followed->kept); ++i)
      add_regions(history[i], followed->lost);
  }

  static void add_regions(const UndoRecord& record, std::map<uint32_t, std::set<Int3>>& to) {
    if (record.changes.empty()) return;
    std::set<Int3>& regions = to[record.volume];
    const auto region_of = [](Int3 brick) { return Int3{brick.x >> 3, brick.y >> 3, brick.z >> 3}; };
    std::optional<Int3> last;
    for (const BrickChange& change : record.changes) {
      const Int3 end = region_of(change.last());
      for (Int3 region = region_of(change.brick); region.z <= end.z; ++region.z)
        if (last != region) regions.insert(*(last = region));
    }
  }

  Result<void> recall(std::vector<UndoRecord> step, bool older);

  Result<const UndoRecord*> enter(UndoRecord record, const Persist& persist = {}) {
    if (record.changes.empty() && !record.of_palette()) {
      nothing = std::move(record);
      return &nothing;
    }
    record.continues = record.continues && position > 0;
    // Reserves before the change: adding the record after it must not fail.
    const auto make_room = [&](auto& list) {
      if (list.capacity() < position + 1) list.reserve(std::max(position + 1, 2 * list.capacity()));
    };
    make_room(history);
    if (budget) make_room(record_bytes);
    if (world.packed() && !record.changes.empty()) {  // its bricks were made elsewhere, as the pool takes none
      QRY_TRY(world.unpack(handles(&record)));
      QRY_TRY(adopt(world.pool(), {&record, 1}));
    }
    note_lost();
    QRY_TRY(commit_and_persist({&record, 1}, true, persist, true));
    if (followed) followed->kept = std::min(followed->kept, position);
    history.resize(position);
    history.push_back(std::move(record));
    ++position;
    if (budget) {
      for (; record_bytes.size() >= position; record_bytes.pop_back()) bytes -= record_bytes.back();
      record_bytes.push_back(history_bytes(history.back()));
      bytes += record_bytes.back();
      keep_budget();
    }
    return &history.back();
  }
};

Document::Document(std::unique_ptr<State> state) : state_(std::move(state)) {}
Document::Document(Document&&) noexcept = default;
Document& Document::operator=(Document&&) noexcept = default;
Document::~Document() = default;

Result<Document> Document::create(Scene scene, const WorldMemory& memory, const Progress& progress) {
  progress.say("flattening", -1);
  QRY_TRY_ASSIGN(auto world, World::create(memory));
  const BrickPool& pool = world.pool();
  for (Volume& volume : scene.volumes) QRY_TRY(volume.bricks.move_to(pool));
  QRY_TRY_ASSIGN(auto flat, flatten_for_world(scene, true, pool));
  const auto own_table = volume_at_origin(scene, true);
  if (own_table) scene.volumes[*own_table].bricks.clear();  // `flat` has its leaves
  QRY_TRY(world.fill(std::move(flat), progress));
  Document document(std::make_unique<State>(std::move(scene), std::move(world)));
  State& state = *document.state_;
  if (own_table) state.scene.volumes[*own_table].bricks.show(state.world.table());
  // Without memory for it, the world works as well.
  if (document.world().brick_count()) (void)document.shrink_to_fit();
  return document;
}

Result<Document> Document::create_unshown(Scene scene) {
  QRY_TRY_ASSIGN(auto world, World::create());
  return Document(std::make_unique<State>(std::move(scene), std::move(world)));
}

Result<void> Document::shrink_to_fit() { return state_->world.shrink_to_fit(state_->handles()); }
Result<void> Document::pack() { return state_->world.pack(state_->handles()); }
Result<void> Document::unpack() { return state_->world.unpack(state_->handles()); }

Document::Holdings Document::holdings() const {
  const State& s = *state_;
  const BrickPool& pool = s.world.pool();
  Holdings sums;
  sums.keys = s.world.brick_count();
  sums.bricks = pool.live();
  std::vector<bool> shown(pool.high_water()), full(pool.high_water());
  for (uint32_t m = 1; m < 256; ++m)
    if (const uint32_t index = pool.full(uint8_t(m)); index != kNoBrick) full[index] = true;
  s.world.pyramid().for_each_index([&](uint32_t index) {
    sums.full_keys += full[index];
    shown[index] = true;
  });
  for (const Volume& volume : s.scene.volumes) {
    sums.scene_bytes += volume.bricks.size_bytes(&pool);
    if (volume.bricks.is_view()) continue;
    for (const BrickMap::Entry& entry : volume.bricks.bricks())
      if (const uint32_t index = pool.index_of(*entry.handle); index != kNoBrick) shown[index] = true;
  }
  sums.history_bricks = sums.bricks - uint64_t(std::count(shown.begin(), shown.end(), true));
  for (const UndoRecord& record : s.history)
    for (const BrickChange& change : record.changes) {
      sums.history_changes += change.count;
      sums.history_bytes += sizeof(BrickChange);
      for (const SharedBrick& brick : {change.before, change.after})
        if (pool.elsewhere(brick)) sums.history_bytes += brick.size_bytes();
    }
  return sums;
}

Result<Document> Document::create_empty(const WorldMemory& memory) {
  Scene scene;
  scene.volumes.resize(1);
  scene.volumes[0].name = "world";
  scene.instances.resize(1);
  scene.instances[0].name = "world";
  return create(std::move(scene), memory);
}

const Scene& Document::scene() const { return state_->scene; }
const World& Document::world() const { return state_->world; }
World& Document::world() { return state_->world; }
bool Document::can_undo() const { return state_->position > 0; }
bool Document::can_redo() const { return state_->position < state_->history.size(); }
const std::vector<UndoRecord>& Document::history() const { return state_->history; }
size_t Document::history_position() const { return state_->position; }
uint64_t Document::version() const { return state_->version; }

Result<const UndoRecord*> Document::apply(uint32_t volume, const Edit& edit, uint32_t threads, bool continues,
                                          const Persist& persist) {
  QRY_TRY(state_->check_volume(volume));
  QRY_TRY_ASSIGN(const auto bounds, edit_bounds(edit));
  if (edit.shape != Shape::connected && edit.material != 0 && (edit.mode == Mode::add || edit.mode == Mode::fill)) {
    // The shape's voxels will all be set, and its box is tight: refuse before doing work that would be discarded.
    QRY_TRY(state_->flattener.check_box(volume, bounds));
  }
  QRY_TRY_ASSIGN(auto record, plan_edit(state_->scene.volumes[volume].bricks, edit, threads));
  record.volume = volume;
  record.continues = continues;
  return state_->enter(std::move(record), persist);
}

Result<const UndoRecord*> Document::write(uint32_t volume, std::span<const World::BrickWrite> writes, std::string label,
                                          uint32_t threads) {
  std::vector<uint32_t> order(writes.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return writes[a].brick < writes[b].brick; });
  std::vector<Int3> places(writes.size());
  for (size_t i = 0; i < order.size(); ++i) {
    places[i] = writes[order[i]].brick;
    if (i > 0 && places[i - 1] == places[i])
      return fail(ErrorCode::invalid_argument, brick_text(places[i]) + " is in the batch more than once");
  }
  return write(
      volume, places, [&](size_t i, Brick& brick) { brick = writes[order[i]].value; }, std::move(label), threads);
}

Result<const UndoRecord*> Document::write(uint32_t volume, std::span<const Int3> places,
                                          const std::function<void(size_t, Brick&)>& change, std::string label,
                                          uint32_t threads, const Persist& persist) {
  QRY_TRY(state_->check_volume(volume));
  for (const Int3 place : places)
    if (!has_voxel_coordinates(place))
      return fail(ErrorCode::out_of_bounds, brick_text(place) + " lies beyond the range of 32-bit voxel coordinates");
  UndoRecord record = plan_bricks(state_->scene.volumes[volume].bricks, places, change, threads);
  record.volume = volume;
  record.label = std::move(label);
  return state_->enter(std::move(record), persist);
}

Result<const UndoRecord*> Document::write(uint32_t volume, std::span<const BrickPut> puts, std::string label,
                                          uint32_t threads, const Persist& persist) {
  std::vector<Int3> places;
  places.reserve(puts.size());
  for (const BrickPut& put : puts) places.push_back(put.brick);
  return write(
      volume, places, [&](size_t i, Brick& brick) { brick = puts[i].value->copy(); }, std::move(label), threads,
      persist);
}

Result<const UndoRecord*> Document::write(uint32_t volume, const VoxelWrites& writes, std::string label,
                                          uint32_t threads) {
  QRY_TRY(state_->check_volume(volume));
  QRY_TRY_ASSIGN(auto record, plan_voxels(state_->scene.volumes[volume].bricks, writes, threads));
  record.volume = volume;
  record.label = std::move(label);
  return state_->enter(std::move(record));
}

Result<const UndoRecord*> Document::change_palette(const Palette& palette, const Persist& persist) {
  return state_->enter(plan_palette_change(state_->scene.palette, palette), persist);
}

Result<std::span<const UndoRecord>> Document::undo(const Persist& persist) {
  if (!can_undo()) return fail(ErrorCode::invalid_argument, "there is nothing to undo");
  size_t first = state_->position - 1;
  while (first > 0 && state_->history[first].continues) --first;
  QRY_TRY_ASSIGN(const auto step, state_->step(first, state_->position));
  QRY_TRY(state_->commit_and_persist(step, false, persist));
  state_->position = first;
  return step;
}

Result<std::span<const UndoRecord>> Document::redo(const Persist& persist) {
  if (!can_redo()) return fail(ErrorCode::invalid_argument, "there is nothing to redo");
  size_t end = state_->position + 1;
  while (end < state_->history.size() && state_->history[end].continues) ++end;
  QRY_TRY_ASSIGN(const auto step, state_->step(state_->position, end));
  QRY_TRY(state_->commit_and_persist(step, true, persist));
  state_->position = end;
  return step;
}

size_t Document::step_count() const {
  return size_t(std::count_if(state_->history.begin(), state_->history.end(),
                              [](const UndoRecord& record) { return !record.continues; }));
}
size_t Document::step_position() const {
  return size_t(std::count_if(state_->history.begin(), state_->history.begin() + std::ptrdiff_t(state_->position),
                              [](const UndoRecord& record) { return !record.continues; }));
}

Result<void> Document::restore_history(std::vector<UndoRecord> records, size_t position) {
  // Where they are now may be a pool whose memory is freed next.
  if (state_->world.packed() || !State::adopt(state_->world.pool(), records))
    QRY_TRY(State::adopt(BrickPool::loose(), records));
  auto measured = state_->budget ? State::measured(records) : std::vector<uint64_t>();
  state_->followed.reset();
  state_->history = std::move(records);
  if (!state_->history.empty()) state_->history.front().continues = false;
  state_->position = std::min(position, state_->history.size());
  state_->measure(std::move(measured));
  state_->keep_budget();
  return {};
}

Result<void> Document::State::recall(std::vector<UndoRecord> step, bool older) {
  if (older ? position != 0 : position != history.size())
    return fail(ErrorCode::invalid_argument,
                older ? "the history has steps that are applied" : "the history has steps that can be redone");
  if (world.packed() || !adopt(world.pool(), step)) QRY_TRY(adopt(BrickPool::loose(), step));
  if (step.empty()) return {};
  step.front().continues = false;
  const size_t count = step.size();
  auto its_bytes = budget ? measured(step) : std::vector<uint64_t>();
  history.reserve(history.size() + count);
  record_bytes.reserve(record_bytes.size() + its_bytes.size());
  const auto insert = [older](auto& list, auto& more) {
    list.insert(older ? list.begin() : list.end(), std::make_move_iterator(more.begin()),
                std::make_move_iterator(more.end()));
  };
  bytes += std::accumulate(its_bytes.begin(), its_bytes.end(), uint64_t(0));
  insert(history, step);
  insert(record_bytes, its_bytes);
  if (followed) followed->kept += count;
  dropped_steps -= std::min<uint64_t>(1, dropped_steps);
  if (!older) return {};
  position = count;
  if (followed) followed->applied += count;
  dropped_records -= std::min<uint64_t>(count, dropped_records);
  return {};
}

void Document::begin_after(uint64_t records) {
  state_->dropped_records = records;
  state_->dropped_steps = 0;
}
Result<void> Document::recall_older(std::vector<UndoRecord> step) { return state_->recall(std::move(step), true); }
Result<void> Document::recall_newer(std::vector<UndoRecord> step) { return state_->recall(std::move(step), false); }

void Document::set_history_budget(uint64_t bytes) {
  state_->measure(bytes ? State::measured(state_->history) : std::vector<uint64_t>());
  state_->budget = bytes;
  state_->keep_budget();
}
uint64_t Document::history_budget() const { return state_->budget; }
uint64_t Document::dropped_steps() const { return state_->dropped_steps; }
uint64_t Document::history_size_bytes() const {
  if (state_->budget) return state_->bytes;
  uint64_t bytes = 0;
  for (const UndoRecord& record : state_->history) bytes += history_bytes(record);
  return bytes;
}

void Document::follow() {
  State& s = *state_;
  s.followed.reset();
  s.keep_budget();
  s.followed = State::Followed{};
  s.followed->kept = s.history.size();
  s.followed->applied = s.position;
}

void Document::unfollow() {
  state_->followed.reset();
  state_->keep_budget();
}

void Document::continue_from(const Document& other) {
  state_->followed = other.state_->followed;
  state_->dropped_records = other.state_->dropped_records;
}

uint64_t Document::dropped_records() const { return state_->dropped_records; }

Document::Unsaved Document::unsaved() const {
  const State& s = *state_;
  Unsaved unsaved;
  if (!s.followed) return unsaved;
  const State::Followed& file = *s.followed;
  unsaved.kept = file.kept;
  unsaved.moved = s.position != file.applied || file.kept < s.history.size() || !file.lost.empty();
  std::map<uint32_t, std::set<Int3>> regions = file.lost;
  const size_t end = std::max(s.position, std::min(file.applied, file.kept));
  for (size_t i = std::min({s.position, file.applied, file.kept}); i < end; ++i)
    State::add_regions(s.history[i], regions);
  for (const auto& [volume, its] : regions) unsaved.regions[volume].assign(its.begin(), its.end());
  return unsaved;
}

void Document::set_palette(Palette palette) {
  state_->scene.palette = std::move(palette);
  ++state_->version;
}

}  // namespace quarry
