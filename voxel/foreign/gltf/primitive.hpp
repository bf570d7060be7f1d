// SPDX-License-Identifier: Apache-2.0
// primitive.hpp - converts one primitive of a glTF mesh to plain triangles. Strips and fans become triangles, and Draco
// is decoded. Only vertices that a triangle uses are kept, however large the arrays shared with other primitives are.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "voxel/foreign/gltf/document.hpp"

namespace quarry::mesh_reader {

struct GltfPart {
  std::vector<float> positions;             // 3 per vertex, as in the file: neither morphed nor transformed
  std::vector<std::vector<float>> uvs;      // of each set asked for, 2 per vertex or empty
  std::vector<uint8_t> colors;              // 4 per vertex (sRGB) or empty
  std::vector<std::vector<float>> targets;  // of each morph target asked for, 3 per vertex or empty
  std::vector<uint32_t> indices;            // 3 per triangle
  uint64_t bad_indices = 0;                 // triangles left out because they refer to missing vertices
};

struct GltfWanted {
  std::vector<uint64_t> uv_sets;  // n of TEXCOORD_n
  size_t targets = 0;             // how many morph targets
  uint64_t most_triangles = 0;
  std::function<void(const std::string&)> warn;
};

// Whether a primitive is made of triangles; points and lines are not.
bool has_triangles(const Json& primitive, const std::string& where);
// Throws GltfFault.
GltfPart read_primitive(GltfDocument& document, const Json& primitive, const std::string& where,
                        const GltfWanted& wanted);

}  // namespace quarry::mesh_reader
