// SPDX-License-Identifier: Apache-2.0
// layout.h - the memory layout of a table of the compact layout, and where a key may be: one text for C++, CUDA and
// GLSL, as pairs/layout.h.
//
// What it is:     the formats of a sector, the division into pages, the arithmetic from key to sector and tag. Nothing
//                 here touches memory.
// What it is not: the operations (compact/view.hpp for host and CUDA, shaders/library/compact_find.glsl for shaders).
//
// The mixer is a bijection and a sector is a range of mixed keys. So sector and a small number (the *tag*) identify the
// key: no false positives, no key stored. A sector (32 bytes) is a few words of tags, then a value for each tag:
//
//   fields  tag words  entries  bits of a tag   table of
//     1         4         4          31         fewer than 1024 pages (32 MiB)
//     2         3         5          15         fewer than 12288 pages (384 MiB)
//     3         2         6          10         more: 5.3 bytes an entry
//
//   word of tags: tag i at bit i * bits; all bits of an empty tag are ones; bit 31 of a sector's first word: overflow
//
// A key's home sector is the integer part of mixed * sectors / 2^32. Its remainder, below `remainders` = ceil(2^32 /
// sectors), numbers the mixed keys of that sector. A key with a full home goes to the next sector (inside its page,
// wrapping round), and so on for `reach` sectors. At distance d its tag is remainder + remainders * d, as far as the
// tag's bits allow. If all of them are full, it goes to the *stash*: a second run of pages of the same kind (fields =
// 1) where a key's place comes from its mix mixed once more. Keys that crowd into one sector have consecutive mixes,
// and would be neighbours there too without the second mix. Tables of fewer than 1024 pages need no stash: a key's
// reach is a quarter of its page.
#ifndef QRY_HASHGRID_COMPACT_LAYOUT_H
#define QRY_HASHGRID_COMPACT_LAYOUT_H

#include "hashgrid/table/key_hash.h"
#include "hashgrid/table/page.h"

QRY_CONST kQryCompactEmptyTags = 0x7FFFFFFFu;  // a word of tags, in every format
QRY_CONST kQryCompactOverflow = 0x80000000u;
QRY_CONST kQryCompactNoValue = 0xFFFFFFFFu;  // kQryReservedValue: no entry, or an erased key's
QRY_CONST kQryCompactPagesOfFive = 1024u;    // from this many pages on: five entries a sector, tags for 7 sectors
QRY_CONST kQryCompactPagesOfSix = 12288u;  // six entries; tags for 2 sectors, nearly always 3; for 6 from 25,000 pages
QRY_CONST kQryCompactPagesPerStashPage = 128u;
QRY_CONST kQryCompactReachOfFour = 256u;  // holds every key at 0.9; a full table refuses in bounded time
QRY_CONST kQryCompactReachOfFive = 16u;
QRY_CONST kQryCompactReachOfSix = 6u;  // and two of the stash: no key is deeper than eight sectors

// A run of pages in one format.
struct QryCompactPart {
  QRY_U32 first_page;
  QRY_U32 pages;
  QRY_U32 fields;      // tags in a word
  QRY_U32 remainders;  // mixed keys of a sector
  QRY_U32 reach;       // sectors that a key may be in
};

struct QryCompact {
  QryCompactPart table;
  QryCompactPart stash;  // pages = 0: none
};

QRY_FN QRY_U32 qry_compact_tag_words(QRY_U32 fields) { return 5u - fields; }
QRY_FN QRY_U32 qry_compact_entries(QRY_U32 fields) { return 3u + fields; }
QRY_FN QRY_U32 qry_compact_tag_bits(QRY_U32 fields) { return fields == 1u ? 31u : fields == 2u ? 15u : 10u; }
QRY_FN QRY_U32 qry_compact_no_tag(QRY_U32 fields) { return (1u << qry_compact_tag_bits(fields)) - 1u; }

QRY_FN QryCompactPart qry_compact_part(QRY_U32 first_page, QRY_U32 pages, QRY_U32 fields) {
  const QRY_U64 sectors = QRY_U64(pages) * QRY_U64(kQrySectorsPerPage);
  QryCompactPart part;
  part.first_page = first_page;
  part.pages = pages;
  part.fields = fields;
  part.remainders = pages == 0u ? 0u : QRY_U32(((QRY_U64(1) << 32) + sectors - QRY_U64(1)) / sectors);
  part.reach = fields == 1u ? kQryCompactReachOfFour : fields == 2u ? kQryCompactReachOfFive : kQryCompactReachOfSix;
  return part;
}

// The parts of a table of `pages` pages in all. At most 2^21 pages.
QRY_FN QryCompact qry_compact(QRY_U32 pages) {
  const QRY_U32 stash = pages < kQryCompactPagesOfFive ? 0u : pages / kQryCompactPagesPerStashPage;
  QryCompact parts;
  parts.table = qry_compact_part(0u, pages - stash,
                                 pages < kQryCompactPagesOfFive  ? 1u
                                 : pages < kQryCompactPagesOfSix ? 2u
                                                                 : 3u);
  parts.stash = qry_compact_part(pages - stash, stash, 1u);
  return parts;
}

// A key's home in a part, as a sector of the part, and its tag there. For the stash: qry_compact_place(qry_mix(mixed),
// stash).
struct QryCompactPlace {
  QRY_U32 home;
  QRY_U32 tag;  // plus `remainders` for each sector further on
};
QRY_FN QryCompactPlace qry_compact_place(QRY_U32 mixed, QryCompactPart part) {
  const QRY_U64 product = QRY_U64(mixed) * QRY_U64(part.pages * kQrySectorsPerPage);
  QryCompactPlace place;
  place.home = QRY_U32(product >> 32);
  place.tag = QRY_U32((QRY_U64(QRY_U32(product)) * QRY_U64(part.remainders)) >> 32);
  return place;
}
// The sector at `distance` from a key's home: inside the page, wrapping round at its end.
QRY_FN QRY_U32 qry_compact_sector(QRY_U32 home, QRY_U32 distance) {
  return (home & ~(kQrySectorsPerPage - 1u)) | ((home + distance) & (kQrySectorsPerPage - 1u));
}

#endif
