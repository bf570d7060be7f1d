// SPDX-License-Identifier: Apache-2.0
// resident_pages.hpp - a world that is edited on a device, or by host threads as on one, and larger than its part of
// that memory: which of its pages are there. The file that follows the world (followed_file.hpp) has the others.
//
//   what a call needs ─► pages that are not there ─► the host's memory, else the file's chunks ─► the device's memory
//   what frames want  ─► read behind them ─────────────┘  pages that were needed longest ago leave for them ▲
//                        what has changed since is brought to the file first, and the history with it
//
// A page is 128^3 voxels, eight chunks of the file. Of one that has left 300 bytes of what the file has of it are in
// memory, its coarse level (engine/sharing/coarse_level.hpp), and its bricks as long as the host's part has room
// (engine/pages/page_cache.hpp). The history of a world in parts lives in its file: what the device has of it are the
// steps since pages left last; undo takes older ones from the file. The way is Starfish's, of a table in parts of which
// a budget holds some (docs/literature.md).
//
// One grid holds 16384 x 8192 x 16384 voxels. Of a world that is larger it holds a *window*, whose voxel (0, 0, 0) is
// the world's voxel origin(); what is outside of it is in the file alone. Pages, keys and boxes here are the window's
// unless it is said that they are the world's.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "engine/pages/page_cache.hpp"
#include "engine/sharing/residency.hpp"
#include "engine/sharing/world.hpp"
#include "voxel/bricks/coords.hpp"
#include "voxel/bricks/map.hpp"
#include "voxel/device/store.hpp"
#include "voxel/io/quarry/store.hpp"
#include "voxel/worlds/edit.hpp"
#include "voxel/worlds/edit_shape.hpp"

namespace quarry::engine {

class AbsentPages;  // page_rays.hpp
class DeviceHome;

// Of a change of a brick; and of an edit of which nothing is known but its bricks, for each.
constexpr uint64_t kRecordBytes = 12, kChangeBytes = kKeyBytes + kVoxelBytes + kRecordBytes;

// What a page has.
struct PageUse {
  uint32_t number = 0;
  uint64_t bricks = 0, bytes = 0;  // of the device's memory, when it is there
  Box3 voxels;                     // a box of them
  bool held = false;               // it may have changed since the file has it
};

// Bricks of a page; `all` of them, or those with these keys, which rise.
struct PageWanted {
  uint32_t page = 0;
  bool all = false;
  std::vector<uint32_t> keys;
};

// Any number of threads, one at a time: each call that uses pages holds them for as long as it does.
class ResidentPages {
 public:
  // Of a new world. `host_bytes`: of the host's memory for pages that have been read; 0: an eighth of the budget, and
  // 32 MiB at least. `threads`: as PageCache's. Errors: invalid_argument (a budget that has no room for some pages
  // beside what a world takes without bricks; the message says the least one), device.
  static Result<std::unique_ptr<ResidentPages>> create(DeviceHome& home, uint64_t budget_bytes, uint64_t host_bytes,
                                                       uint32_t threads);
  ResidentPages(const ResidentPages&) = delete;
  ResidentPages& operator=(const ResidentPages&) = delete;

  // From here until let_go() the file that follows the world has what is not there. `flush` brings it up to date, and
  // tells it what step is under way.
  // `there`: the world has all that the file has; else it has nothing yet, and every page is absent: then the window is
  // where the file's voxels are. Reads all of the file's chunks once, on all threads, and keeps no brick; of pages
  // outside of the window 64 bytes each. Errors: those of io::Store; out_of_bounds (`there`, and a brick is not).
  using Flush = std::function<Result<void>(const std::optional<io::UnfinishedStep>& unfinished)>;
  // A part of a step that only the file has. Back: it is made the device's oldest one, which is applied. Forth: it is
  // redone, if it belongs to the step of the one before it. Nothing: there is none. It tells how many voxels changed.
  using Recall = std::function<Result<std::optional<uint64_t>>(bool forward)>;
  Result<void> follow(io::Store& file, Flush flush, Recall recall, bool there, const Progress& progress);
  void let_go();
  // The file is not read until it is replaced by one that has the same.
  void pause();
  void go_on();
  // What the file has got of some chunks, once it has it: what is not there is counted by this.
  void note_written(std::span<const Int3> chunks, const BrickMap& bricks);  // one thread at a time
  void forget_written() { written_.clear(); }                               // the file has got nothing
  void keep_written();                                                      // the file has it

  // ---- The window

  Int3 origin() const { return origin_; }
  // Whether the grid of a world about its origin holds all of these.
  static bool one_grid_holds(std::span<const io::ChunkBricks> chunks);
  bool has_elsewhere() const { return !elsewhere_.empty(); }  // voxels outside of the window
  // Of voxels of the world: all of them are in the window.
  bool holds(const Box3& voxels) const;
  // Moves the window, if it must, so that it holds this box of the world's voxels, which is one of windows_of(). What
  // has changed is brought to the file first, and the history is there from then on. Errors: out_of_bounds (beyond
  // kSceneMin and kSceneMax); of a flush, of reading, of the device; then it has not moved, though pages may have left.
  Result<void> show(const Box3& voxels);
  // A box of the world's voxels in parts that a window holds, whose corners inside of it are at pages; it, if that fits
  // one. `creates`: also where nothing is; else what the window has is the first one.
  std::vector<Box3> windows_of(const Box3& voxels, bool creates) const;
  // Moves the window to around an eye, or to where voxels are nearest to it, if some are elsewhere and it is not well
  // inside. True: it has moved. Errors: as show().
  Result<bool> look_from(const std::array<double, 3>& eye);
  bool sees_from(const std::array<double, 3>& eye) const;  // look_from() would stay
  // What some chunks of the world's file have, outside of the window, in the world's coordinates. Errors: of reading.
  Result<BrickMap> read_chunks(std::span<const Int3> chunks);

  // Pages stay as they are as long as it is there.
  using Stay = std::unique_lock<std::recursive_mutex>;
  [[nodiscard]] Stay stay() { return Stay(lock_); }
  // What a call is about to read, or to change, comes; nothing of it leaves before `stay` goes. `bytes`: of the
  // device's memory that the call takes itself. Errors: out_of_memory (it does not fit the budget, with the numbers; or
  // no file has what would leave), those of io::Store, of a flush, of the device; then nothing has changed, though
  // pages may have come and gone.
  enum class Use : uint8_t { read, change };
  Result<Stay> box(const Box3& voxels, Use use);
  Result<Stay> shape(const Edit& edit, const Box3& part);
  Result<Stay> voxels(const int32_t* xyz, uint64_t count, Use use);
  // What a call changes, in parts, each of which fits the budget, or is one page: boxes of whole pages that have all
  // pages which it meets. One: it is all of it, whatever it says.
  Result<std::vector<Box3>> parts_of(const Edit& edit);
  std::vector<Box3> parts_of(const Box3& voxels);
  // Of a list of voxels, all in the world: the numbers of each part's voxels in it. None: it is one part.
  std::vector<std::vector<uint64_t>> parts_of(const int32_t* xyz, uint64_t count);
  // Errors: of reading, of the device. As Recall.
  Result<std::optional<uint64_t>> recall(bool forward);
  Result<Stay> bricks(std::span<const BrickPut> puts);  // to change them
  // Of a step that the file has: the bricks before it, or those after it, are made, and the others are there.
  Result<Stay> records(std::span<const UndoRecord> step, bool before);
  Result<Stay> pages(std::vector<uint32_t> numbers);  // to read them
  Result<Stay> all(Use use, const char* what);        // which needs all of the world
  AbsentPages absent();                               // as long as they stay

  // For what needs all of a world that does not fit (in_parts.cpp). There is room for all of it, what a change of all
  // of it takes, about, and more bricks. Errors: device.
  Result<bool> fits_together(uint64_t more_bricks);
  uint64_t most_bytes() const { return most_bytes_; }  // of the device's memory, for bricks that are there, and steps
  uint64_t host_bytes() const { return cache_.most_bytes(); }  // of the host's memory, for pages
  bool has_file();  // which has what leaves; so the window can be elsewhere, too
  // The file has all that the world has; steps that the device had are the file's alone, a step that has begun goes on.
  // Errors: of a flush, device.
  Result<void> bring_to_file();
  // The pages with voxels, rising, as the file has them. known(): and those of which it is not known; their bytes are
  // the most then. Errors: as bring_to_file(), which it may need.
  std::vector<PageUse> in_use();
  Result<std::vector<PageUse>> known();
  // Those of pages that are not there are read, from the host's memory or the file, and added; the keys of others that
  // may be there are listed, also those of pages of which the file knows nothing. `keep`: whole pages stay in the
  // host's memory, if that has room: they come to the device next. Errors: of reading.
  Result<void> read_absent(std::span<const PageWanted> wanted, bool keep, std::vector<BrickPut>& bricks,
                           std::vector<uint32_t>& there);
  // Bricks with a voxel of some materials, and those beside them, as DeviceHome::bricks_with() found them last.
  struct Glowing {
    std::array<bool, 256> materials{};
    std::unordered_map<uint32_t, std::vector<BrickPut>> bricks;  // by page; of each page that was looked at
    std::unordered_map<uint32_t, SharedBrick> beside;            // by key; none: there is none
    std::unordered_set<uint32_t> changed;                        // pages, since then, besides those that are held
  };
  Glowing& glowing() { return glowing_; }  // as long as pages stay

  // Frames that may still read what leaves; asked when room is wanted. None: some may be recorded that read what was
  // published last, whatever is done. `in_rounds`: the world is published again before any is recorded.
  using Frames = std::function<std::optional<device::Store::Frames>(bool in_rounds)>;
  void set_frames(Frames frames) { frames_ = std::move(frames); }

  // Pictures of what is there. Residency says which pages frames have come to; it is told what comes and goes, and
  // frames see that from the next publish on (SharedWorld). Null: all is there. Errors: those of Residency::create.
  Result<Residency*> shown(Device& device);
  bool lacks_some();  // some pages are absent
  // Brings the absent pages that a picture has come to whose commands are done; for pictures that are made again until
  // they miss nothing. Errors: of reading.
  Result<PagesBrought> bring_reached();
  // Brings pages that frames up to `completed` have come to, the nearest first, about `most_bytes` of them, one at
  // least, as far as the host's memory has them; the others are read behind it, and those near the cameras. Others
  // leave for them that are farther away, or that no frame has come to lately. A page of which a brick is smaller than
  // half a pixel stays coarse, as does one that cannot be read: that is said once. Frames that may still see what has
  // left keep its memory: then the rest comes with a later call. Errors: of reading, of the device; out_of_memory.
  struct Streamed {
    uint64_t brought = 0, left = 0;  // pages
    uint64_t bytes = 0;              // of the device's memory, of those that came
    uint64_t missing = 0;            // pages that these frames want and that are not there yet
  };
  Result<Streamed> stream(uint64_t completed, uint64_t most_bytes);

  using Waits = std::array<uint64_t, 16>;
  struct Counters {
    uint64_t budget_bytes = 0;
    uint64_t pages = 0, absent = 0;  // that have voxels; that are not there
    uint64_t brought = 0, left = 0;  // pages so far
    uint64_t flushes = 0;            // because pages had to leave
    uint64_t from_host = 0;          // of those that were brought, by memory of the host's that had them
    PageCache::Counters host;
    uint64_t voxels = 0, bricks = 0;  // of the absent ones
    Box3 bounds;                      // of those in the window
    Box3 elsewhere;                   // of the others, in the world's coordinates
    // Pages that frames wanted, by how long that took: below 1 ms, 2 ms, 4 ms and so on; the last has all others.
    Waits waits{};
    Waits host_waits{};  // of these, such as were in the host's memory when they were wanted first
    double longest_host_wait_ms = 0;
  };
  Counters counters();
  // Until then the device may have bricks of pages that are counted as absent: what it had no memory to remove when an
  // exchange failed. Waits for exchanges. Errors: of the device; then it may be called again.
  Result<void> make_whole();

 private:
  // What the file has of a chunk.
  struct Chunk {
    uint64_t voxels = 0;
    uint32_t bricks = 0, full = 0;
    Box3 bounds;  // of the voxels
    void add(Int3 at, const BrickView& brick, uint8_t full, CoarseCells& coarse);
  };
  // What the file has of a page, wherever that is: bounds are the page's own, and so are the cells' numbers.
  struct Summary {
    std::array<Chunk, 8> chunks;
    std::vector<std::pair<uint8_t, CoarseCell>> cells;
  };
  // Of a page outside of the window; its bounds are the world's.
  struct Elsewhere {
    uint64_t voxels = 0;
    uint32_t bricks = 0;
    Box3 bounds;
    std::unique_ptr<Summary> summary;  // null: the file is to be asked
  };
  struct Page {
    std::array<Chunk, 8> chunks;
    uint64_t round = 0;   // when it was needed last
    bool absent = false;  // else it is there
    bool held = false;    // a step of the device's history may have changed it, or what has changed is not in the file
    std::optional<std::chrono::steady_clock::time_point> wanted;  // by frames, since then
    bool found = false;                                           // the host's memory had it then
    uint64_t bricks() const;
    uint64_t bytes() const;
  };
  // Of a chunk, as in a Summary; cells are those of the page at the origin.
  struct Written {
    Int3 at;  // in the world
    Chunk chunk;
    CoarseCells coarse;
  };

  void put_chunk(const Written& written);
  void put_elsewhere(const Written& written);
  void put_page(Int3 page, const Summary& summary);
  void put_page_elsewhere(uint32_t number, const Page& page, bool keeps);
  bool has_chunk(Int3 chunk) const;
  Result<void> choose_window(io::Store& file);
  Result<Written> summary_of(const io::PackedChunk& packed) const;
  Result<void> move_to(Int3 origin);
  Result<void> move_window(Int3 origin);
  std::array<int32_t, 3> nearest_to(const std::array<double, 3>& eye) const;
  void forget_pages();
  void note_elsewhere();
  void add_box(const Box3& voxels, std::vector<uint32_t>& numbers) const;
  Result<Stay> need(std::vector<uint32_t> numbers, Use use, uint64_t bytes);
  Result<void> make_room(uint64_t bytes);
  Result<void> flush_and_forget();
  std::vector<uint32_t> oldest(uint64_t bytes) const;
  void note_left(std::span<const uint32_t> leaving);
  Result<void> let_leave(uint64_t bytes);
  std::vector<uint32_t> keys_of(std::span<const uint32_t> pages) const;
  struct Coming {
    uint32_t number = 0;
    SharedPage page;  // of the host's memory; null: it is read from the file
  };
  Result<void> bring(std::span<const Coming> coming, std::span<const uint32_t> leaving);
  std::vector<uint32_t> near_eye(uint64_t most_bytes) const;
  Result<void> read_behind(std::span<const uint32_t> wanted);
  void begin_change(Page& page, uint32_t number);
  void give_up_exchange();
  Result<void> remove_torn();
  Result<void> settle();
  uint64_t there_bytes() const;  // of the pages that are there, as the file has them
  Result<uint64_t> used_bytes();
  void merge_seen(Residency::Reached seen);
  // What an edit needs in a box.
  struct Meets {
    std::vector<uint32_t> pages;
    uint64_t bytes = 0;  // of the device's memory, that the edit takes itself
  };
  Meets meets(const Edit& edit, const EditShape& shape, const Box3& box) const;
  using MeetsIn = std::function<Meets(const Box3& box)>;
  std::vector<Box3> parts_of(const MeetsIn& meets) const;
  void halve(const MeetsIn& meets, const Box3& box, std::vector<Box3>& parts) const;
  uint64_t bytes_of(std::span<const uint32_t> numbers) const;
  uint64_t known_bricks(std::span<const uint32_t> numbers) const;

  ResidentPages(DeviceHome& home, uint64_t budget_bytes, uint64_t most_bytes, uint64_t host_bytes, uint32_t threads);

  DeviceHome* home_;
  uint64_t budget_bytes_;
  uint64_t most_bytes_;  // of these for bricks that are there, and steps
  std::recursive_mutex lock_;
  io::Store* file_ = nullptr;
  Flush flush_;
  Recall recall_;
  PageCache cache_;
  std::vector<SharedPage> sent_;              // of what settle() waits for, until then as they are
  std::unordered_map<uint32_t, Page> pages_;  // by page_of(); those that are not here are there, and empty in the file
  std::vector<Written> written_;
  CoarseLevel coarse_;  // of what the file has
  Glowing glowing_;
  Frames frames_;
  std::unique_ptr<Residency> residency_;  // from the first picture on that lacks a page
  bool bounds_known_ = false;             // of `residency_`
  Residency::Reached seen_;               // by the last frames of which it is known
  std::vector<uint32_t> under_way_;       // pages that came or went with what settle() waits for
  std::vector<uint32_t> torn_;            // absent pages of which the device may have bricks that it could not remove
  std::vector<uint32_t> waiting_;         // pages with a time since when they are wanted, as of the last stream()
  Waits waits_{}, host_waits_{};
  double longest_host_wait_ms_ = 0;
  std::optional<uint32_t> near_page_;  // with the eye, when near_ was found
  std::vector<uint32_t> near_;         // absent pages around it, the nearest first
  Int3 origin_;                        // of the window, in voxels of the world; of pages
  bool wide_ = false;  // the page at the window's upper corner, of which a brick has no key, counts as outside
  std::map<Int3, Elsewhere> elsewhere_;  // by the world's page
  Box3 world_bounds_;                    // of all voxels, as of the last window
  uint64_t elsewhere_voxels_ = 0, elsewhere_bricks_ = 0;
  Box3 elsewhere_bounds_;
  size_t summaries_ = 0;  // that are kept
  uint64_t round_ = 0;
  bool in_rounds_ = false;       // see Frames
  bool unknown_ = false;         // pages that are not in `pages_` may have voxels, until the file knows them
  uint64_t expected_bytes_ = 0;  // in use at most, as far as known without asking the device
  uint64_t steps_bytes_ = 0;     // what it had last time that only steps have: bricks before them, records
  bool edited_ = false;          // since then
  uint64_t brought_ = 0, left_ = 0, flushes_ = 0, from_host_ = 0;
};

}  // namespace quarry::engine
