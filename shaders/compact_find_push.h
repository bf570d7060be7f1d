// compact_find_push.h - what compact_find.comp.glsl is given: one text for C++ and GLSL.
#ifndef QRY_COMPACT_FIND_PUSH_H
#define QRY_COMPACT_FIND_PUSH_H

#include "hashgrid/compact_layout.h"

struct QryCompactFindPush {
  QRY_U64 grid_words;
  QRY_U64 keys;
  QRY_U64 found;
  QRY_U32 count;
  QryCompact table;
};

#endif
