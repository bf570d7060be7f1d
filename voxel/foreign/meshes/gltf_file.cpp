// SPDX-License-Identifier: Apache-2.0
// gltf_file.cpp - glTF files on disk: it recognises them and opens the files that they name.
#include <fstream>

#include "voxel/foreign/gltf/reader.hpp"
#include "voxel/foreign/meshes/readers.hpp"

namespace quarry::mesh_reader {
namespace fs = std::filesystem;
namespace {

std::optional<std::vector<uint8_t>> bytes_of(const fs::path& file, uint64_t limit, std::string& why) {
  std::error_code error;
  const uint64_t size = fs::file_size(file, error);
  if (error) {
    why = error.message();
    return std::nullopt;
  }
  std::vector<uint8_t> bytes(std::min(size, limit));
  std::ifstream in(file, std::ios::binary);
  if (!in.read(reinterpret_cast<char*>(bytes.data()), std::streamsize(bytes.size()))) {
    why = "it cannot be read";
    return std::nullopt;
  }
  return bytes;
}

bool is_gltf(const fs::path& file) {
  std::string ending = file.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  std::string why;
  const auto head = bytes_of(file, 4, why);
  return ending == ".gltf" || ending == ".glb" || (head && std::string(head->begin(), head->end()) == "glTF");
}

}  // namespace

std::optional<Result<Mesh>> read_gltf_file(const fs::path& file, bool z_up, std::vector<std::string>& warnings,
                                           ReferencedFiles& files) {
  if (!is_gltf(file)) return std::nullopt;
  std::string why;
  auto bytes = bytes_of(file, UINT64_MAX, why);
  if (!bytes) return fail(ErrorCode::io, why + ".");
  if (gltf_version(*bytes).rfind("1.", 0) == 0) return std::nullopt;
  const GltfOutside outside{[&](const std::string& uri, std::string& reason) -> std::optional<std::vector<uint8_t>> {
                              const auto place = files.find(uri);
                              if (place) return bytes_of(*place, UINT64_MAX, reason);
                              reason = "there is no such file beside the mesh";
                              return std::nullopt;
                            },
                            decode_image};
  return read_gltf(std::move(*bytes), z_up, outside, warnings);
}

}  // namespace quarry::mesh_reader
