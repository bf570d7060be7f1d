// SPDX-License-Identifier: Apache-2.0
// terrain.hpp - workload V: the bricks of a terrain.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace quarry::bench {

// About `count` bricks of a rolling terrain's shell, three to five thick, in the order of their keys: x, then y, then
// z.
inline std::vector<uint32_t> terrain_bricks(uint64_t count) {
  const int width = std::clamp(int(std::lround(std::sqrt(double(count) / 3.3))), 4, 2047);
  const auto height = [](double x, double z) {
    return int(130 + 70 * std::sin(x * .0041) * std::cos(z * .0037) + 14 * std::sin(x * .019 + z * .013) +
               2 * std::sin(x * .083) * std::sin(z * .071));
  };
  std::vector<uint32_t> keys;
  for (int z = 0; z < width; ++z)
    for (int x = 0; x < width; ++x) {
      const int top = height(x, z);
      const int around = std::min({height(x + 1, z), height(x - 1, z), height(x, z + 1), height(x, z - 1)});
      for (int y = std::min(around, top) - 2; y <= top; ++y)
        keys.push_back(uint32_t(x) | uint32_t(y) << 11 | uint32_t(z) << 21);
    }
  std::sort(keys.begin(), keys.end());
  return keys;
}

}  // namespace quarry::bench
