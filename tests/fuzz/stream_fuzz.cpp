// SPDX-License-Identifier: Apache-2.0
// stream_fuzz.cpp - reads any bytes as the stream of another process. The first byte selects a mesh or voxels. The
// checksum at the stream's end is corrected first, as a faulty program would make it.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "voxel/foreign/pipe/mesh_stream.hpp"
#include "voxel/foreign/pipe/voxel_stream.hpp"

using namespace quarry;

namespace {

// Appends a section DONE with the sum of all payloads, as far as the sections' lengths are valid.
void close_stream(std::vector<uint8_t>& bytes) {
  XXH3_state_t hash;
  XXH3_64bits_reset(&hash);
  size_t at = 8;
  while (at + 16 <= bytes.size()) {
    uint64_t length;
    std::memcpy(&length, &bytes[at + 8], 8);
    if (length > bytes.size() - at - 16) break;
    XXH3_64bits_update(&hash, &bytes[at + 16], size_t(length));
    at += 16 + size_t(length);
  }
  bytes.resize(at < bytes.size() ? at : bytes.size());
  const uint8_t head[16] = {'D', 'O', 'N', 'E', 0, 0, 0, 0, 8};
  const uint64_t sum = XXH3_64bits_digest(&hash);
  const auto* tail = reinterpret_cast<const uint8_t*>(&sum);
  bytes.insert(bytes.end(), head, head + 16);
  bytes.insert(bytes.end(), tail, tail + 8);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  std::vector<uint8_t> bytes(data + 1, data + size);
  if (bytes.size() >= 8) close_stream(bytes);
  std::vector<std::string> warnings;
  if (data[0] & 1) {
    const auto mesh = parse_mesh_stream(bytes, &warnings);
    if (mesh && !check_mesh(*mesh)) __builtin_trap();
  } else {
    uint64_t voxels = 0;
    uint32_t value_bytes = 0;
    io::VoxelStreamEvents events;
    events.grid = [&](const io::StreamGrid& grid) -> Result<void> {
      value_bytes = grid.record.value_bytes;
      return {};
    };
    events.brick = [&](Int3, const BrickMask& mask, std::span<const uint8_t> values) -> Result<void> {
      size_t count = 0;
      for (const uint64_t word : mask) count += size_t(std::popcount(word));
      if (values.size() != count * value_bytes) __builtin_trap();
      for (const uint8_t value : values) voxels += value;
      return {};
    };
    const auto parsed = io::parse_voxel_stream(bytes, "the fuzzer", events, &warnings);
    if (!parsed && parsed.error().message.empty()) __builtin_trap();
    // In pieces of any length it is the same stream, or no stream.
    const size_t piece = size_t(data[0] >> 1) + 1;
    const uint64_t at_once = voxels;
    voxels = 0;
    io::VoxelStreamParser parser("the fuzzer", events, nullptr);
    Result<void> in_pieces;
    for (size_t at = 0; at < bytes.size() && in_pieces; at += piece)
      in_pieces = parser.push({bytes.data() + at, std::min(piece, bytes.size() - at)});
    if (in_pieces) in_pieces = parser.end();
    if (in_pieces.has_value() != parsed.has_value() || voxels != at_once) __builtin_trap();
  }
  return 0;
}
