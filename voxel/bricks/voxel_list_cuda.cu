// voxel_list_cuda.cu - bricks out of a list of voxels on CUDA, in the executor's stream: the voxels are sorted by brick, and a warp puts each
// brick together in shared memory and writes it whole. Every byte of a brick is written once, in whole sectors, whatever the list's order.
//
// Sorting: onesweep radix sort with decoupled look-back (A. Adinets and D. Merrill, 2022), by CUB, over the bits that the list's own box needs.
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include <bit>

#include "hashgrid/cuda_stream.cuh"
#include "voxel/bricks/voxel_list_stage.hpp"

namespace quarry::voxel_list_detail {
namespace {

constexpr uint32_t kThreads = 256, kWarps = kThreads / 32;

// What the first pass finds. Brick coordinates are biased as in keys, so that they are unsigned.
struct Survey {
  unsigned long long outside, without_material;
  uint32_t low[3], high[3];
};

// Of a brick coordinate: its place in keys of the box, which rise as the grid's keys do.
struct Box {
  uint32_t low[3], bits[3];
  uint32_t bits_in_all() const { return bits[0] + bits[1] + bits[2]; }
};

__device__ inline uint32_t grid_key(const Box& box, uint32_t key) {
  const uint32_t x = key & ((1u << box.bits[0]) - 1u), y = key >> box.bits[0] & ((1u << box.bits[1]) - 1u), z = key >> (box.bits[0] + box.bits[1]);
  return (x + box.low[0]) | (y + box.low[1]) << 11 | (z + box.low[2]) << 21;
}

__global__ void __launch_bounds__(kThreads) survey_voxels(const Int3* positions, const uint8_t* materials, uint64_t count, Survey* survey) {
  uint32_t low[3] = {~0u, ~0u, ~0u}, high[3] = {0, 0, 0};
  uint32_t outside = 0, without = 0;
  for (uint64_t i = uint64_t(blockIdx.x) * kThreads + threadIdx.x; i < count; i += uint64_t(gridDim.x) * kThreads) {
    const Int3 p = positions[i];
    const uint32_t at[3] = {uint32_t(p.x >> 3) + kQryBiasXZ, uint32_t(p.y >> 3) + kQryBiasY, uint32_t(p.z >> 3) + kQryBiasXZ};
    if (materials != nullptr && materials[i] == 0) ++without;
    if (at[0] >= 2 * kQryBiasXZ || at[1] >= 2 * kQryBiasY || at[2] >= 2 * kQryBiasXZ || (at[0] | at[1] << 11 | at[2] << 21) == kQryReservedKey) {
      ++outside;
      continue;
    }
    for (int axis = 0; axis < 3; ++axis) {
      low[axis] = min(low[axis], at[axis]);
      high[axis] = max(high[axis], at[axis]);
    }
  }
  outside = __reduce_add_sync(~0u, outside);
  without = __reduce_add_sync(~0u, without);
  for (int axis = 0; axis < 3; ++axis) {
    low[axis] = __reduce_min_sync(~0u, low[axis]);
    high[axis] = __reduce_max_sync(~0u, high[axis]);
  }
  if ((threadIdx.x & 31u) != 0) return;
  if (outside) atomicAdd(&survey->outside, static_cast<unsigned long long>(outside));
  if (without) atomicAdd(&survey->without_material, static_cast<unsigned long long>(without));
  for (int axis = 0; axis < 3; ++axis) {
    atomicMin(&survey->low[axis], low[axis]);
    atomicMax(&survey->high[axis], high[axis]);
  }
}

// Key of the brick in the box; beside it the voxel's number in the brick and its material.
__global__ void __launch_bounds__(kThreads) key_voxels(const Int3* positions, const uint8_t* materials, uint64_t count, Box box, uint32_t* keys,
                                                       uint32_t* voxels) {
  const uint64_t i = uint64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const Int3 p = positions[i];
  const uint32_t bx = uint32_t(p.x >> 3) + kQryBiasXZ - box.low[0], by = uint32_t(p.y >> 3) + kQryBiasY - box.low[1];
  const uint32_t bz = uint32_t(p.z >> 3) + kQryBiasXZ - box.low[2];
  keys[i] = bx | by << box.bits[0] | bz << (box.bits[0] + box.bits[1]);
  voxels[i] = voxel_index(p) << 8 | (materials != nullptr ? materials[i] : 1u);
}

struct BeginsBrick {
  const uint32_t* keys;
  __device__ bool operator()(uint32_t i) const { return i == 0 || keys[i] != keys[i - 1]; }
};

__global__ void __launch_bounds__(kThreads) name_bricks(const uint32_t* sorted, const uint32_t* starts, uint32_t bricks, Box box, uint32_t* keys) {
  const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i < bricks) keys[i] = grid_key(box, sorted[starts[i]]);
}

// A warp a brick. Of a position that is given more than once the greatest material stays.
__global__ void __launch_bounds__(kThreads) put_bricks_together(const uint32_t* voxels, const uint32_t* starts, uint32_t bricks, uint32_t count,
                                                                uint32_t* masks, uint32_t* materials) {
  __shared__ __align__(16) uint32_t stage[kWarps][kVoxelsPerBrick];
  const uint32_t lane = threadIdx.x & 31u, brick = blockIdx.x * kWarps + threadIdx.x / 32;
  if (brick >= bricks) return;
  uint32_t* const mine = stage[threadIdx.x / 32];
  auto* const four = reinterpret_cast<uint4*>(mine);
  for (uint32_t k = 0; k < kVoxelsPerBrick / 128; ++k) four[k * 32 + lane] = make_uint4(0, 0, 0, 0);
  __syncwarp();
  const uint32_t end = brick + 1 < bricks ? starts[brick + 1] : count;
  for (uint32_t i = starts[brick] + lane; i < end; i += 32) {
    const uint32_t voxel = voxels[i];
    atomicMax(mine + (voxel >> 8), voxel & 255u);
  }
  __syncwarp();
  for (uint32_t k = 0; k < kVoxelsPerBrick / 128; ++k) {
    const uint4 m = four[k * 32 + lane];
    materials[size_t(brick) * (kVoxelsPerBrick / 4) + k * 32 + lane] = m.x | m.y << 8 | m.z << 16 | m.w << 24;
    const uint32_t bits = uint32_t(m.x != 0) | uint32_t(m.y != 0) << 1 | uint32_t(m.z != 0) << 2 | uint32_t(m.w != 0) << 3;
    const uint32_t half_word = __reduce_or_sync(0xFFu << (lane & 24u), bits << (4 * (lane & 7u)));
    if ((lane & 7u) == 0) masks[size_t(brick) * (kVoxelsPerBrick / 32) + k * 4 + lane / 8] = half_word;
  }
}

__global__ void __launch_bounds__(kThreads) count_up(uint32_t* out, uint32_t count) {
  const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i < count) out[i] = i;
}

uint32_t blocks_for(uint64_t count, uint64_t each) { return uint32_t((count + each - 1) / each); }

template <class T>
Result<T> fetched(cudaStream_t s, const T* from, const char* doing) {
  T to{};
  for (const auto& done : {hashgrid::cuda_result(cudaGetLastError(), doing),
                           hashgrid::cuda_result(cudaMemcpyAsync(&to, from, sizeof to, cudaMemcpyDeviceToHost, s), doing),
                           hashgrid::cuda_result(cudaStreamSynchronize(s), doing)})
    if (!done) return tl::unexpected(done.error());
  return to;
}

constexpr size_t aligned(size_t size_bytes) { return (size_bytes + 255) / 256 * 256; }

}  // namespace

Result<uint32_t> list_keys_on_cuda(hashgrid::Executor& executor, const VoxelList& list, MemoryBlock& keys, SortedVoxels& sorted, ListFaults& faults) {
  const cudaStream_t s = hashgrid::cuda_stream_of(executor);
  const auto count = uint32_t(list.count);
  sorted.count = count;
  if (count == 0) {
    if (auto room = make_room(executor.memory(), keys, sizeof(uint32_t), "brick keys"); !room) return tl::unexpected(room.error());
    return 0u;
  }
  // One block for all that is needed on the way: survey, keys and voxels twice, starts, and what CUB asks for.
  size_t sort_bytes = 0, select_bytes = 0;
  uint32_t* const none = nullptr;
  cub::DoubleBuffer<uint32_t> sizing_keys(none, none), sizing_voxels(none, none);
  cub::DeviceRadixSort::SortPairs(nullptr, sort_bytes, sizing_keys, sizing_voxels, count, 0, 32, s);
  cub::DeviceSelect::If(nullptr, select_bytes, thrust::counting_iterator<uint32_t>(0), none, none, count, BeginsBrick{none}, s);
  const size_t array = aligned(size_t(count) * sizeof(uint32_t)), temporary = aligned(std::max(sort_bytes, select_bytes));
  if (auto room = make_room(executor.memory(), sorted.memory, 512 + 5 * array + temporary, "memory to sort a list of voxels in"); !room)
    return tl::unexpected(room.error());
  auto* const base = static_cast<char*>(sorted.memory.data);
  auto* const survey = reinterpret_cast<Survey*>(base);
  auto* const number = reinterpret_cast<uint32_t*>(base + 256);
  const auto array_at = [&](size_t i) { return reinterpret_cast<uint32_t*>(base + 512 + i * array); };
  void* const space = base + 512 + 5 * array;

  const Survey nothing{0, 0, {~0u, ~0u, ~0u}, {0, 0, 0}};
  if (auto done = hashgrid::cuda_result(cudaMemcpyAsync(survey, &nothing, sizeof nothing, cudaMemcpyHostToDevice, s), "looking over a list of voxels"); !done)
    return tl::unexpected(done.error());
  survey_voxels<<<std::min(blocks_for(count, kThreads), 2048u), kThreads, 0, s>>>(list.positions, list.materials, count, survey);
  const auto seen = fetched(s, survey, "looking over a list of voxels");
  if (!seen) return tl::unexpected(seen.error());
  faults.outside = seen->outside;
  faults.without_material = seen->without_material;
  if (faults.outside || faults.without_material) return 0u;

  Box box{};
  for (int axis = 0; axis < 3; ++axis) {
    box.low[axis] = seen->low[axis];
    box.bits[axis] = uint32_t(std::bit_width(seen->high[axis] - seen->low[axis]));
  }
  cub::DoubleBuffer<uint32_t> both_keys(array_at(0), array_at(1)), both_voxels(array_at(2), array_at(3));
  key_voxels<<<blocks_for(count, kThreads), kThreads, 0, s>>>(list.positions, list.materials, count, box, both_keys.Current(), both_voxels.Current());
  size_t bytes = temporary;
  if (box.bits_in_all() > 0) {
    const auto sorting = cub::DeviceRadixSort::SortPairs(space, bytes, both_keys, both_voxels, count, 0, int(box.bits_in_all()), s);
    if (auto done = hashgrid::cuda_result(sorting, "sorting voxels"); !done)
      return tl::unexpected(done.error());
  }
  sorted.voxels = both_voxels.Current();
  sorted.starts = array_at(4);
  bytes = temporary;
  if (auto done = hashgrid::cuda_result(cub::DeviceSelect::If(space, bytes, thrust::counting_iterator<uint32_t>(0), array_at(4), number, count,
                                                              BeginsBrick{both_keys.Current()}, s), "finding where bricks begin");
      !done)
    return tl::unexpected(done.error());
  const auto bricks = fetched(s, number, "finding where bricks begin");
  if (!bricks) return tl::unexpected(bricks.error());
  if (auto room = make_room(executor.memory(), keys, size_t(*bricks) * sizeof(uint32_t), "brick keys"); !room) return tl::unexpected(room.error());
  name_bricks<<<blocks_for(*bricks, kThreads), kThreads, 0, s>>>(both_keys.Current(), sorted.starts, *bricks, box, static_cast<uint32_t*>(keys.data));
  if (auto done = hashgrid::cuda_result(cudaGetLastError(), "naming bricks"); !done) return tl::unexpected(done.error());
  return *bricks;
}

Result<void> count_up_on_cuda(hashgrid::Executor& executor, uint32_t* indices, uint32_t count) {
  const cudaStream_t s = hashgrid::cuda_stream_of(executor);
  count_up<<<blocks_for(count, kThreads), kThreads, 0, s>>>(indices, count);
  return hashgrid::cuda_result(cudaGetLastError(), "numbering bricks");
}

Result<void> fill_on_cuda(hashgrid::Executor& executor, const SortedVoxels& sorted, BrickMask* masks, BrickMaterials* materials, uint32_t bricks) {
  const cudaStream_t s = hashgrid::cuda_stream_of(executor);
  put_bricks_together<<<blocks_for(bricks, kWarps), kThreads, 0, s>>>(sorted.voxels, sorted.starts, bricks, sorted.count, reinterpret_cast<uint32_t*>(masks),
                                                                      reinterpret_cast<uint32_t*>(materials));
  if (auto done = hashgrid::cuda_result(cudaGetLastError(), "putting bricks together"); !done) return done;
  return hashgrid::cuda_result(cudaStreamSynchronize(s), "putting bricks together");
}

}  // namespace quarry::voxel_list_detail
