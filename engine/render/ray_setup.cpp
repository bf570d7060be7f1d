// SPDX-License-Identifier: Apache-2.0
// ray_setup.cpp - computes a direction's absolute components, their inverses, and the bits that mirroring flips.
#include "engine/render/ray_setup.hpp"

#include <algorithm>
#include <cmath>

namespace quarry::engine {

QryDirectionSetup direction_setup(const float (&direction)[3]) {
  constexpr uint32_t kFlips[3] = {kQryFlipX, kQryFlipY, kQryFlipZ};
  QryDirectionSetup setup{};
  for (int i = 0; i < 3; ++i) {
    setup.a[i] = std::max(std::abs(direction[i]), kQryMinDirection);
    setup.inv[i] = 1 / setup.a[i];
    if (direction[i] < 0) setup.flip |= kFlips[i];
  }
  return setup;
}

}  // namespace quarry::engine
