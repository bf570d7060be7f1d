// SPDX-License-Identifier: Apache-2.0
// history_test.cpp - the history of a .quarry file through the plugin interface. Its steps are those of the editor that
// made them.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include <quarry/quarry.hpp>

#include "tests/engine/api/world_at.hpp"
#include "tests/test_data.hpp"

namespace history_test {

namespace {

qry_context* context_without_device() {
  qry_context_info info = QRY_CONTEXT_INFO_INIT;
  info.device = QRY_DEVICE_NEVER;
  qry_context* context = nullptr;
  REQUIRE(qry_context_create(QRY_ABI_VERSION, &info, &context) == QRY_OK);
  return context;
}

struct Memory {
  qry_memory_state state = QRY_MEMORY_STATE_INIT;
  qry_memory_bricks bricks = QRY_MEMORY_BRICKS_INIT;
  qry_memory_history history = QRY_MEMORY_HISTORY_INIT;
};
Memory memory_of(const qry_world* world) {
  Memory memory;
  memory.state.next = &memory.bricks;
  memory.bricks.next = &memory.history;
  INFO(qry_last_error());
  REQUIRE(qry_world_get_memory(world, &memory.state) == QRY_OK);
  return memory;
}

qry_edit ball(int32_t x, uint32_t material) {
  qry_edit edit = QRY_EDIT_INIT;
  edit.shape = QRY_SHAPE_SPHERE;
  edit.mode = QRY_MODE_FILL;
  edit.a[0] = x;
  edit.radius = 11.5;
  edit.material = material;
  return edit;
}

}  // namespace

TEST_CASE(
    "c_api: undo and redo go by the steps of a world file: a stroke whole, and a change of a material with its "
    "version") {
  qry_context_info info = QRY_CONTEXT_INFO_INIT;
  info.device = QRY_DEVICE_NEVER;
  auto context = qry::Context::create(info);
  REQUIRE(context.ok());
  auto world = context->open_world(quarry::test::asset("compat/world-steps.quarry").c_str());
  REQUIRE(world.ok());
  const auto roughness = [&] {
    qry_material material{};
    REQUIRE(qry_world_get_materials(world->get(), 7, 1, &material) == QRY_OK);
    return material.roughness;
  };
  // The file has a ball, a stroke of four edits, a material, and a box that was undone.
  CHECK(world->state()->history_length == 4);
  CHECK(world->state()->history_position == 3);
  const float changed = roughness();
  uint64_t version = world->state()->version;
  auto voxels = world->undo();
  REQUIRE(voxels.ok());
  CHECK(*voxels == 0);
  CHECK(roughness() != changed);
  CHECK(world->state()->version > version);
  CHECK(*world->undo() == 15);
  CHECK(world->state()->history_position == 1);
  CHECK(world->state()->voxel_count == 257);
  CHECK(*world->undo() == 257);
  CHECK(world->undo().code() == QRY_NOTHING_TO_DO);
  version = world->state()->version;
  for (const uint64_t step : {uint64_t(257), uint64_t(15), uint64_t(0), uint64_t(8)}) CHECK(*world->redo() == step);
  CHECK(world->redo().code() == QRY_NOTHING_TO_DO);
  CHECK(roughness() == changed);
  CHECK(world->state()->version == version + 4);
  CHECK(world->state()->voxel_count == 265);
}

TEST_CASE("c_api: the history's memory keeps to its budget, and undo beyond it is nothing to do") {
  qry_context* context = context_without_device();
  for (const uint32_t home : {uint32_t(QRY_HOME_HOST), uint32_t(QRY_HOME_EMULATED), uint32_t(QRY_HOME_DEVICE)}) {
    INFO("home " << home);
    qry_world* world = quarry::test::world_at(context, home);
    if (!world) continue;
    CHECK(memory_of(world).history.budget_bytes == 0);
    constexpr uint64_t kBudget = 200'000;
    REQUIRE(qry_world_set_history_budget(world, kBudget) == QRY_OK);
    constexpr uint32_t kEdits = 20;
    std::vector<uint64_t> voxels{0};
    for (uint32_t i = 0; i < kEdits; ++i) {
      const qry_edit edit = ball(int32_t(i * 3), 1 + i % 7);
      // Some without waiting for them.
      uint64_t ticket = 0;
      if (i % 3) REQUIRE(qry_world_submit_edit(world, &edit, &ticket) == QRY_OK);
      else REQUIRE(qry_world_edit(world, &edit, nullptr) == QRY_OK);
      qry_world_state state = QRY_WORLD_STATE_INIT;
      if (i % 3 != 1) REQUIRE(qry_world_get_state(world, &state) == QRY_OK);
      voxels.push_back(state.voxel_count);
    }
    const Memory memory = memory_of(world);
    CHECK(memory.history.budget_bytes == kBudget);
    CHECK(memory.history.used_bytes <= kBudget);
    CHECK(memory.bricks.history_bricks * 576 <= memory.history.used_bytes);
    CHECK(memory.history.undo_steps > 1);
    CHECK(memory.history.redo_steps == 0);
    CHECK(memory.history.dropped_steps > 1);
    CHECK(memory.history.undo_steps + memory.history.dropped_steps == kEdits);
    qry_world_state state = QRY_WORLD_STATE_INIT;
    for (uint64_t i = kEdits; i-- > memory.history.dropped_steps;) {
      REQUIRE(qry_world_undo(world, nullptr) == QRY_OK);
      REQUIRE(qry_world_get_state(world, &state) == QRY_OK);
      CHECK(state.history_position == i - memory.history.dropped_steps);
      if (voxels[i]) CHECK(state.voxel_count == voxels[i]);
    }
    CHECK(qry_world_undo(world, nullptr) == QRY_NOTHING_TO_DO);
    CHECK(memory_of(world).history.redo_steps == memory.history.undo_steps);
    CHECK(memory_of(world).history.used_bytes == memory.history.used_bytes);
    qry_world_destroy(&world);
  }
  CHECK(qry_world_set_history_budget(nullptr, 1) == QRY_ERROR_INVALID_ARGUMENT);
  qry_context_destroy(&context);
}

TEST_CASE("c_api: a budget drops the steps of an opened file, those of materials too, from the oldest on") {
  qry_context* context = context_without_device();
  for (const uint32_t home : {uint32_t(QRY_HOME_HOST), uint32_t(QRY_HOME_EMULATED)}) {
    INFO("home " << home);
    const std::string path = quarry::test::asset("compat/world-steps.quarry").string();
    qry_world_home_info wanted = QRY_WORLD_HOME_INFO_INIT;
    wanted.home = home;
    qry_open_info info = QRY_OPEN_INFO_INIT;
    info.path = path.c_str();
    info.next = &wanted;
    qry_world* world = nullptr;
    REQUIRE(qry_world_open(context, &info, &world) == QRY_OK);
    // A ball, a stroke, a material, and a box that was undone: the step that undo takes next stays. On a device that
    // has no part there, and the stroke before it does.
    REQUIRE(qry_world_set_history_budget(world, 1) == QRY_OK);
    qry_memory_history history = memory_of(world).history;
    CHECK(history.undo_steps == (home == QRY_HOME_HOST ? 1u : 2u));
    CHECK(history.redo_steps == 0);
    CHECK(history.dropped_steps == (home == QRY_HOME_HOST ? 3u : 2u));
    uint64_t changed = 1;
    REQUIRE(qry_world_undo(world, &changed) == QRY_OK);
    CHECK(changed == 0);
    if (home != QRY_HOME_HOST) REQUIRE(qry_world_undo(world, &changed) == QRY_OK);
    CHECK(qry_world_undo(world, nullptr) == QRY_NOTHING_TO_DO);
    CHECK(memory_of(world).history.redo_steps == history.undo_steps);
    // A new step replaces them.
    const qry_edit edit = ball(100, 3);
    REQUIRE(qry_world_edit(world, &edit, nullptr) == QRY_OK);
    history = memory_of(world).history;
    CHECK(history.undo_steps == 1);
    CHECK(history.redo_steps == 0);
    REQUIRE(qry_world_undo(world, nullptr) == QRY_OK);
    CHECK(qry_world_undo(world, nullptr) == QRY_NOTHING_TO_DO);
    qry_world_destroy(&world);
  }
  qry_context_destroy(&context);
}

}  // namespace history_test
