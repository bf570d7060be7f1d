// mesh.hpp - triangles with colour, as the mesh reader hands them to the voxeliser.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "hashgrid/result.hpp"
#include "voxel/io/format.hpp"

namespace quarry {

struct Image {  // 8-bit RGBA, sRGB, row 0 on top
  uint32_t width = 0, height = 0;
  std::vector<uint8_t> rgba;
};

struct MeshMaterial {
  std::string name;
  float base_color[4] = {1, 1, 1, 1};  // linear factor
  float roughness = 0.9f, metalness = 0, emission[3] = {0, 0, 0};
  int32_t base_color_image = -1;       // index into images
};

struct Mesh {
  std::vector<float> positions;    // 3 per vertex, transforms of the file's node tree applied, y up
  std::vector<float> uvs;          // 2 per vertex or empty; v = 0 at the top row of the image
  std::vector<uint8_t> colors;     // 4 per vertex (sRGB) or empty
  std::vector<uint32_t> indices;   // 3 per triangle
  std::vector<uint32_t> triangle_material;  // 1 per triangle
  std::vector<MeshMaterial> materials;      // at least one
  std::vector<Image> images;
};

// Reads a mesh through Assimp in a process of its own (`quarry-mesh-reader`, beside this executable, in its libexec, or
// $QUARRY_MESH_READER), with limits on time and memory: whatever it does to itself, this process gets a mesh or one clean error.
Result<Mesh> read_mesh(const std::filesystem::path& file, const io::ReadOptions& options);

}  // namespace quarry
