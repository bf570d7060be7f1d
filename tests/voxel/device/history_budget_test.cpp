// SPDX-License-Identifier: Apache-2.0
// history_budget_test.cpp - a world on a device whose history has a budget.
#include <catch2/catch.hpp>

#include "tests/voxel/device/homes.hpp"
#include "tests/voxel/taken.hpp"
#include "tests/voxel/worlds/edit_of.hpp"
#include "tests/voxel/worlds/history_budget.hpp"
#include "voxel/device/store.hpp"
#include "voxel/worlds/edit_shape.hpp"

namespace history_budget_test {

using namespace quarry;
using device::Store;
using test::taken;

namespace {

class BudgetedStore final : public test::BudgetedWorld {
 public:
  explicit BudgetedStore(const test::DeviceHome& home) : store_(taken(Store::create(taken(home.make())))) {}
  void set_budget(uint64_t bytes) override { REQUIRE(store_->set_history_budget(bytes)); }
  uint64_t edit(const test::DenseEdit& dense) override {
    const Edit edit = test::edit_of(dense);
    const auto shape = taken(EditShape::create(edit));
    return taken(store_->wait(taken(store_->edit(*shape.solid(), edit)))).voxels;
  }
  bool undo() override { return taken(store_->wait(taken(store_->undo()))).voxels > 0; }
  bool redo() override { return taken(store_->wait(taken(store_->redo()))).voxels > 0; }
  void forget() override { REQUIRE(store_->forget()); }
  test::HistoryFacts facts() override {
    const Store::HistoryUse use = taken(store_->history_use());
    const Store::State state = taken(store_->state());
    const Store::MemoryUse memory = taken(store_->memory_use());
    const uint64_t of_history = state.bricks - (state.keys - memory.full_keys);
    return {use.bytes,
            use.steps,
            use.position,
            use.dropped,
            memory.history_changes * sizeof(device::Record) + of_history * (sizeof(BrickMask) + sizeof(BrickMaterials)),
            state.bricks};
  }
  std::vector<uint8_t> read(test::Cell min, test::Cell max) override {
    const Box3 box{{min[0], min[1], min[2]}, {max[0], max[1], max[2]}};
    const auto across = [&](size_t axis) { return size_t(max[axis] - min[axis]) + 1; };
    std::vector<uint8_t> voxels(across(0) * across(1) * across(2));
    REQUIRE(store_->read_box(box, voxels.data(), device::Side::host));
    return voxels;
  }
  Store& store() { return *store_; }

 private:
  std::unique_ptr<Store> store_;
};

void on_all_homes(const std::function<void(const test::MakeWorld&)>& check) {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    check([&]() -> std::unique_ptr<test::BudgetedWorld> { return std::make_unique<BudgetedStore>(home); });
  }
}

}  // namespace

TEST_CASE("A history on a device keeps the newest steps that fit its budget, one at least, and undo goes as far") {
  on_all_homes([](const test::MakeWorld& make) {
    test::check_history_budget(make, 30'000, 1, 40);
    test::check_history_budget(make, 1, 3, 20);
  });
}

TEST_CASE("A world on a device frees the bricks of the steps that it drops") {
  on_all_homes([](const test::MakeWorld& make) { test::check_bricks_freed(make); });
}

TEST_CASE("A budget that a history on a device gets late drops its oldest steps, then those that redo reaches last") {
  on_all_homes([](const test::MakeWorld& make) { test::check_budget_set_late(make); });
}

TEST_CASE("Edits on a device that are not waited for keep to the budget, also where its records are packed") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    BudgetedStore world(home);
    Store& store = world.store();
    world.set_budget(5000);
    for (int32_t round = 0; round < 3; ++round) {
      for (int32_t i = 0; i < 20; ++i) {
        Edit edit;
        edit.a = edit.b = {8 * i, 8 * round, 0};
        taken(store.edit(*taken(EditShape::create(edit)).solid(), edit));
      }
      const test::HistoryFacts facts = world.facts();
      REQUIRE(facts.bytes <= 5000);
      REQUIRE(facts.bytes + facts.bytes / facts.steps > 5000);  // one more does not fit
      REQUIRE(facts.dropped + facts.steps == uint64_t(20 * (round + 1)));
      REQUIRE(store.trim());
      REQUIRE(world.facts().bytes == facts.bytes);
      REQUIRE(world.facts().bricks == uint64_t(20 * (round + 1)));  // before them there were none
    }
    const uint64_t steps = world.facts().steps;
    for (uint64_t i = 0; i < steps; ++i) REQUIRE(world.undo());
    REQUIRE_FALSE(world.undo());
    REQUIRE(taken(store.state()).voxels == 60 - steps);
    for (uint64_t i = 0; i < steps; ++i) REQUIRE(world.redo());
    REQUIRE(taken(store.state()).voxels == 60);
  }
}

namespace {

// Launched, and not waited for.
void launch_ball(Store& store, Int3 middle, double radius, uint8_t material, Mode mode = Mode::add) {
  Edit edit;
  edit.shape = Shape::sphere;
  edit.mode = mode;
  edit.a = edit.b = middle;
  edit.radius = radius;
  edit.material = material;
  taken(store.edit(*taken(EditShape::create(edit)).solid(), edit));
}

}  // namespace

TEST_CASE("A step of several edits is undone and redone as one, and no brick is kept that was between them") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    BudgetedStore world(home);
    Store& store = world.store();
    launch_ball(store, {0, 0, 0}, 9, 1);
    const uint64_t before = taken(store.state()).voxels;
    REQUIRE(store.begin_step());
    for (int32_t i = 0; i < 30; ++i) launch_ball(store, {i, 2 * i, -i}, 6, uint8_t(2 + i), Mode::fill);
    REQUIRE(store.end_step());
    const Store::State made = taken(store.state());
    REQUIRE(made.steps == 2);
    // Each brick of the world once, and those of it that the step has replaced.
    const test::HistoryFacts facts = world.facts();
    uint64_t replaced = 0, stored = 0;
    const auto steps = taken(store.step_records(1));
    for (const device::Record& record : steps[0].records) replaced += device::is_stored_index(record.before);
    for (const Store::Entry& entry : taken(store.entries())) stored += device::is_stored_index(entry.index);
    REQUIRE(replaced > 0);
    REQUIRE(facts.bricks == stored + replaced);
    const std::vector<uint8_t> voxels = world.read({-40, -40, -40}, {80, 80, 80});
    REQUIRE(world.undo());
    REQUIRE(taken(store.state()).voxels == before);
    REQUIRE(world.redo());
    REQUIRE((world.read({-40, -40, -40}, {80, 80, 80}) == voxels));
    REQUIRE(store.trim());
    REQUIRE(world.undo());
    REQUIRE(world.undo());
    REQUIRE_FALSE(world.undo());
    REQUIRE(taken(store.state()).voxels == 0);
  }
}

TEST_CASE("A step of edits that leave the world as it was is a step all the same") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    BudgetedStore world(home);
    Store& store = world.store();
    REQUIRE(store.begin_step());
    launch_ball(store, {0, 0, 0}, 20, 1);
    launch_ball(store, {0, 0, 0}, 25, 0, Mode::remove);
    REQUIRE(store.end_step());
    REQUIRE(taken(store.state()).steps == 1);
    REQUIRE(taken(store.state()).bricks == 0);
    REQUIRE(taken(store.step_records(0))[0].records.empty());
    REQUIRE(world.undo());
    REQUIRE(world.redo());
    REQUIRE(taken(store.state()).voxels == 0);
    launch_ball(store, {0, 0, 0}, 3, 1);
    REQUIRE(taken(store.state()).steps == 2);
  }
}

TEST_CASE("A step of several edits that is larger than the budget stays whole while undo takes it next") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    BudgetedStore world(home);
    Store& store = world.store();
    launch_ball(store, {0, 100, 0}, 9, 1);
    const uint64_t before = taken(store.state()).voxels;
    world.set_budget(1000);
    REQUIRE(store.begin_step());
    for (int32_t i = 0; i < 12; ++i) {
      launch_ball(store, {8 * i, 0, 0}, 7, 3);
      taken(store.state());
    }
    REQUIRE(store.end_step());
    REQUIRE(world.facts().steps == 1);
    REQUIRE(world.facts().dropped == 1);
    REQUIRE(world.undo());
    REQUIRE(taken(store.state()).voxels == before);
    REQUIRE_FALSE(world.undo());
  }
}

TEST_CASE("A step of several edits that gets no memory to be made one stays several, and is made one later") {
  uint64_t limit = 0;
  {
    auto store = taken(Store::create(device::make_emulated_executor()));
    for (int32_t i = 0; i < 4; ++i) launch_ball(*store, {64 * i, 0, 0}, 60, 3);
    REQUIRE(store->wait_all());
    limit = store->executor().size_bytes();
  }
  auto store = taken(Store::create(device::make_emulated_executor({0, limit, {}})));
  REQUIRE(store->begin_step());
  for (int32_t i = 0; i < 4; ++i) launch_ball(*store, {64 * i, 0, 0}, 60, 3);
  const uint64_t voxels = taken(store->state()).voxels;
  REQUIRE(store->end_step().error().code == ErrorCode::out_of_memory);
  REQUIRE(store->undo().error().code == ErrorCode::out_of_memory);
  REQUIRE(taken(store->state()).voxels == voxels);
  REQUIRE(taken(store->state()).steps == 4);
}

TEST_CASE("Steps that a history has dropped are recalled by what was before them, undone and redone") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    BudgetedStore world(home);
    Store& store = world.store();
    // Each step's world, and what the bricks that it changes were before it.
    struct Whole {
      std::vector<uint32_t> keys;
      std::vector<BrickMaterials> before;
    };
    std::vector<Whole> steps;
    std::vector<std::vector<uint8_t>> worlds{world.read({-60, -60, -60}, {90, 60, 60})};
    constexpr int32_t kSteps = 6;
    for (int32_t i = 0; i < kSteps; ++i) {
      Whole& whole = steps.emplace_back();
      for (int32_t z = -6; z < 6; ++z)
        for (int32_t y = -6; y < 6; ++y)
          for (int32_t x = -6; x < 10; ++x) whole.keys.push_back(brick_key({x, y, z}));
      whole.before.resize(whole.keys.size());
      REQUIRE(store.read(whole.keys, whole.before));
      launch_ball(store, {6 * i, i, -i}, 17 + i, uint8_t(1 + i), i % 3 == 2 ? Mode::remove : Mode::fill);
      worlds.push_back(world.read({-60, -60, -60}, {90, 60, 60}));
    }
    const uint64_t bricks = world.facts().bricks;
    world.set_budget(1);
    REQUIRE(world.facts().steps == 1);
    world.set_budget(0);
    const auto voxels_are = [&](size_t step) { return world.read({-60, -60, -60}, {90, 60, 60}) == worlds[step]; };
    // Back to the beginning, and forth again.
    REQUIRE(store.recall_step({{}, {}, steps[4].keys, steps[4].before}).error().code == ErrorCode::invalid_argument);
    for (size_t i = kSteps; i-- > 0;) {
      CAPTURE(i);
      if (i + 1 < kSteps) {
        REQUIRE(taken(store.recall_step({{}, {}, steps[i].keys, steps[i].before})).voxels > 0);
        REQUIRE(voxels_are(i + 1));
      }
      REQUIRE(world.undo());
      REQUIRE(voxels_are(i));
      REQUIRE(world.facts().steps == kSteps - i);
    }
    REQUIRE_FALSE(world.undo());
    REQUIRE(world.facts().bricks == bricks);
    REQUIRE(store.trim());
    for (size_t i = 0; i < kSteps; ++i) {
      REQUIRE(world.redo());
      REQUIRE(voxels_are(i + 1));
    }
    // With a budget the others go; a step that would change nothing is none.
    for (size_t i = kSteps; i-- > 0;) {
      world.set_budget(1);
      world.set_budget(0);
      if (world.facts().position == 0)
        REQUIRE(taken(store.recall_step({{}, {}, steps[i].keys, steps[i].before})).voxels > 0);
      REQUIRE(world.undo());
      REQUIRE(voxels_are(i));
      REQUIRE(world.redo());
      REQUIRE(voxels_are(i + 1));
      REQUIRE(store.trim());
      REQUIRE(world.undo());
      REQUIRE(voxels_are(i));
      // The next one is recalled beside it, with a budget that has no room for both.
      if (i % 2 == 0) world.set_budget(1);
    }
    world.set_budget(0);
    REQUIRE(taken(store.recall_step({{}, {}, steps[0].keys, steps[0].before})).voxels == 0);
    REQUIRE(store.forget());
    REQUIRE(world.facts().bricks == 0);
  }
}

}  // namespace history_budget_test
