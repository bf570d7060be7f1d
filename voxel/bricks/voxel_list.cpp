// SPDX-License-Identifier: Apache-2.0
// voxel_list.cpp - the two passes on host threads, and the choice of the executor; the CUDA passes are in
// voxel_list_cuda.cu.
#include "voxel/bricks/voxel_list.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "base/parallel.hpp"
#include "voxel/bricks/voxel_list_stage.hpp"

namespace quarry {
namespace voxel_list_detail {
namespace {
constexpr size_t kPiece = size_t(1) << 16;  // voxels
}

Result<void> make_room(MemorySource& memory, MemoryBlock& block, size_t size_bytes, const char* label) {
  if (block.size_bytes >= size_bytes) return {};
  if (block.data) memory.release(block);
  block = {};
  QRY_TRY_ASSIGN(const auto got, memory.allocate(size_bytes + size_bytes / 8, label));
  block = got;
  return {};
}

Result<uint32_t> list_keys_on_host(hashgrid::Executor& executor, const VoxelList& list, MemoryBlock& keys,
                                   ListFaults& faults) {
  std::vector<std::vector<uint32_t>> found((list.count + kPiece - 1) / kPiece);
  std::atomic<uint64_t> outside{0}, without{0};
  std::atomic<bool> no_memory{false};
  parallel_for(list.count, kPiece, [&](size_t begin, size_t end) {
    try {
      std::vector<uint32_t>& out = found[begin / kPiece];
      uint64_t out_of_world = 0, zero = 0;
      for (size_t i = begin; i < end; ++i) {
        const Int3 brick = brick_of(list.positions[i]);
        if (list.materials && list.materials[i] == 0) ++zero;
        if (!brick_in_world(brick)) {
          ++out_of_world;
          continue;
        }
        const uint32_t key = brick_key(brick);
        if (out.empty() || out.back() != key) out.push_back(key);
      }
      std::sort(out.begin(), out.end());
      out.erase(std::unique(out.begin(), out.end()), out.end());
      outside += out_of_world;
      without += zero;
    } catch (const std::bad_alloc&) {
      no_memory = true;
    }
  });
  if (no_memory) return fail(ErrorCode::out_of_memory, "not enough memory for the bricks of a list of voxels");
  faults.outside = outside;
  faults.without_material = without;
  try {
    std::vector<uint32_t> all;
    for (std::vector<uint32_t>& part : found) {
      all.insert(all.end(), part.begin(), part.end());
      std::vector<uint32_t>().swap(part);
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    QRY_TRY(make_room(executor.memory(), keys, std::max<size_t>(all.size(), 1) * sizeof(uint32_t), "brick keys"));
    std::copy(all.begin(), all.end(), static_cast<uint32_t*>(keys.data));
    return uint32_t(all.size());
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "not enough memory for the bricks of a list of voxels");
  }
}

Result<void> fill_on_host(const VoxelList& list, const hashgrid::GridView& grid, BrickMask* masks,
                          BrickMaterials* materials, uint32_t bricks) {
  parallel_for(bricks, 1024, [&](size_t begin, size_t end) {
    std::memset(static_cast<void*>(masks + begin), 0, (end - begin) * sizeof(BrickMask));
    std::memset(static_cast<void*>(materials + begin), 0, (end - begin) * sizeof(BrickMaterials));
  });
  parallel_for(list.count, kPiece, [&](size_t begin, size_t end) {
    uint32_t last = kQryReservedKey, index = 0;
    for (size_t i = begin; i < end; ++i) {
      const Int3 at = list.positions[i];
      if (const uint32_t key = brick_key(brick_of(at)); key != last) {
        index = hashgrid::find(grid, key).value;
        last = key;
      }
      const uint32_t voxel = voxel_index(at);
      // Relaxed: pieces share words, but their order does not matter. parallel_for joins before anything is read.
      std::atomic_ref(masks[index][voxel >> 6]).fetch_or(uint64_t(1) << (voxel & 63u), std::memory_order_relaxed);
      const std::atomic_ref<uint8_t> material(materials[index][voxel]);
      const uint8_t mine = list.materials ? list.materials[i] : uint8_t(1);
      for (uint8_t was = material.load(std::memory_order_relaxed); was < mine;)
        if (material.compare_exchange_weak(was, mine, std::memory_order_relaxed)) break;
    }
  });
  return {};
}

}  // namespace voxel_list_detail

using namespace voxel_list_detail;

struct VoxelListBuilder::State {
  hashgrid::Executor& executor;
  bool cuda;
  std::optional<hashgrid::Grid> grid;
  MemoryBlock keys, indices, masks, materials;
  SortedVoxels sorted;
  uint32_t bricks = 0, counted = 0;  // `counted`: indices filled so far

  ~State() {
    for (const MemoryBlock& block : {keys, indices, masks, materials, sorted.memory})
      if (block.data) executor.memory().release(block);
  }

  Result<void> number(uint32_t count) {
    if (counted >= count) return {};
    counted = 0;
    QRY_TRY(make_room(executor.memory(), indices, size_t(count) * sizeof(uint32_t), "brick indices"));
    const auto all = uint32_t(indices.size_bytes / sizeof(uint32_t));
    auto* const first = static_cast<uint32_t*>(indices.data);
    if (!cuda) std::iota(first, first + all, 0u);
    else QRY_TRY(count_up_on_cuda(executor, first, all));
    counted = all;
    return {};
  }

  Result<void> build(const VoxelList& list) {
    ListFaults faults;
    QRY_TRY_ASSIGN(const auto found, cuda ? list_keys_on_cuda(executor, list, keys, sorted, faults)
                                          : list_keys_on_host(executor, list, keys, faults));
    if (faults.outside)
      return fail(ErrorCode::out_of_bounds, std::to_string(faults.outside) + " of " + std::to_string(list.count) +
                                                " voxels of the list lie outside the world "
                                                "(x and z in [-8192, 8191], y in [-4096, 4095])");
    if (faults.without_material)
      return fail(ErrorCode::invalid_argument,
                  std::to_string(faults.without_material) + " of " + std::to_string(list.count) +
                      " voxels of the list have material 0, which means no voxel; leave them out");
    const uint32_t count = found;
    QRY_TRY(number(count));
    if (!grid) {
      // Half empty: no key of the only batch has to move, and a look-up reads one sector. A brick takes 576 bytes, its
      // two slots 16.
      QRY_TRY_ASSIGN(auto made, hashgrid::Grid::create(executor, {.capacity = uint64_t(count) * 2}));
      grid.emplace(std::move(made));
    } else {
      QRY_TRY(grid->clear());
    }
    if (count > 0) {
      const auto in = grid->insert({static_cast<const uint32_t*>(keys.data), count},
                                   {static_cast<const uint32_t*>(indices.data), count});
      QRY_TRY(in);
      QRY_TRY(make_room(executor.memory(), masks, size_t(count) * sizeof(BrickMask), "brick masks"));
      QRY_TRY(make_room(executor.memory(), materials, size_t(count) * sizeof(BrickMaterials), "brick materials"));
      auto* const m = static_cast<BrickMask*>(masks.data);
      auto* const c = static_cast<BrickMaterials*>(materials.data);
      const auto filled =
          cuda ? fill_on_cuda(executor, sorted, m, c, count) : fill_on_host(list, grid->view(), m, c, count);
      QRY_TRY(filled);
    }
    bricks = count;
    return {};
  }
};

VoxelListBuilder::VoxelListBuilder(hashgrid::Executor& executor)
    : state_(new State{.executor = executor,
                       .cuda = executor.kind() == hashgrid::ExecutorKind::cuda,
                       .grid = {},
                       .keys = {},
                       .indices = {},
                       .masks = {},
                       .materials = {},
                       .sorted = {}}) {}
VoxelListBuilder::VoxelListBuilder(VoxelListBuilder&&) noexcept = default;
VoxelListBuilder& VoxelListBuilder::operator=(VoxelListBuilder&&) noexcept = default;
VoxelListBuilder::~VoxelListBuilder() = default;

Result<void> VoxelListBuilder::build(const VoxelList& list) {
  state_->bricks = 0;
  if (list.count > 0 && !list.positions) return fail(ErrorCode::invalid_argument, "a list of voxels without positions");
  if (list.count > uint64_t(1) << 31)
    return fail(ErrorCode::invalid_argument,
                "a list of " + std::to_string(list.count) + " voxels is longer than 2^31; build it in parts");
  return state_->build(list);
}

BrickArrays VoxelListBuilder::bricks() const {
  return {state_->bricks, static_cast<const uint32_t*>(state_->keys.data),
          static_cast<const BrickMask*>(state_->masks.data),
          static_cast<const BrickMaterials*>(state_->materials.data)};
}
const hashgrid::Grid& VoxelListBuilder::grid() const { return *state_->grid; }

}  // namespace quarry
