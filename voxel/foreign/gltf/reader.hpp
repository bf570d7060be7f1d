// SPDX-License-Identifier: Apache-2.0
// reader.hpp - reads glTF 2.0 into a Mesh, without Assimp: Assimp 5.2 copies quantised numbers as if they were floats
// and ignores what it does not know. docs/formats.md lists what is read of glTF.
//
//   file -> GltfDocument (container, JSON, buffers) -> GltfAccessor (numbers) -> GltfPart (triangles of a primitive)
//        -> here: the nodes' transforms, instances, morph weights -> Mesh
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "voxel/foreign/gltf/document.hpp"
#include "voxel/foreign/pipe/named_files.hpp"
#include "voxel/foreign/pipe/vertex_color.hpp"
#include "voxel/voxelize/mesh.hpp"

namespace quarry::mesh_reader {

struct GltfLimits {
  uint64_t nodes = kMaxNodes, triangles = kMaxTriangles, vertices = kMaxVertices;
};

// Reads a whole file. It opens other files only through `outside`. It throws only std::bad_alloc. Errors:
// malformed_input with the place in the JSON, unsupported (the file requires an unknown extension), out_of_memory.
Result<Mesh> read_gltf(std::vector<uint8_t> file, bool z_up, const GltfOutside& outside,
                       std::vector<std::string>& warnings, const GltfLimits& limits = {});

// Reads the file if it is glTF by its name or its first bytes. Returns nullopt if it is not glTF or is of version 1.
std::optional<Result<Mesh>> read_gltf_file(const std::filesystem::path& file, bool z_up,
                                           std::vector<std::string>& warnings, ReferencedFiles& files);

}  // namespace quarry::mesh_reader
