// whole_file.hpp - a file that appears whole or not at all, whatever ends the process: written beside its name, then renamed.
// The writers of all formats but .quarry (whose temporary file is a database, store.cpp) stand on it. Unlike that one it does not wait for
// the disk (fsync takes longer than a small file's whole conversion): after a power cut an export may have to be made again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "hashgrid/result.hpp"

namespace quarry::io {

// One thread. After the first failure every call does nothing and commit() returns that failure.
class WholeFile {
 public:
  // Makes the temporary file, in the folder of `file` and with its mode if it is there. A link stays, what it points to is replaced.
  // Errors: not_found (no such folder), io (it is a folder, no permission).
  static Result<WholeFile> create(const std::filesystem::path& file);
  WholeFile(WholeFile&& other) noexcept;
  WholeFile& operator=(WholeFile&&) = delete;
  WholeFile(const WholeFile&) = delete;
  ~WholeFile();  // without commit(): the temporary file goes, what was there before stays

  void put(std::span<const uint8_t> bytes);
  void put(std::string_view text) { put({reinterpret_cast<const uint8_t*>(text.data()), text.size()}); }
  void put_u32(uint32_t v);  // little-endian
  // Replaces bytes that were put before.
  void patch_u32(uint64_t offset, uint32_t v);
  uint64_t size() const { return flushed_ + buffer_.size(); }
  // The temporary file, for a library that opens it by its name and writes all of it; put nothing then.
  const std::filesystem::path& temporary() const { return temporary_; }

  // Errors: io (no space, no permission), that of an earlier call.
  Result<void> commit();

 private:
  WholeFile() = default;
  void flush();
  void write_at(uint64_t offset, std::span<const uint8_t> bytes);

  std::filesystem::path target_, temporary_;
  int fd_ = -1;
  int error_number_ = 0;
  uint64_t flushed_ = 0;
  std::vector<uint8_t> buffer_;
};

}  // namespace quarry::io
