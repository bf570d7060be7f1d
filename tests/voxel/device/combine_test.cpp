// SPDX-License-Identifier: Apache-2.0
// combine_test.cpp - two worlds on a device combined as sets of voxels, beside two dense arrays.
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

using namespace quarry;
using device::Combination;
using device::StepId;
using device::Store;
using test::taken;

namespace {

constexpr Box3 kBox{{-41, -40, -39}, {46, 47, 40}};
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
    edit.a = {int32_t(below(50)) - 25, int32_t(below(50)) - 25, int32_t(below(50)) - 25};
    edit.radius = 3 + below(12);
    edit.b = edit.a + Int3{int32_t(below(20)), int32_t(below(20)), int32_t(below(12))};
    const auto shape = taken(EditShape::create(edit));
    REQUIRE(shape.solid());
    REQUIRE(store.edit(*shape.solid(), edit));
  }
  REQUIRE(store.wait_all());
}

Dense combined(const Dense& a, const Dense& b, Combination how) {
  Dense out(a.size());
  for (size_t i = 0; i < a.size(); ++i)
    out[i] = how == Combination::union_of       ? (a[i] ? a[i] : b[i])
             : how == Combination::intersection ? (b[i] ? a[i] : uint8_t(0))
                                                : (b[i] ? uint8_t(0) : a[i]);
  return out;
}

// Checks the result, its count of changed voxels, and that undo and redo exchange it.
void check_combination(Store& a, Store& b, Combination how) {
  const Dense before = read(a), other = read(b), after = combined(before, other, how);
  uint64_t changed = 0, voxels = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    changed += before[i] != after[i];
    voxels += after[i] != 0;
  }
  REQUIRE(taken(a.combine(b, how)).voxels == changed);
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
      const auto a = taken(Store::create(device::make_emulated_executor({5, 0, refuse}))),
                 b = taken(Store::create(device::make_emulated_executor()));
      fill(*a, 11);
      fill(*b, 12);
      armed = true;
      check_combination(*a, *b, how);
      REQUIRE(!armed);
    }
}
