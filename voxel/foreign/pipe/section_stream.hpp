// SPDX-License-Identifier: Apache-2.0
// section_stream.hpp - the bytes between Quarry and the processes that run foreign libraries for it: sections with a
// checksum. mesh_stream.hpp and voxel_stream.hpp describe their contents.
//
// Little-endian. A head, then sections, then the end:
//   8 letters                                  8 B   magic and version
//   tag (4 letters) | u32 zero | u64 length    16 B  then `length` bytes of payload, repeated
//   "DONE" with length 8                             XXH3-64 of every payload byte before it, in order
// Every stream may contain: WARN text; FAIL u32 ErrorCode, text.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.hpp"

namespace quarry {

// Receives pieces of the stream in order. Returns false if the other side has gone.
using ByteSink = std::function<bool(std::span<const uint8_t>)>;

template <class T>
std::span<const uint8_t> bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T)};
}
template <class T>
std::span<const uint8_t> bytes_of(const T& value) requires std::is_trivially_copyable_v<T> {
  return {reinterpret_cast<const uint8_t*>(&value), sizeof value};
}
std::span<const uint8_t> text_bytes(const std::string& text);  // at most 64 KiB of it
// Text from the other process, with blanks for control characters, which would garble a terminal or a log.
std::string clean_text(std::span<const uint8_t> bytes);

// Writes sections; it refers to `sink`. Not thread-safe. Once the other side has gone, every call does nothing.
class SectionWriter {
 public:
  SectionWriter(std::string_view magic, const ByteSink& sink);
  ~SectionWriter();
  SectionWriter(const SectionWriter&) = delete;
  SectionWriter& operator=(const SectionWriter&) = delete;

  void section(std::string_view tag, std::initializer_list<std::span<const uint8_t>> parts);
  void warnings(const std::vector<std::string>& sentences);  // the first 256
  void failure(const Error& error);
  bool finish();  // false if not everything was sent
  bool ok() const { return ok_; }

 private:
  friend class SectionParser;
  void send(const void* data, size_t size);
  const ByteSink& sink_;
  struct Hash;
  std::unique_ptr<Hash> hash_;
  bool ok_ = true;
};

// The reading side: what a stream is, and who takes its sections.
struct SectionReader {
  std::string_view magic;
  std::function<Error(const std::string& what)> bad;
  std::function<Result<void>(std::string_view tag, std::span<const uint8_t> payload)> take;

  // Reads a whole stream, as SectionParser does.
  Result<void> read(std::span<const uint8_t> bytes, std::vector<std::string>* warnings) const;
};

// Reads a stream that comes in pieces. It calls take(tag, payload) for each section except WARN and FAIL as soon as it
// is whole. WARN is appended to `warnings`, if given. FAIL ends with its error. The bytes are not trusted: what was
// taken counts only once end() has said that the stream is whole. Memory: a section, at most `most_bytes`, and nothing
// of one that is whole within a piece. Errors: malformed_input, made by bad(what), for anything that is not a whole
// stream; errors of `take`. After an error nothing more may be given to it.
class SectionParser {
 public:
  SectionParser(SectionReader reader, std::vector<std::string>* warnings, uint64_t most_bytes);
  ~SectionParser();
  SectionParser(const SectionParser&) = delete;
  SectionParser& operator=(const SectionParser&) = delete;
  Result<void> push(std::span<const uint8_t> bytes);
  Result<void> end();

 private:
  // How many bytes the part at the front of the stream has: the magic, or a section with its head. 0 if `bytes` are too
  // few to tell.
  Result<uint64_t> part_bytes(std::span<const uint8_t> bytes) const;
  Result<void> part(std::span<const uint8_t> bytes);

  const SectionReader reader_;
  std::vector<std::string>* warnings_;
  const uint64_t most_bytes_;
  std::unique_ptr<SectionWriter::Hash> hash_;
  std::vector<uint8_t> held_;  // of a part that is not whole yet
  size_t warned_ = 0;
  bool begun_ = false, done_ = false;
};

}  // namespace quarry
