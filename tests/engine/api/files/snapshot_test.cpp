// SPDX-License-Identifier: Apache-2.0
// snapshot_test.cpp - snapshots of worlds: they stay as they are, whatever becomes of the world, and are read by
// threads while another edits.
#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <thread>
#include <vector>

#include "tests/engine/api/files/twin.hpp"
#include "tests/test_data.hpp"

namespace snapshot_test {

using namespace quarry::test;
namespace fs = std::filesystem;

namespace {

OneWorld snapshot_of(const OneWorld& world) {
  qry_world* snapshot = nullptr;
  require_ok(qry_world_snapshot(world.get(), &snapshot));
  return OneWorld(snapshot);
}

// Without the history, which a snapshot has none of.
Facts shown(qry_world* world) {
  Facts facts = facts_of(world);
  facts.length = facts.position = 0;
  return facts;
}

std::vector<uint8_t> region_of(qry_world* world) {
  const int32_t min[3] = {-83, -40, -71}, max[3] = {70, 51, 66};
  std::vector<uint8_t> voxels(154 * 92 * 138);
  require_ok(qry_world_read_region(world, min, max, voxels.data(), voxels.size()));
  return voxels;
}

}  // namespace

TEST_CASE(
    "c_api: a snapshot stays what the world was, however that is edited, undone, packed, trimmed or destroyed, and is "
    "saved as it is",
    "[one-caller]") {
  const Worlds worlds;
  const fs::path dir = scratch_dir("api_snapshot"), file = dir / "w.quarry";
  for (const uint32_t home : {QRY_HOME_HOST, QRY_HOME_EMULATED, QRY_HOME_DEVICE}) {
    INFO("home " << home);
    OneWorld world = new_world(worlds, home);
    if (!world) continue;
    const OneWorld empty = snapshot_of(world);
    std::vector<std::pair<OneWorld, Facts>> taken;
    for (uint32_t i = 0; i < 40; ++i) {
      change(world.get(), 21, i);
      if (i % 10 == 3) {
        taken.emplace_back(snapshot_of(world), shown(world.get()));
        CHECK(region_of(taken.back().first.get()) == region_of(world.get()));
      }
      if (i == 15) CHECK(qry_world_pack(world.get()) >= 0);
      if (i == 25) CHECK(qry_world_trim(world.get()) >= 0);
    }
    taken.emplace_back(snapshot_of(taken[1].first), taken[1].second);
    for (const auto& [snapshot, facts] : taken) CHECK((shown(snapshot.get()) == facts));
    world = OneWorld(nullptr);
    for (const auto& [snapshot, facts] : taken) {
      CHECK((shown(snapshot.get()) == facts));
      const std::string path = file.string();
      qry_save_info save = QRY_SAVE_INFO_INIT;
      save.path = path.c_str();
      require_ok(qry_world_save(snapshot.get(), &save));
      CHECK((facts_of(opened(worlds, file).get()) == facts));
    }
    CHECK(state_of(empty.get()).voxel_count == 0);
  }
}

TEST_CASE("c_api: a snapshot refuses every change, and of a world on the host takes little more than a list",
          "[one-caller]") {
  const Worlds worlds;
  const OneWorld world = new_world(worlds, QRY_HOME_HOST);
  std::vector<int32_t> xyz;
  std::vector<uint8_t> materials;
  for (int32_t i = 0; i < 6000; ++i) {  // bricks that are not full
    xyz.insert(xyz.end(), {(i % 100) * 8, (i / 100 % 10) * 8, (i / 1000) * 8});
    materials.push_back(uint8_t(1 + i % 255));
  }
  require_ok(qry_world_set_voxels(world.get(), 0, xyz.data(), materials.data(), materials.size(), nullptr));
  const OneWorld snapshot = snapshot_of(world);
  qry_memory_state memory = QRY_MEMORY_STATE_INIT, own = QRY_MEMORY_STATE_INIT;
  require_ok(qry_world_get_memory(world.get(), &memory));
  require_ok(qry_world_get_memory(snapshot.get(), &own));
  const uint64_t all = own.grid_bytes + own.mask_bytes + own.material_bytes + own.pyramid_bytes + own.scene_bytes;
  INFO("snapshot " << all << " B, world " << memory.mask_bytes + memory.material_bytes << " B");
  CHECK(own.scene_bytes >= 6000 * 20);
  CHECK(all * 8 < memory.mask_bytes + memory.material_bytes);

  qry_edit edit = QRY_EDIT_INIT;
  uint64_t ticket = 0;
  const int32_t at[3] = {1, 2, 3};
  uint8_t material = 1;
  qry_material of_palette;
  require_ok(qry_world_get_materials(snapshot.get(), 1, 1, &of_palette));
  for (const qry_result result :
       {qry_world_edit(snapshot.get(), &edit, nullptr), qry_world_submit_edit(snapshot.get(), &edit, &ticket),
        qry_world_set_voxels(snapshot.get(), 0, at, &material, 1, nullptr),
        qry_world_write_region(snapshot.get(), 0, at, at, &material, 1, nullptr),
        qry_world_combine(snapshot.get(), 0, world.get(), QRY_COMBINE_UNION, nullptr, nullptr),
        qry_world_dilate(snapshot.get(), 0, 6, 1, nullptr, nullptr),
        qry_world_keep_parts(snapshot.get(), 0, 6, 1, 0, nullptr, nullptr),
        qry_world_set_materials(snapshot.get(), 1, 1, &of_palette), qry_world_pack(snapshot.get()),
        qry_world_trim(snapshot.get()), qry_world_attach(snapshot.get(), "never.quarry")})
    CHECK(result == QRY_ERROR_UNSUPPORTED);
  CHECK(qry_world_undo(snapshot.get(), nullptr) == QRY_NOTHING_TO_DO);
  CHECK_FALSE(fs::exists("never.quarry"));
  CHECK((shown(snapshot.get()) == shown(world.get())));
  qry_world* none = world.get();
  CHECK(qry_world_snapshot(nullptr, &none) == QRY_ERROR_INVALID_ARGUMENT);
  CHECK(none == nullptr);
  CHECK(qry_world_snapshot(world.get(), nullptr) == QRY_ERROR_INVALID_ARGUMENT);
}

TEST_CASE("c_api: any threads read snapshots, make and destroy them, while another edits, undoes and trims the world") {
  const Worlds worlds;
  const OneWorld world = new_world(worlds, QRY_HOME_HOST);
  for (uint32_t i = 0; i < 20; ++i) change(world.get(), 31, i);
  const OneWorld first = snapshot_of(world);
  const Facts expected = shown(first.get());
  std::atomic<bool> done = false;
  std::atomic<int> reads = 0, wrong = 0;
  std::vector<std::thread> readers;
  for (int t = 0; t < 3; ++t)
    readers.emplace_back([&] {
      std::vector<uint8_t> voxels(expected.materials.size());
      std::vector<int32_t> xyz(expected.materials.size() * 3);
      for (size_t i = 0; i < expected.materials.size(); ++i)
        for (size_t a = 0; a < 3; ++a)
          xyz[3 * i + a] = expected.bricks[i / 512 * 3 + a] * 8 + int32_t(i % 512 >> (3 * a) & 7);
      while (!done || reads < 6) {
        qry_world* again = nullptr;
        wrong += qry_world_snapshot(first.get(), &again) != QRY_OK;
        wrong += qry_world_get_voxels(again, xyz.data(), voxels.data(), voxels.size()) != QRY_OK;
        wrong += voxels != expected.materials;
        qry_world_destroy(&again);
        ++reads;
      }
    });
  for (uint32_t i = 20; i < 50; ++i) {
    change(world.get(), 31, i);
    if (i % 20 == 0) CHECK(qry_world_trim(world.get()) >= 0);
    if (i % 10 == 0) CHECK((shown(snapshot_of(world).get()) == shown(world.get())));
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  CHECK(wrong == 0);
  CHECK(reads >= 6);
}

}  // namespace snapshot_test
