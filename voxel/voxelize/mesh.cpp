// SPDX-License-Identifier: Apache-2.0
// mesh.cpp - checks indices and lengths before a mesh is used, whatever its source.
#include "voxel/voxelize/mesh.hpp"

#include <cmath>

namespace quarry {
namespace {

bool image_index_valid(int32_t index, size_t count) { return index >= -1 && index < int64_t(count); }

}  // namespace

Result<void> check_mesh(const Mesh& mesh) {
  const auto bad = [](const std::string& what) { return fail(ErrorCode::invalid_argument, "invalid mesh: " + what); };
  const size_t vertices = mesh.vertex_count(), triangles = mesh.triangle_count();
  if (mesh.positions.size() != vertices * 3 || vertices > 0xFFFFFFFFull) return bad("the length of positions");
  if (mesh.indices.size() != triangles * 3 || triangles > 0x3FFFFFFFull) return bad("the length of indices");
  if (triangles == 0) return bad("it has no triangles");
  if (mesh.uvs.size() != mesh.uv_sets() * vertices * 2) return bad("the length of uvs");
  if (!mesh.colors.empty() && mesh.colors.size() != vertices * 4) return bad("the length of colors");
  if (mesh.triangle_material.size() != triangles) return bad("the length of triangle_material");
  if (mesh.materials.empty()) return bad("it has no material");
  for (const uint32_t index : mesh.indices)
    if (index >= vertices)
      return bad("index " + std::to_string(index) + " of " + std::to_string(vertices) + " vertices");
  for (const uint32_t material : mesh.triangle_material)
    if (material >= mesh.materials.size()) return bad("a triangle's material");
  for (const float value : mesh.positions)
    if (!std::isfinite(value)) return bad("a position that is not finite");
  for (const Image& image : mesh.images)
    if (image.width == 0 || image.height == 0 || image.rgba.size() != uint64_t(image.width) * image.height * 4)
      return bad("an image's size");
  for (const MeshMaterial& m : mesh.materials) {
    if (!image_index_valid(m.base_color_image, mesh.images.size()) ||
        !image_index_valid(m.metal_rough_image, mesh.images.size()) ||
        !image_index_valid(m.emission_image, mesh.images.size()))
      return bad("a material's image");
    if ((m.base_color_image >= 0 && m.base_color_place.uv_set >= mesh.uv_sets()) ||
        (m.metal_rough_image >= 0 && m.metal_rough_place.uv_set >= mesh.uv_sets()) ||
        (m.emission_image >= 0 && m.emission_place.uv_set >= mesh.uv_sets()))
      return bad("a texture without texture coordinates");
  }
  return {};
}

}  // namespace quarry
