// SPDX-License-Identifier: Apache-2.0
// checksum.hpp - checksums of files: XXH3 of 128 bits in 32 hex digits, as `xxhsum -H128` prints it.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/result.hpp"

struct XXH3_state_s;

namespace quarry::app {

class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;
  void add(std::span<const char> bytes);
  void add_number(uint64_t number);
  void add_text(const std::string& text);  // its length, then its bytes
  std::string hex() const;                 // of all that was added

 private:
  XXH3_state_s* state_;
};

struct FileChecksum {
  std::string file;
  uint64_t bytes = 0;
  std::string xxh128;
  bool operator==(const FileChecksum&) const = default;
};

// Reads the whole file. It also adds the file's bytes and their number to `also`, if that is given. The result's `file`
// is empty. Errors: those of opening; io; cancelled.
Result<FileChecksum> checksum_of(const std::filesystem::path& file, const std::atomic<bool>* cancel = nullptr,
                                 Checksum* also = nullptr);

}  // namespace quarry::app
