// SPDX-License-Identifier: Apache-2.0
// inflate.cpp - inflates with zlib, a MiB of output at a time. Bytes that begin like neither gzip nor zlib are returned
// unchanged.
#include "voxel/io/streams/inflate.hpp"

#include <zlib.h>

#include <algorithm>
#include <string>

#include "voxel/io/files/byte_reader.hpp"

namespace quarry::io {

Result<ByteBuffer> inflated(std::span<const uint8_t> bytes, uint64_t limit, const MemoryBudget* memory) {
  const bool gzip = bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
  const bool zlib = bytes.size() >= 2 && (bytes[0] & 0x0f) == 8 && (bytes[0] << 8 | bytes[1]) % 31 == 0;
  if (!gzip && !zlib) {
    QRY_TRY(MemoryBudget::promise(memory, bytes.size(), "looking at it"));
    ByteBuffer same;
    same.append(bytes);
    return same;
  }
  struct Stream {
    z_stream z{};
    bool open = false;
    ~Stream() {
      if (open) inflateEnd(&z);
    }
  } stream;
  if (inflateInit2(&stream.z, 15 + 32) != Z_OK) return fail(ErrorCode::out_of_memory, "no memory to decompress it");
  stream.open = true;
  ByteBuffer out;
  size_t in_at = 0, out_at = 0;
  for (;;) {
    if (out_at == out.size()) {
      if (out.size() >= limit)
        return fail(ErrorCode::unsupported, at_byte(in_at) + "it decompresses to more than " +
                                                std::to_string(limit >> 20) + " MiB; raise the memory limit");
      constexpr uint64_t kPiece = uint64_t(1) << 20, kLeft = uint64_t(4) << 20;
      if (memory && memory->available_bytes() < kPiece + kLeft)
        return tl::unexpected(memory->used_up("decompressing it"));
      out.resize(std::min<uint64_t>(limit, out.size() + kPiece));
    }
    const auto give = uInt(std::min<size_t>(bytes.size() - in_at, 1u << 30)),
               take = uInt(std::min<size_t>(out.size() - out_at, 1u << 30));
    stream.z.next_in = const_cast<Bytef*>(bytes.data() + in_at);
    stream.z.avail_in = give;
    stream.z.next_out = out.data() + out_at;
    stream.z.avail_out = take;
    const int status = inflate(&stream.z, Z_NO_FLUSH);
    in_at += give - stream.z.avail_in;
    out_at += take - stream.z.avail_out;
    if (status == Z_STREAM_END) break;
    if (status == Z_MEM_ERROR) return fail(ErrorCode::out_of_memory, "no memory to decompress it");
    if (status != Z_OK && status != Z_BUF_ERROR)
      return fail(ErrorCode::malformed_input, at_byte(in_at) + "the compressed data is damaged: " +
                                                  (stream.z.msg ? stream.z.msg : "it needs a dictionary"));
    if (in_at == bytes.size() && stream.z.avail_out > 0)
      return fail(ErrorCode::malformed_input, at_byte(in_at) + "the file ends in the middle of its compressed data");
  }
  out.resize(out_at);
  return out;
}

}  // namespace quarry::io
