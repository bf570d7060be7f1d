// SPDX-License-Identifier: Apache-2.0
// polygon.hpp - a face with more than three corners as triangles.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace quarry::mesh_reader {

// Appends the corners (numbers from 0) of places.size() - 2 triangles, three each, that run round as the polygon does:
// a fan where the polygon is convex, else ears that are cut off, seen along the polygon's mean normal. Takes the square
// of the corners that a polygon with reflex corners has.
void triangulate(std::span<const std::array<float, 3>> places, std::vector<uint32_t>& triangles);

}  // namespace quarry::mesh_reader
