// compact_view.hpp - the second slot layout: six entries to a 32-byte sector in place of four, for large tables that are read far more than
// they are edited. Same operations, same outcomes, same concurrency contract as view.hpp, whose text this page only adds to.
//
//   sector, 32 bytes
//   0  tags 0..2, 10 bits each, bit 30 unused, bit 31: "went on"      16  value 2
//   4  tags 3..5, 10 bits each                                        20  value 3
//   8  value 0                                                        24  value 4
//   12 value 1                                                        28  value 5
//
// The mixer is a bijection and a sector is a range of mixed keys, so the sector and a small remainder *are* the key: no false positives, no
// key stored. A key's home sector is the integer part of mixed * sectors / 2^32; its remainder, below `remainders` = ceil(2^32 / sectors),
// numbers the mixed keys of that sector. A key whose home is full goes to the sector after it (inside its page), at most `reach` - 1
// sectors on; its tag is remainder + remainders * distance, which 10 bits must hold. So the layout needs at least kCompactLeastPages pages
// (384 MiB); smaller tables fit the caches better and take the pairs layout. What finds `reach` sectors full goes to the stash, a table of
// pairs in the last 256th of the memory.
//
// WHY IT IS RIGHT. A tag, once claimed (by a compare-and-swap on the word of all six), never goes away before the table is rebuilt; an
// erase takes only the value. So sectors only fill: two inserts of one key meet in the same first sector with room, and there see each
// other's claim. Tag and value are two words: the value is published by a compare-and-swap from "none", which decides who inserted; a find
// that sees a tag without a value says absent. Who passes a full sector has set its "went on" bit first, so a sector without it ends a
// find. Bounded: a lost claim uses up one of the sector's six tags.
//
// Price: the slot of an erased key stays reserved for that key. A world under much editing takes the pairs layout.
#pragma once

#include "hashgrid/view.hpp"

namespace quarry::hashgrid {

constexpr uint32_t kCompactSlots = 6;
constexpr uint32_t kCompactNoTag = 1023;
constexpr uint32_t kCompactWentOn = 0x80000000u;
constexpr uint32_t kCompactEmptyTags = 0x3FFFFFFFu;  // three times "no tag"
constexpr uint32_t kCompactNoValue = kQryReservedValue;
constexpr uint32_t kCompactReachAtMost = 6;  // with the stash's two buckets no find reads more than eight sectors
constexpr uint32_t kCompactLeastPages = 12386;

// A trivially copyable reference. Owns nothing.
struct CompactView {
  uint32_t* words = nullptr;  // page_count pages of kQryPageBytes, 32-byte aligned
  uint32_t page_count = 0;    // without the stash's
  uint32_t remainders = 0;
  uint32_t reach = 0;
  GridView stash;
};

// How a table of `pages` pages in all lies in `memory`. pages >= kCompactLeastPages.
inline CompactView compact_view(void* memory, uint32_t pages, uint32_t phase) {
  CompactView view;
  const uint32_t stash_pages = pages / 256;
  view.words = static_cast<uint32_t*>(memory);
  view.page_count = pages - stash_pages;
  const uint64_t sectors = uint64_t{view.page_count} * kQrySectorsPerPage;
  view.remainders = uint32_t(((uint64_t{1} << 32) + sectors - 1) / sectors);
  view.reach = kCompactNoTag / view.remainders;
  if (view.reach > kCompactReachAtMost) view.reach = kCompactReachAtMost;
  view.stash = {static_cast<uint64_t*>(memory) + size_t{view.page_count} * kQryPageWords, stash_pages, phase};
  return view;
}

QRY_HD inline Found find(const CompactView& view, uint32_t key);
QRY_HD inline Outcome insert(const CompactView& view, uint32_t key, uint32_t value);
QRY_HD inline Outcome erase(const CompactView& view, uint32_t key, uint32_t* old = nullptr);

namespace detail {

struct CompactPlace {
  uint32_t home;  // sector in the table
  uint32_t tag;   // of the home sector; each sector on adds `remainders`
};
QRY_HD inline CompactPlace compact_place(uint32_t mixed, const CompactView& view) {
  const uint64_t product = uint64_t{mixed} * (view.page_count * kQrySectorsPerPage);
  return {uint32_t(product >> 32), uint32_t((uint64_t{uint32_t(product)} * view.remainders) >> 32)};
}
QRY_HD inline uint32_t compact_sector(uint32_t home, uint32_t distance) {
  return (home & ~(kQrySectorsPerPage - 1)) | ((home + distance) & (kQrySectorsPerPage - 1));
}

// The stash's name for a key. Keys that crowd into one sector have mixes in a row, which would be one bucket of the stash too: mixed once
// more they spread. The key whose mix is reserved takes the mix that the reserved key leaves free.
QRY_HD inline uint32_t stash_key(uint32_t key) {
  const uint32_t mixed = qry_mix(key);
  return mixed == kQryReservedKey ? qry_mix(kQryReservedKey) : mixed;
}

// Bits 9, 19, 29: which of a half's three tags equal `tag`. Exact, by word-parallel arithmetic: a field is zero if neither its low nine
// bits, pushed up by adding all ones, nor its tenth bit reach bit nine.
QRY_HD inline uint32_t compact_matches(uint32_t half, uint32_t tag) {
  constexpr uint32_t kEach = 1u | 1u << 10 | 1u << 20, kLow = 0x1FFu * kEach, kHigh = 0x200u * kEach;
  const uint32_t x = (half ^ tag * kEach) & kCompactEmptyTags;
  return ~(((x & kLow) + kLow) | x) & kHigh;
}
QRY_HD inline uint32_t lowest_bit(uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return uint32_t(__ffs(int(bits))) - 1;
#else
  return uint32_t(__builtin_ctz(bits));
#endif
}
// Slot 0..5 of the first match, or kCompactSlots.
QRY_HD inline uint32_t compact_slot(uint64_t tags, uint32_t tag) {
  const uint32_t first = compact_matches(low(tags), tag), second = compact_matches(high(tags), tag);
  if (first != 0) return lowest_bit(first) / 10;
  return second != 0 ? 3 + lowest_bit(second) / 10 : kCompactSlots;
}
// The word after a claim of an empty slot.
QRY_HD inline uint64_t compact_claimed(uint64_t tags, uint32_t slot, uint32_t tag) {
  return tags ^ (uint64_t{tag ^ kCompactNoTag} << (slot % 3 * 10 + slot / 3 * 32));
}

// Accesses at device scope, or acquire-release between host threads.
struct CompactWords {
#if defined(__CUDA_ARCH__)
  template <class T>
  using Ref = cuda::atomic_ref<T, cuda::thread_scope_device>;
  static constexpr auto kLoad = cuda::memory_order_relaxed, kSwap = cuda::memory_order_acq_rel;
#else
  template <class T>
  using Ref = std::atomic_ref<T>;
  static constexpr auto kLoad = std::memory_order_acquire, kSwap = std::memory_order_acq_rel;
#endif
  QRY_HD static uint64_t* tags(const CompactView& view, uint32_t sector) {
    return reinterpret_cast<uint64_t*>(view.words + size_t{sector} * 8);
  }
  QRY_HD static uint32_t* value(const CompactView& view, uint32_t sector, uint32_t slot) {
    return view.words + size_t{sector} * 8 + 2 + slot;
  }
};

}  // namespace detail

QRY_HD inline Found find(const CompactView& view, uint32_t key) {
  using Words = detail::CompactWords;
  if (key == kQryReservedKey) return {kQryReservedValue, 0, false};
  const detail::CompactPlace place = detail::compact_place(qry_mix(key), view);
  for (uint32_t distance = 0; distance < view.reach; ++distance) {
    const uint32_t sector = detail::compact_sector(place.home, distance);
    const uint64_t tags = Words::Ref<uint64_t>(*Words::tags(view, sector)).load(Words::kLoad);
    const uint32_t slot = detail::compact_slot(tags, place.tag + distance * view.remainders);
    if (slot < kCompactSlots) {
      const uint32_t value = Words::Ref<uint32_t>(*Words::value(view, sector, slot)).load(Words::kLoad);
      return {value, distance + 1, value != kCompactNoValue};
    }
    if ((tags & kCompactWentOn) == 0) return {kQryReservedValue, distance + 1, false};
  }
  Found found = find(view.stash, detail::stash_key(key));
  found.sectors += view.reach;
  return found;
}

QRY_HD inline Outcome insert(const CompactView& view, uint32_t key, uint32_t value) {
  using Words = detail::CompactWords;
  if (key == kQryReservedKey || value == kQryReservedValue) return Outcome::reserved;
  const detail::CompactPlace place = detail::compact_place(qry_mix(key), view);
  for (uint32_t distance = 0; distance < view.reach; ++distance) {
    const uint32_t sector = detail::compact_sector(place.home, distance), tag = place.tag + distance * view.remainders;
    const Words::Ref<uint64_t> word(*Words::tags(view, sector));
    uint64_t tags = word.load(Words::kLoad);
    for (;;) {  // at most seven times: each lost claim is a tag more
      uint32_t slot = detail::compact_slot(tags, tag);
      if (slot == kCompactSlots) {
        slot = detail::compact_slot(tags, kCompactNoTag);
        if (slot == kCompactSlots) {
          if ((tags & kCompactWentOn) == 0) word.fetch_or(kCompactWentOn, Words::kSwap);
          break;
        }
        if (!word.compare_exchange_strong(tags, detail::compact_claimed(tags, slot, tag), Words::kSwap, Words::kLoad)) continue;
      }
      uint32_t none = kCompactNoValue;
      const Words::Ref<uint32_t> at(*Words::value(view, sector, slot));
      return at.compare_exchange_strong(none, value, Words::kSwap, Words::kLoad) ? Outcome::inserted : Outcome::present;
    }
  }
  return insert(view.stash, detail::stash_key(key), value);
}

QRY_HD inline Outcome erase(const CompactView& view, uint32_t key, uint32_t* old) {
  using Words = detail::CompactWords;
  if (key == kQryReservedKey) return Outcome::reserved;
  const detail::CompactPlace place = detail::compact_place(qry_mix(key), view);
  for (uint32_t distance = 0; distance < view.reach; ++distance) {
    const uint32_t sector = detail::compact_sector(place.home, distance);
    const uint64_t tags = Words::Ref<uint64_t>(*Words::tags(view, sector)).load(Words::kLoad);
    const uint32_t slot = detail::compact_slot(tags, place.tag + distance * view.remainders);
    if (slot < kCompactSlots) {
      const uint32_t value = Words::Ref<uint32_t>(*Words::value(view, sector, slot)).exchange(kCompactNoValue, Words::kSwap);
      if (value == kCompactNoValue) return Outcome::absent;
      if (old != nullptr) *old = value;
      return Outcome::erased;
    }
    if ((tags & kCompactWentOn) == 0) return Outcome::absent;
  }
  return erase(view.stash, detail::stash_key(key), old);
}

}  // namespace quarry::hashgrid
