// SPDX-License-Identifier: Apache-2.0
// memory_source.hpp - memory for worlds that a device reads: shared buffers, each kept until no frame can read it any
// more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/memory_source.hpp"
#include "engine/sharing/buffer.hpp"

namespace quarry::engine {

// A MemorySource of SharedBuffers for World and Grid. A released block is destroyed only when `completed` frames have
// passed the value that `pending` had at the release: the renderer never reads freed memory and never waits.
class SharedMemorySource : public MemorySource {
 public:
  SharedMemorySource(Device& device, SharingMode mode);
  ~SharedMemorySource() override;
  Result<MemoryBlock> allocate(size_t size_bytes, const char* label) override;
  void release(const MemoryBlock& block) noexcept override;
  void wait_for_readers() noexcept override;           // host_import: blocks until the frames submitted so far are done
  void frame_submitted(uint64_t value);                // timeline value that the newest submitted frame will signal
  void frame_completed(uint64_t value);                // destroys what no frame can read any more
  void copies_submitted(Device::TimelinePoint point);  // what is released from now on outlives these copies too
  SharingMode mode() const;
  uint64_t size_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quarry::engine
