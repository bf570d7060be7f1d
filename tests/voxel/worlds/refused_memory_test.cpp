// SPDX-License-Identifier: Apache-2.0
// refused_memory_test.cpp - a document whose memory source gives n blocks and then no more, for n = 0, 1, 2 and so on,
// through every kind of change. Until a change gets all that it wants, it is refused and nothing has changed.
// Allocations by operator new are refused in engine/api/memory_test.cpp.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/app/sanitized.hpp"
#include "tests/voxel/limited_memory.hpp"
#include "voxel/worlds/document.hpp"

namespace refused_memory_test {

using namespace quarry;

namespace {

enum class Form { grown, trimmed, packed };

// A grown world of as many bricks as a slab of the pool has, none of them full: whatever comes next needs a new slab.
// Worlds of the other forms have no spare memory at any size.
int32_t edge_of(Form form) { return form == Form::grown ? 16 : 8; }

std::vector<Int3> first_bricks(Form form) {
  std::vector<Int3> bricks;
  const int32_t half = edge_of(form) / 2;
  for (int32_t x = -half; x < half; ++x)
    for (int32_t y = -half; y < half; ++y)
      for (int32_t z = -half; z < half; ++z) bricks.push_back({x, y, z});
  return bricks;
}

// Two steps, the second undone, so that a refused change could lose a step that can be redone.
Document first_document(const WorldMemory& memory, Form form) {
  auto document = Document::create_empty(memory);
  REQUIRE(document);
  const auto half = [](size_t n, Brick& brick) {
    for (uint32_t i = 0; i < 256; ++i) brick.set(i, uint8_t(1 + (i + n) % 3));
  };
  REQUIRE(document->write(0, first_bricks(form), half, "half bricks", 2));
  Edit edit;
  edit.mode = Mode::paint;
  edit.b = {9, 9, 9};
  edit.material = 200;
  REQUIRE(document->apply(0, edit));
  REQUIRE(document->undo());
  if (form == Form::trimmed) REQUIRE(document->world().shrink_to_fit());
  if (form == Form::packed) REQUIRE(document->world().pack());
  return std::move(*document);
}

// All that can be seen of a document.
struct State {
  std::vector<uint8_t> voxels;  // of the first bricks; where nothing else is, the count says so
  uint64_t version = 0, world_version = 0, voxel_count = 0;
  uint32_t brick_count = 0;
  Box3 bounds;
  bool packed = false;
  std::vector<BrickMap> volumes;
  Palette palette;
  std::vector<std::string> records;
  size_t history_position = 0, step_count = 0, step_position = 0;
  friend bool operator==(const State&, const State&) = default;
};

State state_of(const Document& document, Form form) {
  const World& world = document.world();
  State state;
  // Brick by brick: the large world's two million voxels one by one would be most of this test's time.
  const std::vector<Int3> bricks = first_bricks(form);
  state.voxels.resize(bricks.size() * kVoxelsPerBrick);
  for (size_t i = 0; i < bricks.size(); ++i)
    if (Brick brick; world.find_brick(bricks[i], &brick))
      std::copy(brick.materials.begin(), brick.materials.end(), &state.voxels[i * kVoxelsPerBrick]);
  state.version = document.version();
  state.world_version = world.version();
  state.voxel_count = world.voxel_count();
  state.brick_count = world.brick_count();
  state.bounds = world.bounds();
  state.packed = world.packed();
  for (const Volume& volume : document.scene().volumes) state.volumes.push_back(volume.bricks);
  state.palette = document.scene().palette;
  for (const UndoRecord& record : document.history())
    state.records.push_back(record.label + ": " + std::to_string(record.voxels_changed) + " voxels, " +
                            std::to_string(record.changes.size()) + " bricks of volume " +
                            std::to_string(record.volume) + (record.continues ? ", continued" : ""));
  state.history_position = document.history_position();
  state.step_count = document.step_count();
  state.step_position = document.step_position();
  return state;
}

using Call = std::function<Result<void>(Document&)>;

template <class T>
Result<void> without_value(Result<T>&& result) {
  if (!result) return fail(result.error().code, result.error().message);
  return {};
}

// Makes the call with ever more memory, until it is not refused. Returns how often it was. A packed world that a
// refused write has unpacked may stay so; `stays_packed`: it may not.
int exhaust(test::LimitedMemory& memory, Document& document, Form form, const Call& call, bool stays_packed = false) {
  State before = state_of(document, form);
  for (int blocks = 0; blocks < 1000; blocks += test::kSanitized ? 3 : 1) {
    memory.refuse_after = size_t(blocks);
    const Result<void> result = call(document);
    memory.refuse_after = size_t(-1);
    if (result) return blocks;
    INFO("after " << blocks << " blocks: " << result.error().message);
    REQUIRE(result.error().code == ErrorCode::out_of_memory);
    if (!stays_packed && !document.world().packed()) before.packed = false;
    REQUIRE((state_of(document, form) == before));
  }
  FAIL("more blocks of memory than a call may take");
  return 0;
}

struct Kind {
  std::string name;
  Call call;
};

std::vector<Kind> kinds_of_change(Form form) {
  std::vector<Kind> kinds;
  for (const Shape shape : {Shape::box, Shape::sphere, Shape::line})
    for (const Mode mode : {Mode::add, Mode::remove, Mode::paint, Mode::replace, Mode::fill}) {
      // The large world takes long to compare, and modes that make no voxels need no new slab.
      if (form == Form::grown && mode != Mode::fill) continue;
      Edit edit;
      edit.shape = shape;
      edit.mode = mode;
      edit.material = 9;
      edit.from = 2;
      // Each cuts bricks that are there and, but for the modes that make no voxels, makes bricks beside them.
      edit.a = shape == Shape::box ? Int3{-3, -70, -67} : Int3{30, 20, 10};
      edit.b = shape == Shape::box ? Int3{93, 61, 90} : Int3{-50, 60, 130};
      edit.radius = shape == Shape::sphere ? 75.5 : 12.25;
      kinds.push_back({"shape " + std::to_string(int(shape)) + ", mode " + std::to_string(int(mode)),
                       [edit](Document& document) { return without_value(document.apply(0, edit, 2)); }});
    }
  Edit thin;
  thin.shape = Shape::line;
  thin.mode = Mode::fill;
  thin.a = {0, 0, 0}, thin.b = {90, 20, 7};
  kinds.push_back({"a thin line", [thin](Document& document) { return without_value(document.apply(0, thin)); }});
  kinds.push_back({"the next part of a stroke",
                   [thin](Document& document) { return without_value(document.apply(0, thin, 1, true)); }});

  std::vector<int32_t> xyz;
  std::vector<uint8_t> materials;
  for (int32_t n = 0; n < 9000; ++n) {  // set, removed, given twice
    xyz.insert(xyz.end(), {n * 37 % 300 - 100, n * 101 % 200 - 100, n * 17 % 250 - 125});
    materials.push_back(uint8_t(n % 5));
  }
  kinds.push_back({"a list", [xyz, materials](Document& document) {
                     const VoxelWrites writes{xyz.data(), materials.data(), materials.size()};
                     return without_value(document.write(0, writes, "list", 2));
                   }});
  kinds.push_back({"a region", [](Document& document) {
                     std::vector<Int3> places;
                     for (int32_t x = -20; x < 20; ++x)
                       for (int32_t z = -12; z < 12; ++z) places.push_back({x, 2, z});
                     const auto change = [](size_t n, Brick& brick) {
                       for (uint32_t i = uint32_t(n % 7); i < 512; i += 3) brick.set(i, uint8_t(n % 4));
                     };
                     return without_value(document.write(0, places, change, "region", 2));
                   }});
  kinds.push_back({"whole bricks", [](Document& document) {
                     std::vector<World::BrickWrite> writes;
                     for (int32_t n = 0; n < 900; ++n) {
                       World::BrickWrite write;
                       write.brick = {n % 30 - 20, n / 30 - 15, 7};
                       for (uint32_t i = 0; i < 512 && n % 5; i += uint32_t(n % 3 + 1))
                         write.value.set(i, uint8_t(1 + n % 250));
                       writes.push_back(write);
                     }
                     return without_value(document.write(0, writes, "bricks", 2));
                   }});
  return kinds;
}

void check_every_kind(Form form) {
  const std::vector<Kind> kinds = kinds_of_change(form);
  int refused = 0, refused_undo = 0, refused_redo = 0;
  for (const Kind& kind : kinds) {
    INFO(kind.name);
    test::LimitedMemory memory;
    {
      Document document = first_document({.memory = &memory}, form);
      Document free = first_document({}, form);  // the same with all the memory that it wants
      const State before = state_of(document, form);
      refused += exhaust(memory, document, form, kind.call);
      REQUIRE(kind.call(free));
      const State after = state_of(document, form);
      REQUIRE(after.version > before.version);
      REQUIRE_FALSE((after.volumes == before.volumes));
      REQUIRE_FALSE(after.packed);
      const State expected = state_of(free, form);
      REQUIRE((after.voxels == expected.voxels));
      REQUIRE(after.voxel_count == expected.voxel_count);
      REQUIRE(after.brick_count == expected.brick_count);
      REQUIRE(after.bounds == expected.bounds);
      REQUIRE((after.volumes == expected.volumes));
      REQUIRE((after.records == expected.records));
      REQUIRE(after.step_count == expected.step_count);

      if (form != Form::grown) {  // so that it has no spare memory
        if (form == Form::packed) REQUIRE(document.world().pack());
        else REQUIRE(document.world().shrink_to_fit());
      }
      refused_undo += exhaust(memory, document, form, [](Document& one) { return without_value(one.undo()); });
      if (!kind.name.starts_with("the next part")) REQUIRE((state_of(document, form).voxels == before.voxels));
      if (form == Form::packed) REQUIRE(document.world().pack());
      refused_redo += exhaust(memory, document, form, [](Document& one) { return without_value(one.redo()); });
      const State again = state_of(document, form);
      REQUIRE((again.voxels == after.voxels));
      REQUIRE((again.volumes == after.volumes));
      REQUIRE((again.records == after.records));
      REQUIRE(again.brick_count == after.brick_count);
    }
    REQUIRE(memory.blocks() == 0);
  }
  CHECK(refused > 0);
  if (form == Form::packed) {  // which takes memory to be unpacked
    CHECK(refused >= int(kinds.size()));
    CHECK(refused_undo >= int(kinds.size()));
    CHECK(refused_redo >= int(kinds.size()));
  }
}

}  // namespace

TEST_CASE("document: every kind of change, undo and redo is refused whole at any block of memory, and made after that",
          "[one-caller]") {
  check_every_kind(Form::grown);
}

TEST_CASE("document: so it is in a world without spare memory", "[one-caller]") { check_every_kind(Form::trimmed); }

TEST_CASE("document: so it is in a packed world, whether or not that was unpacked before memory ended",
          "[one-caller]") {
  check_every_kind(Form::packed);
}

TEST_CASE("document: packing, unpacking and trimming are refused whole at any block of memory", "[one-caller]") {
  constexpr Form form = Form::grown;
  test::LimitedMemory memory;
  {
    Document document = first_document({.memory = &memory}, form);
    std::vector<World::BrickWrite> holes;  // unused places between bricks, and a spare slab
    for (const Int3 brick : first_bricks(form))
      if ((brick.x + brick.y) % 3 == 0) holes.push_back({brick, {}});
    REQUIRE(document.write(0, holes, "holes"));
    CHECK(exhaust(
              memory, document, form, [](Document& one) { return one.world().shrink_to_fit(); }, true) > 0);
    CHECK(exhaust(
              memory, document, form, [](Document& one) { return one.world().pack(); }, true) > 0);
    REQUIRE(document.world().packed());
    CHECK(exhaust(
              memory, document, form, [](Document& one) { return one.world().unpack(); }, true) > 0);
    REQUIRE_FALSE(document.world().packed());
    REQUIRE(document.undo());
    REQUIRE(document.world().brick_count() == 4096);
  }
  REQUIRE(memory.blocks() == 0);
}

TEST_CASE(
    "document: a trim in place that is refused any block has moved no brick, and one that is not moves all handles",
    "[one-caller]") {
  constexpr Form form = Form::grown;
  test::LimitedMemory memory;
  {
    Document document = first_document({.memory = &memory}, form);
    std::vector<World::BrickWrite> holes;
    for (const Int3 brick : first_bricks(form))
      if ((brick.x + brick.y) % 3 == 0) holes.push_back({brick, {}});
    REQUIRE(document.write(0, holes, "holes"));
    document.set_history_budget(1);
    Edit edit;
    edit.mode = Mode::paint;
    edit.a = {-32, -32, -32};
    edit.b = {-9, -9, -9};
    edit.material = 100;
    REQUIRE(document.apply(0, edit));  // now nobody has the bricks of the holes
    const auto places = [&] {
      const auto pairs = document.world().grid().enumerate(true);
      REQUIRE(pairs);
      return std::pair(pairs->keys, pairs->values);
    };
    const auto before = places();
    const BrickPool& pool = document.world().pool();
    const uint64_t bytes = pool.size_bytes();
    const size_t free_places = pool.free_count();
    CHECK(free_places > 1000);
    // Without copies of the volumes, whose bricks would stay where they are.
    const auto state = [&] {
      State all = state_of(document, form);
      all.volumes.clear();
      return all;
    };
    const State as_it_was = state();
    int refused = 0;
    for (bool done = false; !done; refused += !done) {
      REQUIRE(refused < 100);
      memory.refuse_after = size_t(refused);
      const auto result = document.shrink_to_fit();
      memory.refuse_after = size_t(-1);
      done = bool(result);
      REQUIRE((state() == as_it_was));
      if (done) break;
      REQUIRE(result.error().code == ErrorCode::out_of_memory);
      REQUIRE(places() == before);
      REQUIRE(pool.free_count() == free_places);
      REQUIRE(pool.size_bytes() == bytes);
    }
    CHECK(refused > 1);
    CHECK_FALSE(places() == before);
    CHECK(pool.size_bytes() == pool.live() * sizeof(Brick));
    const auto voxels = document.world().voxel_count();
    REQUIRE(document.undo());
    CHECK(document.world().get({-32, -32, -32}) != 100);
    REQUIRE(document.redo());
    CHECK(document.world().voxel_count() == voxels);
    CHECK((document.world().get({-32, -32, -32}) == 0 || document.world().get({-32, -32, -32}) == 100));
  }
  REQUIRE(memory.blocks() == 0);
}

TEST_CASE("document: one that cannot get its memory is not made, and gives back what it had", "[one-caller]") {
  const Scene scene = first_document({}, Form::grown).scene();
  test::LimitedMemory memory;
  for (size_t blocks = 0;; ++blocks) {
    REQUIRE(blocks < 1000);
    memory.refuse_after = blocks;
    const auto document = Document::create(scene, {.memory = &memory});
    memory.refuse_after = size_t(-1);
    if (document) {
      CHECK(blocks > 0);
      CHECK(document->world().voxel_count() == 4096 * 256);
      break;
    }
    // The grid that cannot grow is full, and says that it is for want of memory.
    const Error& error = document.error();
    INFO("after " << blocks << " blocks: " << error.message);
    if (error.code != ErrorCode::out_of_memory) REQUIRE(error.code == ErrorCode::full);
    REQUIRE(error.message.find("test memory refuses") != std::string::npos);
    REQUIRE(memory.blocks() == 0);
  }
}

}  // namespace refused_memory_test
