// SPDX-License-Identifier: Apache-2.0
// algebra_test.cpp - worlds on a device as sets of voxels, combined, grown and eroded, beside dense arrays.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "tests/voxel/device/homes.hpp"
#include "tests/voxel/taken.hpp"
#include "voxel/device/store.hpp"
#include "voxel/worlds/edit_shape.hpp"

namespace algebra_test {

using namespace quarry;
using device::Combination;
using device::StepId;
using device::Store;
using test::taken;

namespace {

constexpr Box3 kBox{{-28, -27, -26}, {34, 34, 27}};
using Dense = std::vector<uint8_t>;
constexpr std::array kCombinations{Combination::union_of, Combination::intersection, Combination::difference};

Dense read(Store& store) {
  const Int3 size = kBox.max - kBox.min + Int3{1, 1, 1};
  Dense voxels(size_t(size.x) * size_t(size.y) * size_t(size.z));
  REQUIRE(store.read_box(kBox, voxels.data(), device::Side::host));
  return voxels;
}

// Balls and boxes that make full bricks, cut ones, and bricks full of several materials; some remove.
void fill(Store& store, uint32_t seed) {
  uint64_t state = seed * 2654435761u + 1;
  const auto below = [&](uint32_t count) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return uint32_t((state >> 32) * count >> 32);
  };
  for (int i = 0; i < 14; ++i) {
    Edit edit;
    edit.shape = i % 2 ? Shape::sphere : Shape::box;
    edit.mode = i % 5 == 4 ? Mode::remove : Mode::fill;
    edit.material = uint8_t(1 + below(250));
    edit.a = {int32_t(below(32)) - 16, int32_t(below(32)) - 16, int32_t(below(32)) - 16};
    edit.radius = 3 + below(8);
    edit.b = edit.a + Int3{int32_t(below(18)), int32_t(below(18)), int32_t(below(11))};
    const auto shape = taken(EditShape::create(edit));
    REQUIRE(shape.solid());
    REQUIRE(store.edit(*shape.solid(), edit));
  }
  REQUIRE(store.wait_all());
}

Dense combined(const Dense& a, const Dense& b, Combination how, const Store::NewMaterials* to) {
  Dense out(a.size());
  for (size_t i = 0; i < a.size(); ++i)
    out[i] = how == Combination::union_of       ? (a[i] ? a[i]
                                                   : to ? (*to)[b[i]]
                                                        : b[i])
             : how == Combination::intersection ? (b[i] ? a[i] : uint8_t(0))
                                                : (b[i] ? uint8_t(0) : a[i]);
  return out;
}

// Checks the result, its count of changed voxels, and that undo and redo exchange it.
void check_combination(Store& a, Store& b, Combination how, const Store::NewMaterials* to = nullptr) {
  const Dense before = read(a), other = read(b), after = combined(before, other, how, to);
  uint64_t changed = 0, voxels = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    changed += before[i] != after[i];
    voxels += after[i] != 0;
  }
  REQUIRE(taken(a.combine(b, how, to)).voxels == changed);
  REQUIRE(read(a) == after);
  REQUIRE(taken(a.state()).voxels == voxels);
  if (&a != &b) REQUIRE(read(b) == other);
  REQUIRE(taken(a.entries()).size() == taken(a.pyramid_entries()).size());
  if (changed == 0) return;
  REQUIRE(taken(a.wait(taken(a.undo()))).voxels == changed);
  REQUIRE(read(a) == before);
  REQUIRE(taken(a.wait(taken(a.redo()))).voxels == changed);
  REQUIRE(read(a) == after);
}

// Each voxel with its neighbours one by one; what is beyond the array is empty.
Dense morphed(const Dense& before, bool grows, uint32_t neighbours) {
  const Int3 size = kBox.max - kBox.min + Int3{1, 1, 1};
  const auto at = [&](int32_t x, int32_t y, int32_t z) {
    const bool inside = x >= 0 && y >= 0 && z >= 0 && x < size.x && y < size.y && z < size.z;
    return inside ? before[size_t(x) + size_t(size.x) * (size_t(y) + size_t(size.y) * size_t(z))] : uint8_t(0);
  };
  std::vector<Int3> steps;
  if (neighbours == 6) steps = {{-1, 0, 0}, {1, 0, 0}, {0, -1, 0}, {0, 1, 0}, {0, 0, -1}, {0, 0, 1}};
  for (int32_t i = 0; i < 27 && neighbours != 6; ++i) {
    const Int3 step{i % 3 - 1, i / 3 % 3 - 1, i / 9 - 1};
    const int32_t axes = step.x * step.x + step.y * step.y + step.z * step.z;
    if (axes != 0 && axes <= (neighbours == 18 ? 2 : 3)) steps.push_back(step);
  }
  Dense after = before;
  for (int32_t z = 0; z < size.z; ++z)
    for (int32_t y = 0; y < size.y; ++y)
      for (int32_t x = 0; x < size.x; ++x) {
        uint8_t& voxel = after[size_t(x) + size_t(size.x) * (size_t(y) + size_t(size.y) * size_t(z))];
        if ((voxel == 0) != grows) continue;
        for (const Int3 step : steps) {
          const uint8_t beside = at(x + step.x, y + step.y, z + step.z);
          if ((beside != 0) != grows) continue;
          voxel = beside;  // 0, of one that goes
          break;
        }
      }
  return after;
}

void check_morphology(Store& store, bool grows, uint32_t neighbours) {
  INFO((grows ? "grow by " : "erode by ") << neighbours);
  const Dense before = read(store), after = morphed(before, grows, neighbours);
  uint64_t changed = 0;
  for (size_t i = 0; i < before.size(); ++i) changed += before[i] != after[i];
  const uint64_t made = taken(grows ? store.grow(neighbours) : store.erode(neighbours)).voxels;
  REQUIRE(made == changed);
  REQUIRE(read(store) == after);
  REQUIRE(taken(store.entries()).size() == taken(store.pyramid_entries()).size());
  if (changed == 0) return;
  REQUIRE(taken(store.wait(taken(store.undo()))).voxels == changed);
  REQUIRE(read(store) == before);
  REQUIRE(taken(store.wait(taken(store.redo()))).voxels == changed);
  REQUIRE(read(store) == after);
}

std::unique_ptr<Store> store_on(const test::DeviceHome& home) { return taken(Store::create(taken(home.make()))); }

}  // namespace

TEST_CASE(
    "combine: unions, intersections and differences are those voxel by voxel, and the world's own material stays") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    for (uint32_t seed = 0; seed < 2; ++seed)
      for (const Combination how : kCombinations) {
        INFO("seed " << seed << ", " << int(how));
        const auto a = store_on(home), b = store_on(home);
        fill(*a, 2 * seed);
        fill(*b, 2 * seed + 1);
        check_combination(*a, *b, how);
        check_combination(*a, *b, how);  // once more: nothing changes, but for differences that stay so
      }
  }
}

TEST_CASE("combine: what a union brings gets other materials by a table; a brick of several may be of one then") {
  Store::NewMaterials to{};
  for (uint32_t m = 1; m < 256; ++m) to[m] = uint8_t(m % 3 == 0 ? m : 255 - m / 50);
  Store::NewMaterials same{};
  for (uint32_t m = 1; m < 256; ++m) same[m] = 9;
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    for (const Combination how : kCombinations)
      for (const auto* table : {&to, &same}) {
        const auto a = store_on(home), b = store_on(home), none = store_on(home);
        fill(*a, 30);
        fill(*b, 31);
        check_combination(*none, *b, how, table);
        check_combination(*a, *b, how, table);
      }
    // A brick that two materials fill, which become one, takes no place.
    const auto box = [](Store& store, Int3 from, Int3 to_voxel, uint8_t material) {
      Edit edit;
      edit.shape = Shape::box;
      edit.mode = Mode::fill;
      edit.material = material;
      edit.a = from, edit.b = to_voxel;
      const auto shape = taken(EditShape::create(edit));
      REQUIRE(store.edit(*shape.solid(), edit));
    };
    const auto a = store_on(home), b = store_on(home);
    box(*b, {0, 0, 0}, {7, 7, 3}, 4);
    box(*b, {0, 0, 4}, {7, 7, 7}, 5);
    REQUIRE(taken(a->combine(*b, Combination::union_of, &same)).voxels == 512);
    const auto entries = taken(a->entries());
    REQUIRE(entries.size() == 1);
    CHECK(device::is_full_index(entries[0].index));
    CHECK(!device::is_full_index(taken(b->entries())[0].index));
  }
}

TEST_CASE("combine: with nothing, with itself, and nothing with something") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    for (const Combination how : kCombinations) {
      INFO(int(how));
      const auto a = store_on(home), b = store_on(home), c = store_on(home);
      check_combination(*a, *b, how);
      fill(*b, 7);
      check_combination(*a, *b, how);
      fill(*c, 8);
      check_combination(*c, *c, how);
      const auto none = store_on(home);
      check_combination(*c, *none, how);
    }
  }
}

TEST_CASE("combine: whatever step lacks room, it is made once more, and the result is the same", "[one-caller]") {
  for (const test::DeviceHome& home : test::faulty_homes()) {
    INFO(home.name);
    constexpr std::array<std::pair<StepId, uint32_t>, 6> kRefused{{{StepId::list_combined, device::kMissingKeys},
                                                                   {StepId::touch_list, device::kMissingRecords},
                                                                   {StepId::touch_list, device::kMissingScratch},
                                                                   {StepId::cut_list, device::kMissingBricks},
                                                                   {StepId::cut_list, device::kMissingNodes},
                                                                   {StepId::keys, device::kMissingPlace}}};
    for (const auto& [step, missing] : kRefused)
      for (const Combination how : kCombinations) {
        // Where no key is new, all have a place.
        if (step == StepId::keys && how != Combination::union_of) continue;
        INFO(device::name_of(step) << " lacks " << missing << ", " << int(how));
        bool armed = false;
        const auto refuse = [&, step = step, missing = missing](StepId now) {
          return now == step && std::exchange(armed, false) ? missing : 0u;
        };
        const auto a = taken(Store::create(taken(home.make_faulty({5, 0, refuse})))), b = store_on(home);
        fill(*a, 11);
        fill(*b, 12);
        armed = true;
        check_combination(*a, *b, how);
        REQUIRE(!armed);
      }
  }
}

TEST_CASE("grow, erode: each voxel is what its neighbours make of it, in their order, undone and redone") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    for (const bool grows : {true, false})
      for (const uint32_t neighbours : {6u, 18u, 26u}) {
        const auto store = store_on(home);
        check_morphology(*store, grows, neighbours);  // of nothing
        fill(*store, 20 + neighbours);
        check_morphology(*store, grows, neighbours);
        check_morphology(*store, !grows, neighbours);
      }
  }
}

TEST_CASE("grow: single voxels spread over bricks, nodes and half the world, and not out of the world") {
  const auto put = [](Store& store, const std::vector<int32_t>& xyz) {
    const std::vector<uint8_t> materials(xyz.size() / 3, 5);
    REQUIRE(store.write_voxels({xyz.data(), materials.data(), materials.size()}));
  };
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    // At corners of bricks, of nodes of all levels, and one voxel from the world's borders.
    const std::vector<int32_t> xyz{0,   0,   0,    7,    7,    7,     31,    32,    95,   127,  128,
                                   511, 512, 1024, -8,   -1,   -1,    -1,    64,    64,   64,   63,
                                   63,  -64, 4000, 2047, 2048, -8191, -4095, -8191, 8190, 4094, 8160};
    const auto store = store_on(home);
    put(*store, xyz);
    REQUIRE(taken(store->state()).voxels == 11);
    const uint64_t more = 26 * 11 - 8;  // two of them touch by a corner
    REQUIRE(taken(store->grow(26)).voxels == more);
    REQUIRE(taken(store->erode(26)).voxels == more);
    REQUIRE(taken(store->state()).voxels == 11);
    // Now at a border.
    put(*store, {-8191, 4095, 0});
    const auto refused = store->grow(6);
    REQUIRE(refused.error().code == ErrorCode::out_of_bounds);
    REQUIRE(taken(store->state()).voxels == 12);
    REQUIRE(taken(store->erode(6)).voxels == 12);
    REQUIRE(taken(store->state()).voxels == 0);
    REQUIRE(taken(store->pyramid_entries()).empty());
    // Beside the brick that no world has.
    put(*store, {8183, 4090, 8188});
    REQUIRE(store->grow(6).error().code == ErrorCode::out_of_bounds);
    REQUIRE(taken(store->state()).voxels == 1);
    put(*store, {8183, 4090, 8188, 8182, 4087, 8183});
    REQUIRE(store->grow(26).error().code == ErrorCode::out_of_bounds);
    REQUIRE(taken(store->state()).voxels == 2);
    REQUIRE(taken(store->wait(taken(store->undo()))).voxels == 1);
    REQUIRE(taken(store->pyramid_entries()).size() == 1);
  }
}

TEST_CASE("grow: a brick that one material fills then takes no place, one that several fill does") {
  const auto box = [](Store& store, Box3 where, uint8_t material) {
    Edit edit;
    edit.shape = Shape::box;
    edit.mode = Mode::fill;
    edit.material = material;
    edit.a = where.min;
    edit.b = where.max;
    const auto shape = taken(EditShape::create(edit));
    REQUIRE(shape.solid());
    REQUIRE(store.edit(*shape.solid(), edit));
  };
  const auto index_at = [](Store& store, Int3 brick) {
    const uint32_t key = brick_key(brick);
    uint32_t index = 0;
    REQUIRE(store.look_up({&key, 1}, {&index, 1}));
    return index;
  };
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    for (const uint32_t neighbours : {6u, 18u, 26u}) {
      const auto store = store_on(home);
      box(*store, {{0, 0, 0}, {7, 7, 6}}, 9);
      box(*store, {{24, 0, 0}, {31, 7, 5}}, 9);
      box(*store, {{24, 0, 6}, {31, 7, 6}}, 10);
      REQUIRE(store->forget());
      const Store::Used before = taken(store->used());
      REQUIRE(before.bricks == 2);
      check_morphology(*store, true, neighbours);
      REQUIRE(index_at(*store, {0, 0, 0}) == device::full_index(9));
      REQUIRE(device::is_stored_index(index_at(*store, {3, 0, 0})));
      // The two that were there, for the history; of 27 bricks around each box those that were grown into.
      const uint32_t around = neighbours == 6 ? 5 : neighbours == 18 ? 5 + 8 : 5 + 8 + 4;
      REQUIRE(taken(store->used()).bricks == before.bricks + 1 + 2 * around);
    }
  }
}

TEST_CASE("grow, erode: whatever step lacks room, it is made once more, and the result is the same", "[one-caller]") {
  for (const test::DeviceHome& home : test::faulty_homes()) {
    INFO(home.name);
    constexpr std::array<std::pair<StepId, uint32_t>, 8> kRefused{{{StepId::find_around, device::kMissingKeys},
                                                                   {StepId::list_around, device::kMissingScratch},
                                                                   {StepId::morph_masks, device::kMissingScratch},
                                                                   {StepId::morph_masks, device::kMissingRecords},
                                                                   {StepId::morph_masks, device::kMissingBricks},
                                                                   {StepId::morph_masks, device::kMissingNodes},
                                                                   {StepId::morph_materials, device::kMissingSteps},
                                                                   {StepId::keys, device::kMissingPlace}}};
    for (const auto& [step, missing] : kRefused)
      for (const bool grows : {true, false}) {
        // Where no key is new, all have a place.
        if (step == StepId::keys && !grows) continue;
        INFO(device::name_of(step) << " lacks " << missing << ", " << grows);
        bool armed = false;
        const auto refuse = [&, step = step, missing = missing](StepId now) {
          return now == step && std::exchange(armed, false) ? missing : 0u;
        };
        const auto store = taken(Store::create(taken(home.make_faulty({5, 0, refuse}))));
        fill(*store, 13);
        armed = true;
        check_morphology(*store, grows, 26);
        REQUIRE(!armed);
      }
  }
}

}  // namespace algebra_test
