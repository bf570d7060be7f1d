// SPDX-License-Identifier: Apache-2.0
// index_rivals.cu - what the ordered index is measured against on a CUDA device.
#include "bench/tables/index_rivals.hpp"

#include <cub/device/device_radix_sort.cuh>

#include "base/cuda/launch.cuh"

namespace quarry::bench {
namespace {

using gpu::check;

template <class Key>
Result<void> sort(const Key* keys, const uint32_t* values, size_t count, Key* keys_out, uint32_t* values_out) {
  // Its memory is kept from run to run: what is measured is the sort.
  static void* memory = nullptr;
  static size_t room = 0;
  const auto run = [&](void* at, size_t& size_bytes) {
    return cub::DeviceRadixSort::SortPairs(at, size_bytes, keys, keys_out, values, values_out, count);
  };
  size_t wanted = 0;
  QRY_TRY(check(run(nullptr, wanted), "size a sort"));
  if (wanted > room) {
    QRY_TRY(check(cudaFree(memory), "free a sort's memory"));
    memory = nullptr;
    room = 0;
    QRY_TRY(check(cudaMalloc(&memory, wanted), "allocate a sort's memory"));
    room = wanted;
  }
  QRY_TRY(check(run(memory, wanted), "sort"));
  return check(cudaDeviceSynchronize(), "sort");
}

template <class Key>
__global__ void search_each(const Key* sorted, const uint32_t* values, size_t count, const Key* asked, size_t questions,
                            uint32_t* values_out) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= questions) return;
  const Key key = asked[i];
  size_t low = 0;
  for (size_t left = count; left > 0;) {
    const size_t half = left / 2;
    if (sorted[low + half] < key) {
      low += half + 1;
      left -= half + 1;
    } else {
      left = half;
    }
  }
  values_out[i] = low < count && sorted[low] == key ? values[low] : ~0u;
}

template <class Key>
Result<void> search(const Key* sorted, const uint32_t* values, size_t count, const Key* asked, size_t questions,
                    uint32_t* values_out) {
  if (questions == 0) return {};
  QRY_TRY(gpu::launch("search", {uint32_t((questions + 255) / 256), 256}, nullptr, search_each<Key>, sorted, values,
                      count, asked, questions, values_out));
  return check(cudaDeviceSynchronize(), "search");
}

}  // namespace

IndexRivals cuda_index_rivals() { return {sort<uint32_t>, sort<uint64_t>, search<uint32_t>, search<uint64_t>}; }

}  // namespace quarry::bench
