// SPDX-License-Identifier: Apache-2.0
// polygon.hpp - splits a face with more than three corners into triangles.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace quarry::mesh_reader {

// Appends the corners (numbers from 0) of places.size() - 2 triangles, three each, in the polygon's orientation. A
// convex polygon becomes a fan. Others are cut by ear clipping, seen along the polygon's mean normal. Cost: quadratic
// in the corners of a polygon with reflex corners.
void triangulate(std::span<const std::array<float, 3>> places, std::vector<uint32_t>& triangles);

}  // namespace quarry::mesh_reader
