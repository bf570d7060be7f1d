// SPDX-License-Identifier: Apache-2.0
// operations.hpp - the interface of the bulk operations on ordered indexes with keys of one kind. Host threads and CUDA
// kernels run the same bodies (bodies.hpp) in the same order (passes.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/result.hpp"
#include "hashgrid/index/morton.hpp"
#include "hashgrid/index/view.hpp"
#include "hashgrid/table/operations.hpp"

namespace quarry::hashgrid {

// Keys from `first` to `last`, both included; `last` may be the reserved key: to the end. first > last is wrong.
template <class Key>
struct KeyRange {
  Key first, last;
};
// The ranks of such keys.
struct RankRange {
  uint32_t first = 0, count = 0;
};

// What a batch does with keys that are present.
enum class IndexChange : uint8_t { insert, assign, erase };

// All pointers are memory that the executor can dereference, as in table/operations.hpp. Calls return when the work is
// done. They check what they are given before they write. Free-threaded, but nobody may read an index that is changed.
template <class Key>
class IndexOperations {
 public:
  virtual ~IndexOperations() = default;

  // Fills an index of `count` sorted keys, each leaf with `per_leaf` of them: the leaves in one pass, all levels of
  // inner nodes in a second. Errors: invalid_argument (not rising, reserved; the message says which is the first).
  // Cost: keys and values read once, the index written once, its leaves' first keys read once more.
  virtual Result<void> build(const IndexView<Key>& view, uint32_t per_leaf, const Key* keys, const uint32_t* values,
                             size_t count) = 0;
  // The same of keys in any order, by a radix sort. The sort's memory is as much as keys and values, twice.
  virtual Result<void> sort_and_build(const IndexView<Key>& view, uint32_t per_leaf, const Key* keys,
                                      const uint32_t* values, size_t count) = 0;

  // Changes an index by a batch in any order. Leaves that have room are changed where they are. If one has not, the
  // whole is merged with the batch into `room(keys)`, an index of so many keys, which is then written completely;
  // *merged says so. Errors: as sort_and_build(), and those of `room`; then nothing has changed.
  using Room = std::function<Result<IndexView<Key>>(uint64_t keys)>;
  virtual Result<BulkReport> change(const IndexView<Key>& view, uint32_t per_leaf, IndexChange what, const Key* keys,
                                    const uint32_t* values, size_t count, const Room& room, bool* merged) = 0;
  // Writes all keys of `from` into `to`.
  virtual Result<void> repack(const IndexView<Key>& from, const IndexView<Key>& to, uint32_t per_leaf) = 0;

  // values_out[i] = kQryReservedValue for an absent key. Returns how many are present.
  virtual Result<uint64_t> find(const IndexView<Key>& view, const Key* keys, size_t count, uint32_t* values_out) = 0;
  virtual Result<void> lower_bounds(const IndexView<Key>& view, const Key* keys, size_t count, uint32_t* ranks_out) = 0;
  // Returns the sum of the counts. Errors: invalid_argument (first > last), nothing written.
  virtual Result<uint64_t> count_ranges(const IndexView<Key>& view, const KeyRange<Key>* ranges, size_t count,
                                        RankRange* out) = 0;
  // The keys of all ranges, one range after the other, each in order: those of range i at starts_out[i] ..
  // starts_out[i + 1]. Outputs may be null. Returns their number. Errors: full (more than `room`), nothing written.
  virtual Result<uint64_t> list_ranges(const IndexView<Key>& view, const KeyRange<Key>* ranges, size_t count,
                                       uint64_t* starts_out, Key* keys_out, uint32_t* values_out, uint64_t room) = 0;
  // The same of boxes, for 64-bit keys that are Morton codes. Errors: also invalid_argument (a wrong box).
  virtual Result<uint64_t> list_boxes(const IndexView<Key>& view, const MortonBox* boxes, size_t count,
                                      uint64_t* starts_out, Key* keys_out, uint32_t* values_out, uint64_t room) = 0;
};

}  // namespace quarry::hashgrid
