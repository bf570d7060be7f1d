// SPDX-License-Identifier: Apache-2.0
// coarse_level.cpp - keeps the coarse level's pages and cells, each written once.
#include "engine/sharing/coarse_level.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/sharing/residency.hpp"
#include "voxel/bricks/occupancy.hpp"

namespace quarry::engine {

static_assert(sizeof(QryCoarsePage) == 264 && sizeof(QryCoarseCell) == 72,
              "the coarse level's layout in C++ is not GLSL's scalar layout");

uint8_t coarse_material(const BrickView& brick) {
  std::array<uint8_t, 8> found{};
  std::array<int, 8> times{};
  size_t kinds = 0, best = 0;
  for (size_t octant = 0; octant < 8; ++octant) {
    const uint64_t mask = brick.mask[octant];
    if (!mask) continue;
    const uint8_t material = brick.materials[octant * 64 + size_t(std::countr_zero(mask))];
    const size_t kind =
        size_t(std::find(found.begin(), found.begin() + std::ptrdiff_t(kinds), material) - found.begin());
    if (kind == kinds) found[kinds++] = material;
    if (++times[kind] > times[best]) best = kind;
  }
  return found[best];
}

void add_coarse(const Box3& voxels, uint8_t material, CoarseCells& cells) {
  const Box3 box = intersected(voxels, {kWorldMin, kWorldMax});
  if (box.empty()) return;
  const Int3 low = brick_of(box.min), high = brick_of(box.max);
  for (int32_t z = low.z; z <= high.z; ++z)
    for (int32_t y = low.y; y <= high.y; ++y)
      for (int32_t x = low.x; x <= high.x; ++x) {
        const PyramidPlace place = pyramid_place({x, y, z});
        CoarseCell& cell = cells[(place.level3 << 6 | place.level3_bit) << 6 | place.level2_bit];
        const uint64_t bit = uint64_t(1) << place.level1_bit;
        if (!(cell.bricks & bit)) cell.materials[place.level1_bit] = material;
        cell.bricks |= bit;
      }
}

CoarseLevel::CoarseLevel() {
  // Number 0 of either is not a page's: the masks of a brick that is full, and a page with nothing.
  QryCoarseCell full;
  std::memset(&full, 0xFF, sizeof full);
  cells_.push_back(full);
  pages_.push_back({});
}

uint32_t CoarseLevel::number(uint32_t page) const {
  const auto found = numbers_.find(page);
  return found == numbers_.end() ? 0 : found->second;
}

CoarseCells CoarseLevel::cells_of(uint32_t page) const {
  CoarseCells cells;
  const QryCoarsePage& its = pages_[number(page)];
  for (uint64_t left = outline(page); left; left &= left - 1) {
    const auto at = uint32_t(std::countr_zero(left));
    cells.emplace(page << 6 | at, cell_of(its.cells[at]));
  }
  return cells;
}

uint64_t CoarseLevel::outline(uint32_t page) const {
  const QryCoarsePage& its = pages_[number(page)];
  return uint64_t(its.high) << 32 | its.low;
}

void CoarseLevel::list_bricks(uint32_t page, std::vector<uint32_t>& keys) const {
  const QryCoarsePage& its = pages_[number(page)];
  const Int3 low = brick_of(voxels_of_page(page).min);
  const auto place = [](int bit) { return Int3{bit & 3, bit >> 2 & 3, bit >> 4}; };
  for (uint64_t cells = outline(page); cells; cells &= cells - 1) {
    const int cell = std::countr_zero(cells);
    const Int3 at = place(cell);
    const Int3 first = low + Int3{at.x * 4, at.y * 4, at.z * 4};
    for (uint64_t bricks = cell_of(its.cells[cell]).bricks; bricks; bricks &= bricks - 1)
      keys.push_back(brick_key(first + place(std::countr_zero(bricks))));
  }
}

CoarseCell CoarseLevel::cell_of(uint32_t value) const {
  CoarseCell cell;
  if (value < kQryCoarseCells) {
    cell.bricks = value ? ~uint64_t(0) : 0;
    cell.materials.fill(uint8_t(value));
    return cell;
  }
  const QryCoarseCell& its = cells_[value - kQryCoarseCells];
  cell.bricks = uint64_t(its.high) << 32 | its.low;
  std::memcpy(cell.materials.data(), its.materials, sizeof its.materials);
  return cell;
}

uint32_t CoarseLevel::value_of(const CoarseCell& cell) {
  if (!cell.bricks) return 0;
  if (!~cell.bricks && std::ranges::count(cell.materials, cell.materials[0]) == 64) return cell.materials[0];
  return kQryCoarseCells + new_cell(cell);
}

uint32_t CoarseLevel::new_cell(const CoarseCell& cell) {
  uint32_t number;
  if (free_cells_.empty()) {
    number = uint32_t(cells_.size());
    cells_.emplace_back();
  } else {
    number = free_cells_.back();
    free_cells_.pop_back();
  }
  QryCoarseCell& its = cells_[number];
  its.low = uint32_t(cell.bricks);
  its.high = uint32_t(cell.bricks >> 32);
  std::memcpy(its.materials, cell.materials.data(), sizeof its.materials);
  if (followed_) changes_.cells.push_back(number);
  return number;
}

uint32_t CoarseLevel::new_page() {
  if (free_pages_.empty()) {
    pages_.emplace_back();
    return uint32_t(pages_.size() - 1);
  }
  const uint32_t number = free_pages_.back();
  free_pages_.pop_back();
  return number;
}

void CoarseLevel::rewrite(uint32_t page, const auto& change) {
  const uint32_t before = number(page), after = new_page();
  QryCoarsePage its = pages_[before];
  change(its);
  uint64_t outline = 0;
  for (size_t cell = 0; cell < 64; ++cell) outline |= uint64_t(its.cells[cell] != 0) << cell;
  its.low = uint32_t(outline);
  its.high = uint32_t(outline >> 32);
  pages_[after] = its;
  numbers_[page] = after;
  if (followed_) changes_.pages.push_back(page);
  if (before) retire(true, before);
}

void CoarseLevel::merge(const CoarseCells& cells) {
  std::unordered_map<uint32_t, std::vector<std::pair<uint32_t, const CoarseCell*>>> by_page;
  for (const auto& [at, cell] : cells) by_page[at >> 6].emplace_back(at & 63u, &cell);
  for (const auto& [page, list] : by_page)
    rewrite(page, [&, &its_cells = list](QryCoarsePage& its) {
      for (const auto& [at, added] : its_cells) {
        CoarseCell cell = cell_of(its.cells[at]);
        for (uint64_t left = added->bricks & ~cell.bricks; left; left &= left - 1) {
          const auto bit = size_t(std::countr_zero(left));
          cell.materials[bit] = added->materials[bit];
        }
        cell.bricks |= added->bricks;
        if (its.cells[at] >= kQryCoarseCells) retire(false, its.cells[at] - kQryCoarseCells);
        its.cells[at] = value_of(cell);
      }
    });
}

void CoarseLevel::put(uint32_t page, uint64_t of, const CoarseCells& cells) {
  rewrite(page, [&](QryCoarsePage& its) {
    for (uint64_t left = of; left; left &= left - 1) {
      const auto at = uint32_t(std::countr_zero(left));
      if (its.cells[at] >= kQryCoarseCells) retire(false, its.cells[at] - kQryCoarseCells);
      const auto found = cells.find(page << 6 | at);
      its.cells[at] = found == cells.end() ? 0 : value_of(found->second);
    }
  });
}

void CoarseLevel::follow() { followed_ = true; }

void CoarseLevel::retire(bool is_page, uint32_t number) {
  if (followed_) gone_.push_back({0, is_page, number}), ++waiting_;
  else (is_page ? free_pages_ : free_cells_).push_back(number);
}

void CoarseLevel::set_frames(uint64_t submitted, uint64_t completed) {
  for (; waiting_ > 0; --waiting_) gone_[gone_.size() - waiting_].last_frame = submitted;
  while (!gone_.empty() && gone_.front().last_frame <= completed) {
    const Gone& one = gone_.front();
    (one.is_page ? free_pages_ : free_cells_).push_back(one.number);
    gone_.pop_front();
  }
}

}  // namespace quarry::engine
