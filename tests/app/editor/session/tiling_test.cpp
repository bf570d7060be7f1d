// SPDX-License-Identifier: Apache-2.0
// tiling_test.cpp - a picture in tiles: each pixel is in one tile, none is too large, and the place the user looks at
// is first.
#include "app/editor/session/tiling.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

namespace tiling_test {

using namespace quarry;
using namespace quarry::app;
using engine::Tile;

TEST_CASE("tiling: every pixel is in exactly one tile, whatever the sizes, and no tile is larger than was asked for") {
  std::mt19937 random(9);
  for (int round = 0; round < 60; ++round) {
    const auto width = uint32_t(1 + random() % 700), height = uint32_t(1 + random() % 500);
    Tiling tiling;
    tiling.begin(width, height, double(random() % 700), double(random() % 500));
    std::vector<uint8_t> seen(size_t(width) * height);
    constexpr double kABlock = double(Tiling::kBlock) * Tiling::kBlock;
    while (true) {
      const double most = round % 3 == 0 ? 0 : double(random() % 60000);
      const auto tile = tiling.next(most);
      if (!tile) break;
      REQUIRE(
          (tile->width > 0 && tile->height > 0 && tile->x + tile->width <= width && tile->y + tile->height <= height));
      CHECK(double(tile->width) * tile->height <= std::max(most, kABlock));
      // Light paths are followed in blocks of 4 x 4 pixels.
      CHECK((tile->x % 4 == 0 && tile->y % 4 == 0 && (tile->width % 4 == 0 || tile->x + tile->width == width) &&
             (tile->height % 4 == 0 || tile->y + tile->height == height)));
      for (uint32_t y = tile->y; y < tile->y + tile->height; ++y)
        for (uint32_t x = tile->x; x < tile->x + tile->width; ++x) ++seen[size_t(y) * width + x];
    }
    CHECK(tiling.blocks_left() == 0);
    CHECK(std::all_of(seen.begin(), seen.end(), [](uint8_t n) { return n == 1; }));
  }
}

TEST_CASE("tiling: the first tile is where one looks, and one tile is enough where it may be as large as the picture") {
  Tiling tiling;
  tiling.begin(1100, 830, 700, 300);
  const auto first = tiling.next(10000);
  REQUIRE(first);
  CHECK((first->x <= 700 && 700 < first->x + first->width && first->y <= 300 && 300 < first->y + first->height));
  CHECK(double(first->width) * first->height > 5000);
  tiling.begin(1100, 830, 700, 300);
  CHECK(tiling.next(1e9) == Tile{0, 0, 1100, 830});
  CHECK_FALSE(tiling.next(1e9));
}

TEST_CASE("tiling: a cost that was guessed too low is believed at once, one too high little by little") {
  TileCost cost;
  cost.guess(0.001);
  CHECK(cost.pixels_in(20) <= 20000);
  cost.measured(50, 5000);
  CHECK(cost.pixels_in(20) == Approx(2000));
  cost.measured(1, 5000);
  CHECK(cost.pixels_in(20) < 2500);
  for (int i = 0; i < 20; ++i) cost.measured(1, 5000);
  CHECK(cost.pixels_in(20) == Approx(20 * 110000 / 71.0));  // the mean
  cost.measured(-1, 5000);                                  // a device without a clock
  CHECK(cost.pixels_in(20) == Approx(20 * 110000 / 71.0));
}

}  // namespace tiling_test
