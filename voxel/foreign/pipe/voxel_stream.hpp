// SPDX-License-Identifier: Apache-2.0
// voxel_stream.hpp - the bytes between quarry-volume-reader and its client: grids of voxels as bricks, in both
// directions.
//
// A section stream (section_stream.hpp) of magic "QRYVOXL1":
//   META key, 0, text                      of the file
//   PALE 256 materials of 32 bytes         before the grids, only to the program that writes
//   GRID GridRecord, name, 0, type         the BRKS up to the next GRID belong to it
//   BRKS repeated: i32 x, y, z of the brick | 8 x u64 mask | for each voxel in mask order its value
//   (GridRecord::value_bytes)
//   ACTV u64: the grid's active voxels, as the library counts them; after its BRKS, for only then all are counted.
//   Not to the program that writes
// A value is nothing, one byte of material, or r, g, b, a. Cells are the file's own indices. The brick of cell c is
// c >> 3.
#pragma once

#include <functional>

#include "voxel/bricks/brick.hpp"
#include "voxel/foreign/pipe/section_stream.hpp"
#include "voxel/worlds/palette.hpp"

namespace quarry::io {

// The META key for the length of the written file, in decimal.
constexpr const char* kWrittenBytes = "written_bytes";

struct GridRecord {
  enum Kind : uint32_t { level_set, fog, mask };
  uint32_t kind = mask;
  uint32_t value_bytes = 0;  // 0, 1 or 4
  uint64_t zero = 0;
  double voxel_size[3] = {1, 1, 1};
  double origin[3] = {0, 0, 0};  // world position of cell (0, 0, 0)
};
static_assert(sizeof(GridRecord) == 64);

struct StreamGrid {
  GridRecord record;
  std::string name, type;
};

class VoxelStreamWriter {
 public:
  explicit VoxelStreamWriter(const ByteSink& sink) : out_(kMagic, sink) {}
  void warnings(const std::vector<std::string>& sentences) { out_.warnings(sentences); }
  void failure(const Error& error) { out_.failure(error); }
  void metadata(const std::string& key, const std::string& text);
  void palette(const Palette& palette) { out_.section("PALE", {bytes_of(palette.materials)}); }
  void grid(const StreamGrid& grid);
  // `values` has value_bytes for each set voxel. Bricks are gathered into pieces of a mebibyte.
  void brick(Int3 brick, const BrickMask& mask, std::span<const uint8_t> values);
  void active_voxels(uint64_t count);
  bool finish();
  bool ok() const { return out_.ok(); }
  static constexpr std::string_view kMagic = "QRYVOXL1";

 private:
  void flush();
  SectionWriter out_;
  std::vector<uint8_t> bricks_;
};

// The callbacks for the parts of a stream, called in stream order.
struct VoxelStreamEvents {
  std::function<void(std::string key, std::string text)> metadata;
  std::function<void(std::span<const Material, 256>)> palette;
  std::function<Result<void>(const StreamGrid&)> grid;
  std::function<Result<void>(Int3 brick, const BrickMask&, std::span<const uint8_t> values)> brick;
  std::function<Result<void>(uint64_t active_voxels)> grid_end;
};

// Parses a stream that comes in pieces, in some MiB. It checks records and lengths, and that brick coordinates are
// within 2^24 in both directions. What the events were told counts only once end() has said that the stream is whole.
// Errors: that of the stream or of an event; malformed_input, naming `sender`, if it is not a whole stream.
class VoxelStreamParser {
 public:
  VoxelStreamParser(std::string sender, const VoxelStreamEvents& events, std::vector<std::string>* warnings);
  VoxelStreamParser(const VoxelStreamParser&) = delete;
  VoxelStreamParser& operator=(const VoxelStreamParser&) = delete;
  Result<void> push(std::span<const uint8_t> bytes) { return sections_.push(bytes); }
  Result<void> end() { return sections_.end(); }

 private:
  Error bad(const std::string& what) const;
  Result<void> take(std::string_view tag, std::span<const uint8_t> payload);
  Result<void> take_bricks(std::span<const uint8_t> payload);
  const std::string sender_;
  const VoxelStreamEvents& events_;
  size_t grids_ = 0, metadata_ = 0;
  uint32_t value_bytes_ = 0;
  bool counted_ = true;  // there is no grid, or its active voxels have come, behind which it has no bricks
  SectionParser sections_;
};
// The same of a whole stream.
Result<void> parse_voxel_stream(std::span<const uint8_t> bytes, const char* sender, const VoxelStreamEvents& events,
                                std::vector<std::string>* warnings);

}  // namespace quarry::io
