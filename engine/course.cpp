#include "engine/course.hpp"

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

}  // namespace quarry::engine
