// cuda_executor.cu - the CUDA executor: its device, stream and memory. What it does on tables is in pairs/cuda/ and compact/cuda.cu.
#include <string>

#include "hashgrid/compact/cuda.cuh"
#include "hashgrid/cuda_stream.cuh"
#include "hashgrid/pairs/cuda/operations.cuh"

namespace quarry::hashgrid {
namespace {

class CudaMemory final : public MemorySource {
 public:
  explicit CudaMemory(int device) : device_(device) {}
  Result<MemoryBlock> allocate(size_t size_bytes, const char* label) override {
    const DeviceScope scope(device_);
    if (size_bytes == 0) return fail(ErrorCode::invalid_argument, std::string("CUDA memory for ") + label + ": 0 bytes asked for");
    void* raw = nullptr;
    const std::string what = std::string("memory for ") + label + " (" + std::to_string(size_bytes) + " bytes)";
    if (auto ok = cuda_result(cudaMalloc(&raw, size_bytes + kAlignment), what.c_str()); !ok) {
      cudaGetLastError();  // not sticky: the next call must not report it again
      return tl::unexpected(ok.error());
    }
    // cudaMalloc aligns to 512 bytes only.
    void* data = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(raw) + kAlignment - 1) / kAlignment * kAlignment);
    auto zeroed = cuda_result(cudaMemset(data, 0, size_bytes), what.c_str());
    if (zeroed) zeroed = cuda_result(cudaStreamSynchronize(cudaStreamLegacy), what.c_str());
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
  int device_;
};

class CudaExecutor final : public Executor {
 public:
  CudaExecutor(int device, cudaStream_t stream, uint32_t multiprocessors)
      : device_(device), stream_(stream), multiprocessors_(multiprocessors), memory_(device),
        pairs_(make_cuda_pairs(device, stream, multiprocessors)), compact_(make_cuda_compact(device, stream, multiprocessors)) {}
  ~CudaExecutor() override {
    const DeviceScope scope(device_);
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
  }

  const char* name() const override { return "cuda"; }
  uint32_t parallelism() const override { return multiprocessors_; }
  MemorySource& memory() override { return memory_; }
  Result<void> upload(void* to, const void* from_host, size_t size_bytes) override { return copy(to, from_host, size_bytes, "upload"); }
  Result<void> download(void* to_host, const void* from, size_t size_bytes) override { return copy(to_host, from, size_bytes, "download"); }
  BulkOperations<GridView>& pairs() override { return *pairs_; }
  BulkOperations<CompactView>& compact() override { return *compact_; }

  cudaStream_t stream() const { return stream_; }
  int device() const { return device_; }

 private:
  Result<void> copy(void* to, const void* from, size_t size_bytes, const char* doing) const {
    if (size_bytes == 0) return {};
    const DeviceScope scope(device_);
    if (auto ok = cuda_result(cudaMemcpyAsync(to, from, size_bytes, cudaMemcpyDefault, stream_), doing); !ok) return ok;
    return cuda_result(cudaStreamSynchronize(stream_), doing);
  }

  int device_;
  cudaStream_t stream_;
  uint32_t multiprocessors_;
  CudaMemory memory_;
  std::unique_ptr<BulkOperations<GridView>> pairs_;
  std::unique_ptr<BulkOperations<CompactView>> compact_;
};

}  // namespace

cudaStream_t cuda_stream_of(const Executor& executor) {
  const auto* cuda = dynamic_cast<const CudaExecutor*>(&executor);
  return cuda != nullptr ? cuda->stream() : nullptr;
}

int cuda_device_of(const Executor& executor) {
  const auto* cuda = dynamic_cast<const CudaExecutor*>(&executor);
  return cuda != nullptr ? cuda->device() : -1;
}

Result<std::unique_ptr<Executor>> make_cuda_executor(int device) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess)
    return fail(ErrorCode::not_found, std::string("no CUDA device: ") + cudaGetErrorString(error) + "; install the NVIDIA driver, or use the host executor");
  if (device < 0 || device >= count)
    return fail(ErrorCode::not_found, "no CUDA device " + std::to_string(device) + ": there are " + std::to_string(count));
  const DeviceScope scope(device);
  int multiprocessors = 0, pools = 0;
  if (auto ok = cuda_result(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device), "ask the device"); !ok)
    return tl::unexpected(ok.error());
  if (auto ok = cuda_result(cudaDeviceGetAttribute(&pools, cudaDevAttrMemoryPoolsSupported, device), "ask the device"); !ok)
    return tl::unexpected(ok.error());
  if (pools == 0) return fail(ErrorCode::unsupported, "CUDA device " + std::to_string(device) + " has no stream-ordered memory");
  if (!cuda_pairs_run_here())
    return fail(ErrorCode::unsupported, "CUDA device " + std::to_string(device) +
                                            " is of an architecture this build has no code for; configure with QRY_CUDA_ARCHITECTURES for it");
  // Scratch memory stays with the pool between calls: getting it from the system anew takes longer than most calls.
  cudaMemPool_t pool = nullptr;
  uint64_t kept_bytes = uint64_t{4} << 30;
  if (auto ok = cuda_result(cudaDeviceGetDefaultMemPool(&pool, device), "find the memory pool"); !ok) return tl::unexpected(ok.error());
  if (auto ok = cuda_result(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept_bytes), "set up the memory pool"); !ok)
    return tl::unexpected(ok.error());
  cudaStream_t stream = nullptr;
  if (auto ok = cuda_result(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "make a stream"); !ok) return tl::unexpected(ok.error());
  return std::make_unique<CudaExecutor>(device, stream, uint32_t(multiprocessors));
}

}  // namespace quarry::hashgrid
