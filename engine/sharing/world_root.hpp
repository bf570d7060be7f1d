// SPDX-License-Identifier: Apache-2.0
// world_root.hpp - the host's query of a world's root structure.
#pragma once

#include "shaders/shared/world_root.h"

namespace quarry::engine {

// Tells whether `place`, three world coordinates, is in the tight box of all voxels.
inline bool inside_tight_box(const QryWorldRoot& root, const auto& place) {
  bool inside = true;
  for (int i = 0; i < 3; ++i)
    inside = inside && place[i] >= root.box_low[i] + float(kQryBoxMargin) &&
             place[i] <= root.box_high[i] - float(kQryBoxMargin);
  return inside;
}

}  // namespace quarry::engine
