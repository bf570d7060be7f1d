// SPDX-License-Identifier: Apache-2.0
// mesh.hpp - triangles with colour: the output of mesh readers and the input of the voxeliser.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace quarry {

struct Image {  // 8-bit RGBA, sRGB (images of roughness and metalness: plain numbers), row 0 on top
  uint32_t width = 0, height = 0;
  std::vector<uint8_t> rgba;
};

enum class Wrap : uint8_t { repeat, clamp, mirror };

// The mapping of an image onto a surface. The image's coordinates are (m[0] u + m[1] v + m[2], m[3] u + m[4] v + m[5])
// of one of the mesh's sets.
struct ImagePlace {
  Wrap wrap_u = Wrap::repeat, wrap_v = Wrap::repeat;
  uint32_t uv_set = 0;
  float m[6] = {1, 0, 0, 0, 1, 0};
};

struct MeshMaterial {
  std::string name;
  float base_color[4] = {1, 1, 1, 1};  // linear factor
  float roughness = 0.9f, metalness = 0, emission[3] = {0, 0, 0};
  int32_t base_color_image = -1;   // index into images
  int32_t metal_rough_image = -1;  // green multiplies roughness, blue multiplies metalness (glTF)
  int32_t emission_image = -1;     // multiplies emission
  ImagePlace base_color_place, metal_rough_place, emission_place;
};

struct Mesh {
  std::vector<float> positions;             // 3 per vertex, transforms of the file's node tree applied, y up
  std::vector<float> uvs;                   // 2 per vertex, set after set, or empty; v = 0 at the top row of the image
  std::vector<uint8_t> colors;              // 4 per vertex (sRGB) or empty
  std::vector<uint32_t> indices;            // 3 per triangle
  std::vector<uint32_t> triangle_material;  // 1 per triangle
  std::vector<MeshMaterial> materials;      // at least one
  std::vector<Image> images;

  size_t vertex_count() const { return positions.size() / 3; }
  size_t triangle_count() const { return indices.size() / 3; }
  size_t uv_sets() const { return positions.empty() ? 0 : uvs.size() / (vertex_count() * 2); }
};

// Checks that every index is in range, that array lengths agree, and that positions are finite. The voxeliser relies on
// it. Errors: invalid_argument, naming the array.
Result<void> check_mesh(const Mesh& mesh);

}  // namespace quarry
