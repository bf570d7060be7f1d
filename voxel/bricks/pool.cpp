// SPDX-License-Identifier: Apache-2.0
// pool.cpp - slabs with the counts of their bricks, places that come free, and packing, which keeps the materials of
// set voxels only.
#include "voxel/bricks/pool.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/parallel.hpp"

namespace quarry {
namespace {

constexpr uint32_t kSlabShift = uint32_t(std::countr_zero(kBricksPerSlab));
constexpr size_t kLoosePools = 16;       // more threads than that share
constexpr uint32_t kLooseBricks = 1024;  // in a slab: 600 KiB, which is what a loose pool may hold for nothing

uint32_t slot_of(const BrickSlab& slab, const std::atomic<uint32_t>* count) {
  return uint32_t(count - slab.counts.data());
}

}  // namespace

// The slabs by number. A slab that somebody knows is found without a lock while others are added: nothing moves.
class BrickSlabTable {
 public:
  BrickSlab*& operator[](size_t at) { return (*blocks_[at / kBlock])[at % kBlock]; }
  BrickSlab* operator[](size_t at) const { return (*blocks_[at / kBlock])[at % kBlock]; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  BrickSlab*& back() { return (*this)[size_ - 1]; }
  // Lets push_back() allocate nothing.
  void reserve(size_t size) {
    for (size_t block = (size_ + kBlock - 1) / kBlock; block * kBlock < size; ++block)
      if (!blocks_[block]) blocks_[block] = std::make_unique<Block>();
  }
  void push_back(BrickSlab* slab) {
    reserve(size_ + 1);
    (*this)[size_++] = slab;
  }
  void pop_back() { --size_; }

 private:
  static constexpr size_t kBlock = 1024, kSlabs = (uint64_t(kQryReservedValue) >> kSlabShift) + 1;
  using Block = std::array<BrickSlab*, kBlock>;
  std::array<std::unique_ptr<Block>, (kSlabs + kBlock - 1) / kBlock> blocks_;
  size_t size_ = 0;
};

class BrickPoolState {
 public:
  using Count = std::atomic<uint32_t>;

  BrickPoolState(MemorySource& memory, uint32_t max_bricks, bool loose)
      : memory_(&memory),
        max_bricks_(std::min(max_bricks, kQryReservedValue - 1)),
        loose_(loose),
        masks_(memory, sizeof(BrickMask), kBricksPerSlab, "brick masks"),
        materials_(memory, sizeof(BrickMaterials), kBricksPerSlab, "brick materials") {
    full_.fill(kNoBrick);
  }
  BrickPoolState(const BrickPoolState&) = delete;
  BrickPoolState& operator=(const BrickPoolState&) = delete;
  ~BrickPoolState() {
    for (size_t i = 0; !loose_ && i < slabs_.size(); ++i) delete slabs_[i];
  }

  // Its last reference is gone: its last handle deletes it.
  void abandon() {
    std::unique_lock lock(lock_);
    abandoned_ = true;
    for (const uint32_t index : full_) live_ -= index != kNoBrick;
    if (live_ > 0) return;
    lock.unlock();
    delete this;
  }

  // Takes so many places that are free, the lowest first, each with one handle; all or none. `ahead`: how many are
  // expected to be taken from now on.
  Result<void> take(std::span<Count*> out, size_t ahead = 0) {
    QRY_TRY(take_places(out, ahead));
    // Whoever wrote these counts last did so on another processor: that is not waited for under the lock.
    for (Count* const place : out) place->store(1, std::memory_order_relaxed);
    return {};
  }

  // The places of bricks whose last handles are gone. The pool may be gone afterwards.
  void free_places(std::span<Count* const> places) noexcept {
    std::unique_lock lock(lock_);
    const uint64_t epoch = memory_->epoch();
    const bool read_by_frames = epoch > memory_->past_epoch();
    live_ -= uint32_t(places.size());
    for (Count* const place : places) {
      BrickSlab& slab = *BrickSlab::of(place);
      if (read_by_frames) retire(slab, slot_of(slab, place), epoch);
      else make_free(slab, slot_of(slab, place));
    }
    if (!abandoned_ || live_ > 0) return;
    lock.unlock();
    delete this;
  }

  // Frees places that were taken and not written: no frame reads them.
  void give_back_unused(std::span<Count* const> places) noexcept {
    const std::lock_guard lock(lock_);
    for (Count* const place : places) {
      BrickSlab& slab = *BrickSlab::of(place);
      --live_;
      make_free(slab, slot_of(slab, place));
    }
  }

  // The 512 materials of a brick of a packed pool.
  void unpack(uint32_t index, const BrickMask& mask, BrickMaterials& materials) const;

  BrickSlab& slab_at(uint32_t index) const { return *slabs_[index >> kSlabShift]; }
  Count& count_at(uint32_t index) const { return slab_at(index).counts[index & (kBricksPerSlab - 1)]; }

  uint32_t gathered_end() {
    const std::lock_guard lock(lock_);
    free_what_is_past();
    uint64_t left = live_;
    // Places that frames may read stay as they are.
    for (size_t i = 0; i < slabs_.size(); ++i) {
      const BrickSlab& slab = *slabs_[i];
      uint32_t usable = slab.size;
      for (const uint64_t bits : slab.retired_bits) usable -= uint32_t(std::popcount(bits));
      if (usable < left) {
        left -= usable;
        continue;
      }
      uint32_t slot = 0;
      for (; left; ++slot) left -= !(slab.retired_bits[slot / 64] >> (slot % 64) & 1u);
      return std::min(high_water_, (slab.number << kSlabShift) + slot);
    }
    return high_water_;
  }

  // Takes the lowest free places before `end`, no more than `out` has room for, and returns how many.
  size_t take_before(uint32_t end, std::span<uint32_t> out) {
    const std::lock_guard lock(lock_);
    size_t taken = 0;
    for (uint32_t at = lowest_; at < slabs_.size() && at << kSlabShift < end && taken < out.size(); ++at) {
      BrickSlab& slab = *slabs_[at];
      for (uint32_t w = 0; slab.free && taken < out.size() && w < slab.free_bits.size(); ++w)
        for (uint64_t bits = slab.free_bits[w]; bits && taken < out.size(); bits &= bits - 1) {
          const uint32_t slot = w * 64 + uint32_t(std::countr_zero(bits)), index = at << kSlabShift | slot;
          if (index >= end) break;
          slab.free_bits[w] &= ~(bits & -bits);
          --slab.free;
          slab.counts[slot].store(1, std::memory_order_relaxed);
          out[taken++] = index;
        }
    }
    free_ -= taken;
    live_ += uint32_t(taken);
    return taken;
  }

  // `with_retired`: also the memory of places that frames may still read.
  void trim(bool with_retired = false) {
    const std::lock_guard lock(lock_);
    free_what_is_past();
    const auto goes = [&](uint32_t index) { return with_retired ? !in_use(index) : is_free(index); };
    while (high_water_ > 0 && goes(high_water_ - 1)) --high_water_;
    if (with_retired) forget_retired_from(high_water_);
    // Pages of which nothing is in use go, wherever a block ends.
    masks_.trim(high_water_);
    materials_.trim(high_water_);
    const size_t left = size_t((uint64_t(high_water_) + kBricksPerSlab - 1) >> kSlabShift);
    while (slabs_.size() > left) {
      free_ -= slabs_.back()->free;
      delete slabs_.back();
      slabs_.pop_back();
    }
    if (!slabs_.empty()) {
      BrickSlab& last = *slabs_.back();
      const uint32_t size = high_water_ - (last.number << kSlabShift);
      for (uint32_t slot = size; slot < last.size; ++slot) {
        last.free_bits[slot / 64] &= ~(uint64_t(1) << (slot % 64));
        --last.free;
        --free_;
      }
      last.size = size;
    }
    lowest_ = std::min(lowest_, uint32_t(slabs_.size()));
  }

  Result<void> shrink_to_fit(uint32_t count) {
    const std::lock_guard lock(lock_);
    auto ok = masks_.shrink_to_fit(count);
    if (ok) ok = materials_.shrink_to_fit(count);
    add_slabs();
    return ok;
  }

  // Makes the counts of the bricks in the arrays, each with one handle.
  void become_packed(uint32_t count) {
    for (const MemoryBlock& masks : masks_.slabs()) {
      slabs_.push_back(nullptr);
      add_slab(new BrickSlab, static_cast<BrickMask*>(masks.data), nullptr,
               uint32_t(masks.size_bytes / sizeof(BrickMask)));
      BrickSlab& slab = *slabs_.back();
      const uint32_t size = std::min(slab.size, count - (slab.number << kSlabShift));
      for (uint32_t slot = 0; slot < size; ++slot) slab.counts[slot].store(1, std::memory_order_relaxed);
      slab.free_bits.fill(0);
      slab.size = size;
      slab.free = 0;
    }
    free_ = 0;
    live_ = high_water_ = count;
    packed_ = true;
  }

  size_t free_below_high_water() const {
    size_t room = 0;
    for (size_t i = 0; i < slabs_.size(); ++i) {
      const uint64_t first = uint64_t(i) << kSlabShift;
      room += size_t(std::clamp<uint64_t>(std::max<uint64_t>(high_water_, first) - first, 0, slabs_[i]->size));
    }
    return room - live_ - retired_bricks_;
  }

 private:
  friend class BrickGather;
  friend class BrickPool;

  Result<void> take_places(std::span<Count*> out, size_t ahead) {
    const std::lock_guard lock(lock_);
    free_what_is_past();
    const bool short_of_room = free_ < out.size() || live_ + uint64_t(out.size()) > max_bricks_;
    if (short_of_room && (ahead <= out.size() || loose_ || !grow(ahead))) QRY_TRY(grow(out.size()));
    size_t taken = 0;
    while (taken < out.size()) {
      BrickSlab& slab = *slabs_[lowest_];
      for (uint32_t w = 0; slab.free && taken < out.size() && w < slab.free_bits.size(); ++w)
        for (uint64_t& bits = slab.free_bits[w]; bits && taken < out.size(); bits &= bits - 1) {
          const uint32_t slot = w * 64 + uint32_t(std::countr_zero(bits));
          --slab.free;
          out[taken++] = &slab.counts[slot];
          high_water_ = std::max(high_water_, (slab.number << kSlabShift | slot) + 1);
        }
      if (!slab.free) ++lowest_;
    }
    free_ -= taken;
    live_ += uint32_t(taken);
    return {};
  }

  bool is_free(uint32_t index) const {
    const BrickSlab& slab = slab_at(index);
    const uint32_t slot = index & (kBricksPerSlab - 1);
    return slot >= slab.size || (slab.free_bits[slot / 64] >> (slot % 64) & 1u);
  }
  bool in_use(uint32_t index) const {
    const BrickSlab& slab = slab_at(index);
    const uint32_t slot = index & (kBricksPerSlab - 1);
    return slot < slab.size && !((slab.free_bits[slot / 64] | slab.retired_bits[slot / 64]) >> (slot % 64) & 1u);
  }

  void make_free(BrickSlab& slab, uint32_t slot) noexcept {
    slab.free_bits[slot / 64] |= uint64_t(1) << (slot % 64);
    ++slab.free;
    ++free_;
    lowest_ = std::min(lowest_, slab.number);
    if (loose_ && slab.free == slab.size) drop_loose_slab(slab);
  }

  // Those whose memory goes: frames that read it still have it, see MemorySource::release().
  void forget_retired_from(uint32_t end) noexcept {
    for (uint32_t i = 0; i < retired_lists_; ++i) {
      const uint32_t all = std::exchange(retired_[i].first, kNoBrick);
      for (uint32_t index = all; index != kNoBrick;) {
        BrickSlab& slab = slab_at(index);
        const uint32_t slot = index & (kBricksPerSlab - 1), here = index;
        index = slab.counts[slot].load(std::memory_order_relaxed);
        if (here < end) {
          slab.counts[slot].store(std::exchange(retired_[i].first, here), std::memory_order_relaxed);
        } else {
          slab.retired_bits[slot / 64] &= ~(uint64_t(1) << (slot % 64));
          --retired_bricks_;
          make_free(slab, slot);
        }
      }
    }
  }

  // Frames may still read the brick: it is free when the epoch is past. Its count, which has no other use now, links it
  // to the next.
  void retire(BrickSlab& slab, uint32_t slot, uint64_t epoch) noexcept {
    // Of more epochs than there are lists for, the newest share one.
    if (retired_lists_ == 0 || (retired_[retired_lists_ - 1].epoch != epoch && retired_lists_ < retired_.size()))
      retired_[retired_lists_++] = {};
    RetiredList& list = retired_[retired_lists_ - 1];
    list.epoch = epoch;
    slab.counts[slot].store(list.first, std::memory_order_relaxed);
    list.first = slab.number << kSlabShift | slot;
    slab.retired_bits[slot / 64] |= uint64_t(1) << (slot % 64);
    ++retired_bricks_;
  }

  void free_what_is_past() noexcept {
    if (!retired_lists_) return;
    const uint64_t past = memory_->past_epoch();
    uint32_t done = 0;
    for (; done < retired_lists_ && retired_[done].epoch <= past; ++done)
      for (uint32_t index = retired_[done].first; index != kNoBrick;) {
        BrickSlab& slab = slab_at(index);
        const uint32_t slot = index & (kBricksPerSlab - 1);
        index = slab.counts[slot].load(std::memory_order_relaxed);
        slab.retired_bits[slot / 64] &= ~(uint64_t(1) << (slot % 64));
        --retired_bricks_;
        make_free(slab, slot);
      }
    std::copy(retired_.begin() + done, retired_.begin() + retired_lists_, retired_.begin());
    retired_lists_ -= done;
  }

  Result<void> grow(size_t count) {
    if (loose_) {
      while (free_ < count) QRY_TRY(add_loose_slab());
      return {};
    }
    // Indices fill the existing slabs, then continue at the next slab: masks and materials end alike.
    const uint64_t end = materials_.capacity(), begin = materials_.grows_at(),
                   more = count - std::min<uint64_t>(count, free_);
    if (live_ + uint64_t(count) > max_bricks_ || begin + more >= kQryReservedValue)
      return fail(ErrorCode::full, "brick pool: " + std::to_string(count) + " bricks asked for, " +
                                       std::to_string(live_) + " of at most " + std::to_string(max_bricks_) +
                                       " are in use; remove voxels or allow more bricks");
    masks_.trim(end);  // an exception may have ended an earlier attempt
    auto ok = masks_.grow(more);
    if (ok) ok = materials_.grow(more);
    if (!ok) {
      masks_.trim(end);
      materials_.trim(end);
      return tl::unexpected(ok.error());
    }
    add_slabs();
    return {};
  }

  // Makes the counts of the arrays' new slabs.
  void add_slabs() {
    const std::vector<MemoryBlock>& masks = masks_.slabs();
    slabs_.reserve(masks.size());
    while (slabs_.size() < masks.size()) {
      const size_t at = slabs_.size();
      slabs_.push_back(nullptr);
      add_slab(new BrickSlab, static_cast<BrickMask*>(masks[at].data),
               static_cast<BrickMaterials*>(materials_.slabs()[at].data),
               uint32_t(masks[at].size_bytes / sizeof(BrickMask)));
    }
  }

  // Its place is the last of slabs_.
  void add_slab(BrickSlab* slab, BrickMask* masks, BrickMaterials* materials, uint32_t size) {
    slab->masks = masks;
    slab->materials = materials;
    slab->pool = this;
    slab->number = uint32_t(slabs_.size() - 1);
    slab->size = slab->free = size;
    for (uint32_t w = 0; w * 64 < size; ++w)
      slab->free_bits[w] = size - w * 64 >= 64 ? ~uint64_t(0) : (uint64_t(1) << (size % 64)) - 1;
    slabs_.back() = slab;
    free_ += size;
    lowest_ = std::min(lowest_, slab->number);
  }

  // A loose slab with its masks and materials is one block, so that all of it goes when it is empty.
  Result<void> add_loose_slab() {
    loose_blocks_.reserve(loose_blocks_.size() + 1);
    slabs_.reserve(slabs_.size() + 1);
    size_t room = 2 * sizeof(BrickSlab) + kLooseBricks * sizeof(Brick);
    QRY_TRY_ASSIGN(const auto block, memory_->allocate(room, "bricks"));
    void* begin = block.data;
    std::align(alignof(BrickSlab), room - sizeof(BrickSlab), begin, room);
    auto* const slab = new (begin) BrickSlab;
    auto* const masks = reinterpret_cast<BrickMask*>(slab + 1);
    loose_blocks_.push_back(block);
    slabs_.push_back(nullptr);
    add_slab(slab, masks, reinterpret_cast<BrickMaterials*>(masks + kLooseBricks), kLooseBricks);
    return {};
  }

  // One that is empty is kept, lest a volume that comes and goes costs pages each time.
  void drop_loose_slab(BrickSlab& slab) noexcept {
    if (free_ < 2 * kLooseBricks) return;
    const uint32_t at = slab.number;
    free_ -= slab.free;
    memory_->release(loose_blocks_[at]);
    if (at + 1 < slabs_.size()) {
      slabs_[at] = slabs_.back();
      loose_blocks_[at] = loose_blocks_.back();
      slabs_[at]->number = at;
    }
    slabs_.pop_back();
    loose_blocks_.pop_back();
    lowest_ = 0;
  }

  mutable std::mutex lock_;
  MemorySource* memory_;
  uint32_t max_bricks_, live_ = 0, high_water_ = 0;
  const bool loose_;
  bool packed_ = false, abandoned_ = false;
  struct RetiredList {
    uint64_t epoch = 0;
    uint32_t first = kNoBrick;
  };
  std::array<RetiredList, 16> retired_;  // rising epochs
  uint32_t retired_lists_ = 0, retired_bricks_ = 0;
  SlabArray masks_, materials_;
  BrickSlabTable slabs_;
  std::vector<MemoryBlock> loose_blocks_;
  uint64_t free_ = 0;    // places
  uint32_t lowest_ = 0;  // no slab before it has a free one
  std::array<uint32_t, 256> full_;
};

namespace {

std::shared_ptr<BrickPoolState> new_state(MemorySource& memory, uint32_t max_bricks, bool loose) {
  auto state = std::make_unique<BrickPoolState>(memory, max_bricks, loose);
  return {state.release(), [](BrickPoolState* its) { its->abandon(); }};
}

constexpr uint32_t kWordsPerSlab = kBricksPerSlab * (sizeof(BrickMaterials) / 4);

uint32_t* word(const SlabArray& materials, uint64_t index) {
  return static_cast<uint32_t*>(materials.slabs()[index / kWordsPerSlab].data) + index % kWordsPerSlab;
}

}  // namespace

void BrickPoolState::unpack(uint32_t index, const BrickMask& mask, BrickMaterials& materials) const {
  materials.fill(0);
  const uint64_t start = *word(materials_, index);
  uint32_t n = 0;
  for (uint32_t w = 0; w < mask.size(); ++w)
    for (uint64_t left = mask[w]; left; left &= left - 1, ++n)
      materials[w * 64 + uint32_t(std::countr_zero(left))] =
          reinterpret_cast<const uint8_t*>(word(materials_, start + n / 4))[n & 3u];
}

SharedBrick::SharedBrick(const BrickView& value) : SharedBrick(BrickPool::loose().make(value)) {}

BrickView SharedBrick::packed_view(const BrickSlab& slab, size_t slot) {
  const BrickMask& mask = slab.masks[slot];
  return {mask, [&](BrickMaterials& materials) {
            slab.pool->unpack(slab.number << kSlabShift | uint32_t(slot), mask, materials);
          }};
}

bool goes_on(const BrickChange& change, const BrickChange& next) {
  const auto uniform = [](const SharedBrick& brick) { return !brick || brick.material() != 0; };
  return uniform(next.before) && uniform(next.after) && change.before.same_as(next.before) &&
         change.after.same_as(next.after) && change.brick.x == next.brick.x && change.brick.y == next.brick.y &&
         int64_t(change.brick.z) + change.count == next.brick.z;
}

void append_change(std::vector<BrickChange>& changes, BrickChange change) {
  if (!changes.empty() && goes_on(changes.back(), change)) changes.back().count += change.count;
  else changes.push_back(std::move(change));
}

uint64_t bricks_in(std::span<const BrickChange> changes) {
  uint64_t count = 0;
  for (const BrickChange& change : changes) count += change.count;
  return count;
}

void SharedBrick::give_back(std::atomic<uint32_t>* last) noexcept {
  BrickSlab::of(last)->pool->free_places({&last, 1});
}

void EndOfBricks::end(std::span<SharedBrick> handles) noexcept {
  for (SharedBrick& handle : handles) {
    auto* const count = handle.count();
    handle.bits_ = 0;
    if (!count || count->fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
    if (found_ == last_.size() || (found_ > 0 && BrickSlab::of(last_[0])->pool != BrickSlab::of(count)->pool))
      give_back();
    last_[found_++] = count;
  }
}

void EndOfBricks::give_back() noexcept {
  if (found_ > 0) BrickSlab::of(last_[0])->pool->free_places({last_.data(), std::exchange(found_, 0)});
}

BrickPool::BrickPool(MemorySource& memory, uint32_t max_bricks) : state_(new_state(memory, max_bricks, false)) {}

const BrickPool& BrickPool::loose() {
  // Never destroyed: handles may live in objects that are destroyed later.
  static const auto* const pools = [] {
    auto* const all = new std::vector<BrickPool>;
    for (size_t i = 0; i < kLoosePools; ++i) all->push_back(BrickPool(new_state(host_memory_source(), ~0u, true)));
    return all;
  }();
  static std::atomic<size_t> threads{0};
  thread_local const size_t own = threads.fetch_add(1, std::memory_order_relaxed) % kLoosePools;
  return (*pools)[own];
}

SharedBrick BrickPool::make(const BrickView& value) const {
  if (value.empty()) return {};
  if (const uint8_t material = quarry::full_material(value)) return SharedBrick::full(material);
  return stored(value);
}

SharedBrick BrickPool::stored(const BrickView& value) const {
  std::atomic<uint32_t>* place = nullptr;
  if (packed() || !state_->take({&place, 1})) {
    if (!loose().state_->take({&place, 1})) throw std::bad_alloc();
  }
  SharedBrick made(place);
  made.mask() = value.mask;
  made.materials() = value.materials;
  return made;
}

Result<void> BrickPool::adopt(std::span<SharedBrick* const> handles) const {
  std::vector<SharedBrick*> from;
  for (SharedBrick* const handle : handles)
    if (elsewhere(*handle)) from.push_back(handle);
  if (from.empty()) return {};
  // Handles of one brick are of one brick afterwards.
  std::sort(from.begin(), from.end(), [](const auto* a, const auto* b) { return a->bits_ < b->bits_; });
  std::vector<size_t> firsts;
  for (size_t i = 0; i < from.size(); ++i)
    if (i == 0 || from[i]->bits_ != from[i - 1]->bits_) firsts.push_back(i);
  std::vector<std::atomic<uint32_t>*> places(firsts.size());
  QRY_TRY(state_->take(places));
  firsts.push_back(from.size());
  parallel_for(places.size(), 256, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      SharedBrick own(places[i]);
      const BrickView brick = **from[firsts[i]];
      own.mask() = brick.mask;
      own.materials() = brick.materials;
      for (size_t k = firsts[i]; k < firsts[i + 1]; ++k) *from[k] = own;
    }
  });
  return {};
}

Result<std::vector<uint32_t>> BrickPool::allocate(size_t count) {
  std::vector<std::atomic<uint32_t>*> places(count);
  std::vector<uint32_t> indices(count);
  QRY_TRY(state_->take(places));
  for (size_t i = 0; i < count; ++i) {
    const BrickSlab& slab = *BrickSlab::of(places[i]);
    indices[i] = slab.number << kSlabShift | slot_of(slab, places[i]);
  }
  return indices;
}

Result<uint32_t> BrickPool::allocate() {
  QRY_TRY_ASSIGN(auto one, allocate(1));
  return one.front();
}

void BrickPool::free(uint32_t index) {
  std::atomic<uint32_t>& count = state_->count_at(index);
  if (count.fetch_sub(1, std::memory_order_acq_rel) == 1) state_->free_places(std::array{&count});
}

void BrickPool::share(uint32_t index) { state_->count_at(index).fetch_add(1, std::memory_order_relaxed); }

bool BrickPool::shared(uint32_t index) const { return state_->count_at(index).load(std::memory_order_acquire) > 1; }

uint32_t BrickPool::index_of(const SharedBrick& brick) const {
  auto* const count = brick.count();
  if (!count) return kNoBrick;
  const BrickSlab& slab = *BrickSlab::of(count);
  return slab.pool == state_.get() ? slab.number << kSlabShift | slot_of(slab, count) : kNoBrick;
}

bool BrickPool::elsewhere(const SharedBrick& brick) const {
  auto* const count = brick.count();
  return count && BrickSlab::of(count)->pool != state_.get();
}

SharedBrick BrickPool::at(uint32_t index) const {
  BrickSlab& slab = state_->slab_at(index);
  const uint32_t slot = index & (kBricksPerSlab - 1);
  if (all_set(slab.masks[slot])) {
    const uint8_t first = slab.materials ? slab.materials[slot][0] : material(index, 0);
    if (state_->full_[first] == index) return SharedBrick::full(first);
  }
  slab.counts[slot].fetch_add(1, std::memory_order_relaxed);
  return SharedBrick(&slab.counts[slot]);
}

Result<void> BrickPool::store_full(std::span<const uint8_t> materials) {
  std::array<uint8_t, 256> missing;
  size_t count = 0;
  for (const uint8_t material : materials) {
    const auto end = missing.begin() + std::ptrdiff_t(count);
    if (full(material) == kNoBrick && std::find(missing.begin(), end, material) == end) missing[count++] = material;
  }
  QRY_TRY_ASSIGN(const auto indices, allocate(count));
  for (size_t i = 0; i < count; ++i) {
    put(indices[i], full_brick(missing[i]));
    state_->full_[missing[i]] = indices[i];
  }
  return {};
}

void BrickPool::free_full(std::span<const uint8_t> materials) {
  for (const uint8_t material : materials)
    if (const uint32_t index = std::exchange(state_->full_[material], kNoBrick); index != kNoBrick) free(index);
}

uint32_t BrickPool::full(uint8_t material) const { return state_->full_[material]; }
void BrickPool::set_full(const std::array<uint32_t, 256>& indices) { state_->full_ = indices; }

uint8_t BrickPool::full_material(uint32_t index) const {
  if (!all_set(mask(index))) return 0;
  const uint8_t first = material(index, 0);
  return state_->full_[first] == index ? first : uint8_t(0);
}

Result<void> BrickPool::shrink_to_fit(uint32_t count) { return state_->shrink_to_fit(count); }
void BrickPool::trim() { state_->trim(); }
uint32_t BrickPool::gathered_end() const { return state_->gathered_end(); }

BrickMask& BrickPool::mask(uint32_t index) { return *static_cast<BrickMask*>(state_->masks_.at(index)); }
const BrickMask& BrickPool::mask(uint32_t index) const {
  return *static_cast<const BrickMask*>(state_->masks_.at(index));
}
BrickMaterials& BrickPool::materials(uint32_t index) {
  return *static_cast<BrickMaterials*>(state_->materials_.at(index));
}
bool BrickPool::packed() const { return state_->packed_; }
void BrickPool::for_each_brick(const std::function<void(uint32_t index)>& visit) const {
  for (uint32_t index = 0; index < state_->high_water_; ++index)
    if (state_->in_use(index)) visit(index);
}
uint32_t BrickPool::live() const { return state_->live_; }
size_t BrickPool::free_count() const { return state_->free_below_high_water(); }
uint32_t BrickPool::high_water() const { return state_->high_water_; }
uint64_t BrickPool::size_bytes() const { return state_->masks_.size_bytes() + state_->materials_.size_bytes(); }
const SlabArray& BrickPool::mask_slabs() const { return state_->masks_; }
const SlabArray& BrickPool::material_slabs() const { return state_->materials_; }
uint64_t BrickPool::material_elements() const {
  return state_->packed_ ? state_->materials_.capacity() : state_->high_water_;
}

Result<BrickPool> BrickPool::pack(MemorySource& memory, const BrickPool& from, std::span<const uint32_t> indices) {
  BrickPool pool(memory);
  const auto count = uint32_t(indices.size());
  std::vector<uint32_t> starts(count);
  uint64_t words = count;
  for (uint32_t i = 0; i < count; ++i) {
    if (words > 0xFFFFFFFFu) break;
    starts[i] = uint32_t(words);
    words += (count_of(from.mask(indices[i])) + 3) / 4;
  }
  if (words > 0xFFFFFFFFu)
    return fail(ErrorCode::full, "brick pool: more than 16 GiB of materials cannot be packed; keep the world as it is");
  QRY_TRY(pool.state_->masks_.shrink_to_fit(count));
  QRY_TRY(pool.state_->materials_.shrink_to_fit((words * 4 + sizeof(BrickMaterials) - 1) / sizeof(BrickMaterials)));
  parallel_for(count, 256, [&](size_t begin, size_t end) {
    for (auto i = uint32_t(begin); i < end; ++i) {
      const Brick brick = from.get(indices[i]);
      pool.mask(i) = brick.mask;
      *word(pool.state_->materials_, i) = starts[i];
      uint64_t at = starts[i];
      uint8_t four[4] = {};
      uint32_t n = 0;
      for (uint32_t w = 0; w < 8; ++w)
        for (uint64_t left = brick.mask[w]; left; left &= left - 1) {
          four[n++ & 3u] = brick.materials[w * 64 + uint32_t(std::countr_zero(left))];
          if ((n & 3u) == 0) std::memcpy(word(pool.state_->materials_, at++), four, 4);
        }
      if (n & 3u) {
        std::fill(four + (n & 3u), four + 4, uint8_t(0));
        std::memcpy(word(pool.state_->materials_, at), four, 4);
      }
    }
  });
  pool.state_->become_packed(count);
  return pool;
}

uint8_t BrickPool::material(uint32_t index, uint32_t voxel) const {
  const BrickMask& bits = mask(index);
  const SlabArray& all = state_->materials_;
  if (!packed()) return (*static_cast<const BrickMaterials*>(all.at(index)))[voxel];
  const uint64_t bit = uint64_t(1) << (voxel & 63u);
  if (!(bits[voxel >> 6] & bit)) return 0;
  auto number = uint32_t(std::popcount(bits[voxel >> 6] & (bit - 1)));
  for (uint32_t w = 0; w < voxel >> 6; ++w) number += uint32_t(std::popcount(bits[w]));
  return reinterpret_cast<const uint8_t*>(word(all, uint64_t(*word(all, index)) + number / 4))[number & 3u];
}

Brick BrickPool::get(uint32_t index) const {
  Brick brick{mask(index), {}};
  if (packed()) state_->unpack(index, brick.mask, brick.materials);
  else brick.materials = *static_cast<const BrickMaterials*>(state_->materials_.at(index));
  return brick;
}

BrickWriter::~BrickWriter() { pool_.state_->give_back_unused(places_); }

SharedBrick BrickWriter::make(const BrickView& value) {
  if (value.empty()) return {};
  if (const uint8_t material = quarry::full_material(value)) return SharedBrick::full(material);
  if (places_.empty()) {
    std::vector<std::atomic<uint32_t>*> taken(std::max(step_, std::min(expected_, kMostExpected)));
    if (pool_.packed() || !pool_.state_->take(taken, ahead_)) return pool_.make(value);
    expected_ -= std::min(expected_, taken.size());
    step_ = std::min(2 * step_, kMost);
    places_ = std::move(taken);
    std::reverse(places_.begin(), places_.end());  // the lowest is used first
  }
  SharedBrick made(places_.back());
  places_.pop_back();
  made.mask() = value.mask;
  made.materials() = value.materials;
  return made;
}

BrickMove::~BrickMove() {
  if (!to_) return;
  for (uint32_t i = 0; i < uint32_t(bricks_.size()); ++i) to_->free(i);
}

void BrickMove::add(uint32_t index) {
  if (index == kNoBrick || places_[index] != kNoBrick) return;
  places_[index] = uint32_t(bricks_.size());
  bricks_.push_back(index);
}

Result<BrickPool> BrickMove::make(MemorySource& memory, bool packed) {
  if (packed) {
    QRY_TRY_ASSIGN(to_, BrickPool::pack(memory, from_, bricks_));
    return *to_;
  }
  BrickPool fresh(memory);
  QRY_TRY(fresh.shrink_to_fit(uint32_t(bricks_.size())));
  QRY_TRY(fresh.allocate(bricks_.size()));
  to_ = fresh;
  parallel_for(bricks_.size(), 256, [&](size_t begin, size_t end) {
    for (auto i = uint32_t(begin); i < end; ++i) fresh.put(i, from_.get(bricks_[i]));
  });
  return fresh;
}

SharedBrick BrickMove::moved(const SharedBrick& brick) const {
  const uint32_t index = from_.index_of(brick);
  if (index == kNoBrick || places_[index] == kNoBrick) return brick;
  std::atomic<uint32_t>& count = to_->state_->count_at(places_[index]);
  count.fetch_add(1, std::memory_order_relaxed);
  return SharedBrick(&count);
}

BrickGather::BrickGather(const BrickPool& pool)
    : pool_(pool), first_(pool.gathered_end()), places_(pool.high_water() - first_) {}

BrickGather::~BrickGather() {
  if (ended_) return;
  for (const Moved& moved : moved_) {
    std::atomic<uint32_t>* const place = &pool_.state_->count_at(moved.to);
    pool_.state_->give_back_unused({&place, 1});
  }
}

size_t BrickGather::take() {
  BrickPoolState& state = *pool_.state_;
  // Whoever has other handles may end them meanwhile, but can make none of a brick of which all were added.
  const auto movable = [&](uint32_t index) {
    const uint32_t added = places_[index - first_];
    return added != 0 && state.count_at(index).load(std::memory_order_acquire) == added;
  };
  const auto end = uint32_t(first_ + places_.size());
  size_t count = 0;
  for (uint32_t index = first_; index < end; ++index) count += movable(index);
  std::vector<uint32_t> to(count);
  moved_.reserve(count);
  copy_some_ = [this](size_t begin, size_t stop) {
    for (size_t i = begin; i < stop; ++i) {
      const auto [from, place] = moved_[i];
      pool_.put(place, {std::as_const(pool_).mask(from), pool_.materials(from)});
      pool_.state_->count_at(place).store(pool_.state_->count_at(from).load(std::memory_order_relaxed),
                                          std::memory_order_relaxed);
    }
  };
  to.resize(state.take_before(first_, to));
  for (uint32_t index = first_; index < end; ++index) {
    const bool moves = moved_.size() < to.size() && movable(index);
    if (moves) moved_.push_back({index, to[moved_.size()]});
    places_[index - first_] = moves ? moved_.back().to : index;
  }
  return moved_.size();
}

void BrickGather::copy() { parallel_for(moved_.size(), 256, copy_some_); }

void BrickGather::exchange(SharedBrick& brick) const {
  const uint32_t index = pool_.index_of(brick);
  if (index == kNoBrick || place(index) == index) return;
  // The counts are the same already.
  brick.bits_ = reinterpret_cast<uintptr_t>(&pool_.state_->count_at(place(index)));
}

void BrickGather::end() {
  ended_ = true;
  std::array<std::atomic<uint32_t>*, 1024> left;  // NOLINT: `count` of them are
  size_t count = 0;
  for (const Moved& moved : moved_) {
    left[count++] = &pool_.state_->count_at(moved.from);
    if (count < left.size()) continue;
    pool_.state_->free_places({left.data(), std::exchange(count, 0)});
  }
  pool_.state_->free_places({left.data(), count});
  pool_.state_->trim(true);
}

}  // namespace quarry
