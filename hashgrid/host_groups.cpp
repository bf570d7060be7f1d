#include "hashgrid/host_groups.hpp"

#include "hashgrid/view.hpp"

// ThreadSanitizer does not know that an aligned vector load reads each of its 64-bit words whole: under it, atomics one by one.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define QRY_HOST_AVX2 1
#include <immintrin.h>
#else
#define QRY_HOST_AVX2 0
#endif

namespace quarry::hashgrid::detail {
namespace {

// Plain enough for the compiler to do eight keys at a time.
[[gnu::always_inline]] inline bool store_of(const uint32_t* keys, size_t count, uint32_t locality, uint32_t* stored) {
  uint32_t reserved = 0;
  for (size_t i = 0; i < count; ++i) reserved |= keys[i] == kQryReservedKey ? 1u : 0u;
  if (locality == kQryPlain)
    for (size_t i = 0; i < count; ++i) stored[i] = qry_stored_key(keys[i], kQryPlain);
  else
    for (size_t i = 0; i < count; ++i) stored[i] = qry_stored_key(keys[i], kQryRows);
  return reserved != 0;
}
[[gnu::always_inline]] inline void homes_of(const uint32_t* stored, size_t count, uint32_t page_count, uint32_t* sectors) {
  for (size_t i = 0; i < count; ++i)
    sectors[i] = qry_page(stored[i], page_count) * kQrySectorsPerPage + kQryStateSectors + qry_home_bucket(stored[i], page_count);
}
[[gnu::always_inline]] inline void nexts_of(const uint32_t* stored, size_t count, uint32_t page_count, uint32_t* sectors) {
  for (size_t i = 0; i < count; ++i) {
    const QryPlace place = qry_place_stored(stored[i], page_count);
    sectors[i] = place.page * kQrySectorsPerPage + place.next_sector;
  }
}

bool store_plain(const uint32_t* keys, size_t count, uint32_t locality, uint32_t* stored) { return store_of(keys, count, locality, stored); }
void homes_plain(const uint32_t* stored, size_t count, uint32_t page_count, uint32_t* sectors) { homes_of(stored, count, page_count, sectors); }
void nexts_plain(const uint32_t* stored, size_t count, uint32_t page_count, uint32_t* sectors) { nexts_of(stored, count, page_count, sectors); }

void buckets_plain(const uint64_t* words, const uint32_t* stored, const uint32_t* sectors, size_t count, uint8_t* seen, uint32_t* values) {
  for (size_t i = 0; i < count; ++i) {
    const Bucket bucket = SharedWords::load_bucket(words + size_t{sectors[i]} * kQrySlotsPerSector);
    uint32_t saw = 0, value = kQryReservedValue;
    for (uint32_t slot = 0; slot < kQrySlotsPerSector; ++slot) {
      const uint64_t word = bucket.slot[slot];
      const bool hit = low(word) == stored[i];
      value = hit ? high(word) : value;
      saw |= hit ? kSeenKey | slot : 0u;
      saw |= (is_empty(word) ? 16u << slot : 0u) | (word == kNeverUsed ? kSeenNever : 0u);
    }
    seen[i] = uint8_t(saw);
    values[i] = value;
  }
}

GroupSeen find_plain(const uint64_t* words, const uint32_t* stored, const uint32_t* sectors, size_t count, uint32_t* values) {
  uint8_t seen[kKeysPerGroup];
  buckets_plain(words, stored, sectors, count, seen, values);
  GroupSeen all;
  for (size_t i = 0; i < count; ++i) {
    all.keys |= uint32_t{(seen[i] & kSeenKey) != 0} << i;
    all.nevers |= uint32_t{(seen[i] & kSeenNever) != 0} << i;
  }
  return all;
}

#if QRY_HOST_AVX2
#define QRY_AVX2 __attribute__((target("avx2")))
QRY_AVX2 bool store_avx2(const uint32_t* keys, size_t count, uint32_t locality, uint32_t* stored) { return store_of(keys, count, locality, stored); }
QRY_AVX2 void homes_avx2(const uint32_t* stored, size_t count, uint32_t page_count, uint32_t* sectors) { homes_of(stored, count, page_count, sectors); }
QRY_AVX2 void nexts_avx2(const uint32_t* stored, size_t count, uint32_t page_count, uint32_t* sectors) { nexts_of(stored, count, page_count, sectors); }

// Reads a bucket once. A plain load is repeated by the compiler for each comparison, and a key that is inserted between the two would be
// neither seen nor leave its slot empty: the next slot would be claimed for it once more.
QRY_AVX2 inline __m256i load_once(const uint64_t* slots) {
  __m256i bucket;
  asm volatile("vmovdqa %1, %0" : "=x"(bucket) : "m"(*reinterpret_cast<const __m256i*>(slots)));
  return bucket;
}

QRY_AVX2 void buckets_avx2(const uint64_t* words, const uint32_t* stored, const uint32_t* sectors, size_t count, uint8_t* seen,
                                                uint32_t* values) {
  const __m256i ones = _mm256_set1_epi32(-1);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t* const slots = words + size_t{sectors[i]} * kQrySlotsPerSector;
    const __m256i bucket = load_once(slots);
    // Each lane's low half against the key and against the empty marker, moved up to where a lane's sign is.
    const __m256i is_key = _mm256_slli_epi64(_mm256_cmpeq_epi32(bucket, _mm256_set1_epi32(int(stored[i]))), 32);
    const __m256i is_ones = _mm256_cmpeq_epi32(bucket, ones);
    const uint32_t hit = uint32_t(_mm256_movemask_pd(_mm256_castsi256_pd(is_key)));
    const uint32_t empty = uint32_t(_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_slli_epi64(is_ones, 32))));
    const uint32_t all_ones = uint32_t(_mm256_movemask_pd(_mm256_castsi256_pd(is_ones)));  // by the high half
    const uint32_t slot = (hit >> 1) - (hit >> 3);                                         // 1 2 4 8 -> 0 1 2 3
    // Read again rather than taken out of the vector; who has taken the slot meanwhile makes this a miss at an instant without the key.
    const uint64_t word = SharedWords::load(slots + (slot & 3u));
    const bool there = low(word) == stored[i];
    values[i] = there ? high(word) : kQryReservedValue;
    seen[i] = uint8_t(empty << 4 | ((empty & all_ones) != 0 ? kSeenNever : 0u) | (there ? kSeenKey | (slot & 3u) : 0u));
  }
}

QRY_AVX2 GroupSeen find_avx2(const uint64_t* words, const uint32_t* stored, const uint32_t* sectors, size_t count, uint32_t* values) {
  const __m256i ones = _mm256_set1_epi32(-1);
  GroupSeen all;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t* const slots = words + size_t{sectors[i]} * kQrySlotsPerSector;
    const __m256i bucket = load_once(slots);
    const __m256i is_key = _mm256_slli_epi64(_mm256_cmpeq_epi32(bucket, _mm256_set1_epi32(int(stored[i]))), 32);
    const uint32_t hit = uint32_t(_mm256_movemask_pd(_mm256_castsi256_pd(is_key)));
    const uint32_t never = uint32_t(_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(bucket, ones))));
    const uint64_t word = SharedWords::load(slots + (((hit >> 1) - (hit >> 3)) & 3u));
    const bool there = low(word) == stored[i];
    values[i] = there ? high(word) : kQryReservedValue;
    all.keys |= uint32_t{there} << i;
    all.nevers |= uint32_t{never != 0} << i;
  }
  return all;
}
#endif

}  // namespace

const GroupLook& group_look() {
  static const GroupLook chosen = [] {
#if QRY_HOST_AVX2
    if (__builtin_cpu_supports("avx2")) return GroupLook{store_avx2, homes_avx2, nexts_avx2, find_avx2, buckets_avx2};
#endif
    return GroupLook{store_plain, homes_plain, nexts_plain, find_plain, buckets_plain};
  }();
  return chosen;
}

}  // namespace quarry::hashgrid::detail
