// SPDX-License-Identifier: Apache-2.0
// flattened_test.cpp - scenes of turned and overlapping instances that are opened as one volume: flattened by the
// device that is the world's home, beside the host.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/app/sanitized.hpp"
#include "tests/engine/api/files/faulty.hpp"
#include "tests/file_bytes.hpp"
#include "tests/test_data.hpp"
#include "tests/voxel/io/vox/file_builder.hpp"

namespace flattened_test {

using namespace quarry::test;
namespace fs = std::filesystem;

namespace {

// A .vox scene: a solid block with a hole, a sparse one, and one that is shown nowhere; instances by all rotations of
// the format, about one middle and beside each other, on whole bricks and not; some hidden, some in a hidden layer.
void write_scene(const fs::path& file, int32_t far_away = 0) {
  VoxBuilder vox(200);
  std::vector<VoxBuilder::Voxel> block, sparse;
  for (uint32_t x = 0; x < 40; ++x)
    for (uint32_t y = 0; y < 32; ++y)
      for (uint32_t z = 0; z < 24; ++z) {
        const auto at = [&](uint32_t colour) {
          return VoxBuilder::Voxel{uint8_t(x), uint8_t(y), uint8_t(z), uint8_t(colour)};
        };
        if (x != 20 || y != 9) block.push_back(at(x < 33 ? 4 : 1 + (x + y * 3 + z) % 200));
        if ((x * 7 + y * 5 + z * 3) % 11 == 0) sparse.push_back(at(1 + (x ^ y ^ z)));
      }
  vox.model(40, 32, 24, block).model(40, 32, 24, sparse).model(1, 1, 1, {{0, 0, 0, 9}});
  std::vector<int64_t> children;
  vox.transform(0, 1, {{}});
  int64_t id = 10;
  int32_t number = 0;
  for (uint32_t first = 0; first < 3; ++first)
    for (uint32_t second = 0; second < 3; ++second)
      for (uint32_t signs = 0; signs < 8 && first != second; ++signs, ++number, id += 2) {
        const uint32_t turn = first | second << 2 | signs << 4;
        const int32_t x = number % 3 ? number % 7 * 24 - 60 : number, y = number / 7 * 16 - 40, z = number % 5 * 9;
        children.push_back(id);
        vox.transform(id, 2 + number % 2,
                      {{{"_r", std::to_string(turn)},
                        {"_t", std::to_string(x) + " " + std::to_string(y) + " " + std::to_string(z)}}},
                      number % 9 == 4 ? VoxBuilder::Pairs{{"_hidden", "1"}} : VoxBuilder::Pairs{}, number % 10 == 7);
      }
  if (far_away) {
    children.push_back(id);
    vox.transform(id, 2, {{{"_t", std::to_string(far_away) + " 0 0"}}}, {{"_name", "far away"}});
  }
  vox.group(1, children).shape(2, {{0, {}}}).shape(3, {{1, {}}});
  vox.dict_chunk("LAYR", 0, {}).dict_chunk("LAYR", 1, {{"_hidden", "1"}});
  write_bytes(file, vox.bytes());
}

// The same as a world file, with its volumes and instances.
void write_world_file(const Worlds& worlds, const fs::path& vox, const fs::path& file) {
  const OneWorld world = opened(worlds, vox);
  REQUIRE(state_of(world.get()).instance_count == 48);
  const std::string path = file.string();
  qry_save_info save = QRY_SAVE_INFO_INIT;
  save.path = path.c_str();
  require_ok(qry_world_save(world.get(), &save));
}

qry_flatten_state flattening_of(qry_world* world) {
  qry_flatten_state flattening = QRY_FLATTEN_STATE_INIT;
  qry_home_state home = QRY_HOME_STATE_INIT;
  home.next = &flattening;
  require_ok(qry_world_get_home(world, &home));
  return flattening;
}

// Of the homes that this machine has.
std::vector<uint32_t> device_homes(const Worlds& worlds) {
  std::vector<uint32_t> homes = {QRY_HOME_EMULATED};
  if (new_world(worlds, QRY_HOME_DEVICE)) homes.push_back(QRY_HOME_DEVICE);
  return homes;
}

}  // namespace

TEST_CASE("c_api: a device flattens a scene that is opened there to the world that the host flattens it to") {
  const Worlds worlds;
  const fs::path dir = scratch_dir("api_flattened"), vox = dir / "s.vox", file = dir / "s.quarry";
  write_scene(vox);
  write_world_file(worlds, vox, file);
  const OneWorld here = opened(worlds, vox, QRY_HOME_HOST, QRY_OPEN_FLATTEN);
  const Facts facts = facts_of(here.get());
  CHECK(facts.voxels > 100000);
  CHECK(flattening_of(here.get()).flattened == 1);
  CHECK(flattening_of(here.get()).ms > 0);
  CHECK(flattening_of(opened(worlds, vox).get()).flattened == 0);
  for (const uint32_t home : device_homes(worlds))
    for (const fs::path& from : {vox, file}) {
      INFO("home " << home << ", " << from);
      const OneWorld there = opened(worlds, from, home, QRY_OPEN_FLATTEN);
      CHECK((facts_of(there.get()) == facts));
      const qry_world_state state = state_of(there.get()), expected = state_of(here.get());
      CHECK((state.volume_count == 1 && state.instance_count == 1 && state.version == 0));
      CHECK(std::equal(state.min, state.min + 3, expected.min));
      CHECK(std::equal(state.max, state.max + 3, expected.max));
      const qry_flatten_state flattening = flattening_of(there.get());
      CHECK((flattening.flattened == 1 && flattening.ms > 0 && flattening.room_ms > 0));
      // It is a world as any other.
      require_ok(edit_at(there.get(), QRY_SHAPE_SPHERE, 10, 9, 3));
      CHECK(state_of(there.get()).history_length == 1);
      require_ok(qry_world_undo(there.get(), nullptr));
      CHECK(facts_of(there.get()).materials == facts.materials);
    }
}

TEST_CASE("c_api: an instance that leaves the world is named by the same words at every home, and there is no world") {
  const Worlds worlds;
  const fs::path dir = scratch_dir("api_flattened_outside"), vox = dir / "s.vox", file = dir / "s.quarry";
  write_scene(vox, 8185);
  const std::string path = vox.string();
  std::vector<std::string> said;
  for (const uint32_t home : {uint32_t(QRY_HOME_HOST), uint32_t(QRY_HOME_EMULATED), uint32_t(QRY_HOME_AUTOMATIC)}) {
    qry_world_home_info wanted = QRY_WORLD_HOME_INFO_INIT;
    wanted.home = home;
    qry_open_info info = QRY_OPEN_INFO_INIT;
    info.path = path.c_str();
    info.flags = QRY_OPEN_FLATTEN;
    info.next = &wanted;
    qry_world* world = nullptr;
    CHECK(qry_world_open(worlds.context(), &info, &world) == QRY_ERROR_OUT_OF_BOUNDS);
    CHECK(world == nullptr);
    said.emplace_back(qry_last_error());
  }
  CHECK_THAT(said[0], Catch::StartsWith(path + ": instance 48 (\"far away\")"));
  CHECK(said[1] == said[0]);
  CHECK(said[2] == said[0]);
}

TEST_CASE(
    "c_api: with the device lost, or its memory refused, at any call of opening a scene as one volume there is no "
    "world, or the same one",
    "[one-caller]") {
  const Worlds worlds;
  const fs::path dir = scratch_dir("api_flattened_faults"), vox = dir / "s.vox", file = dir / "s.quarry";
  write_scene(vox);
  write_world_file(worlds, vox, file);
  const qry_world_state expected = state_of(opened(worlds, vox, QRY_HOME_HOST, QRY_OPEN_FLATTEN).get());
  int failed = 0;
  for (const qry_result kind : {QRY_ERROR_DEVICE_LOST, QRY_ERROR_OUT_OF_MEMORY}) {
    bool fired = true;
    for (uint64_t number = 1; fired; number += kSanitized ? 7 : 2) {
      INFO("call " << number << ", fault " << kind);
      Fault fault;
      const bool memory = kind == QRY_ERROR_OUT_OF_MEMORY;
      fault.arm(kind, number, memory ? uint32_t(QRY_EMULATED_ALLOCATION) : Fault::kAny, number % 4 == 3);
      qry_result result;
      const OneWorld world = faulty_world(worlds, fault, number % 3 ? file : vox, &result, QRY_OPEN_FLATTEN);
      fired = fault.disarm();
      INFO((result ? qry_last_error() : ""));
      if (fired && !(memory && result == QRY_OK)) {
        ++failed;
        CHECK(result == kind);
      } else {
        CHECK(result == QRY_OK);
        CHECK(state_of(world.get()).voxel_count == expected.voxel_count);
        CHECK(state_of(world.get()).brick_count == expected.brick_count);
      }
    }
  }
  CHECK(failed > (kSanitized ? 10 : 40));
}

}  // namespace flattened_test
