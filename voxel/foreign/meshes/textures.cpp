// SPDX-License-Identifier: Apache-2.0
// textures.cpp - looks textures up by name, decodes each once, and finds one in the folder of a mesh that names none.
#include "voxel/foreign/meshes/textures.hpp"

#include <algorithm>

namespace quarry::mesh_reader {
namespace fs = std::filesystem;

void MeshTextures::warn(const std::string& text) {
  if (warnings_.size() < 100) warnings_.push_back(text);
}

std::optional<int32_t> MeshTextures::known(const std::string& name) const {
  const auto at = image_of_.find(name);
  return at == image_of_.end() ? std::nullopt : std::optional(at->second);
}

int32_t MeshTextures::keep(const std::string& name, std::optional<Image> image, const std::string& why) {
  int32_t index = -1;
  if (image) {
    index = int32_t(mesh_.images.size());
    mesh_.images.push_back(std::move(*image));
  } else {
    warn("texture '" + name + "' is left out: " + why);
  }
  return image_of_[name] = index;
}

int32_t MeshTextures::from_file(const std::string& name) {
  if (const auto already = known(name)) return *already;
  std::string why = "there is no such file beside the mesh";
  std::optional<Image> image;
  if (const auto place = files_.find(name)) image = load_image(*place, why);
  return keep(name, std::move(image), why);
}

void MeshTextures::use_beside() {
  if (mesh_.uvs.empty() || !mesh_.colors.empty() || mesh_.materials.size() > 1) return;
  for (const MeshMaterial& m : mesh_.materials)
    if (m.base_color_image >= 0) return;
  const std::string stem = (file_.parent_path() / file_.stem()).string();
  for (const char* ending : {"", "_texture", "_diffuse", "_basecolor", "_albedo", "_color"})
    for (const char* kind : {".png", ".jpg", ".jpeg", ".tga", ".bmp"}) {
      const fs::path place = stem + ending + kind;
      if (!files_.is_there(place)) continue;
      std::string why;
      auto image = load_image(place, why);
      if (image) warn("it names no texture; " + place.filename().string() + " beside it is used");
      const int32_t index = keep(place.filename().string(), std::move(image), why);
      if (index >= 0) {
        mesh_.materials[0].base_color_image = index;
        std::fill(mesh_.materials[0].base_color, mesh_.materials[0].base_color + 3, 1.0f);
      }
      return;
    }
}

void MeshTextures::forget_without_uvs() {
  if (!mesh_.uvs.empty() || mesh_.images.empty()) return;
  warn("it has textures but no texture coordinates; the textures are left out");
  for (MeshMaterial& m : mesh_.materials) m.base_color_image = m.metal_rough_image = m.emission_image = -1;
  mesh_.images.clear();
}

}  // namespace quarry::mesh_reader
