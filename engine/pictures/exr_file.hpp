// SPDX-License-Identifier: Apache-2.0
// exr_file.hpp - path-traced pictures as OpenEXR files: linear light, with depth, albedo and normals.
#pragma once

#include <filesystem>

#include "engine/pictures/path_tracer.hpp"
#include "voxel/io/files/atomic_file.hpp"

namespace quarry::engine {

bool can_write_exr();  // false: this build has no OpenEXR

// Channels R G B A (32-bit floats, colour multiplied by alpha) and, if the picture has them, Z, albedo.R/G/B,
// normal.X/Y/Z. The file is written whole or not at all (voxel/io/files/atomic_file.hpp). Errors: unsupported (no
// OpenEXR), io, invalid_argument.
Result<void> write_exr(const PathPicture& picture, const io::Destination& to);

}  // namespace quarry::engine
