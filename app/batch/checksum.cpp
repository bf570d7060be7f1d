// SPDX-License-Identifier: Apache-2.0
// checksum.cpp - XXH3 of what is added, and of files read in pieces of 1 MiB.
#include "app/batch/checksum.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <cerrno>
#include <fstream>
#include <new>
#include <vector>

#include "voxel/io/files/bytes.hpp"

namespace quarry::app {
namespace fs = std::filesystem;

Checksum::Checksum() : state_(XXH3_createState()) {
  if (!state_) throw std::bad_alloc();
  XXH3_128bits_reset(state_);
}
Checksum::~Checksum() { XXH3_freeState(state_); }

void Checksum::add(std::span<const char> bytes) { XXH3_128bits_update(state_, bytes.data(), bytes.size()); }
void Checksum::add_number(uint64_t number) { XXH3_128bits_update(state_, &number, sizeof number); }
void Checksum::add_text(const std::string& text) {
  add_number(text.size());
  add(text);
}

std::string Checksum::hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

Result<FileChecksum> checksum_of(const fs::path& file, const std::atomic<bool>* cancel, Checksum* also) {
  std::ifstream in(file, std::ios::binary);
  std::error_code error;
  if (!in || fs::is_directory(file, error))
    return tl::unexpected(
        io::error_from_errno(file.string() + ": cannot open it", fs::exists(file, error) ? EACCES : ENOENT));
  Checksum sum;
  FileChecksum out;
  std::vector<char> buffer(size_t{1} << 20);
  while (in.read(buffer.data(), std::streamsize(buffer.size())), in.gcount() > 0) {
    const std::span<const char> got(buffer.data(), size_t(in.gcount()));
    sum.add(got);
    if (also) also->add(got);
    out.bytes += got.size();
    if (cancel && cancel->load(std::memory_order_relaxed)) return fail(ErrorCode::cancelled, "stopped");
  }
  if (in.bad()) return fail(ErrorCode::io, file.string() + ": cannot read it");
  if (also) also->add_number(out.bytes);
  out.xxh128 = sum.hex();
  return out;
}

}  // namespace quarry::app
