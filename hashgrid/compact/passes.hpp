// SPDX-License-Identifier: Apache-2.0
// passes.hpp - facts about a sector of the compact layout for whole-table operations with exclusive use: its entries,
// their keys and depths. One text for host threads (compact/host.cpp) and CUDA blocks (compact/kernels.cuh).
#pragma once

#include "hashgrid/compact/view.hpp"
#include "hashgrid/table/stats.hpp"

namespace quarry::hashgrid::detail {

constexpr uint32_t kSectorWords = 8;
constexpr uint32_t kCompactSlotsPerPage = kQryPageBytes / kQrySlotBytes;  // a load factor is entries over this

inline void finish_compact_stats(Stats& stats, uint32_t page_count) {
  finish_stats(stats, page_count, kCompactSlotsPerPage);
}

// The home of an entry, and its distance from there.
struct CompactHome {
  QryCompactPlace place;
  uint32_t distance;
};

// From the place of an entry back to its key, by multiplication; one object for each part. Unused for a part of no
// pages.
class CompactInverse {
 public:
  QRY_HD explicit CompactInverse(const QryCompactPart& part) {
    const uint64_t sectors = uint64_t{part.pages} * kQrySectorsPerPage;
    if (sectors == 0) return;
    mixes_per_sector_ = ~uint64_t{0} / sectors;
    mixes_per_remainder_ = ~uint64_t{0} / (sectors * part.remainders);
    sectors_per_tag_ = uint32_t(((uint64_t{1} << 32) + part.remainders - 1) / part.remainders);
  }
  // An entry's home and distance, from its sector of the part and its tag.
  QRY_HD CompactHome home_of_entry(uint32_t sector, uint32_t tag, const QryCompactPart& part) const {
    uint32_t distance = uint32_t((uint64_t{tag} * sectors_per_tag_) >> 32);  // sometimes rounded up
    if (distance * part.remainders > tag) --distance;
    return {{qry_compact_sector(sector, 0u - distance), tag - distance * part.remainders}, distance};
  }
  // The mixed key (in the stash: the key's mix, mixed once more) at a place: the first whose product with the number of
  // sectors is not below that of the place. The quotients are slightly too small, in total by less than one.
  QRY_HD uint32_t mixed(QryCompactPlace wanted, const QryCompactPart& part) const {
    const uint32_t guess =
        uint32_t((wanted.home * mixes_per_sector_ + wanted.tag * mixes_per_remainder_ + 0xFFFFFFFFu) >> 32);
    const QryCompactPlace at = qry_compact_place(guess, part);
    return at.home == wanted.home && at.tag == wanted.tag ? guess : guess + 1;
  }

 private:
  uint64_t mixes_per_sector_ = 0, mixes_per_remainder_ = 0;  // in units of 2^-32, rounded down
  uint32_t sectors_per_tag_ = 0;                             // the same, rounded up
};

// The number of its sectors that a key with this remainder may be in.
QRY_HD inline uint32_t compact_distances(uint32_t remainder, const QryCompactPart& part) {
  const uint32_t by_tag = (qry_compact_no_tag(part.fields) - 1u - remainder) / part.remainders + 1u;
  return by_tag < part.reach ? by_tag : part.reach;
}

// The key of an entry in the table (`stashed`: in the stash) and the sectors that a find of it reads.
struct CompactKey {
  uint32_t mixed;
  uint32_t depth;
};
QRY_HD inline CompactKey compact_key(const QryCompact& layout, bool stashed, const CompactInverse& inverse,
                                     uint32_t sector, uint32_t tag) {
  const QryCompactPart& part = stashed ? layout.stash : layout.table;
  const CompactHome home = inverse.home_of_entry(sector, tag, part);
  const uint32_t mixed = inverse.mixed(home.place, part);
  if (!stashed) return {mixed, home.distance + 1};
  const uint32_t first = qry_unmix(mixed);
  return {first, compact_distances(qry_compact_place(first, layout.table).tag, layout.table) + home.distance + 1};
}

// use(slot, tag, value) for every tag of a sector, those of erased keys included (their value is kQryCompactNoValue).
template <class Format, class Use>
QRY_HD inline void for_entries(const uint32_t* sector, const Use& use) {
  for (uint32_t slot = 0; slot < Format::kEntries; ++slot) {
    const uint32_t tag = Format::tag_at(sector[slot / Format::kFields], slot % Format::kFields);
    if (tag != Format::kNoTag) use(slot, tag, sector[Format::kTagWords + slot]);
  }
}

// The number of entries of a sector, which are at its front.
template <class Format>
QRY_HD inline uint32_t entries_in(const uint32_t* sector) {
  uint32_t tags[Format::kTagWords];
  for (uint32_t w = 0; w < Format::kTagWords; ++w) tags[w] = sector[w];
  return Format::slot_with(tags, Format::kNoTag);
}
template <class Format>
QRY_HD inline void clear_sector(uint32_t* sector) {
  for (uint32_t w = 0; w < kSectorWords; ++w)
    sector[w] = w < Format::kTagWords ? kQryCompactEmptyTags : kQryCompactNoValue;
}
template <class Format>
QRY_HD inline void put_entry(uint32_t* sector, uint32_t slot, uint32_t tag, uint32_t value) {
  sector[slot / Format::kFields] ^= Format::change(slot % Format::kFields, tag);
  sector[Format::kTagWords + slot] = value;
}
// Packs live entries to the front of a sector: the last fills the first hole. `words`: the sector's content, in
// registers if possible; its tags are updated too. Returns the number of entries. The overflow bit stays as it is.
template <class Format>
QRY_HD inline uint32_t close_holes(uint32_t* sector, uint32_t (&words)[kSectorWords]) {
  uint32_t live = 0;
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (uint32_t i = 0; i < Format::kEntries; ++i)
    live |= uint32_t{words[Format::kTagWords + i] != kQryCompactNoValue} << i;
  const uint32_t count = bits_in(live);
  uint32_t before[Format::kTagWords];
  for (uint32_t w = 0; w < Format::kTagWords; ++w) before[w] = words[w];
  for (uint32_t holes = ~live & ((1u << count) - 1u); holes != 0; holes &= holes - 1) {
    const uint32_t hole = lowest_bit(holes), last = highest_bit(live);
    live ^= 1u << last;
    sector[Format::kTagWords + hole] = sector[Format::kTagWords + last];
    sector[Format::kTagWords + last] = kQryCompactNoValue;
    uint32_t tag = 0;
    for (uint32_t w = 0; w < Format::kTagWords; ++w)
      if (w == last / Format::kFields) tag = Format::tag_at(words[w], last % Format::kFields);
    for (uint32_t w = 0; w < Format::kTagWords; ++w)
      if (w == hole / Format::kFields)
        words[w] ^= (Format::tag_at(words[w], hole % Format::kFields) ^ tag) << hole % Format::kFields * Format::kBits;
  }
  for (uint32_t w = 0; w < Format::kTagWords; ++w) {
    const uint32_t stay = count < w * Format::kFields ? 0 : count - w * Format::kFields;
    const uint32_t kept = stay < Format::kFields ? stay : Format::kFields;
    words[w] |= kQryCompactEmptyTags & ~((1u << kept * Format::kBits) - 1u);
    if (words[w] != before[w]) sector[w] = words[w];
  }
  return count;
}

}  // namespace quarry::hashgrid::detail
