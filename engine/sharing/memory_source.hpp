// SPDX-License-Identifier: Apache-2.0
// memory_source.hpp - memory for worlds that a device reads. It consists of shared buffers, each kept until no frame
// can read it any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/memory_source.hpp"
#include "engine/sharing/buffer.hpp"

namespace quarry::engine {

// A MemorySource of SharedBuffers for World and Grid. A released block is destroyed only when frame_completed() has
// reached the value that frame_submitted() had at the release. So the renderer never reads freed memory and never
// waits.
class SharedMemorySource : public MemorySource {
 public:
  SharedMemorySource(Device& device, SharingMode mode);
  ~SharedMemorySource() override;
  Result<MemoryBlock> allocate(size_t size_bytes, const char* label) override;
  void release(const MemoryBlock& block) noexcept override;
  void wait_for_readers() noexcept override;           // host_import: blocks until the frames submitted so far are done
  void frame_submitted(uint64_t value);                // timeline value that the newest submitted frame will signal
  void frame_completed(uint64_t value);                // destroys blocks that no frame can read any more
  void copies_submitted(Device::TimelinePoint point);  // blocks released from now on outlive these copies too
  SharingMode mode() const;
  uint64_t size_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quarry::engine
