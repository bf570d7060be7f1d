// SPDX-License-Identifier: Apache-2.0
// write.cpp - shared by the writers of PLY, OBJ and glTF: the visible surface, names, colours and numbers as text.
#include "voxel/io/meshes/write.hpp"

#include <charconv>
#include <cmath>

#include "voxel/worlds/source_units.hpp"

namespace quarry::io {

Result<SurfaceMesh> visible_surface(const Scene& scene, const Progress& progress) {
  progress.say("flatten", -1);
  QRY_TRY_ASSIGN(const auto bricks, flatten(scene, true));
  if (bricks.empty())
    return fail(ErrorCode::invalid_argument, "the scene has no visible voxel, so there is no surface to write");
  SurfaceMeshOptions options;
  options.progress = progress;
  return surface_mesh(bricks, scene.palette, options);
}

std::string material_name(const Palette& palette, uint8_t material) {
  std::string number = "colour " + std::to_string(material);
  const std::string& name = palette.names[material];
  if (name.empty()) return number;
  for (size_t m = 1; m < 256; ++m)
    if (m != material && palette.names[m] == name) return name + ", " + number;
  return name;
}

std::array<float, 3> linear_color(const Material& material) {
  std::array<float, 3> out{};
  const uint8_t bytes[3] = {material.r, material.g, material.b};
  for (size_t i = 0; i < 3; ++i) {
    const double c = bytes[i] / 255.0;
    out[i] = float(c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4));
  }
  return out;
}

std::string units_comment(const Scene& scene) {
  const auto units = source_units(scene);
  return units ? "voxel_size " + shortest_text(units->voxel_size) + ", origin " + origin_text(*units) : std::string();
}

std::string number_text(float v) {
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, v).ptr};
}

}  // namespace quarry::io
