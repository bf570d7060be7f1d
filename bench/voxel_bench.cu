// SPDX-License-Identifier: Apache-2.0
// voxel_bench.cu - bricks from a list of voxels, and look-ups of single voxels in them, on CUDA with the three scenes
// of render/scenes.hpp: `qry_bench_voxels [--small]`. Each line gives 10^9 voxels (or look-ups) a second, median of
// five, and the machine's copy rate. Results are checked against the world that the scene fills; a wrong one makes the
// exit code 1.
#include <cub/device/device_radix_sort.cuh>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "bench/hashgrid/timing.cuh"
#include "bench/render/scenes.hpp"
#include "hashgrid/cuda_stream.cuh"
#include "hashgrid/pairs/cuda/find_warp.cuh"
#include "voxel/bricks/voxel_list.hpp"
#include "voxel/neighbours/bulk.hpp"

namespace {
using namespace quarry;
using bench::kThreads;
using bench::launch_each;
using bench::require;
using bench::seconds_of;

struct VoxelBricks {  // the data of a look-up
  hashgrid::GridView grid;
  const uint8_t* materials;
  const uint32_t* beside;
  uint32_t count;
};

// All lanes of a warp call it together; a lane with `ask` false has no look-up.
__device__ inline uint32_t brick_in_warp(const VoxelBricks& b, Int3 p, bool ask) {
  return hashgrid::kernels::find_by_warp(b.grid, ask ? qry_pack_brick(p.x >> 3, p.y >> 3, p.z >> 3) : kQryReservedKey)
      .value;
}
__device__ inline uint32_t material_of(const VoxelBricks& b, uint32_t brick, Int3 p) {
  return brick == kQryReservedValue ? 0u : __ldg(b.materials + uint64_t(brick) * 512 + voxel_index(p));
}

// One addition a block. With one a warp, a single address would limit a pass over neighbouring voxels.
__device__ inline void add_up(uint32_t found, unsigned long long* sum) {
  __shared__ uint32_t of_warp[kThreads / 32];
  found = __reduce_add_sync(~0u, found);
  if ((threadIdx.x & 31u) == 0) of_warp[threadIdx.x / 32] = found;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  found = __reduce_add_sync(~0u, threadIdx.x < kThreads / 32 ? of_warp[threadIdx.x] : 0u);
  if (threadIdx.x == 0) atomicAdd(sum, static_cast<unsigned long long>(found));
}

constexpr uint32_t kEach = 4;  // voxels a thread, so that their reads are in flight together

__global__ void __launch_bounds__(kThreads)
    look_up(VoxelBricks bricks, const Int3* positions, uint64_t count, unsigned long long* sum) {
  const uint64_t first = uint64_t(blockIdx.x) * kThreads * kEach + threadIdx.x;
  Int3 p[kEach];
  uint32_t brick[kEach], found = 0;
#pragma unroll
  for (uint32_t k = 0; k < kEach; ++k) {
    const uint64_t i = first + k * kThreads;
    p[k] = i < count ? positions[i] : Int3{0, 0, 0};
  }
#pragma unroll
  for (uint32_t k = 0; k < kEach; ++k) brick[k] = brick_in_warp(bricks, p[k], first + k * kThreads < count);
#pragma unroll
  for (uint32_t k = 0; k < kEach; ++k) found += material_of(bricks, brick[k], p[k]);
  add_up(found, sum);
}

// The voxel and its six neighbours. A neighbour in the same brick needs no second look-up. The bricks of the others are
// found once a brick, by the grid's query for six neighbours, and read from `beside`: six arrays of one index a brick.
__global__ void __launch_bounds__(kThreads)
    look_up_stencil(VoxelBricks bricks, const Int3* positions, uint64_t count, unsigned long long* sum) {
  const uint64_t i = uint64_t(blockIdx.x) * kThreads + threadIdx.x;
  const Int3 p = i < count ? positions[i] : Int3{0, 0, 0};
  const uint32_t own = brick_in_warp(bricks, p, i < count);
  uint32_t found = 0;
  if (own != kQryReservedValue) {
    found = material_of(bricks, own, p);
#pragma unroll
    for (uint32_t side = 0; side < 6; ++side) {
      const NeighbourStep step = step_of<Neighbourhood::faces>(side);
      const Int3 q{p.x + step.x, p.y + step.y, p.z + step.z};
      const bool leaves = uint32_t((p.x ^ q.x) | (p.y ^ q.y) | (p.z ^ q.z)) > 7u;
      found += material_of(bricks, leaves ? __ldg(bricks.beside + uint64_t(side) * bricks.count + own) : own, q);
    }
  }
  add_up(found, sum);
}

// The sum that look_up_stencil must reach: seven independent look-ups a voxel. Not timed.
__global__ void __launch_bounds__(kThreads)
    stencil_reference(VoxelBricks bricks, const Int3* positions, uint64_t count, unsigned long long* sum) {
  const uint64_t i = uint64_t(blockIdx.x) * kThreads + threadIdx.x;
  uint32_t found = 0;
  for (int n = -1; n < 6 && i < count; ++n) {
    const int step = n % 2 == 0 ? -1 : 1, axis = n < 0 ? 3 : n / 2;
    const Int3 p{positions[i].x + (axis == 0 ? step : 0), positions[i].y + (axis == 1 ? step : 0),
                 positions[i].z + (axis == 2 ? step : 0)};
    found += material_of(bricks, hashgrid::find(bricks.grid, qry_pack_brick(p.x >> 3, p.y >> 3, p.z >> 3)).value, p);
  }
  add_up(found, sum);
}

// A position as one word in scan order (x fastest), with its material in the low byte; and a word that sorts positions
// into random order.
__global__ void __launch_bounds__(kThreads) pack_voxels(const Int3* positions, const uint8_t* materials, uint64_t count,
                                                        bool random, uint64_t* keys, uint64_t* words) {
  const uint64_t i = uint64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const Int3 p = positions[i];
  const uint64_t word = uint64_t(uint32_t(p.z + 8192)) << 36 | uint64_t(uint32_t(p.y + 8192)) << 22 |
                        uint64_t(uint32_t(p.x + 8192)) << 8 | materials[i];
  uint64_t mixed = word * 0x9E3779B97F4A7C15ull;
  mixed ^= mixed >> 29;
  mixed *= 0xBF58476D1CE4E5B9ull;
  keys[i] = random ? mixed : word;
  words[i] = word;
}
__global__ void __launch_bounds__(kThreads)
    unpack_voxels(const uint64_t* words, uint64_t count, Int3* positions, uint8_t* materials) {
  const uint64_t i = uint64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const uint64_t word = words[i];
  positions[i] = {int32_t(word >> 8 & 0x3FFF) - 8192, int32_t(word >> 22 & 0x3FFF) - 8192,
                  int32_t(word >> 36 & 0x3FFF) - 8192};
  materials[i] = uint8_t(word);
}

template <class T>
T* device_array(size_t count) {
  void* data = nullptr;
  require(cudaMalloc(&data, count * sizeof(T)), "allocate");
  return static_cast<T*>(data);
}

int wrong = 0;

void measure(hashgrid::Executor& executor, cudaStream_t s, int scene, bool small) {
  const bench::RenderScene& what = bench::render_scene(scene);
  auto world = World::create();
  if (!world || !bench::fill_scene(*world, scene, small ? what.small_size : what.full_size, [] { return false; })) {
    std::printf("%s: cannot be filled\n", what.name);
    ++wrong;
    return;
  }
  std::vector<Int3> positions;
  std::vector<uint8_t> materials;
  uint64_t material_sum = 0;
  world->for_each_brick([&](Int3 at, const Brick& brick) {
    for (uint32_t i = 0; i < kVoxelsPerBrick; ++i)
      if (const uint8_t m = brick.get(i)) {
        positions.push_back(Int3{at.x * 8, at.y * 8, at.z * 8} + voxel_from_index(i));
        materials.push_back(m);
        material_sum += m;
      }
  });
  const uint64_t count = positions.size();
  std::printf("%s: %llu voxels, %u bricks\n", what.name, static_cast<unsigned long long>(count), world->brick_count());
  Int3* const at = device_array<Int3>(count);
  uint8_t* const of = device_array<uint8_t>(count);
  uint64_t *const keys = device_array<uint64_t>(count), *const words = device_array<uint64_t>(count),
                  *const keys_2 = device_array<uint64_t>(count), *const words_2 = device_array<uint64_t>(count);
  auto* const sum = device_array<unsigned long long>(1);
  require(cudaMemcpy(at, positions.data(), count * sizeof(Int3), cudaMemcpyHostToDevice), "upload");
  require(cudaMemcpy(of, materials.data(), count, cudaMemcpyHostToDevice), "upload");
  size_t bytes = 0;
  require(cub::DeviceRadixSort::SortPairs(nullptr, bytes, keys, keys_2, words, words_2, count, 0, 64, s), "sort");
  char* const scratch = device_array<char>(bytes);
  VoxelListBuilder builder(executor);
  const char* const orders[] = {"brick by brick", "scan order", "random order"};
  for (int order = 0; order < 3; ++order) {
    if (order > 0) {
      launch_each("pack voxels", count, s, pack_voxels, at, of, count, order == 2, keys, words);
      require(cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, keys_2, words, words_2, count, 0, 64, s), "sort");
      launch_each("unpack voxels", count, s, unpack_voxels, words_2, count, at, of);
      require(cudaStreamSynchronize(s), "put in order");
    }
    const double build = seconds_of(
        [&] {
          if (const auto built = builder.build({at, of, count}); !built) {
            std::printf("  %s\n", built.error().message.c_str());
            ++wrong;
          }
        },
        {}, s);
    const BrickArrays arrays = builder.bricks();
    bool same = arrays.brick_count == world->brick_count();
    std::vector<uint32_t> brick_keys(arrays.brick_count);
    std::vector<BrickMask> masks(arrays.brick_count);
    std::vector<BrickMaterials> stored(arrays.brick_count);
    require(cudaMemcpy(brick_keys.data(), arrays.keys, brick_keys.size() * sizeof(uint32_t), cudaMemcpyDeviceToHost),
            "download");
    require(cudaMemcpy(masks.data(), arrays.masks, masks.size() * sizeof(BrickMask), cudaMemcpyDeviceToHost),
            "download");
    require(cudaMemcpy(stored.data(), arrays.materials, stored.size() * sizeof(BrickMaterials), cudaMemcpyDeviceToHost),
            "download");
    size_t next = 0;
    world->for_each_brick([&](Int3 where, const Brick& brick) {
      same = same && next < masks.size() && brick_keys[next] == brick_key(where) && masks[next] == brick.mask &&
             stored[next] == brick.materials;
      ++next;
    });
    if (!same) ++wrong;
    auto* const beside = device_array<uint32_t>(size_t(6) * arrays.brick_count);
    const VoxelBricks bricks{builder.grid().view(), reinterpret_cast<const uint8_t*>(arrays.materials), beside,
                             arrays.brick_count};
    const auto ask_beside = [&] {
      if (!find_neighbours(executor, bricks.grid, arrays.keys, arrays.brick_count, Neighbourhood::faces, beside))
        ++wrong;
    };
    const auto timed = [&](auto kernel, uint32_t each, const auto& first, unsigned long long& result) {
      const double seconds = seconds_of(
          [&] {
            first();
            launch_each("look up", (count + each - 1) / each, s, kernel, bricks, at, count, sum);
          },
          [&] { cudaMemsetAsync(sum, 0, sizeof *sum, s); }, s);
      require(cudaMemcpy(&result, sum, sizeof result, cudaMemcpyDeviceToHost), "download");
      return seconds;
    };
    unsigned long long single_sum = 0, stencil_sum = 0;
    const double single = timed(
                     look_up, kEach, [] {}, single_sum),
                 stencil = timed(look_up_stencil, 1, ask_beside, stencil_sum);
    unsigned long long stencil_wanted = 0;
    require(cudaMemsetAsync(sum, 0, sizeof *sum, s), "clear the sum");
    launch_each("add up a stencil", count, s, stencil_reference, bricks, at, count, sum);
    require(cudaStreamSynchronize(s), "add up");
    require(cudaMemcpy(&stencil_wanted, sum, sizeof stencil_wanted, cudaMemcpyDeviceToHost), "download");
    const bool found_right = single_sum == material_sum && stencil_sum == stencil_wanted && stencil_sum > single_sum;
    if (!found_right) ++wrong;
    cudaFree(beside);
    std::printf("  %-14s build %7.3f ms %6.2f G/s %s | look-up %6.1f G/s | 7-point stencil %6.1f G/s %s\n",
                orders[order], build * 1e3, double(count) / build * 1e-9, same ? "right" : "WRONG",
                double(count) / single * 1e-9, 7 * double(count) / stencil * 1e-9, found_right ? "right" : "WRONG");
    std::fflush(stdout);
  }
  for (void* data :
       {static_cast<void*>(at), static_cast<void*>(of), static_cast<void*>(keys), static_cast<void*>(words),
        static_cast<void*>(keys_2), static_cast<void*>(words_2), static_cast<void*>(sum), static_cast<void*>(scratch)})
    cudaFree(data);
}

}  // namespace

int main(int count, char** words) {
  const bool small = count > 1 && std::strcmp(words[1], "--small") == 0;
  auto executor = hashgrid::make_cuda_executor();
  if (!executor) {
    std::fprintf(stderr, "%s\n", executor.error().message.c_str());
    return 1;
  }
  const cudaStream_t s = hashgrid::cuda_stream_of(**executor);
  constexpr size_t kCopy = size_t(1) << 30;
  char *const from = device_array<char>(kCopy), *const to = device_array<char>(kCopy);
  const double copy = seconds_of([&] { cudaMemcpyAsync(to, from, kCopy, cudaMemcpyDeviceToDevice, s); }, {}, s);
  std::printf("copy: %.0f GB/s read + written\n", 2 * double(kCopy) / copy * 1e-9);
  cudaFree(from);
  cudaFree(to);
  for (int scene = 0; scene < bench::kSceneCount; ++scene) measure(**executor, s, scene, small);
  return wrong ? 1 : 0;
}
