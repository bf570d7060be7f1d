// SPDX-License-Identifier: Apache-2.0
// gltf_fuzz.cpp - reads any bytes as a .glb or .gltf file. Other files that it names have the input's own bytes, and
// every picture is one texel, so no file is opened. Draco and meshoptimizer are linked as installed, without
// instrumentation.
#include <cstdlib>

#include "voxel/foreign/gltf/reader.hpp"
#include "voxel/foreign/pipe/mesh_stream.hpp"

using namespace quarry;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<uint8_t> file(data, data + size);
  const mesh_reader::GltfOutside outside{
      [&](const std::string& uri, std::string& why) -> std::optional<std::vector<uint8_t>> {
        if (uri != "a.bin") why = "there is no such file beside the mesh";
        return uri == "a.bin" ? std::optional(file) : std::nullopt;
      },
      [](std::span<const uint8_t> bytes, std::string& why) -> std::optional<Image> {
        if (bytes.empty()) why = "it is empty";
        return bytes.empty() ? std::nullopt : std::optional(Image{1, 1, {bytes[0], 2, 3, 4}});
      }};
  std::vector<std::string> warnings;
  (void)mesh_reader::gltf_version(file);
  const auto mesh = mesh_reader::read_gltf(file, size % 2 == 1, outside, warnings, {1000, 1 << 16, 1 << 18});
  // The mesh must pass the check of its users, and an error must have a message unless it is about memory.
  if (mesh ? !check_mesh(*mesh) : mesh.error().message.empty() && mesh.error().code != ErrorCode::out_of_memory)
    std::abort();
  return 0;
}
