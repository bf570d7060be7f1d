// SPDX-License-Identifier: Apache-2.0
// memory_source.hpp - where large arrays get their memory: host memory here, device memory from an executor, any other
// from the caller's own source. The holder of an array allocates only from the source that its owner gave.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.hpp"

namespace quarry {

// One allocation. `data` is the pointer that its executor dereferences (a host pointer, or a CUDA device pointer).
struct MemoryBlock {
  void* data = nullptr;
  size_t size_bytes = 0;
  uint64_t device_address = 0;  // address in shaders, 0 if the block is not shared with them
  void* owner = nullptr;        // the source's private data
};

class MemorySource {
 public:
  virtual ~MemorySource() = default;

  // At least `size_bytes` (> 0) bytes, aligned to 4096, all zero. `label` names the block in statistics and debuggers.
  // Free-threaded. Errors: out_of_memory, device.
  virtual Result<MemoryBlock> allocate(size_t size_bytes, const char* label) = 0;

  // Releases a block. A source that shares with a GPU defers the actual release until no frame in flight can read it.
  virtual void release(const MemoryBlock& block) noexcept = 0;

  // Gives back the end of a block, so that `size_bytes` (> 0) remain where they are. False: this source cannot; nothing
  // has changed.
  virtual bool shrink(MemoryBlock& block, size_t size_bytes) noexcept {
    (void)block, (void)size_bytes;
    return false;
  }
  virtual bool can_shrink() const noexcept { return false; }

  // Snapshots, of sources whose blocks a GPU reads directly. Each time that the blocks are published to frames a new
  // epoch begins. What was made in this epoch, no frame knows yet. What goes out of use in this epoch may still be read
  // by frames that know an older snapshot, those recorded and not submitted included. It may be written again when
  // past_epoch() has reached this epoch: then all these frames are done. Any thread. Of other sources nothing is ever
  // published, and both are 0.
  virtual uint64_t epoch() const noexcept { return 0; }
  virtual uint64_t past_epoch() const noexcept { return 0; }

  // Who changes in place what frames read, the hash grid, calls this before. It returns when no frame reads it that was
  // submitted. Any thread. Other sources do nothing.
  virtual void wait_for_readers() noexcept {}
};

// Zeroed pages of anonymous host memory (mmap): untouched parts cost nothing. One process-wide stateless object.
MemorySource& host_memory_source();

}  // namespace quarry
