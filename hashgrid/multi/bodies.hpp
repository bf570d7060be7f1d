// SPDX-License-Identifier: Apache-2.0
// bodies.hpp - what one thread does in each pass over a multi grid: one text for host threads and CUDA kernels. No body
// waits for another, and none needs shared memory. passes.hpp has their order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hashgrid/index/bodies.hpp"
#include "hashgrid/multi/view.hpp"

namespace quarry::hashgrid::bodies {

// Atomic operations on words that several threads write; what they order is ordered by the end of the pass.
QRY_HD inline uint64_t load_word(const uint64_t* word) {
#if defined(__CUDA_ARCH__)
  return *reinterpret_cast<const volatile unsigned long long*>(word);
#else
  return __atomic_load_n(word, __ATOMIC_RELAXED);
#endif
}
QRY_HD inline bool swap_word(uint64_t* word, uint64_t& expected, uint64_t wanted) {
#if defined(__CUDA_ARCH__)
  const uint64_t before =
      atomicCAS(reinterpret_cast<unsigned long long*>(word), (unsigned long long)expected, (unsigned long long)wanted);
  const bool done = before == expected;
  expected = before;
  return done;
#else
  return __atomic_compare_exchange_n(word, &expected, wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
#endif
}
QRY_HD inline void set_bits(uint64_t* word, uint64_t bits) {
#if defined(__CUDA_ARCH__)
  atomicOr(reinterpret_cast<unsigned long long*>(word), (unsigned long long)bits);
#else
  __atomic_fetch_or(word, bits, __ATOMIC_RELAXED);
#endif
}
// Returns what the word was.
QRY_HD inline uint64_t clear_bits(uint64_t* word, uint64_t bits) {
#if defined(__CUDA_ARCH__)
  return atomicAnd(reinterpret_cast<unsigned long long*>(word), (unsigned long long)~bits);
#else
  return __atomic_fetch_and(word, ~bits, __ATOMIC_RELAXED);
#endif
}
QRY_HD inline uint32_t take_number(uint32_t* next) {
#if defined(__CUDA_ARCH__)
  return atomicAdd(next, 1u);
#else
  return __atomic_fetch_add(next, 1u, __ATOMIC_RELAXED);
#endif
}

// Keys of a batch in their stored form, and the number of each row if it is asked for.
struct MixBatch {
  const uint32_t* keys;
  uint32_t* stored;  // may be null: the keys are only checked
  uint32_t* rows;    // may be null
  uint64_t* fault;   // the first reserved key
  QRY_HD uint32_t operator()(size_t i) const {
    const uint32_t key = keys[i];
    if (key == kQryReservedKey) keep_least(fault, i);
    if (stored != nullptr) stored[i] = qry_stored_key(key, kQryPlain);
    if (rows != nullptr) rows[i] = uint32_t(i);
    return 0;
  }
};
struct CopyPairs {
  const uint32_t* keys;
  const uint32_t* values;
  uint32_t* keys_out;
  uint32_t* values_out;
  QRY_HD uint32_t operator()(size_t i) const {
    keys_out[i] = keys[i];
    values_out[i] = values[i];
    return 0;
  }
};

QRY_HD inline size_t first_bucket_of(const MultiView& view, uint32_t page) {
  return size_t{view.pages[page].first / 2} + page;
}
QRY_HD inline void clear_bucket(const MultiView& view, size_t bucket) {
  MultiBucket& to = *writable(view.buckets + bucket);
  for (uint32_t slot = 0; slot < kMultiSlots; ++slot) to.keys[slot] = to.words[slot] = kQryReservedKey;
  to.counts = 0;
}

// A page's first pair, and behind the last page the number of pairs. `stored` is sorted by page.
struct PageStarts {
  MultiView view;
  const uint32_t* stored;
  QRY_HD uint32_t operator()(size_t page) const {
    const size_t before = page == view.shape.pages() ? view.shape.pairs : count_before(view.shape.pairs, [&](size_t i) {
      return multi_page(stored[i], view.shape.page_bits) < page;
    });
    MultiPage& to = *writable(view.pages + page);
    to.first = uint32_t(before);
    to.buckets = 0;
    if (page == 0) *writable(view.large) = 0;
    return 0;
  }
};
// A page without pairs still has a bucket.
struct ClearEmptyPages {
  MultiView view;
  QRY_HD uint32_t operator()(size_t page) const {
    if (view.pages[page].first == view.pages[page + 1].first) clear_bucket(view, first_bucket_of(view, uint32_t(page)));
    return 0;
  }
};

// Pairs of some of a grid's pages, sorted by stored key: the road for pages of any size.
struct SortedPairs {
  MultiView view;
  const uint32_t* stored;
  const uint32_t* values;
  size_t count;
  uint32_t* from;  // of each page that has pairs here: its first
  QRY_HD uint32_t page_of(size_t i) const { return multi_page(stored[i], view.shape.page_bits); }
};
struct BeginsRun {
  const uint32_t* stored;
  QRY_HD bool operator()(uint32_t i) const { return i == 0 || stored[i] != stored[i - 1]; }
};
// Of each run that is its page's first: the page's begin and its number of buckets.
struct CountRunsOfPages {
  SortedPairs pairs;
  const uint32_t* runs;  // where they begin
  size_t run_count;
  QRY_HD uint32_t operator()(size_t run) const {
    const uint32_t page = pairs.page_of(runs[run]);
    if (run != 0 && pairs.page_of(runs[run - 1]) == page) return 0;
    const size_t more =
        count_before(run_count - run - 1, [&](size_t i) { return pairs.page_of(runs[run + 1 + i]) == page; });
    writable(pairs.view.pages + page)->buckets = uint32_t((more + 1) / 2 + 1);
    pairs.from[page] = runs[run];
    return 0;
  }
};
// Every second pair clears a bucket of its page, the last one also what is behind.
struct ClearBuckets {
  SortedPairs pairs;
  QRY_HD uint32_t operator()(size_t i) const {
    const MultiView& view = pairs.view;
    const uint32_t page = pairs.page_of(i), at = uint32_t(i) - pairs.from[page];
    const size_t first = first_bucket_of(view, page);
    if (at % 2 == 0) clear_bucket(view, first + at / 2);
    if (at + 1 == view.pages[page + 1].first - view.pages[page].first)
      for (size_t bucket = first + at / 2 + 1; bucket < first_bucket_of(view, page + 1); ++bucket)
        clear_bucket(view, bucket);
    return 0;
  }
};
// A pair's value to its place; that of a single one is not read.
struct PutRunValues {
  SortedPairs pairs;
  QRY_HD uint32_t operator()(size_t i) const {
    const uint32_t page = pairs.page_of(i);
    writable(pairs.view.values)[pairs.view.pages[page].first + (i - pairs.from[page])] = pairs.values[i];
    return 0;
  }
};
// A slot for each run: the first free one from its home on. A page has half as many slots again as runs.
struct ClaimSlots {
  SortedPairs pairs;
  const uint32_t* runs;
  size_t run_count;
  QRY_HD uint32_t operator()(size_t run) const {
    const MultiView& view = pairs.view;
    const size_t begin = runs[run], end = run + 1 < run_count ? runs[run + 1] : pairs.count;
    const uint32_t stored = pairs.stored[begin], page = pairs.page_of(begin), size = uint32_t(end - begin);
    uint32_t field = size;
    if (size >= kMultiLarge) {
      const uint32_t number = take_number(writable(view.large)) + 1;
      writable(view.large)[number] = size;
      field = kMultiLarge + number;
    }
    const uint32_t buckets = view.pages[page].buckets;
    const size_t first = first_bucket_of(view, page);
    for (uint32_t at = multi_home(stored, buckets);; at = at + 1 == buckets ? 0 : at + 1) {
      MultiBucket& bucket = *writable(view.buckets + first + at);
      uint64_t counts = load_word(&bucket.counts);
      for (uint32_t slot = 0; slot < kMultiSlots;) {
        if (multi_count_field(counts, slot) != 0) {
          ++slot;
          continue;
        }
        if (!swap_word(&bucket.counts, counts, counts | uint64_t{field} << (slot * kMultiCountBits))) continue;
        bucket.keys[slot] = stored;
        bucket.words[slot] =
            size == 1 ? pairs.values[begin] : view.pages[page].first + uint32_t(begin - pairs.from[page]);
        return 0;
      }
      if ((counts & kMultiWentOn) == 0) set_bits(&bucket.counts, kMultiWentOn);
    }
  }
};

// Whether a page is too large for a build in shared memory; and such a page's pairs.
struct StoredPair {
  uint32_t stored, value;
};
struct InLargePage {
  MultiView view;
  const StoredPair* pairs;
  uint32_t most;
  QRY_HD bool operator()(uint32_t i) const {
    const uint32_t page = multi_page(pairs[i].stored, view.shape.page_bits);
    return view.pages[page + 1].first - view.pages[page].first > most;
  }
};
struct PickPairs {
  const uint32_t* picked;
  const StoredPair* pairs;
  uint32_t* stored_out;
  uint32_t* values_out;
  QRY_HD uint32_t operator()(size_t i) const {
    const StoredPair pair = pairs[picked[i]];
    stored_out[i] = pair.stored;
    values_out[i] = pair.value;
    return 0;
  }
};

// The run of each key, and how many results it has: with `outer`, an absent key has one.
template <bool kStored>
struct LocateRuns {
  MultiView view;
  const uint32_t* keys;
  size_t count;  // one more is called: the end
  bool outer;
  MultiRun* runs;
  uint64_t* starts;  // counts, until they are summed up
  QRY_HD uint32_t operator()(size_t i) const {
    if (i == count) {
      starts[i] = 0;
      return 0;
    }
    const MultiRun run = kStored ? place_of_stored(view, keys[i]).run : find(view, keys[i]);
    runs[i] = run;
    starts[i] = outer && run.count == 0 ? 1 : run.count;
    return run.count != 0;
  }
};
// The same of each slot of a grid.
struct SlotRuns {
  MultiView view;
  size_t count;
  MultiRun* runs;
  uint64_t* starts;
  QRY_HD uint32_t operator()(size_t i) const {
    MultiRun run;
    if (i < count) {
      const MultiBucket bucket = detail::load_multi_bucket(view.buckets + i / kMultiSlots);
      const uint32_t slot = uint32_t(i % kMultiSlots);
      run.count = multi_count_field(bucket.counts, slot);
      if (run.count >= kMultiLarge) run.count = view.large[run.count - kMultiLarge];
      run.word = bucket.words[slot];
      runs[i] = run;
    }
    starts[i] = run.count;
    return 0;
  }
};
struct CountValues {
  MultiView view;
  const uint32_t* keys;
  uint32_t* counts_out;  // may be null
  QRY_HD uint32_t operator()(size_t i) const {
    const uint32_t count = find(view, keys[i]).count;
    if (counts_out != nullptr) counts_out[i] = count;
    return count != 0;
  }
};
// Of two threads with the same key, one clears its count and returns it.
struct EraseRuns {
  MultiView view;
  const uint32_t* keys;
  QRY_HD uint32_t operator()(size_t i) const {
    const uint32_t stored = qry_stored_key(keys[i], kQryPlain);
    const uint32_t number = multi_page(stored, view.shape.page_bits);
    const MultiPage page = view.pages[number];
    const size_t first = size_t{page.first / 2} + number;
    uint32_t at = page.buckets == 0 ? 0 : multi_home(stored, page.buckets);
    for (uint32_t step = 0; step < page.buckets; ++step) {
      MultiBucket& bucket = *writable(view.buckets + first + at);
      const uint64_t counts = load_word(&bucket.counts);
      for (uint32_t slot = 0; slot < kMultiSlots; ++slot) {
        if (bucket.keys[slot] != stored || multi_count_field(counts, slot) == 0) continue;
        const uint64_t field = uint64_t{(1u << kMultiCountBits) - 1} << (slot * kMultiCountBits);
        const uint32_t count = multi_count_field(clear_bits(&bucket.counts, field), slot);
        return count < kMultiLarge ? count : view.large[count - kMultiLarge];
      }
      if ((counts & kMultiWentOn) == 0) return 0;
      at = at + 1 == page.buckets ? 0 : at + 1;
    }
    return 0;
  }
};
struct IsPresent {
  const MultiRun* runs;
  bool wanted;
  QRY_HD bool operator()(uint32_t i) const { return (runs[i].count != 0) == wanted; }
};

// A result is got from its owner, whose `i`-th it is, and put to its place `to`: in two steps, so that a thread can get
// several before it writes one.

// Value `i` of an owner's run. Without a branch: the loads of several can be under way at once. The run of a single
// value is read twice.
QRY_HD inline uint32_t value_of_owner(const MultiView& view, const MultiRun* runs, size_t owner, uint32_t i) {
#if defined(__CUDA_ARCH__)
  const uint2 both = __ldg(reinterpret_cast<const uint2*>(runs + owner));
  return __ldg(both.y > 1 ? view.values + (size_t{both.x} + i) : &runs[owner].word);
#else
  return value_of(view, runs[owner], i);
#endif
}
// The same of `count` values from `i` on, for a host thread, which goes through an owner's results by itself.
inline void copy_values(const MultiView& view, const MultiRun& run, uint32_t i, size_t count, uint32_t* to) {
  if (run.count <= 1) *to = run.word;
  else std::copy_n(view.values + run.word + i, count, to);
}
struct PutValues {
  MultiView view;
  const MultiRun* runs;
  uint32_t* values_out;
  QRY_HD uint32_t get(size_t owner, uint32_t i) const { return value_of_owner(view, runs, owner, i); }
  QRY_HD void put(size_t to, uint32_t value) const { values_out[to] = value; }
  void put_all(size_t owner, uint32_t i, size_t count, size_t to) const {
    copy_values(view, runs[owner], i, count, values_out + to);
  }
};
struct TwoWords {
  uint32_t first = 0, second = 0;
};
struct PutPairs {
  MultiView view;
  const MultiRun* runs;
  uint32_t* keys_out;    // may be null
  uint32_t* values_out;  // may be null
  QRY_HD TwoWords get(size_t owner, uint32_t i) const {
    TwoWords pair;
    pair.first = view.buckets[owner / kMultiSlots].keys[owner % kMultiSlots];
    pair.second = value_of_owner(view, runs, owner, i);
    return pair;
  }
  QRY_HD void put(size_t to, const TwoWords& pair) const {
    if (keys_out != nullptr) keys_out[to] = qry_key_of_stored(pair.first, kQryPlain);
    if (values_out != nullptr) values_out[to] = pair.second;
  }
  void put_all(size_t owner, uint32_t i, size_t count, size_t to) const {
    if (keys_out != nullptr) std::fill_n(keys_out + to, count, qry_key_of_stored(get(owner, i).first, kQryPlain));
    if (values_out != nullptr) copy_values(view, runs[owner], i, count, values_out + to);
  }
};
struct PutJoined {
  MultiView view;
  const MultiRun* runs;
  const uint32_t* left_rows;  // null: their numbers
  uint32_t* left_out;         // may be null
  uint32_t* right_out;        // may be null
  QRY_HD TwoWords get(size_t owner, uint32_t i) const {
    TwoWords rows;
    rows.first = left_rows != nullptr ? left_rows[owner] : uint32_t(owner);
    rows.second = value_of_owner(view, runs, owner, i);
    return rows;
  }
  QRY_HD void put(size_t to, const TwoWords& rows) const {
    if (left_out != nullptr) left_out[to] = rows.first;
    if (right_out != nullptr) right_out[to] = rows.second;
  }
  void put_all(size_t owner, uint32_t i, size_t count, size_t to) const {
    if (left_out != nullptr) std::fill_n(left_out + to, count, get(owner, i).first);
    if (right_out != nullptr) copy_values(view, runs[owner], i, count, right_out + to);
  }
};

// Results and owners are gone through together, each owner before its results: so pieces of equal length have equal
// work, however many results an owner has. The owner at step `step` of count + starts[count]: the last with
// starts[owner] + owner <= step. The result there is step - owner.
QRY_HD inline size_t owner_at(const uint64_t* starts, size_t count, uint64_t step) {
  size_t low = 0, more = count;  // starts[0] is 0
  while (more > 0) {
    const size_t half = (more + 1) / 2;
    if (starts[low + half] + low + half <= step) {
      low += half;
      more -= half;
    } else {
      more = half - 1;
    }
  }
  return low;
}

}  // namespace quarry::hashgrid::bodies
