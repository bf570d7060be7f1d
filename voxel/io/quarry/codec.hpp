// SPDX-License-Identifier: Apache-2.0
// codec.hpp - the bytes inside a .quarry file's blobs: chunks of bricks and parts of undo records, of voxels or of the
// palette. docs/formats.md has the layout.
//
// Plain bytes are canonical: the same bricks give the same bytes, whoever wrote them and in whatever order. They are
// compressed with zstd; the checksum (XXH3, 64 bits) covers the compressed bytes and the row's own numbers, so a blob
// that strayed into another row is noticed, and nothing is given to the decompressor that has not been checked.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "voxel/bricks/map.hpp"
#include "voxel/worlds/edit.hpp"

namespace quarry::io {

constexpr uint32_t kChunkBricks = 512;
constexpr uint32_t kBrickBytesMax = 64 + 512;
constexpr uint32_t kChunkBytesMax = 2 + kChunkBricks * (2 + kBrickBytesMax);
// Of an undo record in one row: some 5 MiB at most, far below what SQLite holds in a value.
constexpr uint32_t kPartChanges = 4096;
constexpr uint32_t kPartBytesMax = 4 + kPartChanges * (12 + 2 * kBrickBytesMax);

// Brick coordinates whose voxels have 32-bit coordinates.
constexpr int32_t kMaxBrickCoordinate = 1 << 28;
inline bool brick_storable(Int3 b) {
  const auto in = [](int32_t v) { return v >= -kMaxBrickCoordinate && v < kMaxBrickCoordinate; };
  return in(b.x) && in(b.y) && in(b.z);
}
inline Int3 chunk_of(Int3 brick) { return {brick.x >> 3, brick.y >> 3, brick.z >> 3}; }

struct Blob {
  std::vector<uint8_t> data;  // compressed
  uint32_t plain_bytes = 0;
  uint32_t count = 0;  // bricks or changes
  uint64_t checksum = 0;
};

// The chunk of `bricks`; count 0 if there is no brick in it. Errors: out_of_memory.
Result<Blob> encode_chunk(const BrickMap& bricks, Int3 chunk, uint32_t volume);
// Puts the chunk's bricks into `into`. Errors: malformed_input (without saying which chunk).
Result<void> decode_chunk(std::span<const uint8_t> data, uint32_t plain_bytes, uint32_t count, Int3 chunk,
                          BrickMap* into);
uint64_t chunk_checksum(std::span<const uint8_t> data, uint32_t volume, Int3 chunk, uint32_t plain_bytes,
                        uint32_t count);

constexpr int64_t kPaletteVolume = -1;  // what a record of the palette has as its volume

// The numbers and the label of a record, which stand in each row of its parts.
struct RecordHead {
  int64_t record = 0;  // from 1
  uint32_t part = 0;   // from 0, or from 1 in a record that continues the step of the one before it
  int64_t volume = 0;
  std::string label;
  uint64_t voxels = 0;
};
Result<Blob> encode_part(std::span<const BrickChange> changes, const RecordHead& head);
Result<void> decode_part(std::span<const uint8_t> data, uint32_t plain_bytes, uint32_t count,
                         std::vector<BrickChange>* append);
// The same for changes of the palette, which always fit into one part. Errors: invalid_argument (the names are too
// long), out_of_memory; malformed_input.
Result<Blob> encode_materials(std::span<const MaterialChange> changes, const RecordHead& head);
Result<void> decode_materials(std::span<const uint8_t> data, uint32_t plain_bytes, uint32_t count,
                              std::vector<MaterialChange>* out);
uint64_t part_checksum(std::span<const uint8_t> data, const RecordHead& head, uint32_t plain_bytes, uint32_t count);

// A checksum over fields, in the order given; texts and lists are told apart from their neighbours by their lengths.
class FieldSum {
 public:
  FieldSum& add(int64_t v);
  FieldSum& add(double v);
  FieldSum& add(std::string_view text);
  uint64_t value() const;

 private:
  std::vector<uint8_t> bytes_;
};

}  // namespace quarry::io
