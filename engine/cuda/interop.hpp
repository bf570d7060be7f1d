// SPDX-License-Identifier: Apache-2.0
// interop.hpp - the CUDA side of memory sharing, without a CUDA type. interop.cu implements it in a build with a CUDA
// toolkit. Without one, interop_without_cuda.cpp reports that there is no CUDA.
//
// Everything works on one CUDA device, the one with the Vulkan device's UUID, because Vulkan and CUDA enumerate devices
// in different orders.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"

namespace quarry::engine {

// Returns the ordinal of the CUDA device with this UUID, or -1 with the reason in `why` (may be null).
int cuda_device_with_uuid(const std::array<uint8_t, 16>& uuid, std::string* why);

// Device memory exported by Vulkan as an opaque fd and mapped once.
class CudaImportedMemory {
 public:
  virtual ~CudaImportedMemory() = default;
  virtual void* data() const = 0;
};
// It takes over the fd in any case. `allocation_bytes` is VkMemoryAllocateInfo::allocationSize. `size_bytes` is the
// buffer's size.
Result<std::unique_ptr<CudaImportedMemory>> cuda_import_memory(int cuda_device, int fd, size_t allocation_bytes,
                                                               size_t size_bytes, bool dedicated);
// Zeroes memory and returns when it is zero. It does not wait for other CUDA work.
Result<void> cuda_clear(int cuda_device, void* data, size_t size_bytes);

// One region of an update: `size_bytes` (a multiple of 4) from the packed payload to CUDA address `to`.
struct CudaCopyRegion {
  uint64_t to = 0;
  uint32_t from_bytes = 0;
  uint32_t size_bytes = 0;
};

// A stream that scatters updates into shared memory, and the two timeline semaphores that order it with the Vulkan
// queue. All work goes on the stream and is done in that order. No call waits for a frame, with one exception in
// stage(). Only one thread may use it at a time.
class CudaScatter {
 public:
  virtual ~CudaScatter() = default;
  // The stream continues when the queue's semaphore has reached the value.
  virtual Result<void> wait(uint64_t queue_value) = 0;
  // Gives pinned host memory for `payload_bytes` (at most kPayloadBytes) and `region_count` regions (at most kRegions).
  // The caller fills it before run(). Three small and eight large stagings can be in flight. A call beyond that blocks
  // until the oldest of them has been read.
  static constexpr size_t kPayloadBytes = 16u << 20, kRegions = 1u << 16;
  struct Staging {
    void* payload;
    CudaCopyRegion* regions;
  };
  virtual Result<Staging> stage(size_t payload_bytes, size_t region_count) = 0;
  // Scatters what was staged.
  virtual Result<void> run(size_t region_count) = 0;
  // Sets CUDA's semaphore to the value when all earlier work is done.
  virtual Result<void> signal(uint64_t ready_value) = 0;
};
// Imports both semaphores. They are opaque fds of timeline semaphores, and it takes them over.
Result<std::unique_ptr<CudaScatter>> make_cuda_scatter(int cuda_device, int queue_semaphore_fd, int ready_semaphore_fd);

}  // namespace quarry::engine
