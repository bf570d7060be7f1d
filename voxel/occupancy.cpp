#include "voxel/occupancy.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace quarry {
namespace {

constexpr size_t kDenseBytes = (size_t(kRegionWords) + kLevel3Words + kLevel4Words) * sizeof(uint64_t) + size_t(kRegionWords) * sizeof(uint32_t);

}  // namespace

OccupancyPyramid::OccupancyPyramid(MemorySource& memory)
    : memory_(&memory), blocks_(memory, kBlockWords * sizeof(uint64_t), kBlocksPerSlab, "pyramid blocks"), region_is_dirty_(kRegionWords) {}

Result<OccupancyPyramid> OccupancyPyramid::create(MemorySource& memory) {
  OccupancyPyramid pyramid(memory);
  auto dense = memory.allocate(kDenseBytes, "pyramid");
  if (!dense) return tl::unexpected(dense.error());
  pyramid.dense_ = *dense;
  if (auto ok = pyramid.blocks_.ensure(1); !ok) return tl::unexpected(ok.error());
  return pyramid;
}

OccupancyPyramid::OccupancyPyramid(OccupancyPyramid&& other) noexcept
    : memory_(other.memory_),
      dense_(std::exchange(other.dense_, {})),
      blocks_(std::move(other.blocks_)),
      free_blocks_(std::move(other.free_blocks_)),
      next_block_(other.next_block_),
      dirty_regions_(std::move(other.dirty_regions_)),
      region_is_dirty_(std::move(other.region_is_dirty_)) {}

OccupancyPyramid& OccupancyPyramid::operator=(OccupancyPyramid&& other) noexcept {
  if (this == &other) return *this;
  if (dense_.data) memory_->release(dense_);
  memory_ = other.memory_;
  dense_ = std::exchange(other.dense_, {});
  blocks_ = std::move(other.blocks_);
  free_blocks_ = std::move(other.free_blocks_);
  next_block_ = other.next_block_;
  dirty_regions_ = std::move(other.dirty_regions_);
  region_is_dirty_ = std::move(other.region_is_dirty_);
  return *this;
}

OccupancyPyramid::~OccupancyPyramid() {
  if (dense_.data) memory_->release(dense_);
}

void OccupancyPyramid::mark_dirty(uint32_t region) {
  if (region_is_dirty_[region]) return;
  region_is_dirty_[region] = 1;
  dirty_regions_.push_back(region);
}

std::vector<uint32_t> OccupancyPyramid::take_dirty_regions() {
  for (const uint32_t region : dirty_regions_) region_is_dirty_[region] = 0;
  std::sort(dirty_regions_.begin(), dirty_regions_.end());
  return std::exchange(dirty_regions_, {});
}

void OccupancyPyramid::reserve_changes(size_t keys) {
  const size_t regions = std::min<size_t>(dirty_regions_.size() + keys, kRegionWords);
  if (dirty_regions_.capacity() < regions) dirty_regions_.reserve(std::max(regions, std::min<size_t>(2 * dirty_regions_.capacity(), kRegionWords)));
  const size_t blocks = next_block_ + keys;
  if (free_blocks_.capacity() < blocks) free_blocks_.reserve(std::max(blocks, 2 * free_blocks_.capacity()));
}

Result<void> OccupancyPyramid::add(std::span<const uint32_t> keys) {
  // All memory first, so that a refusal leaves everything as it was.
  reserve_changes(keys.size());
  std::vector<uint32_t> new_regions;
  uint32_t previous = kRegionWords;
  for (const uint32_t key : keys) {
    const uint32_t region = pyramid_place(brick_from_key(key)).region;
    if (region != previous && block_of_region()[region] == 0) new_regions.push_back(region);
    previous = region;
  }
  std::sort(new_regions.begin(), new_regions.end());
  new_regions.erase(std::unique(new_regions.begin(), new_regions.end()), new_regions.end());
  const size_t fresh = new_regions.size() > free_blocks_.size() ? new_regions.size() - free_blocks_.size() : 0;
  if (auto ok = blocks_.ensure(next_block_ + fresh); !ok) return ok;

  for (const uint32_t region : new_regions) {
    uint32_t& block = block_indices()[region];
    if (free_blocks_.empty()) {
      block = next_block_++;
    } else {
      block = free_blocks_.back();
      free_blocks_.pop_back();
    }
    mark_dirty(region);
  }
  uint64_t* const level2 = dense_words();
  uint64_t* const level3 = level2 + kRegionWords;
  uint64_t* const level4 = level3 + kLevel3Words;
  for (const uint32_t key : keys) {
    const PyramidPlace at = pyramid_place(brick_from_key(key));
    uint64_t& chunk = static_cast<uint64_t*>(blocks_.at(block_indices()[at.region]))[at.region_bit];
    const uint64_t bit = uint64_t(1) << at.chunk_bit;
    if (chunk & bit) continue;
    mark_dirty(at.region);
    chunk |= bit;
    level2[at.region] |= uint64_t(1) << at.region_bit;
    level3[at.level3] |= uint64_t(1) << at.level3_bit;
    level4[at.level4] |= uint64_t(1) << at.level4_bit;
  }
  return {};
}

void OccupancyPyramid::remove(std::span<const uint32_t> keys) {
  uint64_t* const level2 = dense_words();
  uint64_t* const level3 = level2 + kRegionWords;
  uint64_t* const level4 = level3 + kLevel3Words;
  for (const uint32_t key : keys) {
    const PyramidPlace at = pyramid_place(brick_from_key(key));
    uint32_t& block = block_indices()[at.region];
    if (block == 0) continue;
    uint64_t& chunk = static_cast<uint64_t*>(blocks_.at(block))[at.region_bit];
    const uint64_t bit = uint64_t(1) << at.chunk_bit;
    if (!(chunk & bit)) continue;
    mark_dirty(at.region);
    if (chunk &= ~bit) continue;
    if (level2[at.region] &= ~(uint64_t(1) << at.region_bit)) continue;
    free_blocks_.push_back(std::exchange(block, 0));
    if (level3[at.level3] &= ~(uint64_t(1) << at.level3_bit)) continue;
    level4[at.level4] &= ~(uint64_t(1) << at.level4_bit);
  }
}

void OccupancyPyramid::clear() {
  uint64_t* const level2 = dense_words();
  // Region by region: an empty world's 12 MiB stay untouched pages.
  for (uint32_t region = 0; region < kRegionWords; ++region) {
    uint32_t& block = block_indices()[region];
    if (block == 0) continue;
    mark_dirty(region);
    auto* words = static_cast<uint64_t*>(blocks_.at(block));
    std::fill(words, words + kBlockWords, 0);
    level2[region] = 0;
    block = 0;
  }
  std::fill(level2 + kRegionWords, level2 + kRegionWords + kLevel3Words + kLevel4Words, 0);
  free_blocks_.clear();
  next_block_ = 1;
}

Result<void> OccupancyPyramid::rebuild(std::span<const uint32_t> keys) {
  clear();
  return add(keys);
}

bool OccupancyPyramid::has_brick(Int3 brick) const {
  if (!brick_in_world(brick)) return false;
  const PyramidPlace at = pyramid_place(brick);
  const uint32_t block = block_of_region()[at.region];
  return block != 0 && (static_cast<const uint64_t*>(blocks_.at(block))[at.region_bit] >> at.chunk_bit & 1u) != 0;
}

std::vector<uint32_t> OccupancyPyramid::keys() const {
  std::vector<uint32_t> keys;
  for (uint32_t region = 0; region < kRegionWords; ++region) {
    const uint32_t block = block_of_region()[region];
    if (block == 0) continue;
    const auto* words = static_cast<const uint64_t*>(blocks_.at(block));
    for (uint32_t w = 0; w < kBlockWords; ++w) {
      for (uint64_t left = words[w]; left; left &= left - 1) {
        const auto bit = uint32_t(std::countr_zero(left));
        const uint32_t x = (region & 127u) << 4 | (w & 3u) << 2 | (bit & 3u);
        const uint32_t y = (region >> 7 & 63u) << 4 | (w >> 2 & 3u) << 2 | (bit >> 2 & 3u);
        const uint32_t z = (region >> 13) << 4 | (w >> 4) << 2 | bit >> 4;
        keys.push_back(x | y << 11 | z << 21);
      }
    }
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

uint64_t OccupancyPyramid::size_bytes() const { return dense_.size_bytes + blocks_.size_bytes(); }

}  // namespace quarry
