// SPDX-License-Identifier: Apache-2.0
// ordered_index.hpp - keys in order, with values: the owner of a CSB+ tree's memory and its bulk calls. For questions
// that a hash grid cannot answer: what comes next, how many are between, which are in a box.
//
// Keys have 32 or 64 bits, values 32. Boxes are for 64-bit keys that are Morton codes (index/morton.hpp). One key is
// looked up through the view (index/view.hpp). Paper, layout: index/shape.hpp, docs/literature.md.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hashgrid/executor.hpp"
#include "hashgrid/table/span.hpp"

namespace quarry::hashgrid {

struct IndexOptions {
  // The part of each leaf that a build fills, (0, 1]. The rest is room for batches: they are put in place as long as no
  // leaf overflows. 1.0: the smallest and fastest, for indexes that are made anew when keys change.
  double fill = 0.75;
};

enum class KeyOrder : uint8_t { any, rising };

// Spans are memory that the executor dereferences: host memory, or device (or pinned) memory for CUDA. One changing
// call at a time, with no reader; any number of threads and kernels may read at once. The reserved key, which is the
// largest, and the reserved value 0xFFFFFFFF are errors (invalid_argument), as are two equal keys in a batch. A call
// that fails has written nothing and leaves the index as it was. Errors of every call: also out_of_memory, device.
template <class Key>
class OrderedIndex {
 public:
  // Empty. Allocates from `memory` (null: the executor's own). Executor and memory must outlive the index.
  static Result<OrderedIndex> create(Executor& executor, const IndexOptions& options = {},
                                     MemorySource* memory = nullptr);
  OrderedIndex(OrderedIndex&&) noexcept;
  OrderedIndex& operator=(OrderedIndex&&) noexcept;
  ~OrderedIndex();

  IndexView<Key> view() const;  // valid until the next changing call
  uint64_t size() const;        // keys
  uint64_t size_bytes() const;  // of its memory, with what is reserved
  uint32_t leaves() const;

  // Replaces the content. `rising`: the keys are promised to rise, which is checked; else they are sorted first.
  // Errors: invalid_argument, full (2^32 - 1 keys and more). Cost: index/operations.hpp.
  Result<void> build(Span<const Key> keys, Span<const uint32_t> values, KeyOrder order = KeyOrder::any);

  // Memory for an index of so many keys, beside the one that is there. Builds and merges up to that size take it, and
  // keep the old index's memory in its place if that is large enough: an index that is made anew again and again
  // allocates nothing but the executor's scratch from the second time on. 0: gives it back. Errors: full.
  Result<void> reserve(uint64_t keys);

  // A batch of keys in any order, which is sorted first. insert: a key that is there keeps its value and is counted as
  // `present`; assign: it gets the new one. Cost beyond the sort: a look-up of each key, its leaf rewritten, and the
  // leaves' ranks (4 bytes a leaf) written once. If a leaf has no room left, all is merged into new memory with leaves
  // filled as in a build: old and new index read and written once. insert_merges() counts these.
  Result<BulkReport> insert(Span<const Key> keys, Span<const uint32_t> values);
  Result<BulkReport> assign(Span<const Key> keys, Span<const uint32_t> values);
  // Takes keys away; absent ones, reserved ones and copies are counted as `absent`. When three quarters of what the
  // leaves had are gone, the rest is packed into new memory.
  Result<BulkReport> erase(Span<const Key> keys);
  Result<void> clear();
  uint64_t insert_merges() const;

  // values_out[i] = kQryReservedValue for an absent key. `present` and `absent` of the report are set. Cost of a key: a
  // node of 128 bytes of each level (4 levels for a million keys of 64 bits), and a value.
  Result<BulkReport> find(Span<const Key> keys, Span<uint32_t> values_out) const;
  // The rank of the first key that is not less than each: the number of keys that are.
  Result<void> lower_bounds(Span<const Key> keys, Span<uint32_t> ranks_out) const;
  // First rank and number of the keys from first to last, both included. Returns the sum of the numbers. Errors:
  // invalid_argument (first > last).
  Result<uint64_t> count_ranges(Span<const KeyRange<Key>> ranges, Span<RankRange> out) const;
  // The keys of each range in order: those of range i at [starts_out[i], starts_out[i + 1]). starts_out has one element
  // more than there are ranges. Outputs whose data() is null are not written; keys_out and values_out otherwise have
  // the same size. Returns the number of all. Errors: invalid_argument; full, if that is more than fits.
  Result<uint64_t> list_ranges(Span<const KeyRange<Key>> ranges, Span<uint64_t> starts_out, Span<Key> keys_out,
                               Span<uint32_t> values_out) const;
  // The same of boxes: the keys of each in Z-order. Errors: also unsupported (32-bit keys).
  Result<uint64_t> list_boxes(Span<const MortonBox> boxes, Span<uint64_t> starts_out, Span<uint64_t> keys_out,
                              Span<uint32_t> values_out) const;

 private:
  struct State;
  explicit OrderedIndex(std::unique_ptr<State> state);
  Result<BulkReport> change(IndexChange what, Span<const Key> keys, Span<const uint32_t> values);
  std::unique_ptr<State> state_;
};

}  // namespace quarry::hashgrid
