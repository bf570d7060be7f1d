#include "voxel/slab_array.hpp"

#include <bit>
#include <utility>

namespace quarry {

SlabArray::SlabArray(MemorySource& memory, size_t element_bytes, uint32_t elements_per_slab, const char* label)
    : memory_(&memory), element_bytes_(element_bytes), shift_(uint32_t(std::countr_zero(elements_per_slab))), mask_(elements_per_slab - 1), label_(label) {}

SlabArray::SlabArray(SlabArray&& other) noexcept
    : memory_(other.memory_), element_bytes_(other.element_bytes_), shift_(other.shift_), mask_(other.mask_), label_(other.label_),
      slabs_(std::exchange(other.slabs_, {})) {}

SlabArray& SlabArray::operator=(SlabArray&& other) noexcept {
  if (this == &other) return *this;
  for (const MemoryBlock& slab : slabs_) memory_->release(slab);
  memory_ = other.memory_;
  element_bytes_ = other.element_bytes_;
  shift_ = other.shift_;
  mask_ = other.mask_;
  label_ = other.label_;
  slabs_ = std::exchange(other.slabs_, {});
  return *this;
}

SlabArray::~SlabArray() {
  for (const MemoryBlock& slab : slabs_) memory_->release(slab);
}

Result<void> SlabArray::ensure(uint64_t count) {
  while (capacity() < count) {
    slabs_.reserve(slabs_.size() + 1);  // before there is a slab that could be lost
    auto slab = memory_->allocate((mask_ + 1) * element_bytes_, label_);
    if (!slab) return tl::unexpected(slab.error());
    slabs_.push_back(*slab);
  }
  return {};
}

uint64_t SlabArray::size_bytes() const {
  uint64_t total = 0;
  for (const MemoryBlock& slab : slabs_) total += slab.size_bytes;
  return total;
}

}  // namespace quarry
