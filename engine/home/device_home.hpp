// SPDX-License-Identifier: Apache-2.0
// device_home.hpp - the device home of a world: its voxels and its history are in a device's memory and nowhere else
// (voxel/device/store.hpp), and edits are launched there. The document beside it has no voxels: names, palette,
// cameras. Any number of threads may read.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "engine/pages/page_cache.hpp"
#include "voxel/device/store.hpp"
#include "voxel/io/quarry/reader.hpp"
#include "voxel/io/quarry/writer.hpp"
#include "voxel/voxelize/device_sink.hpp"
#include "voxel/worlds/document.hpp"

namespace quarry {
class ConnectedParts;  // voxel/operations/connected_parts.hpp
}

namespace quarry::engine {

class BrickBatch;     // record_batch.hpp
class ResidentPages;  // resident_pages.hpp
struct PageUse;       // resident_pages.hpp
struct PageWanted;    // resident_pages.hpp

class DeviceHome {
 public:
  // What a world begins with: a scene of one volume at the origin, and a history of it in memory. With a `file` the
  // scene has no bricks: they are sent as they are decoded, and with `history_of_file` the file's history, too: the
  // host never has more than a few MiB a thread of them, and one step. `flattens`: any scene, without a history; what
  // it shows becomes the one volume (flattening.hpp).
  struct Content {
    const Scene& scene;
    std::span<const UndoRecord> history;
    size_t position = 0;
    io::StoreReader* file = nullptr;
    const Progress& progress;
    bool flattens = false;
    bool history_of_file = false;
  };
  // Puts it into the device's memory; each step is made there, from what was before all of them. Traffic: each brick of
  // the scene, and of each record what was before it and after it, once over the bus: 5 bytes, or 516 if it is not full
  // of one material. The file's history is read twice. Errors: unsupported (another scene), invalid_argument (of one
  // that is flattened: an instance of no volume), out_of_bounds, out_of_memory, full, device; of a file its own, too.
  static Result<std::unique_ptr<DeviceHome>> create(std::unique_ptr<device::Executor> executor, const Content& content,
                                                    uint32_t max_bricks, uint32_t threads);
  // The same of a mesh's file, which `read` reads into `scene`: the voxels that CUDA makes of it stay in that device's
  // memory, and the scene has none then; else they are sent. Errors: `read`'s, too, of which `wrong` is told.
  using ReadMesh = std::function<Result<Scene>(const DeviceSink& sink)>;
  static Result<std::unique_ptr<DeviceHome>> create(std::unique_ptr<device::Executor> executor, const ReadMesh& read,
                                                    Scene& scene, std::optional<Error>& wrong, const Progress& progress,
                                                    uint32_t max_bricks, uint32_t threads);
  // Whether a scene can be at home on a device; its bricks are not looked at. kTaken says which can.
  static bool takes(const Scene& scene);
  static constexpr const char* kTaken = "a world on a device has one volume, at the origin and not turned";
  // Of a world that was flattened here.
  const std::optional<device::Store::Flattened>& flattened() const { return flattened_; }
  ~DeviceHome();
  // Which palette steps change. To be called before the first one is undone.
  void attach(Document& document) { document_ = &document; }

  // From here on the world keeps to so much of the device's memory: what is not needed leaves for the file that follows
  // the world (FollowedFile), and comes back when a call needs it. A call that needs all of the world brings all of it.
  // One that needs more than the budget at once is refused, out_of_memory; so are edits for which something would have
  // to leave while no file follows. `host_bytes`: as ResidentPages::create, whose errors it has. To be called before
  // the first edit.
  Result<void> set_budget(uint64_t bytes, uint64_t host_bytes = 0);
  ResidentPages* pages() { return pages_.get(); }  // null: without a budget
  // A world with a budget that a file follows may be larger than one grid, which holds a window of it (ResidentPages):
  // the grid's voxel (0, 0, 0) is this one of the world. Calls are in the world's coordinates; what is published, its
  // keys and bricks_with() are in the window's. Multiples of 128.
  Int3 origin() const;
  void set_origin(Int3 origin);  // of an empty grid, by ResidentPages
  // As long as it is there, no page comes or goes.
  [[nodiscard]] std::unique_lock<std::recursive_mutex> stay_there();

  struct Change {
    uint64_t voxels = 0, version = 0;
    bool step = false;  // one was made, undone or redone; one of a palette changes no voxel
  };
  // Returns when it is launched, with its ticket. Errors: as Document::apply, but what only the device can tell.
  Result<uint64_t> edit(const Edit& edit);
  Result<uint64_t> undo();
  Result<uint64_t> redo();
  // Edits from here until end_step() are one step of the history, with this label, or that of the first. What looks at
  // steps, or makes another one, ends it first. end_step() tells how many voxels the parts have changed; 0: there is no
  // step. Block until what was launched is done. Errors: as Store's; where end_step() lacks memory the step goes on.
  Result<void> begin_step(std::string label = {});
  Result<uint64_t> end_step();
  // For pages that must leave while a step has begun: what looked at steps has ended it, and it goes on. Errors: as
  // begin_step().
  struct BegunStep {
    bool begun = false, has_parts = false;
    std::string label;
    uint64_t voxels = 0;                           // that its parts have changed
    std::optional<io::UnfinishedStep> unfinished;  // begun or not: what the world is in the middle of
  };
  BegunStep begun_step();
  Result<void> go_on_with(const BegunStep& step);
  // As long as it is there, the world is in the middle of a step, which is `is_new`, or is undone or redone: what pages
  // bring to the file meanwhile does not count until it is whole. Within another one, or without a budget, it does
  // nothing. What was launched must have been waited for.
  class UnderWay {
   public:
    UnderWay(DeviceHome* home, bool is_new);
    ~UnderWay();
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;

   private:
    DeviceHome* home_;  // null: it does nothing
  };
  // Replaces the document's palette, as one step; none if nothing changes. Errors: device.
  Result<uint64_t> change_palette(const Palette& palette);
  // The history's, oldest first, as far as they have been waited for.
  struct StepMade {
    std::string label;
    uint64_t voxels = 0;     // that differ; as often as its parts changed them
    uint64_t records = 1;    // of the file that it came from, or comes into
    bool continues = false;  // the first one: it belongs to the step that the file has before it
  };
  std::vector<StepMade> steps();
  uint64_t position();       // how many of them are applied
  uint64_t last_ticket();    // of what was launched last
  uint64_t dropped_steps();  // for the budget, since the world was made
  uint64_t records();        // that a file which follows has of the steps, once it is flushed
  bool file_has_steps();     // all of them, as it is
  // Whether the history has a step to undo (`back`), or to redo. Blocks until what was launched is done; the device is
  // asked nothing more. Errors: device.
  Result<bool> has_step(bool back);
  // Blocks until it is done.
  Result<uint64_t> set_voxels(const device::GivenVoxels& voxels);
  Result<uint64_t> write_box(const Box3& box, const uint8_t* materials, device::Side side);
  // Whole bricks, each place once, as one edit. Blocks until it is done. Traffic: 5 or 516 bytes a brick over the bus;
  // the latter are copied once more on the host. Errors: out_of_bounds, full, out_of_memory, device.
  Result<uint64_t> write_bricks(std::span<const BrickPut> puts, const char* label);
  // Whether the other world is in memory of the same device.
  bool reads(DeviceHome& other) { return store_->executor().device() == other.store_->executor().device(); }
  // As Store's. Blocks until it is done. If one of the two does not fit its budget: as with bricks of the host's.
  Result<uint64_t> combine(DeviceHome& other, device::Combination combination,
                           const device::Store::NewMaterials* materials = nullptr);
  // As Store's. Block until they are done. Sums of a world that does not fit its budget: on the host, in parts.
  Result<device::Store::VoxelSums> voxel_sums(const Palette& palette);
  Result<device::Store::Comparison> compare(DeviceHome& other, std::span<const uint32_t, 512> looks);
  // Bricks of both worlds, group by group of pages: of those in which either has voxels. One of the two has a budget.
  // Errors: of reading; `use`'s.
  using UseBoth = std::function<Result<void>(const BrickMap& own, const BrickMap& others)>;
  Result<void> visit_beside(DeviceHome& other, const UseBoth& use);
  Result<void> visit_beside(const BrickMap& other, const UseBoth& use);  // without what is outside of the world
  // By a voxel, as Store's. Block until they are done. A world that does not fit its budget: as change_by_steps().
  Result<uint64_t> grow(uint32_t neighbours) { return morph(true, neighbours); }
  Result<uint64_t> erode(uint32_t neighbours) { return morph(false, neighbours); }
  // Of a world with a budget, whatever of it is there: by so many voxels, as one step of the history; and with bricks
  // that are the host's, whose materials are the world's. On the host, some pages after the other (in_parts.cpp).
  // Traffic over the bus: 8 bytes for each place of a brick in pages that are there, 516 for each brick that is not
  // full, and what changes as by write_bricks(). Host memory: about an eighth of the budget, one page at least, and 620
  // bytes for each brick that has changed beside pages that are still to come. Block until they are done. Errors:
  // out_of_bounds, those of write_bricks(), of a file's reading, of a flush; then what was done is taken back.
  Result<uint64_t> change_by_steps(bool grows, uint32_t neighbours, uint32_t steps);
  Result<uint64_t> combine(const BrickMap& other, device::Combination combination, const char* label = "combine");
  // Whether the budget has room for all of the world, what a change of all of it takes, about, and more bricks.
  Result<bool> fits_together(uint64_t more_bricks = 0);
  // As Store's. Block until they are done. Of a world that does not fit its budget: on the host, some pages after the
  // other, the first time for where parts are in them, 100 bytes for each part of a page; and once more to keep some.
  Result<std::vector<device::PartScratch::Part>> find_parts(uint32_t neighbours);
  Result<uint64_t> keep_parts(uint32_t neighbours, uint64_t most, uint64_t least);
  Result<Change> wait(uint64_t ticket);
  // Of what a call returned: its ticket, or its error.
  Result<Change> wait(const Result<uint64_t>& ticket) {
    if (!ticket) return tl::unexpected(ticket.error());
    return wait(*ticket);
  }

  struct State {
    device::Store::State store;  // its voxels, keys and bounds: of the whole world, also where a part of it is there
    uint64_t version = 0, history_length = 0, history_position = 0;
    device::Executor::Traffic traffic;
    uint64_t absent_keys = 0;  // of bricks that the file alone has
    // Stored bricks that only the history holds. `full_keys`: Store::MemoryUse's.
    uint64_t history_bricks(uint64_t full_keys) const {
      return store.bricks - store.retired - (store.keys - absent_keys - full_keys);
    }
  };
  Result<State> state();
  // As Store's. edit_times() waits for what was launched, and asks the device nothing more. Errors: device.
  void time_edits(bool on);
  Result<device::StepTimes> edit_times();
  Result<void> set_history_budget(uint64_t bytes);  // as Store's; of a world that a file follows, at the next follow()

  // A file that follows the world, as Document's: it has the world as it is now. `by_history`: it was written by all
  // that history() told last. What is over the history's budget goes now, unless memory or the device refuses: then it
  // goes at the next call. Errors: device.
  Result<void> follow(bool by_history);
  // The same of the budget. Errors: device; then no file follows either.
  Result<void> unfollow();
  // What a file lacks, told some at a time: the host has the records of half a million changes of bricks, and 75 MB of
  // bricks that are not full; or those of one step. First all records, then the rest. The world must neither change nor
  // go meanwhile. One thread at a time. Errors: device, out_of_memory. Traffic over the bus: the records of new steps;
  // 8 bytes for each of the 512 bricks of a region; 516 bytes for each brick of either that is not full of one
  // material, before and after.
  class Unsaved {
   public:
    Unsaved(Unsaved&&) noexcept;
    Unsaved& operator=(Unsaved&&) noexcept;
    ~Unsaved();
    bool moved = false;  // something has changed
    uint64_t kept = 0;   // records of the history, from its first one on, which the file has too
    Result<std::vector<UndoRecord>> all_records();                  // for who wants all of them in memory
    Result<io::SomeRecords> records();                              // the next of those after the ones kept
    uint64_t position() const;                                      // applied records
    std::vector<Int3> regions();                                    // of 8^3 bricks, each once, rising: outside of
                                                                    // them no voxel has changed
    Result<const BrickMap*> bricks(std::span<const Int3> regions);  // of some of them; until the next call

   private:
    friend DeviceHome;
    struct State;
    explicit Unsaved(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
  };
  // Of the file that follows. Blocks until all is done. The device is not asked if nothing has changed.
  Result<Unsaved> unsaved();
  // Of a new file: records and position alone.
  Result<Unsaved> history();
  // Steps that the file has and the history has not: dropped for the budget, or never read; each all records of one.
  // recall_older(): of the step before the oldest one, when none is applied; it is applied then, and can be undone.
  // redo_recalled(): of the step after the newest one, when all are applied; it is redone. Block until they are done.
  // Traffic: 5 or 516 bytes over the bus for each brick of the step, as it was before it or after it; once more on the
  // host. Errors: invalid_argument (steps are applied, or can be redone), out_of_bounds (of the world), out_of_memory,
  // full, device; then the history is as before.
  Result<void> recall_older(std::span<const UndoRecord> step);
  Result<uint64_t> redo_recalled(std::span<const UndoRecord> step);
  // The oldest records that have gone, since the world was made.
  Result<uint64_t> dropped_records();
  // Of a world whose file has a history of which it was given nothing: so many of the oldest have gone.
  void begin_after(uint64_t records);
  struct HistoryUse {
    uint64_t budget = 0, bytes = 0;  // steps that change no voxel take none
    uint64_t length = 0, position = 0, dropped = 0;
  };
  Result<HistoryUse> history_use();
  Result<uint64_t> version();  // of the world: changes made here
  // As Store's.
  Result<device::Store::MemoryUse> memory_use();
  Result<hashgrid::Stats> grid_stats();
  Result<void> reserve(uint32_t keys, uint32_t bricks);
  void grow_little();  // as Store's
  // For the pages of a world of which a part is there: whole bricks come, and others go, those with these keys. It is
  // no change of the world, and the history's steps must not hold what goes. exchange() returns when it is launched,
  // after the edits before it, for which it waits. exchanged() waits for what was launched so: to be called before the
  // next edit. Errors: as Store::put, of exchanged() too; then of the last exchanges some parts may be made, and others
  // not. The memory of kept pages must stay as it is until exchanged(), or the next exchange() has returned.
  Result<void> exchange(std::span<const SharedPage> coming, std::span<const uint32_t> going);
  Result<void> put_bricks(std::span<const BrickPut> bricks);  // as exchange(), of bricks that come, or go (none)
  std::shared_ptr<void> host_memory(size_t bytes);            // as Executor's, for pages that are to come,
  Result<void> open_copies();                                 // and this
  Result<void> exchanged();
  Result<bool> exchange_done();  // exchanged() has nothing to wait for
  // As Store's.
  Result<device::Store::Used> used();
  // Drops all steps, which a file that follows has: it has just been flushed. Errors: device.
  Result<void> forget_steps();
  Result<void> trim();
  // Materials of voxels, 0 outside of the world. Of a few it reads the bricks around them, too, and keeps those for the
  // next calls, until a change is launched: 33 KB. Traffic: 516 bytes over the bus for each brick that is read.
  // As Store's. Block until what was launched is done.
  Result<void> pack();
  Result<void> unpack();
  Result<bool> packed();  // errors: device
  // Materials of voxels, 0 outside of the world.
  Result<void> get_voxels(const int32_t* xyz, uint8_t* materials, uint64_t count);
  // As Store's.
  Result<void> read_box(const Box3& box, uint8_t* materials, device::Side side);
  Result<void> trace(size_t count, const device::Executor::FillRays& fill, const device::Executor::TakeHits& take);
  // One ray, as exact far from the world's origin as near it. No window moves for it.
  Result<RayHit> pick(const std::array<double, 3>& origin, const std::array<float, 3>& direction);
  Result<void> trace_there(const Ray* rays, size_t count, RayHit* hits);
  // As Executor's, of a CUDA stream.
  Result<void> wait_for(void* stream);
  Result<void> signal(void* stream);
  // As Store::publish(). `in_parts`: of a world with a budget what is there; else all of it comes.
  Result<const device::Store::Published*> publish(const device::Store::Frames& frames, bool in_parts = false);
  Result<void> recycle(const device::Store::Frames& frames);  // as Store's
  void set_frames(device::Store::AskFrames ask) { store_->set_frames(std::move(ask)); }
  bool shares() const { return store_->shares(); }
  // Of a world with a budget: what the window has of a box comes. Errors: of reading; out_of_memory.
  Result<void> prefetch(const Box3& box);
  // The keys of all bricks, in the window, sorted. If the world does not fit its budget: some pages after the other.
  Result<std::vector<uint32_t>> keys();
  // All bricks, made in `pool`. Traffic: 4 bytes a slot of the grid and 516 a brick that is not full over the bus.
  Result<BrickMap> bricks(const BrickPool& pool = BrickPool::loose());
  // In the window's coordinates, those with a voxel of one of the materials, and the six beside each: what tells the
  // faces of these voxels. Traffic: as bricks(), and those that are found once more. Memory: 9 bytes a brick of the
  // world, and what is found. With a budget and a file: some pages after the other, on the host, the first time all of
  // the window's, then those that may have changed; what is found stays there, and is refused, out_of_memory, if the
  // host's part for pages is less.
  Result<BrickMap> bricks_with(const std::array<bool, 256>& materials);

 private:
  // What was launched, and has no answer yet.
  struct Launched {
    uint64_t ticket;
    device::Store::Ticket store_ticket;
    int position;       // of the history after it: -1: undone, 1: redone, 0: it is a new step
    std::string label;  // of a new step
  };
  struct HomeStep {
    std::string label;
    uint64_t voxels = 0;  // that it changed, a voxel as often as its parts did
    bool stored = true;   // the store has a step of it: it changes voxels
    std::vector<MaterialChange> materials;
    uint64_t records = 1;    // of the file that it came from, or comes into
    bool continues = false;  // it belongs to the one before it, with which it is undone and redone
  };
  // The history's steps. Memory for those to come can be had before they are made.
  class StepList {
   public:
    size_t size() const { return all_.size() - gone_; }
    bool empty() const { return size() == 0; }
    HomeStep& operator[](size_t number) { return all_[gone_ + number]; }
    const HomeStep& operator[](size_t number) const { return all_[gone_ + number]; }
    HomeStep& back() { return all_.back(); }
    auto begin() const { return all_.begin() + std::ptrdiff_t(gone_); }
    auto end() const { return all_.end(); }
    void reserve_more(size_t count) {
      if (all_.capacity() - all_.size() < count) all_.reserve(2 * all_.size() + count);
    }
    void push_back(HomeStep step) { all_.push_back(std::move(step)); }
    void push_front(HomeStep step) { all_.insert(all_.begin() + std::ptrdiff_t(gone_), std::move(step)); }
    void pop_back() { all_.pop_back(); }
    void truncate(size_t count) { all_.erase(all_.begin() + std::ptrdiff_t(gone_ + count), all_.end()); }
    // Places of those that are gone are used again when they are half of all.
    void drop_front(size_t count) {
      for (; count > 0; --count) all_[gone_++] = {};
      if (gone_ <= all_.size() / 2) return;
      all_.erase(all_.begin(), all_.begin() + std::ptrdiff_t(gone_));
      gone_ = 0;
    }

   private:
    std::vector<HomeStep> all_;
    size_t gone_ = 0;
  };
  // A step as the file has it that follows the world: it changes these regions.
  struct FollowedStep {
    uint64_t records = 1;
    std::vector<Int3> regions;
  };
  struct Followed {
    std::vector<FollowedStep> steps;  // those of the file, from the history's first on
    uint64_t kept = 0, applied = 0;   // how many of them the history still has; and are applied in the file
    uint64_t version = 0;             // of the world, as the file has it
  };

  DeviceHome(std::unique_ptr<device::Store> store, uint32_t threads);
  Result<void> fill(const Content& content);
  using VisitHistory = std::function<Result<void>(io::HistorySide side, const io::HistoryVisit& visit)>;
  Result<void> make_history(uint64_t position, const VisitHistory& visit);
  Result<uint64_t> morph(bool grows, uint32_t neighbours);
  // What follows a change on the device needs memory of the host: these have it before, so that a change is made and
  // known, or not made.
  template <class Launch>
  Result<uint64_t> launch(int position, std::string label, const Launch& make);
  // All of the world, for `what` needs it. Nothing to do without a budget.
  Result<std::unique_lock<std::recursive_mutex>> all_there(bool to_change, const char* what);
  Result<void> read_voxels(const int32_t* xyz, uint8_t* materials, uint64_t count);
  Result<void> read_box_by_parts(const Box3& box, const Box3& part, uint8_t* materials);
  Result<void> get_held_voxels(const int32_t* xyz, uint8_t* materials, uint64_t count);
  Result<void> read_held_box(const Box3& box, uint8_t* materials, device::Side side);
  Result<void> read_box_outside(const Box3& box, uint8_t* materials);
  Result<void> read_outside(const int32_t* xyz, std::span<const uint64_t> which, uint8_t* materials);
  Result<void> prepare_change();
  uint64_t done(const device::Store::Change& change, std::string label);
  Result<uint64_t> write(const std::vector<uint32_t>& keys, const std::vector<BrickMask>& voxels,
                         const std::vector<BrickMaterials>& materials, const Edit& edit, std::string label);
  Result<BrickMap> bricks_of(std::span<const device::Store::Entry> entries, Int3 from, const BrickPool& pool);
  Result<void> hear(uint64_t ticket);
  Change settle(const device::Store::Change& change, int position, std::string label = {});
  uint64_t stored_steps_before(uint64_t number) const;
  // Bricks as they are after a change, each where its place in the world says.
  struct ReadBricks {
    static constexpr uint32_t kCount = 64;
    device::Store::Ticket after = 0;
    std::array<uint32_t, kCount> keys;
    std::array<BrickMaterials, kCount> materials;
  };
  static uint32_t place_in_cache(Int3 brick);
  bool read_before(Int3 voxel) const;  // its brick
  Result<void> read_around(Int3 brick);
  uint64_t records_before(const std::vector<FollowedStep>& steps, uint64_t number) const;
  class BricksRead;
  struct StepsRead;
  Result<StepsRead> read_steps(uint64_t first, std::deque<device::Store::StepRecords>& raw);
  Result<std::vector<UndoRecord>> records_of(StepsRead& read, bool after_others,
                                             std::vector<FollowedStep>* as_followed) const;
  Result<BrickMap> bricks_of_regions(std::span<const Int3> regions, BricksRead& bricks);
  void follow_drops();
  void drop_over_budget(uint64_t budget_after);
  void answer(uint64_t ticket, Result<Change> change);
  Result<void> launch_exchange(const device::Store::Bricks& coming, std::span<const uint32_t>& going);
  Result<uint64_t> exchange(bool forward);
  Result<uint64_t> exchange_part(bool forward);
  Result<Change> exchange_all_parts(bool forward);
  Result<std::optional<Change>> exchange_next(bool forward);
  uint64_t whole_steps(uint64_t number) const;
  Result<uint64_t> edit_there(const Edit& edit, const std::optional<Box3>& part);
  Result<uint64_t> set_there(const device::GivenVoxels& voxels);
  // Whether all of it is in one grid about the world's origin. Errors: unsupported.
  Result<void> check_one_grid();
  Result<uint64_t> set_in_window(const device::GivenVoxels& voxels, std::vector<std::vector<uint64_t>> groups);
  Result<uint64_t> write_box_part(const Box3& part, const uint8_t* materials, device::Side side);
  Result<void> trace_in_windows(std::span<const Ray> rays, std::span<RayHit> hits);
  Result<void> trace_in_window(std::span<const Ray> rays, std::span<RayHit> hits);
  // Parts of one step, until there is none.
  using NextPart = std::function<Result<std::optional<uint64_t>>(size_t number)>;
  Result<uint64_t> in_parts(const std::string& label, const NextPart& next_part);
  // For what needs all of a world that does not fit its budget (in_parts.cpp).
  struct PageGroups;
  struct BricksBefore;
  struct OtherBricks;
  struct PiecesFound;
  struct FloodFound;
  Result<std::vector<PageUse>> pages_in_use();
  Result<BrickMap> bricks_of_pages(std::span<const uint32_t> pages, bool keep, const BricksBefore* around);
  Result<BrickMap> read_wanted(std::span<const PageWanted> wanted, bool keep, std::vector<BrickPut> others);
  using UseGroup = std::function<Result<void>(const BrickMap& bricks)>;
  Result<void> read_in_groups(std::span<const PageUse> pages, const UseGroup& use);
  Result<BrickMap> bricks_in_parts(const std::array<bool, 256>& materials);
  Result<device::Store::VoxelSums> sums_in_parts(const Palette& palette);
  Result<std::vector<uint32_t>> keys_in_parts();
  Result<uint64_t> write_part(const PageGroups& groups, size_t number, const BrickMap& before, const BrickMap& after,
                              const char* label, BricksBefore* kept);
  // What groups there are, asked once the step has begun; and what the bricks of one's pages become.
  using BeginGroups = std::function<Result<PageGroups>()>;
  using BecomeGroup = std::function<Result<BrickMap>(std::span<const uint32_t> pages, const BrickMap& before)>;
  Result<uint64_t> change_groups(const char* label, const BeginGroups& begin, const BecomeGroup& become);
  Result<uint64_t> combine_in_parts(DeviceHome& other, device::Combination combination,
                                    const device::Store::NewMaterials* materials);
  Result<PiecesFound> find_pieces(uint32_t neighbours, bool with_materials);
  Result<std::vector<device::PartScratch::Part>> find_parts_in_parts(uint32_t neighbours);
  Result<uint64_t> keep_parts_in_parts(uint32_t neighbours, uint64_t most, uint64_t least);
  Result<ConnectedParts> add_flood_page(FloodFound& found, uint32_t page);
  Result<FloodFound> find_flood(Int3 voxel);
  Result<uint64_t> flood_in_parts(const Edit& edit);
  Result<OtherBricks> bricks_as_other(const device::Store::NewMaterials* materials);
  static OtherBricks as_other(const BrickMap& map, bool* outside);
  Result<void> visit_both(const OtherBricks& other, const UseBoth& use);
  uint64_t group_bytes() const;
  Result<uint64_t> combine_in_parts(const OtherBricks& other, device::Combination combination, const char* label);
  Result<uint64_t> exchange_own(const HomeStep& step, bool forward);
  Palette exchanged(const std::vector<MaterialChange>& changes, bool forward) const;
  void add_step(HomeStep step);
  HomeStep recalled(std::span<const UndoRecord> step, FollowedStep* as_followed) const;
  Result<void> close_step();
  Result<void> forget_redo();
  io::UnfinishedStep step_from_here(bool is_new) const;

  mutable std::mutex lock_;
  std::unique_ptr<device::Store> store_;
  std::optional<device::Store::Flattened> flattened_;
  Document* document_ = nullptr;
  uint32_t threads_;
  std::deque<Launched> launched_;
  // The last ones, each where its ticket says.
  static constexpr size_t kAnswers = 4096;
  struct Answered {
    uint64_t ticket = 0;
    std::optional<Result<Change>> change;
  };
  std::vector<Answered> answers_ = std::vector<Answered>(kAnswers);
  uint64_t last_ticket_ = 0;
  uint64_t version_offset_ = 0;                   // what the store's version is more than the world's, wrapping round
  uint64_t version_ = 0;                          // of the world, as far as heard
  Int3 origin_;                                   // of the window
  std::unique_ptr<ReadBricks> read_bricks_;       // once single voxels were asked for
  std::vector<device::Store::Ticket> exchanges_;  // that nobody has waited for
  std::unique_ptr<ResidentPages> pages_;          // of a world with a budget
  StepList steps_;
  uint64_t position_ = 0;
  uint64_t plain_from_ = 0;  // this step and those after it are the store's, and nothing else
  enum class Stroke : uint8_t { none, empty, begun };
  Stroke stroke_ = Stroke::none;                  // the step that begin_step() has begun
  std::string stroke_label_;                      // empty: that of its first edit
  uint64_t stroke_voxels_ = 0;                    // of its parts that the file has
  std::optional<io::UnfinishedStep> unfinished_;  // of a world with a budget: what it is in the middle of
  bool in_parts_ = false;                         // what comes next makes parts of one step
  bool continues_ = false;                        // the next step belongs to the one before it
  bool has_parts_ = false;                        // the history has, or had, steps that do
  uint64_t budget_ = 0;                           // of the history
  uint64_t dropped_ = 0;                          // steps of the history
  uint64_t store_dropped_ = 0, store_cut_ = 0;    // of the store's steps, as far as they are missing here
  std::optional<Followed> followed_;
  std::vector<FollowedStep> next_followed_;  // as they are once what unsaved() told is in the file
  std::vector<FollowedStep> written_;        // by history()
  uint64_t dropped_records_ = 0;
};

}  // namespace quarry::engine
