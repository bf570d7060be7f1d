// SPDX-License-Identifier: Apache-2.0
// box_facts_test.cpp - boxes of flattened scenes against a look at every voxel.
#include "voxel/operations/box_facts.hpp"

#include <catch2/catch.hpp>
#include <random>

namespace box_facts_test {

using namespace quarry;

TEST_CASE("box facts: voxels, bricks, bounds and materials are those that a walk over the box finds") {
  std::mt19937 random(3);
  const auto number = [&](int32_t low, int32_t high) { return low + int32_t(random() % uint32_t(high - low + 1)); };
  BrickMap map;
  for (int i = 0; i < 2500; ++i) map.set({number(-20, 40), number(-20, 40), number(-20, 40)}, uint8_t(number(1, 255)));
  map.put({1, 1, 1}, SharedBrick::full(9));
  map.put({-1, 0, 2}, SharedBrick::full(200));
  for (int i = 0; i < 60; ++i) {
    const Int3 min{number(-25, 40), number(-25, 40), number(-25, 40)};
    const Box3 box = i == 0   ? Box3{{-100, -100, -100}, {100, 100, 100}}
                     : i == 1 ? Box3{{8, 8, 8}, {15, 15, 15}}
                              : Box3{min, {min.x + number(0, 30), min.y + number(0, 12), min.z + number(0, 30)}};
    BoxFacts expected;
    BrickMap bricks;
    for (int32_t x = box.min.x; x <= box.max.x; ++x)
      for (int32_t y = box.min.y; y <= box.max.y; ++y)
        for (int32_t z = box.min.z; z <= box.max.z; ++z)
          if (const uint8_t material = map.get({x, y, z})) {
            ++expected.voxels;
            ++expected.of_material[material];
            bricks.set({x, y, z}, material);
          }
    const BoxFacts facts = box_facts(map, box);
    REQUIRE(facts.voxels == expected.voxels);
    REQUIRE(facts.of_material == expected.of_material);
    REQUIRE(facts.bricks == bricks.bricks().size());
    REQUIRE(facts.bounds == bricks.bounds());
  }
  CHECK(box_facts(map, Box3{}).voxels == 0);
  CHECK(box_facts(BrickMap{}, {{0, 0, 0}, {9, 9, 9}}).bounds.empty());
}

}  // namespace box_facts_test
