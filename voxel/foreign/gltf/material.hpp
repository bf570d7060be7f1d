// SPDX-License-Identifier: Apache-2.0
// material.hpp - glTF's materials, textures, samplers and images, converted to those of a Mesh.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "voxel/foreign/gltf/document.hpp"
#include "voxel/voxelize/mesh.hpp"

namespace quarry::mesh_reader {

class GltfMaterials {
 public:
  GltfMaterials(GltfDocument& document, const GltfOutside& outside, Mesh& mesh, std::vector<std::string>& warnings)
      : document_(document), outside_(outside), mesh_(mesh), warnings_(warnings) {}

  // The place in mesh.materials of materials[index], or of the default material. A material is read when it is first
  // asked for, so images of unused materials are not read. Throws GltfFault.
  uint32_t of(std::optional<uint64_t> index, const std::string& who);

  // The numbers n of the file's TEXCOORD_n that one of mesh.materials uses, in the order of the mesh's UV sets.
  const std::vector<uint64_t>& uv_sets(uint32_t material) const { return uv_sets_[material]; }

 private:
  struct Texture {
    int32_t image = -1;
    uint64_t coordinates = 0;
    ImagePlace place;
  };
  MeshMaterial read(const Json& source, const std::string& where, std::vector<uint64_t>& uv_sets);
  void read_specular(const Json& glossy, const std::string& where, MeshMaterial& m, Texture& base);
  Texture texture(const Json& owner, const char* key, bool numbers, const std::string& where);
  void use(const Texture& texture, int32_t& image, ImagePlace& place, std::vector<uint64_t>& uv_sets) const;
  int32_t image(uint64_t index, bool numbers, const std::string& who);
  void warn(const std::string& text);

  GltfDocument& document_;
  const GltfOutside& outside_;
  Mesh& mesh_;
  std::vector<std::string>& warnings_;
  std::map<std::optional<uint64_t>, uint32_t> known_;
  // The key is the image's number and whether its bytes are plain numbers. An image used for both colours and
  // roughness is in here twice.
  std::map<std::pair<uint64_t, bool>, int32_t> image_of_;
  std::vector<std::vector<uint64_t>> uv_sets_;  // by material
};

}  // namespace quarry::mesh_reader
