// voxel_bench.cu - bricks out of a list of voxels, and look-ups of single voxels in them, on CUDA and the three scenes of
// render_scenes.hpp: `qry_bench_voxels [--small]`. A line gives 10^9 voxels (or look-ups) a second, median of five, beside the machine's copy
// rate; what is built and found is checked against the world that the scene fills, and a wrong one makes the exit code 1.
#include <cub/device/device_radix_sort.cuh>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "bench/render_scenes.hpp"
#include "bench/timing.cuh"
#include "hashgrid/cuda_stream.cuh"
#include "voxel/voxel_list.hpp"

namespace {
using namespace quarry;
using bench::require;
using bench::seconds_of;

constexpr uint32_t kThreads = 256;

struct VoxelBricks {  // what a look-up needs
  hashgrid::GridView grid;
  const uint8_t* materials;
};

__device__ inline uint32_t voxel_in_brick(int32_t x, int32_t y, int32_t z) {
  return uint32_t((x & 3) | (y & 3) << 2 | (z & 3) << 4 | (x >> 2 & 1) << 6 | (y >> 2 & 1) << 7 | (z >> 2 & 1) << 8);
}

__device__ inline uint32_t material_at(const VoxelBricks& b, Int3 p) {
  const uint32_t index = hashgrid::find(b.grid, qry_pack_brick(p.x >> 3, p.y >> 3, p.z >> 3)).value;
  return index == kQryReservedValue ? 0u : b.materials[uint64_t(index) * 512 + voxel_in_brick(p.x, p.y, p.z)];
}

__global__ void __launch_bounds__(kThreads) look_up(VoxelBricks bricks, const Int3* positions, uint64_t count, unsigned long long* sum) {
  const uint64_t i = uint64_t(blockIdx.x) * kThreads + threadIdx.x;
  uint32_t found = i < count ? material_at(bricks, positions[i]) : 0;
  found = __reduce_add_sync(~0u, found);
  if ((threadIdx.x & 31u) == 0) atomicAdd(sum, static_cast<unsigned long long>(found));
}

// The voxel and its six neighbours. A neighbour in the same brick needs no second look at the table.
__global__ void __launch_bounds__(kThreads) look_up_stencil(VoxelBricks bricks, const Int3* positions, uint64_t count, unsigned long long* sum) {
  const uint64_t i = uint64_t(blockIdx.x) * kThreads + threadIdx.x;
  uint32_t found = 0;
  if (i < count) {
    const Int3 p = positions[i];
    const uint32_t index = hashgrid::find(bricks.grid, qry_pack_brick(p.x >> 3, p.y >> 3, p.z >> 3)).value;
    const uint8_t* const here = bricks.materials + uint64_t(index) * 512;
    found = here[voxel_in_brick(p.x, p.y, p.z)];
    found += (p.x & 7) < 7 ? here[voxel_in_brick(p.x + 1, p.y, p.z)] : material_at(bricks, {p.x + 1, p.y, p.z});
    found += (p.x & 7) > 0 ? here[voxel_in_brick(p.x - 1, p.y, p.z)] : material_at(bricks, {p.x - 1, p.y, p.z});
    found += (p.y & 7) < 7 ? here[voxel_in_brick(p.x, p.y + 1, p.z)] : material_at(bricks, {p.x, p.y + 1, p.z});
    found += (p.y & 7) > 0 ? here[voxel_in_brick(p.x, p.y - 1, p.z)] : material_at(bricks, {p.x, p.y - 1, p.z});
    found += (p.z & 7) < 7 ? here[voxel_in_brick(p.x, p.y, p.z + 1)] : material_at(bricks, {p.x, p.y, p.z + 1});
    found += (p.z & 7) > 0 ? here[voxel_in_brick(p.x, p.y, p.z - 1)] : material_at(bricks, {p.x, p.y, p.z - 1});
  }
  found = __reduce_add_sync(~0u, found);
  if ((threadIdx.x & 31u) == 0) atomicAdd(sum, static_cast<unsigned long long>(found));
}

// Position as one word in scan order (x fastest), with its material in the low byte; and a word that puts positions in random order.
__global__ void __launch_bounds__(kThreads) pack_voxels(const Int3* positions, const uint8_t* materials, uint64_t count, bool random, uint64_t* keys,
                                                        uint64_t* words) {
  const uint64_t i = uint64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const Int3 p = positions[i];
  const uint64_t word = uint64_t(uint32_t(p.z + 8192)) << 36 | uint64_t(uint32_t(p.y + 8192)) << 22 | uint64_t(uint32_t(p.x + 8192)) << 8 | materials[i];
  uint64_t mixed = word * 0x9E3779B97F4A7C15ull;
  mixed ^= mixed >> 29;
  mixed *= 0xBF58476D1CE4E5B9ull;
  keys[i] = random ? mixed : word;
  words[i] = word;
}
__global__ void __launch_bounds__(kThreads) unpack_voxels(const uint64_t* words, uint64_t count, Int3* positions, uint8_t* materials) {
  const uint64_t i = uint64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const uint64_t word = words[i];
  positions[i] = {int32_t(word >> 8 & 0x3FFF) - 8192, int32_t(word >> 22 & 0x3FFF) - 8192, int32_t(word >> 36 & 0x3FFF) - 8192};
  materials[i] = uint8_t(word);
}

uint32_t blocks_for(uint64_t count) { return uint32_t((count + kThreads - 1) / kThreads); }

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
  uint64_t *const keys = device_array<uint64_t>(count), *const words = device_array<uint64_t>(count), *const keys_2 = device_array<uint64_t>(count),
           *const words_2 = device_array<uint64_t>(count);
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
      pack_voxels<<<blocks_for(count), kThreads, 0, s>>>(at, of, count, order == 2, keys, words);
      require(cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, keys_2, words, words_2, count, 0, 64, s), "sort");
      unpack_voxels<<<blocks_for(count), kThreads, 0, s>>>(words_2, count, at, of);
      require(cudaStreamSynchronize(s), "put in order");
    }
    const double build = seconds_of([&] {
      if (const auto built = builder.build({at, of, count}); !built) {
        std::printf("  %s\n", built.error().message.c_str());
        ++wrong;
      }
    }, {}, s);
    const BrickArrays arrays = builder.bricks();
    bool same = arrays.brick_count == world->brick_count();
    std::vector<uint32_t> brick_keys(arrays.brick_count);
    std::vector<BrickMask> masks(arrays.brick_count);
    std::vector<BrickMaterials> stored(arrays.brick_count);
    require(cudaMemcpy(brick_keys.data(), arrays.keys, brick_keys.size() * sizeof(uint32_t), cudaMemcpyDeviceToHost), "download");
    require(cudaMemcpy(masks.data(), arrays.masks, masks.size() * sizeof(BrickMask), cudaMemcpyDeviceToHost), "download");
    require(cudaMemcpy(stored.data(), arrays.materials, stored.size() * sizeof(BrickMaterials), cudaMemcpyDeviceToHost), "download");
    size_t next = 0;
    world->for_each_brick([&](Int3 where, const Brick& brick) {
      same = same && next < masks.size() && brick_keys[next] == brick_key(where) && masks[next] == brick.mask && stored[next] == brick.materials;
      ++next;
    });
    if (!same) ++wrong;
    const VoxelBricks bricks{builder.grid().view(), reinterpret_cast<const uint8_t*>(arrays.materials)};
    const auto timed = [&](auto kernel, unsigned long long& result) {
      const double seconds = seconds_of([&] { kernel<<<blocks_for(count), kThreads, 0, s>>>(bricks, at, count, sum); },
                                        [&] { cudaMemsetAsync(sum, 0, sizeof *sum, s); }, s);
      require(cudaMemcpy(&result, sum, sizeof result, cudaMemcpyDeviceToHost), "download");
      return seconds;
    };
    unsigned long long single_sum = 0, stencil_sum = 0;
    const double single = timed(look_up, single_sum), stencil = timed(look_up_stencil, stencil_sum);
    if (single_sum != material_sum || stencil_sum <= single_sum) ++wrong;
    std::printf("  %-14s build %7.3f ms %6.2f G/s %s | look-up %6.1f G/s | 7-point stencil %6.1f G/s %s\n", orders[order], build * 1e3,
                double(count) / build * 1e-9, same ? "right" : "WRONG", double(count) / single * 1e-9, 7 * double(count) / stencil * 1e-9,
                single_sum == material_sum ? "right" : "WRONG");
    std::fflush(stdout);
  }
  for (void* data : {static_cast<void*>(at), static_cast<void*>(of), static_cast<void*>(keys), static_cast<void*>(words), static_cast<void*>(keys_2),
                     static_cast<void*>(words_2), static_cast<void*>(sum), static_cast<void*>(scratch)})
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
