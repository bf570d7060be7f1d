// SPDX-License-Identifier: Apache-2.0
// timeline.cpp - creates and waits for the semaphore. Its destructor works around Mesa's submission thread.
#include "engine/vulkan/timeline.hpp"

#include "engine/vulkan/loader.hpp"

namespace quarry::engine {

Result<std::unique_ptr<Timeline>> Timeline::create(Device& device, const char* label) {
  std::unique_ptr<Timeline> self(new Timeline(device));
  VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, nullptr, VK_SEMAPHORE_TYPE_TIMELINE, 0};
  VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type, 0};
  QRY_TRY(vk_check(device.vk().vkCreateSemaphore(device.handle(), &info, nullptr, &self->semaphore_),
                   "vkCreateSemaphore", label));
  device.set_name(VK_OBJECT_TYPE_SEMAPHORE, reinterpret_cast<uint64_t>(self->semaphore_), label);
  return self;
}

Timeline::~Timeline() {
  if (!semaphore_) return;
  // Mesa's software driver (seen in 22.3.6; src/vulkan/runtime/vk_queue.c) submits from a thread. That thread releases
  // the timeline points that a batch waited for only after the host can see the batch's own signal. A timeline
  // destroyed in between is used after its destruction, and about one run in seven crashed. The thread takes batches in
  // order, so an empty batch after them shows that it is done with them. Remove this when vk_queue_submit_thread_func
  // releases the wait points before it installs the signals.
  if (last_ > 0 && device_->info().type == VK_PHYSICAL_DEVICE_TYPE_CPU) {
    const uint64_t value = next();
    if (device_->submit(VK_NULL_HANDLE, {}, {{semaphore_, value}})) (void)wait(value);
  }
  device_->vk().vkDestroySemaphore(device_->handle(), semaphore_, nullptr);
}

Result<uint64_t> Timeline::reached() const {
  uint64_t value = 0;
  QRY_TRY(vk_check(device_->vk().vkGetSemaphoreCounterValue(device_->handle(), semaphore_, &value),
                   "vkGetSemaphoreCounterValue", "a timeline"));
  return value;
}

Result<void> Timeline::wait(uint64_t value) const {
  VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, nullptr, 0, 1, &semaphore_, &value};
  return vk_check(device_->vk().vkWaitSemaphores(device_->handle(), &info, UINT64_MAX), "vkWaitSemaphores",
                  device_->info().name);
}

Result<bool> Timeline::wait(uint64_t value, uint64_t most_ns) const {
  VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, nullptr, 0, 1, &semaphore_, &value};
  const VkResult result = device_->vk().vkWaitSemaphores(device_->handle(), &info, most_ns);
  if (result == VK_TIMEOUT) return false;
  QRY_TRY(vk_check(result, "vkWaitSemaphores", device_->info().name));
  return true;
}

}  // namespace quarry::engine
