// SPDX-License-Identifier: Apache-2.0
// world_changes.cpp - converts changed keys to byte ranges: pages of the grid, elements of the slabs, runs of the
// pyramid. Adjacent ranges are joined.
#include "engine/sharing/world_changes.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "hashgrid/pairs/view.hpp"

namespace quarry::engine {
namespace {

constexpr uint64_t kMaskBytes = sizeof(BrickMask), kMaterialBytes = sizeof(BrickMaterials);

class Collector {
 public:
  void add(WorldPart part, uint32_t slab, uint64_t offset, const void* from, uint64_t size) {
    if (!size) return;
    if (!copies_.empty()) {
      CopyRegion& last = copies_.back();
      if (last.part == part && last.slab == slab && last.offset_bytes + last.size_bytes == offset &&
          static_cast<const char*>(last.from) + last.size_bytes == from) {
        last.size_bytes += size;
        return;
      }
    }
    copies_.push_back({part, slab, offset, size, from});
  }

  // Adds elements first .. first+count of a slab array, slab by slab. It skips the numbers beyond the end of a
  // shortened slab.
  void add_elements(WorldPart part, const SlabArray& array, uint64_t first, uint64_t count, uint64_t element_bytes) {
    const uint64_t per_slab = uint64_t(1) << array.slab_shift();
    while (count) {
      const uint64_t in_slab = first & (per_slab - 1), here = std::min(count, per_slab - in_slab);
      const uint64_t there = array.slabs()[first >> array.slab_shift()].size_bytes / element_bytes;
      if (in_slab < there)
        add(part, uint32_t(first >> array.slab_shift()), in_slab * element_bytes, array.at(first),
            std::min(here, there - in_slab) * element_bytes);
      first += here;
      count -= here;
    }
  }

  std::vector<CopyRegion> take() { return std::move(copies_); }

 private:
  std::vector<CopyRegion> copies_;
};

// Adds the bytes of the table that writing these keys may have changed. These are their pages, because other keys may
// have been moved there, and their groups' stashes.
void add_grid_pages(Collector& out, const hashgrid::GridView& grid, const std::vector<uint32_t>& keys) {
  std::vector<uint32_t> pages;
  pages.reserve(keys.size());
  for (uint32_t key : keys) pages.push_back(qry_page(qry_stored_key(key, grid.locality), grid.page_count));
  std::sort(pages.begin(), pages.end());
  pages.erase(std::unique(pages.begin(), pages.end()), pages.end());
  constexpr uint64_t kStashAt = kQryPageBytes / kQrySectorsPerPage * kQryStashFirstSector,
                     kStashBytes = kQryPageBytes - kStashAt;
  static_assert(kQryStashFirstSector + kQryStashSectors == kQrySectorsPerPage);
  const auto add = [&](uint32_t page, uint64_t from, uint64_t size) {
    out.add(WorldPart::grid, 0, uint64_t(page) * kQryPageBytes + from,
            reinterpret_cast<const char*>(grid.words + uint64_t(page) * kQryPageWords) + from, size);
  };
  for (size_t i = 0; i < pages.size();) {
    const QryStashGroup group = qry_stash_group(pages[i], grid.page_count);
    for (uint32_t page = group.first; page < group.first + group.count; ++page) {
      const bool written = i < pages.size() && pages[i] == page;
      if (written) add(page, 0, kQryPageBytes), ++i;
      else add(page, kStashAt, kStashBytes);
    }
  }
}

}  // namespace

std::vector<CopyRegion> collect_copy_regions(const World& world, const WorldChanges& changes) {
  Collector out;
  const hashgrid::GridView grid = world.grid().view();
  const BrickPool& pool = world.pool();
  const OccupancyPyramid& pyramid = world.pyramid();

  if (changes.everything || changes.whole_grid)
    out.add(WorldPart::grid, 0, 0, grid.words, uint64_t(grid.page_count) * kQryPageBytes);
  else add_grid_pages(out, grid, changes.keys);

  if (changes.everything) {
    out.add_elements(WorldPart::masks, pool.mask_slabs(), 0, pool.high_water(), kMaskBytes);
    out.add_elements(WorldPart::materials, pool.material_slabs(), 0, pool.material_elements(), kMaterialBytes);
    out.add(WorldPart::pyramid, 0, 0, pyramid.nodes(), pyramid.used_bytes());
    return out.take();
  }

  std::vector<uint32_t> bricks;
  for (uint32_t key : changes.keys)
    if (const hashgrid::Found found = hashgrid::find(grid, key); found.hit) bricks.push_back(found.value);
  std::sort(bricks.begin(), bricks.end());
  bricks.erase(std::unique(bricks.begin(), bricks.end()), bricks.end());  // full bricks have many keys
  for (uint32_t brick : bricks) out.add_elements(WorldPart::masks, pool.mask_slabs(), brick, 1, kMaskBytes);
  for (uint32_t brick : bricks) out.add_elements(WorldPart::materials, pool.material_slabs(), brick, 1, kMaterialBytes);

  if (changes.whole_pyramid) {
    out.add(WorldPart::pyramid, 0, 0, pyramid.nodes(), pyramid.used_bytes());
    return out.take();
  }
  // Adds the changed level-3 nodes, each with its run of level 2, then the changed nodes' runs of level 1, then their
  // tables.
  const OccupancyNode* nodes = pyramid.nodes();
  std::vector<std::pair<uint64_t, uint64_t>> ranges;  // bytes: where, how many
  const auto add_run = [&](const OccupancyNode& node, uint64_t child_bytes) {
    if (node.mask)
      ranges.emplace_back(uint64_t(node.child) * kGranuleBytes, uint64_t(std::popcount(node.mask)) * child_bytes);
  };
  uint32_t last_cell = kLevel3Nodes;
  for (const uint32_t level2 : changes.level2) {
    const uint32_t cell = level3_of_level2(level2), bit = bit_of_level2(level2);
    const OccupancyNode& level3 = pyramid.level3()[cell];
    if (cell != last_cell) {
      ranges.emplace_back(uint64_t(pyramid.level3_granule() + cell) * kGranuleBytes, kGranuleBytes);
      add_run(level3, sizeof(OccupancyNode));
      last_cell = cell;
    }
    if (!(level3.mask >> bit & 1u)) continue;
    const OccupancyNode& node = nodes[level3.child + child_number(level3.mask, bit)];
    add_run(node, sizeof(OccupancyNode));
    for (int level1 = 0; level1 < std::popcount(node.mask); ++level1)
      add_run(nodes[node.child + uint32_t(level1)], sizeof(uint32_t));
  }
  std::sort(ranges.begin(), ranges.end());
  ranges.erase(std::unique(ranges.begin(), ranges.end()), ranges.end());
  for (const auto& [at, bytes] : ranges)
    out.add(WorldPart::pyramid, 0, at, reinterpret_cast<const char*>(nodes) + at, bytes);
  return out.take();
}

}  // namespace quarry::engine
