// SPDX-License-Identifier: Apache-2.0
// nano_file.cpp - the heads of a NanoVDB file, and its three codecs piece by piece. A blosc buffer is unpacked block by
// block, each as a small buffer of its own, because the library unpacks a whole one.
#include "voxel/foreign/vdb/nano_file.hpp"

#include <blosc.h>
#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <ios>
#include <new>
#include <system_error>

namespace quarry::vdb {
namespace {

constexpr size_t kPieceBytes = size_t(1) << 16;
constexpr uint32_t kMaxNameBytes = 1u << 16;
constexpr uint64_t kMostDeflated = 1100;  // times its length a zlib stream unpacks to; 1032 in truth

[[noreturn]] void ends_within() { throw NanoDamage("the file ends within a grid"); }

std::string number(uint64_t n) { return std::to_string(n); }

// Unpacked before.
class WholeBytes : public NanoBytes {
 public:
  explicit WholeBytes(const NanoGrid& grid) : NanoBytes(grid.bytes), whole_(grid.whole) {}

 private:
  std::span<const uint8_t> next() override { return std::span(*whole_).subspan(size_t(at())); }
  uint64_t skip(uint64_t count) override { return count; }
  bool goes_back() const override { return true; }
  std::shared_ptr<const std::vector<uint8_t>> whole_;
};

// As it is.
class PlainBytes : public NanoBytes {
 public:
  PlainBytes(const NanoInput& file, const NanoGrid& grid) : NanoBytes(grid.bytes), file_(file), place_(grid.at) {
    end_ = place_ + bytes_;
  }

 private:
  std::span<const uint8_t> next() override {
    const size_t count = size_t(std::min<uint64_t>(kPieceBytes, end_ - place_));
    file_.read(place_, std::span(piece_).first(count));
    place_ += count;
    return std::span(piece_).first(count);
  }
  uint64_t skip(uint64_t count) override {
    place_ += count;
    return count;
  }
  const NanoInput& file_;
  uint64_t place_, end_ = 0;
  std::vector<uint8_t> piece_ = std::vector<uint8_t>(kPieceBytes);
};

class ZipBytes : public NanoBytes {
 public:
  ZipBytes(const NanoInput& file, const NanoGrid& grid) : NanoBytes(grid.bytes), file_(file) {
    uint64_t packed = 0;
    file.read_value(grid.at, packed);
    place_ = grid.at + sizeof packed;
    end_ = place_ + packed;
    if (inflateInit(&state_) != Z_OK) throw std::bad_alloc();
  }
  ~ZipBytes() override { inflateEnd(&state_); }
  void finish() override {
    NanoBytes::finish();
    while (!ended_)
      if (unpack() != 0) throw NanoDamage("a grid is longer than its file says");
  }

 private:
  std::span<const uint8_t> next() override {
    for (;;) {
      if (ended_) throw NanoDamage("a grid is shorter than its file says");
      if (const size_t made = unpack(); made > 0) {
        made_ += made;
        return std::span<const uint8_t>(piece_).first(made);
      }
    }
  }
  uint64_t skip(uint64_t) override { return 0; }
  size_t unpack() {
    if (state_.avail_in == 0) {
      const size_t count = size_t(std::min<uint64_t>(kPieceBytes, end_ - place_));
      if (count == 0) throw NanoDamage("the ZIP data of a grid end too early");
      file_.read(place_, std::span(packed_).first(count));
      place_ += count;
      state_.next_in = packed_.data();
      state_.avail_in = uInt(count);
    }
    // Nothing of what follows the grid; but at its end there must be a byte for what must not be there.
    const size_t room = size_t(std::clamp<uint64_t>(bytes_ - made_, 1, kPieceBytes));
    state_.next_out = piece_.data();
    state_.avail_out = uInt(room);
    const int answer = inflate(&state_, Z_NO_FLUSH);
    if (answer == Z_MEM_ERROR) throw std::bad_alloc();
    ended_ = answer == Z_STREAM_END;
    if (answer != Z_OK && answer != Z_BUF_ERROR && !ended_) throw NanoDamage("the ZIP data of a grid are damaged");
    return room - state_.avail_out;
  }
  const NanoInput& file_;
  uint64_t place_ = 0, end_ = 0, made_ = 0;
  bool ended_ = false;
  z_stream state_{};
  std::vector<uint8_t> packed_ = std::vector<uint8_t>(kPieceBytes), piece_ = std::vector<uint8_t>(kPieceBytes);
};

// Buffers of blosc 1, one for each GiB:
//   u8 version, version of the codec, flags, bytes of a value | i32 bytes, bytes of a block, bytes packed
//   | i32 place of each block | blocks. Flag 2: the bytes as they are instead of places and blocks.
class BloscBytes : public NanoBytes {
 public:
  BloscBytes(const NanoInput& file, const NanoGrid& grid)
      : NanoBytes(grid.bytes), file_(file), next_buffer_(grid.at), left_(grid.bytes) {}

 private:
  struct Head {
    uint8_t version, codec_version, flags, type_bytes;
    uint32_t bytes, block_bytes, packed;
  };
  static_assert(sizeof(Head) == BLOSC_MIN_HEADER_LENGTH);
  static constexpr uint32_t kMaxBlockBytes = 64u << 20;
  // Beside its values a block has lengths, one for each byte of a value.
  static constexpr uint32_t kBlockExtra = 4 * 256 + BLOSC_MAX_OVERHEAD;

  void open_buffer() {
    uint64_t packed = 0;
    file_.read_value(next_buffer_, packed);  // nano_grids() has seen that it fits
    place_ = next_buffer_ + sizeof packed;
    next_buffer_ = place_ + packed;
    const uint64_t bytes = std::min(left_, nano::kBloscChunkBytes);
    if (packed < sizeof(Head)) bad();
    file_.read_value(place_, head_);
    if (head_.version != BLOSC_VERSION_FORMAT || head_.bytes != bytes || head_.packed != packed ||
        head_.type_bytes == 0 || head_.block_bytes == 0 || head_.block_bytes > std::max(head_.bytes, 1u))
      bad();
    left_ -= bytes;
    in_buffer_ = bytes;
    block_ = 0;
    const uint64_t blocks = (bytes + head_.block_bytes - 1) / head_.block_bytes;
    if (stored() ? packed != sizeof(Head) + bytes : packed < sizeof(Head) + blocks * 4) bad();
    if (stored()) return;
    if (head_.block_bytes > kMaxBlockBytes)
      throw NanoDamage("the BLOSC data of a grid are in blocks of more than 64 MiB; write it again by NanoVDB");
    out_.resize(head_.block_bytes);
  }
  [[noreturn]] static void bad() { throw NanoDamage("the BLOSC data of a grid are damaged"); }
  bool stored() const { return head_.flags & BLOSC_MEMCPYED; }

  std::span<const uint8_t> next() override {
    if (in_buffer_ == 0) open_buffer();
    if (stored()) {
      const size_t count = size_t(std::min<uint64_t>(in_buffer_, kPieceBytes));
      out_.resize(count);
      file_.read(place_ + sizeof head_ + (head_.bytes - in_buffer_), out_);
      in_buffer_ -= count;
      return out_;
    }
    const auto count = uint32_t(std::min<uint64_t>(in_buffer_, head_.block_bytes));
    unpack(count);
    in_buffer_ -= count;
    ++block_;
    return std::span<const uint8_t>(out_).first(count);
  }
  uint64_t skip(uint64_t count) override {
    uint64_t skipped = 0;
    for (;;) {
      if (in_buffer_ == 0) {
        if (left_ == 0 || count - skipped < std::min(left_, nano::kBloscChunkBytes)) return skipped;
        open_buffer();
      }
      uint64_t part = std::min(in_buffer_, count - skipped);
      if (!stored() && part < in_buffer_) part -= part % head_.block_bytes;
      if (part == 0) return skipped;
      block_ += (part + head_.block_bytes - 1) / head_.block_bytes;
      in_buffer_ -= part;
      skipped += part;
    }
  }
  // Makes a buffer of one block, and has the library unpack that.
  void unpack(uint32_t count) {
    constexpr uint32_t kFirst = sizeof(Head) + sizeof(uint32_t);
    uint32_t begin = 0, end = 0;
    file_.read_value(place_ + sizeof(Head) + block_ * sizeof begin, begin);
    if (begin < sizeof(Head) || begin >= head_.packed) bad();
    uint64_t most = std::min<uint64_t>(head_.packed - begin, uint64_t(head_.block_bytes) + kBlockExtra);
    if (in_buffer_ > count) {
      file_.read_value(place_ + sizeof(Head) + (block_ + 1) * sizeof end, end);
      if (end > begin) most = std::min<uint64_t>(most, end - begin);
    }
    one_.resize(kFirst + size_t(most));
    Head head = head_;
    head.bytes = count;
    head.packed = uint32_t(one_.size());
    std::memcpy(one_.data(), &head, sizeof head);
    std::memcpy(one_.data() + sizeof head, &kFirst, sizeof kFirst);
    file_.read(place_ + begin, std::span(one_).subspan(kFirst));
    if (blosc_decompress_ctx(one_.data(), out_.data(), out_.size(), 1) != int(count)) bad();
  }

  const NanoInput& file_;
  uint64_t next_buffer_, left_;                     // behind the open buffer
  uint64_t place_ = 0, in_buffer_ = 0, block_ = 0;  // of the open one: its place, unpacked bytes left, the next block
  Head head_{};
  std::vector<uint8_t> one_, out_;
};

// Where a grid ends that begins at `at`.
uint64_t end_of(const NanoInput& file, const NanoGrid& grid) {
  const auto fits = [&](uint64_t at, uint64_t bytes) { return at <= file.bytes && bytes <= file.bytes - at; };
  if (grid.codec == nano::Codec::none) {
    if (!fits(grid.at, grid.bytes)) ends_within();
    return grid.at + grid.bytes;
  }
  uint64_t at = grid.at;
  for (uint64_t left = grid.bytes;;) {
    uint64_t packed = 0;
    if (!fits(at, sizeof packed)) ends_within();
    file.read_value(at, packed);
    at += sizeof packed;
    if (!fits(at, packed)) ends_within();
    if (grid.codec == nano::Codec::zip && grid.bytes / kMostDeflated > packed)
      throw NanoDamage("a grid is shorter than its file says");
    at += packed;
    if (grid.codec == nano::Codec::zip || left <= nano::kBloscChunkBytes) return at;
    left -= nano::kBloscChunkBytes;
  }
}

void read_head(const NanoInput& file, const std::string& long_name, NanoGrid& grid) {
  nano::GridData data;
  if (grid.bytes < sizeof data + sizeof(nano::TreeData)) throw NanoDamage("a grid without a sound head");
  NanoBytes::open(file, grid)->read_value(data);
  if (data.magic != nano::kMagic) throw NanoDamage("a grid without a sound head");
  const auto* end = static_cast<const char*>(std::memchr(data.name, 0, sizeof data.name));
  grid.name = data.flags & nano::kLongName ? long_name
                                           : std::string(data.name, end ? size_t(end - data.name) : sizeof data.name);
  grid.type = data.type;
  grid.grid_class = data.grid_class;
  std::copy(std::begin(data.matrix), std::end(data.matrix), grid.matrix);
  std::copy(std::begin(data.translation), std::end(data.translation), grid.translation);
}

}  // namespace

NanoInput open_nano(const std::filesystem::path& file) {
  const auto fd = std::shared_ptr<int>(new int(::open(file.c_str(), O_RDONLY | O_CLOEXEC)), [](int* open) {
    if (*open >= 0) ::close(*open);
    delete open;
  });
  const auto cannot = [] {
    return std::ios_base::failure("it cannot be read", std::error_code(errno, std::generic_category()));
  };
  if (*fd < 0) throw cannot();
  return {std::filesystem::file_size(file), [fd, cannot](uint64_t at, std::span<uint8_t> out) {
            while (!out.empty()) {
              const ssize_t got = ::pread(*fd, out.data(), out.size(), off_t(at));
              if (got < 0 && errno == EINTR) continue;
              if (got <= 0) throw cannot();
              at += uint64_t(got);
              out = out.subspan(size_t(got));
            }
          }};
}

std::vector<NanoGrid> nano_grids(const NanoInput& file) {
  struct Found {
    nano::GridHead head;
    std::string name;
  };
  std::vector<NanoGrid> out;
  // What is shorter than a head, the library takes for the end, too.
  for (uint64_t at = 0; at <= file.bytes && file.bytes - at >= sizeof(nano::FileHead);) {
    nano::FileHead head;
    file.read_value(at, head);
    at += sizeof head;
    if (head.magic == __builtin_bswap64(nano::kMagic))
      throw NanoDamage("its bytes are in the order of another kind of machine (big-endian)");
    if (head.magic != nano::kMagic)
      throw NanoDamage(at == sizeof head ? "it is not a NanoVDB file" : "its grids do not end where they should");
    if (const uint32_t major = nano::major_of(head.version); major != nano::kMajorVersion)
      throw NanoDamage("it is of NanoVDB " + number(major) + ", and " + number(nano::kMajorVersion) +
                       " is read; write it again by a NanoVDB of that version");
    if (head.codec > uint16_t(nano::Codec::blosc))
      throw NanoDamage("its data are packed by an unknown codec, number " + number(head.codec));
    std::vector<Found> found(head.grids);
    for (Found& f : found) {
      if (file.bytes - at < sizeof f.head) throw NanoDamage("the file ends within the heads of its grids");
      file.read_value(at, f.head);
      at += sizeof f.head;
      const uint32_t length = f.head.name_bytes;
      if (length > kMaxNameBytes) throw NanoDamage("the name of a grid is too long");
      if (file.bytes - at < length) throw NanoDamage("the file ends within the heads of its grids");
      f.name.resize(length);
      file.read(at, {reinterpret_cast<uint8_t*>(f.name.data()), length});
      f.name.resize(std::min(f.name.size(), f.name.find('\0')));
      at += length;
    }
    for (const Found& f : found) {
      NanoGrid grid;
      grid.at = at;
      grid.bytes = f.head.grid_bytes;
      grid.codec = nano::Codec(head.codec);
      at = end_of(file, grid);
      read_head(file, f.name, grid);
      out.push_back(std::move(grid));
    }
  }
  return out;
}

void hold_whole(const NanoInput& file, NanoGrid& grid) {
  auto whole = std::make_shared<std::vector<uint8_t>>(size_t(grid.bytes));
  const auto bytes = NanoBytes::open(file, grid);
  bytes->read(whole->data(), whole->size());
  bytes->finish();
  grid.whole = std::move(whole);
}

std::unique_ptr<NanoBytes> NanoBytes::open(const NanoInput& file, const NanoGrid& grid) {
  if (grid.whole) return std::make_unique<WholeBytes>(grid);
  switch (grid.codec) {
    case nano::Codec::zip: return std::make_unique<ZipBytes>(file, grid);
    case nano::Codec::blosc: return std::make_unique<BloscBytes>(file, grid);
    default: return std::make_unique<PlainBytes>(file, grid);
  }
}

void NanoBytes::read(void* out, size_t count) {
  if (count > bytes_ - at_) throw NanoDamage("a grid ends within a node");
  for (auto* to = static_cast<uint8_t*>(out); count > 0;) {
    if (piece_.empty()) piece_ = next();
    const size_t part = std::min(count, piece_.size());
    std::memcpy(to, piece_.data(), part);
    piece_ = piece_.subspan(part);
    at_ += part;
    to += part;
    count -= part;
  }
}

void NanoBytes::skip_to(uint64_t to) {
  if (to > bytes_) throw NanoDamage("a node is at a place where none can be");
  if (to < at_) {
    if (!goes_back()) throw NanoDisorder();
    at_ = to;
    piece_ = {};
  }
  while (at_ < to) {
    if (piece_.empty()) {
      at_ += skip(to - at_);
      if (at_ == to) return;
      piece_ = next();
    }
    const size_t part = size_t(std::min<uint64_t>(to - at_, piece_.size()));
    piece_ = piece_.subspan(part);
    at_ += part;
  }
}

}  // namespace quarry::vdb
