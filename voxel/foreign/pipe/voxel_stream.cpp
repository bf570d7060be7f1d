// SPDX-License-Identifier: Apache-2.0
// voxel_stream.cpp - grids as sections of whole bricks, gathered into pieces of about a MiB. Every count and coordinate
// is checked.
#include "voxel/foreign/pipe/voxel_stream.hpp"

#include <cmath>
#include <cstring>

namespace quarry::io {
namespace {

constexpr size_t kPieceBytes = size_t(1) << 20, kMaxGrids = 4096, kMaxMetadata = 4096;
// A piece of bricks is no longer than this, nor is any other section: texts have 64 KiB each.
constexpr uint64_t kMaxSection = uint64_t(4) << 20;
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
  if (r.zero || r.kind > GridRecord::mask || (r.value_bytes != 0 && r.value_bytes != 1 && r.value_bytes != 4))
    return false;
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

void VoxelStreamWriter::active_voxels(uint64_t count) {
  flush();
  out_.section("ACTV", {bytes_of(count)});
}

bool VoxelStreamWriter::finish() {
  flush();
  return out_.finish();
}

VoxelStreamParser::VoxelStreamParser(std::string sender, const VoxelStreamEvents& events,
                                     std::vector<std::string>* warnings)
    : sender_(std::move(sender)),
      events_(events),
      sections_({VoxelStreamWriter::kMagic, [this](const std::string& what) { return bad(what); },
                 [this](std::string_view tag, std::span<const uint8_t> payload) { return take(tag, payload); }},
                warnings, kMaxSection) {}

Error VoxelStreamParser::bad(const std::string& what) const {
  return {ErrorCode::malformed_input,
          sender_ + " sent something that is not a stream of voxels (" + what + "); is it of the same version?"};
}

Result<void> VoxelStreamParser::take(std::string_view tag, std::span<const uint8_t> payload) {
  if (tag == "META") {
    std::string key, text;
    if (++metadata_ > kMaxMetadata || !two_texts(payload, &key, &text)) return tl::unexpected(bad("metadata"));
    if (events_.metadata) events_.metadata(std::move(key), std::move(text));
    return {};
  }
  if (tag == "PALE") {
    std::array<Material, 256> materials;
    if (payload.size() != sizeof materials || grids_) return tl::unexpected(bad("a palette"));
    std::memcpy(materials.data(), payload.data(), sizeof materials);
    for (const Material& m : materials)
      for (const float v : {m.roughness, m.metalness, m.emission, m.transparency, m.ior})
        if (!std::isfinite(v)) return tl::unexpected(bad("a material"));
    if (events_.palette) events_.palette(materials);
    return {};
  }
  if (tag == "GRID") {
    StreamGrid grid;
    if (payload.size() < sizeof grid.record || ++grids_ > kMaxGrids) return tl::unexpected(bad("a grid"));
    std::memcpy(&grid.record, payload.data(), sizeof grid.record);
    if (!sound(grid.record) || !two_texts(payload.subspan(sizeof grid.record), &grid.name, &grid.type))
      return tl::unexpected(bad("a grid's record"));
    value_bytes_ = grid.record.value_bytes;
    counted_ = false;
    return events_.grid(grid);
  }
  if (counted_) return tl::unexpected(bad("an unknown section"));
  if (tag == "BRKS") return take_bricks(payload);
  uint64_t active_voxels = 0;
  if (tag != "ACTV" || payload.size() != sizeof active_voxels) return tl::unexpected(bad("an unknown section"));
  std::memcpy(&active_voxels, payload.data(), sizeof active_voxels);
  counted_ = true;
  return events_.grid_end ? events_.grid_end(active_voxels) : Result<void>();
}

Result<void> VoxelStreamParser::take_bricks(std::span<const uint8_t> payload) {
  while (!payload.empty()) {
    BrickHead head;
    if (payload.size() < sizeof head) return tl::unexpected(bad("a brick"));
    std::memcpy(&head, payload.data(), sizeof head);
    payload = payload.subspan(sizeof head);
    size_t voxels = 0;
    for (const uint64_t word : head.mask) voxels += size_t(std::popcount(word));
    for (const int32_t v : {head.x, head.y, head.z})
      if (v < -kMaxBrick || v > kMaxBrick) return tl::unexpected(bad("a brick's place"));
    if (head.zero || voxels == 0 || payload.size() < voxels * value_bytes_)
      return tl::unexpected(bad("a brick's voxels"));
    QRY_TRY(events_.brick({head.x, head.y, head.z}, head.mask, payload.first(voxels * value_bytes_)));
    payload = payload.subspan(voxels * value_bytes_);
  }
  return {};
}

Result<void> parse_voxel_stream(std::span<const uint8_t> bytes, const char* sender, const VoxelStreamEvents& events,
                                std::vector<std::string>* warnings) {
  VoxelStreamParser parser(sender, events, warnings);
  QRY_TRY(parser.push(bytes));
  return parser.end();
}

}  // namespace quarry::io
