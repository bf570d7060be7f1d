// SPDX-License-Identifier: Apache-2.0
// find_push.h - the push constants of find.comp.glsl, pairs_find.comp.glsl and compact_find.comp.glsl: one text for C++
// and GLSL.
#ifndef QRY_FIND_PUSH_H
#define QRY_FIND_PUSH_H

#include "hashgrid/compact/layout.h"

struct QryFindPush {
  QRY_U64 root;
  QRY_U64 keys;
  QRY_U64 found;
  QRY_U32 count;
};

struct QryPairsFindPush {
  QRY_U64 grid_words;
  QRY_U64 keys;
  QRY_U64 found;
  QRY_U32 count;
  QRY_U32 page_count;
  QRY_U32 locality;  // kQryPlain, kQryRows
};

struct QryCompactFindPush {
  QRY_U64 grid_words;
  QRY_U64 keys;
  QRY_U64 found;
  QRY_U32 count;
  QryCompact table;
};

#endif
