// SPDX-License-Identifier: Apache-2.0
// codec.hpp - the bytes inside a .quarry file's blobs: chunks of bricks and parts of undo records, of voxels or of the
// palette. docs/formats.md has the layout.
//
// Plain bytes are canonical: the same bricks give the same bytes, whatever the writer and the order. They are
// compressed with zstd. The checksum (XXH3, 64 bits) covers the compressed bytes and the row's own numbers. So a blob
// in a wrong row is noticed, and only checked bytes reach the decompressor.
//
// Plain bytes have two forms. Those in which a brick is full of one material say it in a byte, and a row of changes
// that are the same once: such blobs are in files of version kShortBricks and later alone. All others are as they ever
// were.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
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
// The changes of an undo record in one row: some 5 MiB at most, far below SQLite's limit for a value.
constexpr uint32_t kPartChanges = 4096;
// As many are written: parts are compressed one by one, so a stroke of a few thousand keeps all threads busy.
constexpr uint32_t kWrittenPartChanges = 512;
constexpr uint32_t kPartBytesMax = 4 + kPartChanges * (12 + 4 + 2 * (1 + kBrickBytesMax));
// Versions of a file, by what it may have; each has what those before it have. kPlainHistory: every record is of voxels
// and is one step. kSteps: records of the palette, steps of several records. kShortBricks: blobs of the short form.
// kUnfinished: a step that is not whole; once it is, the file has the version again that it has without.
constexpr int64_t kPlainHistory = 1, kSteps = 2, kShortBricks = 3, kUnfinished = 4;

// The limit of brick coordinates, so that voxels have 32-bit coordinates.
constexpr int32_t kMaxBrickCoordinate = 1 << 28;
inline bool brick_storable(Int3 b) {
  const auto in = [](int32_t v) { return v >= -kMaxBrickCoordinate && v < kMaxBrickCoordinate; };
  return in(b.x) && in(b.y) && in(b.z);
}

struct Blob {
  std::vector<uint8_t> data;  // compressed
  uint32_t plain_bytes = 0;
  uint32_t count = 0;  // bricks or changes
  uint64_t checksum = 0;
  int64_t version = kPlainHistory;  // of a file that may have it
};

// Materials of a brick's set voxels, one behind the other in the order of their indices. Any thread.
struct MaskPacking {
  // Returns the end of what it has written at `to`: as many bytes as the mask has bits. Behind them it may write
  // kPackSpare more.
  uint8_t* (*pack)(const BrickMask& mask, const BrickMaterials& materials, uint8_t* to);
  // The materials of all 512 voxels, 0 where none is set, from what is packed in [from, end). Returns the end of what
  // it has read; null if that is cut short or has a 0: then `materials` has anything. Reads no byte from `end` on.
  const uint8_t* (*unpack)(const BrickMask& mask, const uint8_t* from, const uint8_t* end, BrickMaterials& materials);
};
constexpr size_t kPackSpare = 8;
// The ways to do so that this processor has, the fastest first: by a shuffle of eight bytes at a time (x86-64 with
// SSSE3), and bit by bit.
std::span<const MaskPacking> mask_packings();

// Encodes the chunk of `bricks`. The count is 0 if there is no brick in it. Errors: out_of_memory.
Result<Blob> encode_chunk(const BrickMap& bricks, Int3 chunk, uint32_t volume);
// A chunk as it is in the file. Its bricks come out one at a time, so that a pass over them needs no memory for them.
struct PackedChunk {
  std::span<const uint8_t> data;
  uint32_t plain_bytes = 0, count = 0;
  Int3 chunk;
  int64_t version = kShortBricks;  // of its file
  // In the file's order: x runs fastest. `full`: the material of a brick that is full of one, else 0.
  using Each = std::function<void(Int3 at, const Brick& brick, uint8_t full)>;
  // Errors: malformed_input (without saying which chunk), after `each` has seen the bricks before the damage.
  Result<void> each(const Each& each) const;
  // Returns handles of its bricks, made in `pool`, in rising order, which is a map's fastest. Errors: the same.
  Result<std::vector<BrickPut>> bricks(const BrickPool& pool) const;
};
uint64_t chunk_checksum(std::span<const uint8_t> data, uint32_t volume, Int3 chunk, uint32_t plain_bytes,
                        uint32_t count);

constexpr int64_t kPaletteVolume = -1;  // the volume of a record of the palette

// The numbers and the label of a record, which each row of its parts contains.
struct RecordHead {
  int64_t record = 0;  // from 1
  uint32_t part = 0;   // from 0, or from 1 in a record that continues the step of the previous record
  int64_t volume = 0;
  std::string label;
  uint64_t voxels = 0;
};
// Changes of which none goes on where the one before it ends (append_change()).
Result<Blob> encode_part(std::span<const BrickChange> changes, const RecordHead& head);
// A part of a record of voxels as it is in the file.
struct PackedPart {
  std::span<const uint8_t> data;
  uint32_t plain_bytes = 0, count = 0;
  int64_t version = kShortBricks;  // of its file
  // One side of a change: full of a material; else the voxels, null if there are none, which live until `each` returns.
  struct Side {
    uint8_t full = 0;
    const Brick* voxels = nullptr;
  };
  // In rising order; of several bricks in a row along z the first and their number, both sides full or none.
  using Each = std::function<void(Int3 first, uint32_t count, const Side& before, const Side& after)>;
  struct Range {
    Int3 first, last;  // bricks
  };
  // Returns the range of all changes, nothing if there are none. Errors: malformed_input (without saying which part),
  // after `each` has seen the changes before the damage.
  Result<std::optional<Range>> each(const Each& each) const;
  // Returns the changes with bricks made in `pool`. Errors: the same.
  Result<std::vector<BrickChange>> changes(const BrickPool& pool) const;
};
// Does the same for changes of the palette, which always fit into one part. Errors: invalid_argument (the names are too
// long), out_of_memory; malformed_input.
Result<Blob> encode_materials(std::span<const MaterialChange> changes, const RecordHead& head);
Result<void> decode_materials(std::span<const uint8_t> data, uint32_t plain_bytes, uint32_t count,
                              std::vector<MaterialChange>* out);
uint64_t part_checksum(std::span<const uint8_t> data, const RecordHead& head, uint32_t plain_bytes, uint32_t count);

// A checksum over fields, in the order given. Texts and lists include their lengths, which separate them from their
// neighbours.
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
