// SPDX-License-Identifier: Apache-2.0
// pool.cpp - the free list, growth by slabs, and packing, which keeps the materials of set voxels only.
#include "voxel/bricks/pool.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "base/parallel.hpp"

namespace quarry {
namespace {

uint32_t set_voxels(const BrickMask& mask) {
  uint32_t count = 0;
  for (const uint64_t word : mask) count += uint32_t(std::popcount(word));
  return count;
}

}  // namespace

BrickPool::BrickPool(MemorySource& memory, uint32_t max_bricks)
    : masks_(memory, sizeof(BrickMask), kBricksPerSlab, "brick masks"),
      materials_(memory, sizeof(BrickMaterials), kBricksPerSlab, "brick materials"),
      max_bricks_(std::min(max_bricks, kQryReservedValue - 1)) {
  full_.fill(kNoBrick);
}

Result<std::vector<uint32_t>> BrickPool::allocate(size_t count) {
  const uint64_t fresh = count > free_.size() ? count - free_.size() : 0;
  // Indices fill the existing slabs, then continue at the next slab: masks and materials end alike.
  const uint64_t end = materials_.capacity(), begin = materials_.grows_at(),
                 more = fresh - std::min(fresh, end - high_water_);
  if (live_ + uint64_t(count) > max_bricks_ || begin + more >= kQryReservedValue)
    return fail(ErrorCode::full, "brick pool: " + std::to_string(count) + " bricks asked for, " +
                                     std::to_string(live_) + " of at most " + std::to_string(max_bricks_) +
                                     " are in use; remove voxels or allow more bricks");
  if (more) {
    masks_.trim(end);  // an exception may have ended an earlier attempt
    auto ok = masks_.grow(more);
    if (ok) ok = materials_.grow(more);
    if (!ok) {
      masks_.trim(end);
      materials_.trim(end);
      return tl::unexpected(ok.error());
    }
  }
  std::vector<uint32_t> indices(count);
  // Room for every existing index, so that free() needs no memory: freeing bricks must not fail.
  if (const size_t most = live_ + free_.size() + size_t(fresh); free_.capacity() < most)
    free_.reserve(std::max(most, 2 * free_.capacity()));
  for (uint32_t& index : indices) {
    if (free_.empty()) {
      if (high_water_ == end) high_water_ = uint32_t(begin);
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
  QRY_TRY_ASSIGN(auto one, allocate(1));
  return one.front();
}

void BrickPool::free(uint32_t index) {
  put(index, Brick{});
  free_.push_back(index);
  std::push_heap(free_.begin(), free_.end(), std::greater<>());
  --live_;
}

Result<void> BrickPool::store_full(std::span<const uint8_t> materials) {
  std::array<uint8_t, 256> missing;
  size_t count = 0;
  for (const uint8_t material : materials) {
    const auto end = missing.begin() + std::ptrdiff_t(count);
    if (full_[material] == kNoBrick && std::find(missing.begin(), end, material) == end) missing[count++] = material;
  }
  QRY_TRY_ASSIGN(const auto indices, allocate(count));
  for (size_t i = 0; i < count; ++i) {
    put(indices[i], full_brick(missing[i]));
    full_[missing[i]] = indices[i];
  }
  return {};
}

void BrickPool::free_full(std::span<const uint8_t> materials) {
  for (const uint8_t material : materials)
    if (const uint32_t index = std::exchange(full_[material], kNoBrick); index != kNoBrick) free(index);
}

uint8_t BrickPool::full_material(uint32_t index) const {
  if (!all_set(mask(index))) return 0;
  const uint8_t first = material(index, 0);
  return full_[first] == index ? first : uint8_t(0);
}

Result<void> BrickPool::shrink_to_fit(uint32_t count) {
  QRY_TRY(masks_.shrink_to_fit(count));
  return materials_.shrink_to_fit(count);
}

void BrickPool::trim() {
  masks_.trim(high_water_);
  materials_.trim(high_water_);
}

Result<BrickPool> BrickPool::pack(MemorySource& memory, const BrickPool& from, std::span<const uint32_t> indices) {
  BrickPool pool(memory);
  const auto count = uint32_t(indices.size());
  std::vector<uint32_t> starts(count);
  uint64_t words = count;
  for (uint32_t i = 0; i < count; ++i) {
    if (words > 0xFFFFFFFFu) break;
    starts[i] = uint32_t(words);
    words += (set_voxels(from.mask(indices[i])) + 3) / 4;
  }
  if (words > 0xFFFFFFFFu)
    return fail(ErrorCode::full, "brick pool: more than 16 GiB of materials cannot be packed; keep the world as it is");
  QRY_TRY(pool.masks_.shrink_to_fit(count));
  QRY_TRY(pool.materials_.shrink_to_fit((words * 4 + sizeof(BrickMaterials) - 1) / sizeof(BrickMaterials)));
  parallel_for(count, 256, [&](size_t begin, size_t end) {
    for (auto i = uint32_t(begin); i < end; ++i) {
      const Brick brick = from.get(indices[i]);
      pool.mask(i) = brick.mask;
      *pool.word(i) = starts[i];
      uint64_t at = starts[i];
      uint8_t four[4] = {};
      uint32_t n = 0;
      for (uint32_t w = 0; w < 8; ++w)
        for (uint64_t left = brick.mask[w]; left; left &= left - 1) {
          four[n++ & 3u] = brick.materials[w * 64 + uint32_t(std::countr_zero(left))];
          if ((n & 3u) == 0) std::memcpy(pool.word(at++), four, 4);
        }
      if (n & 3u) {
        std::fill(four + (n & 3u), four + 4, uint8_t(0));
        std::memcpy(pool.word(at), four, 4);
      }
    }
  });
  pool.live_ = pool.high_water_ = count;
  pool.packed_ = true;
  return pool;
}

uint8_t BrickPool::material(uint32_t index, uint32_t voxel) const {
  const BrickMask& bits = mask(index);
  if (!packed_) return (*static_cast<const BrickMaterials*>(materials_.at(index)))[voxel];
  const uint64_t bit = uint64_t(1) << (voxel & 63u);
  if (!(bits[voxel >> 6] & bit)) return 0;
  auto number = uint32_t(std::popcount(bits[voxel >> 6] & (bit - 1)));
  for (uint32_t w = 0; w < voxel >> 6; ++w) number += uint32_t(std::popcount(bits[w]));
  return reinterpret_cast<const uint8_t*>(word(uint64_t(*word(index)) + number / 4))[number & 3u];
}

Brick BrickPool::get(uint32_t index) const {
  Brick brick{mask(index), {}};
  if (!packed_) {
    brick.materials = *static_cast<const BrickMaterials*>(materials_.at(index));
    return brick;
  }
  const uint64_t start = *word(index);
  uint32_t n = 0;
  for (uint32_t w = 0; w < 8; ++w)
    for (uint64_t left = brick.mask[w]; left; left &= left - 1, ++n)
      brick.materials[w * 64 + uint32_t(std::countr_zero(left))] =
          reinterpret_cast<const uint8_t*>(word(start + n / 4))[n & 3u];
  return brick;
}

}  // namespace quarry
