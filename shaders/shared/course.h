// SPDX-License-Identifier: Apache-2.0
// course.h - what a ray's direction alone decides, for passes whose rays all go one way: one text for C++ (engine/render/course.cpp, which finds
// the numbers) and GLSL (traverse.glsl). In the push constants, so that they are operands of instructions and cost no registers.
#ifndef QRY_COURSE_H
#define QRY_COURSE_H

#include "shaders/shared/world_root.h"

struct QryOneWay {
  QRY_F32 a[3];    // the direction's components without their signs, none below kQryFlat
  QRY_F32 inv[3];  // 1 / a
  QRY_U32 flip;    // kQryFlip of the axes on which rays fall
};

// A component below this moves less than 1e-15 voxel over the world; as large as this, its planes are farther than any world.
#if defined(QRY_GLSL)
const float kQryFlat = 1e-20;
#else
constexpr float kQryFlat = 1e-20f;
#endif

// An axis on which a ray falls is mirrored; what that turns around in the numbers of cells, as bits to be flipped. Bits 0 to 5: of a cell
// of 4x4x4 in its node or octant. 6 to 19: of a cell of 512 voxels in the world (x | y << 5 | z << 9). 20 to 22: of an octant in its brick.
QRY_CONST kQryFlipX = 3u | (31u << 6) | (1u << 20);
QRY_CONST kQryFlipY = 12u | (15u << 11) | (2u << 20);
QRY_CONST kQryFlipZ = 48u | (31u << 15) | (4u << 20);

#endif
