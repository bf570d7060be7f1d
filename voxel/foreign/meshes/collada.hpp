// SPDX-License-Identifier: Apache-2.0
// collada.hpp - checks that a COLLADA file's arrays hold what its accessors and indices refer to. Assimp 5.2 trusts
// counts, offsets and strides, and reads past the end of its arrays, so files are checked first.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace quarry::mesh_reader {

constexpr int kColladaMaxDepth = 1000;  // levels of nested elements; Assimp recurses for each

// Checks arrays against their counts, accessors against arrays, and the indices of primitives and skins against
// accessors. The XML library knows only XML's own five entities, so nothing expands. Memory: about twice the file's
// size. Errors: malformed_input, which names the element and the number; unsupported past a limit; those of reading the
// file.
Result<void> check_collada(const std::filesystem::path& file);
// Does the same for a file in memory, which it changes.
Result<void> check_collada(std::vector<uint8_t>& bytes);

}  // namespace quarry::mesh_reader
