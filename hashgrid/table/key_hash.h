// SPDX-License-Identifier: Apache-2.0
// key_hash.h - the hash of a key: bijections of 32 bits, so that the stored form gives the key back. One text for C++,
// CUDA and GLSL.
//
// The mixer is C. Wellons' "lowbias32" (2018).
#ifndef QRY_HASHGRID_TABLE_KEY_HASH_H
#define QRY_HASHGRID_TABLE_KEY_HASH_H

#include "hashgrid/table/page.h"

// Bijective mixer (lowbias32) and its inverse: different keys always have different mixes.
QRY_FN QRY_U32 qry_mix(QRY_U32 x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  x ^= x >> 16;
  return x;
}

QRY_FN QRY_U32 qry_unmix(QRY_U32 x) {
  x ^= x >> 16;
  x *= 0x43021123u;
  x ^= (x >> 15) ^ (x >> 30);
  x *= 0x1d69e2a5u;
  x ^= x >> 16;
  return x;
}

// Locality: how a key becomes the content of its slot (the *stored* key), chosen when a grid is created. Both ways are
// bijections that map the reserved key to itself. The place of a key depends on its stored form alone, so whole-page
// operations need not know the locality.
QRY_CONST kQryPlain = 0u;  // every key by itself
QRY_CONST kQryRows = 1u;   // the keys 8n .. 8n+7, a row, share a 128-byte line: for keys looked up in order

QRY_CONST kQryMixOfReserved = 0x6768824au;  // qry_mix(kQryReservedKey)
QRY_CONST kQryRowMixOfLast = 0x17101cb1u;   // qry_mix_row(0x1FFFFFFF)

// The mixer on 29 bits.
QRY_FN QRY_U32 qry_mix_row(QRY_U32 x) {
  x ^= x >> 15;
  x = (x * 0x7feb352du) & 0x1FFFFFFFu;
  x ^= x >> 14;
  x = (x * 0x846ca68bu) & 0x1FFFFFFFu;
  return x ^ (x >> 15);
}
QRY_FN QRY_U32 qry_unmix_row(QRY_U32 x) {
  x ^= x >> 15;
  x = (x * 0x43021123u) & 0x1FFFFFFFu;
  x ^= (x >> 14) ^ (x >> 28);
  x = (x * 0x1d69e2a5u) & 0x1FFFFFFFu;
  return x ^ (x >> 15);
}

QRY_FN QRY_U32 qry_stored_key(QRY_U32 key, QRY_U32 locality) {
  if (locality == kQryPlain) return qry_mix(key) ^ ~kQryMixOfReserved;
  return ((qry_mix_row(key >> 3) ^ (kQryRowMixOfLast ^ 0x1FFFFFFFu)) << 3) | (key & 7u);
}
QRY_FN QRY_U32 qry_key_of_stored(QRY_U32 stored, QRY_U32 locality) {
  if (locality == kQryPlain) return qry_unmix(stored ^ ~kQryMixOfReserved);
  return (qry_unmix_row((stored >> 3) ^ (kQryRowMixOfLast ^ 0x1FFFFFFFu)) << 3) | (stored & 7u);
}

#endif
