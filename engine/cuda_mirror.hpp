// cuda_mirror.hpp - a World's twin in GPU memory that CUDA writes and Vulkan reads: zero-copy sharing.
//
//   World (host) --dirty keys--> CUDA executor: Grid in exported memory          brick indices are the World's own
//                --pieces------> CUDA scatter kernel: masks, materials, pyramid in exported slabs
//   before it writes, the stream waits for the frames submitted so far; after, it signals the value that the next frame waits for
#pragma once

#include <memory>

#include "engine/shared_buffer.hpp"
#include "engine/world_changes.hpp"
#include "hashgrid/grid.hpp"

namespace quarry::engine {

class CudaMirror {
 public:
  static Result<std::unique_ptr<CudaMirror>> create(Device& device, SharedMemorySource& memory);
  ~CudaMirror();

  // Brings the twin up to date; returns the point at which it is. The host waits for frames under way only when bricks came or went,
  // because the executor's bulk calls order themselves by the host; new bytes in bricks that stay are ordered on the GPU alone.
  Result<Device::TimelinePoint> update(const World& world, WorldChanges changes);

  const hashgrid::Grid& grid() const;
  const SlabArray& masks() const;
  const SlabArray& materials() const;
  const MemoryBlock& pyramid() const;

 private:
  struct State;
  explicit CudaMirror(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quarry::engine
