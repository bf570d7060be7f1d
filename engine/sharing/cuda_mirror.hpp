// SPDX-License-Identifier: Apache-2.0
// cuda_mirror.hpp - a copy of a World in GPU memory that CUDA writes and Vulkan reads: zero-copy sharing.
//
//   World (host) --regions--> pinned memory --> CUDA scatter kernel --> grid, masks, materials, pyramid in exported
//   memory, byte for byte
//
// The queue releases the buffers to be written. CUDA's stream waits for that, writes and signals. The queue then
// acquires the buffers (ownership.hpp). The host waits for none of these steps. A table that grew gets a new block. The
// old block lives until the frames that can read it are done.
#pragma once

#include <memory>

#include "engine/sharing/memory_source.hpp"
#include "engine/sharing/world_changes.hpp"

namespace quarry::engine {

class CudaMirror {
 public:
  static Result<std::unique_ptr<CudaMirror>> create(Device& device, SharedMemorySource& memory);
  ~CudaMirror();

  // Brings the copy up to date and returns the timeline point at which it is. It blocks only for a change of more than
  // 128 MiB, until CUDA has read the part above that.
  Result<Device::TimelinePoint> update(const World& world, WorldChanges changes);

  const MemoryBlock& grid() const;
  const SlabArray& masks() const;
  const SlabArray& materials() const;
  const MemoryBlock& pyramid() const;

 private:
  struct State;
  explicit CudaMirror(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quarry::engine
