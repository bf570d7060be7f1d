// SPDX-License-Identifier: Apache-2.0
// png.hpp - PNG files to plain samples and back: height maps, their colours, pictures of voxels, rendered pictures. Not
// for textures of meshes: the mesh reader's process decodes those.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/memory_budget.hpp"
#include "base/result.hpp"
#include "voxel/io/files/atomic_file.hpp"

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

// Errors: malformed_input with the byte at which libpng gave up; unsupported for edges above the limit, or more bytes
// of samples than `memory_limit_bytes`. Memory: the samples, and libpng's row buffers (chunks beside the picture are
// not kept). out_of_memory for more than `budget` (may be null) has room for.
Result<PngImage> decode_png(std::span<const uint8_t> bytes, uint64_t memory_limit_bytes,
                            std::vector<std::string>* warnings, const MemoryBudget* budget = nullptr);

// Pixels to write, row by row from the top, bytes in the order of the file: of 16 bits the high byte first.
struct PngPixels {
  uint32_t width, height, channels, bits;  // as in PngImage
  std::span<const uint8_t> bytes;          // width * height * channels * bits / 8 of them
  bool srgb = false;                       // the file says that its colours are sRGB
};

// Puts a PNG file, not interlaced, into `to`, which the caller commits. A failed write is told by commit() alone.
// Errors: io, with libpng's own words (no memory, an edge that it does not write).
Result<void> write_png(const PngPixels& pixels, AtomicFile& to);

}  // namespace quarry::io
