// SPDX-License-Identifier: Apache-2.0
// cuda.cu - lanes of a CUDA executor and pinned memory.
#include "hashgrid/paged/cuda.cuh"

#include <cstring>
#include <string>

#include "base/cuda/scratch.cuh"
#include "hashgrid/pairs/cuda/operations.cuh"

namespace quarry::hashgrid {
namespace {

using gpu::check;
using gpu::CudaDevice;
using gpu::DeviceScope;

// Scratch that a lane's pool keeps between calls: the lists of a batch of a million pairs, twice.
constexpr uint64_t kKeptLaneBytes = uint64_t{64} << 20;

class CudaLane final : public Lane {
 public:
  CudaLane(std::unique_ptr<gpu::DeviceStream> stream, uint32_t multiprocessors)
      : stream_(std::move(stream)), pairs_(make_cuda_pairs(*stream_, multiprocessors)) {}
  CudaLane(const CudaLane&) = delete;
  CudaLane& operator=(const CudaLane&) = delete;
  ~CudaLane() override {
    const DeviceScope scope(device());
    for (cudaStream_t stream : {in_, out_})
      if (stream != nullptr) {
        cudaStreamSynchronize(stream);
        cudaStreamDestroy(stream);
      }
    if (arrived_ != nullptr) cudaEventDestroy(arrived_);
  }
  Result<void> open() {
    const DeviceScope scope(device());
    QRY_TRY(check(cudaStreamCreateWithFlags(&in_, cudaStreamNonBlocking), "make a stream"));
    QRY_TRY(check(cudaStreamCreateWithFlags(&out_, cudaStreamNonBlocking), "make a stream"));
    return check(cudaEventCreateWithFlags(&arrived_, cudaEventDisableTiming), "make an event");
  }

  Result<void> upload(void* to, const void* from_host, size_t size_bytes) override {
    return copy(to, from_host, size_bytes, in_, "upload");
  }
  Result<void> download(void* to_host, const void* from, size_t size_bytes) override {
    return copy(to_host, from, size_bytes, out_, "download");
  }
  Result<void> order_after_uploads() override {
    const DeviceScope scope(device());
    QRY_TRY(check(cudaEventRecord(arrived_, in_), "order copies"));
    return check(cudaStreamWaitEvent(stream_->get(), arrived_, 0), "order copies");
  }
  Result<void> wait() override {
    const DeviceScope scope(device());
    // Both, whatever the first says: the caller may use the memory again.
    const auto in = check(cudaStreamSynchronize(in_), "upload"), out = check(cudaStreamSynchronize(out_), "download");
    return in ? out : in;
  }
  BulkOperations<GridView>& pairs() override { return *pairs_; }

 private:
  const CudaDevice& device() const { return stream_->device(); }
  Result<void> copy(void* to, const void* from, size_t size_bytes, cudaStream_t stream, const char* doing) const {
    if (size_bytes == 0) return {};
    const DeviceScope scope(device());
    return check(cudaMemcpyAsync(to, from, size_bytes, cudaMemcpyDefault, stream), doing);
  }

  std::unique_ptr<gpu::DeviceStream> stream_;  // of the operations
  std::unique_ptr<BulkOperations<GridView>> pairs_;
  cudaStream_t in_ = nullptr, out_ = nullptr;
  cudaEvent_t arrived_ = nullptr;
};

class PinnedMemory final : public MemorySource {
 public:
  explicit PinnedMemory(const CudaDevice& device) : device_(device) {}
  Result<MemoryBlock> allocate(size_t size_bytes, const char* label) override {
    const DeviceScope scope(device_);
    if (size_bytes == 0)
      return fail(ErrorCode::invalid_argument, std::string("pinned memory for ") + label + ": 0 bytes asked for");
    void* raw = nullptr;
    const std::string what = std::string("pinned memory for ") + label + " (" + std::to_string(size_bytes) + " bytes)";
    QRY_TRY(check(cudaHostAlloc(&raw, size_bytes + kAlignment, cudaHostAllocPortable), what.c_str()));
    void* data = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(raw) + kAlignment - 1) / kAlignment * kAlignment);
    std::memset(data, 0, size_bytes);
    return MemoryBlock{.data = data, .size_bytes = size_bytes, .owner = raw};
  }
  void release(const MemoryBlock& block) noexcept override {
    const DeviceScope scope(device_);
    cudaFreeHost(block.owner);
  }

 private:
  static constexpr size_t kAlignment = 4096;
  CudaDevice device_;
};

}  // namespace

Result<std::unique_ptr<Lane>> make_cuda_lane(const CudaDevice& device, uint32_t multiprocessors) {
  QRY_TRY_ASSIGN(auto stream, gpu::DeviceStream::create(device, kKeptLaneBytes));
  auto lane = std::make_unique<CudaLane>(std::move(stream), multiprocessors);
  QRY_TRY(lane->open());
  return lane;
}

std::unique_ptr<MemorySource> make_pinned_memory(const CudaDevice& device) {
  return std::make_unique<PinnedMemory>(device);
}

}  // namespace quarry::hashgrid
