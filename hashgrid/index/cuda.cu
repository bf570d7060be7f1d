// SPDX-License-Identifier: Apache-2.0
// cuda.cu - the passes as kernels, a thread for each body; sorts and sums by CUB.
#include "hashgrid/index/cuda.cuh"

#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "base/cuda/launch.cuh"
#include "hashgrid/cuda/tuning.cuh"
#include "hashgrid/index/passes.hpp"

namespace quarry::hashgrid {
namespace {

using gpu::check;
using gpu::launch;
using gpu::Scratch;
using kernels::kSimpleBlocks;
using kernels::kSimpleThreads;

// Added up in the warp, then by one atomic of each warp.
__device__ void add_to(unsigned long long* total, uint32_t sum) {
  for (uint32_t step = 16; step != 0; step /= 2) sum += __shfl_down_sync(0xFFFFFFFFu, sum, step);
  if (threadIdx.x % 32 == 0 && sum != 0) atomicAdd(total, (unsigned long long)sum);
}

template <class Body>
__global__ void __launch_bounds__(kSimpleThreads) run_bodies(Body body, size_t count, unsigned long long* total) {
  uint32_t sum = 0;
  for (size_t i = size_t{blockIdx.x} * kSimpleThreads + threadIdx.x; i < count; i += size_t{gridDim.x} * kSimpleThreads)
    sum += body(i);
  if (total != nullptr) add_to(total, sum);
}
template <class Key, class Body>
__global__ void __launch_bounds__(kSimpleThreads)
    search_bodies(IndexView<Key> view, Body body, size_t count, unsigned long long* total) {
  uint32_t sum = 0;
  for (size_t i = size_t{blockIdx.x} * kSimpleThreads + threadIdx.x; i < count; i += size_t{gridDim.x} * kSimpleThreads)
    sum += body(i, place_of(view, body.key(i)));
  if (total != nullptr) add_to(total, sum);
}

class CudaThreads {
 public:
  CudaThreads(const gpu::DeviceStream& stream, uint32_t multiprocessors)
      : stream_(&stream), multiprocessors_(multiprocessors) {}

  gpu::DeviceScope begin() const { return gpu::DeviceScope(stream_->device()); }
  Result<void> finish(const char* what) const { return check(cudaStreamSynchronize(stream_->get()), what); }
  Result<Scratch> scratch(size_t size_bytes) const { return Scratch::allocate(*stream_, size_bytes, "index scratch"); }
  uint32_t list_run() const { return 32; }
  uint32_t box_depth(size_t) const { return 3; }

  template <class Body>
  Result<void> run(const char* what, size_t count, const Body& body) const {
    if (count == 0) return {};
    return launch(what, shape(count), stream_->get(), run_bodies<Body>, body, count, nullptr);
  }
  template <class Body>
  Result<void> sum(const char* what, size_t count, const Body& body, uint64_t* total) const {
    return added(what, count, total, [&](unsigned long long* to) {
      return launch(what, shape(count), stream_->get(), run_bodies<Body>, body, count, to);
    });
  }
  template <class Key, class Body>
  Result<void> search(const char* what, const IndexView<Key>& view, size_t count, const Body& body,
                      uint64_t* total) const {
    if (total == nullptr) {
      if (count == 0) return {};
      QRY_TRY(launch(what, shape(count), stream_->get(), search_bodies<Key, Body>, view, body, count, nullptr));
      return finish(what);
    }
    return added(what, count, total, [&](unsigned long long* to) {
      return launch(what, shape(count), stream_->get(), search_bodies<Key, Body>, view, body, count, to);
    });
  }

  template <class T>
  Result<void> scan(T* numbers, size_t count) const {
    return gpu::with_temporary(*stream_, "sum up an index's counts", [&](void* memory, size_t& size_bytes) {
      return cub::DeviceScan::ExclusiveSum(memory, size_bytes, numbers, numbers, count, stream_->get());
    });
  }
  template <class Key>
  Result<void> sort(const Key* keys, const uint32_t* values, size_t count, Key* keys_out, uint32_t* values_out) const {
    if (count == 0) return {};
    return gpu::with_temporary(*stream_, "sort an index's keys", [&](void* memory, size_t& size_bytes) {
      if (values == nullptr)
        return cub::DeviceRadixSort::SortKeys(memory, size_bytes, keys, keys_out, count, 0, int(sizeof(Key) * 8),
                                              stream_->get());
      return cub::DeviceRadixSort::SortPairs(memory, size_bytes, keys, keys_out, values, values_out, count, 0,
                                             int(sizeof(Key) * 8), stream_->get());
    });
  }

  Result<void> put(uint64_t* to, uint64_t number) const {
    return check(cudaMemcpyAsync(to, &number, sizeof(number), cudaMemcpyHostToDevice, stream_->get()),
                 "write a number of an index");
  }
  template <class T>
  Result<void> get(const T* from, T* number) const {
    QRY_TRY(check(cudaMemcpyAsync(number, from, sizeof(T), cudaMemcpyDefault, stream_->get()),
                  "read a number of an index"));
    return finish("read a number of an index");
  }

 private:
  gpu::LaunchShape shape(size_t count) const {
    const size_t blocks = (count + kSimpleThreads - 1) / kSimpleThreads;
    return {uint32_t(std::min<size_t>(blocks, size_t{multiprocessors_} * kSimpleBlocks)), kSimpleThreads};
  }
  template <class Launch>
  Result<void> added(const char* what, size_t count, uint64_t* total, const Launch& launch_it) const {
    *total = 0;
    if (count == 0) return {};
    QRY_TRY_ASSIGN(const Scratch sum, Scratch::zeroed(*stream_, sizeof(uint64_t)));
    QRY_TRY(launch_it(sum.as<unsigned long long>()));
    (void)what;
    return get(sum.as<uint64_t>(), total);
  }

  const gpu::DeviceStream* stream_;
  uint32_t multiprocessors_;
};

}  // namespace

std::unique_ptr<IndexOperations<uint32_t>> make_cuda_index32(const gpu::DeviceStream& stream,
                                                             uint32_t multiprocessors) {
  return std::make_unique<IndexPasses<CudaThreads, uint32_t>>(CudaThreads(stream, multiprocessors));
}
std::unique_ptr<IndexOperations<uint64_t>> make_cuda_index64(const gpu::DeviceStream& stream,
                                                             uint32_t multiprocessors) {
  return std::make_unique<IndexPasses<CudaThreads, uint64_t>>(CudaThreads(stream, multiprocessors));
}

}  // namespace quarry::hashgrid
