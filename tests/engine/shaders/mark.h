// SPDX-License-Identifier: Apache-2.0
// mark.h - the push constants of mark.comp.glsl: one text for C++ and GLSL.
#ifndef QRY_MARK_H
#define QRY_MARK_H

#include "hashgrid/pairs/layout.h"

struct QryMarkPush {
  QRY_U64 list;    // places
  QRY_U64 number;  // one word: how many there are
  QRY_U64 marks;   // a word for each place
};

#endif
