// file_bytes.hpp - files into memory, whole or as they are needed, and how the operating system's refusals become errors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hashgrid/result.hpp"
#include "voxel/progress.hpp"

namespace quarry::io {

// The first `limit` bytes at most. Errors: not_found, io (a folder, no permission), out_of_memory. Messages do not name the file.
Result<std::vector<uint8_t>> read_file_head(const std::filesystem::path& file, size_t limit);
// All of it. Also: unsupported if it is longer than `limit`.
Result<std::vector<uint8_t>> read_file(const std::filesystem::path& file, uint64_t limit);
// The same as a format reader's first step, which `progress` is told. Also: cancelled.
Result<std::vector<uint8_t>> read_input(const std::filesystem::path& file, uint64_t limit, const Progress& progress);
// A file's bytes at their places in memory, of which only those are there that were asked for. One thread.
class LazyFile {
 public:
  // Errors: those of read_file. Nothing is read.
  static Result<LazyFile> open(const std::filesystem::path& file, uint64_t limit);
  LazyFile(LazyFile&& other) noexcept : bytes_(std::exchange(other.bytes_, nullptr)), size_(other.size_), fd_(std::exchange(other.fd_, -1)) {}
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

// `errno` of a failed call as an Error: not_found, conflict, out_of_memory or io. `what` is what was tried: "cannot open it".
Error error_from_errno(const std::string& what, int number);

}  // namespace quarry::io
