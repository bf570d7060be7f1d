// SPDX-License-Identifier: Apache-2.0
// residency.h - what a shader knows of a world of which parts are not there: one text for C++
// (engine/sharing/residency.cpp, coarse_level.hpp) and GLSL (world.glsl, compiled with QRY_PAGED).
//
// A page is a cell of level 2 of the pyramid, 128^3 voxels. Its number is level 3's node << 6 | the cell's bit in it.
//
//   palette | QryResidency     behind the palette of a world's root (world_root.h)
//               |-> absent     a mask for each node of level 3: pages that have voxels and are not there
//               |-> pages      for each page which of these it has
//               |-> coarse     QryCoarsePage: which cells of 32^3 may have voxels, and what is in each
//               |-> cells      QryCoarseCell: which bricks of such a cell may have voxels, and a material for each
//               |-> reached    a bit for each page: a ray has come to such a cell, or if it is not there to such a
//               brick
//
// Of pages that are not there rays see the coarse level: its bricks are full of their material. They go on where it has
// none, so only pages are missed whose voxels may be hit.
#ifndef QRY_RESIDENCY_H
#define QRY_RESIDENCY_H

#include "shaders/shared/world_root.h"

struct QryResidency {
  QRY_U64 absent;   // 2^14 masks of 64 bits
  QRY_U64 pages;    // 2^20 numbers of 32 bits; only those of absent pages are read
  QRY_U64 coarse;   // an array
  QRY_U64 cells;    // an array; number 0 has all bits set, the masks of a brick that is full
  QRY_U64 reached;  // 2^15 words of 32 bits
};

struct QryCoarsePage {
  QRY_U32 low, high;  // a mask of cells, as of a node of level 2 of the pyramid
  // For each of these: below kQryCoarseCells all its bricks may have voxels, and this is the material of each; else the
  // number of a QryCoarseCell, plus kQryCoarseCells.
  QRY_U32 cells[64];
};

struct QryCoarseCell {
  QRY_U32 low, high;      // a mask of bricks, as of a node of level 1
  QRY_U32 materials[16];  // a byte a brick
};

QRY_CONST kQryPages = 1u << 20;
QRY_CONST kQryPaletteBytes = 8192u;
QRY_CONST kQryCoarseCells = 256u;
// A brick of the coarse level, in place of its index in the pool: this and its material.
QRY_CONST kQryCoarseBrick = 0xFFFFFE00u;

#endif
