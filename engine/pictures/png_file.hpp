// SPDX-License-Identifier: Apache-2.0
// png_file.hpp - rendered pictures to and from PNG files (voxel/io/pictures/png.hpp).
#pragma once

#include <filesystem>

#include "engine/render/ray_marcher.hpp"
#include "voxel/io/files/atomic_file.hpp"

namespace quarry::engine {

// The file is written whole or not at all (voxel/io/files/atomic_file.hpp).
Result<void> write_png(const Picture& picture, const io::Destination& to);
Result<Picture> read_png(const std::filesystem::path& file);

}  // namespace quarry::engine
