// SPDX-License-Identifier: Apache-2.0
// device_memory.hpp - one VkBuffer bound to one VkDeviceMemory, with its device address. SharedBuffer, upload and frame
// buffers are built of it. Each piece is one Vulkan allocation. There are few pieces and they are large, so no
// allocator is needed.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/vulkan/device.hpp"
#include "engine/vulkan/functions.hpp"

namespace quarry::engine {

// The kind of the memory and where it comes from.
enum class BufferMemory : uint8_t {
  device,       // device-local
  host_upload,  // host-visible and coherent, mapped: the host writes, the device reads
  // Like host_upload, but device-local if there is such a type. For small data that every thread of a pass reads.
  device_mapped,
  // host-visible, coherent and mapped, cached if there is such a type: the device writes, the host reads.
  host_readback,
  host_pointer,  // the caller's page-aligned host memory, imported (VK_EXT_external_memory_host)
  exported,      // device-local, exportable as an opaque fd
};

class DeviceMemory {
 public:
  // `imported` is for host_pointer only. Its address and size must be multiples of min_imported_host_pointer_alignment.
  static Result<std::unique_ptr<DeviceMemory>> create(Device& device, BufferMemory kind, size_t size_bytes,
                                                      const char* label, void* imported = nullptr);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  VkBuffer buffer() const { return buffer_; }
  uint64_t address() const { return address_; }
  void* mapped() const { return mapped_; }
  size_t size_bytes() const { return size_bytes_; }
  // True of device-local memory, whatever its size and whatever the driver prefers: the memory is this buffer's alone.
  // Small blocks that are not are mapped by small pages, and a world that grew by them is read at random several times
  // slower: on an H200, 13 instead of 42 thousand million reads a second over 2 GiB.
  bool dedicated() const { return dedicated_; }
  // For `exported`: a new fd, owned by the caller, and what an importer must know.
  struct Export {
    int fd;
    size_t allocation_bytes;
    bool dedicated;
  };
  Result<Export> export_fd() const;

 private:
  explicit DeviceMemory(Device& device) : device_(&device) {}
  Device* device_;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  uint64_t address_ = 0;
  void* mapped_ = nullptr;
  size_t size_bytes_ = 0, allocation_bytes_ = 0;
  bool dedicated_ = false;
};

// Makes `memory` at least `size_bytes` large. Its old content may be lost.
Result<void> ensure_memory(Device& device, std::unique_ptr<DeviceMemory>& memory, BufferMemory kind,
                           uint64_t size_bytes, const char* label);

}  // namespace quarry::engine
