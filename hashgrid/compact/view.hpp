// SPDX-License-Identifier: Apache-2.0
// view.hpp - the second slot layout: up to six entries in a 32-byte sector instead of four, for tables that are read
// far more than they are edited. Same operations and outcomes as pairs/view.hpp; compact/layout.h shows the layout. One
// key, any thread; CompactView owns nothing.
//
// CONCURRENCY CONTRACT: that of pairs/view.hpp, without phases, which this layout does not need: the place of an erased
// key stays reserved for that key until the owner sweeps. insert, assign, find, find_or_insert and erase may run beside
// each other from any number of threads.
//
// WHY IT IS RIGHT. "Sequence" = a key's sectors in the table by rising distance, then those of the stash; slots of a
// sector in rising order.
//  (F) A tag, once claimed (by a compare-and-swap of its 32-bit word), stays until the table is swept or rebuilt; an
//      erase removes only the value. A claim takes the first empty slot of the sequence. So the slots of a sequence
//      only fill, front to back, and two inserts of one key meet at one slot: one claim fails, searches again and sees
//      the other's tag. A key keeps its one slot.
//  (W) A thread that goes on past a full sector has set its overflow bit, or seen it set, before. A find that reads a
//      sector without its tag and without the bit returns absent. The words of a sector are read one by one; let t0 be
//      the instant at which the first was read. If the bit was not set at t0, no key was behind the sector then. If the
//      key's tag was missing in a word w read at t1 with room in it, neither anything behind w nor w itself held the
//      key at t1. If w was full, the key never was and never will be in it. So at t1 for the first word with room, or
//      else at t0, the key was absent.
//  (V) A key's value is in one 32-bit word, found by its tag. insert and find_or_insert swap "none" for the value,
//      assign exchanges, erase exchanges for "none", find loads. One instruction decides each, so per key the
//      operations take effect one after the other there.
//  Bounded: a lost claim uses up one of the sequence's slots.
//
// Memory order: as in pairs/view_impl.hpp. Host: loads acquire, changes acquire-release. Device: relaxed at device
// scope; a claim behind a sector whose bit was just set releases.
//
// Cost: a tag and its value are two words, so an insert takes two atomics in one sector.
#pragma once

#include "hashgrid/compact/layout.h"
#include "hashgrid/table/outcome.hpp"
#include "hashgrid/table/words.hpp"

namespace quarry::hashgrid {

// A trivially copyable reference to a table in memory that this thread or kernel can dereference.
struct CompactView {
  uint32_t* words = nullptr;  // pages of kQryPageBytes, 32-byte aligned
  uint32_t page_count = 0;    // in all, including the stash
  QryCompact layout = {};
};

// pages in [1, 2^21].
inline CompactView compact_view(void* memory, uint32_t pages) {
  return {static_cast<uint32_t*>(memory), pages, qry_compact(pages)};
}

QRY_HD inline Found find(const CompactView& view, uint32_t key);
// The same in a table that nobody changes meanwhile.
QRY_HD inline Found find(const ReadOnly<CompactView>& table, uint32_t key);
QRY_HD inline Outcome insert(const CompactView& view, uint32_t key, uint32_t value);
QRY_HD inline Outcome assign(const CompactView& view, uint32_t key, uint32_t value);
QRY_HD inline Outcome find_or_insert(const CompactView& view, uint32_t key, uint32_t* value);
QRY_HD inline Outcome erase(const CompactView& view, uint32_t key, uint32_t* old = nullptr);

namespace detail {

QRY_HD inline uint32_t highest_bit(uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return 31u - uint32_t(__clz(int(bits)));
#else
  return 31u - uint32_t(__builtin_clz(bits));
#endif
}
QRY_HD inline uint32_t bits_in(uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return uint32_t(__popc(bits));
#else
  return uint32_t(__builtin_popcount(bits));
#endif
}

// A sector's format, and operations on its words of tags.
template <uint32_t kTagsPerWord>
struct CompactFormat {
  static constexpr uint32_t kFields = kTagsPerWord;
  static constexpr uint32_t kTagWords = 5 - kFields, kEntries = 3 + kFields,
                            kBits = kFields == 1   ? 31
                                    : kFields == 2 ? 15
                                                   : 10;
  static constexpr uint32_t kNoTag = (1u << kBits) - 1;
  // Bit 0 of each tag.
  static constexpr uint32_t kEach = kFields == 1 ? 1u : kFields == 2 ? 1u | 1u << 15 : 1u | 1u << 10 | 1u << 20;
  static constexpr uint32_t kTop = kEach << (kBits - 1);

  // The top bit of each tag of the word that equals `tag`. Exact, by word-parallel arithmetic: a field is zero if
  // neither its low bits (after adding all ones) nor its top bit reach the top bit.
  QRY_HD static constexpr uint32_t matches(uint32_t word, uint32_t tag) {
    constexpr uint32_t kLow = kTop - kEach;
    const uint32_t x = (word ^ tag * kEach) & (kTop | kLow);
    return ~(((x & kLow) + kLow) | x) & kTop;
  }
  // The top bit of each tag of the word that is at least `bound`, which is below half of a tag's range.
  QRY_HD static constexpr uint32_t at_least(uint32_t word, uint32_t bound) {
    const uint32_t x = word & (kTop | (kTop - kEach));
    return (((x | kTop) - bound * kEach) | x) & kTop;
  }
  // The first slot of a sector that has `tag`, from its words of tags; kEntries if none has.
  QRY_HD static uint32_t slot_with(const uint32_t (&tags)[kTagWords], uint32_t tag) {
    for (uint32_t w = 0; w < kTagWords; ++w) {
      const uint32_t m = matches(tags[w], tag);
      // Five-entry sectors have a sixth field, which is never claimed: not a slot.
      if (m != 0) return w * kFields + lowest_bit(m) / kBits;
    }
    return kEntries;
  }
  QRY_HD static uint32_t tag_at(uint32_t word, uint32_t field) { return word >> field * kBits & kNoTag; }
  // The bits that change in a word when its empty field gets `tag`.
  QRY_HD static uint32_t change(uint32_t field, uint32_t tag) { return (tag ^ kNoTag) << field * kBits; }
};

// Calls use(CompactFormat<fields>{}) on the host; kernels use with_format_on_device().
template <class Use>
inline decltype(auto) with_format(uint32_t fields, const Use& use) {
  if (fields == 3) return use(CompactFormat<3>{});
  if (fields == 2) return use(CompactFormat<2>{});
  return use(CompactFormat<1>{});
}
#if defined(__CUDACC__)
template <class Use>
__device__ inline decltype(auto) with_format_on_device(uint32_t fields, const Use& use) {
  if (fields == 3) return use(CompactFormat<3>{});
  if (fields == 2) return use(CompactFormat<2>{});
  return use(CompactFormat<1>{});
}
#endif

// The table's words, shared by any number of threads.
struct CompactWords {
  using Ref = AtomicRef<uint32_t>;
#if defined(__CUDA_ARCH__)
  static constexpr auto kLoad = cuda::memory_order_relaxed, kSwap = cuda::memory_order_relaxed,
                        kAfterBit = cuda::memory_order_release;
#else
  static constexpr auto kLoad = std::memory_order_acquire, kSwap = std::memory_order_acq_rel,
                        kAfterBit = std::memory_order_acq_rel;
#endif
  QRY_HD static uint32_t load(const uint32_t* word) { return Ref(*const_cast<uint32_t*>(word)).load(kLoad); }
  QRY_HD static bool swap(uint32_t* word, uint32_t& expected, uint32_t desired, bool after_bit = false) {
    return after_bit ? Ref(*word).compare_exchange_strong(expected, desired, kAfterBit, kLoad)
                     : Ref(*word).compare_exchange_strong(expected, desired, kSwap, kLoad);
  }
  QRY_HD static uint32_t exchange(uint32_t* word, uint32_t desired) { return Ref(*word).exchange(desired, kSwap); }
  QRY_HD static void set_bits(uint32_t* word, uint32_t bits) { Ref(*word).fetch_or(bits, kSwap); }

  // The words of tags are in a sector's first 16 bytes.
  template <uint32_t kCount>
  QRY_HD static void load_tags(uint32_t (&tags)[kCount], const uint32_t* sector) {
#if defined(__CUDA_ARCH__)
    uint64_t two, more;  // each of the words is read atomically
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(two), "=l"(more)
                 : "l"(__cvta_generic_to_global(sector))
                 : "memory");
    for (uint32_t w = 0; w < kCount; ++w) tags[w] = uint32_t((w < 2 ? two : more) >> (w % 2 * 32));
#else
    for (uint32_t w = 0; w < kCount; ++w) tags[w] = load(sector + w);
#endif
  }
};

QRY_HD inline uint32_t* compact_sector_words(const CompactView& view, const QryCompactPart& part, uint32_t sector) {
  return view.words + (size_t{part.first_page} * kQrySectorsPerPage + sector) * 8;
}

// How the search in one part ends: the key's entry was found; it certainly has none; or it would be past the last
// sector.
enum class ProbeEnd : uint8_t { found, absent, overflow };

struct CompactEntry {
  uint32_t* value = nullptr;
  uint32_t sectors = 0;  // read so far
};

template <class Format>
QRY_HD inline ProbeEnd find_entry(const CompactView& view, const QryCompactPart& part, uint32_t mixed,
                                  CompactEntry& entry) {
  const QryCompactPlace place = qry_compact_place(mixed, part);
  uint32_t tag = place.tag;
  for (uint32_t distance = 0; distance < part.reach && tag < Format::kNoTag; ++distance, tag += part.remainders) {
    uint32_t* const words = compact_sector_words(view, part, qry_compact_sector(place.home, distance));
    uint32_t tags[Format::kTagWords];
    CompactWords::load_tags(tags, words);
    ++entry.sectors;
    const uint32_t slot = Format::slot_with(tags, tag);
    if (slot < Format::kEntries) {
      entry.value = words + Format::kTagWords + slot;
      return ProbeEnd::found;
    }
    if ((tags[0] & kQryCompactOverflow) == 0) return ProbeEnd::absent;
  }
  return ProbeEnd::overflow;
}

// Claims a slot if the key has none. ProbeEnd::overflow: no room in this part.
template <class Format>
QRY_HD inline ProbeEnd claim(const CompactView& view, const QryCompactPart& part, uint32_t mixed, CompactEntry& entry,
                             bool& after_bit) {
  const QryCompactPlace place = qry_compact_place(mixed, part);
  uint32_t tag = place.tag;
  for (uint32_t distance = 0; distance < part.reach && tag < Format::kNoTag; ++distance, tag += part.remainders) {
    uint32_t* const words = compact_sector_words(view, part, qry_compact_sector(place.home, distance));
    uint32_t tags[Format::kTagWords];
    CompactWords::load_tags(tags, words);
    for (;;) {  // each lost claim means one more tag, or a word's bit
      uint32_t slot = Format::slot_with(tags, tag);
      if (slot >= Format::kEntries) {
        slot = Format::slot_with(tags, Format::kNoTag);
        if (slot >= Format::kEntries) break;
        const uint32_t w = slot / Format::kFields;
        uint32_t expected = tags[w];
        if (!CompactWords::swap(words + w, expected, expected ^ Format::change(slot % Format::kFields, tag),
                                after_bit)) {
          CompactWords::load_tags(tags, words);
          continue;
        }
      }
      entry.value = words + Format::kTagWords + slot;
      return ProbeEnd::found;
    }
    if ((tags[0] & kQryCompactOverflow) == 0) {
      CompactWords::set_bits(words, kQryCompactOverflow);
      after_bit = true;
    }
  }
  return ProbeEnd::overflow;
}

QRY_HD inline CompactEntry entry_of(const CompactView& view, uint32_t mixed) {
  CompactEntry entry;
  const QryCompactPart& table = view.layout.table;
  const ProbeEnd in_table = table.fields == 3   ? find_entry<CompactFormat<3>>(view, table, mixed, entry)
                            : table.fields == 2 ? find_entry<CompactFormat<2>>(view, table, mixed, entry)
                                                : find_entry<CompactFormat<1>>(view, table, mixed, entry);
  if (in_table == ProbeEnd::overflow && view.layout.stash.pages != 0)
    find_entry<CompactFormat<1>>(view, view.layout.stash, qry_mix(mixed), entry);
  return entry;
}

#if defined(__CUDACC__)
// find, through L1: tags and value of a sector are fetched together, so that the value is no second request.
template <class Format>
__device__ inline ProbeEnd find_read_only(const CompactView& view, const QryCompactPart& part, uint32_t mixed,
                                          Found& found) {
  const QryCompactPlace place = qry_compact_place(mixed, part);
  uint32_t tag = place.tag;
  for (uint32_t distance = 0; distance < part.reach && tag < Format::kNoTag; ++distance, tag += part.remainders) {
    const auto* const halves =
        reinterpret_cast<const uint4*>(compact_sector_words(view, part, qry_compact_sector(place.home, distance)));
    const uint4 a = __ldg(halves), b = __ldg(halves + 1);
    const uint32_t words[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
    uint32_t tags[Format::kTagWords];
#pragma unroll
    for (uint32_t w = 0; w < Format::kTagWords; ++w) tags[w] = words[w];
    ++found.sectors;
    const uint32_t slot = Format::slot_with(tags, tag);
    if (slot < Format::kEntries) {
#pragma unroll
      for (uint32_t s = 0; s < Format::kEntries; ++s)  // no run-time index: words stay in registers
        if (s == slot) found.value = words[Format::kTagWords + s];
      return ProbeEnd::found;
    }
    if ((tags[0] & kQryCompactOverflow) == 0) return ProbeEnd::absent;
  }
  return ProbeEnd::overflow;
}
__device__ inline Found find_read_only(const CompactView& view, uint32_t mixed) {
  Found found{kQryReservedValue, 0, false};
  const QryCompactPart& table = view.layout.table;
  const ProbeEnd in_table = with_format_on_device(
      table.fields, [&](auto format) { return find_read_only<decltype(format)>(view, table, mixed, found); });
  if (in_table == ProbeEnd::overflow && view.layout.stash.pages != 0)
    find_read_only<CompactFormat<1>>(view, view.layout.stash, qry_mix(mixed), found);
  found.hit = found.value != kQryReservedValue;
  return found;
}
#endif

// entry.value is null if there is no room.
QRY_HD inline CompactEntry claimed_entry_of(const CompactView& view, uint32_t mixed) {
  CompactEntry entry;
  bool after_bit = false;
  const QryCompactPart& table = view.layout.table;
  const ProbeEnd in_table = table.fields == 3   ? claim<CompactFormat<3>>(view, table, mixed, entry, after_bit)
                            : table.fields == 2 ? claim<CompactFormat<2>>(view, table, mixed, entry, after_bit)
                                                : claim<CompactFormat<1>>(view, table, mixed, entry, after_bit);
  if (in_table == ProbeEnd::overflow && view.layout.stash.pages != 0)
    claim<CompactFormat<1>>(view, view.layout.stash, qry_mix(mixed), entry, after_bit);
  return entry;
}

#if defined(__CUDACC__)
// claimed_entry_of() as a function of its own: where it is inlined, a caller's kernel has its loops in the way of the
// one swap that almost all keys need. Arguments are passed in registers.
__device__ __noinline__ inline uint32_t* claimed_apart(uint32_t* words, uint32_t page_count, uint32_t mixed) {
  return claimed_entry_of(CompactView{words, page_count, qry_compact(page_count)}, mixed).value;
}
// The key's home sector's part of claimed_entry_of(): null if that has neither the key nor room, or a claim was lost.
template <class Format>
__device__ inline uint32_t* claimed_at_home(const CompactView& view, const QryCompactPart& part, uint32_t mixed) {
  const QryCompactPlace place = qry_compact_place(mixed, part);
  uint32_t* const words = compact_sector_words(view, part, place.home);
  uint32_t tags[Format::kTagWords];
  CompactWords::load_tags(tags, words);
  uint32_t slot = Format::slot_with(tags, place.tag);
  if (slot >= Format::kEntries) {
    slot = Format::slot_with(tags, Format::kNoTag);
    if (slot >= Format::kEntries) return nullptr;
    const uint32_t w = slot / Format::kFields;
    uint32_t expected = 0;
#pragma unroll
    for (uint32_t t = 0; t < Format::kTagWords; ++t)  // no run-time index
      if (t == w) expected = tags[t];
    if (!CompactWords::swap(words + w, expected, expected ^ Format::change(slot % Format::kFields, place.tag)))
      return nullptr;
  }
  return words + Format::kTagWords + slot;
}
#endif

// Where the key's value is, or is to be; null if there is no room.
QRY_HD inline uint32_t* claimed_value_of(const CompactView& view, uint32_t mixed) {
#if defined(__CUDA_ARCH__)
  const QryCompactPart& table = view.layout.table;
  uint32_t* const value = with_format_on_device(
      table.fields, [&](auto format) { return claimed_at_home<decltype(format)>(view, table, mixed); });
  return value != nullptr ? value : claimed_apart(view.words, view.page_count, mixed);
#else
  return claimed_entry_of(view, mixed).value;
#endif
}

}  // namespace detail

QRY_HD inline Found find(const CompactView& view, uint32_t key) {
  if (key == kQryReservedKey) return {kQryReservedValue, 0, false};
  const detail::CompactEntry entry = detail::entry_of(view, qry_mix(key));
  const uint32_t value = entry.value == nullptr ? kQryCompactNoValue : detail::CompactWords::load(entry.value);
  return {value, entry.sectors, value != kQryCompactNoValue};
}

QRY_HD inline Found find(const ReadOnly<CompactView>& table, uint32_t key) {
#if defined(__CUDA_ARCH__)
  if (key == kQryReservedKey) return {kQryReservedValue, 0, false};
  return detail::find_read_only(table.view, qry_mix(key));
#else
  return find(table.view, key);
#endif
}

QRY_HD inline Outcome find_or_insert(const CompactView& view, uint32_t key, uint32_t* value) {
  if (key == kQryReservedKey || *value == kQryReservedValue) return Outcome::reserved;
  uint32_t* const entry = detail::claimed_value_of(view, qry_mix(key));
  if (entry == nullptr) return Outcome::full;
  uint32_t held = kQryCompactNoValue;
  if (detail::CompactWords::swap(entry, held, *value)) return Outcome::inserted;
  *value = held;
  return Outcome::present;
}

QRY_HD inline Outcome insert(const CompactView& view, uint32_t key, uint32_t value) {
  return find_or_insert(view, key, &value);
}

QRY_HD inline Outcome assign(const CompactView& view, uint32_t key, uint32_t value) {
  if (key == kQryReservedKey || value == kQryReservedValue) return Outcome::reserved;
  uint32_t* const entry = detail::claimed_value_of(view, qry_mix(key));
  if (entry == nullptr) return Outcome::full;
  return detail::CompactWords::exchange(entry, value) == kQryCompactNoValue ? Outcome::inserted : Outcome::assigned;
}

QRY_HD inline Outcome erase(const CompactView& view, uint32_t key, uint32_t* old) {
  if (key == kQryReservedKey) return Outcome::reserved;
  const detail::CompactEntry entry = detail::entry_of(view, qry_mix(key));
  if (entry.value == nullptr) return Outcome::absent;
  const uint32_t value = detail::CompactWords::exchange(entry.value, kQryCompactNoValue);
  if (value == kQryCompactNoValue) return Outcome::absent;
  if (old != nullptr) *old = value;
  return Outcome::erased;
}

}  // namespace quarry::hashgrid
