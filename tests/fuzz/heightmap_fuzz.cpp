// SPDX-License-Identifier: Apache-2.0
// heightmap_fuzz.cpp - reads any bytes as a PNG height map, and again as its colour map. Checksums and compression
// would keep the fuzzer out of the pictures, so they are made here, as a faulty program would make them. After an even
// first byte comes a file whose chunks' checksums are corrected. After an odd one come a header's five numbers and the
// rows to be compressed.
#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "tests/fuzz/scene_check.hpp"
#include "voxel/io/pictures/heightmap.hpp"

namespace {

using Bytes = std::vector<uint8_t>;

uint32_t big(const uint8_t* at) { return uint32_t(at[0]) << 24 | uint32_t(at[1]) << 16 | uint32_t(at[2]) << 8 | at[3]; }
void put_big(uint8_t* at, uint32_t v) {
  for (int i = 3; i >= 0; --i, v >>= 8) at[i] = uint8_t(v);
}

// Lengths beyond the end are not changed.
void put_checksums_right(Bytes& png) {
  for (size_t at = 8; at + 12 <= png.size();) {
    const uint64_t length = big(&png[at]);
    if (length > png.size() - at - 12) break;
    put_big(&png[at + 8 + size_t(length)], uint32_t(crc32(0, &png[at + 4], uInt(length + 4))));
    at += 12 + size_t(length);
  }
}

void chunk(Bytes& png, const char* name, const Bytes& content) {
  const size_t at = png.size();
  png.resize(at + 12 + content.size());
  put_big(&png[at], uint32_t(content.size()));
  std::memcpy(&png[at + 4], name, 4);
  std::copy(content.begin(), content.end(), png.begin() + int64_t(at) + 8);
}

Bytes made(std::span<const uint8_t> in) {
  Bytes png{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  chunk(png, "IHDR", {0, 0, 0, in[0], 0, 0, 0, in[1], in[2], in[3], 0, 0, in[4]});
  const auto rows = in.subspan(5);
  if (in[3] == 3)
    chunk(png, "PLTE", Bytes(rows.begin(), rows.begin() + int64_t(std::min<size_t>(rows.size() / 3, 256)) * 3));
  Bytes packed(compressBound(uLong(rows.size())));
  uLongf length = uLongf(packed.size());
  compress2(packed.data(), &length, rows.data(), uLong(rows.size()), 1);
  packed.resize(length);
  chunk(png, "IDAT", packed);
  chunk(png, "IEND", {});
  return png;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 6) return 0;
  Bytes png = data[0] & 1 ? made({data + 1, size - 1}) : Bytes(data + 1, data + size);
  put_checksums_right(png);
  std::vector<std::string> warnings;
  return quarry::test::check_answer(
      quarry::io::parse_heightmap(png, data[0] & 2 ? png : Bytes(), {32, 1u << 22}, &warnings));
}
