// SPDX-License-Identifier: Apache-2.0
// cuda_threads.cuh - the Machine of passes.hpp as kernels, a thread for each body; sorts and sums by CUB. Other rooms'
// passes run on it too.
#pragma once

#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <type_traits>

#include "base/cuda/launch.cuh"
#include "base/cuda/scratch.cuh"
#include "hashgrid/cuda/tuning.cuh"
#include "hashgrid/index/view.hpp"

namespace quarry::hashgrid {
namespace kernels {

// Added up in the warp, then by one atomic of each warp.
__device__ inline void add_to(unsigned long long* total, uint32_t sum) {
  for (uint32_t step = 16; step != 0; step /= 2) sum += __shfl_down_sync(0xFFFFFFFFu, sum, step);
  if (threadIdx.x % 32 == 0 && sum != 0) atomicAdd(total, (unsigned long long)sum);
}

// The bits in which keys differ: those that are set in any, and those that are not set in any.
template <class Key>
__global__ void __launch_bounds__(kSimpleThreads)
    find_bits(const Key* keys, size_t count, unsigned long long* any, unsigned long long* none) {
  unsigned long long set = 0, unset = 0;
  for (size_t i = size_t{blockIdx.x} * kSimpleThreads + threadIdx.x; i < count;
       i += size_t{gridDim.x} * kSimpleThreads) {
    set |= keys[i];
    unset |= ~keys[i];
  }
  for (uint32_t step = 16; step != 0; step /= 2) {
    set |= __shfl_down_sync(0xFFFFFFFFu, set, step);
    unset |= __shfl_down_sync(0xFFFFFFFFu, unset, step);
  }
  if (threadIdx.x % 32 != 0) return;
  atomicOr(any, set);
  atomicOr(none, unset);
}

template <class Body>
__global__ void __launch_bounds__(kSimpleThreads) run_bodies(Body body, size_t count, unsigned long long* total) {
  uint32_t sum = 0;
  for (size_t i = size_t{blockIdx.x} * kSimpleThreads + threadIdx.x; i < count; i += size_t{gridDim.x} * kSimpleThreads)
    sum += body(i);
  if (total != nullptr) add_to(total, sum);
}
// The lanes of a warp that look for a key together: a node is 128 bytes, 16 of each. One thread alone reads it by eight
// loads, each of which meets 32 nodes of 32 threads in the L1 cache; eight lanes read it by one.
constexpr uint32_t kNodeLanes = kIndexNodeBytes / 16;
// Keys on their way at once in such a group: measured with 2, 4 and 8.
template <class Key>
constexpr uint32_t kAtOnce = sizeof(Key) == 4 ? 8 : 4;

// Of a node whose 16 bytes of this lane are `piece`: the number of its keys that are less than `key`, or at most `key`,
// in all lanes of the group.
template <bool kEqualToo, class Key>
__device__ __forceinline__ uint32_t count_together(uint4 piece, Key key, uint32_t group_shift) {
  const auto counts = [key](Key of_node) { return kEqualToo ? of_node <= key : of_node < key; };
  constexpr uint32_t kGroupMask = (1u << kNodeLanes) - 1;
  if constexpr (sizeof(Key) == 8) {
    const uint32_t low = __ballot_sync(0xFFFFFFFFu, counts(Key{piece.y} << 32 | piece.x));
    const uint32_t high = __ballot_sync(0xFFFFFFFFu, counts(Key{piece.w} << 32 | piece.z));
    return __popc((low >> group_shift & kGroupMask) | (high >> group_shift & kGroupMask) << kNodeLanes);
  } else {
    const uint32_t x = __ballot_sync(0xFFFFFFFFu, counts(piece.x)), y = __ballot_sync(0xFFFFFFFFu, counts(piece.y));
    const uint32_t z = __ballot_sync(0xFFFFFFFFu, counts(piece.z)), w = __ballot_sync(0xFFFFFFFFu, counts(piece.w));
    return __popc(__byte_perm(__byte_perm(x >> group_shift, y >> group_shift, 0x0040),
                              __byte_perm(z >> group_shift, w >> group_shift, 0x0040), 0x5410));
  }
}

// The place of each lane's key: what place_of (view.hpp) says. All lanes of a warp call it.
template <class Key>
__device__ IndexPlace place_together(const IndexView<Key>& view, Key key) {
  using Node = IndexNode<Key>;
  const uint32_t lane = threadIdx.x % 32, member = lane % kNodeLanes, group_shift = lane - member;
  IndexPlace place{};
  constexpr uint32_t kKeys = kAtOnce<Key>;
  for (uint32_t first = 0; first < kNodeLanes; first += kKeys) {
    Key wanted[kKeys];
    uint32_t node[kKeys];
    uint4 piece[kKeys];
#pragma unroll
    for (uint32_t i = 0; i < kKeys; ++i) {
      wanted[i] = __shfl_sync(0xFFFFFFFFu, key, int(group_shift + first + i));
      node[i] = 0;
    }
    // Leaves, and the many nodes right above them, are met once: they leave the L1 cache to the levels that all share.
    const auto load = [&](const Key* nodes, bool shared) {
#pragma unroll
      for (uint32_t i = 0; i < kKeys; ++i) {
        const uint4* const from = reinterpret_cast<const uint4*>(nodes + size_t{node[i]} * Node::kSlots) + member;
        piece[i] = shared ? __ldg(from) : __ldcg(from);
      }
    };
    for (uint32_t level = view.shape.levels; level-- > 0;) {
      load(view.inner + size_t{view.shape.first_node[level]} * Node::kSlots, level != 0);
#pragma unroll
      for (uint32_t i = 0; i < kKeys; ++i) {
        // The reserved key, which pads nodes, is looked for as the one before it.
        const Key below = wanted[i] == Node::kReservedKey ? Key(wanted[i] - 1) : wanted[i];
        node[i] = node[i] * Node::kFanout + count_together<true>(piece[i], below, group_shift);
      }
    }
    load(view.keys, false);
#pragma unroll
    for (uint32_t i = 0; i < kKeys; ++i) {
      const uint32_t slot = count_together<false>(piece[i], wanted[i], group_shift);
      if (member == first + i) place = {node[i], slot};
    }
  }
  return place;
}

template <class Key, class Body>
__global__ void __launch_bounds__(kSimpleThreads)
    search_bodies(IndexView<Key> view, Body body, size_t count, unsigned long long* total) {
  uint32_t sum = 0;
  // Whole warps: lanes without a key of their own help with the others'.
  const size_t all = (count + 31) / 32 * 32;
  for (size_t i = size_t{blockIdx.x} * kSimpleThreads + threadIdx.x; i < all; i += size_t{gridDim.x} * kSimpleThreads) {
    const IndexPlace place = place_together(view, i < count ? body.key(i) : Key{0});
    if (i < count) sum += body(i, place);
  }
  if (total != nullptr) add_to(total, sum);
}

// The lanes of a warp as a group (segments.hpp).
struct WarpLanes {
  static constexpr uint32_t kLanes = 32;
  __device__ uint32_t lane() const { return threadIdx.x % 32; }
  __device__ uint32_t before(bool flag, uint32_t* all) const {
    const uint32_t flags = __ballot_sync(0xFFFFFFFFu, flag);
    *all = __popc(flags);
    return __popc(flags & ((1u << lane()) - 1));
  }
};
template <class Body>
__global__ void __launch_bounds__(kSimpleThreads) run_warps(Body body, size_t count) {
  for (size_t i = (size_t{blockIdx.x} * kSimpleThreads + threadIdx.x) / 32; i < count;
       i += size_t{gridDim.x} * (kSimpleThreads / 32))
    body(WarpLanes{}, i);
}

}  // namespace kernels

class CudaThreads {
 public:
  CudaThreads(const gpu::DeviceStream& stream, uint32_t multiprocessors)
      : stream_(&stream), multiprocessors_(multiprocessors) {}

  gpu::DeviceScope begin() const { return gpu::DeviceScope(stream_->device()); }
  Result<void> finish(const char* what) const { return gpu::check(cudaStreamSynchronize(stream_->get()), what); }
  Result<gpu::Scratch> scratch(size_t size_bytes) const {
    return gpu::Scratch::allocate(*stream_, size_bytes, "index scratch");
  }
  uint32_t piece() const { return 1024; }
  // Cells of an eighth of a box are small enough that few candidates are outside; of very many boxes there are parts
  // enough without.
  uint32_t box_depth(size_t boxes) const { return boxes <= size_t{1} << 14 ? 3 : boxes <= size_t{1} << 17 ? 2 : 1; }

  template <class Body>
  Result<void> run(const char* what, size_t count, const Body& body) const {
    if (count == 0) return {};
    return gpu::launch(what, shape(count), stream_->get(), kernels::run_bodies<Body>, body, count, nullptr);
  }
  template <class Body>
  Result<void> run_groups(const char* what, size_t count, const Body& body) const {
    if (count == 0) return {};
    return gpu::launch(what, shape(count * 32), stream_->get(), kernels::run_warps<Body>, body, count);
  }
  template <class Body>
  Result<void> sum(const char* what, size_t count, const Body& body, uint64_t* total) const {
    return added(what, count, total, [&](unsigned long long* to) {
      return gpu::launch(what, shape(count), stream_->get(), kernels::run_bodies<Body>, body, count, to);
    });
  }
  template <class Key, class Body>
  Result<void> search(const char* what, const IndexView<Key>& view, size_t count, const Body& body,
                      uint64_t* total) const {
    if (total == nullptr) {
      if (count == 0) return {};
      QRY_TRY(gpu::launch(what, shape(count), stream_->get(), kernels::search_bodies<Key, Body>, view, body, count,
                          nullptr));
      return finish(what);
    }
    return added(what, count, total, [&](unsigned long long* to) {
      return gpu::launch(what, shape(count), stream_->get(), kernels::search_bodies<Key, Body>, view, body, count, to);
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
    int first = 0, end = int(sizeof(Key) * 8);
    if constexpr (sizeof(Key) == 8) QRY_TRY(narrow(keys, count, &first, &end));
    return gpu::with_temporary(*stream_, "sort an index's keys", [&](void* memory, size_t& size_bytes) {
      if (values == nullptr)
        return cub::DeviceRadixSort::SortKeys(memory, size_bytes, keys, keys_out, count, first, end, stream_->get());
      return cub::DeviceRadixSort::SortPairs(memory, size_bytes, keys, keys_out, values, values_out, count, first, end,
                                             stream_->get());
    });
  }

  template <class T>
  Result<void> put(T* to, const std::type_identity_t<T>& number) const {
    return gpu::check(cudaMemcpyAsync(to, &number, sizeof(number), cudaMemcpyHostToDevice, stream_->get()),
                      "write a number of an index");
  }
  template <class T>
  Result<void> get(const T* from, T* number) const {
    QRY_TRY(gpu::check(cudaMemcpyAsync(number, from, sizeof(T), cudaMemcpyDefault, stream_->get()),
                       "read a number of an index"));
    return finish("read a number of an index");
  }

 protected:
  gpu::LaunchShape shape(size_t count) const {
    const size_t blocks = (count + kernels::kSimpleThreads - 1) / kernels::kSimpleThreads;
    return {uint32_t(std::min<size_t>(blocks, size_t{multiprocessors_} * kernels::kSimpleBlocks)),
            kernels::kSimpleThreads};
  }
  // Only the bits from the first to the last in which keys differ: of 64, those of a world's Morton codes are a half.
  Result<void> narrow(const uint64_t* keys, size_t count, int* first, int* end) const {
    constexpr size_t kWorthwhile = 1 << 16;
    if (count < kWorthwhile) return {};
    QRY_TRY_ASSIGN(const gpu::Scratch memory, gpu::Scratch::zeroed(*stream_, 2 * sizeof(uint64_t)));
    unsigned long long* const bits = memory.as<unsigned long long>();
    QRY_TRY(gpu::launch("look at an index's keys", shape(count), stream_->get(), kernels::find_bits<uint64_t>, keys,
                        count, bits, bits + 1));
    unsigned long long found[2];
    QRY_TRY(gpu::check(cudaMemcpyAsync(found, bits, sizeof(found), cudaMemcpyDefault, stream_->get()),
                       "read an index's bits"));
    QRY_TRY(finish("look at an index's keys"));
    const uint64_t differ = found[0] & found[1];
    if (differ == 0) return {};
    *first = __builtin_ctzll(differ);
    *end = 64 - __builtin_clzll(differ);
    return {};
  }
  template <class Launch>
  Result<void> added(const char* what, size_t count, uint64_t* total, const Launch& launch_it) const {
    *total = 0;
    if (count == 0) return {};
    QRY_TRY_ASSIGN(const gpu::Scratch sum, gpu::Scratch::zeroed(*stream_, sizeof(uint64_t)));
    QRY_TRY(launch_it(sum.as<unsigned long long>()));
    (void)what;
    return get(sum.as<uint64_t>(), total);
  }

  const gpu::DeviceStream* stream_;
  uint32_t multiprocessors_;
};

}  // namespace quarry::hashgrid
