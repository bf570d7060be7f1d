// SPDX-License-Identifier: Apache-2.0
// compare_test.cpp - sums over the voxels of a world on a device, and what two of them differ in, beside dense arrays.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "tests/voxel/device/homes.hpp"
#include "tests/voxel/taken.hpp"
#include "voxel/device/store.hpp"
#include "voxel/worlds/edit_shape.hpp"

namespace compare_test {

using namespace quarry;
using device::Store;
using test::taken;

namespace {

constexpr Box3 kBox{{-28, -27, -26}, {34, 34, 27}};
using Dense = std::vector<uint8_t>;

class Random {
 public:
  explicit Random(uint32_t seed) : state_(seed * 2654435761u + 1) {}
  uint32_t below(uint32_t count) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return uint32_t((state_ >> 32) * count >> 32);
  }

 private:
  uint64_t state_;
};

Dense read(Store& store) {
  const Int3 size = kBox.max - kBox.min + Int3{1, 1, 1};
  Dense voxels(size_t(size.x) * size_t(size.y) * size_t(size.z));
  REQUIRE(store.read_box(kBox, voxels.data(), device::Side::host));
  return voxels;
}

template <class Visit>
void visit_box(const Visit& visit) {
  size_t at = 0;
  for (int32_t z = kBox.min.z; z <= kBox.max.z; ++z)
    for (int32_t y = kBox.min.y; y <= kBox.max.y; ++y)
      for (int32_t x = kBox.min.x; x <= kBox.max.x; ++x) visit(Int3{x, y, z}, at++);
}

// Boxes and balls, of few materials so that some bricks of two worlds are alike in part.
void change(Store& store, Random& random, int edits) {
  for (int i = 0; i < edits; ++i) {
    Edit edit;
    edit.shape = i % 2 ? Shape::sphere : Shape::box;
    edit.mode = random.below(4) == 0 ? Mode::remove : Mode::fill;
    edit.material = uint8_t(1 + random.below(4));
    edit.a = {int32_t(random.below(32)) - 16, int32_t(random.below(32)) - 16, int32_t(random.below(32)) - 16};
    edit.radius = 3 + random.below(8);
    edit.b = edit.a + Int3{int32_t(random.below(18)), int32_t(random.below(18)), int32_t(random.below(11))};
    REQUIRE(store.edit(*taken(EditShape::create(edit)).solid(), edit));
  }
}

uint64_t mixed(uint64_t h) {
  h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
  h = (h ^ h >> 27) * 0x94d049bb133111ebu;
  return h ^ h >> 31;
}

void check_sums(Store& store, const std::array<uint32_t, 256>& colours) {
  const Dense voxels = read(store);
  uint64_t count = 0, places = 0, coloured = 0;
  visit_box([&](Int3 at, size_t i) {
    if (voxels[i] == 0) return;
    const uint64_t place = mixed(mixed(mixed(0x9e3779b97f4a7c15u + uint32_t(at.x)) + uint32_t(at.y)) + uint32_t(at.z));
    ++count;
    places += place;
    coloured += mixed(place + colours[voxels[i]]);
  });
  const Store::VoxelSums sums = taken(store.voxel_sums(colours));
  REQUIRE(sums.voxels == count);
  REQUIRE(sums.places == places);
  REQUIRE(sums.colours == coloured);
}

struct Expected {
  uint64_t voxels = 0;
  Box3 box;
  void add(Int3 at) {
    ++voxels;
    box = united(box, {at, at});
  }
  void check(const Store::Comparison::Kind& kind) const {
    REQUIRE(kind.voxels == voxels);
    REQUIRE(kind.bounds == box);
  }
};

void check_comparison(Store& a, Store& b, const std::array<uint32_t, 512>& looks) {
  const Dense first = read(a), second = read(b);
  Expected added, removed, recoloured;
  uint64_t alike = 0;
  visit_box([&](Int3 at, size_t i) {
    if (!first[i] && !second[i]) return;
    if (!first[i]) return added.add(at);
    if (!second[i]) return removed.add(at);
    if (looks[first[i]] == looks[256u + second[i]]) ++alike;
    else recoloured.add(at);
  });
  const Store::Comparison found = taken(a.compare(b, looks));
  added.check(found.added);
  removed.check(found.removed);
  recoloured.check(found.recoloured);
  REQUIRE(found.alike == alike);
}

std::unique_ptr<Store> store_on(const test::DeviceHome& home) { return taken(Store::create(taken(home.make()))); }

}  // namespace

TEST_CASE("compare: sums of a world are those voxel by voxel, whatever was edited and undone before") {
  std::array<uint32_t, 256> colours{};
  for (uint32_t m = 0; m < 256; ++m) colours[m] = m * 2654435761u;
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    const auto store = store_on(home);
    check_sums(*store, colours);  // of nothing: 0
    Random random(7);
    for (int round = 0; round < 4; ++round) {
      change(*store, random, 6);
      check_sums(*store, colours);
    }
    REQUIRE(store->undo());
    check_sums(*store, colours);
    REQUIRE(taken(store->state()).voxels > 0);
  }
}

TEST_CASE("compare: what two worlds differ in is what they differ in voxel by voxel, each with its box") {
  std::array<uint32_t, 512> each_its_own{}, pairs{}, exchanged{}, all_alike{};
  std::iota(each_its_own.begin(), each_its_own.begin() + 256, 0u);
  std::iota(each_its_own.begin() + 256, each_its_own.end(), 0u);
  for (uint32_t m = 0; m < 512; ++m) pairs[m] = (m % 256) / 2;  // 2 and 3 are alike, in both worlds
  exchanged = each_its_own;
  std::swap(exchanged[256 + 1], exchanged[256 + 2]);  // 1 here is 2 there
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    for (uint32_t seed = 0; seed < 3; ++seed) {
      INFO("seed " << seed);
      const auto a = store_on(home), b = store_on(home);
      check_comparison(*a, *b, each_its_own);  // of nothing with nothing
      Random one(seed), other(seed);
      change(*a, one, 12);
      check_comparison(*a, *b, each_its_own);  // with nothing
      check_comparison(*b, *a, each_its_own);
      change(*b, other, 12);
      check_comparison(*a, *b, each_its_own);  // equal
      REQUIRE(taken(a->compare(*b, each_its_own)).alike == taken(a->state()).voxels);
      change(*b, other, 3);
      for (const auto& looks : {each_its_own, pairs, exchanged, all_alike}) {
        check_comparison(*a, *b, looks);
        check_comparison(*b, *a, looks);
        check_comparison(*a, *a, looks);
      }
      // Either may be packed, or both.
      REQUIRE(a->pack());
      check_comparison(*a, *b, pairs);
      check_comparison(*b, *a, pairs);
      REQUIRE(b->pack());
      check_comparison(*a, *b, pairs);
      std::array<uint32_t, 256> colours{};
      std::iota(colours.begin(), colours.end(), 77u);
      check_sums(*a, colours);
      REQUIRE((a->packed() && b->packed()));
    }
  }
}

TEST_CASE("compare: worlds of different devices are refused, and refused memory leaves both as they were") {
  const auto a = taken(Store::create(device::make_emulated_executor()));
  const std::array<uint32_t, 512> looks{};
  for (const test::DeviceHome& home : test::device_homes()) {
    const auto b = store_on(home);
    const auto found = a->compare(*b, looks);
    if (b->executor().device() == a->executor().device()) {
      REQUIRE(found);
    } else {
      REQUIRE(found.error().code == ErrorCode::unsupported);
    }
  }
  bool refuses = false;
  device::Emulation emulation;
  emulation.before = [&](device::DeviceCall call) {
    return refuses && call == device::DeviceCall::allocation ? device::Fault::no_memory : device::Fault::none;
  };
  const auto limited = taken(Store::create(device::make_emulated_executor(emulation)));
  refuses = true;
  const auto refused = limited->compare(*a, looks);
  refuses = false;
  if (!refused) REQUIRE(refused.error().code == ErrorCode::out_of_memory);
  REQUIRE(taken(limited->compare(*a, looks)).alike == 0);
}

}  // namespace compare_test
