// SPDX-License-Identifier: Apache-2.0
// voxel_stream.cpp - grids as sections of whole bricks, gathered into pieces of about a MiB. Every count and coordinate
// is checked.
#include "voxel/foreign/pipe/voxel_stream.hpp"

#include <cmath>
#include <cstring>

namespace quarry::io {
namespace {

constexpr size_t kPieceBytes = size_t(1) << 20, kMaxGrids = 4096, kMaxMetadata = 4096;
constexpr int32_t kMaxBrick = 1 << 24;
struct BrickHead {
  int32_t x, y, z;
  uint32_t zero;
  BrickMask mask;
};
static_assert(sizeof(BrickHead) == 80);

// Splits two texts with a zero between them.
bool two_texts(std::span<const uint8_t> payload, std::string* first, std::string* second) {
  const void* zero = payload.empty() ? nullptr : std::memchr(payload.data(), 0, payload.size());
  if (!zero) return false;
  const size_t length = size_t(static_cast<const uint8_t*>(zero) - payload.data());
  *first = clean_text(payload.first(length));
  *second = clean_text(payload.subspan(length + 1));
  return true;
}

bool sound(const GridRecord& r) {
  if (r.kind > GridRecord::mask || (r.value_bytes != 0 && r.value_bytes != 1 && r.value_bytes != 4)) return false;
  for (int i = 0; i < 3; ++i)
    if (!std::isfinite(r.voxel_size[i]) || r.voxel_size[i] <= 0 || !std::isfinite(r.origin[i])) return false;
  return true;
}

}  // namespace

void VoxelStreamWriter::metadata(const std::string& key, const std::string& text) {
  out_.section("META", {text_bytes(key), bytes_of(uint8_t(0)), text_bytes(text)});
}

void VoxelStreamWriter::grid(const StreamGrid& grid) {
  flush();
  out_.section("GRID", {bytes_of(grid.record), text_bytes(grid.name), bytes_of(uint8_t(0)), text_bytes(grid.type)});
}

void VoxelStreamWriter::brick(Int3 brick, const BrickMask& mask, std::span<const uint8_t> values) {
  const BrickHead head{brick.x, brick.y, brick.z, 0, mask};
  const auto bytes = bytes_of(head);
  bricks_.insert(bricks_.end(), bytes.begin(), bytes.end());
  bricks_.insert(bricks_.end(), values.begin(), values.end());
  if (bricks_.size() >= kPieceBytes) flush();
}

void VoxelStreamWriter::flush() {
  if (!bricks_.empty()) out_.section("BRKS", {bytes_of(bricks_)});
  bricks_.clear();
}

bool VoxelStreamWriter::finish() {
  flush();
  return out_.finish();
}

Result<void> parse_voxel_stream(std::span<const uint8_t> bytes, const char* sender, const VoxelStreamEvents& events,
                                std::vector<std::string>* warnings) {
  const auto bad = [&](const std::string& what) {
    return Error{ErrorCode::malformed_input, std::string(sender) + " sent something that is not a stream of voxels (" +
                                                 what + "); is it of the same version?"};
  };
  size_t grids = 0, metadata = 0;
  uint32_t value_bytes = 0;
  const auto take = [&](std::string_view tag, std::span<const uint8_t> payload) -> Result<void> {
    if (tag == "META") {
      std::string key, text;
      if (++metadata > kMaxMetadata || !two_texts(payload, &key, &text)) return tl::unexpected(bad("metadata"));
      if (events.metadata) events.metadata(std::move(key), std::move(text));
      return {};
    }
    if (tag == "PALE") {
      std::array<Material, 256> materials;
      if (payload.size() != sizeof materials || grids) return tl::unexpected(bad("a palette"));
      std::memcpy(materials.data(), payload.data(), sizeof materials);
      for (const Material& m : materials)
        for (const float v : {m.roughness, m.metalness, m.emission, m.transparency, m.ior})
          if (!std::isfinite(v)) return tl::unexpected(bad("a material"));
      if (events.palette) events.palette(materials);
      return {};
    }
    if (tag == "GRID") {
      StreamGrid grid;
      if (payload.size() < sizeof grid.record || ++grids > kMaxGrids) return tl::unexpected(bad("a grid"));
      std::memcpy(&grid.record, payload.data(), sizeof grid.record);
      if (!sound(grid.record) || !two_texts(payload.subspan(sizeof grid.record), &grid.name, &grid.type))
        return tl::unexpected(bad("a grid's record"));
      value_bytes = grid.record.value_bytes;
      return events.grid(grid);
    }
    if (tag != "BRKS" || !grids) return tl::unexpected(bad("an unknown section"));
    while (!payload.empty()) {
      BrickHead head;
      if (payload.size() < sizeof head) return tl::unexpected(bad("a brick"));
      std::memcpy(&head, payload.data(), sizeof head);
      payload = payload.subspan(sizeof head);
      size_t voxels = 0;
      for (const uint64_t word : head.mask) voxels += size_t(std::popcount(word));
      for (const int32_t v : {head.x, head.y, head.z})
        if (v < -kMaxBrick || v > kMaxBrick) return tl::unexpected(bad("a brick's place"));
      if (head.zero || voxels == 0 || payload.size() < voxels * value_bytes)
        return tl::unexpected(bad("a brick's voxels"));
      QRY_TRY(events.brick({head.x, head.y, head.z}, head.mask, payload.first(voxels * value_bytes)));
      payload = payload.subspan(voxels * value_bytes);
    }
    return {};
  };
  return SectionReader{VoxelStreamWriter::kMagic, bad, take}.read(bytes, warnings);
}

}  // namespace quarry::io
