#include "voxel/brick_pool.hpp"

#include <algorithm>
#include <functional>
#include <string>

namespace quarry {

BrickPool::BrickPool(MemorySource& memory, uint32_t max_bricks)
    : masks_(memory, sizeof(BrickMask), kBricksPerSlab, "brick masks"),
      materials_(memory, sizeof(BrickMaterials), kBricksPerSlab, "brick materials"),
      max_bricks_(std::min(max_bricks, kQryReservedValue - 1)) {}

Result<std::vector<uint32_t>> BrickPool::allocate(size_t count) {
  const uint64_t fresh = count > free_.size() ? count - free_.size() : 0;
  if (high_water_ + fresh > max_bricks_)
    return fail(ErrorCode::full, "brick pool: " + std::to_string(count) + " bricks asked for, " + std::to_string(live_) + " of at most " +
                                     std::to_string(max_bricks_) + " are in use; remove voxels or allow more bricks");
  for (SlabArray* slabs : {&masks_, &materials_})
    if (auto ok = slabs->ensure(high_water_ + fresh); !ok) return tl::unexpected(ok.error());
  std::vector<uint32_t> indices(count);
  // Room for every index there is, so that free() needs no memory: what gives bricks back must not fail.
  if (const size_t most = high_water_ + size_t(fresh); free_.capacity() < most) free_.reserve(std::max(most, 2 * free_.capacity()));
  for (uint32_t& index : indices) {
    if (free_.empty()) {
      index = high_water_++;
    } else {
      std::pop_heap(free_.begin(), free_.end(), std::greater<>());
      index = free_.back();
      free_.pop_back();
    }
  }
  live_ += uint32_t(count);
  return indices;
}

Result<uint32_t> BrickPool::allocate() {
  auto one = allocate(1);
  if (!one) return tl::unexpected(one.error());
  return one->front();
}

void BrickPool::free(uint32_t index) {
  put(index, Brick{});
  free_.push_back(index);
  std::push_heap(free_.begin(), free_.end(), std::greater<>());
  --live_;
}

}  // namespace quarry
