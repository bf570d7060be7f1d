// SPDX-License-Identifier: Apache-2.0
// slab_array.cpp - several slabs in an allocation, each with its address for the table that shaders read; growth,
// mirroring, trimming at the end.
#include "voxel/bricks/slab_array.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace quarry {
namespace {

constexpr uint64_t kBlockBytes = 64u << 20;           // the limit of an allocation of several slabs
constexpr uint32_t kMostSlabs = 32, kLeastShare = 8;  // growth: at most this many slabs, at least this fraction of one

}  // namespace

SlabArray::SlabArray(MemorySource& memory, size_t element_bytes, uint32_t elements_per_slab, const char* label)
    : memory_(&memory),
      element_bytes_(element_bytes),
      shift_(uint32_t(std::countr_zero(elements_per_slab))),
      mask_(elements_per_slab - 1),
      label_(label) {}

SlabArray::SlabArray(SlabArray&& other) noexcept
    : memory_(other.memory_),
      element_bytes_(other.element_bytes_),
      shift_(other.shift_),
      mask_(other.mask_),
      label_(other.label_),
      capacity_(std::exchange(other.capacity_, 0)),
      slabs_(std::exchange(other.slabs_, {})),
      blocks_(std::exchange(other.blocks_, {})) {}

SlabArray& SlabArray::operator=(SlabArray&& other) noexcept {
  if (this == &other) return *this;
  for (const Block& block : blocks_) memory_->release(block.memory);
  memory_ = other.memory_;
  element_bytes_ = other.element_bytes_;
  shift_ = other.shift_;
  mask_ = other.mask_;
  capacity_ = std::exchange(other.capacity_, 0);
  label_ = other.label_;
  slabs_ = std::exchange(other.slabs_, {});
  blocks_ = std::exchange(other.blocks_, {});
  return *this;
}

SlabArray::~SlabArray() {
  for (const Block& block : blocks_) memory_->release(block.memory);
}

void SlabArray::point_slabs(size_t first, const MemoryBlock& block, uint64_t elements) {
  const uint64_t per_slab = mask_ + 1, slab_bytes = per_slab * element_bytes_;
  for (uint64_t i = 0; i << shift_ < elements; ++i) {
    MemoryBlock& slab = slabs_[first + i];
    slab = block;
    slab.data = static_cast<char*>(block.data) + i * slab_bytes;
    slab.size_bytes = std::min(per_slab, elements - (i << shift_)) * element_bytes_;
    if (slab.device_address) slab.device_address += i * slab_bytes;
  }
}

Result<void> SlabArray::add(uint64_t elements) {
  const size_t first = slabs_.size(), more = size_t((elements + mask_) >> shift_);
  slabs_.reserve(first + more);  // before a block exists that an exception could leak
  blocks_.reserve(blocks_.size() + 1);
  QRY_TRY_ASSIGN(auto block, memory_->allocate(elements * element_bytes_, label_));
  capacity_ = grows_at() + elements;
  blocks_.push_back({block, first, elements});
  slabs_.resize(first + more);
  point_slabs(first, block, elements);
  return {};
}

Result<void> SlabArray::grow(uint64_t count) {
  const uint64_t per_slab = mask_ + 1, most = std::max<uint64_t>(kBlockBytes / element_bytes_ >> shift_, 1) << shift_;
  // Large arrays add several slabs at once, to stay within a driver's limit on the number of allocations.
  const uint64_t step =
      std::clamp(std::bit_floor(capacity_ / 64), std::max<uint64_t>(per_slab / kLeastShare, 1), per_slab * kMostSlabs);
  const uint64_t end = grows_at() + (count + step - 1) / step * step;
  while (capacity_ < end) QRY_TRY(add(std::min(end - grows_at(), most)));
  return {};
}

Result<void> SlabArray::shrink_to_fit(uint64_t count) {
  const uint64_t most = std::max<uint64_t>(kBlockBytes / element_bytes_ >> shift_, 1) << shift_;
  while (capacity_ < count) QRY_TRY(add(std::min(count - capacity_, most)));
  return {};
}

Result<void> SlabArray::follow(const SlabArray& other) {
  const uint64_t per_slab = mask_ + 1, most = std::max<uint64_t>(kBlockBytes / element_bytes_ >> shift_, 1) << shift_;
  while (slabs_.size() < other.slabs_.size()) {
    uint64_t elements = 0, in_last = per_slab;
    for (size_t slab = slabs_.size(); slab < other.slabs_.size() && in_last == per_slab && elements < most; ++slab)
      elements += in_last = other.slabs_[slab].size_bytes / other.element_bytes_;
    QRY_TRY(add(elements));
  }
  return {};
}

void SlabArray::trim(uint64_t count) {
  if (count >= capacity_) return;
  while (!blocks_.empty() && blocks_.back().first_slab << shift_ >= count) {
    memory_->release(blocks_.back().memory);
    slabs_.resize(blocks_.back().first_slab);
    blocks_.pop_back();
  }
  capacity_ = blocks_.empty() ? 0 : (blocks_.back().first_slab << shift_) + blocks_.back().elements;
  if (count >= capacity_) return;  // the array ended at the end of a block, or at a cut
  Block& last = blocks_.back();
  const uint64_t kept = count - (last.first_slab << shift_);
  (void)memory_->shrink(last.memory, kept * element_bytes_);  // else the rest is there, and not used
  last.elements = kept;
  slabs_.resize(last.first_slab + ((kept + mask_) >> shift_));
  point_slabs(last.first_slab, last.memory, kept);
  capacity_ = count;
}

uint64_t SlabArray::unused_after_trim(uint64_t count) const {
  if (memory_->can_shrink()) return 0;
  for (const Block& block : blocks_) {
    const uint64_t first = uint64_t(block.first_slab) << shift_, end = first + block.elements;
    if (first < count && count < end) return end - count;
  }
  return 0;
}

uint64_t SlabArray::size_bytes() const {
  uint64_t total = 0;
  for (const Block& block : blocks_) total += block.memory.size_bytes;
  return total;
}

}  // namespace quarry
