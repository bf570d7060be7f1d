// SPDX-License-Identifier: Apache-2.0
// buffer.cpp - the choice of sharing mode, and one shared buffer. sharing/memory_source.cpp manages many.
#include "engine/sharing/buffer.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/vulkan/device_memory.hpp"

namespace quarry::engine {

const char* to_string(SharingMode mode) {
  switch (mode) {
    case SharingMode::automatic: return "automatic";
    case SharingMode::zero_copy: return "zero-copy";
    case SharingMode::host_import: return "host-import";
    case SharingMode::staged: return "staged";
  }
  return "unknown";
}

Result<SharingChoice> choose_sharing(const Device& device, SharingMode wanted) {
  const DeviceInfo& info = device.info();
  std::string no_zero_copy;
  if (device.cuda_device() < 0) no_zero_copy = device.cuda_reason();
  else if (!info.external_memory_fd) no_zero_copy = info.name + " cannot export memory (VK_KHR_external_memory_fd)";
  const std::string no_import =
      info.external_memory_host ? "" : info.name + " cannot import host memory (VK_EXT_external_memory_host)";
  // A device behind a bus would read the host's memory word by word.
  const bool beside_host =
      info.type == VK_PHYSICAL_DEVICE_TYPE_CPU || info.type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  switch (wanted) {
    case SharingMode::zero_copy:
      if (!no_zero_copy.empty())
        return fail(ErrorCode::unsupported, "zero-copy sharing is not possible: " + no_zero_copy);
      return SharingChoice{wanted, "zero-copy was asked for: CUDA device " + std::to_string(device.cuda_device()) +
                                       " writes memory exported by " + info.name};
    case SharingMode::host_import:
      if (!no_import.empty()) return fail(ErrorCode::unsupported, "host-import sharing is not possible: " + no_import);
      return SharingChoice{wanted, "host-import was asked for: " + info.name + " reads the host's memory in place"};
    case SharingMode::staged: return SharingChoice{wanted, "staged was asked for: changes are copied to " + info.name};
    case SharingMode::automatic: break;
  }
  if (no_zero_copy.empty())
    return SharingChoice{SharingMode::zero_copy, "CUDA device " + std::to_string(device.cuda_device()) + " is " +
                                                     info.name + " and writes memory exported by Vulkan"};
  if (no_import.empty() && beside_host)
    return SharingChoice{SharingMode::host_import,
                         info.name + " reads the host's memory in place; no zero-copy because " + no_zero_copy};
  return SharingChoice{SharingMode::staged, "changes are copied; no zero-copy because " + no_zero_copy +
                                                "; no host-import because " +
                                                (no_import.empty() ? info.name + " has memory of its own" : no_import)};
}

Result<SharingChoice> choose_host_sharing(const Device& device, SharingMode wanted) {
  auto choice = choose_sharing(device, wanted);
  if (choice && choice->mode == SharingMode::zero_copy)
    return SharingChoice{SharingMode::staged, "changes are copied to " + device.info().name +
                                                  ": the world is at home on the host, and not on the CUDA device"};
  return choice;
}

struct SharedBuffer::State {
  SharingMode mode = SharingMode::staged;
  size_t size_bytes = 0;
  void* host = nullptr;
  size_t host_bytes = 0;
  std::unique_ptr<DeviceMemory> memory;

  ~State() {
    // The imported pages are freed after the buffer that reads them.
    memory.reset();
    if (host) munmap(host, host_bytes);
  }
};

SharedBuffer::SharedBuffer(std::unique_ptr<State> state) : state_(std::move(state)) {}
SharedBuffer::~SharedBuffer() = default;

Result<std::unique_ptr<SharedBuffer>> SharedBuffer::create(Device& device, SharingMode mode, size_t size_bytes,
                                                           const char* label) {
  if (!size_bytes) return fail(ErrorCode::invalid_argument, std::string("shared buffer '") + label + "' of 0 bytes");
  QRY_TRY_ASSIGN(const auto choice, choose_host_sharing(device, mode));
  auto state = std::make_unique<State>();
  State& s = *state;
  s.mode = choice.mode;
  s.size_bytes = size_bytes;
  const size_t alignment =
      std::max<size_t>(device.info().min_imported_host_pointer_alignment, size_t(sysconf(_SC_PAGESIZE)));
  s.host_bytes = (size_bytes + alignment - 1) / alignment * alignment;
  // mmap aligns to pages; an import alignment above that (none seen) would need a larger mapping cut to fit.
  if (alignment > size_t(sysconf(_SC_PAGESIZE)) && s.mode == SharingMode::host_import)
    return fail(ErrorCode::unsupported, device.info().name + " imports host memory only at multiples of " +
                                            std::to_string(alignment) + " bytes: use staged sharing");
  void* host = mmap(nullptr, s.host_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (host == MAP_FAILED)
    return fail(ErrorCode::out_of_memory, std::string("no host memory for shared buffer '") + label + "' of " +
                                              std::to_string(size_bytes) + " bytes: " + std::strerror(errno));
  s.host = host;
  auto memory = s.mode == SharingMode::host_import
                    ? DeviceMemory::create(device, BufferMemory::host_pointer, s.host_bytes, label, s.host)
                    : DeviceMemory::create(device, BufferMemory::device, s.host_bytes, label);
  QRY_TRY(memory);
  s.memory = std::move(*memory);
  return std::unique_ptr<SharedBuffer>(new SharedBuffer(std::move(state)));
}

SharingMode SharedBuffer::mode() const { return state_->mode; }
size_t SharedBuffer::size_bytes() const { return state_->size_bytes; }
VkBuffer SharedBuffer::buffer() const { return state_->memory->buffer(); }
uint64_t SharedBuffer::device_address() const { return state_->memory->address(); }
void* SharedBuffer::host() const { return state_->host; }

}  // namespace quarry::engine
