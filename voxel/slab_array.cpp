#include "voxel/slab_array.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace quarry {

SlabArray::SlabArray(MemorySource& memory, size_t element_bytes, uint32_t elements_per_slab, const char* label)
    : memory_(&memory), element_bytes_(element_bytes), shift_(uint32_t(std::countr_zero(elements_per_slab))), mask_(elements_per_slab - 1), label_(label) {}

SlabArray::SlabArray(SlabArray&& other) noexcept
    : memory_(other.memory_), element_bytes_(other.element_bytes_), shift_(other.shift_), mask_(other.mask_), label_(other.label_),
      capacity_(std::exchange(other.capacity_, 0)), slabs_(std::exchange(other.slabs_, {})), blocks_(std::exchange(other.blocks_, {})) {}

SlabArray& SlabArray::operator=(SlabArray&& other) noexcept {
  if (this == &other) return *this;
  for (const MemoryBlock& block : blocks_) memory_->release(block);
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
  for (const MemoryBlock& block : blocks_) memory_->release(block);
}

Result<void> SlabArray::add(uint64_t elements) {
  const uint64_t per_slab = mask_ + 1, slab_bytes = per_slab * element_bytes_, slabs = (elements + mask_) >> shift_;
  slabs_.reserve(slabs_.size() + slabs);  // before there is a block that could be lost
  blocks_.reserve(blocks_.size() + 1);
  auto block = memory_->allocate(elements * element_bytes_, label_);
  if (!block) return tl::unexpected(block.error());
  blocks_.push_back(*block);
  for (uint64_t i = 0; i < slabs; ++i) {
    MemoryBlock slab = *block;
    slab.data = static_cast<char*>(block->data) + i * slab_bytes;
    slab.size_bytes = std::min(per_slab, elements - i * per_slab) * element_bytes_;
    if (slab.device_address) slab.device_address += i * slab_bytes;
    slabs_.push_back(slab);
  }
  capacity_ += elements;
  return {};
}

Result<void> SlabArray::ensure(uint64_t count) {
  while (capacity() < count) {
    // Several at once when there are many, so that large worlds stay within a driver's number of allocations: a thirty-second more.
    if (auto ok = add(std::bit_floor(std::max<size_t>(slabs_.size() / 32, 1)) << shift_); !ok) return ok;
  }
  return {};
}

Result<void> SlabArray::fit(uint64_t count) {
  constexpr uint64_t kBlockBytes = 64u << 20;
  const uint64_t most = std::max<uint64_t>(kBlockBytes / element_bytes_ >> shift_, 1) << shift_;
  while (capacity() < count)
    if (auto ok = add(std::min(count - capacity(), most)); !ok) return ok;
  return {};
}

uint64_t SlabArray::size_bytes() const {
  uint64_t total = 0;
  for (const MemoryBlock& block : blocks_) total += block.size_bytes;
  return total;
}

}  // namespace quarry
