// SPDX-License-Identifier: Apache-2.0
// sort.cu - pairs sorted by CUB's radix sort.
#include "voxel/device/sort.hpp"

#include <cub/device/device_radix_sort.cuh>

#include "base/cuda/error.cuh"

namespace quarry::device {

Result<size_t> sort_bytes_on_cuda(uint32_t count, uint32_t bits) {
  size_t size_bytes = 0;
  cub::DoubleBuffer<uint32_t> none(nullptr, nullptr);
  QRY_TRY(gpu::check(cub::DeviceRadixSort::SortPairs(nullptr, size_bytes, none, none, count, 0, int(bits)),
                     "prepare to sort"));
  return size_bytes;
}

Result<uint32_t> sort_on_cuda(void* stream, const Executor::Pairs& pairs, uint32_t count, uint32_t bits,
                              void* temporary, size_t temporary_bytes) {
  cub::DoubleBuffer<uint32_t> keys(pairs.keys[0], pairs.keys[1]), values(pairs.values[0], pairs.values[1]);
  QRY_TRY(gpu::check(cub::DeviceRadixSort::SortPairs(temporary, temporary_bytes, keys, values, count, 0, int(bits),
                                                     static_cast<cudaStream_t>(stream)),
                     "sort"));
  return uint32_t(keys.Current() == pairs.keys[1]);
}

}  // namespace quarry::device
