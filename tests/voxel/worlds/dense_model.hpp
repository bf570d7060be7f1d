// SPDX-License-Identifier: Apache-2.0
// dense_model.hpp - voxels as a plain array of bytes, with shapes and modes written anew from their definition in
// quarry.h, voxel by voxel, and a history of differences. It knows nothing of Quarry, so any store can be compared
// with it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace quarry::test {

using Cell = std::array<int32_t, 3>;

enum class DenseShape : uint8_t { box, sphere, line };
enum class DenseMode : uint8_t { add, remove, paint, replace, fill };

struct DenseEdit {
  DenseShape shape = DenseShape::box;
  DenseMode mode = DenseMode::add;
  Cell a{}, b{};
  int32_t radius_quarters = 0;  // so that integers decide who is inside
  uint8_t material = 1, from = 0;
  double radius() const { return radius_quarters / 4.0; }
};

// The voxels of a radius 0 line: from centre to centre through the faces in the order in which the segment crosses
// them; x before y before z where it crosses an edge or a corner.
std::vector<Cell> thin_line(Cell a, Cell b);

class DenseModel {
 public:
  // A box of whole bricks: `min` and `size` are multiples of 8.
  DenseModel(Cell min, Cell size);

  Cell min() const { return min_; }
  Cell size() const { return size_; }
  Cell max() const { return {min_[0] + size_[0] - 1, min_[1] + size_[1] - 1, min_[2] + size_[2] - 1}; }
  uint8_t get(Cell cell) const { return voxels_[index_of(cell)]; }
  // In the order of qry_world_read_region: x fastest, then y, then z.
  const std::vector<uint8_t>& voxels() const { return voxels_; }

  // What a change did: how many voxels differ, and whether anything does. A change of anything is a step.
  struct Change {
    uint64_t voxels = 0;
    bool any = false;
  };
  // Parts of the shape outside the box are left out. `continues`: it joins the last step that was made, if there is
  // one.
  Change apply(const DenseEdit& edit, bool continues = false);
  // One after another: of a voxel that is given twice, the last counts.
  Change set(const std::vector<int32_t>& xyz, const std::vector<uint8_t>& materials);
  Change set_box(Cell low, Cell high, const std::vector<uint8_t>& materials);
  // Whole bricks: 512 materials each, x fastest.
  Change set_bricks(const std::vector<Cell>& bricks, const std::vector<uint8_t>& materials);
  // The red of a material, which stands for the whole palette.
  Change recolour(uint8_t material, uint8_t red, bool as_step);
  uint8_t red(uint8_t material) const { return reds_[material]; }
  void know_red(uint8_t material, uint8_t red) { reds_[material] = red; }

  uint64_t steps() const { return steps_.size(); }
  uint64_t position() const { return position_; }
  Change undo();
  Change redo();
  void forget_steps();

  uint64_t voxel_count() const { return voxel_count_; }
  // What a look at every voxel tells.
  struct Summary {
    uint64_t voxels = 0;
    std::vector<Cell> bricks;      // with a voxel; z slowest and x fastest: the order of their keys
    Cell low{}, high{-1, -1, -1};  // of the voxels
  };
  Summary summary() const;

 private:
  struct Difference {
    uint32_t index;
    uint8_t before, after;
  };
  struct Step {
    std::vector<Difference> voxels;                       // a voxel more than once if the step has several parts
    uint8_t material = 0, red_before = 0, red_after = 0;  // material 0: the palette stays
  };

  size_t index_of(Cell cell) const {
    return size_t(cell[0] - min_[0]) +
           size_t(size_[0]) * (size_t(cell[1] - min_[1]) + size_t(size_[1]) * size_t(cell[2] - min_[2]));
  }
  bool holds(Cell cell) const;
  void put(size_t index, uint8_t value, std::vector<Difference>& differences);
  Change finish(std::vector<Difference> differences, bool continues = false);
  void put_back(const Step& step, bool forth);

  Cell min_, size_;
  std::vector<uint8_t> voxels_;
  std::array<uint8_t, 256> reds_{};
  uint64_t voxel_count_ = 0;
  std::vector<Step> steps_;
  size_t position_ = 0;
};

}  // namespace quarry::test
