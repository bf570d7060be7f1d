// SPDX-License-Identifier: Apache-2.0
// random_history_test.cpp - thousands of random changes of a document beside a plain array of bytes: what the plugin
// interface cannot say, such as whole bricks, strokes, materials as steps, and files with their history.
#include <catch2/catch.hpp>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/file_bytes.hpp"
#include "tests/test_data.hpp"
#include "tests/voxel/taken.hpp"
#include "tests/voxel/worlds/edit_of.hpp"
#include "tests/voxel/worlds/random_history.hpp"
#include "voxel/io/quarry/store.hpp"
#include "voxel/worlds/document.hpp"

namespace random_history_test {

using namespace quarry;
using test::Cell;
using test::DenseEdit;
using test::DenseModel;
using test::taken;

namespace {

void require_done(const Result<void>& result) {
  INFO((result ? std::string() : result.error().message));
  REQUIRE(result);
}

class DocumentStore final : public test::TestedStore {
 public:
  DocumentStore(uint32_t threads, const std::filesystem::path& folder)
      : document_(taken(Document::create_empty())), threads_(threads), file_(folder / "world.quarry") {}

  bool makes_strokes() const override { return true; }
  uint64_t edit(const DenseEdit& dense, bool continues) override {
    return taken(document_.apply(0, test::edit_of(dense), threads_, continues))->voxels_changed;
  }
  uint64_t set_voxels(const std::vector<int32_t>& xyz, const std::vector<uint8_t>& materials) override {
    const VoxelWrites writes{xyz.data(), materials.data(), materials.size()};
    return taken(document_.write(0, writes, "voxels", threads_))->voxels_changed;
  }
  uint64_t write_region(Cell min, Cell max, const std::vector<uint8_t>& materials) override {
    std::vector<Int3> places;
    for (int32_t x = min[0] >> 3; x <= max[0] >> 3; ++x)
      for (int32_t y = min[1] >> 3; y <= max[1] >> 3; ++y)
        for (int32_t z = min[2] >> 3; z <= max[2] >> 3; ++z) places.push_back({x, y, z});
    const size_t width = size_t(max[0] - min[0]) + 1, height = size_t(max[1] - min[1]) + 1;
    const auto change = [&](size_t place, Brick& brick) {
      for (uint32_t n = 0; n < kVoxelsPerBrick; ++n) {
        const Int3 corner{places[place].x * 8, places[place].y * 8, places[place].z * 8};
        const Int3 at = corner + voxel_from_index(n);
        if (at.x < min[0] || at.x > max[0] || at.y < min[1] || at.y > max[1] || at.z < min[2] || at.z > max[2])
          continue;
        brick.set(n,
                  materials[size_t(at.x - min[0]) + width * (size_t(at.y - min[1]) + height * size_t(at.z - min[2]))]);
      }
    };
    return taken(document_.write(0, places, change, "region", threads_))->voxels_changed;
  }
  uint64_t write_bricks(const std::vector<Cell>& bricks, const std::vector<uint8_t>& materials) override {
    std::vector<World::BrickWrite> writes(bricks.size());
    for (size_t i = 0; i < bricks.size(); ++i) {
      writes[i].brick = {bricks[i][0], bricks[i][1], bricks[i][2]};
      for (int32_t n = 0; n < 512; ++n)
        writes[i].value.set(voxel_index({n % 8, n / 8 % 8, n / 64}), materials[i * 512 + size_t(n)]);
    }
    return taken(document_.write(0, writes, "bricks", threads_))->voxels_changed;
  }
  bool refused_calls() override {
    const int32_t outside[] = {1, 2, 3, 0, 4096, 0};
    const uint8_t materials[] = {7, 7};
    REQUIRE(document_.write(0, VoxelWrites{outside, materials, 2}, "").error().code == ErrorCode::out_of_bounds);
    const std::vector<World::BrickWrite> twice(2);
    REQUIRE(document_.write(0, twice, "").error().code == ErrorCode::invalid_argument);
    Edit edit;
    REQUIRE(document_.apply(1, edit).error().code == ErrorCode::invalid_argument);
    edit.b = {0, -4097, 0};
    REQUIRE(document_.apply(0, edit).error().code == ErrorCode::out_of_bounds);
    const Document::Persist full_disk = [](std::span<const UndoRecord>) -> Result<void> {
      return fail(ErrorCode::io, "the disk is full");
    };
    if (document_.can_undo()) REQUIRE(document_.undo(full_disk).error().code == ErrorCode::io);
    if (document_.can_redo()) REQUIRE(document_.redo(full_disk).error().code == ErrorCode::io);
    return document_.can_undo() || document_.can_redo();
  }
  std::optional<uint64_t> undo() override {
    if (!document_.can_undo()) {
      REQUIRE(document_.undo().error().code == ErrorCode::invalid_argument);
      return std::nullopt;
    }
    return voxels_of(taken(document_.undo()));
  }
  std::optional<uint64_t> redo() override {
    if (!document_.can_redo()) {
      REQUIRE(document_.redo().error().code == ErrorCode::invalid_argument);
      return std::nullopt;
    }
    return voxels_of(taken(document_.redo()));
  }
  void recolour(uint8_t material, uint8_t red) override {
    Palette palette = document_.scene().palette;
    palette.materials[material].r = red;
    taken(document_.change_palette(palette));
  }
  bool recolouring_is_a_step() const override { return true; }
  uint8_t red(uint8_t material) override { return document_.scene().palette.materials[material].r; }
  bool pack() override {
    const bool was_packed = document_.world().packed();
    require_done(document_.world().pack());
    return !was_packed;
  }
  bool unpack() override {
    const bool was_packed = document_.world().packed();
    require_done(document_.world().unpack());
    return was_packed;
  }
  bool trim() override {
    require_done(document_.world().shrink_to_fit());
    return !document_.world().packed();
  }
  // In turn with its history and without.
  bool reopen(uint32_t random) override {
    const bool with_history = random % 2 == 0;
    if (with_history)
      require_done(io::Store::save_with_history(document_.scene(), document_.history(), document_.history_position(),
                                                io::Destination(file_)));
    else require_done(io::Store::save(document_.scene(), io::Destination(file_)));
    std::vector<UndoRecord> records;
    size_t position = 0;
    document_ = taken(Document::create(taken(io::Store::read(file_, {}, &records, &position))));
    const auto restored = document_.restore_history(std::move(records), position);
    REQUIRE(restored);
    return with_history;
  }
  test::StoreFacts facts() override {
    const World& world = document_.world();
    test::StoreFacts facts;
    facts.version = document_.version();
    facts.voxels = world.voxel_count();
    facts.bricks = world.brick_count();
    facts.steps = document_.step_count();
    facts.position = document_.step_position();
    const Box3 bounds = world.bounds();
    facts.min = {bounds.min.x, bounds.min.y, bounds.min.z};
    facts.max = {bounds.max.x, bounds.max.y, bounds.max.z};
    facts.packed = world.packed();
    return facts;
  }
  void read(Cell min, Cell max, std::vector<uint8_t>& materials) override {
    materials.clear();
    for (int32_t z = min[2]; z <= max[2]; ++z)
      for (int32_t y = min[1]; y <= max[1]; ++y)
        for (int32_t x = min[0]; x <= max[0]; ++x) materials.push_back(document_.world().get({x, y, z}));
  }
  std::optional<std::vector<Cell>> bricks() override { return std::nullopt; }

  std::vector<uint8_t> saved_with_history() {
    std::filesystem::remove(file_);
    require_done(io::Store::save_with_history(document_.scene(), document_.history(), document_.history_position(),
                                              io::Destination(file_)));
    return test::file_bytes(file_);
  }

 private:
  static uint64_t voxels_of(std::span<const UndoRecord> records) {
    uint64_t voxels = 0;
    for (const UndoRecord& record : records) voxels += record.voxels_changed;
    return voxels;
  }

  Document document_;
  uint32_t threads_;
  std::filesystem::path file_;
};

}  // namespace

TEST_CASE(
    "document: through 2000 random changes, undo, redo, packing, trimming and saving with and without history, it has "
    "the voxels, counts, bounds and steps of a plain array",
    "[one-caller]") {
  const std::filesystem::path folder = test::scratch_dir("document_random_history");
  for (uint32_t seed = 100; seed < 105; ++seed) {
    DocumentStore store(1 + seed % 3, folder);
    test::check_random_history(store, DenseModel({-56, -40, -48}, {96, 64, 72}), seed, 400);
  }
}

TEST_CASE("document: the same changes by 1, 2 and 5 threads are saved with their history as the same bytes") {
  const std::filesystem::path folder = test::scratch_dir("document_saved_bytes");
  std::vector<uint8_t> first;
  for (const uint32_t threads : {1u, 2u, 5u}) {
    DocumentStore store(threads, folder);
    for (int32_t n = 0; n < 12; ++n) {
      DenseEdit edit;
      edit.shape = test::DenseShape(1 + n % 2);
      edit.mode = n < 3 ? test::DenseMode::fill : test::DenseMode(n % 5);
      edit.material = uint8_t(1 + n % 4), edit.from = 1;
      edit.a = {20 * n - 100, 7 * n, 3 * n - 40}, edit.b = {-20 * n, 50 - 9 * n, 60};
      edit.radius_quarters = edit.shape == test::DenseShape::sphere ? 170 : 33;
      store.edit(edit, n % 4 == 2);
      store.recolour(9, uint8_t(n));
    }
    store.undo(), store.undo(), store.undo();
    const std::vector<uint8_t> bytes = store.saved_with_history();
    if (first.empty()) first = bytes;
    INFO(threads << " threads");
    REQUIRE(bytes.size() == first.size());
    CHECK((bytes == first));
  }
}

}  // namespace random_history_test
