// SPDX-License-Identifier: Apache-2.0
// split.hpp - a batch of 64-bit keys by region: which regions it has, and its pairs in their order. By host threads, by
// counting: each thread counts the regions of its piece of the batch, then writes its keys where their regions begin.
#pragma once

#include <cstdint>
#include <vector>

#include "base/memory_source.hpp"
#include "base/result.hpp"
#include "hashgrid/table/span.hpp"

namespace quarry::hashgrid {

// The part of a batch that is in one region: `count` keys from `begin` on.
struct RegionPart {
  uint32_t region = 0;
  uint64_t begin = 0, count = 0;
};

// Used twice: plan() reads the keys, then write() puts them in order; `keys` must be the same. Within a region the
// order of the batch is kept. Fewer than 2^32 keys.
class RegionSplit {
 public:
  RegionSplit() = default;
  RegionSplit(const RegionSplit&) = delete;
  RegionSplit& operator=(const RegionSplit&) = delete;
  ~RegionSplit();

  // Cost: the keys read once. Host memory: 16 bytes a region and thread. Errors: out_of_memory.
  Result<void> plan(Span<const uint64_t> keys, uint32_t threads);
  const std::vector<RegionPart>& parts() const { return parts_; }  // by rising region

  // The low halves of the keys and, unless null, values and positions in the batch. Cost: keys and values read once,
  // the outputs written once, a stream of writes for each region and thread.
  void write(Span<const uint64_t> keys, const uint32_t* values, uint32_t* keys_out, uint32_t* values_out,
             uint32_t* positions_out);

 private:
  // A thread's piece of the batch. Regions are numbered in it: by their distance from the first if they lie close
  // together, else by a table of the hash grid.
  struct Piece {
    size_t begin = 0, end = 0;
    bool close = true;
    uint32_t first_region = 0;
    MemoryBlock table;
    uint32_t table_pages = 0;
    uint32_t reserved_number = UINT32_MAX;  // of the region that no table can hold
    std::vector<uint32_t> regions;          // by number, unless close
    std::vector<uint64_t> next;             // by number: keys in it; then where its next key goes
  };
  static Result<void> count(Span<const uint64_t> keys, Piece& piece);
  static Result<void> widen(Piece& piece, uint32_t pages);
  static Result<uint32_t> number_new(Piece& piece, uint32_t region);

  std::vector<Piece> pieces_;
  std::vector<RegionPart> parts_;
  uint32_t threads_ = 1;
};

}  // namespace quarry::hashgrid
