// SPDX-License-Identifier: Apache-2.0
// readers.hpp - the parts of quarry-mesh-reader, the process that may crash: they convert Assimp's scene or a glTF file
// to a Mesh, and images to RGBA.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "voxel/foreign/pipe/named_files.hpp"
#include "voxel/voxelize/mesh.hpp"

namespace quarry::mesh_reader {

// Reads one file, through Assimp unless it is glTF 2.0 (gltf/reader.hpp). `up` is "y", "z" or "auto". `files` records
// the other files that were opened. Errors: malformed_input, unsupported, out_of_memory.
Result<Mesh> read_file(const std::filesystem::path& file, const std::string& up, std::vector<std::string>& warnings,
                       ReferencedFiles& files);

// Decodes PNG, JPEG, TGA, BMP, GIF and PSD with stb_image, up to 16384 pixels a side. On failure it returns nullopt,
// with the reason in `why`.
std::optional<Image> decode_image(std::span<const uint8_t> bytes, std::string& why);
std::optional<Image> load_image(const std::filesystem::path& file, std::string& why);

}  // namespace quarry::mesh_reader
