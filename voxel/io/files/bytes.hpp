// SPDX-License-Identifier: Apache-2.0
// bytes.hpp - reads files into memory, whole or as needed, and converts errors of the operating system.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/memory_budget.hpp"
#include "base/progress.hpp"
#include "base/result.hpp"

namespace quarry::io {

// Reads at most the first `limit` bytes. Errors: not_found, io (a folder, no permission), out_of_memory. Messages do
// not name the file.
Result<std::vector<uint8_t>> read_file_head(const std::filesystem::path& file, size_t limit);
// Reads all of it. Errors: those above; unsupported if it is longer than `limit`.
Result<std::vector<uint8_t>> read_file(const std::filesystem::path& file, uint64_t limit);
// Does the same as a format reader's first step. It reports to `progress`, and between two pieces asks it whether to go
// on. `becomes` is the least memory that the reader needs in addition to the bytes before they can be freed. Further
// errors: cancelled; out_of_memory before anything is read, if both do not fit `budget` (may be null).
Result<std::vector<uint8_t>> read_input(const std::filesystem::path& file, uint64_t limit, const Progress& progress,
                                        const MemoryBudget* budget, uint64_t becomes = 0);
// A file's bytes at their places in memory. Only bytes that were asked for are loaded. Not thread-safe.
class LazyFile {
 public:
  // Opens a file without reading. Errors: those of read_file.
  static Result<LazyFile> open(const std::filesystem::path& file, uint64_t limit);
  LazyFile(LazyFile&& other) noexcept
      : bytes_(std::exchange(other.bytes_, nullptr)), size_(other.size_), fd_(std::exchange(other.fd_, -1)) {}
  LazyFile(const LazyFile&) = delete;
  LazyFile& operator=(const LazyFile&) = delete;
  ~LazyFile();
  std::span<const uint8_t> span() const { return {bytes_, size_}; }  // only loaded bytes may be read
  Result<void> load(size_t begin, size_t end);                       // errors: io (also if the file became shorter)
  void drop(size_t begin, size_t end);                               // whole pages between them

 private:
  LazyFile() = default;
  uint8_t* bytes_ = nullptr;
  size_t size_ = 0;
  int fd_ = -1;
};

// Bytes that are read from front to back, once or several times. The bytes of a file are loaded as needed and freed
// again, so a file of any length takes a few MiB. Bytes in memory are used in place. Not thread-safe.
class ByteView {
 public:
  explicit ByteView(std::span<const uint8_t> bytes) : all_(bytes), to_(bytes.size()) {}
  // Both must outlive the view. If `progress` says to stop, reading ends with ErrorCode::cancelled.
  ByteView(LazyFile& file, const Progress& progress) : all_(file.span()), file_(&file), progress_(&progress) {}

  size_t size() const { return all_.size(); }
  // The places of all bytes. Only bytes that look() returned may be read, until a look() from behind them.
  std::span<const uint8_t> all() const { return all_; }
  // Returns bytes [begin, end), which must be within size(). Bytes before `begin` may be freed. Errors: io (the file
  // became shorter meanwhile), cancelled.
  Result<std::span<const uint8_t>> look(size_t begin, size_t end) {
    if (begin < from_ || end > to_) QRY_TRY(move(begin, end));
    return all_.subspan(begin, end - begin);
  }
  size_t there_to() const { return to_; }

 private:
  Result<void> move(size_t begin, size_t end);
  std::span<const uint8_t> all_;
  LazyFile* file_ = nullptr;
  const Progress* progress_ = nullptr;
  size_t from_ = 0, to_ = 0;  // the loaded bytes
};

// Converts the `errno` of a failed call to an Error: not_found, conflict, out_of_memory or io. `what` says what failed:
// "cannot open it".
Error error_from_errno(const std::string& what, int number);

}  // namespace quarry::io
