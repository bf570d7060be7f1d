// SPDX-License-Identifier: Apache-2.0
// ply_fuzz.cpp - reads any bytes as a PLY mesh, from memory.
#include "tests/fuzz/scene_check.hpp"
#include "voxel/foreign/meshes/ply.hpp"

using namespace quarry;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> warnings;
  const std::filesystem::path file = "/nowhere/at all.ply";
  mesh_reader::ReferencedFiles files(file);
  io::BufferedReader pieces({data, size});
  const auto mesh = mesh_reader::parse_ply(pieces, file, size % 2 == 0, warnings, files);
  if (mesh ? !check_mesh(*mesh) : mesh.error().message.empty() && mesh.error().code != ErrorCode::out_of_memory)
    std::abort();
  return 0;
}
