#include "voxel/io/store_codec.hpp"

#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace quarry::io {
namespace {

static_assert(std::endian::native == std::endian::little, "the file's numbers are little-endian and are copied as they are");

constexpr int kZstdLevel = 3;

template <class T>
void put(std::vector<uint8_t>& out, const T& v) {
  // Not out.insert(): g++ 12 warns of an overflow there that cannot be, with -O1 -fsanitize=thread.
  const size_t at = out.size();
  out.resize(at + sizeof v);
  std::memcpy(out.data() + at, &v, sizeof v);
}

// Mask, then the materials of the set voxels in index order.
void put_brick(std::vector<uint8_t>& out, const Brick& brick) {
  put(out, brick.mask);
  for (uint32_t w = 0; w < 8; ++w)
    for (uint64_t bits = brick.mask[w]; bits; bits &= bits - 1) out.push_back(brick.materials[w * 64 + uint32_t(std::countr_zero(bits))]);
}

class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  template <class T>
  bool get(T* out) {
    if (bytes_.size() - at_ < sizeof(T)) return false;
    std::memcpy(out, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return true;
  }
  bool get_brick(Brick* out) {
    if (!get(&out->mask)) return false;
    const uint32_t n = out->count();
    if (bytes_.size() - at_ < n) return false;
    for (uint32_t w = 0; w < 8; ++w)
      for (uint64_t bits = out->mask[w]; bits; bits &= bits - 1) {
        const uint8_t material = bytes_[at_++];
        if (!material) return false;  // a set voxel has one
        out->materials[w * 64 + uint32_t(std::countr_zero(bits))] = material;
      }
    return true;
  }
  bool at_end() const { return at_ == bytes_.size(); }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
};

Result<std::vector<uint8_t>> compress(const std::vector<uint8_t>& plain) {
  std::vector<uint8_t> out(ZSTD_compressBound(plain.size()));
  const size_t n = ZSTD_compress(out.data(), out.size(), plain.data(), plain.size(), kZstdLevel);
  if (ZSTD_isError(n)) return fail(ErrorCode::out_of_memory, std::string("cannot compress: ") + ZSTD_getErrorName(n));
  out.resize(n);
  out.shrink_to_fit();
  return out;
}

Result<std::vector<uint8_t>> decompress(std::span<const uint8_t> data, uint32_t plain_bytes) {
  if (ZSTD_getFrameContentSize(data.data(), data.size()) != plain_bytes)
    return fail(ErrorCode::malformed_input, "the compressed bytes do not say " + std::to_string(plain_bytes) + " as their length");
  std::vector<uint8_t> out(plain_bytes);
  const size_t n = ZSTD_decompress(out.data(), out.size(), data.data(), data.size());
  if (ZSTD_isError(n) || n != plain_bytes)
    return fail(ErrorCode::malformed_input, std::string("cannot decompress: ") + (ZSTD_isError(n) ? ZSTD_getErrorName(n) : "wrong length"));
  return out;
}

}  // namespace

uint64_t chunk_checksum(std::span<const uint8_t> data, uint32_t volume, Int3 chunk, uint32_t plain_bytes, uint32_t count) {
  const int64_t row[6] = {volume, chunk.x, chunk.y, chunk.z, plain_bytes, count};
  return XXH3_64bits_withSeed(data.data(), data.size(), XXH3_64bits(row, sizeof row));
}
uint64_t part_checksum(std::span<const uint8_t> data, const RecordHead& head, uint32_t plain_bytes, uint32_t count) {
  FieldSum row;
  row.add(head.record).add(int64_t(head.part)).add(int64_t(head.volume)).add(head.label).add(int64_t(head.voxels)).add(int64_t(plain_bytes)).add(int64_t(count));
  return XXH3_64bits_withSeed(data.data(), data.size(), row.value());
}

Result<Blob> encode_chunk(const BrickMap& bricks, Int3 chunk, uint32_t volume) {
  std::vector<uint8_t> plain;
  uint16_t count = 0;
  put(plain, count);
  for (uint16_t i = 0; i < kChunkBricks; ++i) {  // x fastest, then y, then z: the order of the bricks' keys
    const Brick* brick = bricks.find({chunk.x * 8 + (i & 7), chunk.y * 8 + (i >> 3 & 7), chunk.z * 8 + (i >> 6)});
    if (!brick) continue;
    ++count;
    put(plain, i);
    put_brick(plain, *brick);
  }
  std::memcpy(plain.data(), &count, sizeof count);
  Blob blob;
  if (!count) return blob;
  auto data = compress(plain);
  if (!data) return tl::unexpected(data.error());
  blob.data = std::move(*data);
  blob.plain_bytes = uint32_t(plain.size());
  blob.count = count;
  blob.checksum = chunk_checksum(blob.data, volume, chunk, blob.plain_bytes, blob.count);
  return blob;
}

Result<void> decode_chunk(std::span<const uint8_t> data, uint32_t plain_bytes, uint32_t count, Int3 chunk, BrickMap* into) {
  const auto plain = decompress(data, plain_bytes);
  if (!plain) return tl::unexpected(plain.error());
  Reader in(*plain);
  uint16_t n = 0;
  if (!in.get(&n) || n != count || n == 0) return fail(ErrorCode::malformed_input, "expected " + std::to_string(std::max(1u, count)) + " bricks");
  // Put in the order of coordinates, x slowest, which is what the map takes best.
  std::array<const Brick*, kChunkBricks> found{};
  std::vector<Brick> bricks(n);
  int32_t last = -1;
  for (Brick& brick : bricks) {
    uint16_t i = 0;
    if (!in.get(&i) || i >= kChunkBricks || int32_t(i) <= last) return fail(ErrorCode::malformed_input, "expected the numbers of its bricks to rise");
    last = i;
    if (!in.get_brick(&brick) || brick.empty()) return fail(ErrorCode::malformed_input, "brick " + std::to_string(i) + " is cut short, empty, or has a voxel without material");
    found[i] = &brick;
  }
  if (!in.at_end()) return fail(ErrorCode::malformed_input, "there are bytes after the last brick");
  for (int32_t x = 0; x < 8; ++x)
    for (int32_t y = 0; y < 8; ++y)
      for (int32_t z = 0; z < 8; ++z)
        if (const Brick* brick = found[size_t(x | y << 3 | z << 6)]) into->put({chunk.x * 8 + x, chunk.y * 8 + y, chunk.z * 8 + z}, *brick);
  return {};
}

Result<Blob> encode_part(std::span<const BrickChange> changes, const RecordHead& head) {
  std::vector<uint8_t> plain;
  put(plain, uint32_t(changes.size()));
  for (const BrickChange& c : changes) {
    put(plain, c.brick.x), put(plain, c.brick.y), put(plain, c.brick.z);
    put_brick(plain, c.before);
    put_brick(plain, c.after);
  }
  auto data = compress(plain);
  if (!data) return tl::unexpected(data.error());
  Blob blob;
  blob.data = std::move(*data);
  blob.plain_bytes = uint32_t(plain.size());
  blob.count = uint32_t(changes.size());
  blob.checksum = part_checksum(blob.data, head, blob.plain_bytes, blob.count);
  return blob;
}

Result<void> decode_part(std::span<const uint8_t> data, uint32_t plain_bytes, uint32_t count, std::vector<BrickChange>* append) {
  const auto plain = decompress(data, plain_bytes);
  if (!plain) return tl::unexpected(plain.error());
  Reader in(*plain);
  uint32_t n = 0;
  if (!in.get(&n) || n != count) return fail(ErrorCode::malformed_input, "expected " + std::to_string(count) + " changes");
  for (uint32_t i = 0; i < n; ++i) {
    BrickChange c;
    if (!in.get(&c.brick.x) || !in.get(&c.brick.y) || !in.get(&c.brick.z) || !in.get_brick(&c.before) || !in.get_brick(&c.after))
      return fail(ErrorCode::malformed_input, "change " + std::to_string(i) + " is cut short or has a voxel without material");
    if (!brick_storable(c.brick)) return fail(ErrorCode::malformed_input, "change " + std::to_string(i) + " lies outside all coordinates");
    if (!append->empty() && append->back().brick >= c.brick) return fail(ErrorCode::malformed_input, "expected the bricks of the changes to rise");
    append->push_back(c);
  }
  if (!in.at_end()) return fail(ErrorCode::malformed_input, "there are bytes after the last change");
  return {};
}

FieldSum& FieldSum::add(int64_t v) {
  put(bytes_, v);
  return *this;
}
FieldSum& FieldSum::add(double v) {
  put(bytes_, v + 0.0);  // SQLite keeps no negative zero
  return *this;
}
FieldSum& FieldSum::add(std::string_view text) {
  put(bytes_, uint64_t(text.size()));
  bytes_.insert(bytes_.end(), text.begin(), text.end());
  return *this;
}
uint64_t FieldSum::value() const { return XXH3_64bits(bytes_.data(), bytes_.size()); }

}  // namespace quarry::io
