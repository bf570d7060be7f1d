// SPDX-License-Identifier: Apache-2.0
// key.h - brick coordinates as keys of the hash grid: one text for C++, CUDA and GLSL. A shader defines QRY_GLSL before
// it includes this file.
#ifndef QRY_VOXEL_BRICKS_KEY_H
#define QRY_VOXEL_BRICKS_KEY_H

#include "hashgrid/table/page.h"

// 11/10/11 bits of biased x/y/z: x and z in [-1024, 1023], y in [-512, 511]; the corner brick
// (1023, 511, 1023), whose key would be the reserved one, is outside the world.
QRY_CONST kQryBiasXZ = 1024u;
QRY_CONST kQryBiasY = 512u;
QRY_FN QRY_U32 qry_pack_brick(int x, int y, int z) {
  return (QRY_U32(x) + kQryBiasXZ) | ((QRY_U32(y) + kQryBiasY) << 11) | ((QRY_U32(z) + kQryBiasXZ) << 21);
}
QRY_FN int qry_brick_x(QRY_U32 key) { return int(key & 2047u) - int(kQryBiasXZ); }
QRY_FN int qry_brick_y(QRY_U32 key) { return int((key >> 11) & 1023u) - int(kQryBiasY); }
QRY_FN int qry_brick_z(QRY_U32 key) { return int(key >> 21) - int(kQryBiasXZ); }

#endif
