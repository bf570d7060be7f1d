// SPDX-License-Identifier: Apache-2.0
// cuda_mirror.hpp - a World's twin in GPU memory that CUDA writes and Vulkan reads: zero-copy sharing.
//
//   World (host) --regions--> pinned memory --> CUDA scatter kernel --> grid, masks, materials, pyramid in exported
//   memory, byte for byte
//
// The queue releases what is written, CUDA's stream waits for that, writes and signals, the queue acquires
// (ownership.hpp): the host waits for none of them. A table that grew is a new block; the old one lives until the
// frames that can read it are done.
#pragma once

#include <memory>

#include "engine/sharing/memory_source.hpp"
#include "engine/sharing/world_changes.hpp"

namespace quarry::engine {

class CudaMirror {
 public:
  static Result<std::unique_ptr<CudaMirror>> create(Device& device, SharedMemorySource& memory);
  ~CudaMirror();

  // Brings the twin up to date; returns the point at which it is. Blocks only in a change of more than 128 MiB, until
  // CUDA has read what lies above that.
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
