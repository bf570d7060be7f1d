// SPDX-License-Identifier: Apache-2.0
// voxel_list_kernels.cuh - the kernels that make bricks from a list of voxels. voxel_list_cuda.cu launches them.
#pragma once

#include "voxel/bricks/voxel_list_stage.hpp"

namespace quarry::voxel_list_detail::kernels {

constexpr uint32_t kThreads = 256, kWarps = kThreads / 32;
constexpr uint32_t kSurveyBlocks = 2048;  // at most, for survey_voxels, which strides over the rest

// Results of the first pass. Brick coordinates are biased as in keys, so that they are unsigned.
struct Survey {
  unsigned long long outside, without_material;
  uint32_t low[3], high[3];
};

// The box of the list's bricks. A brick's key in the box rises as its key in the grid does.
struct Box {
  uint32_t low[3], bits[3];
  uint32_t bits_in_all() const { return bits[0] + bits[1] + bits[2]; }
};

__device__ inline uint32_t grid_key(const Box& box, uint32_t key) {
  const uint32_t x = key & ((1u << box.bits[0]) - 1u), y = key >> box.bits[0] & ((1u << box.bits[1]) - 1u),
                 z = key >> (box.bits[0] + box.bits[1]);
  return (x + box.low[0]) | (y + box.low[1]) << 11 | (z + box.low[2]) << 21;
}

__global__ void __launch_bounds__(kThreads)
    survey_voxels(const Int3* positions, const uint8_t* materials, uint64_t count, Survey* survey) {
  uint32_t low[3] = {~0u, ~0u, ~0u}, high[3] = {0, 0, 0};
  uint32_t outside = 0, without = 0;
  for (uint64_t i = uint64_t(blockIdx.x) * kThreads + threadIdx.x; i < count; i += uint64_t(gridDim.x) * kThreads) {
    const Int3 p = positions[i];
    const uint32_t at[3] = {uint32_t(p.x >> 3) + kQryBiasXZ, uint32_t(p.y >> 3) + kQryBiasY,
                            uint32_t(p.z >> 3) + kQryBiasXZ};
    if (materials != nullptr && materials[i] == 0) ++without;
    if (at[0] >= 2 * kQryBiasXZ || at[1] >= 2 * kQryBiasY || at[2] >= 2 * kQryBiasXZ ||
        (at[0] | at[1] << 11 | at[2] << 21) == kQryReservedKey) {
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

// The key of each voxel's brick in the box, and the voxel's number in the brick with its material.
__global__ void __launch_bounds__(kThreads) key_voxels(const Int3* positions, const uint8_t* materials, uint64_t count,
                                                       Box box, uint32_t* keys, uint32_t* voxels) {
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

__global__ void __launch_bounds__(kThreads)
    name_bricks(const uint32_t* sorted, const uint32_t* starts, uint32_t bricks, Box box, uint32_t* keys) {
  const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i < bricks) keys[i] = grid_key(box, sorted[starts[i]]);
}

// One warp a brick. Of a position that occurs more than once the greatest material stays.
__global__ void __launch_bounds__(kThreads)
    put_bricks_together(const uint32_t* voxels, const uint32_t* starts, uint32_t bricks, uint32_t count,
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
    const uint32_t bits =
        uint32_t(m.x != 0) | uint32_t(m.y != 0) << 1 | uint32_t(m.z != 0) << 2 | uint32_t(m.w != 0) << 3;
    const uint32_t half_word = __reduce_or_sync(0xFFu << (lane & 24u), bits << (4 * (lane & 7u)));
    if ((lane & 7u) == 0) masks[size_t(brick) * (kVoxelsPerBrick / 32) + k * 4 + lane / 8] = half_word;
  }
}

__global__ void __launch_bounds__(kThreads) count_up(uint32_t* out, uint32_t count) {
  const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i < count) out[i] = i;
}

}  // namespace quarry::voxel_list_detail::kernels
