// SPDX-License-Identifier: Apache-2.0
// cuda_executor.cu - the CUDA executor: its device, stream and memory. Its operations on tables are in pairs/cuda/,
// compact/cuda.cu, index/cuda.cu and multi/cuda.cu; further lanes in paged/cuda.cu.
#include <string>

#include "base/cuda/scratch.cuh"
#include "hashgrid/compact/cuda.cuh"
#include "hashgrid/cuda/tuning.cuh"
#include "hashgrid/cuda_stream.cuh"
#include "hashgrid/index/cuda.cuh"
#include "hashgrid/multi/cuda.cuh"
#include "hashgrid/paged/cuda.cuh"
#include "hashgrid/pairs/cuda/operations.cuh"

namespace quarry::hashgrid {
namespace {

using gpu::check;
using gpu::CudaDevice;
using gpu::DeviceScope;

class CudaMemory final : public MemorySource {
 public:
  explicit CudaMemory(const CudaDevice& device) : device_(device) {}
  Result<MemoryBlock> allocate(size_t size_bytes, const char* label) override {
    const DeviceScope scope(device_);
    if (size_bytes == 0)
      return fail(ErrorCode::invalid_argument, std::string("CUDA memory for ") + label + ": 0 bytes asked for");
    void* raw = nullptr;
    const std::string what = std::string("memory for ") + label + " (" + std::to_string(size_bytes) + " bytes)";
    QRY_TRY(check(cudaMalloc(&raw, size_bytes + kAlignment), what.c_str()));
    // cudaMalloc aligns to 512 bytes only.
    void* data = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(raw) + kAlignment - 1) / kAlignment * kAlignment);
    auto zeroed = check(cudaMemset(data, 0, size_bytes), what.c_str());
    if (zeroed) zeroed = check(cudaStreamSynchronize(cudaStreamLegacy), what.c_str());
    if (!zeroed) {
      cudaFree(raw);
      return tl::unexpected(zeroed.error());
    }
    return MemoryBlock{.data = data, .size_bytes = size_bytes, .owner = raw};
  }
  void release(const MemoryBlock& block) noexcept override {
    const DeviceScope scope(device_);
    cudaFree(block.owner);
  }

 private:
  static constexpr size_t kAlignment = 4096;
  CudaDevice device_;
};

class CudaExecutor final : public Executor {
 public:
  CudaExecutor(std::unique_ptr<gpu::DeviceStream> stream, uint32_t multiprocessors)
      : stream_(std::move(stream)),
        multiprocessors_(multiprocessors),
        memory_(device()),
        host_memory_(make_pinned_memory(device())),
        pairs_(make_cuda_pairs(*stream_, multiprocessors)),
        compact_(make_cuda_compact(*stream_, multiprocessors)),
        index32_(make_cuda_index32(*stream_, multiprocessors)),
        index64_(make_cuda_index64(*stream_, multiprocessors)),
        multi_(make_cuda_multi(*stream_, multiprocessors)) {}

  ExecutorKind kind() const override { return ExecutorKind::cuda; }
  uint32_t parallelism() const override { return multiprocessors_; }
  MemorySource& memory() override { return memory_; }
  Result<void> upload(void* to, const void* from_host, size_t size_bytes) override {
    return copy(to, from_host, size_bytes, "upload");
  }
  Result<void> download(void* to_host, const void* from, size_t size_bytes) override {
    return copy(to_host, from, size_bytes, "download");
  }
  MemorySource& host_memory() override { return *host_memory_; }
  Result<std::unique_ptr<Lane>> make_lane() override { return make_cuda_lane(device(), multiprocessors_); }
  BulkOperations<GridView>& pairs() override { return *pairs_; }
  BulkOperations<CompactView>& compact() override { return *compact_; }
  IndexOperations<uint32_t>& index32() override { return *index32_; }
  IndexOperations<uint64_t>& index64() override { return *index64_; }
  MultiOperations& multi() override { return *multi_; }

  cudaStream_t stream() const { return stream_->get(); }
  const CudaDevice& device() const { return stream_->device(); }

 private:
  Result<void> copy(void* to, const void* from, size_t size_bytes, const char* doing) const {
    if (size_bytes == 0) return {};
    const DeviceScope scope(device());
    QRY_TRY(check(cudaMemcpyAsync(to, from, size_bytes, cudaMemcpyDefault, stream()), doing));
    return check(cudaStreamSynchronize(stream()), doing);
  }

  std::unique_ptr<gpu::DeviceStream> stream_;
  uint32_t multiprocessors_;
  CudaMemory memory_;
  std::unique_ptr<MemorySource> host_memory_;
  std::unique_ptr<BulkOperations<GridView>> pairs_;
  std::unique_ptr<BulkOperations<CompactView>> compact_;
  std::unique_ptr<IndexOperations<uint32_t>> index32_;
  std::unique_ptr<IndexOperations<uint64_t>> index64_;
  std::unique_ptr<MultiOperations> multi_;
};

Result<std::unique_ptr<Executor>> make_executor(const Result<CudaDevice>& found) {
  if (!found && found.error().code != ErrorCode::not_found) return tl::unexpected(found.error());
  if (!found)
    return fail(ErrorCode::not_found,
                "no CUDA device: " + found.error().message + "; install the NVIDIA driver, or use the host executor");
  const DeviceScope scope(*found);
  int multiprocessors = 0;
  QRY_TRY(check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, found->ordinal),
                "ask the device"));
  if (!cuda_pairs_run_here())
    return fail(ErrorCode::unsupported, "CUDA device " + std::to_string(found->ordinal) +
                                            " is of an architecture this build has no code for; "
                                            "configure with QRY_CUDA_ARCHITECTURES for it");
  QRY_TRY_ASSIGN(auto stream, gpu::DeviceStream::create(*found, kKeptScratchBytes));
  return std::make_unique<CudaExecutor>(std::move(stream), uint32_t(multiprocessors));
}

}  // namespace

cudaStream_t cuda_stream_of(const Executor& executor) {
  const auto* cuda = dynamic_cast<const CudaExecutor*>(&executor);
  return cuda != nullptr ? cuda->stream() : nullptr;
}

gpu::CudaDevice cuda_device_of(const Executor& executor) {
  const auto* cuda = dynamic_cast<const CudaExecutor*>(&executor);
  return cuda != nullptr ? cuda->device() : CudaDevice{};
}

Result<std::unique_ptr<Executor>> make_cuda_executor() { return make_executor(gpu::first_device()); }
Result<std::unique_ptr<Executor>> make_cuda_executor(const DeviceUuid& uuid) {
  return make_executor(gpu::device_with(uuid));
}

}  // namespace quarry::hashgrid
