// SPDX-License-Identifier: Apache-2.0
// store.hpp - a world in a device's memory: its grid, bricks, pyramid and history are there and nowhere else. Edits,
// undo and redo are launches (steps.hpp); what became of one is asked for by its ticket.
//
//   edit ─► launches ─► ... answer: done ─► wait(ticket)
//                       answer: room was missing ─► nothing has changed; nor have the edits after it done anything ─►
//                       the host makes room and launches them again, in order
//
// An edit that fails for good, because there is no more memory, changes nothing; the edits after it are made without
// it. One thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "hashgrid/table/stats.hpp"
#include "voxel/bricks/brick.hpp"
#include "voxel/bricks/shared.hpp"
#include "voxel/device/executor.hpp"
#include "voxel/device/placed_volumes.hpp"
#include "voxel/device/scratch.hpp"

namespace quarry::device {

class Store {
 public:
  // An empty world with a small amount of room: 70 MB of addresses that are in use, most of them untouched. It makes
  // more room as it is needed. `max_bricks`: of keys. Errors: out_of_memory, device.
  static Result<std::unique_ptr<Store>> create(std::unique_ptr<Executor> executor, uint32_t max_bricks = 0xFFFFFFFEu);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  using Ticket = uint64_t;
  struct Change {
    uint64_t voxels = 0;   // that differ; 0: nothing was done, and the history has no step of it
    uint64_t version = 0;  // of the world after it
  };
  // Launches an edit and returns. The shape is that of the edit. Traffic on the device: 8 bytes for each brick of the
  // shape's box, 12 for each that changes, 1200 for each that the surface cuts. Over the bus: less than 4 KiB. Errors:
  // out_of_bounds (voxels would be set outside of the world), device; then it is not launched. `part`: only this part
  // of the shape, which is looked for in its box; of voxels, in whole cubes of 64^3.
  Result<Ticket> edit(const SolidShape& shape, const Edit& edit, const std::optional<Box3>& part = {});
  // An edit of some bricks: which of each one's voxels, and what they become: by the edit's mode, or, if `materials`
  // is not empty, what that says (0: removed). Keys: each once. Blocks until it is done. Traffic: 68 or 580 bytes a
  // brick over the bus. Errors: as wait().
  Result<Change> write(std::span<const uint32_t> keys, std::span<const BrickMask> voxels,
                       std::span<const BrickMaterials> materials, const Edit& edit = {});
  // An edit of some voxels. The device makes bricks of them. Blocks until it is done. Traffic: 8 bytes a voxel over
  // the bus, if they are the host's. Errors: unsupported (more voxels or bricks than a device groups, or no memory for
  // it: nothing has changed, and write() may take them); out_of_bounds (the first voxel outside of the world is
  // named); else as wait().
  Result<Change> write_voxels(const GivenVoxels& voxels);
  // An edit of a dense box in the world, x fastest, at most 2^32 voxels: each becomes what the array says, 0: removed.
  // Blocks until it is done. Traffic: a byte a voxel over the bus, if they are the host's; on the device 580 a brick
  // more. Errors: as wait().
  Result<Change> write_box(const Box3& box, const uint8_t* materials, Side side);
  // Whole bricks: those that one material fills, or 0 for none; and others with all their materials. Each key once.
  struct Bricks {
    std::span<const uint32_t> full_keys;
    std::span<const uint8_t> full;
    std::span<const uint32_t> keys;
    std::span<const BrickMaterials> materials;
    std::span<const SharedBrick> bricks = {};  // instead of these
    // Or instead: one behind the other. `kept`: in memory of Executor::host_memory(), and as it is until the edit is
    // done.
    struct Part {
      std::span<const BrickMaterials> materials;
      bool kept;
    };
    std::span<const Part> parts = {};
  };
  // An edit that makes them so. Blocks until it is done. Traffic: 5 or 516 bytes a brick over the bus. Errors: as
  // wait().
  Result<Change> write_bricks(const Bricks& bricks);
  // As put(), of bricks that are in this device's memory already, made by what `stream` (a cudaStream_t) has got: each
  // key once, 64 words of materials a brick, all 0: there is none. `box`: of all of them, in bricks. Blocks until it is
  // done. Errors: as wait().
  Result<void> put_there(uint32_t bricks, const uint32_t* keys, const uint64_t* materials, const Box3& box,
                         void* stream);
  // An edit that combines the world with another one in memory of the same device (Executor::device()), or with
  // itself, after all edits of both; the other is only read. Blocks until it is done. Traffic: the walked grid twice, a
  // look-up for each of its keys, 128 bytes of masks for each brick of both, 1600 for each that changes in part; over
  // the bus twice the counters, and 1 KiB with `materials`: of each material of the other world, what it becomes here
  // in a union. Errors: unsupported (a world elsewhere), full (bricks that are listed at once); else as wait().
  using NewMaterials = std::array<uint8_t, 256>;
  Result<Change> combine(Store& other, Combination combination, const NewMaterials* materials = nullptr);
  // An edit that lets the world grow by a voxel, or erodes it by one; `neighbours`: 6, 18 or 26. What becomes of each
  // voxel: voxel/operations/morphology.hpp. After all edits; blocks until it is done. Traffic: the pyramid; of each
  // brick that is there, and to grow of each beside one, 28 bytes of indices and 160 of masks; 1200 for each that
  // changes, to grow 3 KB, most of it the caches'; over the bus the counters. Memory: an edit's, and 24 bytes for each
  // node of level 1 that has such bricks, until trim(). Errors: full (more of them than a device lists at once),
  // out_of_bounds (it would grow out of the world); else as wait().
  Result<Change> grow(uint32_t neighbours);
  Result<Change> erode(uint32_t neighbours);
  // The connected parts of the world, after all edits, in their order (voxel/operations/connected_parts.hpp), whichever
  // device finds them; `neighbours`: 6, 18 or 26. Waits for the device. Traffic and memory: scratch.hpp's, until
  // trim(). Errors: full (more than a device takes), out_of_memory, device.
  Result<std::vector<PartScratch::Part>> find_parts(uint32_t neighbours);
  // An edit that removes all parts but the first `most`, of those that have at least `least` voxels. Traffic: as
  // find_parts(), 68 bytes a brick that loses voxels, a byte a part over the bus, and an edit's. Errors: as
  // find_parts(), and as wait().
  Result<Change> keep_parts(uint32_t neighbours, uint64_t most, uint64_t least);
  // The same as no step of the history, of which no record may hold a brick that it replaces: what a world begins with,
  // and parts of one that come or go. The world's version rises, whatever is in them.
  Result<void> put(const Bricks& bricks);
  // The same of bricks that come, and of others that go: no key is in both. Returns when it is launched; what copies
  // lists to the device next waits for it; what it copies from in memory of the host's was read, but for parts that are
  // kept. Traffic: as put(), and 5 bytes for each that goes.
  Result<Ticket> exchange(const Bricks& coming, std::span<const uint32_t> going);
  // Whether wait() has nothing to wait for. Does not block, unless room was missing.
  Result<bool> is_done(Ticket ticket);
  // What a world begins with, too: an empty world becomes what volumes make that are in memory of its executor. Where
  // placements overlap the first one's voxels stay. Bricks of it that full bricks fill are made without a look at
  // voxels; the others are made some at a time, `most_made`, each time as put(). Blocks until it is done. Traffic on
  // the device: PlacedVolumes::group's, and for each brick that is not filled 512 bytes for each brick that it is made
  // of and 1100 more. Over the bus: the counters twice, and an edit's. Errors: out_of_bounds (then nothing has changed,
  // and PlacedVolumes::outside() says which placement), full, out_of_memory, device.
  struct Flattened {
    PlacedVolumes::Found found;
    double room_ms = 0, made_ms = 0;  // time to make room for the world; and of all the rest
  };
  Result<Flattened> flatten(PlacedVolumes& volumes, std::span<const Placement> placements,
                            uint32_t most_made = 1u << 20);
  // An edit of the voxels that are connected with the edit's voxel `a`, through faces, by voxels of its material
  // (Shape::connected), in any mode. None if it is empty or outside of the world. The device finds them, after all
  // edits before it. Blocks until it is done. Traffic over the bus: the counters, once for up to 32 rounds, of which
  // there are at least as many as bricks on the shortest way to the farthest voxel; on the device scratch.hpp's
  // and an edit's. Errors: full (more than `most` bricks, or than kMostFlooded), out_of_memory, device; then nothing
  // has changed.
  Result<Change> edit_connected(const Edit& edit, uint64_t most);
  // Sums over the world's voxels that do not depend on their order, after all edits: of the hash h(x, y, z) of each
  // one's coordinates (voxel/bricks/coords.hpp), and of h(x, y, z, c), where `c` is what `colours` says of its
  // material: r | g << 8 | b << 16 | a << 24. So they are SceneFacts' pos_sum and col_sum. Traffic on the device: the
  // grid, and 576 bytes a brick; over the bus 1 KiB and the counters. Errors: out_of_memory, device.
  struct VoxelSums {
    uint64_t voxels = 0, places = 0, colours = 0;
  };
  Result<VoxelSums> voxel_sums(std::span<const uint32_t, 256> colours);
  // The voxels in which this world and another one in memory of the same device differ, which may be itself, after all
  // edits of both. `looks`: of each material here, then of each in the other world: materials whose numbers are equal
  // are alike. Traffic on the device: both grids, a look-up for each key of both, 64 bytes of masks for each brick of
  // both, and materials where both have voxels; over the bus 2 KiB and the counters. Errors: unsupported (a world
  // elsewhere), out_of_memory, device.
  struct Comparison {
    struct Kind {
      uint64_t voxels = 0;
      Box3 bounds;  // of these voxels
    };
    Kind added, removed, recoloured;  // in the other only; here only; in both, with materials that are not alike
    uint64_t alike = 0;
  };
  Result<Comparison> compare(Store& other, std::span<const uint32_t, 512> looks);
  // Drops the history, and frees what only it holds. Errors: device.
  Result<void> forget();
  // Drops the steps that could be redone, after all edits, as a new edit would. Errors: device.
  Result<void> forget_redo();
  // The most that the history may take, in bytes; 0 (the default): no limit. A step takes 12 bytes a record, 32, and
  // 576 for each brick of those before it or those after it that are stored, whichever are more: undo and redo change
  // nothing of the sum. When an edit is waited for, or the next one launched, and here, the oldest steps go until the
  // rest fits, and their bricks with them. The step that undo takes next stays, whatever its size. Where that is not
  // enough, here, those go that redo reaches last; a history of which nothing is applied keeps the step that redo takes
  // next. Traffic over the bus: as long as steps may be over the budget, their records once; 32 bytes a step; on the
  // device the records of what goes. Errors: device.
  Result<void> set_history_budget(uint64_t bytes);
  struct HistoryUse {
    uint64_t bytes = 0;                 // the sum that the budget limits
    uint64_t steps = 0, position = 0;   // that there are; that are applied
    uint64_t dropped = 0, cut_off = 0;  // steps, for the budget: the oldest ones; those that could be redone
  };
  // After all edits. Traffic: as above, as if they were over the budget. Errors: device.
  Result<HistoryUse> history_use();
  // Of these the last two, as far as known: waiting for an edit may add some.
  uint64_t dropped_steps() const { return dropped_; }
  uint64_t cut_off_steps() const { return cut_off_; }
  // Edits from here until end_step() are one step of the history, which no budget drops in part; `continues`: with the
  // last step that is applied, if there is one. Waits for all edits. Errors: device.
  Result<void> begin_step(bool continues = false);
  // Makes it of them: a brick that several have changed has one record, and what it was between is freed. Undo and redo
  // of it change as many voxels as its parts did. Nothing to do if no step has begun. undo(), redo(), history_use() and
  // step_records() end it first. Traffic on the device: about 150 bytes a record of the parts, most of it the sort's;
  // over the bus 32 a step. Errors: full (more records than a device lists at once), out_of_memory: then it goes on,
  // and its parts are steps still; device.
  Result<void> end_step();
  // Launches that undo or redo a step. No voxel is copied.
  Result<Ticket> undo();
  Result<Ticket> redo();

  // The step before the history's oldest one, which the history no longer has, or never had, and a file has: whole
  // bricks, as in write_bricks(), as they were before it. None may be applied; it is the oldest then, and applied. The
  // world is as before, its version higher; no step if nothing differs. Of a history over its budget those go that redo
  // reaches last. Blocks until it is done. Traffic: as write_bricks(), and 24 bytes a brick over the bus. Errors:
  // invalid_argument (steps are applied); else as wait(): then the history is as before.
  Result<Change> recall_step(const Bricks& before);

  // The ticket of the last change that was launched; 0: none. While it stays the same no voxel changes.
  Ticket last_ticket() const { return last_; }
  // Until it is done. What became of the last 4096 can be asked. Errors: full (max_bricks), out_of_memory, device.
  Result<Change> wait(Ticket ticket);
  // Until all are done. Their errors are for wait(ticket). Errors: device.
  Result<void> wait_all();

  struct State {
    uint64_t voxels = 0, version = 0;
    uint32_t keys = 0;
    uint32_t bricks = 0;   // that are stored: not full ones, but those that only the history holds
    uint32_t retired = 0;  // of these, such as are kept for frames alone
    uint64_t steps = 0, position = 0;
    Box3 bounds;               // tight, in voxels
    uint64_t size_bytes = 0;   // of the device's memory
    uint64_t world_bytes = 0;  // of these, grid, bricks and pyramid
  };
  // After all edits. The bounds cost a pass over the grid; a version alone does not.
  Result<State> state();
  Result<uint64_t> version();
  // After all edits, and asking the device nothing more: what is in use. `bricks`: that are stored, those that only the
  // history holds, and those that are kept for frames (`retired`), with them. `size_bytes`: of the device's memory,
  // whatever is in use of it.
  struct Used {
    uint64_t keys = 0, bricks = 0, retired = 0, records = 0, size_bytes = 0;
  };
  Result<Used> used();
  struct MemoryUse {
    uint64_t grid_bytes = 0, mask_bytes = 0, material_bytes = 0, pyramid_bytes = 0, history_bytes = 0;
    uint64_t packed_bytes = 0;  // the first four together when packed; until then what they would be, about
    uint64_t spare_bytes = 0;   // room for bricks to come
    uint64_t history_changes = 0;
    uint32_t full_keys = 0;  // keys whose brick is full of one material
    bool packed = false;
  };
  // After all edits. Traffic: as entries(); of a world that is not packed 64 bytes a brick on the device.
  Result<MemoryUse> memory_use();
  // After all edits: the grid's, of the table as it is; its version is the world's. Traffic: the grid once, and less
  // than 1 KiB over the bus. Errors: device.
  Result<hashgrid::Stats> grid_stats();
  // Makes room ahead of edits, so that none has to wait for it: for so many keys, and bricks that are not full. It
  // unpacks the world. Errors: full, out_of_memory, device.
  Result<void> reserve(uint32_t keys, uint32_t bricks);

  // From here on it grows by what is needed and an eighth, also while it is small, and dense boxes are read in smaller
  // pieces: of a world that keeps to a part of the device's memory.
  void grow_little() { grows_little_ = true; }

  // Times the steps of edits, undo and redo from now on, or no more (Executor::time_steps()). Off at first.
  void time_edits(bool on);
  // Of the last one that was done while they were timed: all steps from its launch until its answer was heard, also
  // those that made room for it, or found what it is about. Of edits that were launched before the ones before them had
  // been waited for it is all of these together. Steps between edits are not told. Nothing yet: no steps.
  const StepTimes& edit_times() const { return edit_times_; }

  // Gives back memory that holds nothing. Bricks move together, in place, so that what is behind them is free; a
  // growth of the pool (of at most 1.2 GB) is given back when it has no brick any more. Pyramid, history and, if it is
  // four times too large, the grid are written anew. Places that frames read are left by the next calls of publish().
  // Traffic on the device: the grid twice, records twice, each brick that moves twice, the pyramid twice. Errors:
  // out_of_memory (12 bytes for each place that is to be free, and the new pyramid, beside the old one; then nothing
  // has changed), device.
  Result<void> trim();

  // Packs the world for reading, after all edits, with the bricks of its history: only set voxels keep their materials
  // (voxel/bricks/pool.hpp). Voxels, version and history are as before, and what only reads works on it as it is. A
  // call that launches an edit, undo or redo, or makes room for edits, unpacks it first: also an edit of which it turns
  // out that it changes nothing, but no list without bricks, and no undo where there is no step. It is trimmed before.
  // Frames that were recorded before read what was there until they are done. No effect if it is packed. Traffic on the
  // device: trim()'s, the grid and the records once, masks twice, materials once, those of set voxels once more.
  // Memory: both forms until it is done, and some 4 bytes a brick. Errors: full (more than 16 GiB of materials),
  // out_of_memory; then it is as before, trimmed or not; device.
  Result<void> pack();
  // The other way round. No effect if it is not packed. Traffic on the device: 512 bytes a brick, and what was packed.
  // Memory: both forms until it is done. Errors: out_of_memory, device; then it is as before.
  Result<void> unpack();
  bool packed() const { return memory_.packed != nullptr; }

  struct Entry {
    uint32_t key, index;
  };
  // After all edits: the keys, sorted, and their bricks' indices. Traffic: the grid over the bus.
  Result<std::vector<Entry>> entries();
  // The same from the pyramid, as rays find them.
  Result<std::vector<Entry>> pyramid_entries();
  // The first voxel that each ray meets, after all edits; no edit waits for it, and it reads nothing back but the hits.
  // See Executor::trace(); of edits that are played again, `take` gets the hits once more.
  Result<void> trace(size_t count, const Executor::FillRays& fill, const Executor::TakeHits& take);
  // The same of arrays in the device's memory, without waiting for the hits; it waits for edits under way.
  Result<void> trace_there(const Ray* rays, size_t count, RayHit* hits);
  // After all edits: the materials of bricks by their keys; 0 for those that are not there. Traffic: 516 bytes a brick
  // over the bus. Errors: out_of_memory, device.
  Result<void> read(std::span<const uint32_t> keys, std::span<BrickMaterials> materials);
  // After all edits: the indices of bricks by their keys, kNone where none is. Traffic: 8 bytes a key over the bus.
  // Errors: out_of_memory, device.
  Result<void> look_up(std::span<const uint32_t> keys, std::span<uint32_t> indices);
  // As read(), of places of the pool that are in use.
  Result<void> read_places(std::span<const uint32_t> places, std::span<BrickMaterials> materials);
  // After all edits: the steps of the history from number `first` on, as long as they have at most `most` records
  // together, at least one, with their records in any order, each key once; some may change nothing. Traffic: the
  // records over the bus, and 32 bytes for each step of the history. Errors: device.
  struct StepRecords {
    uint64_t voxels = 0;  // that differ
    std::vector<Record> records;
  };
  Result<std::vector<StepRecords>> step_records(uint64_t first, uint64_t most = UINT64_MAX);
  // The voxels of a dense box, which may reach out of the world, x fastest; after all edits. Of a host's array it
  // waits; a device's is written by then in its executor's order. Traffic: a byte a voxel. Errors: out_of_memory,
  // device.
  Result<void> read_box(const Box3& box, uint8_t* materials, Side side);
  // The brick of an index in use.
  Result<Brick> brick(uint32_t index);

  // For an executor that shares memory with shaders: which frames may read it. Numbers rise; `recorded` is of the
  // newest frame that was recorded, `done` of the newest that is done, with all before it.
  struct Frames {
    uint64_t recorded = 0, done = 0;
  };
  // The world as frames see it that are recorded from now on until the next call: nothing of it changes before they are
  // done. The grid is not part of it: it is as it will be.
  struct Published {
    uint64_t number = 0;  // another for each that is not the same
    uint64_t version = 0;
    uint64_t changed = 0;  // a version too, which exchange() does not raise
    uint32_t keys = 0;
    Box3 bounds;
    uint64_t grid = 0, nodes = 0;  // addresses
    uint32_t grid_pages = 0, level3 = 0, node_room = 0, brick_room = 0;
    bool packed = false;
    std::vector<uint64_t> masks;  // of runs of kBricksPerSlab bricks
    // The same; or of a packed world's words, 128 for each brick of a run: the last ones may be fewer.
    std::vector<uint64_t> materials;
  };
  // After all edits; it waits for them, and for no frame. Traffic: 256 KiB on the device, and the grid once for the
  // bounds if the world has changed. Errors: unsupported (memory that is not shared), out_of_memory, device.
  Result<const Published*> publish(const Frames& frames);
  bool shares() const { return executor_->shares(); }
  // Of publish() what makes places free that frames are done with, for who publishes no more until it has room: no
  // frame is recorded before the next publish(). Traffic: none that counts. Errors: device.
  Result<void> recycle(const Frames& frames);
  // Asked before the pool of bricks grows, by the thread that makes an edit: where frames are done, what they have read
  // is taken first. Nothing: frames may be recorded before the next publish(). At first it is not asked.
  using AskFrames = std::function<std::optional<Frames>()>;
  void set_frames(AskFrames ask) { ask_frames_ = std::move(ask); }

  const Memory& memory() const { return memory_; }
  Executor& executor() { return *executor_; }

 private:
  enum class Kind : uint8_t { edit, undo, redo };
  enum class Touch : uint8_t { box, tiles, grid, list, around };  // around: it grows or is eroded
  struct Pending {
    Ticket ticket;
    Kind kind;
    Touch touch;
    EditCall call;
    uint64_t bricks = 0;  // that it may touch, or about: how many threads are worth launching
    uint64_t there = 0;   // of a list's bricks: those that are in the world, and if they are full, whole in the list
    struct Need {
      uint64_t records = 0, bricks = 0, nodes = 0, keys = 0;
    } need = {};    // of memory, about
    Box3 box = {};  // of the shape, as far as it is edited
  };
  using Need = Pending::Need;
  struct Arrays;  // the ranges behind memory_

  Store(std::unique_ptr<Executor> executor, uint32_t max_bricks);
  Result<void> open();
  void reach(std::span<const uint32_t> keys);
  void reach(const Box3& bricks);
  Result<Change> write_list(EditCall call, const Bricks& bricks, std::span<const BrickMask> voxels);
  Result<void> send_list(const Bricks& bricks, std::span<const BrickMask> voxels);
  Result<void> send_bricks(std::span<const SharedBrick> bricks);
  Result<void> send_parts(std::span<const Bricks::Part> parts);
  Result<void> room_for_listed(uint64_t bricks);
  Result<Change> morph(EditCall call);
  RayWorld ray_world() const;
  Result<void> free_list();
  Result<Change> make_listed(EditCall call, uint32_t bricks, bool there = false);
  OtherWorld read_only() const { return {memory_.grid, memory_.masks, memory_.materials, memory_.packed}; }
  Result<void> send_looks(std::span<const uint32_t> looks);
  Result<Control> counters();
  Result<std::vector<Step>> history();
  Result<uint64_t> measure(const std::vector<Step>& steps);
  Result<void> keep_budget();
  Result<void> keep_steps(std::vector<Step> steps, size_t first, size_t end);
  Result<void> join_steps(uint32_t count);
  Result<void> free_records(uint64_t first, uint64_t end, bool applied, std::span<const Record> nothing);
  void begin_phase();
  void finish_oldest(Result<Change> change);
  void begin_times();
  Result<Ticket> launch_new(Pending pending);
  Result<void> launch(const Pending& pending);
  Result<void> advance();
  Result<void> await(Ticket ticket);
  Result<void> answer_refusal();
  Need need_of(const Pending& pending) const;
  Result<void> make_room_ahead(const Need& need);
  Result<void> make_room(const Control& control);
  uint64_t more(uint64_t wanted, uint64_t now) const;
  uint64_t spare_room(uint64_t live, size_t element_bytes) const;
  Result<void> grow_grid(uint64_t keys);
  Result<void> grow_bricks(uint64_t bricks);
  Result<void> grow_scratch(uint64_t items);
  Result<void> grow_records(uint64_t records);
  Result<void> grow_steps(uint64_t steps);
  Result<void> grow_nodes(uint64_t granules);
  Result<void> make_node_room(uint64_t granules);
  Result<void> make_record_room(uint64_t records);
  Result<void> make_grid(uint32_t pages);
  Result<void> pack_nodes(uint64_t room);
  uint64_t packed_nodes() const;
  Result<void> gather_bricks();
  Result<bool> move_bricks(const Control& control, uint32_t first);
  Result<void> give_back_bricks();
  Result<void> trim_scratch();
  Result<void> pack_records(std::vector<Step> steps, uint64_t room);
  Result<void> unpack_for_step(bool back);
  uint32_t trimmed_pages() const;
  Result<uint64_t> expect_packed_bytes();

  std::unique_ptr<Executor> executor_;
  uint32_t max_bricks_;
  std::unique_ptr<Arrays> arrays_;
  std::unique_ptr<ListScratch> lists_;    // once one was grouped
  std::unique_ptr<FloodScratch> floods_;  // once there was one
  std::unique_ptr<PartScratch> parts_;    // once they were looked for
  Memory memory_{};
  Ticket last_ = 0;
  std::optional<Ticket> list_;  // of an edit that may still read the last list
  uint64_t exchanges_ = 0;
  std::vector<uint64_t> step_bricks_;  // of the history: Pending::bricks of each step, or about
  size_t step_ = 0;
  // Granules of the pyramid that a list is expected to need for a brick: as many as one that was refused has needed,
  // which depends on how close its bricks are.
  double list_nodes_ = 1.0 / 3;
  bool lists_in_history_ = false;  // or steps that were several: of such keys may come and others go
  // Of the history's budget.
  struct Measured {
    uint64_t first = 0;  // record
    uint32_t count = 0;  // of records
    uint32_t bricks = 0;
  };
  uint64_t budget_ = 0, dropped_ = 0, cut_off_ = 0;
  std::optional<uint64_t> step_begun_;  // by begin_step(), where so many steps were applied, with those dropped by then
  uint64_t most_held_ = 0;              // the history takes at most so many bytes
  std::vector<Measured> measured_;      // steps from the oldest on, as far as they have been counted
  Box3 reach_;                          // no voxel that it or a redo may have is outside
  uint64_t refusals_ = 0;
  bool grows_little_ = false;
  bool timing_ = false;
  StepTimes times_, edit_times_;  // of the edits under way, as far as known; and of the last ones
  // Publishing. What went out of use is free when the frames are done that were recorded before the next publish.
  struct Old {
    Range range;
    uint64_t last_frame;  // kNotKnown: until then
  };
  void retire(Range& range);
  void free_old(const Frames& frames);
  Result<void> recycle_retired(const Frames& frames);
  Result<void> recycle_all_retired(const Frames& frames);
  Result<void> free_retired();
  static constexpr uint64_t kNotKnown = ~uint64_t(0);
  AskFrames ask_frames_;
  bool retires_ = false;  // edits since free_retired() have dropped bricks, or may have
  std::vector<Old> old_;
  Published published_;
  bool form_changed_ = false;             // since then: its materials are elsewhere
  uint64_t packed_places_ = 0;            // of a packed world: that the pool had when it was packed
  uint64_t top_frames_[kTopCopies] = {};  // the last frame that reads each copy of level 3
  uint32_t top_ = kTopCopies;             // the one that is published
  uint64_t recorded_ = 0;                 // frames, at the last publish
  uint32_t hold_ = 0;                     // EditCall::hold of the next edits
  uint64_t closed_ = 0;                   // the last frame that may read what is in the other list of retired bricks
  uint64_t nodes_live_ = 0;               // after the last answer
  uint64_t retired_ = 0;                  // bricks that frames may still read, when the counters were asked for last
  uint32_t gathers_ = 0;                  // how often publish() may still move bricks together
  std::optional<uint64_t> leave_frame_;   // the last that may know of memory that is to be given back; or kNotKnown
  Need used_, expected_;                  // after the last answer; and what those that are under way may need
  std::deque<Pending> pending_;           // launched, no answer yet
  // The last kOutcomes, each where its ticket says.
  struct Finished {
    Ticket ticket = 0;
    std::optional<Result<Change>> change;
  };
  std::vector<Finished> finished_ = std::vector<Finished>(kOutcomes);
};

}  // namespace quarry::device
