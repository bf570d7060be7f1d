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

Result<void> SectionReader::read(std::span<const uint8_t> bytes, std::vector<std::string>* warnings) const {
  const auto broken = [&](const char* what) { return tl::unexpected(bad(what)); };
  if (bytes.size() < magic.size() || std::memcmp(bytes.data(), magic.data(), magic.size()) != 0)
    return broken("wrong magic");
  bytes = bytes.subspan(magic.size());
  SectionWriter::Hash hash;
  if (!hash.state) return fail(ErrorCode::out_of_memory, "no memory to read what another process sent");
  for (size_t warned = 0;;) {
    SectionHead head;
    if (bytes.size() < sizeof head) return broken("it ends too soon");
    std::memcpy(&head, bytes.data(), sizeof head);
    bytes = bytes.subspan(sizeof head);
    if (head.zero != 0 || head.length > bytes.size()) return broken("a section's length");
    const auto payload = bytes.first(size_t(head.length));
    bytes = bytes.subspan(size_t(head.length));
    const std::string_view tag(head.tag, 4);
    if (tag == "DONE") {
      uint64_t sum = 0;
      if (payload.size() == sizeof sum) std::memcpy(&sum, payload.data(), sizeof sum);
      if (payload.size() != sizeof sum || sum != hash.sum()) return broken("wrong checksum");
      if (!bytes.empty()) return broken("bytes after its end");
      return {};
    }
    hash.add(payload);
    if (tag == "WARN") {
      if (warnings && ++warned <= kMaxWarnings) warnings->push_back(clean_text(payload));
    } else if (tag == "FAIL") {
      uint32_t code = 0;
      if (payload.size() <= sizeof code) return broken("an error without code or words");
      std::memcpy(&code, payload.data(), sizeof code);
      if (code > uint32_t(ErrorCode::conflict)) return broken("an unknown error code");
      return fail(ErrorCode(code), clean_text(payload.subspan(sizeof code)));
    } else QRY_TRY(take(tag, payload));
  }
}

}  // namespace quarry
