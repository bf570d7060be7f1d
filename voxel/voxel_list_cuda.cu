// voxel_list_cuda.cu - the two passes over a list of voxels on CUDA, in the executor's stream.
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_select.cuh>

#include "hashgrid/cuda_stream.cuh"
#include "hashgrid/view.hpp"
#include "voxel/voxel_list_stage.hpp"

namespace quarry::voxel_list_detail {
namespace {

constexpr uint32_t kThreads = 256, kKeyVoxels = 4096, kSeenKeys = 2048;

struct PassCounts {
  unsigned long long runs, outside, without_material;
  uint32_t distinct, repeated;
};

__device__ inline uint32_t key_of(const Int3& p) { return qry_pack_brick(p.x >> 3, p.y >> 3, p.z >> 3); }

// Brick keys of the list, most of them once: a block leaves out what it has seen lately.
__global__ void __launch_bounds__(kThreads) keys_of_voxels(const Int3* positions, const uint8_t* materials, uint64_t count, uint32_t* keys,
                                                           PassCounts* counts) {
  __shared__ uint32_t seen[kSeenKeys], found[kKeyVoxels], number, outside, without;
  __shared__ unsigned long long base;
  for (uint32_t i = threadIdx.x; i < kSeenKeys; i += kThreads) seen[i] = kQryReservedKey;
  if (threadIdx.x == 0) number = outside = without = 0;
  __syncthreads();
  const uint64_t first = uint64_t(blockIdx.x) * kKeyVoxels;
  for (uint32_t step = 0; step < kKeyVoxels; step += kThreads) {
    const uint64_t i = first + step + threadIdx.x;
    bool good = i < count;
    uint32_t key = kQryReservedKey;
    if (good) {
      const Int3 p = positions[i];
      const Int3 brick{p.x >> 3, p.y >> 3, p.z >> 3};
      good = brick.x >= -1024 && brick.x < 1024 && brick.y >= -512 && brick.y < 512 && brick.z >= -1024 && brick.z < 1024;
      if (good) key = key_of(p);
      good = good && key != kQryReservedKey;
      if (!good) atomicAdd(&outside, 1u);
      if (materials != nullptr && materials[i] == 0) atomicAdd(&without, 1u);
    }
    const uint32_t before = __shfl_up_sync(~0u, key, 1);
    if (good && ((threadIdx.x & 31u) == 0 || before != key)) {
      // Another key may have pushed it out: a key more in the list, and no harm.
      if (atomicExch(seen + (key * 0x9E3779B1u >> 21), key) != key) found[atomicAdd(&number, 1u)] = key;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    base = atomicAdd(&counts->runs, static_cast<unsigned long long>(number));
    if (outside) atomicAdd(&counts->outside, static_cast<unsigned long long>(outside));
    if (without) atomicAdd(&counts->without_material, static_cast<unsigned long long>(without));
  }
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < number; i += kThreads) keys[base + i] = found[i];
}

// One thread a voxel. Neighbours in the list that lie in one brick share the look-up, those in one word of the mask the atomic.
__global__ void __launch_bounds__(kThreads) fill_bricks(const Int3* positions, const uint8_t* materials, uint64_t count, hashgrid::GridView grid,
                                                        unsigned long long* masks, uint8_t* brick_materials, PassCounts* counts) {
  const uint64_t i = uint64_t(blockIdx.x) * kThreads + threadIdx.x;
  const uint32_t lane = threadIdx.x & 31u;
  const bool here = i < count;
  uint32_t key = kQryReservedKey, voxel = 0;
  if (here) {
    const Int3 p = positions[i];
    key = key_of(p);
    const uint32_t x = uint32_t(p.x), y = uint32_t(p.y), z = uint32_t(p.z);
    voxel = (x & 3u) | (y & 3u) << 2 | (z & 3u) << 4 | (x >> 2 & 1u) << 6 | (y >> 2 & 1u) << 7 | (z >> 2 & 1u) << 8;
  }
  const uint32_t before = __shfl_up_sync(~0u, key, 1);
  const bool begins = lane == 0 || before != key;
  uint32_t index = 0;
  if (begins && here) index = hashgrid::find(grid, key).value;
  const uint32_t starts = __ballot_sync(~0u, begins);
  index = __shfl_sync(~0u, index, 31 - __clz(int(starts & (~0u >> (31 - lane)))));

  // A running OR along neighbouring lanes of one word; the last of them writes.
  const uint64_t word = here ? uint64_t(index) * 8 + (voxel >> 6) : ~uint64_t(0);
  const uint64_t word_before = __shfl_up_sync(~0u, word, 1);
  const uint32_t heads = __ballot_sync(~0u, lane == 0 || word_before != word);
  const uint32_t head = uint32_t(31 - __clz(int(heads & (~0u >> (31 - lane)))));
  uint64_t bits = here ? uint64_t(1) << (voxel & 63u) : 0;
  bool repeated = false;
  for (uint32_t step = 1; step < 32; step *= 2) {
    const uint64_t other = __shfl_up_sync(~0u, bits, step);
    if (lane >= head + step) {
      repeated = repeated || (bits & other) != 0;
      bits |= other;
    }
  }
  if (here && (lane == 31 || (heads >> (lane + 1) & 1u))) {
    const uint64_t was = atomicOr(masks + word, static_cast<unsigned long long>(bits));
    repeated = repeated || (was & bits) != 0;
  }
  if (here) brick_materials[uint64_t(index) * kVoxelsPerBrick + voxel] = materials != nullptr ? materials[i] : uint8_t(1);
  if (__any_sync(~0u, repeated) && lane == 0) atomicExch(&counts->repeated, 1u);
}

// Where positions repeat: the greatest material of each.
__global__ void __launch_bounds__(kThreads) keep_greatest(const Int3* positions, const uint8_t* materials, uint64_t count, hashgrid::GridView grid,
                                                          uint8_t* brick_materials) {
  const uint64_t i = uint64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const Int3 p = positions[i];
  const uint32_t x = uint32_t(p.x), y = uint32_t(p.y), z = uint32_t(p.z);
  const uint32_t voxel = (x & 3u) | (y & 3u) << 2 | (z & 3u) << 4 | (x >> 2 & 1u) << 6 | (y >> 2 & 1u) << 7 | (z >> 2 & 1u) << 8;
  const uint64_t at = uint64_t(hashgrid::find(grid, key_of(p)).value) * kVoxelsPerBrick + voxel;
  auto* const word = reinterpret_cast<unsigned int*>(brick_materials) + at / 4;
  const uint32_t shift = uint32_t(at % 4) * 8, mine = materials[i];
  unsigned int was = *reinterpret_cast<volatile unsigned int*>(word);
  while ((was >> shift & 255u) < mine) {
    const unsigned int seen = atomicCAS(word, was, (was & ~(255u << shift)) | mine << shift);
    if (seen == was) break;
    was = seen;
  }
}

__global__ void __launch_bounds__(kThreads) count_up(uint32_t* out, uint32_t count) {
  const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i < count) out[i] = i;
}

uint32_t blocks_for(uint64_t count, uint64_t each) { return uint32_t((count + each - 1) / each); }

class Scratch {
 public:
  explicit Scratch(cudaStream_t stream) : stream_(stream) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    if (data_) cudaFreeAsync(data_, stream_);
  }
  Result<void> allocate(size_t size_bytes) {
    auto ok = hashgrid::cuda_result(cudaMallocAsync(&data_, std::max<size_t>(size_bytes, 1), stream_), "memory to sort a list of voxels in");
    if (!ok) cudaGetLastError();
    return ok;
  }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  cudaStream_t stream_;
  void* data_ = nullptr;
};

Result<void> read_counts(cudaStream_t s, const Scratch& from, PassCounts& counts, const char* doing) {
  if (auto ok = hashgrid::cuda_result(cudaGetLastError(), doing); !ok) return ok;
  if (auto ok = hashgrid::cuda_result(cudaMemcpyAsync(&counts, from.as<PassCounts>(), sizeof counts, cudaMemcpyDeviceToHost, s), doing); !ok) return ok;
  return hashgrid::cuda_result(cudaStreamSynchronize(s), doing);
}

}  // namespace

Result<uint32_t> list_keys_on_cuda(hashgrid::Executor& executor, const VoxelList& list, MemoryBlock& keys, ListFaults& faults) {
  const cudaStream_t s = hashgrid::cuda_stream_of(executor);
  Scratch counters(s), runs(s);
  for (auto done : {counters.allocate(sizeof(PassCounts)), runs.allocate(list.count * sizeof(uint32_t)),
                    hashgrid::cuda_result(cudaMemsetAsync(counters.as<char>(), 0, sizeof(PassCounts), s), "clearing counters")})
    if (!done) return tl::unexpected(done.error());
  if (list.count > 0)
    keys_of_voxels<<<blocks_for(list.count, kKeyVoxels), kThreads, 0, s>>>(list.positions, list.materials, list.count, runs.as<uint32_t>(),
                                                                          counters.as<PassCounts>());
  PassCounts counts{};
  if (auto done = read_counts(s, counters, counts, "finding the bricks of a list of voxels"); !done) return tl::unexpected(done.error());
  faults.outside = counts.outside;
  faults.without_material = counts.without_material;
  const auto number = uint32_t(counts.runs);
  if (auto room = make_room(executor.memory(), keys, std::max<size_t>(number, 1) * sizeof(uint32_t), "brick keys"); !room)
    return tl::unexpected(room.error());
  if (number == 0) return 0u;
  Scratch rising(s), sort_space(s), unique_space(s);
  if (auto done = rising.allocate(number * sizeof(uint32_t)); !done) return tl::unexpected(done.error());
  size_t bytes = 0;
  cub::DeviceRadixSort::SortKeys(nullptr, bytes, runs.as<uint32_t>(), rising.as<uint32_t>(), number, 0, 32, s);
  if (auto done = sort_space.allocate(bytes); !done) return tl::unexpected(done.error());
  if (auto done = hashgrid::cuda_result(
          cub::DeviceRadixSort::SortKeys(sort_space.as<void>(), bytes, runs.as<uint32_t>(), rising.as<uint32_t>(), number, 0, 32, s), "sorting keys");
      !done)
    return tl::unexpected(done.error());
  auto* const distinct = &counters.as<PassCounts>()->distinct;
  auto* const out = static_cast<uint32_t*>(keys.data);
  bytes = 0;
  cub::DeviceSelect::Unique(nullptr, bytes, rising.as<uint32_t>(), out, distinct, number, s);
  if (auto done = unique_space.allocate(bytes); !done) return tl::unexpected(done.error());
  if (auto done = hashgrid::cuda_result(cub::DeviceSelect::Unique(unique_space.as<void>(), bytes, rising.as<uint32_t>(), out, distinct, number, s),
                                        "joining keys");
      !done)
    return tl::unexpected(done.error());
  if (auto done = read_counts(s, counters, counts, "joining keys"); !done) return tl::unexpected(done.error());
  return counts.distinct;
}

Result<void> count_up_on_cuda(hashgrid::Executor& executor, uint32_t* indices, uint32_t count) {
  const cudaStream_t s = hashgrid::cuda_stream_of(executor);
  count_up<<<blocks_for(count, kThreads), kThreads, 0, s>>>(indices, count);
  return hashgrid::cuda_result(cudaGetLastError(), "numbering bricks");
}

Result<void> fill_on_cuda(hashgrid::Executor& executor, const VoxelList& list, const hashgrid::GridView& grid, BrickMask* masks,
                          BrickMaterials* materials, uint32_t bricks) {
  const cudaStream_t s = hashgrid::cuda_stream_of(executor);
  Scratch counters(s);
  if (auto done = counters.allocate(sizeof(PassCounts)); !done) return done;
  for (auto done : {hashgrid::cuda_result(cudaMemsetAsync(counters.as<char>(), 0, sizeof(PassCounts), s), "clearing counters"),
                    hashgrid::cuda_result(cudaMemsetAsync(masks, 0, size_t(bricks) * sizeof(BrickMask), s), "clearing masks"),
                    hashgrid::cuda_result(cudaMemsetAsync(materials, 0, size_t(bricks) * sizeof(BrickMaterials), s), "clearing materials")})
    if (!done) return done;
  auto* const bytes = reinterpret_cast<uint8_t*>(materials);
  fill_bricks<<<blocks_for(list.count, kThreads), kThreads, 0, s>>>(list.positions, list.materials, list.count, grid,
                                                                   reinterpret_cast<unsigned long long*>(masks), bytes, counters.as<PassCounts>());
  PassCounts counts{};
  if (auto done = read_counts(s, counters, counts, "filling bricks"); !done) return done;
  if (!counts.repeated || list.materials == nullptr) return {};
  keep_greatest<<<blocks_for(list.count, kThreads), kThreads, 0, s>>>(list.positions, list.materials, list.count, grid, bytes);
  if (auto done = hashgrid::cuda_result(cudaGetLastError(), "settling repeated voxels"); !done) return done;
  return hashgrid::cuda_result(cudaStreamSynchronize(s), "settling repeated voxels");
}

}  // namespace quarry::voxel_list_detail
