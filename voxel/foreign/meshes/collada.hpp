// SPDX-License-Identifier: Apache-2.0
// collada.hpp - whether a COLLADA file's arrays hold what its accessors and indices ask of them. Assimp 5.2 believes
// counts, offsets and strides, and reads behind its arrays; so what it is given is looked at first.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace quarry::mesh_reader {

constexpr int kColladaMaxDepth = 1000;  // elements within elements: Assimp calls itself for each

// Arrays against their counts, accessors against arrays, the indices of primitives and skins against accessors. The XML
// library knows no entities but XML's own five, so nothing expands. Takes the file and about as much again. Errors:
// malformed_input, which names the element and the number; unsupported past a limit; those of reading the file.
Result<void> check_collada(const std::filesystem::path& file);
// The same of a file in memory, which is changed.
Result<void> check_collada(std::vector<uint8_t>& bytes);

}  // namespace quarry::mesh_reader
