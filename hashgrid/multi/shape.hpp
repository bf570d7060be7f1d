// SPDX-License-Identifier: Apache-2.0
// shape.hpp - where a key of a multi grid is, and where its values are: arithmetic, no memory.
//
// Pairs are divided by the first bits of their stored keys (key_hash.h) into pages of 512 to 1024 pairs on average. A
// page has one bucket for every two of its pairs, and its part of the values. So both parts' places follow from one
// number, the pairs in the pages before:
//
//   pages    │ first, buckets │ ...               8 bytes each, 2^page_bits and one more
//   buckets  │ 3 keys │ 3 words │ 3 counts │      32 bytes, one sector; page p's begin at bucket first / 2 + p
//            a key with one value: the word is the value. With more: the word is the number of the first; they lie
//            side by side
//   counts   21 bits each, 0: the slot is free, or its key was erased. Bit 63: keys went on to the next bucket
//            2^20 and more: the place of the count in `large`
//   values   4 bytes for each pair; those of page p begin at value first
//
// A key is in its home bucket, or behind it in the same page, wrapping round, as far as bits 63 lead. Its home is drawn
// by a second hash among the page's buckets. So a key with any number of values is one slot and one run: it costs its
// values, and makes no other key's way longer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hashgrid/table/key_hash.h"
#include "hashgrid/table/outcome.hpp"

namespace quarry::hashgrid {

constexpr uint64_t kMultiMostPairs = 0xFFFFFFFEu;  // values are numbered by 32 bits
constexpr uint32_t kMultiPagePairs = 1024;         // at most so many on average
constexpr uint32_t kMultiSlots = 3;                // of a bucket
constexpr uint32_t kMultiCountBits = 21;
constexpr uint32_t kMultiLarge = 1u << (kMultiCountBits - 1);
constexpr uint32_t kMultiLargeRuns = 4096;  // more runs of 2^20 values than 2^32 pairs can have

struct alignas(8) MultiPage {
  uint32_t first = 0;    // pairs in the pages before
  uint32_t buckets = 0;  // that are in use; 0: the page has no key
};

struct alignas(32) MultiBucket {
  uint32_t keys[kMultiSlots];  // stored keys
  uint32_t words[kMultiSlots];
  uint64_t counts;
};
static_assert(sizeof(MultiBucket) == 32);

constexpr uint64_t kMultiWentOn = uint64_t{1} << 63;
QRY_HD inline uint32_t multi_count_field(uint64_t counts, uint32_t slot) {
  return uint32_t(counts >> (slot * kMultiCountBits)) & ((1u << kMultiCountBits) - 1);
}

QRY_HD inline uint32_t multi_page(uint32_t stored, uint32_t page_bits) {
  return page_bits == 0 ? 0 : stored >> (32 - page_bits);
}
// A second hash, so that keys that share their first bits are spread all the same.
QRY_HD inline uint32_t multi_home(uint32_t stored, uint32_t buckets) {
  return uint32_t((uint64_t{qry_mix(stored)} * buckets) >> 32);
}

// The parts of a grid of so many pairs, in bytes from the begin of its memory. One of fewer pairs is never larger.
struct MultiShape {
  uint32_t pairs = 0;
  uint32_t page_bits = 0;

  static constexpr MultiShape of(uint64_t pairs) {
    MultiShape shape;
    shape.pairs = uint32_t(pairs);
    while (pairs != 0 && (pairs - 1) >> shape.page_bits >= kMultiPagePairs) ++shape.page_bits;
    return shape;
  }
  QRY_HD constexpr uint32_t pages() const { return 1u << page_bits; }
  QRY_HD constexpr uint64_t buckets() const { return uint64_t{pairs} / 2 + pages(); }
  constexpr size_t buckets_at() const { return (size_t{pages() + 1} * sizeof(MultiPage) + 31) / 32 * 32; }
  constexpr size_t values_at() const { return buckets_at() + buckets() * sizeof(MultiBucket); }
  constexpr size_t large_at() const { return values_at() + size_t{pairs} * sizeof(uint32_t); }
  constexpr size_t size_bytes() const { return large_at() + (kMultiLargeRuns + 1) * sizeof(uint32_t); }
};

}  // namespace quarry::hashgrid
