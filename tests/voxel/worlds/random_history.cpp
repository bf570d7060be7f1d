// SPDX-License-Identifier: Apache-2.0
// random_history.cpp - picks the changes and compares. Sizes are mixed so that bricks become full, are cut, removed and
// made again, and so that there are many steps that change little.
#include "tests/voxel/worlds/random_history.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <set>
#include <utility>

#include "tests/app/sanitized.hpp"

namespace quarry::test {
namespace {

class History {
 public:
  History(TestedStore& store, DenseModel model, uint32_t seed)
      : store_(store), model_(std::move(model)), random_(seed), facts_(store.facts()) {
    for (uint32_t material = 1; material < 256; ++material)
      model_.know_red(uint8_t(material), store.red(uint8_t(material)));
  }

  void change_once() {
    const uint32_t kind = below(100);
    if (kind < 42) edit();
    else if (kind < 58) set_voxels();
    else if (kind < 66) write_region();
    else if (kind < 71) write_bricks();
    else if (kind < 79) undo(1);
    else if (kind < 85) redo(1);
    else if (kind < 87) undo(2 + below(12));
    else if (kind < 89) redo(2 + below(12));
    else if (kind < 91) pack();
    else if (kind < 92) unpack();
    else if (kind < 94) trim();
    else if (kind < 95) reopen();
    else if (kind < 98) recolour();
    else refuse();
  }

  void compare_everything() {
    const DenseModel::Summary expected = model_.summary();
    REQUIRE(expected.voxels == model_.voxel_count());
    facts_ = store_.facts();
    REQUIRE(facts_.voxels == expected.voxels);
    REQUIRE(facts_.bricks == expected.bricks.size());
    if (const auto listed = store_.bricks()) REQUIRE((*listed == expected.bricks));
    if (expected.voxels) {
      REQUIRE(facts_.min == expected.low);
      REQUIRE(facts_.max == expected.high);
    } else {
      for (size_t i = 0; i < 3; ++i) REQUIRE(facts_.max[i] < facts_.min[i]);
    }
    store_.read(model_.min(), model_.max(), read_);
    REQUIRE(read_.size() == model_.voxels().size());
    if (std::memcmp(read_.data(), model_.voxels().data(), read_.size()) == 0) return;
    const auto wrong = std::mismatch(read_.begin(), read_.end(), model_.voxels().begin());
    const auto at = int32_t(wrong.first - read_.begin());
    const Cell size = model_.size(), min = model_.min();
    const Cell cell = {min[0] + at % size[0], min[1] + at / size[0] % size[1], min[2] + at / size[0] / size[1]};
    INFO("the first wrong voxel is (" << cell[0] << ", " << cell[1] << ", " << cell[2] << ")");
    REQUIRE(int(*wrong.first) == int(*wrong.second));
  }

  // To the beginning and to the end, with everything compared on the way.
  void walk_all_steps() {
    while (model_.position() > 0) undo(1 + below(9));
    REQUIRE_FALSE(store_.undo());
    while (model_.position() < model_.steps()) redo(1 + below(9));
    REQUIRE_FALSE(store_.redo());
  }

 private:
  uint32_t below(uint32_t n) { return uint32_t(random_() % n); }
  int32_t within(int32_t low, int32_t high) { return low + int32_t(below(uint32_t(high - low + 1))); }
  Cell random_cell() {
    Cell cell;
    for (size_t i = 0; i < 3; ++i) cell[i] = within(model_.min()[i], model_.max()[i]);
    return cell;
  }
  // Few materials, so that the modes meet what they look for; the last one of all is among them.
  uint8_t random_material() { return below(12) == 0 ? uint8_t(255) : uint8_t(1 + below(5)); }
  Cell clipped(Cell cell) const {
    for (size_t i = 0; i < 3; ++i) cell[i] = std::clamp(cell[i], model_.min()[i], model_.max()[i]);
    return cell;
  }
  // Voxels from the border that is nearest.
  int32_t room(Cell cell) const {
    int32_t least = 1 << 20;
    for (size_t i = 0; i < 3; ++i) least = std::min({least, cell[i] - model_.min()[i], model_.max()[i] - cell[i]});
    return least;
  }

  // Facts that each call tells, and those that cost little.
  void expect(DenseModel::Change change, uint64_t told) {
    const StoreFacts before = std::exchange(facts_, store_.facts());
    REQUIRE(told == change.voxels);
    REQUIRE(facts_.voxels == model_.voxel_count());
    REQUIRE(facts_.steps == model_.steps());
    REQUIRE(facts_.position == model_.position());
    if (change.any) REQUIRE(facts_.version > before.version);
    else REQUIRE(facts_.version == before.version);
    if (change.voxels) REQUIRE_FALSE(facts_.packed);
  }
  // What leaves voxels, version and history as they are.
  void expect_same(bool packed) {
    const StoreFacts before = std::exchange(facts_, store_.facts());
    REQUIRE(facts_.version == before.version);
    REQUIRE(facts_.steps == before.steps);
    REQUIRE(facts_.position == before.position);
    REQUIRE(facts_.packed == packed);
    compare_everything();
  }

  void edit() {
    DenseEdit edit;
    edit.shape = DenseShape(below(3));
    edit.mode = DenseMode(below(5));
    edit.material = random_material();
    if (edit.mode == DenseMode::replace) {
      edit.from = random_material();
      if (below(4) == 0) edit.material = 0;
    }
    if (edit.mode == DenseMode::remove && below(2)) edit.material = 0;
    const bool large = below(12) == 0;
    edit.a = random_cell();
    if (edit.shape == DenseShape::box) {
      edit.b = edit.a;
      for (size_t i = 0; i < 3; ++i) edit.b[i] += within(-(large ? 90 : 30), large ? 90 : 30);
      edit.b = clipped(edit.b);
      if (below(4) == 0)  // whole bricks
        for (size_t i = 0; i < 3; ++i) {
          if (edit.a[i] > edit.b[i]) std::swap(edit.a[i], edit.b[i]);
          edit.a[i] &= ~7, edit.b[i] |= 7;
        }
    } else {
      if (edit.shape == DenseShape::line) edit.b = large ? random_cell() : clipped(beside(edit.a, 30));
      const int32_t most = 4 * std::min(room(edit.a), edit.shape == DenseShape::line ? room(edit.b) : 1 << 20);
      const int32_t wanted = edit.shape == DenseShape::line ? 24 : large ? 160 : 72;
      if (below(6)) edit.radius_quarters = int32_t(below(uint32_t(std::min(most, wanted) + 1)));
    }
    const bool continues = store_.makes_strokes() && below(3) == 0;
    expect(model_.apply(edit, continues), store_.edit(edit, continues));
  }

  Cell beside(Cell cell, int32_t reach) {
    for (size_t i = 0; i < 3; ++i) cell[i] += within(-reach, reach);
    return cell;
  }

  void set_voxels() {
    std::vector<int32_t> xyz;
    std::vector<uint8_t> materials;
    // Spread over all, about one place, or in a brick and its neighbours. Close voxels come more than once.
    const uint32_t spread = below(3);
    const Cell place = random_cell();
    for (uint32_t count = below(4) == 0 ? below(3000) : below(200); count > 0; --count) {
      const Cell cell = spread == 0 ? random_cell() : clipped(beside(place, spread == 1 ? 24 : 5));
      xyz.insert(xyz.end(), cell.begin(), cell.end());
      materials.push_back(below(3) ? random_material() : uint8_t(0));
    }
    expect(model_.set(xyz, materials), store_.set_voxels(xyz, materials));
  }

  void write_region() {
    Cell low = random_cell(), high = low;
    for (size_t i = 0; i < 3; ++i) high[i] += within(0, 24);
    high = clipped(high);
    if (below(3) == 0)
      for (size_t i = 0; i < 3; ++i) low[i] &= ~7, high[i] |= 7;
    size_t count = 1;
    for (size_t i = 0; i < 3; ++i) count *= size_t(high[i] - low[i] + 1);
    std::vector<uint8_t> dense(count);
    fill_dense(dense.data(), count);
    expect(model_.set_box(low, high, dense), store_.write_region(low, high, dense));
  }

  // Noise, one material, nothing, or one material with a hole.
  void fill_dense(uint8_t* voxels, size_t count) {
    const uint32_t kind = below(4);
    const uint8_t material = kind == 2 ? uint8_t(0) : random_material();
    for (size_t i = 0; i < count; ++i) voxels[i] = kind == 0 && below(2) ? random_material() : material;
    if (kind == 3) voxels[below(uint32_t(count))] = 0;
  }

  void write_bricks() {
    std::set<Cell> bricks;
    for (uint32_t count = 1 + below(20); count > 0; --count) {
      const Cell cell = random_cell();
      bricks.insert({cell[0] >> 3, cell[1] >> 3, cell[2] >> 3});
    }
    std::vector<Cell> places(bricks.begin(), bricks.end());
    std::shuffle(places.begin(), places.end(), random_);
    std::vector<uint8_t> voxels(places.size() * 512);
    for (size_t i = 0; i < places.size(); ++i) fill_dense(voxels.data() + i * 512, 512);
    expect(model_.set_bricks(places, voxels), store_.write_bricks(places, voxels));
  }

  void undo(uint32_t steps) {
    for (; steps > 0; --steps) {
      const bool there = model_.position() > 0;
      const std::optional<uint64_t> told = store_.undo();
      REQUIRE(told.has_value() == there);
      if (!there) break;
      expect(model_.undo(), *told);
    }
    compare_everything();
    compare_palette();
  }
  void redo(uint32_t steps) {
    for (; steps > 0; --steps) {
      const bool there = model_.position() < model_.steps();
      const std::optional<uint64_t> told = store_.redo();
      REQUIRE(told.has_value() == there);
      if (!there) break;
      expect(model_.redo(), *told);
    }
    compare_everything();
    compare_palette();
  }

  void pack() {
    REQUIRE(store_.pack() == !facts_.packed);
    expect_same(true);
  }
  void unpack() {
    REQUIRE(store_.unpack() == facts_.packed);
    expect_same(false);
  }
  void trim() {
    REQUIRE(store_.trim() == !facts_.packed);
    expect_same(facts_.packed);
  }

  void reopen() {
    if (!store_.reopen(uint32_t(random_()))) model_.forget_steps();
    compare_everything();
    REQUIRE(facts_.steps == model_.steps());
    REQUIRE(facts_.position == model_.position());
    compare_palette();
  }

  void recolour() {
    const uint8_t material = random_material(), red = uint8_t(below(256));
    store_.recolour(material, red);
    const bool packed = facts_.packed;
    expect(model_.recolour(material, red, store_.recolouring_is_a_step()), 0);
    REQUIRE(facts_.packed == packed);
    compare_palette();
  }
  void compare_palette() {
    for (const uint8_t material : {uint8_t(1), uint8_t(2), uint8_t(3), uint8_t(4), uint8_t(5), uint8_t(255)})
      REQUIRE(int(store_.red(material)) == int(model_.red(material)));
  }

  void refuse() {
    const bool taken_back = store_.refused_calls();
    if (taken_back) facts_.version = store_.facts().version;
    expect({}, 0);
  }

  TestedStore& store_;
  DenseModel model_;
  std::mt19937 random_;
  StoreFacts facts_;
  std::vector<uint8_t> read_;
};

}  // namespace

void check_random_history(TestedStore& store, DenseModel model, uint32_t seed, int changes) {
  changes /= kThreadSanitized ? 12 : kSanitized ? 4 : 1;
  History history(store, std::move(model), seed);
  history.compare_everything();
  for (int change = 0; change < changes; ++change) {
    INFO("seed " << seed << ", change " << change);
    history.change_once();
    if (change % 50 == 49) history.compare_everything();
  }
  INFO("seed " << seed << ", all steps undone and redone");
  history.walk_all_steps();
  history.compare_everything();
}

}  // namespace quarry::test
