// vox.hpp - MagicaVoxel .vox, read from memory: all models, scene graph, groups, layers, hidden, rotations, palette, MATL, IMAP,
// frame 0 of animations, cameras; and old multi-model files without a scene graph, whose models are frames.
//
// Rules: a model's pivot is floor(size / 2); cell = floor(R * (v + 0.5 - pivot) + t) in the file's z-up axes, then world
// (x, y, z) = file (x, z, -1 - y). File version >= 200: the lower instance wins an overlap; below 200 the higher one.
// Duplicate voxels in one model: the last one wins. Bytes are never trusted: every size is checked before memory is taken.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hashgrid/result.hpp"
#include "voxel/scene.hpp"

namespace quarry::io {

// `warnings` (may be null) gets one sentence for each thing skipped or mended. Errors: malformed_input with the byte offset and what
// was expected. Memory: at most a stated small multiple of the bytes given.
Result<Scene> parse_vox(std::span<const uint8_t> bytes, std::vector<std::string>* warnings = nullptr);

}  // namespace quarry::io
