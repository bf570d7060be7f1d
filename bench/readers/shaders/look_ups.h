// SPDX-License-Identifier: Apache-2.0
// look_ups.h - which bricks and voxels are looked up, and what the shader is given (look_ups.comp.glsl): one text for
// C++, CUDA and GLSL. Keys are made of random numbers where they are looked up, so that nothing is read but the world.
#ifndef QRY_BENCH_LOOK_UPS_H
#define QRY_BENCH_LOOK_UPS_H

#include "shaders/shared/world_root.h"

struct QryLookUpPush {
  QryWorldRoot root;
  QRY_U64 sums;  // kQryLookUpSums words, to which what was found is added
  QRY_U32 bricks;
  QRY_U32 count;
};

QRY_CONST kQryLookUpGroup = 256u;  // threads of a block or workgroup
QRY_CONST kQryLookUpsEach = 4u;    // of a thread, so that their reads are in flight together
QRY_CONST kQryLookUpSums = 256u;   // by the number of the block: few add to the same word at once
QRY_CONST kQryMostLookedUp = 1u << 27;

// The number of the brick that look-up `i` is about, of `bricks`.
QRY_FN QRY_U32 qry_looked_up(QRY_U32 i, QRY_U32 bricks) { return QRY_U32(QRY_U64(qry_mix(i)) * bricks >> 32); }
// Its voxel, 0 .. 511, in the order of memory: the octant and the bit of its mask.
QRY_FN QRY_U32 qry_looked_at(QRY_U32 i) { return qry_mix(i ^ 0x9e3779b9u) >> 23; }
// Of bricks by number: a block of 512 x 256 x as many as there are, in the middle of the world.
QRY_FN QRY_U32 qry_key_of_number(QRY_U32 number) {
  return (768u + (number & 511u)) | ((384u + (number >> 9 & 255u)) << 11) | ((512u + (number >> 17)) << 21);
}

#endif
