// SPDX-License-Identifier: Apache-2.0
// scan.h - the data of the passes that sum and select (library/scan.glsl): one text for C++ (engine/lists/scan.cpp) and
// GLSL.
//
// Their state, 4-byte words, zero before its first use:
//
//   0      workgroups that have begun, and in bit 31 which half this use has
//   1, 2   the tiles that the last use of either half had
//   3      unused
//   4..    half 0, half 1: two words a tile, each with 16 bits of its sum in the lower bits and kQryScanSum or
//          kQryScanPrefix above them; 0: nothing is known of the tile
#ifndef QRY_SCAN_H
#define QRY_SCAN_H

#include "hashgrid/pairs/layout.h"

struct QryScanPush {
  QRY_U64 from;      // words to sum, or flags
  QRY_U64 items;     // select: words to select from; 0: their places are written instead
  QRY_U64 to;        // the sums, or what is selected
  QRY_U64 sum;       // 0, or where the sum of all, or the number selected, is written
  QRY_U64 dispatch;  // select: 0, or where a VkDispatchIndirectCommand is written
  QRY_U64 state;
  QRY_U32 count;     // words
  QRY_U32 tiles;     // at least 1
  QRY_U32 capacity;  // of a half of the state, in tiles
  QRY_U32 inclusive;
  QRY_U32 low;  // select: a flag is set if flag - low <= span, modulo 2^32
  QRY_U32 span;
  QRY_U32 room;  // select: words behind `to`
  QRY_U32 dispatch_group;
};

QRY_CONST kQryScanHeader = 4u;        // words of the state before its halves
QRY_CONST kQryScanMostWide = 32768u;  // workgroups of a dispatch's row; any device takes 65535

// Trials, for tests: what a device may do to workgroups, done on purpose. They may be added.
QRY_CONST kQryScanOwnersStall = 1u;     // no workgroup publishes what it knows of its own tile
QRY_CONST kQryScanFallbackStalls = 2u;  // nor of others' tiles
QRY_CONST kQryScanBackwards = 4u;       // tiles are taken from the last to the first

#endif
