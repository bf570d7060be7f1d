// SPDX-License-Identifier: Apache-2.0
// own_kernels.cu - the kernels and streams of own_kernels.hpp.
#include "tests/hashgrid/cuda/own_kernels.hpp"

#include "base/cuda/launch.cuh"
#include "base/cuda/scratch.cuh"
#include "hashgrid/cuda/enqueue.cuh"
#include "hashgrid/cuda_stream.cuh"

namespace quarry::hashgrid::test {
namespace {

template <class View>
__global__ void find_each(ReadOnly<View> table, const uint32_t* keys, uint32_t count, Found* found) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) found[i] = find(table, keys[i]);
}

__global__ void find_each_paged(PagedView view, const uint64_t* keys, uint32_t count, PagedFound* found) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) found[i] = find(view, uint32_t(keys[i] >> 32), uint32_t(keys[i]));
}

__global__ void sum_each(MultiView grid, const uint32_t* keys, uint32_t count, uint64_t* sums) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  uint64_t sum = 0;
  for_each_value(grid, keys[i], [&sum](uint32_t value) { sum += value; });
  sums[i] = sum;
}

// An array in device memory, with a copy of what it is given.
template <class T>
class OnDevice {
 public:
  explicit OnDevice(size_t count) : count_(count) { cudaMalloc(&data_, std::max<size_t>(1, count) * sizeof(T)); }
  explicit OnDevice(const std::vector<T>& from) : OnDevice(from.size()) {
    cudaMemcpy(data_, from.data(), count_ * sizeof(T), cudaMemcpyHostToDevice);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { cudaFree(data_); }
  T* data() const { return data_; }
  std::vector<T> get() const {
    std::vector<T> copy(count_);
    cudaMemcpy(copy.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost);
    return copy;
  }

 private:
  T* data_ = nullptr;
  size_t count_;
};

template <class View>
std::vector<Found> find_all(Executor& executor, const View& view, const std::vector<uint32_t>& keys) {
  const gpu::DeviceScope scope(cuda_device_of(executor));
  const OnDevice<uint32_t> asked(keys);
  const OnDevice<Found> found(keys.size());
  const auto launched =
      gpu::launch("find through a read-only view", {uint32_t(keys.size() / 128 + 1), 128}, cuda_stream_of(executor),
                  find_each<View>, ReadOnly<View>{view}, asked.data(), uint32_t(keys.size()), found.data());
  if (!launched || cudaStreamSynchronize(cuda_stream_of(executor)) != cudaSuccess) return {};
  return found.get();
}

template <class View>
Enqueued enqueue_batch(Executor& executor, const View& view, Batch batch, const std::vector<uint32_t>& keys,
                       const std::vector<uint32_t>& values) {
  const gpu::DeviceScope scope(cuda_device_of(executor));
  const OnDevice<uint32_t> k(keys), v(values);
  const OnDevice<Outcome> outcomes(keys.size());
  const OnDevice<OutcomeCounts> counts(std::vector<OutcomeCounts>(1));
  cudaStream_t stream = nullptr;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return {};
  cudaDeviceSynchronize();  // the copies above
  const auto run = [&]() -> Result<void> {
    const size_t count = keys.size();
    switch (batch) {
      case Batch::insert:
        return enqueue_insert(stream, view, k.data(), v.data(), count, outcomes.data(), counts.data());
      case Batch::assign:
        return enqueue_assign(stream, view, k.data(), v.data(), count, outcomes.data(), counts.data());
      case Batch::find_or_insert:
        return enqueue_find_or_insert(stream, view, k.data(), v.data(), count, outcomes.data(), counts.data());
      case Batch::find: return enqueue_find(stream, view, k.data(), count, v.data(), outcomes.data(), counts.data());
      case Batch::erase: return enqueue_erase(stream, view, k.data(), count, v.data(), outcomes.data(), counts.data());
    }
    return {};
  };
  Enqueued done;
  done.accepted = run().has_value() && cudaStreamSynchronize(stream) == cudaSuccess;
  cudaStreamDestroy(stream);
  done.values = v.get();
  done.outcomes = outcomes.get();
  const OutcomeCounts counted = counts.get()[0];
  std::copy(std::begin(counted.of), std::end(counted.of), done.counts);
  return done;
}

}  // namespace

std::vector<PagedFound> find_paged(Executor& executor, const PagedView& view, const std::vector<uint64_t>& keys) {
  const gpu::DeviceScope scope(cuda_device_of(executor));
  const OnDevice<uint64_t> asked(keys);
  const OnDevice<PagedFound> found(keys.size());
  const auto launched =
      gpu::launch("find in a paged grid", {uint32_t(keys.size() / 128 + 1), 128}, cuda_stream_of(executor),
                  find_each_paged, view, asked.data(), uint32_t(keys.size()), found.data());
  if (!launched || cudaStreamSynchronize(cuda_stream_of(executor)) != cudaSuccess) return {};
  return found.get();
}

std::vector<uint64_t> sum_values(Executor& executor, const MultiView& view, const std::vector<uint32_t>& keys) {
  const gpu::DeviceScope scope(cuda_device_of(executor));
  const OnDevice<uint32_t> asked(keys);
  const OnDevice<uint64_t> sums(keys.size());
  const auto launched = gpu::launch("sum up values", {uint32_t(keys.size() / 128 + 1), 128}, cuda_stream_of(executor),
                                    sum_each, view, asked.data(), uint32_t(keys.size()), sums.data());
  if (!launched || cudaStreamSynchronize(cuda_stream_of(executor)) != cudaSuccess) return {};
  return sums.get();
}

std::vector<Found> find_read_only(Executor& executor, const GridView& view, const std::vector<uint32_t>& keys) {
  return find_all(executor, view, keys);
}
std::vector<Found> find_read_only(Executor& executor, const CompactView& view, const std::vector<uint32_t>& keys) {
  return find_all(executor, view, keys);
}
Enqueued enqueue(Executor& executor, const GridView& view, Batch batch, const std::vector<uint32_t>& keys,
                 const std::vector<uint32_t>& values) {
  return enqueue_batch(executor, view, batch, keys, values);
}
Enqueued enqueue(Executor& executor, const CompactView& view, Batch batch, const std::vector<uint32_t>& keys,
                 const std::vector<uint32_t>& values) {
  return enqueue_batch(executor, view, batch, keys, values);
}
bool null_keys_are_refused(Executor& executor, const GridView& view) {
  const auto said = enqueue_insert(cuda_stream_of(executor), view, nullptr, nullptr, 1, nullptr, nullptr);
  return !said && said.error().code == ErrorCode::invalid_argument;
}

}  // namespace quarry::hashgrid::test
