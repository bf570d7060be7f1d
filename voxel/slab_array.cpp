#include "voxel/slab_array.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace quarry {

SlabArray::SlabArray(MemorySource& memory, size_t element_bytes, uint32_t elements_per_slab, const char* label)
    : memory_(&memory), element_bytes_(element_bytes), shift_(uint32_t(std::countr_zero(elements_per_slab))), mask_(elements_per_slab - 1), label_(label) {}

SlabArray::SlabArray(SlabArray&& other) noexcept
    : memory_(other.memory_), element_bytes_(other.element_bytes_), shift_(other.shift_), mask_(other.mask_), label_(other.label_),
      slabs_(std::exchange(other.slabs_, {})), blocks_(std::exchange(other.blocks_, {})) {}

SlabArray& SlabArray::operator=(SlabArray&& other) noexcept {
  if (this == &other) return *this;
  for (const MemoryBlock& block : blocks_) memory_->release(block);
  memory_ = other.memory_;
  element_bytes_ = other.element_bytes_;
  shift_ = other.shift_;
  mask_ = other.mask_;
  label_ = other.label_;
  slabs_ = std::exchange(other.slabs_, {});
  blocks_ = std::exchange(other.blocks_, {});
  return *this;
}

SlabArray::~SlabArray() {
  for (const MemoryBlock& block : blocks_) memory_->release(block);
}

Result<void> SlabArray::ensure(uint64_t count) {
  while (capacity() < count) {
    // Several at once when there are many, so that large worlds stay within a driver's number of allocations: a thirty-second more.
    const size_t slab_bytes = (mask_ + 1) * element_bytes_, together = std::bit_floor(std::max<size_t>(slabs_.size() / 32, 1));
    slabs_.reserve(slabs_.size() + together);  // before there is a block that could be lost
    blocks_.reserve(blocks_.size() + 1);
    auto block = memory_->allocate(together * slab_bytes, label_);
    if (!block) return tl::unexpected(block.error());
    blocks_.push_back(*block);
    for (size_t i = 0; i < together; ++i) {
      MemoryBlock slab = *block;
      slab.data = static_cast<char*>(block->data) + i * slab_bytes;
      slab.size_bytes = slab_bytes;
      if (slab.device_address) slab.device_address += i * slab_bytes;
      slabs_.push_back(slab);
    }
  }
  return {};
}

uint64_t SlabArray::size_bytes() const {
  uint64_t total = 0;
  for (const MemoryBlock& block : blocks_) total += block.size_bytes;
  return total;
}

}  // namespace quarry
