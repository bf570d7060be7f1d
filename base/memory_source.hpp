// SPDX-License-Identifier: Apache-2.0
// memory_source.hpp - where large arrays get their memory: host memory here, a device's from its executor, any other
// from a source of the caller's own. Who holds an array never allocates behind its owner's back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.hpp"

namespace quarry {

// One allocation. `data` is what the executor that works on it dereferences (a host pointer, or a CUDA device pointer).
struct MemoryBlock {
  void* data = nullptr;
  size_t size_bytes = 0;
  uint64_t device_address = 0;  // address in shaders, 0 if the block is not shared with them
  void* owner = nullptr;        // the source's own note
};

class MemorySource {
 public:
  virtual ~MemorySource() = default;

  // At least `size_bytes` (> 0) bytes, aligned to 4096, all zero. `label` names the block in statistics and debuggers.
  // Free-threaded. Errors: out_of_memory, device.
  virtual Result<MemoryBlock> allocate(size_t size_bytes, const char* label) = 0;

  // Gives a block back. A source that shares with a GPU defers the real release until no frame in flight can read it.
  virtual void release(const MemoryBlock& block) noexcept = 0;

  // Called by an owner of blocks before it changes what they hold in place: a source whose blocks a GPU reads directly
  // comes back when no frame under way does. Any thread; nothing to do for other sources.
  virtual void wait_for_readers() noexcept {}
};

// Zeroed pages of anonymous host memory (mmap): untouched parts cost nothing. One process-wide stateless object.
MemorySource& host_memory_source();

}  // namespace quarry
