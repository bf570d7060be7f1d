// SPDX-License-Identifier: Apache-2.0
// residency.h - what a shader knows of a world of which parts are not there: one text for C++
// (engine/sharing/residency.cpp) and GLSL (world.glsl, compiled with QRY_PAGED).
//
// A page is a cell of level 2 of the pyramid, 128^3 voxels. Its number is level 3's node << 6 | the cell's bit in it.
//
//   palette | QryResidency     behind the palette of a world's root (world_root.h)
//               |-> absent     a mask for each node of level 3: pages that have voxels and are not there
//               |-> outlines   for each page the mask of its node of level 2: cells of 32^3 that may have voxels
//               |-> reached    a bit for each page: a ray has come to such a cell, be the page there or not
//
// Rays go on where an outline has no cell, so only pages are missed whose voxels may be hit.
#ifndef QRY_RESIDENCY_H
#define QRY_RESIDENCY_H

#include "shaders/shared/world_root.h"

struct QryResidency {
  QRY_U64 absent;    // 2^14 masks of 64 bits
  QRY_U64 outlines;  // 2^20 masks of 64 bits; only those of absent pages are read
  QRY_U64 reached;   // 2^15 words of 32 bits
};

QRY_CONST kQryPages = 1u << 20;
QRY_CONST kQryPaletteBytes = 8192u;

#endif
