// picture_file.hpp - pictures to and from PNG files (libpng).
#pragma once

#include <filesystem>

#include "engine/renderer.hpp"

namespace quarry::engine {

// Whole or not at all: written beside, then renamed.
Result<void> write_png(const Picture& picture, const std::filesystem::path& file);
Result<Picture> read_png(const std::filesystem::path& file);

}  // namespace quarry::engine
