// SPDX-License-Identifier: Apache-2.0
// mask_packing_test.cpp - materials of set voxels one behind the other, as the file has them.
#include "voxel/io/quarry/codec.hpp"

#include <catch2/catch.hpp>
#include <random>
#include <vector>

namespace mask_packing_test {

using namespace quarry;

namespace {

// Of words of which all, none, some or most bits are set.
Brick random_brick(std::mt19937_64& random) {
  Brick brick;
  for (uint32_t w = 0; w < 8; ++w) {
    const uint64_t kind = random() % 5, word = random();
    brick.mask[w] = kind == 0   ? 0
                    : kind == 1 ? ~uint64_t(0)
                    : kind == 2 ? word & random()
                    : kind == 3 ? word
                                : word | random();
  }
  for (uint32_t i = 0; i < kVoxelsPerBrick; ++i)
    if (brick.mask[i >> 6] >> (i & 63u) & 1u) brick.materials[i] = uint8_t(1 + random() % 255);
  return brick;
}

}  // namespace

TEST_CASE("quarry_store: each way to pack materials writes those of set voxels in their order, and reads them again") {
  std::mt19937_64 random(5);
  REQUIRE(!io::mask_packings().empty());
  for (const io::MaskPacking& way : io::mask_packings())
    for (int round = 0; round < 2000; ++round) {
      const Brick brick = random_brick(random);
      std::vector<uint8_t> expected;
      for (const uint8_t material : brick.materials)
        if (material) expected.push_back(material);
      std::vector<uint8_t> packed(expected.size() + io::kPackSpare);
      REQUIRE(way.pack(brick.mask, brick.materials, packed.data()) == packed.data() + expected.size());
      packed.resize(expected.size());
      packed.shrink_to_fit();  // nothing behind it may be read
      REQUIRE(packed == expected);

      BrickMaterials back;
      back.fill(77);
      const uint8_t* const end = packed.data() + packed.size();
      REQUIRE(way.unpack(brick.mask, packed.data(), end, back) == end);
      REQUIRE(back == brick.materials);
      if (packed.empty()) continue;
      // Cut short, and with a voxel of no material.
      REQUIRE(way.unpack(brick.mask, packed.data(), end - 1, back) == nullptr);
      packed[random() % packed.size()] = 0;
      REQUIRE(way.unpack(brick.mask, packed.data(), end, back) == nullptr);
    }
}

}  // namespace mask_packing_test
