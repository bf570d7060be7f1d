// SPDX-License-Identifier: Apache-2.0
// layout.h - the memory layout of a table of the pairs layout, and where a key may be: one text for C++, CUDA and GLSL.
//
// What it is:     constants, the page/sector arithmetic and the probe order. Nothing here touches memory.
// What it is not: the operations (view.hpp for host and CUDA, shaders/library/grid_find.glsl for shaders).
// A shader defines QRY_GLSL before it includes this file and enables GL_EXT_shader_explicit_arithmetic_types_int64.
//
// Pairs layout. A slot is 64 bits: low word = stored key (table/key_hash.h), high word = value, so one 64-bit
// compare-and-swap publishes both and no reader ever sees a key without its value. Four slots make one 32-byte memory
// sector = one bucket. 1024 sectors make a page:
//
//   page, 32 KiB
//   sector    0 ..    7   bucket states: 2 bits for each of 1024 sectors (256 B)
//   sector    8 ..  999   992 buckets of 4 slots                         (31,744 B, 3968 slots)
//   sector 1000 .. 1023   this page's part of its group's stash          (768 B, 96 slots)
//
// A table is `page_count` such pages, nothing else, 32-byte aligned. Page and bucket are the integer and the fractional
// part of one 64-bit product (multiply-high), so any page count works, and the buckets of a page can be rebuilt, grown
// or moved on their own.
//
// Stash. The number of keys in a page varies: at a load of 0.95 it is 3891, give or take 62. So keys that two buckets
// cannot take go to a stash that 64 pages share (their *group*; the last group has up to 127 pages, a table of fewer
// pages is one group). A key has six sectors of the stash, drawn by hash. It is found in at most eight sectors: two
// buckets, six of the stash.
//
// An empty slot has the reserved key in its low word. Its high word is the *phase* in which an erase freed it, or all
// ones if it was never used since the page was cleared. view.hpp says what phases are for.
//
// Literature: bucketised probing of one memory sector per bucket follows Juenger et al., "WarpCore", 2020, and
// cuCollections (NVIDIA), with one thread per key instead of a cooperative group; publishing key and value by one CAS
// follows the lock-free linear-probing table of D. Farell, "A Simple GPU Hash Table", 2020.
#ifndef QRY_HASHGRID_PAIRS_LAYOUT_H
#define QRY_HASHGRID_PAIRS_LAYOUT_H

#include "hashgrid/table/page.h"

QRY_CONST kQryPageWords = 4096u;         // 64-bit words
QRY_CONST kQryOwnWords = 4000u;          // of these, states and buckets: written for keys of this page only
QRY_CONST kQryStateSectors = 8u;         // sectors 0..7: bucket states
QRY_CONST kQryBucketsPerPage = 992u;     // sectors 8..999
QRY_CONST kQryLinesPerPage = 248u;       // of four buckets, 128 bytes, aligned to 128
QRY_CONST kQryStashFirstSector = 1000u;  // sectors 1000..1023: part of the stash
QRY_CONST kQryStashSectors = 24u;
QRY_CONST kQryStashTries = 6u;       // sectors of the stash that a key may be in
QRY_CONST kQryGroupPages = 64u;      // pages that share a stash: with 32, the fullest group refuses too early
QRY_CONST kQrySlotsPerPage = 4064u;  // buckets and stash; a load factor is keys over this

// A phase in a freed slot's high word. Never-used slots carry kQryPhaseNever, which no phase may equal.
QRY_CONST kQryPhaseNever = 0xFFFFFFFFu;

// Bits of a bucket's state. A bit, once set, stays set until the page is rebuilt or swept.
QRY_CONST kQryBucketSpilled = 1u;  // some key whose home this is went on to its second bucket
QRY_CONST kQryBucketToStash = 2u;  // likewise, to the stash

#include "hashgrid/table/key_hash.h"  // after the constants above: glslang numbers constants in the order it meets them

// Where a key may be. Sectors are counted from the page's start.
struct QryProbeSequence {
  QRY_U32 page;           // page index
  QRY_U32 home_sector;    // first bucket
  QRY_U32 second_sector;  // second bucket, never equal to the first
  QRY_U32 home_slot;      // 0..3: the slot of a sector that is tried first; the others follow, wrapping round
  QRY_U32 draw;           // random bits for qry_stash_sector()
};

// Eight stored keys that differ only in their last three bits are a row. A row has a home line and a next line, each of
// four sectors (128 bytes), the most that one request to the cache can fetch. Each pair of its keys goes to one sector
// of each line. So in a grid of rows, two rows fit into a line side by side. Only half as many keys lose their home as
// if four keys shared a sector, and those that do are all in one other line. In a plain grid the eight keys of a row
// are unrelated, and hardly ever are two of them present.
QRY_FN QRY_U32 qry_page(QRY_U32 stored, QRY_U32 page_count) {
  return QRY_U32((QRY_U64(stored & ~7u) * QRY_U64(page_count)) >> 32);
}
QRY_FN QRY_U32 qry_home_bucket(QRY_U32 stored, QRY_U32 page_count) {
  const QRY_U32 fraction = (stored & ~7u) * page_count;  // uniform within the page
  const QRY_U32 line = QRY_U32((QRY_U64(fraction) * QRY_U64(kQryLinesPerPage)) >> 32);
  return 4u * line + (((stored >> 1) ^ (stored >> 3)) & 3u);
}
QRY_FN QryProbeSequence qry_probe_sequence(QRY_U32 stored, QRY_U32 page_count) {
  // A second, independent hash: with many pages the fraction has too few bits left.
  QRY_U32 second = (stored >> 3) * 0x9E3779B1u;
  second ^= second >> 15;
  second *= 0x2C1B3C6Du;
  second ^= second >> 13;
  const QRY_U32 home = qry_home_bucket(stored, page_count);
  // 1..247 lines further on, so never the home line.
  const QRY_U32 line = (home >> 2) + 1u + QRY_U32((QRY_U64(second) * QRY_U64(kQryLinesPerPage - 1u)) >> 32);
  const QRY_U32 next =
      4u * (line < kQryLinesPerPage ? line : line - kQryLinesPerPage) + (((stored >> 1) ^ (stored >> 5)) & 3u);
  QryProbeSequence probes;
  probes.page = qry_page(stored, page_count);
  probes.home_sector = kQryStateSectors + home;
  probes.second_sector = kQryStateSectors + next;
  probes.home_slot = (second ^ stored) & 3u;
  probes.draw = second ^ (stored << 29);  // the keys of a row get different draws
  return probes;
}

// The pages that share a stash: `count` of them, starting at `first`.
struct QryStashGroup {
  QRY_U32 first;
  QRY_U32 count;
};
QRY_FN QRY_U32 qry_stash_group_count(QRY_U32 page_count) {
  return page_count < kQryGroupPages ? 1u : page_count / kQryGroupPages;
}
QRY_FN QryStashGroup qry_stash_group(QRY_U32 page, QRY_U32 page_count) {
  const QRY_U32 last = qry_stash_group_count(page_count) - 1u;
  const QRY_U32 index = page / kQryGroupPages < last ? page / kQryGroupPages : last;
  QryStashGroup group;
  group.first = index * kQryGroupPages;
  group.count = index == last ? page_count - group.first : kQryGroupPages;
  return group;
}

// The n-th sector (0..5) of the stash for a key, counted from the table's start. Two of a key's six may be equal.
QRY_FN QRY_U32 qry_stash_sector(QryProbeSequence probes, QryStashGroup group, QRY_U32 n) {
  QRY_U32 x = probes.draw + n * 0x9E3779B9u;
  x ^= x >> 15;
  x *= 0x85EBCA6Bu;
  x ^= x >> 13;
  x *= 0xC2B2AE35u;
  const QRY_U64 product = QRY_U64(x) * QRY_U64(group.count);
  const QRY_U32 sector = QRY_U32((QRY_U64(QRY_U32(product)) * QRY_U64(kQryStashSectors)) >> 32);
  return (group.first + QRY_U32(product >> 32)) * kQrySectorsPerPage + kQryStashFirstSector + sector;
}

// The 64-bit word, counted from the page's start, and the shift that hold a sector's state bits.
QRY_FN QRY_U32 qry_state_word(QRY_U32 sector) { return sector >> 5; }
QRY_FN QRY_U32 qry_state_shift(QRY_U32 sector) { return (sector & 31u) << 1; }

#endif
