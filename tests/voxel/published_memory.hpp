// SPDX-License-Identifier: Apache-2.0
// published_memory.hpp - a MemorySource for tests whose blocks are published to imagined frames, like those that a GPU
// reads in place. A block that was released stays until its epoch is past; then it is overwritten and freed.
#pragma once

#include <cstring>
#include <vector>

#include "tests/voxel/limited_memory.hpp"

namespace quarry::test {

class PublishedMemory final : public MemorySource {
 public:
  LimitedMemory memory;
  ~PublishedMemory() override { free_until(UINT64_MAX); }

  uint64_t epoch() const noexcept override { return epoch_; }
  uint64_t past_epoch() const noexcept override { return past_; }
  // Returns the number of the snapshot: frames know it until end(number).
  uint64_t publish() { return ++epoch_; }
  // No frame knows this snapshot, or one before it, any more.
  void end(uint64_t snapshot) { free_until(past_ = snapshot); }

  Result<MemoryBlock> allocate(size_t size_bytes, const char* label) override {
    return memory.allocate(size_bytes, label);
  }
  void release(const MemoryBlock& block) noexcept override {
    released_.push_back({epoch_, block});
    free_until(past_);
  }

 private:
  struct Released {
    uint64_t epoch;
    MemoryBlock block;
  };
  void free_until(uint64_t past) {
    std::erase_if(released_, [&](const Released& one) {
      if (one.epoch > past) return false;
      std::memset(one.block.data, 0xA5, one.block.size_bytes);
      memory.release(one.block);
      return true;
    });
  }
  uint64_t epoch_ = 0, past_ = 0;
  std::vector<Released> released_;
};

}  // namespace quarry::test
