// SPDX-License-Identifier: Apache-2.0
// cuda.cu - the steps as CUDA kernels on a stream, and memory that grows in place: addresses are reserved once, and
// physical blocks are mapped behind each other.
#include <cuda.h>
#include <cuda_runtime.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/cuda/device.cuh"
#include "base/cuda/launch.cuh"
#include "base/cuda/staging.cuh"
#include "voxel/device/run_step.hpp"
#include "voxel/device/sort.hpp"
#include "voxel/rays/trace_kernel.cuh"

namespace quarry::device {
namespace {

using gpu::check;
using gpu::check_driver;
using gpu::DeviceScope;
using gpu::FirstFailure;
using gpu::SlotTurns;
using gpu::Staging;

constexpr unsigned kThreads = 256;

// The next step may be launched while this one runs; it waits here until this one is done. So what a launch costs does
// not come on top of the steps. (Programmatic dependent launch, from compute capability 9.0 on.)
__device__ void wait_for_step_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
#endif
}

template <class Body>
__global__ void single_kernel(const __grid_constant__ Memory memory, const __grid_constant__ EditCall call) {
  wait_for_step_before();
  Body::run(memory, call);
}

// What the body has as its tail is run by the block that is done last.
template <class Body>
__device__ void run_tail(const Memory& memory, const EditCall& call) {
  if constexpr (requires { typename Body::Tail; }) {
    __syncthreads();
    if (threadIdx.x) return;
    __threadfence();
    if (atomicAdd(&memory.control->blocks_done, 1u) != gridDim.x - 1) return;
    memory.control->blocks_done = 0;
    __threadfence();
    Body::Tail::run(memory, call);
  }
}

template <class Body>
__global__ void __launch_bounds__(kThreads)
    items_kernel(const __grid_constant__ Memory memory, const __grid_constant__ EditCall call) {
  wait_for_step_before();
  Sums sums;
  const uint64_t count = Body::items(memory, call), stride = uint64_t(gridDim.x) * kThreads;
  for (uint64_t i = uint64_t(blockIdx.x) * kThreads + threadIdx.x; i < count; i += stride)
    Body::run(memory, call, i, sums);
  if constexpr (requires { Body::kSums; }) {
    // One atomic operation of a block, not of each warp: all of them go to the same words.
    __shared__ Sums total;
    if (threadIdx.x == 0) total = {};
    __syncthreads();
    for (unsigned offset = 16; offset; offset >>= 1) {
      sums.changed += __shfl_down_sync(0xFFFFFFFFu, sums.changed, offset);
      sums.more += __shfl_down_sync(0xFFFFFFFFu, sums.more, offset);
      sums.inserted += __shfl_down_sync(0xFFFFFFFFu, sums.inserted, offset);
      sums.erased += __shfl_down_sync(0xFFFFFFFFu, sums.erased, offset);
      sums.chunks += __shfl_down_sync(0xFFFFFFFFu, sums.chunks, offset);
    }
    if ((threadIdx.x & 31u) == 0) add_sums(total, sums);
    __syncthreads();
    if (threadIdx.x == 0) add_sums(*memory.control, total);
  }
  run_tail<Body>(memory, call);
}

// The threads of a block, which wait for each other after each part.
struct Lanes {
  template <class Part>
  __device__ void each(const Part& part) {
    part(threadIdx.x);
    __syncthreads();
  }
};
// Threads that a multiprocessor has at most, by compute capability.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr unsigned kMostResident = 1024;
#elif defined(__CUDA_ARCH__) && \
    (__CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 870 || __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200)
constexpr unsigned kMostResident = 1536;
#else
constexpr unsigned kMostResident = 2048;
#endif
// Blocks of a body that one shall have at once.
template <class Body>
constexpr unsigned kBlocksResident = std::min(unsigned(Body::kResident), kMostResident / unsigned(Body::kThreads));

template <class Body>
__global__ void __launch_bounds__(Body::kThreads, kBlocksResident<Body>)
    blocks_kernel(const __grid_constant__ Memory memory, const __grid_constant__ EditCall call) {
  __shared__ typename Body::Shared shared;
  wait_for_step_before();
  Lanes lanes;
  const uint64_t count = Body::items(memory, call);
  if constexpr (requires { Body::begin(shared, lanes); }) Body::begin(shared, lanes);
  for (uint64_t i = blockIdx.x; i < count; i += gridDim.x) Body::run(memory, call, i, shared, lanes);
  if constexpr (requires { Body::end(memory, call, shared, lanes); }) Body::end(memory, call, shared, lanes);
  run_tail<Body>(memory, call);
}

struct TraceGiven {
  hashgrid::GridView grid;
  __device__ RayHit operator()(const RayWorld& world, const Ray& ray) const { return trace_given(world, grid, ray); }
};

// Rays on their way: threads of the host fill and take some pieces while others are traced. A kernel reads rays and
// writes hits where the host has them: on an H100 that is no slower than copies (docs/results/h100/rays.md), and a few
// rays need no copy.
class RayPieces {
 public:
  ~RayPieces() {
    for (cudaStream_t& stream : streams_)
      if (stream) {
        cudaStreamSynchronize(stream);
        cudaStreamDestroy(stream);
      }
    for (Slot& slot : slots_) {
      if (slot.traced) cudaEventDestroy(slot.traced);
      free_arrays(slot);
    }
    if (edits_done_) cudaEventDestroy(edits_done_);
  }
  Result<void> open() {
    QRY_TRY(check(cudaEventCreateWithFlags(&edits_done_, cudaEventDisableTiming), "prepare rays"));
    for (cudaStream_t& stream : streams_)
      QRY_TRY(check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "prepare rays"));
    for (Slot& slot : slots_)
      QRY_TRY(check(cudaEventCreateWithFlags(&slot.traced, cudaEventDisableTiming), "prepare rays"));
    return {};
  }

  // Without waiting.
  static Result<void> launch(cudaStream_t stream, const RayWorld& world, const hashgrid::GridView& grid,
                             const Ray* rays, size_t count, RayHit* hits) {
    using ray_kernels::kTraceThreads;
    if (count == 0) return {};
    return gpu::launch("trace rays", {unsigned((count + kTraceThreads - 1) / kTraceThreads), kTraceThreads}, stream,
                       ray_kernels::trace_rays<kTraceThreads, TraceGiven>, world, rays, count, hits, TraceGiven{grid});
  }

  Result<void> trace(int device, cudaStream_t edits, const RayWorld& world, const hashgrid::GridView& grid,
                     size_t count, const Executor::FillRays& fill, const Executor::TakeHits& take) {
    if (count <= kPieceRays) {  // in the stream of the edits, so that it need not be told of their end
      Slot& slot = slots_[0];
      QRY_TRY(make_room(slot, count));
      fill(0, {slot.rays, count});
      QRY_TRY(launch(edits, world, grid, slot.rays, count, slot.hits));
      QRY_TRY(check(cudaStreamSynchronize(edits), "trace rays"));
      take(0, {slot.hits, count});
      return {};
    }
    QRY_TRY(check(cudaEventRecord(edits_done_, edits), "trace rays"));
    for (cudaStream_t stream : streams_) QRY_TRY(check(cudaStreamWaitEvent(stream, edits_done_, 0), "trace rays"));
    const size_t pieces = (count + kPieceRays - 1) / kPieceRays;
    FirstFailure failure;
    turns_.begin();
    const auto size_of = [&](size_t piece) { return std::min(kPieceRays, count - piece * kPieceRays); };
    const auto take_of = [&](size_t piece) -> Result<void> {
      const Slot& slot = slots_[piece % kSlots];
      QRY_TRY(check(cudaEventSynchronize(slot.traced), "trace rays"));
      take(piece * kPieceRays, {slot.hits, size_of(piece)});
      return {};
    };
    const auto send = [&](size_t piece) -> Result<void> {
      Slot& slot = slots_[piece % kSlots];
      if (piece >= kSlots) QRY_TRY(take_of(piece - kSlots));
      QRY_TRY(make_room(slot, size_of(piece)));
      fill(piece * kPieceRays, {slot.rays, size_of(piece)});
      const cudaStream_t stream = streams_[piece % kStreams];
      QRY_TRY(launch(stream, world, grid, slot.rays, size_of(piece), slot.hits));
      return check(cudaEventRecord(slot.traced, stream), "trace rays");
    };
    parallel_for(pieces, 1, [&](size_t piece, size_t) {
      const DeviceScope scope(device);
      turns_.take(piece, [&] {
        if (!failure.there()) failure.note(send(piece));
      });
    });
    const size_t first = pieces - std::min(pieces, kSlots);
    if (!failure.there())
      parallel_for(pieces - first, 1, [&](size_t i, size_t) {
        const DeviceScope scope(device);
        failure.note(take_of(first + i));
      });
    if (failure.there())
      for (cudaStream_t stream : streams_) cudaStreamSynchronize(stream);
    return failure.take();
  }

 private:
  static constexpr size_t kSlots = 32, kStreams = 4, kPieceRays = size_t(1) << 15;  // 0.75 MiB of rays, 1 of hits
  struct Slot {
    Ray* rays = nullptr;
    RayHit* hits = nullptr;
    size_t room = 0;
    cudaEvent_t traced = nullptr;
  };
  static void free_arrays(Slot& slot) {
    if (slot.rays) cudaFreeHost(slot.rays);
    if (slot.hits) cudaFreeHost(slot.hits);
    slot.rays = nullptr;
    slot.hits = nullptr;
    slot.room = 0;
  }
  // Nothing of the slot is under way.
  static Result<void> make_room(Slot& slot, size_t count) {
    if (count <= slot.room) return {};
    free_arrays(slot);
    const size_t room = std::clamp(2 * count, size_t(1024), kPieceRays);
    constexpr unsigned kFlags = cudaHostAllocMapped | cudaHostAllocPortable;
    void* at = nullptr;
    QRY_TRY(check(cudaHostAlloc(&at, room * sizeof(Ray), kFlags), "memory for rays"));
    slot.rays = static_cast<Ray*>(at);
    QRY_TRY(check(cudaHostAlloc(&at, room * sizeof(RayHit), kFlags), "memory for hits"));
    slot.hits = static_cast<RayHit*>(at);
    slot.room = room;
    return {};
  }

  Slot slots_[kSlots];
  SlotTurns<kSlots> turns_;
  cudaStream_t streams_[kStreams] = {};
  cudaEvent_t edits_done_ = nullptr;
};

// The driver's calls for memory that is mapped where the caller wants it.
struct MappingCalls {
  CUresult(CUDAAPI* reserve)(CUdeviceptr*, size_t, size_t, CUdeviceptr, unsigned long long) = nullptr;
  CUresult(CUDAAPI* free_addresses)(CUdeviceptr, size_t) = nullptr;
  CUresult(CUDAAPI* create)(CUmemGenericAllocationHandle*, size_t, const CUmemAllocationProp*,
                            unsigned long long) = nullptr;
  CUresult(CUDAAPI* import)(CUmemGenericAllocationHandle*, void*, CUmemAllocationHandleType) = nullptr;
  CUresult(CUDAAPI* release)(CUmemGenericAllocationHandle) = nullptr;
  CUresult(CUDAAPI* map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long) = nullptr;
  CUresult(CUDAAPI* unmap)(CUdeviceptr, size_t) = nullptr;
  CUresult(CUDAAPI* set_access)(CUdeviceptr, size_t, const CUmemAccessDesc*, size_t) = nullptr;
  CUresult(CUDAAPI* granularity)(size_t*, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) = nullptr;

  MappingCalls() {
    const auto find = [](const char* name, auto& call) {
      gpu::ContextCalls::find(name, reinterpret_cast<void**>(&call));
    };
    find("cuMemAddressReserve", reserve);
    find("cuMemAddressFree", free_addresses);
    find("cuMemCreate", create);
    find("cuMemImportFromShareableHandle", import);
    find("cuMemRelease", release);
    find("cuMemMap", map);
    find("cuMemUnmap", unmap);
    find("cuMemSetAccess", set_access);
    find("cuMemGetAllocationGranularity", granularity);
  }
  bool there() const {
    return reserve && free_addresses && create && import && release && map && unmap && set_access && granularity;
  }
};
const MappingCalls& mapping_calls() {
  static const MappingCalls calls;
  return calls;
}

// What steps take: an event before each one and one after it. Errors of events are nobody's: a step whose events fail
// is not timed, and what else has failed the next call that is checked will say.
class StepEvents {
 public:
  static constexpr size_t kMost = 512;  // steps between two collections

  StepEvents() = default;
  StepEvents(const StepEvents&) = delete;
  StepEvents& operator=(const StepEvents&) = delete;
  ~StepEvents() {
    for (const Pair& pair : pairs_) destroy(pair);
  }
  // Around a launch, which may fail.
  void begin(cudaStream_t stream) {
    if (begun_ == kMost) collect();
    Pair& pair = pairs_[begun_];
    pair.recorded = made(pair) && recorded(pair.first, stream);
  }
  void end(cudaStream_t stream, const char* name) {
    Pair& pair = pairs_[begun_];
    if (!pair.recorded || !recorded(pair.last, stream)) return;
    pair.name = name;
    ++begun_;
  }
  StepTimes take() {
    collect();
    return std::exchange(times_, {});
  }

 private:
  struct Pair {
    cudaEvent_t first = nullptr, last = nullptr;
    const char* name = "";
    bool recorded = false;
  };
  static bool fine(cudaError_t error) {
    if (error != cudaSuccess) (void)cudaGetLastError();
    return error == cudaSuccess;
  }
  static bool recorded(cudaEvent_t event, cudaStream_t stream) { return fine(cudaEventRecord(event, stream)); }
  static bool made(Pair& pair) {
    for (cudaEvent_t* event : {&pair.first, &pair.last})
      if (!*event && !fine(cudaEventCreate(event))) return false;
    return true;
  }
  static void destroy(const Pair& pair) {
    for (const cudaEvent_t event : {pair.first, pair.last})
      if (event) cudaEventDestroy(event);
  }
  // Waits for what was timed.
  void collect() {
    const bool ran = begun_ && fine(cudaEventSynchronize(pairs_[begun_ - 1].last));
    for (size_t i = 0; ran && i < begun_; ++i) {
      float ms = 0;
      if (fine(cudaEventElapsedTime(&ms, pairs_[i].first, pairs_[i].last))) times_.add({pairs_[i].name, 1, ms});
    }
    begun_ = 0;
  }

  std::array<Pair, kMost> pairs_{};
  size_t begun_ = 0;
  StepTimes times_;
};

class CudaDeviceExecutor final : public Executor {
 public:
  CudaDeviceExecutor(int device, ShaderMemory* shaders) : device_(device), shaders_(shaders) {}
  ~CudaDeviceExecutor() override {
    const DeviceScope scope(device_);
    rays_.reset();
    events_.reset();
    if (stream_) {
      cudaStreamSynchronize(stream_);
      if (ordered_) cudaEventDestroy(ordered_);
      cudaStreamDestroy(stream_);
    }
    staging_.reset();
    if (sorting_.data) release(sorting_);
    if (outcomes_) cudaFreeHost(outcomes_);
    (void)cudaGetLastError();  // of a lost device: nobody asks any more
  }

  Result<void> open() {
    const DeviceScope scope(device_);
    QRY_TRY(check(scope.error(), "select the device"));
    if (!mapping_calls().there()) return fail(ErrorCode::unsupported, "CUDA: the driver cannot map memory in place");
    QRY_TRY(check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "make a stream"));
    void* outcomes = nullptr;
    QRY_TRY(check(cudaHostAlloc(&outcomes, kOutcomes * sizeof(Outcome), cudaHostAllocMapped | cudaHostAllocPortable),
                  "memory for answers"));
    outcomes_ = static_cast<Outcome*>(outcomes);
    std::fill_n(outcomes_, kOutcomes, Outcome{});
    QRY_TRY(
        check(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, device_), "ask the device"));
    int major = 0;
    QRY_TRY(check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device_), "ask the device"));
    early_ = major >= 9;
    property_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    property_.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    property_.location.id = device_;
    return check_driver(mapping_calls().granularity(&granularity_, &property_, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                        "ask for page sizes");
  }

  Result<Range> reserve(size_t most_bytes, const char* label, bool for_shaders) override {
    const DeviceScope scope(device_);
    const size_t size = rounded(most_bytes);
    CUdeviceptr at = 0;
    QRY_TRY(check_driver(mapping_calls().reserve(&at, size, 0, 0, 0), std::string("reserve addresses for ") + label));
    return Range{reinterpret_cast<void*>(at), 0, size, label, for_shaders && shaders_};
  }
  Result<void> grow(Range& range, size_t size_bytes) override {
    const size_t size = rounded(size_bytes);
    if (size <= range.size_bytes) return {};
    if (size > range.most_bytes)
      return fail(ErrorCode::full, "a device's array may have at most " + std::to_string(range.most_bytes) +
                                       " bytes, not " + std::to_string(size));
    if (!range.has_room_for_part()) return fail(ErrorCode::out_of_memory, "no host memory for a part of an array");
    const DeviceScope scope(device_);
    const MappingCalls& calls = mapping_calls();
    const size_t more = size - range.size_bytes;
    const std::string doing = "memory of " + std::to_string(more) + " bytes";
    const CUdeviceptr at = CUdeviceptr(range.data) + range.size_bytes;
    CUmemGenericAllocationHandle handle{};
    ShaderMemory::Block block;
    if (range.for_shaders) {
      QRY_TRY_ASSIGN(auto exported, shaders_->allocate(more, range.label));
      // What is mapped is a whole allocation.
      auto imported = exported.allocation_bytes == more
                          ? check_driver(calls.import(&handle, reinterpret_cast<void*>(uintptr_t(exported.fd)),
                                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                                         "import " + doing)
                          : fail(ErrorCode::unsupported, "Vulkan made " + std::to_string(exported.allocation_bytes) +
                                                             " bytes of " + std::to_string(more));
      close(exported.fd);  // the handle has its own
      QRY_TRY(imported);
      block = std::move(exported.block);
    } else {
      QRY_TRY(check_driver(calls.create(&handle, more, &property_, 0), doing));
    }
    auto mapped = check_driver(calls.map(at, more, 0, handle, 0), doing);
    if (mapped) {
      CUmemAccessDesc access{};
      access.location = property_.location;
      access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      mapped = check_driver(calls.set_access(at, more, &access, 1), doing);
      if (!mapped) calls.unmap(at, more);
    }
    calls.release(handle);  // the mapping holds it
    QRY_TRY(mapped);
    range.parts.push_back({range.size_bytes, more, std::move(block)});
    range.size_bytes = size;
    held_ += more;
    return check(cudaMemsetAsync(reinterpret_cast<void*>(at), 0, more, stream_), doing.c_str());
  }
  size_t rounded(size_t size_bytes) const override {
    return (size_bytes + granularity_ - 1) / granularity_ * granularity_;
  }
  void release(Range& range) noexcept override {
    const DeviceScope scope(device_);
    // What was mapped piece by piece is unmapped so.
    for (const Range::Part& part : range.parts)
      mapping_calls().unmap(CUdeviceptr(range.data) + part.offset_bytes, part.size_bytes);
    if (range.data) mapping_calls().free_addresses(CUdeviceptr(range.data), range.most_bytes);
    held_ -= range.size_bytes;
    range = {};  // its blocks after what CUDA has mapped of them
  }
  void shrink(Range& range, size_t size_bytes) noexcept override {
    const DeviceScope scope(device_);
    while (!range.parts.empty() && range.parts.back().offset_bytes >= size_bytes) {
      const Range::Part& part = range.parts.back();
      mapping_calls().unmap(CUdeviceptr(range.data) + part.offset_bytes, part.size_bytes);
      held_ -= part.size_bytes;
      range.size_bytes -= part.size_bytes;
      range.parts.pop_back();
    }
  }
  bool shares() const override { return shaders_ != nullptr; }
  int device() const override { return device_; }
  Outcome* outcomes() override { return outcomes_; }

  Result<void> run(StepId step, const Memory& memory, const EditCall& call, uint64_t most_items) override {
    const DeviceScope scope(device_);
    count_step(step);
    const auto launch = [&] { return run_step(step, Runner{*this, name_of(step), memory, call, most_items}); };
    return timed(name_of(step), launch);
  }
  Result<uint32_t> sort(const Pairs& pairs, uint32_t count, uint32_t bits) override {
    const DeviceScope scope(device_);
    QRY_TRY_ASSIGN(const size_t size_bytes, sort_bytes_on_cuda(count, bits));
    if (!sorting_.data) {
      QRY_TRY_ASSIGN(sorting_, reserve(size_t(1) << 30, "memory to sort in", false));
    }
    QRY_TRY(grow(sorting_, size_bytes));
    const auto launch = [&] { return sort_on_cuda(stream_, pairs, count, bits, sorting_.data, sorting_.size_bytes); };
    return timed(StepTimes::kSort, launch);
  }
  Result<void> trace(const RayWorld& world, const hashgrid::GridView& grid, size_t count, const FillRays& fill,
                     const TakeHits& take) override {
    const DeviceScope scope(device_);
    if (!rays_) {
      auto rays = std::make_unique<RayPieces>();
      QRY_TRY(rays->open());
      rays_ = std::move(rays);
    }
    traffic_.to_device_bytes += count * sizeof(Ray);
    traffic_.from_device_bytes += count * sizeof(RayHit);
    return rays_->trace(device_, stream_, world, grid, count, fill, take);
  }
  Result<void> trace_there(const RayWorld& world, const hashgrid::GridView& grid, const Ray* rays, size_t count,
                           RayHit* hits) override {
    const DeviceScope scope(device_);
    return RayPieces::launch(stream_, world, grid, rays, count, hits);
  }
  Result<void> wait_for(void* stream) override { return order(static_cast<cudaStream_t>(stream), stream_); }
  Result<void> signal(void* stream) override { return order(stream_, static_cast<cudaStream_t>(stream)); }
  Result<void> open_copies() override { return open_staging(); }
  Result<void> copy_in(void* to, const void* from_host, size_t size_bytes) override {
    traffic_.to_device_bytes += size_bytes;
    if (size_bytes >= Staging::kWorthwhileBytes) {
      QRY_TRY(open_staging());
      return staging_->copy(device_, stream_, to, from_host, size_bytes);
    }
    return copy(to, from_host, size_bytes, "copy to the device");
  }
  Result<void> copy_in_made(uint64_t* to, size_t count, const MakeWords& make) override {
    const size_t size_bytes = count * sizeof(uint64_t);
    traffic_.to_device_bytes += size_bytes;
    if (size_bytes >= Staging::kWorthwhileBytes) {
      QRY_TRY(open_staging());
      return staging_->copy_made(
          device_, stream_, to, size_bytes, thread_count(), [&](size_t first, char* at, size_t size) {
            make(first / sizeof(uint64_t), {reinterpret_cast<uint64_t*>(at), size / sizeof(uint64_t)});
          });
    }
    std::vector<uint64_t> words(count);
    make(0, words);
    return copy(to, words.data(), size_bytes, "copy to the device");
  }
  Result<void> copy_in_kept(void* to, const void* from_host, size_t size_bytes) override {
    const DeviceScope scope(device_);
    traffic_.to_device_bytes += size_bytes;
    return check(cudaMemcpyAsync(to, from_host, size_bytes, cudaMemcpyHostToDevice, stream_), "copy to the device");
  }
  // The driver keeps other calls waiting while it locks memory: the pages are there before, and they are large.
  std::shared_ptr<void> host_memory(size_t size_bytes) override {
    constexpr size_t kLargePage = size_t(2) << 20;
    const size_t size = (size_bytes + kLargePage - 1) / kLargePage * kLargePage;
    std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(kLargePage, size), &std::free);
    if (!memory) return nullptr;
    (void)madvise(memory.get(), size, MADV_HUGEPAGE);  // without it they are small
    std::memset(memory.get(), 0, size);
    const DeviceScope scope(device_);
    if (!check(cudaHostRegister(memory.get(), size, cudaHostRegisterPortable), "memory for copies")) return nullptr;
    return {memory.release(), [](void* at) {
              cudaHostUnregister(at);
              std::free(at);
            }};
  }
  Result<void> copy_out(void* to_host, const void* from, size_t size_bytes) override {
    traffic_.from_device_bytes += size_bytes;
    return copy(to_host, from, size_bytes, "copy from the device");
  }
  Result<void> copy_within(void* to, const void* from, size_t size_bytes) override {
    const DeviceScope scope(device_);
    return check(cudaMemcpyAsync(to, from, size_bytes, cudaMemcpyDeviceToDevice, stream_), "copy within the device");
  }
  Result<void> wait() override {
    const DeviceScope scope(device_);
    return check(cudaStreamSynchronize(stream_), "wait for edits");
  }
  uint64_t size_bytes() const override { return held_; }

  void time_steps(bool on) override {
    timing_ = on;
    if (on && !events_) events_.reset(new (std::nothrow) StepEvents);
  }
  StepTimes take_times() override {
    const DeviceScope scope(device_);
    return events_ ? events_->take() : StepTimes();
  }

 private:
  // Calls launch(), with its time where that is asked for.
  template <class Launch>
  std::invoke_result_t<Launch> timed(const char* name, const Launch& launch) {
    const bool times = timing_ && events_;
    if (times) events_->begin(stream_);
    std::invoke_result_t<Launch> launched = launch();
    if (times && launched) events_->end(stream_, name);
    return launched;
  }

  struct Runner {
    CudaDeviceExecutor& device;
    const char* label;
    const Memory& memory;
    const EditCall& call;
    uint64_t most;

    Result<void> launch(unsigned blocks, unsigned threads, void (*kernel)(Memory, EditCall)) const {
      return gpu::launch_early(label, {blocks, threads}, device.stream_, device.early_, kernel, memory, call);
    }
    unsigned blocks_for(uint64_t count, unsigned a_multiprocessor) const {
      return unsigned(std::clamp<uint64_t>(count, 1, uint64_t(device.multiprocessors_) * a_multiprocessor));
    }
    template <class Body>
    Result<void> single() const {
      return launch(1, 1, single_kernel<Body>);
    }
    template <class Body>
    Result<void> items() const {
      return launch(blocks_for((most + kThreads - 1) / kThreads, 8), kThreads, items_kernel<Body>);
    }
    template <class Body>
    Result<void> blocks() const {
      return launch(blocks_for(most, Body::kResident), Body::kThreads, blocks_kernel<Body>);
    }
  };

  // What `second` gets from now on runs after what `first` has got.
  Result<void> order(cudaStream_t first, cudaStream_t second) {
    const DeviceScope scope(device_);
    if (!ordered_)
      QRY_TRY(check(cudaEventCreateWithFlags(&ordered_, cudaEventDisableTiming), "prepare to order streams"));
    QRY_TRY(check(cudaEventRecord(ordered_, first), "order streams"));
    return check(cudaStreamWaitEvent(second, ordered_, 0), "order streams");
  }
  Result<void> open_staging() {
    if (staging_) return {};
    const DeviceScope scope(device_);
    auto staging = std::make_unique<Staging>();
    QRY_TRY(staging->open());
    staging_ = std::move(staging);
    return {};
  }
  Result<void> copy(void* to, const void* from, size_t size_bytes, const char* doing) {
    if (size_bytes == 0) return {};
    const DeviceScope scope(device_);
    QRY_TRY(check(cudaMemcpyAsync(to, from, size_bytes, cudaMemcpyDefault, stream_), doing));
    return check(cudaStreamSynchronize(stream_), doing);
  }

  int device_;
  ShaderMemory* shaders_;
  int multiprocessors_ = 1;
  bool early_ = false;  // steps are launched before the one before them is done
  cudaStream_t stream_ = nullptr;
  cudaEvent_t ordered_ = nullptr;  // once a caller's stream was ordered with it
  Outcome* outcomes_ = nullptr;
  std::unique_ptr<RayPieces> rays_;     // once some were traced
  std::unique_ptr<Staging> staging_;    // once much was copied
  std::unique_ptr<StepEvents> events_;  // once steps were timed
  bool timing_ = false;
  Range sorting_;  // temporary memory, once something was sorted
  CUmemAllocationProp property_{};
  size_t granularity_ = size_t(2) << 20;
  uint64_t held_ = 0;
};

}  // namespace

Result<std::unique_ptr<Executor>> make_cuda_executor(int device, ShaderMemory* shaders) {
  QRY_TRY_ASSIGN(const int count, gpu::device_count());
  if (device < 0 || device >= count)
    return fail(ErrorCode::not_found,
                "CUDA has " + std::to_string(count) + " devices, and none has the number " + std::to_string(device));
  auto executor = std::make_unique<CudaDeviceExecutor>(device, shaders);
  QRY_TRY(executor->open());
  return std::unique_ptr<Executor>(std::move(executor));
}

int cuda_device_count() {
  const auto count = gpu::device_count();
  return count ? *count : 0;
}

}  // namespace quarry::device
