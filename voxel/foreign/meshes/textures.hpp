// SPDX-License-Identifier: Apache-2.0
// textures.hpp - the pictures of one mesh: each is read once, by its name in the file. An unreadable one becomes a
// warning. The readers of quarry-mesh-reader share it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "voxel/foreign/meshes/readers.hpp"

namespace quarry::mesh_reader {

class MeshTextures {
 public:
  // All must outlive it.
  MeshTextures(std::filesystem::path mesh_file, Mesh& mesh, std::vector<std::string>& warnings, ReferencedFiles& files)
      : file_(std::move(mesh_file)), mesh_(mesh), warnings_(warnings), files_(files) {}

  // The number of the image that was kept under this name, -1 if it was left out, nullopt if it was not asked for yet.
  std::optional<int32_t> known(const std::string& name) const;
  // Adds an image to the mesh, or warns that it is left out, and why. Returns its number, or -1.
  int32_t keep(const std::string& name, std::optional<Image> image, const std::string& why);
  // Does the same for a file that the mesh names.
  int32_t from_file(const std::string& name);
  // Many models are shared as a mesh with texture coordinates, without material, next to a picture of the same name.
  // That picture is used if nothing else gives colours.
  void use_beside();
  // Removes pictures that have no texture coordinates, because nothing can use them.
  void forget_without_uvs();
  void warn(const std::string& text);

 private:
  std::filesystem::path file_;
  Mesh& mesh_;
  std::vector<std::string>& warnings_;
  ReferencedFiles& files_;
  std::map<std::string, int32_t> image_of_;
};

}  // namespace quarry::mesh_reader
