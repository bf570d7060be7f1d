// SPDX-License-Identifier: Apache-2.0
// ray_setup.h - the numbers that depend only on a ray's direction, for passes whose rays all have one direction: one
// text for C++ (engine/render/ray_setup.cpp, which computes them) and GLSL (traverse.glsl). They are push constants, so
// that they are operands of instructions and cost no registers.
#ifndef QRY_VOXEL_RAYS_RAY_SETUP_H
#define QRY_VOXEL_RAYS_RAY_SETUP_H

#include "hashgrid/table/page.h"

struct QryDirectionSetup {
  float a[3];    // the direction's components without their signs, none below kQryMinDirection
  float inv[3];  // 1 / a
  QRY_U32 flip;  // kQryFlip of the axes on which the direction is negative
};

// A component below this moves less than 1e-15 voxel over the world. With this value its planes are farther away than
// any world.
#if defined(QRY_GLSL)
const float kQryMinDirection = 1e-20;
#else
constexpr float kQryMinDirection = 1e-20f;
#endif

// An axis on which a ray's direction is negative is mirrored. These are the bits that this flips in the numbers of
// cells. Bits 0 to 5 are for a cell of 4x4x4 in its node or octant, bits 6 to 19 for a cell of 512 voxels in the world
// (x | y << 5 | z << 9), and bits 20 to 22 for an octant in its brick.
QRY_CONST kQryFlipX = 3u | (31u << 6) | (1u << 20);
QRY_CONST kQryFlipY = 12u | (15u << 11) | (2u << 20);
QRY_CONST kQryFlipZ = 48u | (31u << 15) | (4u << 20);

#endif
