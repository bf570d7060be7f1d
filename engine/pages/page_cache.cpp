// SPDX-License-Identifier: Apache-2.0
// page_cache.cpp - memory in pieces, one thread that reads what is wanted, and what leaves for it.
#include "engine/pages/page_cache.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/parallel.hpp"
#include "engine/sharing/residency.hpp"
#include "voxel/io/quarry/codec.hpp"

namespace quarry::engine {
namespace {

constexpr size_t kBatchPages = 16;  // are read before new wishes are looked at
constexpr size_t kBrickBytes = sizeof(BrickMaterials);

}  // namespace

// ---- Memory

PageMemory::PageMemory(uint64_t most_bytes, Allocate allocate)
    : most_bytes_(most_bytes), allocate_(std::move(allocate)) {}

uint64_t PageMemory::used_bytes() const {
  const std::lock_guard hold(lock_);
  return (blocks_.size() * kBlockPieces - free_) * kPieceBricks * kBrickBytes;
}

bool PageMemory::grow(size_t wanted) {
  constexpr uint64_t kBlockBytes = kBlockPieces * kPieceBricks * kBrickBytes;
  const std::lock_guard alone(grow_lock_);
  {
    const std::lock_guard hold(lock_);
    if (free_ >= wanted) return true;
    if (no_more_ || (blocks_.size() + 1) * kBlockBytes > std::max(most_bytes_, kBlockBytes)) return false;
  }
  std::shared_ptr<void> memory = allocate_(kBlockBytes);
  const std::lock_guard hold(lock_);
  no_more_ = !memory;
  if (no_more_) return false;
  blocks_.push_back({std::move(memory), std::vector<bool>(kBlockPieces, false), kBlockPieces});
  free_ += kBlockPieces;
  return true;
}

std::optional<PageMemory::Room> PageMemory::take(size_t bricks) {
  size_t wanted = (bricks + kPieceBricks - 1) / kPieceBricks;
  std::unique_lock hold(lock_);
  while (free_ < wanted) {
    hold.unlock();
    if (!grow(wanted)) return std::nullopt;
    hold.lock();
  }
  Room room;
  std::vector<Run> runs;
  for (size_t number = 0; wanted; ++number) {
    Block& block = blocks_[number];
    for (size_t first = 0; wanted && block.free && first < kBlockPieces; ++first) {
      if (block.taken[first]) continue;
      size_t end = first;
      for (; end < kBlockPieces && end - first < wanted && !block.taken[end]; ++end) block.taken[end] = true;
      const size_t count = end - first, its = std::min(bricks, count * kPieceBricks);
      block.free -= count;
      free_ -= count;
      wanted -= count;
      bricks -= its;
      runs.push_back({number, first, count});
      room.parts.emplace_back(static_cast<BrickMaterials*>(block.memory.get()) + first * kPieceBricks, its);
      first = end - 1;
    }
  }
  room.owner = std::shared_ptr<void>(
      this, [memory = shared_from_this(), runs = std::move(runs)](void*) { memory->give_back(runs); });
  return room;
}

void PageMemory::give_back(std::span<const Run> runs) {
  const std::lock_guard hold(lock_);
  for (const Run& run : runs) {
    Block& block = blocks_[run.block];
    for (size_t i = 0; i < run.count; ++i) block.taken[run.first + i] = false;
    block.free += run.count;
    free_ += run.count;
  }
}

// ---- What is there

// While it lives: what the thread reads ends soon, and it begins nothing.
class PageCache::ReaderHeld {
 public:
  explicit ReaderHeld(PageCache& cache) : cache_(cache) {
    const std::lock_guard hold(cache_.lock_);
    ++cache_.holds_;
    cache_.cancel_ = true;
  }
  ~ReaderHeld() {
    const std::lock_guard hold(cache_.lock_);
    --cache_.holds_;
    cache_.cancel_ = cache_.holds_ > 0;
    cache_.changed_.notify_all();
  }
  ReaderHeld(const ReaderHeld&) = delete;
  ReaderHeld& operator=(const ReaderHeld&) = delete;

 private:
  PageCache& cache_;
};

PageCache::PageCache(uint64_t most_bytes, PageMemory::Allocate allocate, uint32_t threads)
    : memory_(std::make_shared<PageMemory>(most_bytes, std::move(allocate))), threads_(threads) {}

PageCache::~PageCache() {
  let_go();
  {
    const std::lock_guard hold(lock_);
    stop_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void PageCache::follow(io::Store& file, Int3 origin) {
  const std::lock_guard hold(lock_);
  file_ = &file;
  origin_ = origin;
}

void PageCache::let_go() {
  pause();
  const std::lock_guard hold(lock_);
  entries_.clear();
  states_.clear();
  failed_.clear();
  failure_ = {};
}

void PageCache::pause() {
  const ReaderHeld held(*this);
  std::unique_lock hold(lock_);
  file_ = nullptr;
  wanted_.pages.clear();
  near_.pages.clear();
  changed_.wait(hold, [this] { return !reading_; });
}

void PageCache::forget(uint32_t page) {
  const std::lock_guard hold(lock_);
  entries_.erase(page);
  failed_.erase(page);
  ++states_[page];
}

SharedPage PageCache::find(uint32_t page) const {
  const std::lock_guard hold(lock_);
  const auto found = entries_.find(page);
  return found == entries_.end() ? nullptr : found->second.page;
}

bool PageCache::failed(uint32_t page) const {
  const std::lock_guard hold(lock_);
  return failed_.contains(page);
}

Result<void> PageCache::failure() {
  const std::lock_guard hold(lock_);
  return std::exchange(failure_, Result<void>());
}

PageCache::Counters PageCache::counters() const {
  const std::lock_guard hold(lock_);
  return {memory_->most_bytes(), memory_->used_bytes(), entries_.size(), read_};
}

// Under the lock.
uint64_t PageCache::state_of(uint32_t page) const {
  const auto forgotten = states_.find(page);
  return forgotten == states_.end() ? 0 : forgotten->second;
}

// The one that was asked for longest ago, if that was before `asked`.
bool PageCache::let_one_leave(uint64_t asked) {
  const std::lock_guard hold(lock_);
  const auto oldest = std::ranges::min_element(entries_, {}, [](const auto& entry) { return entry.second.asked; });
  if (oldest == entries_.end() || oldest->second.asked >= asked) return false;
  entries_.erase(oldest);
  return true;
}

// ---- Reading

// None, if there is no room for it and not `all` pages are needed.
SharedPage PageCache::make_page(const std::vector<io::ChunkRead>& chunks, Int3 origin, uint64_t asked, bool all) {
  auto page = std::make_shared<PageBricks>();
  std::vector<const SharedBrick*> bricks;
  for (const io::ChunkRead& chunk : chunks)
    for (const BrickPut& put : chunk.bricks) {
      if (const uint8_t material = put.value.material()) {
        page->full_keys.push_back(brick_key(put.brick - origin));
        page->full.push_back(material);
      } else {
        page->keys.push_back(brick_key(put.brick - origin));
        bricks.push_back(&put.value);
      }
    }
  if (bricks.empty()) return page;
  std::optional<PageMemory::Room> room = memory_->take(bricks.size());
  while (!room && let_one_leave(asked)) room = memory_->take(bricks.size());
  if (!room) {
    if (!all) return nullptr;
    auto own = std::make_shared<std::vector<BrickMaterials>>(bricks.size());
    room = PageMemory::Room{{std::span(*own)}, own};
    page->kept = false;
  }
  auto brick = bricks.begin();
  for (const std::span<BrickMaterials> part : room->parts) {
    for (BrickMaterials& to : part) to = (**brick++)->materials;
    page->parts.emplace_back(part);
  }
  page->owner = std::move(room->owner);
  return page;
}

Result<void> PageCache::read_from(io::Store& file, const Wishes& wishes, bool all, const Put& put,
                                  const Progress& progress, size_t most_waiting) {
  std::vector<std::vector<io::ChunkBox>> pieces;
  std::vector<uint64_t> states;
  Int3 origin;
  {
    const std::lock_guard hold(lock_);
    origin = origin_;
    for (const uint32_t number : wishes.pages) {
      const Box3 voxels = voxels_of_page(number);
      pieces.push_back({{0, chunks_of({brick_of(voxels.min) + origin, brick_of(voxels.max) + origin})}});
      states.push_back(state_of(number));
    }
  }
  std::vector<SharedPage> made(pieces.size());
  const auto take = [&](size_t i, std::vector<io::ChunkRead>& chunks) -> Result<void> {
    made[i] = make_page(chunks, origin, wishes.asked, all);
    return {};
  };
  const auto put_one = [&](size_t i) -> Result<void> {
    SharedPage page = std::exchange(made[i], nullptr);
    {
      const uint32_t number = wishes.pages[i];
      const std::lock_guard hold(lock_);
      ++read_;
      failed_.erase(number);
      if (states[i] == state_of(number) && page && page->kept) entries_[number] = {page, wishes.asked};
    }
    return put ? put(i, std::move(page)) : Result<void>();
  };
  return file.read_pieces(pieces, {take, put_one}, progress, most_waiting);
}

Result<void> PageCache::read(io::Store& file, std::span<const uint32_t> pages, const Put& put, size_t most_waiting) {
  Wishes now{{pages.begin(), pages.end()}, 0};
  {
    const std::lock_guard hold(lock_);
    now.asked = asked_;
  }
  const ReaderHeld held(*this);
  return read_from(file, now, true, put, {}, most_waiting);
}

Result<void> PageCache::want(std::vector<uint32_t> wanted, std::vector<uint32_t> near) {
  const std::lock_guard hold(lock_);
  if (!file_) return {};
  asked_ += 2;
  wanted_ = {std::move(wanted), asked_};
  near_ = {std::move(near), asked_ - 1};
  for (const Wishes* wishes : {&near_, &wanted_})
    for (const uint32_t number : wishes->pages)
      if (const auto entry = entries_.find(number); entry != entries_.end()) entry->second.asked = wishes->asked;
  changed_.notify_all();
  if (thread_.joinable()) return {};
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    return fail(ErrorCode::out_of_memory, "no thread to read the file's pages with");
  }
  return {};
}

// Of what is not there yet, in the order of the wishes.
PageCache::Wishes PageCache::next_batch() {
  for (Wishes* wishes : {&wanted_, &near_}) {
    std::erase_if(wishes->pages, [&](uint32_t page) { return entries_.contains(page) || failed_.contains(page); });
    if (wishes->pages.empty()) continue;
    const auto end = wishes->pages.begin() + std::ptrdiff_t(std::min(wishes->pages.size(), kBatchPages));
    return {{wishes->pages.begin(), end}, wishes->asked};
  }
  return {};
}

// A page that cannot be read lets the others come. Where there is no room for one, nothing more is read until it is
// wanted again.
void PageCache::read_batch(io::Store& file, const Wishes& batch) {
  bool room = true;
  const Put put = [&](size_t, const SharedPage& page) -> Result<void> {
    room &= page != nullptr;
    return {};
  };
  const Progress progress{{}, &cancel_};
  auto done = read_from(file, batch, false, put, progress, batch.pages.size());
  const std::vector<uint32_t> alone = done ? std::vector<uint32_t>() : batch.pages;
  for (const uint32_t number : alone) {
    if (cancel_ || find(number)) continue;
    done = read_from(file, {{number}, batch.asked}, false, put, progress, 1);
    if (done || done.error().code == ErrorCode::cancelled) continue;
    const std::lock_guard hold(lock_);
    failed_.insert(number);
    failure_ = std::move(done);
  }
  if (room) return;
  const std::lock_guard hold(lock_);
  wanted_.pages.clear();
  near_.pages.clear();
}

void PageCache::run() {
  // Frames and edits have the rest.
  const uint32_t threads = threads_ ? threads_ : thread_count();
  const ThreadShare share(std::max(1u, threads - threads / 4));
  std::unique_lock hold(lock_);
  for (;;) {
    Wishes batch;
    changed_.wait(hold, [&] {
      if (file_ && holds_ == 0) batch = next_batch();
      return stop_ || !batch.pages.empty();
    });
    if (stop_) return;
    io::Store& file = *file_;
    reading_ = true;
    hold.unlock();
    try {
      read_batch(file, batch);
    } catch (const std::bad_alloc&) {
      hold.lock();
      failure_ = fail(ErrorCode::out_of_memory, "no host memory to read pages of the file");
      wanted_.pages.clear();
      near_.pages.clear();
      hold.unlock();
    }
    hold.lock();
    reading_ = false;
    changed_.notify_all();
  }
}

}  // namespace quarry::engine
