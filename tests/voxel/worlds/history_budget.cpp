// SPDX-License-Identifier: Apache-2.0
// history_budget.cpp - makes the changes, and knows by plain sums which steps must be kept.
#include "tests/voxel/worlds/history_budget.hpp"

#include <catch2/catch.hpp>
#include <numeric>
#include <random>

#include "tests/app/sanitized.hpp"

namespace quarry::test {
namespace {

constexpr Cell kMin{-32, -32, -32}, kSize{64, 64, 64};

DenseEdit random_edit(std::mt19937& random) {
  const auto upto = [&](uint32_t most) { return int32_t(random() % (most + 1)); };
  DenseEdit edit;
  edit.shape = random() % 2 ? DenseShape::sphere : DenseShape::box;
  edit.mode = random() % 3 ? DenseMode::fill : DenseMode::remove;
  edit.material = uint8_t(1 + random() % 5);
  edit.a = {upto(30) - 16, upto(30) - 16, upto(30) - 16};
  edit.b = edit.a;
  if (edit.shape == DenseShape::sphere) edit.radius_quarters = 4 * upto(12) + 1;
  else edit.b = {edit.a[0] + upto(14), edit.a[1] + upto(14), edit.a[2] + upto(14)};
  return edit;
}

// How many of the newest fit, one at least.
size_t kept(const std::vector<uint64_t>& steps, uint64_t budget) {
  size_t count = 0;
  for (uint64_t sum = 0; count < steps.size(); ++count) {
    sum += steps[steps.size() - 1 - count];
    if (sum > budget && count > 0) break;
  }
  return count;
}

}  // namespace

void check_history_budget(const MakeWorld& make, uint64_t budget, uint32_t seed, int changes) {
  if (kSanitized) changes /= 2;
  const auto world = make(), unlimited = make();
  world->set_budget(budget);
  DenseModel model(kMin, kSize);
  std::mt19937 random(seed);
  // All states from the first on, what the steps between them took, and how many of the steps are gone.
  std::vector<std::vector<uint8_t>> states{model.voxels()};
  std::vector<uint64_t> sizes;
  size_t position = 0, gone = 0;
  for (int i = 0; i < changes; ++i) {
    INFO("seed " << seed << ", change " << i);
    const auto choice = uint32_t(random() % 10);
    if (choice < 2) {
      REQUIRE(world->undo() == (position > gone));
      if (position > gone) {
        REQUIRE(unlimited->undo());
        --position;
      }
    } else if (choice < 3) {
      REQUIRE(world->redo() == (position < sizes.size()));
      REQUIRE(unlimited->redo() == (position < sizes.size()));
      position += position < sizes.size();
    } else {
      const DenseEdit edit = random_edit(random);
      DenseModel next = model;
      const auto change = next.apply(edit);
      REQUIRE(world->edit(edit) == change.voxels);
      REQUIRE(unlimited->edit(edit) == change.voxels);
      if (change.voxels == 0) continue;
      model = std::move(next);
      states.resize(++position);
      states.push_back(model.voxels());
      sizes.resize(position - 1);
      sizes.push_back(unlimited->facts().bytes - std::accumulate(sizes.begin(), sizes.end(), uint64_t(0)));
      gone = std::max(gone, position - kept(sizes, budget));
    }
    if (choice < 3) {
      model.set_box(model.min(), model.max(), states[position]);
    }
    const HistoryFacts facts = world->facts();
    REQUIRE(facts.steps == sizes.size() - gone);
    REQUIRE(facts.position == position - gone);
    REQUIRE(facts.dropped == gone);
    REQUIRE(facts.bytes == std::accumulate(sizes.begin() + std::ptrdiff_t(gone), sizes.end(), uint64_t(0)));
    REQUIRE((facts.bytes <= budget || facts.steps == 1));
    REQUIRE(facts.held_bytes <= facts.bytes);
    if (i % 4 == 0) REQUIRE(world->read(model.min(), model.max()) == model.voxels());
  }
  REQUIRE(gone > 0);
  for (; position > gone; --position) {
    REQUIRE(world->undo());
    REQUIRE(world->read(model.min(), model.max()) == states[position - 1]);
  }
  REQUIRE_FALSE(world->undo());
  for (; position < sizes.size(); ++position) REQUIRE(world->redo());
  REQUIRE(world->read(model.min(), model.max()) == states.back());
}

void check_bricks_freed(const MakeWorld& make) {
  const auto budgeted = make(), forgetful = make(), unlimited = make();
  budgeted->set_budget(1);
  std::mt19937 random(5);
  for (int i = 0; i < 30; ++i) {
    const DenseEdit edit = random_edit(random);
    // An edit that changes nothing leaves the step before it.
    const uint64_t changed = unlimited->edit(edit);
    if (changed) forgetful->forget();
    REQUIRE(budgeted->edit(edit) == changed);
    REQUIRE(forgetful->edit(edit) == changed);
    REQUIRE(budgeted->facts().steps <= 1);
    REQUIRE(budgeted->facts().bricks == forgetful->facts().bricks);
  }
  REQUIRE(budgeted->facts().bricks < unlimited->facts().bricks);
  // The same from a budget that is set now.
  unlimited->set_budget(1);
  REQUIRE(unlimited->facts().bricks == budgeted->facts().bricks);
}

void check_budget_set_late(const MakeWorld& make) {
  const auto world = make();
  std::vector<uint64_t> sums{0};
  for (int32_t i = 0; i < 6; ++i) {
    DenseEdit edit;
    edit.a = edit.b = {8 * i, 0, 0};
    REQUIRE(world->edit(edit) == 1);
    sums.push_back(world->facts().bytes);
  }
  for (int i = 0; i < 2; ++i) REQUIRE(world->undo());
  REQUIRE(world->facts().bytes == sums[6]);  // undone or not
  // Room for all but one: the oldest goes.
  world->set_budget(sums[6] - 1);
  HistoryFacts facts = world->facts();
  REQUIRE(facts.steps == 5);
  REQUIRE(facts.position == 3);
  REQUIRE(facts.dropped == 1);
  // Room for two: of what is applied the newest stays, of what is undone what comes next.
  world->set_budget(sums[2]);
  facts = world->facts();
  REQUIRE(facts.steps == 2);
  REQUIRE(facts.position == 1);
  REQUIRE(world->redo());
  REQUIRE_FALSE(world->redo());
  REQUIRE(world->undo());
  REQUIRE(world->undo());
  REQUIRE_FALSE(world->undo());
  // Nothing is applied: what redo takes next stays, also where it alone is too large.
  world->set_budget(1);
  REQUIRE(world->facts().steps == 1);
  REQUIRE(world->redo());
  REQUIRE_FALSE(world->redo());
  std::vector<uint8_t> wanted(48, 0);
  for (size_t i = 0; i < 4; ++i) wanted[8 * i] = 1;
  REQUIRE(world->read({0, 0, 0}, {47, 0, 0}) == wanted);
  // Without one, all is kept.
  world->set_budget(0);
  DenseEdit edit;
  edit.a = edit.b = {0, 8, 0};
  REQUIRE(world->edit(edit) == 1);
  REQUIRE(world->facts().steps == 2);
}

}  // namespace quarry::test
