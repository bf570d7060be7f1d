// SPDX-License-Identifier: Apache-2.0
// png.hpp - converts PNG files to plain samples and back: height maps, their colours, pictures of voxels, rendered
// pictures. The mesh reader's process decodes the textures of meshes.
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
  std::vector<uint16_t> samples;  // by rows from the top
  const uint16_t* at(uint32_t x, uint32_t y) const { return samples.data() + (size_t(y) * width + x) * channels; }
  // A sample as a byte.
  uint32_t byte(uint16_t sample) const { return bits == 16 ? sample >> 8 : sample; }
};

// Errors: malformed_input with the byte at which libpng stopped; unsupported for edges above the limit, or more bytes
// of samples than `memory_limit_bytes`; out_of_memory for more than the room of `budget` (may be null). Memory: the
// samples, and libpng's row buffers (other chunks than the picture's are not kept).
Result<PngImage> decode_png(std::span<const uint8_t> bytes, uint64_t memory_limit_bytes,
                            std::vector<std::string>* warnings, const MemoryBudget* budget = nullptr);

// Pixels to write, by rows from the top. Bytes are in the file's order: 16 bits have the high byte first.
struct PngPixels {
  uint32_t width, height, channels, bits;  // as in PngImage
  std::span<const uint8_t> bytes;          // width * height * channels * bits / 8
  bool srgb = false;                       // the file says that its colours are sRGB
};

// Writes a PNG file, not interlaced, into `to`, which the caller commits. Only commit() reports a failed write. Errors:
// io, with libpng's message (no memory, an edge that it does not write).
Result<void> write_png(const PngPixels& pixels, AtomicFile& to);

}  // namespace quarry::io
