// SPDX-License-Identifier: Apache-2.0
// view_impl.hpp - the bodies of view.hpp. Include view.hpp, never this file.
//
// The functions of `detail` take their memory accesses as a policy. So the same text serves the shared table (atomics)
// and pages that one thread or block owns (plain words, in the table or in a CUDA block's shared memory). Pages share
// the stash in any case.
//
// WHY IT IS RIGHT. "Sequence" = the 32 slots of a key in probe order: home bucket, second bucket, six sectors of the
// stash.
//  (M) Within a phase a slot only goes from claimable to holding a key to freed in this phase (not claimable). It
//      becomes claimable again only in the next phase, which begins after every earlier operation has ended.
//  (U) A key is in at most one slot. An insert claims, by a CAS from the very word that it read, the first claimable
//      slot c of the sequence. By (M) every slot before c is and stays unclaimable, so no other insert of the key can
//      use it. And c was claimable until the CAS, so no other insert of the key passed c in this phase. The insert has
//      searched behind c for keys of earlier phases. If two inserts choose the same c, one CAS fails, and its thread
//      searches again from the start.
//  (I) A bucket whose state bits are not zero has no never-used slot: a key goes on only past unclaimable slots, and
//      sweeps and builds preserve this. Hence a never-used slot in the home bucket proves that no key went on, without
//      reading the bits. The same holds for a stash sector that a key went past: a never-used slot in it ends a search.
//  (B) Every thread that goes on past a bucket has seen its bit set or has set it before it searches further. So a
//      thread that ever saw a key behind the bucket sees the bit from then on (coherence of one location), and a bit is
//      set before the slot is claimed.
//  find/erase "absent": if the key was present during the whole call, it was in one slot all the time (moving it is
//      erase + insert, with an instant of absence inside the call), that slot was reachable by (B) and (I), and its
//      word was read. So there was an instant of absence: the call takes effect there.
//  insert "present", find "hit": at the load of that slot. insert "inserted", erase "erased", assign: at the successful
//      CAS. An assign that lost its CAS to another assign takes effect just before it: no thread can have seen the
//      difference. An erase that lost its CAS to another erase takes effect just after it, as "absent".
//  Bounded: a lost CAS on an empty slot, or on a key that was erased, uses up one of the sequence's 32 slots for the
//      phase.
//
// Memory order. Host: loads acquire, CAS acquire-release. So a thread that finds a key sees what its inserter wrote
// before. Device: accesses are relaxed at device scope, performed at the L2 cache (the point of coherence), and each is
// issued only after the results that it depends on have arrived. A claim behind a bucket whose bit was just set
// releases. Data that a kernel publishes *through* the grid to readers in the same launch needs the writer's
// __threadfence() before insert and the reader's after find. Launches are ordered already.
#pragma once

#include "hashgrid/table/words.hpp"

namespace quarry::hashgrid {
namespace detail {

constexpr uint64_t kNeverUsed = ~uint64_t{0};
constexpr uint32_t kNoSlot = 0xFFFFFFFFu;

QRY_HD constexpr uint64_t pair_word(uint32_t key, uint32_t value) { return (uint64_t{value} << 32) | key; }
QRY_HD constexpr uint64_t freed_word(uint32_t phase) { return (uint64_t{phase} << 32) | kQryReservedKey; }
QRY_HD constexpr bool is_empty(uint64_t word) { return low(word) == kQryReservedKey; }
QRY_HD constexpr bool is_claimable(uint64_t word, uint32_t phase) { return is_empty(word) && high(word) != phase; }

struct Bucket {
  uint64_t slot[kQrySlotsPerSector];
};

// A page that one thread or block owns.
struct PrivateWords {
  QRY_HD static uint64_t load(const uint64_t* word) { return *word; }
  QRY_HD static Bucket load_bucket(const uint64_t* first) { return {{first[0], first[1], first[2], first[3]}}; }
  QRY_HD static bool exchange(uint64_t* word, uint64_t& expected, uint64_t desired, bool) {
    if (*word != expected) {
      expected = *word;
      return false;
    }
    *word = desired;
    return true;
  }
  QRY_HD static void set_bits(uint64_t* word, uint64_t bits) { *word |= bits; }
};

// The table itself, shared by any number of threads.
struct SharedWords {
  using Ref = AtomicRef<uint64_t>;
#if defined(__CUDA_ARCH__)
  __device__ static uint64_t load(const uint64_t* word) {
    return Ref(*const_cast<uint64_t*>(word)).load(cuda::memory_order_relaxed);
  }
  // Two 16-byte loads; each of the four words is read atomically.
  __device__ static Bucket load_bucket(const uint64_t* first) {
    Bucket b;
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(b.slot[0]), "=l"(b.slot[1])
                 : "l"(__cvta_generic_to_global(first))
                 : "memory");
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(b.slot[2]), "=l"(b.slot[3])
                 : "l"(__cvta_generic_to_global(first + 2))
                 : "memory");
    return b;
  }
  __device__ static bool exchange(uint64_t* word, uint64_t& expected, uint64_t desired, bool after_bit) {
    const Ref ref(*word);
    return after_bit
               ? ref.compare_exchange_strong(expected, desired, cuda::memory_order_release, cuda::memory_order_relaxed)
               : ref.compare_exchange_strong(expected, desired, cuda::memory_order_relaxed, cuda::memory_order_relaxed);
  }
  __device__ static void set_bits(uint64_t* word, uint64_t bits) {
    Ref(*word).fetch_or(bits, cuda::memory_order_relaxed);
  }
#else
  static uint64_t load(const uint64_t* word) {
    return Ref(*const_cast<uint64_t*>(word)).load(std::memory_order_acquire);
  }
  static Bucket load_bucket(const uint64_t* first) {
    return {{load(first), load(first + 1), load(first + 2), load(first + 3)}};
  }
  static bool exchange(uint64_t* word, uint64_t& expected, uint64_t desired, bool) {
    return Ref(*word).compare_exchange_strong(expected, desired, std::memory_order_acq_rel, std::memory_order_acquire);
  }
  static void set_bits(uint64_t* word, uint64_t bits) { Ref(*word).fetch_or(bits, std::memory_order_acq_rel); }
#endif
};

// A table that nobody changes while the kernel runs: loads may be served by L1, so that a sector's second half is not
// asked of the L2 cache again (ld.global.nc).
#if defined(__CUDA_ARCH__)
struct ReadOnlyWords {
  __device__ static uint64_t load(const uint64_t* word) {
    return __ldg(reinterpret_cast<const unsigned long long*>(word));
  }
  __device__ static Bucket load_bucket(const uint64_t* first) {
    const auto* const halves = reinterpret_cast<const ulonglong2*>(first);
    const ulonglong2 a = __ldg(halves), b = __ldg(halves + 1);
    return {{a.x, a.y, b.x, b.y}};
  }
};
#else
using ReadOnlyWords = SharedWords;
#endif

template <class Words>
QRY_HD inline uint32_t bucket_state(const uint64_t* page, uint32_t sector) {
  return uint32_t(Words::load(page + qry_state_word(sector)) >> qry_state_shift(sector)) & 3u;
}

// (B) of the head comment. Returns whether this call set a bit.
template <class Words>
QRY_HD inline bool ensure_state(uint64_t* page, uint32_t sector, uint32_t bits) {
  if ((bucket_state<Words>(page, sector) & bits) == bits) return false;
  Words::set_bits(page + qry_state_word(sector), uint64_t{bits} << qry_state_shift(sector));
  return true;
}

// Word index of the n-th slot of a bucket, counted from the key's first slot.
QRY_HD inline uint32_t bucket_word(uint32_t sector, const QryProbeSequence& probes, uint32_t n) {
  return sector * kQrySlotsPerSector + ((probes.home_slot + n) & 3u);
}
QRY_HD inline uint64_t* page_of(const GridView& view, const QryProbeSequence& probes) {
  return view.words + size_t{probes.page} * kQryPageWords;
}

// The first slot of the n-th stash sector of a key.
QRY_HD inline uint64_t* stash_words(const GridView& view, const QryProbeSequence& probes, const QryStashGroup& group,
                                    uint32_t n) {
  return view.words + size_t{qry_stash_sector(probes, group, n)} * kQrySlotsPerSector;
}

struct Located {
  uint64_t* slot;    // null if absent
  uint32_t sectors;  // sectors of slots read
  uint64_t word;     // what the slot held
};

template <class Words>
QRY_HD inline Located locate_in_stash(const GridView& view, const QryProbeSequence& probes, uint32_t key) {
  const QryStashGroup group = qry_stash_group(probes.page, view.page_count);
  for (uint32_t n = 0; n < kQryStashTries; ++n) {
    uint64_t* const first = stash_words(view, probes, group, n);
    const Bucket sector = Words::load_bucket(first);
    bool never = false;
    for (uint32_t i = 0; i < kQrySlotsPerSector; ++i) {
      if (low(sector.slot[i]) == key) return {first + i, 3 + n, sector.slot[i]};
      never |= sector.slot[i] == kNeverUsed;
    }
    if (never) return {nullptr, 3 + n, 0};  // (I)
  }
  return {nullptr, 2 + kQryStashTries, 0};
}

// Searches the sequence after the home bucket, which has neither the key nor a never-used slot.
// `page` is the key's page, in the table or a copy.
template <class Words, class StashWords = Words>
QRY_HD inline Located locate_beyond_home(uint64_t* page, const GridView& view, const QryProbeSequence& probes,
                                         uint32_t key) {
  const uint32_t state = bucket_state<Words>(page, probes.home_sector);
  if ((state & kQryBucketSpilled) == 0) return {nullptr, 1, 0};
  uint64_t* const first = page + probes.second_sector * kQrySlotsPerSector;
  const Bucket next = Words::load_bucket(first);
  for (uint32_t i = 0; i < kQrySlotsPerSector; ++i)
    if (low(next.slot[i]) == key) return {first + i, 2, next.slot[i]};
  if ((state & kQryBucketToStash) == 0) return {nullptr, 2, 0};
  return locate_in_stash<StashWords>(view, probes, key);
}

template <class Words, class StashWords = Words>
QRY_HD inline Located locate(uint64_t* page, const GridView& view, const QryProbeSequence& probes, uint32_t key) {
  uint64_t* const first = page + probes.home_sector * kQrySlotsPerSector;
  const Bucket home = Words::load_bucket(first);
  bool never = false;
  for (uint32_t i = 0; i < kQrySlotsPerSector; ++i) {
    if (low(home.slot[i]) == key) return {first + i, 1, home.slot[i]};
    never |= home.slot[i] == kNeverUsed;
  }
  if (never) return {nullptr, 1, 0};  // (I)
  return locate_beyond_home<Words, StashWords>(page, view, probes, key);
}
template <class Words>
QRY_HD inline Located locate(const GridView& view, const QryProbeSequence& probes, uint32_t key) {
  return locate<Words>(page_of(view, probes), view, probes, key);
}

enum class IfPresent : uint8_t { keep, replace };

// What a sector has for a key.
struct SectorLook {
  uint32_t at = kNoSlot;  // the key's slot
  uint64_t held = 0;      // its word
  // Bits of slots: never used; of no key; of no key, and claimable in this phase.
  uint32_t never = 0, empty = 0, claimable = 0;
  // The first claimable slot in the key's order; one must be.
  QRY_HD uint32_t first_claimable(uint32_t home_slot) const {
    return (home_slot + lowest_bit((claimable | claimable << kQrySlotsPerSector) >> home_slot)) & 3u;
  }
};
QRY_HD inline SectorLook look_at(const Bucket& bucket, uint32_t key, uint32_t phase) {
  SectorLook look;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (uint32_t slot = 0; slot < kQrySlotsPerSector; ++slot) {
    const uint64_t word = bucket.slot[slot];
    if (low(word) == key) look.at = slot, look.held = word;
    look.never |= uint32_t{word == kNeverUsed} << slot;
    look.empty |= uint32_t{is_empty(word)} << slot;
    look.claimable |= uint32_t{is_claimable(word, phase)} << slot;
  }
  return look;
}

// The key was inserted; the bucket has it (and, with IfPresent::replace, its new value); the bucket is full of other
// keys; put() must decide.
enum class BucketOutcome : uint8_t { inserted, present, full, undecided };

// One bucket's part of put(): what almost all keys need, in few registers. `value`: as for put(). `after_bit`: a state
// bit was just set for this key.
template <class Words, IfPresent kIfPresent>
QRY_HD inline BucketOutcome put_into(uint64_t* first, uint32_t home_slot, uint32_t key, uint32_t& value, uint32_t phase,
                                     bool after_bit) {
  SectorLook look = look_at(Words::load_bucket(first), key, phase);
  if (look.at != kNoSlot) {
    if (kIfPresent == IfPresent::keep) {
      value = high(look.held);
      return BucketOutcome::present;
    }
    // Overtaken by another assign, it took effect just before that; by an erase, the key has to be looked for again.
    return Words::exchange(first + look.at, look.held, pair_word(key, value), false) || low(look.held) == key
               ? BucketOutcome::present
               : BucketOutcome::undecided;
  }
  if (look.empty == 0) return BucketOutcome::full;
  if (look.never == 0) return BucketOutcome::undecided;
  // If the first claimable slot is a freed one, put() claims it: its word is another.
  const uint32_t slot = look.first_claimable(home_slot);
  if ((look.never >> slot & 1u) == 0) return BucketOutcome::undecided;
  uint64_t expected = kNeverUsed;
  return Words::exchange(first + slot, expected, pair_word(key, value), after_bit) ? BucketOutcome::inserted
                                                                                   : BucketOutcome::undecided;
}

// insert and assign. On `present`, `value` becomes what the table holds.
//
// A loop over the sectors, not unrolled, and of a sector's words only the key's is kept: so a kernel of inserts has
// 40 registers instead of 70, with which half of a multiprocessor's threads have no place.
template <class Words, IfPresent kIfPresent, class StashWords = Words>
QRY_HD inline Outcome put(const GridView& view, const QryProbeSequence& probes, uint32_t key, uint32_t& value) {
  uint64_t* const page = page_of(view, probes);
  for (;;) {  // one iteration for each lost CAS: see "bounded" in the head comment
    uint64_t *claim = nullptr, *hit = nullptr;
    uint64_t hit_word = 0;
    bool set_bit = false, in_stash = false, never_used = false;
    uint32_t state = 0;
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
    for (uint32_t n = 0; n < 2 + kQryStashTries; ++n) {
      uint64_t* const first = n == 0 ? page + probes.home_sector * kQrySlotsPerSector
                              : n == 1
                                  ? page + probes.second_sector * kQrySlotsPerSector
                                  : stash_words(view, probes, qry_stash_group(probes.page, view.page_count), n - 2);
      const SectorLook look =
          look_at(n < 2 ? Words::load_bucket(first) : StashWords::load_bucket(first), key, view.phase);
      if (look.at != kNoSlot) {
        hit = first + look.at;
        hit_word = look.held;
        break;
      }
      if (claim == nullptr && look.claimable != 0) {
        const uint32_t slot = look.first_claimable(probes.home_slot);
        claim = first + slot;
        never_used = (look.never >> slot & 1u) != 0;
        in_stash = n >= 2;
      }
      if (n == 1) {
        if (claim != nullptr && (state & kQryBucketToStash) == 0) break;
        if (claim == nullptr)
          set_bit |= ensure_state<Words>(page, probes.home_sector, kQryBucketSpilled | kQryBucketToStash);
        continue;
      }
      if (look.never != 0) break;
      if (n == 0) {
        if (claim == nullptr) set_bit = ensure_state<Words>(page, probes.home_sector, kQryBucketSpilled);
        state = bucket_state<Words>(page, probes.home_sector);
        if ((state & kQryBucketSpilled) == 0) break;
      }
    }

    if (hit != nullptr) {
      if (kIfPresent == IfPresent::keep) {
        value = high(hit_word);
        return Outcome::present;
      }
      if (StashWords::exchange(hit, hit_word, pair_word(key, value), false)) return Outcome::assigned;
      if (low(hit_word) == key) return Outcome::assigned;  // overtaken by another assign: took effect just before it
      continue;                                            // erased meanwhile
    }
    if (claim == nullptr) return Outcome::full;
    // A freed slot's word is read again: if it is claimable no more, the claim is lost.
    uint64_t claim_word = kNeverUsed;
    if (!never_used) {
      claim_word = in_stash ? StashWords::load(claim) : Words::load(claim);
      if (!is_claimable(claim_word, view.phase)) continue;
    }
    const bool claimed = in_stash ? StashWords::exchange(claim, claim_word, pair_word(key, value), set_bit)
                                  : Words::exchange(claim, claim_word, pair_word(key, value), set_bit);
    if (claimed) return Outcome::inserted;
  }
}

struct Put {
  Outcome outcome;
  uint32_t value;  // what the table holds on `inserted` and `present`
};

#if defined(__CUDACC__)
// put() as a function of its own: where it is inlined, a caller's kernel has its registers too. Arguments are passed in
// registers, so nothing of the caller's goes to memory.
template <IfPresent kIfPresent>
__device__ __noinline__ Put put_apart(uint64_t* words, uint32_t page_count, uint32_t phase, uint32_t key,
                                      uint32_t value) {
  const GridView view{words, page_count, phase, kQryPlain};  // the key is a stored one
  const Outcome outcome = put<SharedWords, kIfPresent>(view, qry_probe_sequence(key, page_count), key, value);
  return {outcome, value};
}
#endif

// insert and assign of a stored key.
template <IfPresent kIfPresent>
QRY_HD inline Put put_one(const GridView& view, uint32_t key, uint32_t value) {
  const QryProbeSequence probes = qry_probe_sequence(key, view.page_count);
#if defined(__CUDA_ARCH__)
  switch (put_into<SharedWords, kIfPresent>(page_of(view, probes) + probes.home_sector * kQrySlotsPerSector,
                                            probes.home_slot, key, value, view.phase, false)) {
    case BucketOutcome::inserted: return {Outcome::inserted, value};
    case BucketOutcome::present: return {kIfPresent == IfPresent::keep ? Outcome::present : Outcome::assigned, value};
    default: return put_apart<kIfPresent>(view.words, view.page_count, view.phase, key, value);
  }
#else
  const Outcome outcome = put<SharedWords, kIfPresent>(view, probes, key, value);
  return {outcome, value};
#endif
}

template <class Words>
QRY_HD inline Outcome take(const GridView& view, const QryProbeSequence& probes, uint32_t key, uint32_t* old) {
  Located at = locate<Words>(view, probes, key);
  if (at.slot == nullptr) return Outcome::absent;
  while (!Words::exchange(at.slot, at.word, freed_word(view.phase), false))
    if (low(at.word) != key) return Outcome::absent;  // another erase was first; after an assign, try again
  if (old != nullptr) *old = high(at.word);
  return Outcome::erased;
}

struct StashClaim {
  uint64_t* slot;  // null: all sectors of the key are full
  bool was_there;  // the slot had the key already
};

// Puts a pair into the stash, for a caller with exclusive use of the table: any empty slot will do. The caller's other
// threads may do the same for other keys, or for this one. The caller sets the state bits of the home bucket.
template <class Words>
QRY_HD inline StashClaim claim_in_stash(const GridView& view, const QryProbeSequence& probes, uint64_t pair) {
  const QryStashGroup group = qry_stash_group(probes.page, view.page_count);
  for (uint32_t n = 0; n < kQryStashTries; ++n) {
    uint64_t* const first = stash_words(view, probes, group, n);
    const Bucket sector = Words::load_bucket(first);
    for (uint32_t i = 0; i < kQrySlotsPerSector; ++i) {
      for (uint64_t word = sector.slot[i]; is_empty(word) || low(word) == low(pair);) {
        if (low(word) == low(pair)) return {first + i, true};
        if (Words::exchange(first + i, word, pair, true)) return {first + i, false};
      }
    }
  }
  return {nullptr, false};
}

template <class Words>
QRY_HD inline Found find_by(const GridView& view, uint32_t key) {
  if (key == kQryReservedKey) return {kQryReservedValue, 0, false};
  const uint32_t stored = qry_stored_key(key, view.locality);
  const Located at = locate<Words>(view, qry_probe_sequence(stored, view.page_count), stored);
  if (at.slot == nullptr) return {kQryReservedValue, at.sectors, false};
  return {high(at.word), at.sectors, true};
}

}  // namespace detail

QRY_HD inline Found find(const GridView& view, uint32_t key) { return detail::find_by<detail::SharedWords>(view, key); }
QRY_HD inline Found find(const ReadOnly<GridView>& table, uint32_t key) {
  return detail::find_by<detail::ReadOnlyWords>(table.view, key);
}

QRY_HD inline Outcome insert(const GridView& view, uint32_t key, uint32_t value) {
  if (key == kQryReservedKey || value == kQryReservedValue) return Outcome::reserved;
  return detail::put_one<detail::IfPresent::keep>(view, qry_stored_key(key, view.locality), value).outcome;
}

QRY_HD inline Outcome assign(const GridView& view, uint32_t key, uint32_t value) {
  if (key == kQryReservedKey || value == kQryReservedValue) return Outcome::reserved;
  return detail::put_one<detail::IfPresent::replace>(view, qry_stored_key(key, view.locality), value).outcome;
}

QRY_HD inline Outcome find_or_insert(const GridView& view, uint32_t key, uint32_t* value) {
  if (key == kQryReservedKey || *value == kQryReservedValue) return Outcome::reserved;
  const detail::Put put = detail::put_one<detail::IfPresent::keep>(view, qry_stored_key(key, view.locality), *value);
  *value = put.value;
  return put.outcome;
}

QRY_HD inline Outcome erase(const GridView& view, uint32_t key, uint32_t* old) {
  if (key == kQryReservedKey) return Outcome::reserved;
  const uint32_t stored = qry_stored_key(key, view.locality);
  const QryProbeSequence probes = qry_probe_sequence(stored, view.page_count);
  return detail::take<detail::SharedWords>(view, probes, stored, old);
}

}  // namespace quarry::hashgrid
