// SPDX-License-Identifier: Apache-2.0
// random_history.hpp - random changes of one world, whatever keeps it, beside the same changes of a plain array.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tests/voxel/worlds/dense_model.hpp"

namespace quarry::test {

struct StoreFacts {
  uint64_t version = 0, voxels = 0, bricks = 0;
  uint64_t steps = 0, position = 0;
  Cell min{}, max{};
  bool packed = false;
};

// The store under test, reached by some interface. Each call must succeed; the changing ones return how many voxels
// differ.
class TestedStore {
 public:
  virtual ~TestedStore() = default;
  // `continues`: it joins the step before, which is only asked of a store that makes strokes.
  virtual uint64_t edit(const DenseEdit& edit, bool continues) = 0;
  virtual bool makes_strokes() const = 0;
  virtual uint64_t set_voxels(const std::vector<int32_t>& xyz, const std::vector<uint8_t>& materials) = 0;
  virtual uint64_t write_region(Cell min, Cell max, const std::vector<uint8_t>& materials) = 0;
  // 512 materials a brick, x fastest; no brick twice.
  virtual uint64_t write_bricks(const std::vector<Cell>& bricks, const std::vector<uint8_t>& materials) = 0;
  // A list with a voxel outside the world, an edit of a wrong radius: refused with the right error. Returns whether
  // one of them was made before it was taken back, which may raise the version.
  virtual bool refused_calls() = 0;
  // None: there is no such step.
  virtual std::optional<uint64_t> undo() = 0;
  virtual std::optional<uint64_t> redo() = 0;
  virtual void recolour(uint8_t material, uint8_t red) = 0;
  virtual bool recolouring_is_a_step() const = 0;
  virtual uint8_t red(uint8_t material) = 0;
  // False: there was nothing to do.
  virtual bool pack() = 0;
  virtual bool unpack() = 0;
  virtual bool trim() = 0;
  // Saves it, and goes on with what the file holds. Returns whether that includes the history.
  virtual bool reopen(uint32_t random) = 0;
  virtual StoreFacts facts() = 0;
  virtual void read(Cell min, Cell max, std::vector<uint8_t>& materials) = 0;
  // In the order in which the store lists them; none: it does not list them.
  virtual std::optional<std::vector<Cell>> bricks() = 0;
};

// Makes `changes` random changes and compares cheap facts after each. Compares everything every 50 changes, and after
// each undo, redo, pack, unpack, trim and reopening. Under a sanitizer it makes a quarter of the changes.
void check_random_history(TestedStore& store, DenseModel model, uint32_t seed, int changes);

}  // namespace quarry::test
