// SPDX-License-Identifier: Apache-2.0
// readers.hpp - the parts of quarry-mesh-reader, the process that may crash: Assimp's scene or a glTF file to a Mesh,
// images to RGBA.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "voxel/foreign/pipe/named_files.hpp"
#include "voxel/voxelize/mesh.hpp"

namespace quarry::mesh_reader {

// One file, through Assimp unless it is glTF 2.0 (gltf/reader.hpp). `up` is "y", "z" or "auto". `files` gets to know
// what else was opened. Errors: malformed_input, unsupported, out_of_memory.
Result<Mesh> read_file(const std::filesystem::path& file, const std::string& up, std::vector<std::string>& warnings,
                       ReferencedFiles& files);

// PNG, JPEG, TGA, BMP, GIF, PSD as stb_image knows them; at most 16384 pixels a side. nullopt with the reason in `why`.
std::optional<Image> decode_image(std::span<const uint8_t> bytes, std::string& why);
std::optional<Image> load_image(const std::filesystem::path& file, std::string& why);

}  // namespace quarry::mesh_reader
