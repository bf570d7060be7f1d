// SPDX-License-Identifier: Apache-2.0
// codec.cpp - encodes and decodes bricks, changes and materials with Zstandard, and computes the checksums (XXH3). It
// trusts no count.
#include "voxel/io/quarry/codec.hpp"

#include <xxhash.h>
#include <zstd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace quarry::io {
namespace {

uint8_t* pack_by_bits(const BrickMask& mask, const BrickMaterials& materials, uint8_t* to) {
  for (uint32_t w = 0; w < 8; ++w) {
    const uint8_t* const from = materials.data() + w * 64;
    if (mask[w] == ~uint64_t(0)) {
      std::memcpy(to, from, 64);
      to += 64;
      continue;
    }
    for (uint64_t bits = mask[w]; bits; bits &= bits - 1) *to++ = from[std::countr_zero(bits)];
  }
  return to;
}

const uint8_t* unpack_by_bits(const BrickMask& mask, const uint8_t* from, const uint8_t* end,
                              BrickMaterials& materials) {
  const size_t count = count_of(mask);
  if (size_t(end - from) < count || std::memchr(from, 0, count)) return nullptr;
  for (uint32_t w = 0; w < 8; ++w) {
    uint8_t* const to = materials.data() + size_t(w) * 64;
    if (mask[w] == ~uint64_t(0)) {
      std::memcpy(to, from, 64);
      from += 64;
      continue;
    }
    std::memset(to, 0, 64);
    for (uint64_t bits = mask[w]; bits; bits &= bits - 1) to[std::countr_zero(bits)] = *from++;
  }
  return from;
}

#if defined(__x86_64__)
// Of eight bits, for a shuffle of eight bytes: where each byte comes from, 0x80: from nowhere. Not by pdep and pext:
// AMD's processors before Zen 3 take some hundred cycles for these.
struct Shuffles {
  std::array<std::array<uint8_t, 8>, 256> unpack{}, pack{};
  std::array<uint8_t, 256> count{};
  constexpr Shuffles() {
    for (size_t bits = 0; bits < 256; ++bits) {
      unpack[bits].fill(0x80);
      pack[bits].fill(0x80);
      uint8_t n = 0;
      for (uint8_t bit = 0; bit < 8; ++bit)
        if (bits >> bit & 1u) {
          unpack[bits][bit] = n;
          pack[bits][n++] = bit;
        }
      count[bits] = n;
    }
  }
};
constexpr Shuffles kShuffles;

[[gnu::target("ssse3")]] inline __m128i load_eight(const uint8_t* from) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
}
[[gnu::target("ssse3")]] inline void store_eight(uint8_t* to, __m128i eight) {
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), eight);
}

[[gnu::target("ssse3")]] uint8_t* pack_by_eights(const BrickMask& mask, const BrickMaterials& materials, uint8_t* to) {
  const uint8_t* from = materials.data();
  for (uint64_t word : mask)
    for (uint32_t i = 0; i < 8; ++i, word >>= 8, from += 8) {
      const uint64_t bits = word & 255;
      store_eight(to, _mm_shuffle_epi8(load_eight(from), load_eight(kShuffles.pack[bits].data())));
      to += kShuffles.count[bits];
    }
  return to;
}

[[gnu::target("ssse3")]] const uint8_t* unpack_by_eights(const BrickMask& mask, const uint8_t* from, const uint8_t* end,
                                                         BrickMaterials& materials) {
  uint8_t* to = materials.data();
  const __m128i none = _mm_setzero_si128();
  __m128i zeros = none;
  for (uint64_t word : mask)
    for (uint32_t i = 0; i < 8; ++i, word >>= 8, to += 8) {
      const uint64_t bits = word & 255;
      std::array<uint8_t, 8> last{};  // fewer than eight are left
      const uint8_t* at = from;
      if (end - from < 8) {
        if (end - from < kShuffles.count[bits]) return nullptr;
        std::copy(from, end, last.begin());
        at = last.data();
      }
      const __m128i shuffle = load_eight(kShuffles.unpack[bits].data());
      const __m128i eight = _mm_shuffle_epi8(load_eight(at), shuffle);
      store_eight(to, eight);
      // A byte that comes from somewhere and is 0.
      zeros = _mm_or_si128(zeros, _mm_andnot_si128(_mm_cmplt_epi8(shuffle, none), _mm_cmpeq_epi8(eight, none)));
      from += kShuffles.count[bits];
    }
  // The upper eight bytes of each are 0, and come from byte 0.
  return _mm_movemask_epi8(zeros) & 255 ? nullptr : from;
}
#endif

constexpr MaskPacking kByBits{pack_by_bits, unpack_by_bits};
#if defined(__x86_64__)
constexpr MaskPacking kWays[]{{pack_by_eights, unpack_by_eights}, kByBits};
#else
constexpr MaskPacking kWays[]{kByBits};
#endif

}  // namespace

std::span<const MaskPacking> mask_packings() {
  static const size_t missing = [] {
#if defined(__x86_64__)
    return __builtin_cpu_supports("ssse3") ? 0 : 1;
#else
    return 0;
#endif
  }();
  return std::span(kWays).subspan(missing);
}

namespace {

static_assert(std::endian::native == std::endian::little,
              "the file's numbers are little-endian and are copied as they are");

constexpr int kZstdLevel = 3;

template <class T>
void put(std::vector<uint8_t>& out, const T& v) {
  // out.insert() is not used: g++ 12 warns there of an impossible overflow, with -O1 -fsanitize=thread.
  const size_t at = out.size();
  out.resize(at + sizeof v);
  std::memcpy(out.data() + at, &v, sizeof v);
}

// In the count that begins a blob's plain bytes: they have the short form.
constexpr uint16_t kShortChunk = 0x8000;
constexpr uint32_t kShortPart = 0x80000000u;
constexpr uint32_t kShortBrickMax = 1 + kBrickBytesMax;
constexpr const char* kNotShort = "it has the short form, and nothing that would be shorter";

template <class T>
uint8_t* put(uint8_t* to, const T& v) {
  std::memcpy(to, &v, sizeof v);
  return to + sizeof v;
}

// Writes the mask, then the materials of the set voxels in index order. Returns the end.
uint8_t* put_brick(uint8_t* to, const BrickView& brick) {
  return mask_packings().front().pack(brick.mask, brick.materials, put(to, brick.mask));
}
// In the short form: the material of a brick that is full of one; else 0, and then as above.
uint8_t* put_short(uint8_t* to, const SharedBrick& brick) {
  *to++ = brick.material();
  return brick.material() ? to : put_brick(to, *brick);
}

void put_material(std::vector<uint8_t>& out, const Material& m, const std::string& name) {
  for (const uint8_t c : {m.r, m.g, m.b, m.a}) put(out, c);
  for (const float v : {m.roughness, m.metalness, m.emission, m.transparency, m.ior, m.reserved[0], m.reserved[1]})
    put(out, v);
  put(out, uint32_t(name.size()));
  out.insert(out.end(), name.begin(), name.end());
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
  // Writes all of the brick, unless it is full of one material, which `full` gets then, else 0.
  bool get_brick(Brick* out, uint8_t* full) {
    *full = 0;
    if (!get(&out->mask)) return false;
    if (all_set(out->mask)) {
      if (bytes_.size() - at_ < kVoxelsPerBrick) return false;
      const uint8_t* const from = bytes_.data() + at_;
      if (from[0] && std::memcmp(from, from + 1, kVoxelsPerBrick - 1) == 0) {
        *full = from[0];
        at_ += kVoxelsPerBrick;
        return true;
      }
    }
    const uint8_t* const from = bytes_.data() + at_;
    const uint8_t* const end =
        mask_packings().front().unpack(out->mask, from, bytes_.data() + bytes_.size(), out->materials);
    if (!end) return false;  // a set voxel must have a material
    at_ += size_t(end - from);
    return true;
  }
  // In the short form. A brick has one form alone.
  bool get_short(Brick* out, uint8_t* full) {
    if (!get(full)) return false;
    return *full != 0 || (get_brick(out, full) && *full == 0);
  }
  bool get_material(Material* out, std::string* name) {
    uint32_t length = 0;
    for (uint8_t* c : {&out->r, &out->g, &out->b, &out->a})
      if (!get(c)) return false;
    for (float* v : {&out->roughness, &out->metalness, &out->emission, &out->transparency, &out->ior, &out->reserved[0],
                     &out->reserved[1]})
      if (!get(v) || std::isnan(*v)) return false;
    if (!get(&length) || bytes_.size() - at_ < length) return false;
    name->assign(reinterpret_cast<const char*>(bytes_.data()) + at_, length);
    at_ += length;
    return true;
  }
  bool at_end() const { return at_ == bytes_.size(); }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
};

// Its tables are kept from call to call. Making them anew for each chunk would cost more than the compression.
struct Compressor {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  Compressor() = default;
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;
  ~Compressor() { ZSTD_freeCCtx(context); }
};

// Room of a thread for bytes that are written before they are read, until its next call. It is kept, 0.6 MB each at
// most: memory of this size that is fresh each time costs more than what is written there.
enum class Room { plain, compressed };
template <Room kRoom>
std::span<uint8_t> room_for(size_t bytes) {
  thread_local std::vector<uint8_t> room;
  if (room.size() < bytes + kPackSpare) room.resize(bytes + kPackSpare);
  return std::span(room).first(bytes);
}

Result<std::vector<uint8_t>> compress(std::span<const uint8_t> plain) {
  thread_local const Compressor compressor;
  if (!compressor.context) return fail(ErrorCode::out_of_memory, "cannot compress: no memory for the tables");
  const std::span<uint8_t> out = room_for<Room::compressed>(ZSTD_compressBound(plain.size()));
  const size_t n =
      ZSTD_compressCCtx(compressor.context, out.data(), out.size(), plain.data(), plain.size(), kZstdLevel);
  if (ZSTD_isError(n)) return fail(ErrorCode::out_of_memory, std::string("cannot compress: ") + ZSTD_getErrorName(n));
  return std::vector<uint8_t>(out.begin(), out.begin() + std::ptrdiff_t(n));
}

// Its tables are kept from call to call, as the compressor's.
struct Decompressor {
  ZSTD_DCtx* context = ZSTD_createDCtx();
  Decompressor() = default;
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;
  ~Decompressor() { ZSTD_freeDCtx(context); }
};

Result<void> decompress(std::span<const uint8_t> data, uint32_t plain_bytes, std::vector<uint8_t>& out) {
  if (ZSTD_getFrameContentSize(data.data(), data.size()) != plain_bytes)
    return fail(ErrorCode::malformed_input,
                "the compressed bytes do not say " + std::to_string(plain_bytes) + " as their length");
  thread_local const Decompressor decompressor;
  if (!decompressor.context) return fail(ErrorCode::out_of_memory, "cannot decompress: no memory for the tables");
  out.resize(plain_bytes);
  const size_t n = ZSTD_decompressDCtx(decompressor.context, out.data(), out.size(), data.data(), data.size());
  if (ZSTD_isError(n) || n != plain_bytes)
    return fail(ErrorCode::malformed_input,
                std::string("cannot decompress: ") + (ZSTD_isError(n) ? ZSTD_getErrorName(n) : "wrong length"));
  return {};
}

}  // namespace

uint64_t chunk_checksum(std::span<const uint8_t> data, uint32_t volume, Int3 chunk, uint32_t plain_bytes,
                        uint32_t count) {
  const int64_t row[6] = {volume, chunk.x, chunk.y, chunk.z, plain_bytes, count};
  return XXH3_64bits_withSeed(data.data(), data.size(), XXH3_64bits(row, sizeof row));
}
uint64_t part_checksum(std::span<const uint8_t> data, const RecordHead& head, uint32_t plain_bytes, uint32_t count) {
  FieldSum row;
  row.add(head.record)
      .add(int64_t(head.part))
      .add(head.volume)
      .add(head.label)
      .add(int64_t(head.voxels))
      .add(int64_t(plain_bytes))
      .add(int64_t(count));
  return XXH3_64bits_withSeed(data.data(), data.size(), row.value());
}

Result<Blob> encode_chunk(const BrickMap& bricks, Int3 chunk, uint32_t volume) {
  // The map's order is x, y, z with x slowest. In the file x runs fastest.
  std::array<const SharedBrick*, kChunkBricks> found{};
  uint16_t count = 0;
  bool is_short = false;
  const Int3 corner{chunk.x * 8, chunk.y * 8, chunk.z * 8};
  const std::vector<BrickPut> all = bricks.within({corner, corner + Int3{7, 7, 7}});
  for (const auto& [at, shared] : all) {
    found[size_t((at.x & 7) | (at.y & 7) << 3 | (at.z & 7) << 6)] = &shared;
    is_short |= shared.material() != 0;
    ++count;
  }
  Blob blob;
  if (!count) return blob;
  uint8_t* const plain = room_for<Room::plain>(sizeof count + count * (sizeof count + kShortBrickMax)).data();
  uint8_t* to = put(plain, uint16_t(is_short ? count | kShortChunk : count));
  for (uint16_t i = 0; i < kChunkBricks; ++i) {
    if (!found[i]) continue;
    to = put(to, i);
    to = is_short ? put_short(to, *found[i]) : put_brick(to, **found[i]);
  }
  const std::span<const uint8_t> bytes(plain, to);
  QRY_TRY_ASSIGN(auto data, compress(bytes));
  blob.data = std::move(data);
  blob.plain_bytes = uint32_t(bytes.size());
  blob.count = count;
  blob.checksum = chunk_checksum(blob.data, volume, chunk, blob.plain_bytes, blob.count);
  if (is_short) blob.version = kShortBricks;
  return blob;
}

Result<void> PackedChunk::each(const Each& each) const {
  std::vector<uint8_t> plain;
  QRY_TRY(decompress(data, plain_bytes, plain));
  Reader in(plain);
  uint16_t n = 0;
  const bool there = in.get(&n), is_short = n & kShortChunk && version >= kShortBricks;
  if (is_short) n = uint16_t(n & ~kShortChunk);
  if (!there || n != count || n == 0)
    return fail(ErrorCode::malformed_input, "expected " + std::to_string(std::max(1u, count)) + " bricks");
  int32_t last = -1;
  Brick brick;
  bool some_full = false;
  for (uint32_t k = 0; k < n; ++k) {
    uint16_t i = 0;
    if (!in.get(&i) || i >= kChunkBricks || int32_t(i) <= last)
      return fail(ErrorCode::malformed_input, "expected the numbers of its bricks to rise");
    last = i;
    uint8_t full = 0;
    if (!(is_short ? in.get_short(&brick, &full) : in.get_brick(&brick, &full)) || (!full && brick.empty()))
      return fail(ErrorCode::malformed_input,
                  "brick " + std::to_string(i) + " is cut short, empty, or has a voxel without material");
    some_full |= full != 0;
    each({chunk.x * 8 + (i & 7), chunk.y * 8 + (i >> 3 & 7), chunk.z * 8 + (i >> 6)}, full ? full_brick(full) : brick,
         full);
  }
  if (!in.at_end()) return fail(ErrorCode::malformed_input, "there are bytes after the last brick");
  if (is_short && !some_full) return fail(ErrorCode::malformed_input, kNotShort);
  return {};
}

Result<std::vector<BrickPut>> PackedChunk::bricks(const BrickPool& pool) const {
  std::array<SharedBrick, kChunkBricks> found;  // by place, x slowest
  BrickWriter writer(pool, count);
  QRY_TRY(each([&](Int3 at, const Brick& brick, uint8_t full) {
    found[uint32_t(at.x & 7) << 6 | uint32_t(at.y & 7) << 3 | uint32_t(at.z & 7)] =
        full ? SharedBrick::full(full) : writer.make(brick);
  }));
  std::vector<BrickPut> puts;
  puts.reserve(count);
  for (int32_t i = 0; i < int32_t(kChunkBricks); ++i)
    if (found[size_t(i)])
      puts.push_back(
          {{chunk.x * 8 + (i >> 6), chunk.y * 8 + (i >> 3 & 7), chunk.z * 8 + (i & 7)}, std::move(found[size_t(i)])});
  return puts;
}

namespace {

Result<Blob> part_blob(std::span<const uint8_t> plain, size_t count, const RecordHead& head) {
  QRY_TRY_ASSIGN(auto data, compress(plain));
  Blob blob;
  blob.data = std::move(data);
  blob.plain_bytes = uint32_t(plain.size());
  blob.count = uint32_t(count);
  blob.checksum = part_checksum(blob.data, head, blob.plain_bytes, blob.count);
  return blob;
}

}  // namespace

Result<Blob> encode_materials(std::span<const MaterialChange> changes, const RecordHead& head) {
  std::vector<uint8_t> plain;
  put(plain, uint32_t(changes.size()));
  for (const MaterialChange& c : changes) {
    if (c.name_before.size() + c.name_after.size() > kPartBytesMax - std::min<size_t>(plain.size(), kPartBytesMax))
      return fail(ErrorCode::invalid_argument, "the names of the materials are too long for the history");
    put(plain, c.index);
    put_material(plain, c.before, c.name_before);
    put_material(plain, c.after, c.name_after);
  }
  if (plain.size() > kPartBytesMax)
    return fail(ErrorCode::invalid_argument, "the names of the materials are too long for the history");
  return part_blob(plain, changes.size(), head);
}

Result<void> decode_materials(std::span<const uint8_t> data, uint32_t plain_bytes, uint32_t count,
                              std::vector<MaterialChange>* out) {
  std::vector<uint8_t> plain;
  QRY_TRY(decompress(data, plain_bytes, plain));
  Reader in(plain);
  uint32_t n = 0;
  if (!in.get(&n) || n != count || n == 0 || n > 256)
    return fail(ErrorCode::malformed_input, "expected " + std::to_string(count) + " changes of materials");
  for (uint32_t i = 0; i < n; ++i) {
    MaterialChange c;
    if (!in.get(&c.index) || !in.get_material(&c.before, &c.name_before) || !in.get_material(&c.after, &c.name_after))
      return fail(ErrorCode::malformed_input,
                  "material " + std::to_string(i) + " is cut short or has a value that is not a number");
    if (!out->empty() && out->back().index >= c.index)
      return fail(ErrorCode::malformed_input, "expected the numbers of the materials to rise");
    out->push_back(std::move(c));
  }
  if (!in.at_end()) return fail(ErrorCode::malformed_input, "there are bytes after the last material");
  return {};
}

Result<Blob> encode_part(std::span<const BrickChange> changes, const RecordHead& head) {
  const auto count = uint32_t(changes.size());
  const bool is_short = std::ranges::any_of(
      changes, [](const BrickChange& c) { return c.count > 1 || c.before.material() || c.after.material(); });
  uint8_t* const plain =
      room_for<Room::plain>(sizeof count + changes.size() * (sizeof(Int3) + sizeof count + 2 * size_t(kShortBrickMax)))
          .data();
  uint8_t* to = put(plain, is_short ? count | kShortPart : count);
  for (const BrickChange& c : changes) {
    to = put(to, c.brick);
    to = is_short ? put_short(put_short(put(to, c.count), c.before), c.after)
                  : put_brick(put_brick(to, *c.before), *c.after);
  }
  QRY_TRY_ASSIGN(auto blob, part_blob({plain, to}, changes.size(), head));
  if (is_short) blob.version = kShortBricks;
  return blob;
}

Result<std::optional<PackedPart::Range>> PackedPart::each(const Each& each) const {
  const auto malformed = [](const std::string& what) { return fail(ErrorCode::malformed_input, what); };
  std::vector<uint8_t> plain;
  QRY_TRY(decompress(data, plain_bytes, plain));
  Reader in(plain);
  uint32_t n = 0;
  const bool there = in.get(&n), is_short = n & kShortPart && version >= kShortBricks;
  if (is_short) n &= ~kShortPart;
  if (!there || n != count) return malformed("expected " + std::to_string(count) + " changes");
  std::optional<Range> range;
  bool some_full = false;
  Brick bricks[2];
  for (uint32_t i = 0; i < n; ++i) {
    Int3 at;
    uint32_t row = 1;
    Side sides[2];
    bool whole = in.get(&at.x) && in.get(&at.y) && in.get(&at.z) && (!is_short || in.get(&row));
    for (int side = 0; side < 2 && whole; ++side) {
      Side& its = sides[side];
      Brick& brick = bricks[side];
      whole = is_short ? in.get_short(&brick, &its.full) : in.get_brick(&brick, &its.full);
      if (whole && !its.full && !brick.empty()) its.voxels = &brick;
    }
    if (!whole) return malformed("change " + std::to_string(i) + " is cut short or has a voxel without material");
    const int64_t last_z = int64_t(at.z) + row - 1;
    if (!brick_storable(at) || last_z >= kMaxBrickCoordinate)
      return malformed("change " + std::to_string(i) + " lies outside all coordinates");
    if (row == 0 || (row > 1 && (sides[0].voxels || sides[1].voxels)))
      return malformed("change " + std::to_string(i) + " is of no row of equal bricks");
    some_full |= row > 1 || sides[0].full || sides[1].full;
    if (range && range->last >= at) return malformed("expected the bricks of the changes to rise");
    if (!range) range.emplace(Range{at, at});
    range->last = {at.x, at.y, int32_t(last_z)};
    each(at, row, sides[0], sides[1]);
  }
  if (!in.at_end()) return malformed("there are bytes after the last change");
  if (is_short && !some_full) return malformed(kNotShort);
  return range;
}

Result<std::vector<BrickChange>> PackedPart::changes(const BrickPool& pool) const {
  std::vector<BrickChange> made;
  BrickWriter writer(pool);
  const auto handle = [&](const Side& side) {
    return side.voxels ? writer.make(*side.voxels) : SharedBrick::full(side.full);
  };
  QRY_TRY(each([&](Int3 first, uint32_t row, const Side& before, const Side& after) {
    append_change(made, {first, row, handle(before), handle(after)});
  }));
  return made;
}

FieldSum& FieldSum::add(int64_t v) {
  put(bytes_, v);
  return *this;
}
FieldSum& FieldSum::add(double v) {
  put(bytes_, v + 0.0);  // SQLite does not keep negative zero
  return *this;
}
FieldSum& FieldSum::add(std::string_view text) {
  put(bytes_, uint64_t(text.size()));
  bytes_.insert(bytes_.end(), text.begin(), text.end());
  return *this;
}
uint64_t FieldSum::value() const { return XXH3_64bits(bytes_.data(), bytes_.size()); }

}  // namespace quarry::io
