// SPDX-License-Identifier: Apache-2.0
// interop.cu - imports Vulkan's memory and semaphores into CUDA and runs the scatter kernel on them. It is the only
// file that knows both a Vulkan handle (as a file descriptor) and CUDA.
#include <cuda_runtime.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/cuda/device.cuh"
#include "base/cuda/launch.cuh"
#include "engine/cuda/interop.hpp"

namespace quarry::engine {
namespace {

using gpu::DeviceScope;

Result<void> check(cudaError_t result, const char* call, const char* purpose) {
  if (result == cudaSuccess) return {};
  return gpu::check(result, (std::string(call) + " for " + purpose).c_str());
}

class ImportedMemory final : public CudaImportedMemory {
 public:
  explicit ImportedMemory(int device) : device_(device) {}
  ~ImportedMemory() override {
    const DeviceScope scope(device_);
    if (data_) cudaFree(data_);
    if (memory_) cudaDestroyExternalMemory(memory_);
  }
  void* data() const override { return data_; }

  int device_;
  cudaExternalMemory_t memory_ = nullptr;
  void* data_ = nullptr;
};

// One block copies each region. It uses words of 16 bytes if both addresses and the size allow.
constexpr int kScatterThreads = 128;
__global__ void __launch_bounds__(kScatterThreads)
    scatter_kernel(const char* __restrict__ payload, const CudaCopyRegion* __restrict__ regions) {
  const CudaCopyRegion region = regions[blockIdx.x];
  const char* from = payload + region.from_bytes;
  char* to = reinterpret_cast<char*>(region.to);
  if (((region.to | region.from_bytes | region.size_bytes) & 15u) == 0) {
    for (uint32_t i = threadIdx.x; i < region.size_bytes / 16; i += kScatterThreads)
      reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(from)[i];
  } else {
    for (uint32_t i = threadIdx.x; i < region.size_bytes / 4; i += kScatterThreads)
      reinterpret_cast<uint32_t*>(to)[i] = reinterpret_cast<const uint32_t*>(from)[i];
  }
}

class Scatter final : public CudaScatter {
 public:
  explicit Scatter(int device) : device_(device) {}
  ~Scatter() override {
    const DeviceScope scope(device_);
    if (stream_) cudaStreamSynchronize(stream_);
    for (Slot& slot : slots_) {
      if (slot.payload) cudaFreeHost(slot.payload);
      if (slot.regions) cudaFreeHost(slot.regions);
      if (slot.done) cudaEventDestroy(slot.done);
    }
    if (queue_) cudaDestroyExternalSemaphore(queue_);
    if (ready_) cudaDestroyExternalSemaphore(ready_);
    if (stream_) cudaStreamDestroy(stream_);
  }

  Result<void> open(int queue_fd, int ready_fd) {
    const DeviceScope scope(device_);
    Result<void> outcome = check(scope.error(), "cudaSetDevice", "sharing");
    if (outcome)
      outcome =
          check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags", "sharing");
    // Small updates, one for each frame in flight, must never allocate: on some drivers an allocation waits for the
    // stream.
    slots_.reserve(kSmallSlots + kLargeSlots);
    for (size_t i = 0; outcome && i < kSmallSlots; ++i)
      if (auto slot = add_slot(kSmallBytes, kSmallRegions); !slot) outcome = tl::unexpected(slot.error());
    // CUDA owns an imported fd. An fd that was not imported is closed here.
    const auto take = [&](int fd, cudaExternalSemaphore_t* semaphore, const char* purpose) {
      cudaExternalSemaphoreHandleDesc desc{};
      desc.type = cudaExternalSemaphoreHandleTypeTimelineSemaphoreFd;
      desc.handle.fd = fd;
      if (outcome)
        outcome = check(cudaImportExternalSemaphore(semaphore, &desc), "cudaImportExternalSemaphore", purpose);
      if (!outcome) close(fd);
    };
    take(queue_fd, &queue_, "the queue's timeline");
    take(ready_fd, &ready_, "the world's timeline");
    return outcome;
  }

  Result<void> wait(uint64_t queue_value) override {
    const DeviceScope scope(device_);
    QRY_TRY(check(scope.error(), "cudaSetDevice", "an update"));
    cudaExternalSemaphoreWaitParams params{};
    params.params.fence.value = queue_value;
    return check(cudaWaitExternalSemaphoresAsync(&queue_, &params, 1, stream_), "cudaWaitExternalSemaphoresAsync",
                 "the frames under way");
  }

  Result<Staging> stage(size_t payload_bytes, size_t region_count) override {
    if (payload_bytes > kPayloadBytes || region_count > kRegions)
      return fail(ErrorCode::invalid_argument, "an update of " + std::to_string(payload_bytes) + " bytes in " +
                                                   std::to_string(region_count) + " pieces is too large for one part");
    const DeviceScope scope(device_);
    QRY_TRY(check(scope.error(), "cudaSetDevice", "an update"));
    const bool large = payload_bytes > kSmallBytes || region_count > kSmallRegions;
    Slot* oldest = nullptr;
    for (Slot& slot : slots_) {
      if (large && !slot.large) continue;

      if (cudaEventQuery(slot.done) == cudaSuccess) return use(slot);
      if (!oldest || slot.order < oldest->order) oldest = &slot;
    }
    (void)cudaGetLastError();  // "not ready" is no error
    if (slots_.size() < kSmallSlots + kLargeSlots) {
      QRY_TRY_ASSIGN(auto slot, add_slot(kPayloadBytes, kRegions));
      return use(*slot);
    }
    QRY_TRY(check(cudaEventSynchronize(oldest->done), "cudaEventSynchronize", "an update"));
    return use(*oldest);
  }

  Result<void> run(size_t region_count) override {
    Slot& slot = *staged_;
    const DeviceScope scope(device_);
    QRY_TRY(gpu::launch("scatter an update", {unsigned(region_count), kScatterThreads}, stream_, scatter_kernel,
                        static_cast<const char*>(slot.payload), slot.regions));
    return check(cudaEventRecord(slot.done, stream_), "cudaEventRecord", "an update");
  }

  Result<void> signal(uint64_t ready_value) override {
    const DeviceScope scope(device_);
    QRY_TRY(check(scope.error(), "cudaSetDevice", "an update"));
    cudaExternalSemaphoreSignalParams params{};
    params.params.fence.value = ready_value;
    return check(cudaSignalExternalSemaphoresAsync(&ready_, &params, 1, stream_), "cudaSignalExternalSemaphoresAsync",
                 "an update");
  }

 private:
  static constexpr size_t kSmallSlots = 3, kLargeSlots = 8, kSmallBytes = 1u << 20, kSmallRegions = 1u << 14;
  struct Slot {
    void* payload = nullptr;
    CudaCopyRegion* regions = nullptr;
    bool large = false;
    cudaEvent_t done = nullptr;
    uint64_t order = 0;  // of its last use
  };

  Staging use(Slot& slot) {
    staged_ = &slot;
    slot.order = ++uses_;
    return {slot.payload, slot.regions};
  }

  Result<Slot*> add_slot(size_t payload_bytes, size_t region_count) {
    slots_.emplace_back();  // slots never move: open() reserved them. The destructor frees their memory.
    Slot& slot = slots_.back();
    slot.large = payload_bytes > kSmallBytes;
    void* regions = nullptr;
    Result<void> outcome =
        check(cudaEventCreateWithFlags(&slot.done, cudaEventDisableTiming), "cudaEventCreateWithFlags", "an update");
    if (outcome)
      outcome = check(cudaHostAlloc(&slot.payload, payload_bytes, cudaHostAllocDefault), "cudaHostAlloc", "an update");
    if (outcome)
      outcome = check(cudaHostAlloc(&regions, region_count * sizeof(CudaCopyRegion), cudaHostAllocDefault),
                      "cudaHostAlloc", "an update");
    slot.regions = static_cast<CudaCopyRegion*>(regions);
    if (outcome) return &slot;
    if (slot.payload) cudaFreeHost(slot.payload);
    if (slot.done) cudaEventDestroy(slot.done);
    slots_.pop_back();
    return tl::unexpected(outcome.error());
  }

  int device_;
  cudaStream_t stream_ = nullptr;
  cudaExternalSemaphore_t queue_ = nullptr, ready_ = nullptr;
  std::vector<Slot> slots_;
  Slot* staged_ = nullptr;
  uint64_t uses_ = 0;
};

}  // namespace

int cuda_device_with_uuid(const std::array<uint8_t, 16>& uuid, std::string* why) {
  const auto count = gpu::device_count();
  if (!count) {
    if (why) *why = "CUDA finds no device (" + count.error().message + ")";
    return -1;
  }
  if (const auto device = gpu::device_with(uuid)) return device->ordinal;
  if (why) *why = "none of CUDA's " + std::to_string(*count) + " devices has this Vulkan device's UUID";
  return -1;
}

Result<std::unique_ptr<CudaImportedMemory>> cuda_import_memory(int cuda_device, int fd, size_t allocation_bytes,
                                                               size_t size_bytes, bool dedicated) {
  auto imported = std::make_unique<ImportedMemory>(cuda_device);
  cudaExternalMemoryHandleDesc desc{};
  desc.type = cudaExternalMemoryHandleTypeOpaqueFd;
  desc.handle.fd = fd;
  desc.size = allocation_bytes;  // the allocation's, not the buffer's
  desc.flags = dedicated ? cudaExternalMemoryDedicated : 0;
  const DeviceScope scope(cuda_device);
  Result<void> outcome = check(scope.error(), "cudaSetDevice", "shared memory");
  if (outcome)
    outcome = check(cudaImportExternalMemory(&imported->memory_, &desc), "cudaImportExternalMemory", "shared memory");
  if (!outcome) {
    close(fd);
    return tl::unexpected(outcome.error());
  }
  cudaExternalMemoryBufferDesc buffer{};
  buffer.size = size_bytes;
  QRY_TRY(check(cudaExternalMemoryGetMappedBuffer(&imported->data_, imported->memory_, &buffer),
                "cudaExternalMemoryGetMappedBuffer", "shared memory"));
  return std::unique_ptr<CudaImportedMemory>(std::move(imported));
}

Result<void> cuda_clear(int cuda_device, void* data, size_t size_bytes) {
  const DeviceScope scope(cuda_device);
  QRY_TRY(check(scope.error(), "cudaSetDevice", "shared memory"));
  // It uses its own stream, because the others may be waiting for frames.
  cudaStream_t stream = nullptr;
  QRY_TRY(
      check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags", "shared memory"));
  Result<void> outcome = check(cudaMemsetAsync(data, 0, size_bytes, stream), "cudaMemsetAsync", "shared memory");
  if (outcome) outcome = check(cudaStreamSynchronize(stream), "cudaStreamSynchronize", "shared memory");
  cudaStreamDestroy(stream);
  return outcome;
}

Result<std::unique_ptr<CudaScatter>> make_cuda_scatter(int cuda_device, int queue_semaphore_fd,
                                                       int ready_semaphore_fd) {
  auto scatter = std::make_unique<Scatter>(cuda_device);
  QRY_TRY(scatter->open(queue_semaphore_fd, ready_semaphore_fd));
  return std::unique_ptr<CudaScatter>(std::move(scatter));
}

}  // namespace quarry::engine
