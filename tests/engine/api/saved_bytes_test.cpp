// SPDX-License-Identifier: Apache-2.0
// saved_bytes_test.cpp - the bytes of saved worlds. Neither the number of threads nor the way to the voxels shows in
// them.
#include <catch2/catch.hpp>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <quarry/quarry.hpp>

#include "tests/file_bytes.hpp"
#include "tests/test_data.hpp"

namespace saved_bytes_test {

namespace {

qry::Context context_of(uint32_t threads) {
  qry_context_info info = QRY_CONTEXT_INFO_INIT;
  info.device = QRY_DEVICE_NEVER;
  info.threads = threads;
  auto context = qry::Context::create(info);
  REQUIRE(context.ok());
  return std::move(*context);
}

// Shapes over some 20 chunks, lists and regions: more than one thread gets something to do.
void make_changes(qry::World& world, int count, uint32_t seed) {
  std::mt19937 random(seed);
  const auto within = [&](int reach) { return int32_t(random() % uint32_t(2 * reach)) - reach; };
  for (int n = 0; n < count; ++n) {
    if (n % 4 == 3) {
      std::vector<int32_t> xyz;
      std::vector<uint8_t> materials;
      for (int i = 0; i < 20000; ++i) {
        xyz.insert(xyz.end(), {within(90), within(60), within(90)});
        materials.push_back(uint8_t(random() % 7));
      }
      REQUIRE(world.set_voxels(xyz.data(), materials.data(), materials.size()).ok());
      continue;
    }
    qry_edit edit = QRY_EDIT_INIT;
    edit.shape = uint32_t(random() % 3);
    edit.mode = n < 4 ? uint32_t(QRY_MODE_FILL) : uint32_t(random() % 5);
    edit.material = uint32_t(1 + random() % 6);
    edit.from = uint32_t(1 + random() % 6);
    for (size_t i = 0; i < 3; ++i) edit.a[i] = within(80), edit.b[i] = within(80);
    edit.radius = edit.shape == QRY_SHAPE_LINE ? 5.5 : 40.25;
    REQUIRE(world.edit(edit).ok());
  }
}

std::vector<uint8_t> saved(const qry::World& world, const std::filesystem::path& file) {
  qry_save_info save = QRY_SAVE_INFO_INIT;
  const std::string path = file.string();
  save.path = path.c_str();
  REQUIRE(qry_world_save(world.get(), &save) == QRY_OK);
  return quarry::test::file_bytes(file);
}

// Bytes of two files that differ, without Catch printing both files.
size_t differing(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  REQUIRE(a.size() == b.size());
  size_t count = 0;
  for (size_t i = 0; i < a.size(); ++i) count += a[i] != b[i];
  return count;
}

}  // namespace

TEST_CASE("c_api: the same changes by 1, 2 and 5 threads are saved as the same bytes") {
  const std::filesystem::path folder = quarry::test::scratch_dir("c_api_saved_bytes");
  std::vector<uint8_t> first;
  for (const uint32_t threads : {1u, 2u, 5u}) {
    qry::Context context = context_of(threads);
    auto world = context.create_world();
    REQUIRE(world.ok());
    make_changes(*world, 24, 7);
    const std::vector<uint8_t> bytes = saved(*world, folder / (std::to_string(threads) + ".quarry"));
    if (first.empty()) first = bytes;
    INFO(threads << " threads");
    CHECK(differing(bytes, first) == 0);
  }
}

TEST_CASE(
    "c_api: a world whose steps were undone and redone, packed, trimmed or opened again is saved as the same "
    "bytes") {
  const std::filesystem::path folder = quarry::test::scratch_dir("c_api_saved_bytes_again");
  qry::Context context = context_of(2);
  auto world = context.create_world();
  REQUIRE(world.ok());
  make_changes(*world, 16, 11);
  const std::vector<uint8_t> first = saved(*world, folder / "first.quarry");
  CHECK(differing(saved(*world, folder / "twice.quarry"), first) == 0);

  while (world->undo().code() == QRY_OK) {
  }
  CHECK(world->state()->voxel_count == 0);
  while (world->redo().code() == QRY_OK) {
  }
  CHECK(differing(saved(*world, folder / "redone.quarry"), first) == 0);

  const uint64_t position = world->state()->history_position;
  make_changes(*world, 8, 12);
  REQUIRE(world->state()->history_position > position);
  while (world->state()->history_position > position) REQUIRE(world->undo().code() == QRY_OK);
  CHECK(differing(saved(*world, folder / "undone.quarry"), first) == 0);

  REQUIRE(qry_world_trim(world->get()) == QRY_OK);
  CHECK(differing(saved(*world, folder / "trimmed.quarry"), first) == 0);
  REQUIRE(qry_world_pack(world->get()) == QRY_OK);
  CHECK(differing(saved(*world, folder / "packed.quarry"), first) == 0);

  const auto opened = context.open_world((folder / "first.quarry").c_str());
  REQUIRE(opened.ok());
  CHECK(differing(saved(*opened, folder / "opened.quarry"), first) == 0);
}

}  // namespace saved_bytes_test
