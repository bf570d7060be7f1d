// SPDX-License-Identifier: Apache-2.0
// sort.cu - pairs sorted by CUB's radix sort; by digits of nine bits instead of eight where that saves a pass.
#include "voxel/device/sort.hpp"

#include <cub/device/device_radix_sort.cuh>

#include "base/cuda/error.cuh"

namespace quarry::device {
namespace {

using Buffer = cub::DoubleBuffer<uint32_t>;

// CUB takes the width of its digits from a type that only its own versions before 3.1 are known to have so.
#if defined(CCCL_VERSION) && CCCL_VERSION >= 3000000 && CCCL_VERSION < 3001000

using Usual = cub::detail::radix::policy_hub<uint32_t, uint32_t, uint32_t>;

// On devices of compute capability 9.0 and later, others as usual. Threads and items were chosen by measurement: lists
// of 20 million voxels 11.73 thousand million a second, by eight bits 11.03; 384 x 23 gives 11.40, 256 x 23 11.29,
// 512 x 21 11.08 (one H200).
struct WideDigits {
  struct Policy900 : cub::ChainedPolicy<900, Policy900, Usual::Policy800> {
    static constexpr bool ONESWEEP = true;
    static constexpr int ONESWEEP_RADIX_BITS = 9;
    using HistogramPolicy = cub::AgentRadixSortHistogramPolicy<128, 16, 1, uint32_t, ONESWEEP_RADIX_BITS>;
    using ExclusiveSumPolicy = cub::AgentRadixSortExclusiveSumPolicy<256, ONESWEEP_RADIX_BITS>;
    using OnesweepPolicy =
        cub::AgentRadixSortOnesweepPolicy<512, 16, uint32_t, 1, cub::RADIX_RANK_MATCH_EARLY_COUNTS_ANY,
                                          cub::BLOCK_SCAN_RAKING_MEMOIZE, cub::RADIX_SORT_STORE_DIRECT,
                                          ONESWEEP_RADIX_BITS>;
    using ScanPolicy = Usual::Policy900::ScanPolicy;
    using DownsweepPolicy = Usual::Policy900::DownsweepPolicy;
    using AltDownsweepPolicy = Usual::Policy900::AltDownsweepPolicy;
    using UpsweepPolicy = Usual::Policy900::UpsweepPolicy;
    using AltUpsweepPolicy = Usual::Policy900::AltUpsweepPolicy;
    using SingleTilePolicy = Usual::Policy900::SingleTilePolicy;
    using SegmentedPolicy = Usual::Policy900::SegmentedPolicy;
    using AltSegmentedPolicy = Usual::Policy900::AltSegmentedPolicy;
  };
  using MaxPolicy = Policy900;
};

constexpr bool saves_a_pass(uint32_t bits) { return (bits + 8) / 9 < (bits + 7) / 8; }

cudaError_t sort_pairs(void* temporary, size_t& size_bytes, Buffer& keys, Buffer& values, uint32_t count, uint32_t bits,
                       cudaStream_t stream) {
  if (saves_a_pass(bits))
    return cub::DispatchRadixSort<cub::SortOrder::Ascending, uint32_t, uint32_t, uint32_t,
                                  cub::detail::identity_decomposer_t, WideDigits>::Dispatch(temporary, size_bytes, keys,
                                                                                            values, count, 0, int(bits),
                                                                                            true, stream);
  return cub::DeviceRadixSort::SortPairs(temporary, size_bytes, keys, values, count, 0, int(bits), stream);
}

#else

cudaError_t sort_pairs(void* temporary, size_t& size_bytes, Buffer& keys, Buffer& values, uint32_t count, uint32_t bits,
                       cudaStream_t stream) {
  return cub::DeviceRadixSort::SortPairs(temporary, size_bytes, keys, values, count, 0, int(bits), stream);
}

#endif

}  // namespace

Result<size_t> sort_bytes_on_cuda(uint32_t count, uint32_t bits) {
  size_t size_bytes = 0;
  Buffer keys(nullptr, nullptr), values(nullptr, nullptr);
  QRY_TRY(gpu::check(sort_pairs(nullptr, size_bytes, keys, values, count, bits, nullptr), "prepare to sort"));
  return size_bytes;
}

Result<uint32_t> sort_on_cuda(void* stream, const Executor::Pairs& pairs, uint32_t count, uint32_t bits,
                              void* temporary, size_t temporary_bytes) {
  Buffer keys(pairs.keys[0], pairs.keys[1]), values(pairs.values[0], pairs.values[1]);
  QRY_TRY(gpu::check(
      sort_pairs(temporary, temporary_bytes, keys, values, count, bits, static_cast<cudaStream_t>(stream)), "sort"));
  return uint32_t(keys.Current() == pairs.keys[1]);
}

}  // namespace quarry::device
