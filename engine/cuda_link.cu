// cuda_link.cu - the only file that knows both a Vulkan handle (as a file descriptor) and CUDA. See cuda_link.hpp.
#include <cuda_runtime.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "engine/cuda_link.hpp"

namespace quarry::engine {
namespace {

Result<void> check(cudaError_t result, const char* call, const char* purpose) {
  if (result == cudaSuccess) return {};
  (void)cudaGetLastError();  // not sticky: the next call shall not report it again
  return fail(result == cudaErrorMemoryAllocation ? ErrorCode::out_of_memory : ErrorCode::device,
              std::string(call) + " failed for " + purpose + ": " + cudaGetErrorName(result) + " (" + cudaGetErrorString(result) + ")");
}

class ImportedMemory final : public CudaImportedMemory {
 public:
  explicit ImportedMemory(int device) : device_(device) {}
  ~ImportedMemory() override {
    cudaSetDevice(device_);
    if (data_) cudaFree(data_);
    if (memory_) cudaDestroyExternalMemory(memory_);
  }
  void* data() const override { return data_; }

  int device_;
  cudaExternalMemory_t memory_ = nullptr;
  void* data_ = nullptr;
};

// One block for each piece; words of 16 bytes where both ends allow.
constexpr int kScatterThreads = 128;
__global__ void __launch_bounds__(kScatterThreads) scatter_kernel(const char* __restrict__ payload, const CudaPiece* __restrict__ pieces) {
  const CudaPiece piece = pieces[blockIdx.x];
  const char* from = payload + piece.from_bytes;
  char* to = reinterpret_cast<char*>(piece.to);
  if (((piece.to | piece.from_bytes | piece.size_bytes) & 15u) == 0) {
    for (uint32_t i = threadIdx.x; i < piece.size_bytes / 16; i += kScatterThreads) reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(from)[i];
  } else {
    for (uint32_t i = threadIdx.x; i < piece.size_bytes / 4; i += kScatterThreads) reinterpret_cast<uint32_t*>(to)[i] = reinterpret_cast<const uint32_t*>(from)[i];
  }
}

class Scatter final : public CudaScatter {
 public:
  explicit Scatter(int device) : device_(device) {}
  ~Scatter() override {
    cudaSetDevice(device_);
    if (stream_) cudaStreamSynchronize(stream_);
    for (Slot& slot : slots_) {
      if (slot.payload) cudaFreeHost(slot.payload);
      if (slot.pieces) cudaFreeHost(slot.pieces);
      if (slot.done) cudaEventDestroy(slot.done);
    }
    if (frames_) cudaDestroyExternalSemaphore(frames_);
    if (ready_) cudaDestroyExternalSemaphore(ready_);
    if (stream_) cudaStreamDestroy(stream_);
  }

  Result<void> open(int frames_fd, int ready_fd) {
    Result<void> outcome = check(cudaSetDevice(device_), "cudaSetDevice", "sharing");
    if (outcome) outcome = check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags", "sharing");
    for (Slot& slot : slots_)
      if (outcome) outcome = check(cudaEventCreateWithFlags(&slot.done, cudaEventDisableTiming), "cudaEventCreateWithFlags", "sharing");
    // Each fd is CUDA's once imported, and ours to close if it was not.
    const auto take = [&](int fd, cudaExternalSemaphore_t* semaphore, const char* purpose) {
      cudaExternalSemaphoreHandleDesc desc{};
      desc.type = cudaExternalSemaphoreHandleTypeTimelineSemaphoreFd;
      desc.handle.fd = fd;
      if (outcome) outcome = check(cudaImportExternalSemaphore(semaphore, &desc), "cudaImportExternalSemaphore", purpose);
      if (!outcome) close(fd);
    };
    take(frames_fd, &frames_, "the frames' timeline");
    take(ready_fd, &ready_, "the world's timeline");
    return outcome;
  }

  Result<Staging> stage(size_t payload_bytes, size_t piece_count) override {
    if (auto ok = check(cudaSetDevice(device_), "cudaSetDevice", "an update"); !ok) return tl::unexpected(ok.error());
    Slot& slot = slots_[next_];
    if (auto ok = check(cudaEventSynchronize(slot.done), "cudaEventSynchronize", "an update"); !ok) return tl::unexpected(ok.error());
    if (slot.payload_bytes < payload_bytes) {
      if (slot.payload) cudaFreeHost(slot.payload);
      slot.payload = nullptr;
      slot.payload_bytes = 0;
      const size_t bytes = std::max<size_t>(payload_bytes, 1u << 20);
      if (auto ok = check(cudaHostAlloc(&slot.payload, bytes, cudaHostAllocDefault), "cudaHostAlloc", "an update"); !ok) return tl::unexpected(ok.error());
      slot.payload_bytes = bytes;
    }
    if (slot.piece_count < piece_count) {
      if (slot.pieces) cudaFreeHost(slot.pieces);
      slot.pieces = nullptr;
      slot.piece_count = 0;
      const size_t count = std::max<size_t>(piece_count, 4096);
      void* pieces = nullptr;
      if (auto ok = check(cudaHostAlloc(&pieces, count * sizeof(CudaPiece), cudaHostAllocDefault), "cudaHostAlloc", "an update"); !ok) return tl::unexpected(ok.error());
      slot.pieces = static_cast<CudaPiece*>(pieces);
      slot.piece_count = count;
    }
    return Staging{slot.payload, slot.pieces};
  }

  Result<void> run(size_t, size_t piece_count, uint64_t frames_value, uint64_t ready_value) override {
    Slot& slot = slots_[next_];
    next_ ^= 1;
    if (auto ok = check(cudaSetDevice(device_), "cudaSetDevice", "an update"); !ok) return ok;
    if (auto ok = wait(frames_value); !ok) return ok;
    scatter_kernel<<<unsigned(piece_count), kScatterThreads, 0, stream_>>>(static_cast<const char*>(slot.payload), slot.pieces);
    if (auto ok = check(cudaGetLastError(), "scatter_kernel", "an update"); !ok) return ok;
    if (auto ok = check(cudaEventRecord(slot.done, stream_), "cudaEventRecord", "an update"); !ok) return ok;
    cudaExternalSemaphoreSignalParams signal{};
    signal.params.fence.value = ready_value;
    return check(cudaSignalExternalSemaphoresAsync(&ready_, &signal, 1, stream_), "cudaSignalExternalSemaphoresAsync", "an update");
  }

  Result<void> wait_for_frames(uint64_t frames_value) override {
    if (auto ok = check(cudaSetDevice(device_), "cudaSetDevice", "an update"); !ok) return ok;
    if (auto ok = wait(frames_value); !ok) return ok;
    return check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize", "the frames under way");
  }

 private:
  Result<void> wait(uint64_t frames_value) {
    cudaExternalSemaphoreWaitParams params{};
    params.params.fence.value = frames_value;
    return check(cudaWaitExternalSemaphoresAsync(&frames_, &params, 1, stream_), "cudaWaitExternalSemaphoresAsync", "the frames under way");
  }

  struct Slot {
    void* payload = nullptr;
    CudaPiece* pieces = nullptr;
    size_t payload_bytes = 0, piece_count = 0;
    cudaEvent_t done = nullptr;
  };
  int device_;
  cudaStream_t stream_ = nullptr;
  cudaExternalSemaphore_t frames_ = nullptr, ready_ = nullptr;
  Slot slots_[2];
  int next_ = 0;
};

}  // namespace

int cuda_device_with_uuid(const std::array<uint8_t, 16>& uuid, std::string* why) {
  int count = 0;
  if (const cudaError_t result = cudaGetDeviceCount(&count); result != cudaSuccess) {
    (void)cudaGetLastError();
    if (why) *why = std::string("CUDA finds no device (") + cudaGetErrorString(result) + ")";
    return -1;
  }
  for (int device = 0; device < count; ++device) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, device) == cudaSuccess && std::memcmp(properties.uuid.bytes, uuid.data(), 16) == 0) return device;
  }
  if (why) *why = "none of CUDA's " + std::to_string(count) + " devices has this Vulkan device's UUID";
  return -1;
}

Result<std::unique_ptr<CudaImportedMemory>> cuda_import_memory(int cuda_device, int fd, size_t allocation_bytes, size_t size_bytes, bool dedicated) {
  auto imported = std::make_unique<ImportedMemory>(cuda_device);
  cudaExternalMemoryHandleDesc desc{};
  desc.type = cudaExternalMemoryHandleTypeOpaqueFd;
  desc.handle.fd = fd;
  desc.size = allocation_bytes;  // the allocation's, not the buffer's
  desc.flags = dedicated ? cudaExternalMemoryDedicated : 0;
  Result<void> outcome = check(cudaSetDevice(cuda_device), "cudaSetDevice", "shared memory");
  if (outcome) outcome = check(cudaImportExternalMemory(&imported->memory_, &desc), "cudaImportExternalMemory", "shared memory");
  if (!outcome) {
    close(fd);
    return tl::unexpected(outcome.error());
  }
  cudaExternalMemoryBufferDesc buffer{};
  buffer.size = size_bytes;
  if (auto ok = check(cudaExternalMemoryGetMappedBuffer(&imported->data_, imported->memory_, &buffer), "cudaExternalMemoryGetMappedBuffer", "shared memory"); !ok)
    return tl::unexpected(ok.error());
  return std::unique_ptr<CudaImportedMemory>(std::move(imported));
}

Result<void> cuda_clear(int cuda_device, void* data, size_t size_bytes) {
  if (auto ok = check(cudaSetDevice(cuda_device), "cudaSetDevice", "shared memory"); !ok) return ok;
  if (auto ok = check(cudaMemset(data, 0, size_bytes), "cudaMemset", "shared memory"); !ok) return ok;
  return check(cudaDeviceSynchronize(), "cudaDeviceSynchronize", "shared memory");
}

Result<std::unique_ptr<CudaScatter>> make_cuda_scatter(int cuda_device, int frames_semaphore_fd, int ready_semaphore_fd) {
  auto scatter = std::make_unique<Scatter>(cuda_device);
  if (auto ok = scatter->open(frames_semaphore_fd, ready_semaphore_fd); !ok) return tl::unexpected(ok.error());
  return std::unique_ptr<CudaScatter>(std::move(scatter));
}

}  // namespace quarry::engine
