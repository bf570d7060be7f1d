// SPDX-License-Identifier: Apache-2.0
// bucket_kernels.cpp - each step twice, in plain C++ and in AVX2 intrinsics, chosen once at run time by the processor's
// features.
#include "hashgrid/pairs/host/bucket_kernels.hpp"

#include <bit>

#include "hashgrid/pairs/page_passes.hpp"
#include "hashgrid/pairs/view.hpp"

// ThreadSanitizer does not know that an aligned vector load reads each of its 64-bit words atomically. Under it the
// loads are single atomics.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define QRY_HOST_AVX2 1
#include <immintrin.h>
#else
#define QRY_HOST_AVX2 0
#endif

namespace quarry::hashgrid::detail {
namespace {

// Simple enough for the compiler to vectorise, eight keys at a time.
[[gnu::always_inline]] inline bool store_of(const uint32_t* keys, size_t count, uint32_t locality, uint32_t* stored) {
  uint32_t reserved = 0;
  for (size_t i = 0; i < count; ++i) reserved |= keys[i] == kQryReservedKey ? 1u : 0u;
  if (locality == kQryPlain)
    for (size_t i = 0; i < count; ++i) stored[i] = qry_stored_key(keys[i], kQryPlain);
  else
    for (size_t i = 0; i < count; ++i) stored[i] = qry_stored_key(keys[i], kQryRows);
  return reserved != 0;
}
[[gnu::always_inline]] inline void home_buckets_of(const uint32_t* stored, size_t count, uint32_t page_count,
                                                   uint32_t* sectors) {
  for (size_t i = 0; i < count; ++i)
    sectors[i] = qry_page(stored[i], page_count) * kQrySectorsPerPage + kQryStateSectors +
                 qry_home_bucket(stored[i], page_count);
}
[[gnu::always_inline]] inline void second_buckets_of(const uint32_t* stored, size_t count, uint32_t page_count,
                                                     uint32_t* sectors) {
  for (size_t i = 0; i < count; ++i) {
    const QryProbeSequence probes = qry_probe_sequence(stored[i], page_count);
    sectors[i] = probes.page * kQrySectorsPerPage + probes.second_sector;
  }
}

[[gnu::always_inline]] inline void others_of(const uint64_t* page, uint32_t page_count, uint16_t* others,
                                             uint8_t* room) {
  for (uint32_t i = kFirstSlotWord; i < kQryOwnWords; ++i) {
    const QryProbeSequence probes = qry_probe_sequence(low(page[i]), page_count);
    const bool at_home = probes.home_sector == i / kQrySlotsPerSector;
    others[i] = uint16_t(at_home ? probes.second_sector | kAtHome : probes.home_sector);
  }
  for (uint32_t sector = kQryStateSectors; sector < kQryStashFirstSector; ++sector) {
    uint32_t empty = 0;
    for (uint32_t slot = 0; slot < kQrySlotsPerSector; ++slot)
      empty += is_empty(page[sector * kQrySlotsPerSector + slot]);
    room[sector] = uint8_t(empty);
  }
}
[[gnu::always_inline]] inline size_t list_of(const uint64_t* words, size_t count, uint32_t locality, uint32_t* keys,
                                             uint32_t* values) {
  size_t live = 0;
  for (size_t i = 0; i < count; ++i) {
    keys[live] = low(words[i]);
    values[live] = high(words[i]);
    live += !is_empty(words[i]);
  }
  if (locality == kQryPlain)
    for (size_t i = 0; i < live; ++i) keys[i] = qry_key_of_stored(keys[i], kQryPlain);
  else
    for (size_t i = 0; i < live; ++i) keys[i] = qry_key_of_stored(keys[i], kQryRows);
  return live;
}
[[gnu::always_inline]] inline size_t live_of(const uint64_t* words, size_t count) {
  size_t live = 0;
  for (size_t i = 0; i < count; ++i) live += !is_empty(words[i]);
  return live;
}

[[gnu::always_inline]] inline size_t filter_of(const uint32_t* keys, size_t count, const GridView& view,
                                               uint32_t first_page, uint32_t pages, uint32_t first_tag,
                                               uint32_t* stored, uint32_t* tags, bool* refused) {
  uint32_t all[kKeysPerBlock];
  *refused = store_of(keys, count, view.locality, all) || *refused;
  uint32_t page[kKeysPerBlock];
  for (size_t i = 0; i < count; ++i) page[i] = qry_page(all[i], view.page_count) - first_page;
  size_t own = 0;
  for (size_t i = 0; i < count; ++i) {
    stored[own] = all[i];
    tags[own] = first_tag + uint32_t(i);
    own += page[i] < pages;
  }
  return own;
}

size_t filter_plain(const uint32_t* keys, size_t count, const GridView& view, uint32_t first_page, uint32_t pages,
                    uint32_t first_tag, uint32_t* stored, uint32_t* tags, bool* refused) {
  return filter_of(keys, count, view, first_page, pages, first_tag, stored, tags, refused);
}
void others_plain(const uint64_t* page, uint32_t page_count, uint16_t* others, uint8_t* room) {
  others_of(page, page_count, others, room);
}
size_t list_plain(const uint64_t* words, size_t count, uint32_t locality, uint32_t* keys, uint32_t* values) {
  return list_of(words, count, locality, keys, values);
}
size_t live_plain(const uint64_t* words, size_t count) { return live_of(words, count); }
bool store_plain(const uint32_t* keys, size_t count, uint32_t locality, uint32_t* stored) {
  return store_of(keys, count, locality, stored);
}
void home_buckets_plain(const uint32_t* stored, size_t count, uint32_t page_count, uint32_t* sectors) {
  home_buckets_of(stored, count, page_count, sectors);
}
void second_buckets_plain(const uint32_t* stored, size_t count, uint32_t page_count, uint32_t* sectors) {
  second_buckets_of(stored, count, page_count, sectors);
}

void buckets_plain(const uint64_t* words, const uint32_t* stored, const uint32_t* sectors, size_t count, uint8_t* seen,
                   uint32_t* values) {
  for (size_t i = 0; i < count; ++i) {
    const Bucket bucket = SharedWords::load_bucket(words + size_t{sectors[i]} * kQrySlotsPerSector);
    uint32_t saw = 0, value = kQryReservedValue;
    for (uint32_t slot = 0; slot < kQrySlotsPerSector; ++slot) {
      const uint64_t word = bucket.slot[slot];
      const bool hit = low(word) == stored[i];
      value = hit ? high(word) : value;
      saw |= hit ? kFoundKey | slot : 0u;
      saw |= (is_empty(word) ? 16u << slot : 0u) | (word == kNeverUsed ? kFoundNeverUsed : 0u);
    }
    seen[i] = uint8_t(saw);
    values[i] = value;
  }
}

// By mask: the dword of a sector that holds the result: a key's value, or a never-used slot's value half, which is all
// ones.
struct Picks {
  uint8_t dword[256] = {};
  constexpr Picks() {
    for (uint32_t mask = 1; mask < 256; ++mask) {
      const uint32_t hits = mask & kMaskKeys;
      dword[mask] = uint8_t(hits != 0 ? std::countr_zero(hits) + 1 : std::countr_zero(mask));
    }
  }
};
constexpr Picks kPicks;

size_t find_plain(const uint64_t* words, const uint32_t* stored, const uint32_t* sectors, size_t count,
                  uint32_t* values, uint8_t* masks, uint8_t* open) {
  size_t opens = 0;
  for (size_t i = 0; i < count; ++i) {
    const Bucket bucket = SharedWords::load_bucket(words + size_t{sectors[i]} * kQrySlotsPerSector);
    uint32_t mask = 0;
    for (uint32_t slot = 0; slot < kQrySlotsPerSector; ++slot)
      mask |= uint32_t{low(bucket.slot[slot]) == stored[i]} << 2 * slot |
              uint32_t{high(bucket.slot[slot]) == kQryReservedValue} << (2 * slot + 1);
    values[i] = high(bucket.slot[kPicks.dword[mask] / 2]);
    masks[i] = uint8_t(mask);
    open[opens] = uint8_t(i);
    opens += mask == 0;
  }
  return opens;
}

PlacedInGroup place_plain(uint64_t* words, const uint64_t* pairs, const uint32_t* sectors, size_t count,
                          uint8_t* open) {
  PlacedInGroup placed{};
  for (size_t i = 0; i < count; ++i) {
    uint64_t* const bucket = words + size_t{sectors[i]} * kQrySlotsPerSector;
    uint32_t hit = 0, never = kQrySlotsPerSector;
    for (uint32_t slot = kQrySlotsPerSector; slot-- > 0;) {
      hit |= low(bucket[slot]) == low(pairs[i]);
      never = bucket[slot] == kNeverUsed ? slot : never;
    }
    if (hit != 0) {
      ++placed.present;
    } else if (never != kQrySlotsPerSector) {
      bucket[never] = pairs[i];
    } else {
      open[placed.open++] = uint8_t(i);
    }
  }
  return placed;
}

#if QRY_HOST_AVX2
#define QRY_AVX2 __attribute__((target("avx2")))
QRY_AVX2 bool store_avx2(const uint32_t* keys, size_t count, uint32_t locality, uint32_t* stored) {
  return store_of(keys, count, locality, stored);
}
QRY_AVX2 void home_buckets_avx2(const uint32_t* stored, size_t count, uint32_t page_count, uint32_t* sectors) {
  home_buckets_of(stored, count, page_count, sectors);
}
QRY_AVX2 void second_buckets_avx2(const uint32_t* stored, size_t count, uint32_t page_count, uint32_t* sectors) {
  second_buckets_of(stored, count, page_count, sectors);
}

// Reads a bucket once. The compiler repeats a plain load for each comparison. A key inserted between the two would then
// match neither as present nor as an empty slot: the next slot would be claimed for it a second time.
QRY_AVX2 inline __m256i load_once(const uint64_t* slots) {
  __m256i bucket;
  asm volatile("vmovdqa %1, %0" : "=x"(bucket) : "m"(*reinterpret_cast<const __m256i*>(slots)));
  return bucket;
}

QRY_AVX2 void buckets_avx2(const uint64_t* words, const uint32_t* stored, const uint32_t* sectors, size_t count,
                           uint8_t* seen, uint32_t* values) {
  const __m256i ones = _mm256_set1_epi32(-1);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t* const slots = words + size_t{sectors[i]} * kQrySlotsPerSector;
    const __m256i bucket = load_once(slots);
    // Compares each lane's low half with the key and with the empty marker, shifted up to the lane's sign bit.
    const __m256i is_key = _mm256_slli_epi64(_mm256_cmpeq_epi32(bucket, _mm256_set1_epi32(int(stored[i]))), 32);
    const __m256i is_ones = _mm256_cmpeq_epi32(bucket, ones);
    const uint32_t hit = uint32_t(_mm256_movemask_pd(_mm256_castsi256_pd(is_key)));
    const uint32_t empty = uint32_t(_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_slli_epi64(is_ones, 32))));
    const uint32_t all_ones = uint32_t(_mm256_movemask_pd(_mm256_castsi256_pd(is_ones)));  // by the high half
    const uint32_t slot = (hit >> 1) - (hit >> 3);                                         // 1 2 4 8 -> 0 1 2 3
    // Read again instead of extracted from the vector. If another thread took the slot meanwhile, this is a miss, at an
    // instant without the key.
    const uint64_t word = SharedWords::load(slots + (slot & 3u));
    const bool there = low(word) == stored[i];
    values[i] = there ? high(word) : kQryReservedValue;
    seen[i] =
        uint8_t(empty << 4 | ((empty & all_ones) != 0 ? kFoundNeverUsed : 0u) | (there ? kFoundKey | (slot & 3u) : 0u));
  }
}

// One comparison for both halves of the four slots: the key in the low ones, all ones in the high ones. A never-used
// slot is all ones; no key has that value, and no erase leaves it.
QRY_AVX2 size_t find_avx2(const uint64_t* words, const uint32_t* stored, const uint32_t* sectors, size_t count,
                          uint32_t* values, uint8_t* masks, uint8_t* open) {
  const __m256i high_ones = _mm256_set1_epi64x(int64_t(0xFFFFFFFF00000000));
  size_t opens = 0;
  for (size_t i = 0; i < count; ++i) {
    const __m256i bucket = load_once(words + size_t{sectors[i]} * kQrySlotsPerSector);
    const __m256i wanted = _mm256_or_si256(_mm256_set1_epi32(int(stored[i])), high_ones);
    const uint32_t mask = uint32_t(_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(bucket, wanted))));
    const __m256i pick = _mm256_castsi128_si256(_mm_cvtsi32_si128(kPicks.dword[mask]));
    values[i] = uint32_t(_mm256_cvtsi256_si32(_mm256_permutevar8x32_epi32(bucket, pick)));
    masks[i] = uint8_t(mask);
    open[opens] = uint8_t(i);
    opens += mask == 0;
  }
  return opens;
}

QRY_AVX2 PlacedInGroup place_avx2(uint64_t* words, const uint64_t* pairs, const uint32_t* sectors, size_t count,
                                  uint8_t* open) {
  const __m256i high_ones = _mm256_set1_epi64x(int64_t(0xFFFFFFFF00000000));
  PlacedInGroup placed{};
  uint64_t nowhere = 0;
  for (size_t i = 0; i < count; ++i) {
    uint64_t* const bucket = words + size_t{sectors[i]} * kQrySlotsPerSector;
    const __m256i wanted = _mm256_or_si256(_mm256_set1_epi32(int(low(pairs[i]))), high_ones);
    const __m256i equal = _mm256_cmpeq_epi32(_mm256_load_si256(reinterpret_cast<const __m256i*>(bucket)), wanted);
    const uint32_t mask = uint32_t(_mm256_movemask_ps(_mm256_castsi256_ps(equal)));
    const bool hit = (mask & kMaskKeys) != 0;
    // No branch: a pair that may not be stored goes to `nowhere`.
    uint64_t* const to = hit || mask == 0 ? &nowhere : bucket + kPicks.dword[mask] / 2;
    *to = pairs[i];
    open[placed.open] = uint8_t(i);
    placed.open += mask == 0;
    placed.present += hit;
  }
  return placed;
}

QRY_AVX2 size_t filter_avx2(const uint32_t* keys, size_t count, const GridView& view, uint32_t first_page,
                            uint32_t pages, uint32_t first_tag, uint32_t* stored, uint32_t* tags, bool* refused) {
  return filter_of(keys, count, view, first_page, pages, first_tag, stored, tags, refused);
}
QRY_AVX2 void others_avx2(const uint64_t* page, uint32_t page_count, uint16_t* others, uint8_t* room) {
  others_of(page, page_count, others, room);
}
QRY_AVX2 size_t list_avx2(const uint64_t* words, size_t count, uint32_t locality, uint32_t* keys, uint32_t* values) {
  return list_of(words, count, locality, keys, values);
}
QRY_AVX2 size_t live_avx2(const uint64_t* words, size_t count) { return live_of(words, count); }
#endif

}  // namespace

const BucketKernels& bucket_kernels() {
  static const BucketKernels chosen = [] {
#if QRY_HOST_AVX2
    if (__builtin_cpu_supports("avx2")) {
      return BucketKernels{.store = store_avx2,
                           .home_buckets = home_buckets_avx2,
                           .second_buckets = second_buckets_avx2,
                           .find = find_avx2,
                           .buckets = buckets_avx2,
                           .place = place_avx2,
                           .others = others_avx2,
                           .filter = filter_avx2,
                           .list = list_avx2,
                           .live = live_avx2};
    }
#endif
    return BucketKernels{.store = store_plain,
                         .home_buckets = home_buckets_plain,
                         .second_buckets = second_buckets_plain,
                         .find = find_plain,
                         .buckets = buckets_plain,
                         .place = place_plain,
                         .others = others_plain,
                         .filter = filter_plain,
                         .list = list_plain,
                         .live = live_plain};
  }();
  return chosen;
}

}  // namespace quarry::hashgrid::detail
