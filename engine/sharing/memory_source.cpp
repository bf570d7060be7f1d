// SPDX-License-Identifier: Apache-2.0
// memory_source.cpp - keeps track of the blocks that frames may still read. Released memory waits for the timeline
// values submitted before its release.
#include "engine/sharing/memory_source.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <vector>

#include "engine/vulkan/functions.hpp"
#include "engine/vulkan/timeline.hpp"

namespace quarry::engine {

struct SharedMemorySource::State {
  Device* device;
  SharingMode mode;
  mutable std::mutex mutex;
  std::vector<std::unique_ptr<SharedBuffer>> live;
  struct Retired {
    std::unique_ptr<SharedBuffer> buffer;
    uint64_t frame, epoch;
    Device::TimelinePoint copies;
  };
  std::vector<Retired> retired;
  uint64_t submitted = 0, completed = 0, bytes = 0;
  uint64_t grid_readers = 0;  // the newest frame that reads the grid
  // The last frame of each epoch that is not past.
  struct Epoch {
    uint64_t epoch, last_frame;
  };
  std::deque<Epoch> epochs;
  std::atomic<uint64_t> epoch{0}, past{0};  // written under the mutex
  Device::TimelinePoint copies{VK_NULL_HANDLE, 0};
  // wait_for_readers() waits for this timeline, because the frames' own semaphores belong to their owner.
  std::mutex write_mutex;
  std::unique_ptr<Timeline> idle;
  uint64_t waited_for = 0;

  bool reached(const Device::TimelinePoint& point) const {
    if (!point.semaphore) return true;
    uint64_t now = 0;
    return device->vk().vkGetSemaphoreCounterValue(device->handle(), point.semaphore, &now) == VK_SUCCESS &&
           now >= point.value;
  }
  void end_epochs() {
    for (; !epochs.empty() && epochs.front().last_frame <= completed; epochs.pop_front()) past = epochs.front().epoch;
  }

  void destroy_what_may_go() {
    std::erase_if(retired, [&](Retired& r) {
      const bool gone = r.frame <= completed && r.epoch <= past && reached(r.copies);
      if (gone) bytes -= r.buffer->size_bytes();
      return gone;
    });
  }
};

SharedMemorySource::SharedMemorySource(Device& device, SharingMode mode) : state_(std::make_unique<State>()) {
  state_->device = &device;
  state_->mode = mode;
}

SharedMemorySource::~SharedMemorySource() = default;

Result<MemoryBlock> SharedMemorySource::allocate(size_t size_bytes, const char* label) {
  QRY_TRY_ASSIGN(auto buffer, SharedBuffer::create(*state_->device, state_->mode, size_bytes, label));
  SharedBuffer& b = *buffer;
  const std::lock_guard lock(state_->mutex);
  state_->bytes += b.size_bytes();
  MemoryBlock block{b.host(), size_bytes, b.device_address(), &b};
  state_->live.push_back(std::move(buffer));
  return block;
}

void SharedMemorySource::release(const MemoryBlock& block) noexcept {
  const std::lock_guard lock(state_->mutex);
  auto it =
      std::find_if(state_->live.begin(), state_->live.end(), [&](const auto& b) { return b.get() == block.owner; });
  if (it == state_->live.end()) return;  // an empty block
  state_->retired.push_back({std::move(*it), state_->submitted, state_->epoch, state_->copies});
  state_->live.erase(it);
  state_->destroy_what_may_go();
}

uint64_t SharedMemorySource::epoch() const noexcept { return state_->epoch.load(std::memory_order_acquire); }
uint64_t SharedMemorySource::past_epoch() const noexcept { return state_->past.load(std::memory_order_acquire); }

void SharedMemorySource::published() {
  State& s = *state_;
  if (s.mode != SharingMode::host_import) return;
  const std::lock_guard lock(s.mutex);
  // Without frames in between the older snapshot is past as soon as the newer one.
  if (!s.epochs.empty() && s.epochs.back().last_frame == s.submitted) s.epochs.back().epoch = s.epoch;
  else s.epochs.push_back({s.epoch, s.submitted});
  ++s.epoch;
  s.end_epochs();
  s.destroy_what_may_go();
}

// In host_import views of the hash grid read the table that the host is about to change. A signal on the queue comes
// after everything submitted to it before.
void SharedMemorySource::wait_for_readers() noexcept {
  State& s = *state_;
  if (s.mode != SharingMode::host_import) return;
  const std::lock_guard lock(s.write_mutex);
  uint64_t submitted, completed;
  {
    const std::lock_guard counters(s.mutex);
    submitted = s.grid_readers, completed = s.completed;
  }
  if (submitted <= std::max(completed, s.waited_for)) return;
  // A device that fails here has no frames in flight any more.
  if (!s.idle) {
    auto timeline = Timeline::create(*s.device, "quarry frames done, to the host");
    if (!timeline) return;
    s.idle = std::move(*timeline);
  }
  const uint64_t value = s.idle->last() + 1;
  if (!s.device->submit(VK_NULL_HANDLE, {}, {{s.idle->handle(), value}})) return;
  s.idle->next();
  if (s.idle->wait(value)) s.waited_for = submitted;
}

void SharedMemorySource::frame_submitted(uint64_t value, bool reads_grid) {
  const std::lock_guard lock(state_->mutex);
  state_->submitted = std::max(state_->submitted, value);
  if (reads_grid) state_->grid_readers = std::max(state_->grid_readers, value);
}

void SharedMemorySource::frame_completed(uint64_t value) {
  const std::lock_guard lock(state_->mutex);
  state_->completed = std::max(state_->completed, value);
  state_->end_epochs();
  state_->destroy_what_may_go();
}

void SharedMemorySource::copies_submitted(Device::TimelinePoint point) {
  const std::lock_guard lock(state_->mutex);
  state_->copies = point;
}

SharingMode SharedMemorySource::mode() const { return state_->mode; }

uint64_t SharedMemorySource::size_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->bytes;
}

}  // namespace quarry::engine
