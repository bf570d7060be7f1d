// SPDX-License-Identifier: Apache-2.0
// spill.hpp - holds data that does not fit memory, bytes and numbers to be sorted, in an unnamed file in the folder of
// the output. The file vanishes with the process, however that ends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"

namespace quarry::io {

// Not thread-safe. After the first failure nothing more is written or read, and good() returns that failure.
class Spill {
 public:
  // Errors: not_found (no such folder), io.
  static Result<std::unique_ptr<Spill>> create(const std::filesystem::path& beside);
  ~Spill();
  Spill(const Spill&) = delete;
  Spill& operator=(const Spill&) = delete;

  uint64_t size() const { return flushed_ + buffer_.size(); }
  void append(std::span<const uint8_t> bytes);
  template <class T>
  void append_all(std::span<const T> values) {
    append({reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes()});
  }
  // Returns false after a failure.
  bool read(uint64_t at, std::span<uint8_t> out);
  template <class T>
  bool read_all(uint64_t at, std::span<T> values) {
    return read(at, {reinterpret_cast<uint8_t*>(values.data()), values.size_bytes()});
  }
  Result<void> good() const { return error_ ? Result<void>(tl::unexpected<Error>(*error_)) : Result<void>(); }

 private:
  Spill() = default;
  void flush();
  int fd_ = -1;
  uint64_t flushed_ = 0;
  std::vector<uint8_t> buffer_;
  std::optional<Error> error_;
};

// Sorts plain values by operator< and drops duplicates. Values beyond `bytes` go to the spill in sorted runs.
template <class T>
class SpilledSort {
 public:
  // Allocates these bytes at once, so that the memory left for other uses is known.
  SpilledSort(Spill& spill, uint64_t bytes) : spill_(spill), most_(std::max<uint64_t>(bytes / sizeof(T), 1024)) {
    buffer_.resize(most_);
    buffer_.clear();
  }

  void add(const T& value) {
    if (buffer_.size() >= most_) flush();
    buffer_.push_back(value);
  }
  // Ends adding. Call it before next().
  void finish() {
    if (runs_.empty()) {
      sort_buffer();
      return;
    }
    flush();
    std::vector<T>().swap(buffer_);
    // The heads of all runs together are as large as the buffer was.
    block_ = std::clamp<uint64_t>(most_ / runs_.size(), 256, 16384);
    for (size_t r = 0; r < runs_.size(); ++r)
      if (refill(runs_[r])) heap_.push_back(r);
    std::make_heap(heap_.begin(), heap_.end(), Later{runs_});
  }
  // Reads the next value. Returns false at the end or after a failure (the spill's good() tells which).
  bool next(T& value) {
    if (runs_.empty()) {
      if (at_ == buffer_.size()) return false;
      value = buffer_[at_++];
      return true;
    }
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), Later{runs_});
      Run& run = runs_[heap_.back()];
      const T head = run.head[run.at++];
      if (run.at < run.head.size() || refill(run)) std::push_heap(heap_.begin(), heap_.end(), Later{runs_});
      else heap_.pop_back();
      if (last_ && !(*last_ < head)) continue;
      last_ = value = head;
      return true;
    }
    return false;
  }

 private:
  struct Run {
    uint64_t at_byte = 0, left = 0;  // the part still in the file
    std::vector<T> head;
    size_t at = 0;
  };
  struct Later {
    const std::vector<Run>& runs;
    bool operator()(size_t a, size_t b) const { return runs[b].head[runs[b].at] < runs[a].head[runs[a].at]; }
  };

  void sort_buffer() {
    std::sort(buffer_.begin(), buffer_.end());
    buffer_.erase(std::unique(buffer_.begin(), buffer_.end(), [](const T& a, const T& b) { return !(a < b); }),
                  buffer_.end());
  }
  void flush() {
    sort_buffer();
    runs_.push_back({spill_.size(), buffer_.size(), {}, 0});
    spill_.append_all(std::span<const T>(buffer_));
    buffer_.clear();
  }
  bool refill(Run& run) {
    run.head.resize(std::min<uint64_t>(block_, run.left));
    run.at = 0;
    if (run.head.empty() || !spill_.read_all(run.at_byte, std::span<T>(run.head))) return false;
    run.at_byte += run.head.size() * sizeof(T);
    run.left -= run.head.size();
    return true;
  }

  Spill& spill_;
  uint64_t most_, block_ = 0;
  std::vector<T> buffer_;
  size_t at_ = 0;
  std::vector<Run> runs_;
  std::vector<size_t> heap_;
  std::optional<T> last_;
};

}  // namespace quarry::io
