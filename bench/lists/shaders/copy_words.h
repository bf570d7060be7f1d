// SPDX-License-Identifier: Apache-2.0
// copy_words.h - what copy_words.comp.glsl is given: one text for C++ (bench/lists/scan.cpp) and GLSL.
#ifndef QRY_BENCH_COPY_WORDS_H
#define QRY_BENCH_COPY_WORDS_H

#include "hashgrid/pairs/layout.h"

struct QryCopyPush {
  QRY_U64 from;
  QRY_U64 to;
};

QRY_CONST kQryCopyGroup = 256u;  // threads, each with 4 words

#endif
