#include "engine/world_changes.hpp"

#include <algorithm>

#include "hashgrid/view.hpp"

namespace quarry::engine {
namespace {

constexpr uint64_t kMaskBytes = sizeof(BrickMask), kMaterialBytes = sizeof(BrickMaterials), kBlockBytes = kBlockWords * 8;

class Collector {
 public:
  void add(WorldPart part, uint32_t slab, uint64_t offset, const void* from, uint64_t size) {
    if (!size) return;
    if (!pieces_.empty()) {
      WorldPiece& last = pieces_.back();
      if (last.part == part && last.slab == slab && last.offset_bytes + last.size_bytes == offset && static_cast<const char*>(last.from) + last.size_bytes == from) {
        last.size_bytes += size;
        return;
      }
    }
    pieces_.push_back({part, slab, offset, size, from});
  }

  // Elements first .. first+count of a slab array, slab by slab.
  void add_elements(WorldPart part, const SlabArray& array, uint64_t first, uint64_t count, uint64_t element_bytes) {
    const uint64_t per_slab = uint64_t(1) << array.slab_shift();
    while (count) {
      const uint64_t in_slab = first & (per_slab - 1), here = std::min(count, per_slab - in_slab);
      add(part, uint32_t(first >> array.slab_shift()), in_slab * element_bytes, array.at(first), here * element_bytes);
      first += here;
      count -= here;
    }
  }

  std::vector<WorldPiece> take() { return std::move(pieces_); }

 private:
  std::vector<WorldPiece> pieces_;
};

}  // namespace

std::vector<WorldPiece> collect_pieces(const World& world, const WorldChanges& changes, bool with_grid) {
  Collector out;
  const hashgrid::GridView grid = world.grid().view();
  const BrickPool& pool = world.pool();
  const OccupancyPyramid& pyramid = world.pyramid();

  if (with_grid && (changes.everything || changes.whole_grid)) {
    out.add(WorldPart::grid, 0, 0, grid.words, uint64_t(grid.page_count) * kQryPageBytes);
  } else if (with_grid) {
    std::vector<uint32_t> pages;
    for (uint32_t key : changes.keys) pages.push_back(qry_page(qry_stored_key(key, grid.locality), grid.page_count));
    std::sort(pages.begin(), pages.end());
    pages.erase(std::unique(pages.begin(), pages.end()), pages.end());
    for (uint32_t page : pages) out.add(WorldPart::grid, 0, uint64_t(page) * kQryPageBytes, grid.words + uint64_t(page) * kQryPageWords, kQryPageBytes);
  }

  if (changes.everything) {
    out.add_elements(WorldPart::masks, pool.mask_slabs(), 0, pool.high_water(), kMaskBytes);
    out.add_elements(WorldPart::materials, pool.material_slabs(), 0, pool.high_water(), kMaterialBytes);
    out.add_elements(WorldPart::blocks, pyramid.block_slabs(), 0, pyramid.block_slabs().capacity(), kBlockBytes);
    out.add(WorldPart::pyramid, 0, 0, pyramid.dense().data, uint64_t(kRegionWords + kLevel3Words + kLevel4Words) * 8 + uint64_t(kRegionWords) * 4);
    return out.take();
  }

  std::vector<uint32_t> bricks;
  for (uint32_t key : changes.keys)
    if (const hashgrid::Found found = hashgrid::find(grid, key); found.hit) bricks.push_back(found.value);
  std::sort(bricks.begin(), bricks.end());
  for (uint32_t brick : bricks) out.add_elements(WorldPart::masks, pool.mask_slabs(), brick, 1, kMaskBytes);
  for (uint32_t brick : bricks) out.add_elements(WorldPart::materials, pool.material_slabs(), brick, 1, kMaterialBytes);

  std::vector<uint32_t> regions = changes.regions, level3, level4;
  std::sort(regions.begin(), regions.end());
  for (uint32_t r : regions) {
    const uint32_t x = r & 127u, y = r >> 7 & 63u, z = r >> 13;  // 7/6/7 bits
    level3.push_back((x >> 2) | (y >> 2) << 5 | (z >> 2) << 9);
    level4.push_back((x >> 4) | (y >> 4) << 3 | (z >> 4) << 5);
  }
  for (auto* cells : {&level3, &level4}) {
    std::sort(cells->begin(), cells->end());
    cells->erase(std::unique(cells->begin(), cells->end()), cells->end());
  }
  std::vector<uint32_t> blocks;
  const uint32_t* block_of_region = pyramid.block_of_region();
  for (uint32_t r : regions)
    if (block_of_region[r]) blocks.push_back(block_of_region[r]);
  std::sort(blocks.begin(), blocks.end());
  for (uint32_t block : blocks) out.add_elements(WorldPart::blocks, pyramid.block_slabs(), block, 1, kBlockBytes);
  for (uint32_t r : regions) out.add(WorldPart::pyramid, 0, uint64_t(r) * 8, pyramid.level2_words() + r, 8);
  for (uint32_t c : level3) out.add(WorldPart::pyramid, 0, (uint64_t(kRegionWords) + c) * 8, pyramid.level3_words() + c, 8);
  for (uint32_t c : level4) out.add(WorldPart::pyramid, 0, (uint64_t(kRegionWords) + kLevel3Words + c) * 8, pyramid.level4_words() + c, 8);
  const uint64_t block_of_region_at = uint64_t(kRegionWords + kLevel3Words + kLevel4Words) * 8;
  for (uint32_t r : regions) out.add(WorldPart::pyramid, 0, block_of_region_at + uint64_t(r) * 4, block_of_region + r, 4);
  return out.take();
}

}  // namespace quarry::engine
