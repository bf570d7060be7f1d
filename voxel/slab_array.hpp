// slab_array.hpp - an array that grows without moving: equal slabs from a MemorySource. Bricks live in these, so
// that growth copies nothing, a shader finds an element through one table of slab addresses, and no single buffer passes a
// device's limit (128 MiB on Mesa's software Vulkan).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hashgrid/memory_source.hpp"

namespace quarry {

class SlabArray {
 public:
  SlabArray(MemorySource& memory, size_t element_bytes, uint32_t elements_per_slab /* power of two */, const char* label);
  SlabArray(SlabArray&&) noexcept;
  SlabArray& operator=(SlabArray&&) noexcept;
  ~SlabArray();

  // Makes elements [0, count) exist (zeroed when new). Errors: out_of_memory, device.
  Result<void> ensure(uint64_t count);
  // For an array that has nothing yet and is not going to grow: the same, with the last slab cut off behind element count - 1.
  Result<void> fit(uint64_t count);
  void* at(uint64_t index) const {
    return static_cast<char*>(slabs_[index >> shift_].data) + (index & mask_) * element_bytes_;
  }
  uint64_t capacity() const { return capacity_; }
  uint32_t slab_shift() const { return shift_; }
  // Slabs may share an allocation: `owner` is that allocation's, data and device address are the slab's own.
  const std::vector<MemoryBlock>& slabs() const { return slabs_; }
  uint64_t size_bytes() const;

 private:
  Result<void> add(uint64_t elements);  // in one allocation

  MemorySource* memory_;
  size_t element_bytes_;
  uint32_t shift_;
  uint64_t mask_;
  const char* label_;
  uint64_t capacity_ = 0;
  std::vector<MemoryBlock> slabs_;
  std::vector<MemoryBlock> blocks_;  // what was allocated
};

}  // namespace quarry
