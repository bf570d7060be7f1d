// SPDX-License-Identifier: Apache-2.0
// replays_test.cpp - what people did in another editor, replayed through the plugin interface, against what an
// independent program counted at its end (facts.json beside the recordings).
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <quarry/quarry.hpp>

#include "tests/test_data.hpp"

namespace replays_test {

namespace {

using Json = nlohmann::json;

// By the rules in facts.json: sphere i fills with material 1 + i % 255; to carve, each fourth removes instead.
std::vector<qry_edit> recorded_edits(const std::filesystem::path& file, bool carve) {
  std::ifstream in(file);
  std::vector<qry_edit> edits;
  std::string line;
  REQUIRE(std::getline(in, line));
  REQUIRE(line.starts_with("frame,x,y,z,radius,"));
  while (std::getline(in, line)) {
    qry_edit edit = QRY_EDIT_INIT;
    int frame = 0;
    REQUIRE(std::sscanf(line.c_str(), "%d,%d,%d,%d,%lf", &frame, &edit.a[0], &edit.a[1], &edit.a[2], &edit.radius) ==
            5);
    edit.shape = QRY_SHAPE_SPHERE;
    edit.mode = carve && edits.size() % 4 == 3 ? QRY_MODE_REMOVE : QRY_MODE_FILL;
    edit.material = uint32_t(1 + edits.size() % 255);
    edits.push_back(edit);
  }
  return edits;
}

// The facts of a world, counted anew from the voxels that it gives back, brick by brick.
Json recounted(const qry::World& world) {
  uint64_t brick_count = 0;
  REQUIRE(qry_world_list_bricks(world.get(), nullptr, &brick_count) >= 0);
  std::vector<std::array<int32_t, 3>> bricks(brick_count);
  REQUIRE(qry_world_list_bricks(world.get(), bricks.empty() ? nullptr : bricks[0].data(), &brick_count) == QRY_OK);
  uint64_t voxels = 0, material_sum = 0, wrong = 0;
  std::array<int64_t, 3> pos_sum{};
  std::array<int32_t, 3> low{INT32_MAX, INT32_MAX, INT32_MAX}, high{INT32_MIN, INT32_MIN, INT32_MIN};
  std::array<uint8_t, 512> brick{};
  for (const auto& [x, y, z] : bricks) {
    const int32_t first[3] = {x * 8, y * 8, z * 8}, last[3] = {x * 8 + 7, y * 8 + 7, z * 8 + 7};
    wrong += qry_world_read_region(world.get(), first, last, brick.data(), brick.size()) != QRY_OK;
    const uint64_t before = voxels;
    for (size_t n = 0; n < brick.size(); ++n) {
      if (!brick[n]) continue;
      ++voxels;
      material_sum += brick[n];
      const int32_t at[3] = {first[0] + int32_t(n % 8), first[1] + int32_t(n / 8 % 8), first[2] + int32_t(n / 64)};
      for (size_t i = 0; i < 3; ++i) {
        pos_sum[i] += at[i];
        low[i] = std::min(low[i], at[i]);
        high[i] = std::max(high[i], at[i]);
      }
    }
    wrong += voxels == before;  // a listed brick has a voxel
  }
  REQUIRE(wrong == 0);
  return {{"voxels", voxels},   {"bricks", brick_count},
          {"pos_sum", pos_sum}, {"material_sum", material_sum},
          {"min", low},         {"max", high}};
}

void check_facts(qry::World& world, const Json& facts) {
  CHECK(recounted(world) == facts);
  const auto state = world.state();
  REQUIRE(state.ok());
  CHECK(state->voxel_count == facts.at("voxels"));
  CHECK(state->brick_count == facts.at("bricks"));
  CHECK(Json(state->min) == facts.at("min"));
  CHECK(Json(state->max) == facts.at("max"));
}

void check_session(bool carve) {
  const std::filesystem::path folder = quarry::test::data_dir() / "replays";
  if (quarry::test::data_dir().empty() || !std::filesystem::exists(folder / "facts.json"))
    return quarry::test::skip("no replays/facts.json in the test data");
  std::ifstream facts_file(folder / "facts.json");
  const Json facts = Json::parse(facts_file).at("small").at(carve ? "carve" : "fill");
  const std::vector<qry_edit> edits = recorded_edits(folder / "small.csv", carve);
  REQUIRE(edits.size() == 216);

  qry_context_info info = QRY_CONTEXT_INFO_INIT;
  info.device = QRY_DEVICE_NEVER;
  auto context = qry::Context::create(info);
  REQUIRE(context.ok());
  auto world = context->create_world();
  REQUIRE(world.ok());
  std::vector<uint64_t> changed;  // by each edit that is a step
  for (const qry_edit& edit : edits) {
    const auto voxels = world->edit(edit);
    INFO(voxels.message());
    REQUIRE(voxels.code() == QRY_OK);
    if (*voxels) changed.push_back(*voxels);
  }
  check_facts(*world, facts);
  CHECK(world->state()->history_length == changed.size());

  for (size_t step = changed.size(); step-- > 0;) {
    const auto voxels = world->undo();
    REQUIRE(voxels.code() == QRY_OK);
    REQUIRE(*voxels == changed[step]);
  }
  CHECK(world->undo().code() == QRY_NOTHING_TO_DO);
  const auto undone = world->state();
  CHECK(undone->voxel_count == 0);
  CHECK(undone->brick_count == 0);
  CHECK(undone->max[0] < undone->min[0]);
  CHECK(recounted(*world).at("bricks") == 0);

  for (const uint64_t step : changed) {
    const auto voxels = world->redo();
    REQUIRE(voxels.code() == QRY_OK);
    REQUIRE(*voxels == step);
  }
  CHECK(world->redo().code() == QRY_NOTHING_TO_DO);
  check_facts(*world, facts);

  REQUIRE(qry_world_pack(world->get()) == QRY_OK);
  check_facts(*world, facts);
}

}  // namespace

TEST_CASE(
    "c_api: a recorded session of 216 spheres leaves the voxels, bricks, sums and bounds that were counted elsewhere; "
    "undone nothing; redone or packed the same again") {
  check_session(false);
}

TEST_CASE("c_api: so does the session in which each fourth sphere removes", "[one-caller]") { check_session(true); }

}  // namespace replays_test
