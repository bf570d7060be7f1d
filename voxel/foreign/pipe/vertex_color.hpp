// SPDX-License-Identifier: Apache-2.0
// vertex_color.hpp - colours and limits that the readers inside quarry-mesh-reader share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace quarry::mesh_reader {

constexpr uint64_t kMaxNodes = 1u << 20;            // instances of meshes included
constexpr uint64_t kMaxTriangles = (1u << 30) - 1;  // what a Mesh may hold
constexpr uint64_t kMaxVertices = 0xFFFFFFFEull;

inline float srgb_to_linear(float value) {
  value = std::clamp(value, 0.0f, 1.0f);
  return value <= 0.04045f ? value / 12.92f : std::pow((value + 0.055f) / 1.055f, 2.4f);
}
inline uint8_t to_byte(float value) {
  return uint8_t(std::lround(std::clamp(std::isfinite(value) ? value : 0.0f, 0.0f, 1.0f) * 255.0f));
}
inline uint8_t linear_to_srgb_byte(float value) {
  value = std::clamp(std::isfinite(value) ? value : 0.0f, 0.0f, 1.0f);
  return to_byte(value <= 0.0031308f ? value * 12.92f : 1.055f * std::pow(value, 1 / 2.4f) - 0.055f);
}

}  // namespace quarry::mesh_reader
