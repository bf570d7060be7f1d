// compact_passes.hpp - what whole-table operations need to know of a sector of the compact layout that nobody else touches: which entries
// it has, which keys they are, how deep they stand. One text for host threads (compact_host.cpp) and CUDA blocks (compact_kernels.cuh).
#pragma once

#include "hashgrid/compact_view.hpp"
#include "hashgrid/page_passes.hpp"

namespace quarry::hashgrid::detail {

constexpr uint32_t kSectorWords = 8;
constexpr uint32_t kCompactSlotsPerPage = kQryPageBytes / kQrySlotBytes;  // what a load factor is counted against

inline void finish_compact_stats(Stats& stats, uint32_t page_count) {
  finish_stats(stats, page_count);
  stats.slots = uint64_t{page_count} * kCompactSlotsPerPage;
  stats.load_factor = double(stats.live) / double(stats.slots);
}

// From a key's place in a part back to the mixed key (of the stash: the key's mix, mixed once more).
struct CompactInverse {
  double mixes_per_sector;  // 2^32 / sectors
  QRY_HD explicit CompactInverse(const QryCompactPart& part) : mixes_per_sector(double(1u << 22) / double(part.pages)) {}
  QRY_HD uint32_t mixed(QryCompactPlace wanted, const QryCompactPart& part) const {
    // The remainder is the number of the mixed key in its sector, or one more; the product may round to one less. Places rise with mixed keys.
    const uint64_t guess = uint64_t(double(wanted.home) * mixes_per_sector) + wanted.tag;
    uint32_t mixed = guess > 0xFFFFFFFFu ? 0xFFFFFFFFu : uint32_t(guess);
    for (;;) {
      const QryCompactPlace at = qry_compact_place(mixed, part);
      if (at.home == wanted.home && at.tag == wanted.tag) return mixed;
      mixed += at.home < wanted.home || (at.home == wanted.home && at.tag < wanted.tag) ? 1u : ~0u;
    }
  }
};

// How many of its sectors a key with this remainder may stand in.
QRY_HD inline uint32_t compact_distances(uint32_t remainder, const QryCompactPart& part) {
  const uint32_t by_tag = (qry_compact_no_tag(part.fields) - 1u - remainder) / part.remainders + 1u;
  return by_tag < part.reach ? by_tag : part.reach;
}

// Where an entry stands, told by its sector of the part and its tag.
struct CompactStanding {
  QryCompactPlace place;
  uint32_t distance;
};
QRY_HD inline CompactStanding compact_standing(uint32_t sector, uint32_t tag, const QryCompactPart& part) {
  const uint32_t distance = tag / part.remainders;
  return {{qry_compact_sector(sector, 0u - distance), tag - distance * part.remainders}, distance};
}

// The key of an entry that stands in the table (`stashed`: in the stash) and the sectors that a find of it reads.
struct CompactKey {
  uint32_t mixed;
  uint32_t depth;
};
QRY_HD inline CompactKey compact_key(const QryCompact& layout, bool stashed, const CompactInverse& inverse, uint32_t sector, uint32_t tag) {
  const QryCompactPart& part = stashed ? layout.stash : layout.table;
  const CompactStanding standing = compact_standing(sector, tag, part);
  const uint32_t mixed = inverse.mixed(standing.place, part);
  if (!stashed) return {mixed, standing.distance + 1};
  const uint32_t first = qry_unmix(mixed);
  return {first, compact_distances(qry_compact_place(first, layout.table).tag, layout.table) + standing.distance + 1};
}

// use(slot, tag, value) for every tag of a sector, those of erased keys too (their value is kQryCompactNoValue).
template <class Format, class Use>
QRY_HD inline void for_entries(const uint32_t* sector, const Use& use) {
  for (uint32_t slot = 0; slot < Format::kEntries; ++slot) {
    const uint32_t tag = Format::tag_at(sector[slot / Format::kFields], slot % Format::kFields);
    if (tag != Format::kNoTag) use(slot, tag, sector[Format::kTagWords + slot]);
  }
}

// Entries of a sector, which stand at its front.
template <class Format>
QRY_HD inline uint32_t entries_in(const uint32_t* sector) {
  uint32_t tags[Format::kTagWords];
  for (uint32_t w = 0; w < Format::kTagWords; ++w) tags[w] = sector[w];
  return Format::slot_with(tags, Format::kNoTag);
}
template <class Format>
QRY_HD inline void clear_sector(uint32_t* sector) {
  for (uint32_t w = 0; w < kSectorWords; ++w) sector[w] = w < Format::kTagWords ? kQryCompactEmptyTags : kQryCompactNoValue;
}
template <class Format>
QRY_HD inline void put_entry(uint32_t* sector, uint32_t slot, uint32_t tag, uint32_t value) {
  sector[slot / Format::kFields] ^= Format::change(slot % Format::kFields, tag);
  sector[Format::kTagWords + slot] = value;
}
// Live entries but those of the mask `gone` (bit: slot) to the front; nobody stands behind the sector any more.
template <class Format>
QRY_HD inline void pack_sector(uint32_t* sector, uint32_t gone) {
  uint32_t old[kSectorWords];
  for (uint32_t w = 0; w < kSectorWords; ++w) old[w] = sector[w];
  clear_sector<Format>(sector);
  uint32_t kept = 0;
  for_entries<Format>(old, [&](uint32_t slot, uint32_t tag, uint32_t value) {
    if (value != kQryCompactNoValue && (gone >> slot & 1u) == 0) put_entry<Format>(sector, kept++, tag, value);
  });
}

}  // namespace quarry::hashgrid::detail
