// SPDX-License-Identifier: Apache-2.0
// random_history_test.cpp - thousands of random changes through the plugin interface, beside a plain array of bytes
// that shares nothing with the library.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <quarry/quarry.h>

#include "tests/app/sanitized.hpp"
#include "tests/test_data.hpp"
#include "tests/voxel/worlds/random_history.hpp"

namespace random_history_test {

namespace {

using quarry::test::Cell;
using quarry::test::DenseEdit;
using quarry::test::DenseModel;
using quarry::test::StoreFacts;

void require_ok(qry_result result) {
  INFO(qry_last_error());
  REQUIRE(result == QRY_OK);
}

// False: there was nothing to do.
bool done(qry_result result) {
  INFO(qry_last_error());
  REQUIRE(result >= 0);
  return result == QRY_OK;
}

class PluginWorld final : public quarry::test::TestedStore {
 public:
  PluginWorld(uint32_t threads, const std::filesystem::path& folder, uint32_t home = QRY_HOME_HOST)
      : path_((folder / "world.quarry").string()) {
    home_.home = home;
    qry_context_info info = QRY_CONTEXT_INFO_INIT;
    info.device = QRY_DEVICE_NEVER;
    info.threads = threads;
    require_ok(qry_context_create(QRY_ABI_VERSION, &info, &context_));
    qry_world_info world_info = QRY_WORLD_INFO_INIT;
    world_info.next = &home_;
    require_ok(qry_world_create(context_, &world_info, &world_));
  }
  ~PluginWorld() override {
    qry_world_destroy(&world_);
    qry_context_destroy(&context_);
  }
  PluginWorld(const PluginWorld&) = delete;
  PluginWorld& operator=(const PluginWorld&) = delete;

  bool makes_strokes() const override { return false; }
  uint64_t edit(const DenseEdit& dense, bool) override {
    qry_edit edit = QRY_EDIT_INIT;
    edit.shape = uint32_t(dense.shape);  // both are in the order of quarry.h
    edit.mode = uint32_t(dense.mode);
    edit.material = dense.material;
    edit.from = dense.from;
    for (size_t i = 0; i < 3; ++i) edit.a[i] = dense.a[i], edit.b[i] = dense.b[i];
    edit.radius = dense.radius();
    uint64_t changed = kNotTold;
    require_ok(qry_world_edit(world_, &edit, &changed));
    return changed;
  }
  uint64_t set_voxels(const std::vector<int32_t>& xyz, const std::vector<uint8_t>& materials) override {
    uint64_t changed = kNotTold;
    require_ok(qry_world_set_voxels(world_, 0, xyz.data(), materials.data(), materials.size(), &changed));
    return changed;
  }
  uint64_t write_region(Cell min, Cell max, const std::vector<uint8_t>& materials) override {
    uint64_t changed = kNotTold;
    require_ok(qry_world_write_region(world_, 0, min.data(), max.data(), materials.data(), materials.size(), &changed));
    return changed;
  }
  // There is no such call: a list of all their voxels, which must do the same.
  uint64_t write_bricks(const std::vector<Cell>& bricks, const std::vector<uint8_t>& materials) override {
    std::vector<int32_t> xyz;
    for (const Cell& brick : bricks)
      for (int32_t n = 0; n < 512; ++n)
        for (const int32_t at : {brick[0] * 8 + n % 8, brick[1] * 8 + n / 8 % 8, brick[2] * 8 + n / 64})
          xyz.push_back(at);
    return set_voxels(xyz, materials);
  }
  bool refused_calls() override {
    const int32_t outside[] = {1, 2, 3, 0, 4096, 0};
    const uint8_t materials[] = {7, 7};
    REQUIRE(qry_world_set_voxels(world_, 0, outside, materials, 2, nullptr) == QRY_ERROR_OUT_OF_BOUNDS);
    const int32_t low[3] = {0, 0, 8191}, high[3] = {0, 0, 8192};
    REQUIRE(qry_world_write_region(world_, 0, low, high, materials, 2, nullptr) == QRY_ERROR_OUT_OF_BOUNDS);
    qry_edit edit = QRY_EDIT_INIT;
    edit.shape = QRY_SHAPE_SPHERE;
    edit.radius = -1;
    REQUIRE(qry_world_edit(world_, &edit, nullptr) == QRY_ERROR_INVALID_ARGUMENT);
    edit.a[1] = -4096;
    edit.radius = 2;
    REQUIRE(qry_world_edit(world_, &edit, nullptr) == QRY_ERROR_OUT_OF_BOUNDS);
    return false;
  }
  std::optional<uint64_t> undo() override {
    uint64_t changed = kNotTold;
    return done(qry_world_undo(world_, &changed)) ? std::optional(changed) : std::nullopt;
  }
  std::optional<uint64_t> redo() override {
    uint64_t changed = kNotTold;
    return done(qry_world_redo(world_, &changed)) ? std::optional(changed) : std::nullopt;
  }
  void recolour(uint8_t index, uint8_t red) override {
    qry_material material = at(index);
    material.rgba[0] = red;
    require_ok(qry_world_set_materials(world_, index, 1, &material));
  }
  bool recolouring_is_a_step() const override { return false; }
  uint8_t red(uint8_t index) override { return at(index).rgba[0]; }
  bool pack() override { return done(qry_world_pack(world_)); }
  bool unpack() override { return done(qry_world_unpack(world_)); }
  bool trim() override { return done(qry_world_trim(world_)); }
  bool reopen(uint32_t random) override {
    qry_save_info save = QRY_SAVE_INFO_INIT;
    save.path = path_.c_str();
    require_ok(qry_world_save(world_, &save));
    qry_world_destroy(&world_);
    qry_open_info open = QRY_OPEN_INFO_INIT;
    open.path = path_.c_str();
    open.flags = random % 4;  // as it is, flattened, packed, both
    open.next = &home_;
    require_ok(qry_world_open(context_, &open, &world_));
    const StoreFacts opened = facts();
    REQUIRE(opened.version == 0);
    REQUIRE(opened.packed == ((open.flags & QRY_OPEN_PACK) != 0));
    return false;
  }
  StoreFacts facts() override {
    qry_world_state state = QRY_WORLD_STATE_INIT;
    require_ok(qry_world_get_state(world_, &state));
    qry_home_state home = QRY_HOME_STATE_INIT;
    require_ok(qry_world_get_home(world_, &home));
    REQUIRE(home.home == home_.home);
    qry_memory_bricks held = QRY_MEMORY_BRICKS_INIT;
    qry_memory_state memory = QRY_MEMORY_STATE_INIT;
    memory.next = &held;
    require_ok(qry_world_get_memory(world_, &memory));
    REQUIRE(memory.grid_bytes + memory.mask_bytes + memory.material_bytes + memory.pyramid_bytes == state.size_bytes);
    REQUIRE(held.keys == state.brick_count);
    REQUIRE(held.full_keys <= held.keys);
    qry_grid_stats stats = QRY_GRID_STATS_INIT;
    require_ok(qry_world_get_grid_stats(world_, &stats));
    REQUIRE(stats.live == state.brick_count);
    StoreFacts facts;
    facts.version = state.version;
    facts.voxels = state.voxel_count;
    facts.bricks = state.brick_count;
    facts.steps = state.history_length;
    facts.position = state.history_position;
    for (size_t i = 0; i < 3; ++i) facts.min[i] = state.min[i], facts.max[i] = state.max[i];
    facts.packed = memory.packed != 0;
    return facts;
  }
  void read(Cell min, Cell max, std::vector<uint8_t>& materials) override {
    materials.assign(size_t(max[0] - min[0] + 1) * size_t(max[1] - min[1] + 1) * size_t(max[2] - min[2] + 1), 77);
    require_ok(qry_world_read_region(world_, min.data(), max.data(), materials.data(), materials.size()));
    // The same voxels asked for one by one, of a few.
    std::vector<int32_t> xyz;
    std::vector<uint8_t> expected;
    for (size_t i = 0; i < materials.size(); i += 4999) {
      const auto at = int32_t(i), width = max[0] - min[0] + 1, height = max[1] - min[1] + 1;
      xyz.insert(xyz.end(), {min[0] + at % width, min[1] + at / width % height, min[2] + at / width / height});
      expected.push_back(materials[i]);
    }
    std::vector<uint8_t> got(expected.size(), 78);
    require_ok(qry_world_get_voxels(world_, xyz.data(), got.data(), got.size()));
    REQUIRE((got == expected));
  }
  std::optional<std::vector<Cell>> bricks() override {
    uint64_t count = 0;
    REQUIRE(qry_world_list_bricks(world_, nullptr, &count) >= 0);
    std::vector<Cell> bricks(count);
    require_ok(qry_world_list_bricks(world_, count ? bricks[0].data() : nullptr, &count));
    REQUIRE(count == bricks.size());
    return bricks;
  }

 private:
  static constexpr uint64_t kNotTold = 123456789;

  qry_material at(uint8_t index) const {
    qry_material material{};
    require_ok(qry_world_get_materials(world_, index, 1, &material));
    return material;
  }

  qry_context* context_ = nullptr;
  qry_world* world_ = nullptr;
  std::string path_;
  qry_world_home_info home_ = QRY_WORLD_HOME_INFO_INIT;
};

}  // namespace

TEST_CASE(
    "c_api: through 8000 random changes, undo, redo, packing, trimming and saving, a world has the voxels, counts, "
    "bounds and bricks of a plain array",
    "[one-caller]") {
  const std::filesystem::path folder = quarry::test::scratch_dir("c_api_random_history");
  struct Place {
    Cell min, size;
  };
  // About the origin, on one side of it, in the lowest corner of the world, and at its highest z beside the corner
  // brick that is not in it.
  const Place places[] = {{{-72, -40, -56}, {128, 104, 112}},
                          {{-512, 248, -24}, {96, 160, 96}},
                          {{-8192, -4096, -8192}, {104, 112, 120}},
                          {{7000, -4000, 8192 - 112}, {160, 96, 112}}};
  for (uint32_t seed = 0; seed < (quarry::test::kSanitized ? 6 : 16); ++seed) {
    const Place& place = places[seed % 4];
    PluginWorld world(1 + seed % 3, folder);
    quarry::test::check_random_history(world, DenseModel(place.min, place.size), seed, 500);
  }
}

TEST_CASE(
    "c_api: the same random changes of a world at home on a device, or on host threads in its place, have the same "
    "voxels, counts, steps and bounds",
    "[one-caller]") {
  const std::filesystem::path folder = quarry::test::scratch_dir("c_api_random_homes");
  for (const uint32_t home : {uint32_t(QRY_HOME_EMULATED), uint32_t(QRY_HOME_DEVICE)}) {
    if (home == QRY_HOME_DEVICE) {
      qry_context* context = nullptr;
      require_ok(qry_context_create(QRY_ABI_VERSION, nullptr, &context));
      qry_world_info info = QRY_WORLD_INFO_INIT;
      qry_world_home_info wanted = QRY_WORLD_HOME_INFO_INIT;
      wanted.home = home;
      info.next = &wanted;
      qry_world* world = nullptr;
      const qry_result result = qry_world_create(context, &info, &world);
      qry_world_destroy(&world);
      qry_context_destroy(&context);
      if (result != QRY_OK) {
        REQUIRE(result == QRY_ERROR_UNSUPPORTED);
        std::printf("skipped at home on a device: %s\n", qry_last_error());
        continue;
      }
    }
    for (uint32_t seed = 0; seed < (quarry::test::kSanitized ? 2 : 4); ++seed) {
      PluginWorld world(1 + seed % 3, folder, home);
      quarry::test::check_random_history(world, DenseModel({-72, -40, -56}, {128, 104, 112}), seed, 400);
    }
  }
}

}  // namespace random_history_test
