// SPDX-License-Identifier: Apache-2.0
// device_memory.cpp - makes buffer, memory, address and mapping with the memory type for a BufferMemory, and exports
// memory by file descriptor.
#include "engine/vulkan/device_memory.hpp"

#include "engine/vulkan/loader.hpp"

namespace quarry::engine {

Result<std::unique_ptr<DeviceMemory>> DeviceMemory::create(Device& device, BufferMemory kind, size_t size_bytes,
                                                           const char* label, void* imported) {
  if (!size_bytes) return fail(ErrorCode::invalid_argument, std::string("buffer '") + label + "' of 0 bytes");
  const VulkanFunctions& vk = device.vk();
  const std::string purpose =
      std::string("buffer '") + label + "' of " + std::to_string(size_bytes) + " bytes on " + device.info().name;
  std::unique_ptr<DeviceMemory> self(new DeviceMemory(device));
  self->size_bytes_ = size_bytes;

  const VkExternalMemoryHandleTypeFlagBits handle_type = kind == BufferMemory::exported
                                                             ? VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT
                                                             : VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  const bool external = kind == BufferMemory::exported || kind == BufferMemory::host_pointer;
  VkExternalMemoryBufferCreateInfo external_info{VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, nullptr,
                                                 VkExternalMemoryHandleTypeFlags(handle_type)};
  VkBufferCreateInfo buffer_info{};
  buffer_info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  buffer_info.pNext = external ? &external_info : nullptr;
  buffer_info.size = size_bytes;
  buffer_info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT |
                      VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                      VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT;
  buffer_info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  QRY_TRY(
      vk_check(vk.vkCreateBuffer(device.handle(), &buffer_info, nullptr, &self->buffer_), "vkCreateBuffer", purpose));

  VkBufferMemoryRequirementsInfo2 ask{VK_STRUCTURE_TYPE_BUFFER_MEMORY_REQUIREMENTS_INFO_2, nullptr, self->buffer_};
  VkMemoryRequirements2 requirements{VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2, nullptr, {}};
  vk.vkGetBufferMemoryRequirements2(device.handle(), &ask, &requirements);
  uint32_t type_bits = requirements.memoryRequirements.memoryTypeBits;
  self->allocation_bytes_ = requirements.memoryRequirements.size;

  VkMemoryPropertyFlags wanted = 0;
  switch (kind) {
    case BufferMemory::device:
    case BufferMemory::exported: wanted = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT; break;
    case BufferMemory::host_upload:
    case BufferMemory::device_mapped:
    case BufferMemory::host_readback:
      wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
      break;
    case BufferMemory::host_pointer: break;
  }
  VkImportMemoryHostPointerInfoEXT import_info{VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT, nullptr,
                                               handle_type, imported};
  VkExportMemoryAllocateInfo export_info{VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO, nullptr,
                                         VkExternalMemoryHandleTypeFlags(handle_type)};
  VkMemoryDedicatedAllocateInfo dedicated_info{VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO, nullptr,
                                               VK_NULL_HANDLE, self->buffer_};
  VkMemoryAllocateFlagsInfo flags_info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO, nullptr,
                                       VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT, 0};
  if (kind == BufferMemory::host_pointer) {
    VkMemoryHostPointerPropertiesEXT properties{VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT, nullptr, 0};
    QRY_TRY(vk_check(vk.vkGetMemoryHostPointerPropertiesEXT(device.handle(), handle_type, imported, &properties),
                     "vkGetMemoryHostPointerPropertiesEXT", purpose));
    type_bits &= properties.memoryTypeBits;
    self->allocation_bytes_ = size_bytes;
    flags_info.pNext = &import_info;
  } else if (kind == BufferMemory::exported) {
    export_info.pNext = &dedicated_info;
    flags_info.pNext = &export_info;
  } else if (kind == BufferMemory::device) {
    flags_info.pNext = &dedicated_info;
  }
  self->dedicated_ = kind == BufferMemory::exported || kind == BufferMemory::device;
  VkMemoryPropertyFlags liked = 0;  // preferred, not required
  if (kind == BufferMemory::host_readback) liked = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  if (kind == BufferMemory::device_mapped) liked = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  auto type = device.memory_type(type_bits, wanted | liked);
  if (!type && liked) type = device.memory_type(type_bits, wanted);
  QRY_TRY(type);
  VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &flags_info, self->allocation_bytes_, *type};
  QRY_TRY(
      vk_check(vk.vkAllocateMemory(device.handle(), &allocate, nullptr, &self->memory_), "vkAllocateMemory", purpose));
  QRY_TRY(
      vk_check(vk.vkBindBufferMemory(device.handle(), self->buffer_, self->memory_, 0), "vkBindBufferMemory", purpose));
  if (kind == BufferMemory::host_upload || kind == BufferMemory::device_mapped || kind == BufferMemory::host_readback) {
    QRY_TRY(vk_check(vk.vkMapMemory(device.handle(), self->memory_, 0, VK_WHOLE_SIZE, 0, &self->mapped_), "vkMapMemory",
                     purpose));
  } else if (kind == BufferMemory::host_pointer) {
    self->mapped_ = imported;
  }
  VkBufferDeviceAddressInfo address{VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, nullptr, self->buffer_};
  self->address_ = vk.vkGetBufferDeviceAddress(device.handle(), &address);
  device.set_name(VK_OBJECT_TYPE_BUFFER, reinterpret_cast<uint64_t>(self->buffer_), label);
  return self;
}

DeviceMemory::~DeviceMemory() {
  const VulkanFunctions& vk = device_->vk();
  if (buffer_) vk.vkDestroyBuffer(device_->handle(), buffer_, nullptr);
  if (memory_) vk.vkFreeMemory(device_->handle(), memory_, nullptr);  // unmaps
}

Result<DeviceMemory::Export> DeviceMemory::export_fd() const {
  VkMemoryGetFdInfoKHR info{VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR, nullptr, memory_,
                            VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
  Export out{-1, allocation_bytes_, dedicated_};
  QRY_TRY(vk_check(device_->vk().vkGetMemoryFdKHR(device_->handle(), &info, &out.fd), "vkGetMemoryFdKHR",
                   "sharing with CUDA"));
  return out;
}

Result<void> ensure_memory(Device& device, std::unique_ptr<DeviceMemory>& memory, BufferMemory kind,
                           uint64_t size_bytes, const char* label) {
  if (memory && memory->size_bytes() >= size_bytes) return {};
  memory.reset();
  QRY_TRY_ASSIGN(auto made, DeviceMemory::create(device, kind, size_bytes, label));
  memory = std::move(made);
  return {};
}

}  // namespace quarry::engine
