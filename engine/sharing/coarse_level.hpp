// SPDX-License-Identifier: Apache-2.0
// coarse_level.hpp - what is known of pages of a world whether they are in memory or not: which bricks may have voxels,
// and one material for each. That is the world at an eighth of its resolution. Rays see it of a page that is not there
// (shaders/shared/residency.h), so no frame has a hole, and only pages are asked for whose bricks rays come to.
//
// It takes 4 bytes a cell of 32^3 voxels whose bricks are all there with one material, and 76 of any other cell that is
// not empty: less than a hundredth of what its bricks take.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "shaders/shared/residency.h"
#include "voxel/bricks/brick.hpp"
#include "voxel/bricks/coords.hpp"

namespace quarry::engine {

// A cell of 32^3 voxels: its bricks that may have voxels, as a node of level 1 of the pyramid, and a material for each.
struct CoarseCell {
  uint64_t bricks = 0;
  std::array<uint8_t, 64> materials{};
};
// By page << 6 | the cell's bit in it.
using CoarseCells = std::unordered_map<uint32_t, CoarseCell>;

// The material that a brick has at a distance: of one voxel of each octant the most frequent.
uint8_t coarse_material(const BrickView& brick);
// Adds the bricks of the world that a box of voxels meets, with this material where none is there yet.
void add_coarse(const Box3& voxels, uint8_t material, CoarseCells& cells);

// One thread at a time. From follow() on what a frame may still read is kept until that is done, so nothing waits.
class CoarseLevel {
 public:
  CoarseLevel();

  // Adds bricks, those that are there already with their material.
  void merge(const CoarseCells& cells);
  // The cells of a page that are in `of`, as these; those that are not in `cells` are empty.
  void put(uint32_t page, uint64_t of, const CoarseCells& cells);

  CoarseCells cells_of(uint32_t page) const;                           // as put() takes them
  uint64_t outline(uint32_t page) const;                               // which cells of the page have something
  void list_bricks(uint32_t page, std::vector<uint32_t>& keys) const;  // that may have voxels; added to what is there
  void each_page(const auto& visit) const {
    for (const auto& [page, number] : numbers_) visit(page);
  }

  // For Residency. From here on changes are told; what there is already is not among them.
  void follow();
  // All that shaders read, by number; number() says which a page has.
  const std::vector<QryCoarsePage>& pages() const { return pages_; }
  const std::vector<QryCoarseCell>& cells() const { return cells_; }
  uint32_t number(uint32_t page) const;
  // What has changed since it was asked last.
  struct Changes {
    std::vector<uint32_t> pages;  // by their place in the world
    std::vector<uint32_t> cells;  // by number
  };
  Changes take_changes() { return std::exchange(changes_, {}); }
  // What has been replaced until now frames up to `submitted` may read, and none after them. Those up to `completed`
  // are done.
  void set_frames(uint64_t submitted, uint64_t completed);

 private:
  struct Gone {
    uint64_t last_frame;
    bool is_page;
    uint32_t number;
  };
  uint32_t new_page();
  uint32_t new_cell(const CoarseCell& cell);
  CoarseCell cell_of(uint32_t value) const;
  uint32_t value_of(const CoarseCell& cell);
  // Changes one page by a copy: `change` is given its cells' values.
  void rewrite(uint32_t page, const auto& change);
  void retire(bool is_page, uint32_t number);

  std::unordered_map<uint32_t, uint32_t> numbers_;  // of pages
  std::vector<QryCoarsePage> pages_;
  std::vector<QryCoarseCell> cells_;
  std::vector<uint32_t> free_pages_, free_cells_;
  std::deque<Gone> gone_;
  size_t waiting_ = 0;  // the last of these: since set_frames()
  bool followed_ = false;
  Changes changes_;
};

}  // namespace quarry::engine
