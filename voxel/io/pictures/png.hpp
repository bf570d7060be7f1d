// SPDX-License-Identifier: Apache-2.0
// png.hpp - a PNG from memory to plain samples and back, for height maps, their colours, and pictures of voxels. Not for textures of meshes: the mesh reader's
// process decodes those.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/memory_budget.hpp"

namespace quarry::io {

constexpr uint32_t kPngMaxEdge = 16384;

// 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA; 8 or 16 bits, as in the file (palettes and fewer bits are expanded).
struct PngImage {
  uint32_t width = 0, height = 0, channels = 0, bits = 0;
  std::vector<uint16_t> samples;  // row by row from the top
  const uint16_t* at(uint32_t x, uint32_t y) const { return samples.data() + (size_t(y) * width + x) * channels; }
  // A sample as a byte.
  uint32_t byte(uint16_t sample) const { return bits == 16 ? sample >> 8 : sample; }
};

// Errors: malformed_input with the byte at which libpng gave up; unsupported for edges above the limit, or more bytes of samples than
// `memory_limit_bytes`. Memory: the samples, and libpng's row buffers (chunks beside the picture are not kept).
// out_of_memory for more than `budget` (may be null) has room for.
Result<PngImage> decode_png(std::span<const uint8_t> bytes, uint64_t memory_limit_bytes, std::vector<std::string>* warnings, const MemoryBudget* budget = nullptr);

// The same samples as a PNG file, not interlaced. Errors: invalid_argument (sizes that do not fit each other), out_of_memory.
Result<std::vector<uint8_t>> encode_png(const PngImage& image);

}  // namespace quarry::io
