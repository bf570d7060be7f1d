// SPDX-License-Identifier: Apache-2.0
// slab_array.hpp - an array that grows without moving: slabs from a MemorySource. Bricks are stored in these. So growth
// copies nothing, a shader finds an element through one table of slab addresses, and no buffer exceeds a device's limit
// (128 MiB on Mesa's software Vulkan).
//
// Element i is in slab i / elements_per_slab. A slab may end early at a cut: the elements after the cut do not exist,
// and never will. So neither growing nor cutting a grown array moves elements that others refer to. Growth continues
// with the next slab.
//
//   | slab 0 | slab 1 | slab 2, cut |      | slab 3 ...
//                                   '------' numbers without elements
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/memory_source.hpp"

namespace quarry {

class SlabArray {
 public:
  SlabArray(MemorySource& memory, size_t element_bytes, uint32_t elements_per_slab /* power of two */,
            const char* label);
  SlabArray(SlabArray&&) noexcept;
  SlabArray& operator=(SlabArray&&) noexcept;
  ~SlabArray();

  // Adds at least `count` zeroed elements, [grows_at(), grows_at() + count), and up to a sixty-fourth of the array
  // more, so that growing one by one stays cheap. Errors: out_of_memory, device; then some of them may exist (see cut).
  Result<void> grow(uint64_t count);
  uint64_t grows_at() const { return uint64_t(slabs_.size()) << shift_; }
  // Allocates exactly elements [0, count). The array must be empty.
  Result<void> shrink_to_fit(uint64_t count);
  // For an array that mirrors another: adds the slabs that `other` has in addition, of the same sizes.
  Result<void> follow(const SlabArray& other);
  // Removes the elements from `count` on and frees their memory, as far as its source can give back the end of a block.
  // Nothing moves.
  void trim(uint64_t count);
  // How many elements' memory that would leave unused, since the source cannot give back the end of a block.
  uint64_t unused_after_trim(uint64_t count) const;

  void* at(uint64_t index) const {
    return static_cast<char*>(slabs_[index >> shift_].data) + (index & mask_) * element_bytes_;
  }
  uint64_t capacity() const { return capacity_; }  // all elements are below it
  uint32_t slab_shift() const { return shift_; }
  // Slabs may share an allocation: `owner` is that allocation's; data, size and device address are the slab's own.
  const std::vector<MemoryBlock>& slabs() const { return slabs_; }
  uint64_t size_bytes() const;

 private:
  Result<void> add(uint64_t elements);  // in one allocation
  void point_slabs(size_t first, const MemoryBlock& block, uint64_t elements);

  struct Block {
    MemoryBlock memory;
    size_t first_slab;
    uint64_t elements;
  };

  MemorySource* memory_;
  size_t element_bytes_;
  uint32_t shift_;
  uint64_t mask_;
  const char* label_;
  uint64_t capacity_ = 0;
  std::vector<MemoryBlock> slabs_;
  std::vector<Block> blocks_;  // what was allocated
};

}  // namespace quarry
