// SPDX-License-Identifier: Apache-2.0
// bytes.hpp - files into memory, whole or as they are needed, and how the operating system's refusals become errors.
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

// The first `limit` bytes at most. Errors: not_found, io (a folder, no permission), out_of_memory. Messages do not name
// the file.
Result<std::vector<uint8_t>> read_file_head(const std::filesystem::path& file, size_t limit);
// All of it. Also: unsupported if it is longer than `limit`.
Result<std::vector<uint8_t>> read_file(const std::filesystem::path& file, uint64_t limit);
// The same as a format reader's first step, which `progress` is told and between two pieces asked whether to go on.
// `becomes`: what it takes at least beside its bytes before these can go. Also: cancelled; out_of_memory before
// anything is read, if both do not fit `budget` (may be null).
Result<std::vector<uint8_t>> read_input(const std::filesystem::path& file, uint64_t limit, const Progress& progress,
                                        const MemoryBudget* budget, uint64_t becomes = 0);
// A file's bytes at their places in memory, of which only those are there that were asked for. One thread.
class LazyFile {
 public:
  // Errors: those of read_file. Nothing is read.
  static Result<LazyFile> open(const std::filesystem::path& file, uint64_t limit);
  LazyFile(LazyFile&& other) noexcept
      : bytes_(std::exchange(other.bytes_, nullptr)), size_(other.size_), fd_(std::exchange(other.fd_, -1)) {}
  LazyFile(const LazyFile&) = delete;
  LazyFile& operator=(const LazyFile&) = delete;
  ~LazyFile();
  std::span<const uint8_t> span() const { return {bytes_, size_}; }  // only what was loaded is to be looked at
  Result<void> load(size_t begin, size_t end);                       // errors: io (also: it became shorter meanwhile)
  void drop(size_t begin, size_t end);                               // whole pages between them

 private:
  LazyFile() = default;
  uint8_t* bytes_ = nullptr;
  size_t size_ = 0;
  int fd_ = -1;
};

// Bytes that are looked at from front to back, once or several times: those of a file come as they are needed and go
// again, so that a file of any length takes a few MiB; those that lie in memory are there. One thread.
class ByteView {
 public:
  explicit ByteView(std::span<const uint8_t> bytes) : all_(bytes), to_(bytes.size()) {}
  // Both must outlive it. A file that `progress` says is to be read no longer ends with ErrorCode::cancelled.
  ByteView(LazyFile& file, const Progress& progress) : all_(file.span()), file_(&file), progress_(&progress) {}

  size_t size() const { return all_.size(); }
  // All of the bytes' places: only what look() gave may be looked at, until a look() from behind it.
  std::span<const uint8_t> all() const { return all_; }
  // Bytes [begin, end), which must be within size(). Those before `begin` may go. Errors: io (it became shorter
  // meanwhile), cancelled.
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
  size_t from_ = 0, to_ = 0;  // what is there
};

// `errno` of a failed call as an Error: not_found, conflict, out_of_memory or io. `what` is what was tried: "cannot
// open it".
Error error_from_errno(const std::string& what, int number);

}  // namespace quarry::io
