// SPDX-License-Identifier: Apache-2.0
// voxel_list_cuda.cu - bricks from a list of voxels on CUDA, in the executor's stream. The voxels are sorted by brick;
// one warp assembles each brick in shared memory and writes it as a whole. Every byte of a brick is written once, in
// whole sectors, for any order of the list.
//
// Sorting: onesweep radix sort with decoupled look-back (A. Adinets and D. Merrill, 2022), by CUB, over the bits that
// the list's own box needs.
#include <thrust/iterator/counting_iterator.h>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>

#include <bit>

#include "base/cuda/launch.cuh"
#include "hashgrid/cuda_stream.cuh"
#include "voxel/bricks/voxel_list_kernels.cuh"
#include "voxel/bricks/voxel_list_stage.hpp"

namespace quarry::voxel_list_detail {
namespace {

using gpu::check;
using gpu::DeviceScope;
using gpu::launch;
using namespace kernels;

uint32_t blocks_for(uint64_t count, uint64_t each) { return uint32_t((count + each - 1) / each); }

template <class T>
Result<T> fetched(cudaStream_t s, const T* from, const char* doing) {
  T to{};
  QRY_TRY(check(cudaMemcpyAsync(&to, from, sizeof to, cudaMemcpyDeviceToHost, s), doing));
  QRY_TRY(check(cudaStreamSynchronize(s), doing));
  return to;
}

constexpr size_t aligned(size_t size_bytes) { return (size_bytes + 255) / 256 * 256; }

}  // namespace

Result<uint32_t> list_keys_on_cuda(hashgrid::Executor& executor, const VoxelList& list, MemoryBlock& keys,
                                   SortedVoxels& sorted, ListFaults& faults) {
  const DeviceScope scope(hashgrid::cuda_device_of(executor));
  const cudaStream_t s = hashgrid::cuda_stream_of(executor);
  const auto count = uint32_t(list.count);
  sorted.count = count;
  if (count == 0) {
    QRY_TRY(make_room(executor.memory(), keys, sizeof(uint32_t), "brick keys"));
    return 0u;
  }
  // One block for all intermediate data: survey, keys and voxels twice, starts, and CUB's temporary memory.
  size_t sort_bytes = 0, select_bytes = 0;
  uint32_t* const none = nullptr;
  cub::DoubleBuffer<uint32_t> sizing_keys(none, none), sizing_voxels(none, none);
  cub::DeviceRadixSort::SortPairs(nullptr, sort_bytes, sizing_keys, sizing_voxels, count, 0, 32, s);
  cub::DeviceSelect::If(nullptr, select_bytes, thrust::counting_iterator<uint32_t>(0), none, none, count,
                        BeginsBrick{none}, s);
  const size_t array = aligned(size_t(count) * sizeof(uint32_t)),
               temporary = aligned(std::max(sort_bytes, select_bytes));
  QRY_TRY(
      make_room(executor.memory(), sorted.memory, 512 + 5 * array + temporary, "memory to sort a list of voxels in"));
  auto* const base = static_cast<char*>(sorted.memory.data);
  auto* const survey = reinterpret_cast<Survey*>(base);
  auto* const number = reinterpret_cast<uint32_t*>(base + 256);
  const auto array_at = [&](size_t i) { return reinterpret_cast<uint32_t*>(base + 512 + i * array); };
  void* const space = base + 512 + 5 * array;

  const Survey nothing{0, 0, {~0u, ~0u, ~0u}, {0, 0, 0}};
  constexpr const char* kLooking = "looking over a list of voxels";
  QRY_TRY(check(cudaMemcpyAsync(survey, &nothing, sizeof nothing, cudaMemcpyHostToDevice, s), kLooking));
  QRY_TRY(launch(kLooking, {std::min(blocks_for(count, kThreads), kSurveyBlocks), kThreads}, s, survey_voxels,
                 list.positions, list.materials, count, survey));
  QRY_TRY_ASSIGN(const Survey seen, fetched(s, survey, kLooking));
  faults.outside = seen.outside;
  faults.without_material = seen.without_material;
  if (faults.outside || faults.without_material) return 0u;

  Box box{};
  for (int axis = 0; axis < 3; ++axis) {
    box.low[axis] = seen.low[axis];
    box.bits[axis] = uint32_t(std::bit_width(seen.high[axis] - seen.low[axis]));
  }
  cub::DoubleBuffer<uint32_t> both_keys(array_at(0), array_at(1)), both_voxels(array_at(2), array_at(3));
  QRY_TRY(launch("sorting voxels", {blocks_for(count, kThreads), kThreads}, s, key_voxels, list.positions,
                 list.materials, count, box, both_keys.Current(), both_voxels.Current()));
  size_t bytes = temporary;
  if (box.bits_in_all() > 0) {
    QRY_TRY(check(
        cub::DeviceRadixSort::SortPairs(space, bytes, both_keys, both_voxels, count, 0, int(box.bits_in_all()), s),
        "sorting voxels"));
  }
  sorted.voxels = both_voxels.Current();
  sorted.starts = array_at(4);
  bytes = temporary;
  constexpr const char* kFinding = "finding where bricks begin";
  QRY_TRY(check(cub::DeviceSelect::If(space, bytes, thrust::counting_iterator<uint32_t>(0), array_at(4), number, count,
                                      BeginsBrick{both_keys.Current()}, s),
                kFinding));
  QRY_TRY_ASSIGN(const uint32_t bricks, fetched(s, number, kFinding));
  QRY_TRY(make_room(executor.memory(), keys, size_t(bricks) * sizeof(uint32_t), "brick keys"));
  QRY_TRY(launch("naming bricks", {blocks_for(bricks, kThreads), kThreads}, s, name_bricks, both_keys.Current(),
                 sorted.starts, bricks, box, static_cast<uint32_t*>(keys.data)));
  return bricks;
}

Result<void> count_up_on_cuda(hashgrid::Executor& executor, uint32_t* indices, uint32_t count) {
  const DeviceScope scope(hashgrid::cuda_device_of(executor));
  const cudaStream_t s = hashgrid::cuda_stream_of(executor);
  return launch("numbering bricks", {blocks_for(count, kThreads), kThreads}, s, count_up, indices, count);
}

Result<void> fill_on_cuda(hashgrid::Executor& executor, const SortedVoxels& sorted, BrickMask* masks,
                          BrickMaterials* materials, uint32_t bricks) {
  const DeviceScope scope(hashgrid::cuda_device_of(executor));
  const cudaStream_t s = hashgrid::cuda_stream_of(executor);
  QRY_TRY(launch("putting bricks together", {blocks_for(bricks, kWarps), kThreads}, s, put_bricks_together,
                 sorted.voxels, sorted.starts, bricks, sorted.count, reinterpret_cast<uint32_t*>(masks),
                 reinterpret_cast<uint32_t*>(materials)));
  return check(cudaStreamSynchronize(s), "putting bricks together");
}

}  // namespace quarry::voxel_list_detail
