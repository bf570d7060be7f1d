// SPDX-License-Identifier: Apache-2.0
// page_cache.hpp - pages of a world file in host memory, as a device takes them: the level between the two.
//
//   frames want them ─────► one thread reads the file ─► others decode ─► memory that the device copies from ─► find()
//   cameras are near them ─► when nothing else is wanted     what nobody asks for leaves for it
//
// A page that is edited is forgotten: it is on the device, and the file's state of it is old. The way is Starfish's, in
// which copies and the work on what has come overlap (docs/literature.md).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "voxel/bricks/brick.hpp"
#include "voxel/io/quarry/store.hpp"

namespace quarry::engine {

// The bricks of a page, as lists that are sent to a device.
struct PageBricks {
  std::vector<uint32_t> full_keys;  // of bricks that one material fills
  std::vector<uint8_t> full;
  std::vector<uint32_t> keys;                          // of all others, with their materials
  std::vector<std::span<const BrickMaterials>> parts;  // in this order
  bool kept = true;                                    // the materials are in memory that a device copies from as it is
  std::shared_ptr<void> owner;                         // of their memory
};
using SharedPage = std::shared_ptr<const PageBricks>;

// Memory of one device's host, in pieces of 128 bricks. Any threads.
class PageMemory : public std::enable_shared_from_this<PageMemory> {
 public:
  // Memory that a device copies from as it is, as long as a handle lives; null: there is none. Called by any thread.
  using Allocate = std::function<std::shared_ptr<void>(size_t bytes)>;
  PageMemory(uint64_t most_bytes, Allocate allocate);
  // Room for so many bricks, in as few parts as there are. Nothing: there is no room.
  struct Room {
    std::vector<std::span<BrickMaterials>> parts;
    std::shared_ptr<void> owner;
  };
  std::optional<Room> take(size_t bricks);
  uint64_t most_bytes() const { return most_bytes_; }
  uint64_t used_bytes() const;  // that somebody has

 private:
  static constexpr size_t kPieceBricks = 128, kBlockPieces = 64;  // a block: 4 MiB
  struct Block {
    std::shared_ptr<void> memory;
    std::vector<bool> taken;
    size_t free = 0;
  };
  struct Run {
    size_t block, first, count;  // pieces
  };
  bool grow(size_t wanted);
  void give_back(std::span<const Run> runs);

  const uint64_t most_bytes_;
  const Allocate allocate_;
  std::mutex grow_lock_;  // first; it is held while memory is had, which takes long
  mutable std::mutex lock_;
  std::vector<Block> blocks_;
  size_t free_ = 0;  // pieces
  bool no_more_ = false;
};

// Any number of threads.
class PageCache {
 public:
  // `most_bytes`: of voxels; keys come on top, 4 bytes a brick. `threads`: that read at once; 0: all.
  PageCache(uint64_t most_bytes, PageMemory::Allocate allocate, uint32_t threads);
  ~PageCache();
  PageCache(const PageCache&) = delete;
  PageCache& operator=(const PageCache&) = delete;

  // From here until let_go() pages are those of this file's first volume: of the world's grid, whose brick (0, 0, 0) is
  // the volume's brick `origin`. Nothing is read before it is wanted.
  void follow(io::Store& file, Int3 origin = {});
  void let_go();  // returns when nothing reads the file; nothing is there any more
  void pause();   // does the same, and pages stay; follow() goes on, with a file that has the same
  // The file has got another state of a page, or will have: what is being read of it is old.
  void forget(uint32_t page);

  // A page, if it is there. Does not block.
  SharedPage find(uint32_t page) const;
  // Reads pages now, before what is read in the background, with all threads, of which `most_waiting` are in memory
  // before `put` gets them, in their order. They stay here, if there is room. Errors: those of Store::read_pieces, of
  // `put`.
  using Put = std::function<Result<void>(size_t number, SharedPage page)>;
  Result<void> read(io::Store& file, std::span<const uint32_t> pages, const Put& put, size_t most_waiting);
  // To be read in the background from here on, in this order: what frames want, then what is near their cameras.
  // Nothing of either leaves for what is near. Returns at once. Errors: out_of_memory (no thread can be had).
  Result<void> want(std::vector<uint32_t> wanted, std::vector<uint32_t> near);
  // What reading in the background has failed with since it was asked last. A page that failed is not read again in
  // the background before the file has another state of it.
  Result<void> failure();
  bool failed(uint32_t page) const;

  struct Counters {
    uint64_t most_bytes = 0, bytes = 0;  // of voxels
    uint64_t pages = 0;                  // that are there
    uint64_t read = 0;                   // from the file, so far
  };
  Counters counters() const;
  uint64_t most_bytes() const { return memory_->most_bytes(); }

 private:
  struct Entry {
    SharedPage page;
    uint64_t asked = 0;  // see Wishes
  };
  // Pages of a list, and when they were asked for: what was asked for before that may leave for them.
  struct Wishes {
    std::vector<uint32_t> pages;
    uint64_t asked = 0;
  };
  class ReaderHeld;
  uint64_t state_of(uint32_t page) const;
  void run();
  Wishes next_batch();
  void read_batch(io::Store& file, const Wishes& batch);
  Result<void> read_from(io::Store& file, const Wishes& wishes, bool all, const Put& put, const Progress& progress,
                         size_t most_waiting);
  SharedPage make_page(const std::vector<io::ChunkRead>& chunks, Int3 origin, uint64_t asked, bool all);
  bool let_one_leave(uint64_t asked);

  const std::shared_ptr<PageMemory> memory_;
  const uint32_t threads_;
  mutable std::mutex lock_;
  std::condition_variable changed_;
  io::Store* file_ = nullptr;
  Int3 origin_;
  bool stop_ = false, reading_ = false;
  uint32_t holds_ = 0;               // of those for whom the thread reads nothing now
  std::atomic<bool> cancel_{false};  // there are some
  std::unordered_map<uint32_t, Entry> entries_;
  std::unordered_map<uint32_t, uint64_t> states_;  // of pages that were forgotten: how often
  std::unordered_set<uint32_t> failed_;
  Wishes wanted_, near_;
  uint64_t asked_ = 0;
  Result<void> failure_;
  uint64_t read_ = 0;
  std::thread thread_;  // from the first want() on
};

}  // namespace quarry::engine
