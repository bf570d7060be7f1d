// SPDX-License-Identifier: Apache-2.0
// section_stream.cpp - writes and reads sections with one running checksum. A stream without its end is rejected.
#include "voxel/foreign/pipe/section_stream.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace quarry {
namespace {

static_assert(std::endian::native == std::endian::little, "the stream is written as it lies in memory");

constexpr uint64_t kMaxText = 1u << 16, kMaxWarnings = 256;

struct SectionHead {
  char tag[4];
  uint32_t zero = 0;
  uint64_t length = 0;
};
static_assert(sizeof(SectionHead) == 16);

}  // namespace

struct SectionWriter::Hash {
  Hash() : state(XXH3_createState()) {
    if (state) XXH3_64bits_reset(state);
  }
  ~Hash() { XXH3_freeState(state); }
  Hash(const Hash&) = delete;
  Hash& operator=(const Hash&) = delete;
  void add(std::span<const uint8_t> bytes) { XXH3_64bits_update(state, bytes.data(), bytes.size()); }
  uint64_t sum() const { return XXH3_64bits_digest(state); }
  XXH3_state_t* state;
};

std::span<const uint8_t> text_bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), std::min<size_t>(text.size(), kMaxText)};
}

std::string clean_text(std::span<const uint8_t> bytes) {
  std::string text(reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), kMaxText));
  for (char& c : text)
    if (uint8_t(c) < 0x20 || c == 0x7F) c = ' ';
  return text;
}

SectionWriter::SectionWriter(std::string_view magic, const ByteSink& sink)
    : sink_(sink), hash_(std::make_unique<Hash>()) {
  ok_ = hash_->state != nullptr;
  send(magic.data(), magic.size());
}
SectionWriter::~SectionWriter() = default;

void SectionWriter::send(const void* data, size_t size) {
  if (ok_ && size) ok_ = sink_({static_cast<const uint8_t*>(data), size});
}

void SectionWriter::section(std::string_view tag, std::initializer_list<std::span<const uint8_t>> parts) {
  if (!ok_) return;
  SectionHead head;
  std::memcpy(head.tag, tag.data(), 4);
  for (const auto part : parts) head.length += part.size();
  send(&head, sizeof head);
  for (const auto part : parts) {
    hash_->add(part);
    send(part.data(), part.size());
  }
}

void SectionWriter::warnings(const std::vector<std::string>& sentences) {
  for (size_t i = 0; i < sentences.size() && i < kMaxWarnings; ++i) section("WARN", {text_bytes(sentences[i])});
}

void SectionWriter::failure(const Error& error) {
  section("FAIL", {bytes_of(uint32_t(error.code)), text_bytes(error.message)});
}

bool SectionWriter::finish() {
  if (!ok_) return false;
  const uint64_t sum = hash_->sum();
  SectionHead head;
  std::memcpy(head.tag, "DONE", 4);
  head.length = sizeof sum;
  send(&head, sizeof head);
  send(&sum, sizeof sum);
  return ok_;
}

SectionParser::SectionParser(SectionReader reader, std::vector<std::string>* warnings, uint64_t most_bytes)
    : reader_(std::move(reader)),
      warnings_(warnings),
      most_bytes_(most_bytes),
      hash_(std::make_unique<SectionWriter::Hash>()) {}
SectionParser::~SectionParser() = default;

Result<uint64_t> SectionParser::part_bytes(std::span<const uint8_t> bytes) const {
  if (!begun_) return uint64_t(reader_.magic.size());
  if (done_) return tl::unexpected(reader_.bad("bytes after its end"));
  SectionHead head;
  if (bytes.size() < sizeof head) return 0;
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.zero != 0 || head.length > most_bytes_) return tl::unexpected(reader_.bad("a section's length"));
  return sizeof head + head.length;
}

Result<void> SectionParser::push(std::span<const uint8_t> bytes) {
  if (!hash_->state) return fail(ErrorCode::out_of_memory, "no memory to read what another process sent");
  while (!bytes.empty()) {
    if (held_.empty()) {
      QRY_TRY_ASSIGN(const uint64_t all, part_bytes(bytes));
      if (all > 0 && all <= bytes.size()) {
        QRY_TRY(part(bytes.first(size_t(all))));
        bytes = bytes.subspan(size_t(all));
        continue;
      }
    }
    // The part begins in this piece and ends in a later one: first its head is held, then all of it.
    QRY_TRY_ASSIGN(const uint64_t known, part_bytes(held_));
    const size_t wanted = known > 0 ? size_t(known) : sizeof(SectionHead);
    const auto more = bytes.first(std::min(bytes.size(), wanted - held_.size()));
    held_.insert(held_.end(), more.begin(), more.end());
    bytes = bytes.subspan(more.size());
    QRY_TRY_ASSIGN(const uint64_t all, part_bytes(held_));
    if (all == 0 || held_.size() < all) continue;
    QRY_TRY(part(held_));
    held_.clear();
  }
  return {};
}

Result<void> SectionParser::part(std::span<const uint8_t> bytes) {
  const auto broken = [&](const char* what) { return tl::unexpected(reader_.bad(what)); };
  if (!begun_) {
    if (std::memcmp(bytes.data(), reader_.magic.data(), bytes.size()) != 0) return broken("wrong magic");
    begun_ = true;
    return {};
  }
  const std::string_view tag(reinterpret_cast<const char*>(bytes.data()), sizeof SectionHead::tag);
  const auto payload = bytes.subspan(sizeof(SectionHead));
  if (tag == "DONE") {
    uint64_t sum = 0;
    if (payload.size() == sizeof sum) std::memcpy(&sum, payload.data(), sizeof sum);
    if (payload.size() != sizeof sum || sum != hash_->sum()) return broken("wrong checksum");
    done_ = true;
    return {};
  }
  hash_->add(payload);
  if (tag == "WARN") {
    if (warnings_ && ++warned_ <= kMaxWarnings) warnings_->push_back(clean_text(payload));
    return {};
  }
  if (tag != "FAIL") return reader_.take(tag, payload);
  uint32_t code = 0;
  if (payload.size() <= sizeof code) return broken("an error without code or words");
  std::memcpy(&code, payload.data(), sizeof code);
  if (code > uint32_t(ErrorCode::conflict)) return broken("an unknown error code");
  return fail(ErrorCode(code), clean_text(payload.subspan(sizeof code)));
}

Result<void> SectionParser::end() {
  if (!begun_) return tl::unexpected(reader_.bad("wrong magic"));
  if (!done_) return tl::unexpected(reader_.bad("it ends too soon"));
  return {};
}

Result<void> SectionReader::read(std::span<const uint8_t> bytes, std::vector<std::string>* warnings) const {
  SectionParser parser(*this, warnings, bytes.size());
  QRY_TRY(parser.push(bytes));
  return parser.end();
}

}  // namespace quarry
