// SPDX-License-Identifier: Apache-2.0
// affine.hpp - the transforms of the nodes of a scene's tree.
#pragma once

#include <glm/mat3x3.hpp>
#include <glm/mat4x3.hpp>

namespace quarry::mesh_reader {

inline const glm::dmat4x3 kZUp(1, 0, 0, 0, 0, -1, 0, 1, 0, 0, 0, 0);  // (x, y, z) -> (x, z, -y)

// The transform that applies `b` and then `a`. GLM's product adds the translation last, which rounds differently.
inline glm::dmat4x3 product(const glm::dmat4x3& a, const glm::dmat4x3& b) {
  const glm::dmat3 linear(a);
  return {linear * b[0], linear * b[1], linear * b[2], a[3] + a[0] * b[3].x + a[1] * b[3].y + a[2] * b[3].z};
}

}  // namespace quarry::mesh_reader
