// SPDX-License-Identifier: Apache-2.0
// history_test.cpp - the history of a .quarry file through the plugin interface. Its steps are those of the editor that
// made them.
#include <catch2/catch.hpp>

#include <quarry/quarry.hpp>

#include "tests/test_data.hpp"

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
