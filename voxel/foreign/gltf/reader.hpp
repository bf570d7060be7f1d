// SPDX-License-Identifier: Apache-2.0
// reader.hpp - glTF 2.0 to a Mesh, by a reader of our own: Assimp 5.2 copies quantised numbers as if they were floats
// and passes over what it does not know. What of glTF is read is in docs/formats.md.
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

// A whole file. Opens nothing but through `outside`. Throws nothing but std::bad_alloc. Errors: malformed_input with
// the place in the JSON, unsupported (what the file requires is not known), out_of_memory.
Result<Mesh> read_gltf(std::vector<uint8_t> file, bool z_up, const GltfOutside& outside,
                       std::vector<std::string>& warnings, const GltfLimits& limits = {});

// The file if it is glTF, by its name or by its first bytes; nullopt if it is not, or of version 1.
std::optional<Result<Mesh>> read_gltf_file(const std::filesystem::path& file, bool z_up,
                                           std::vector<std::string>& warnings, ReferencedFiles& files);

}  // namespace quarry::mesh_reader
