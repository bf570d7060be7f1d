// SPDX-License-Identifier: Apache-2.0
// course.cpp - of a direction, the absolute components with inverses and sign bits; and whether the eye is inside the
// world's box.
#include "engine/render/course.hpp"

#include <algorithm>
#include <cmath>

namespace quarry::engine {

QryOneWay one_way(const float (&direction)[3]) {
  constexpr uint32_t kFlips[3] = {kQryFlipX, kQryFlipY, kQryFlipZ};
  QryOneWay way{};
  for (int i = 0; i < 3; ++i) {
    way.a[i] = std::max(std::abs(direction[i]), kQryFlat);
    way.inv[i] = 1 / way.a[i];
    if (direction[i] < 0) way.flip |= kFlips[i];
  }
  return way;
}

bool inside_bounds(const QryWorldRoot& root, const glm::vec3& place) {
  bool inside = true;
  for (int i = 0; i < 3; ++i) inside = inside && place[i] >= root.box_low[i] + float(kQryBoxMargin) && place[i] <= root.box_high[i] - float(kQryBoxMargin);
  return inside;
}

bool shadows_by_columns(const QryWorldRoot& root, const glm::vec3& origin) { return !inside_bounds(root, origin); }

}  // namespace quarry::engine
