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

// A MemorySource of SharedBuffers for World and Grid. A released block is destroyed only when no frame can read it:
// when frame_completed() has reached the value that frame_submitted() had at the release, and in host_import also the
// epoch of the release is past. So the renderer never reads freed memory and never waits.
class SharedMemorySource : public MemorySource {
 public:
  SharedMemorySource(Device& device, SharingMode mode);
  ~SharedMemorySource() override;
  Result<MemoryBlock> allocate(size_t size_bytes, const char* label) override;
  void release(const MemoryBlock& block) noexcept override;
  uint64_t epoch() const noexcept override;  // 0 but in host_import: there frames read these blocks
  uint64_t past_epoch() const noexcept override;
  // host_import: blocks until the submitted frames are done that read the hash grid (frame_reads_grid)
  void wait_for_readers() noexcept override;
  // Frames that are recorded from now on know what the blocks hold now: a new epoch begins.
  void published();
  // The timeline value that the newest frame will signal. Call it when the frame is recorded, at the latest before the
  // next published(). `reads_grid`: its view reads the hash grid itself.
  void frame_submitted(uint64_t value, bool reads_grid = false);
  void frame_completed(uint64_t value);                // destroys blocks that no frame can read any more
  void copies_submitted(Device::TimelinePoint point);  // blocks released from now on outlive these copies too
  SharingMode mode() const;
  uint64_t size_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quarry::engine
