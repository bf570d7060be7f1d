// SPDX-License-Identifier: Apache-2.0
// traverse.glsl - the traversal of voxel/rays/walk.h for shaders: its specialisation constants and its words. That text
// says why no voxel is missed and why it is fast.
#ifndef QRY_TRAVERSE_GLSL
#define QRY_TRAVERSE_GLSL

#include "shaders/library/world.glsl"
#include "shaders/shared/constant_ids.h"
#include "voxel/rays/ray_setup.h"

// Counts steps and sectors. A pipeline without them has no cost.
layout(constant_id = QRY_ID_COUNT) const bool kQryCount = true;
// The first brick's pyramid bit ends the ray. It is the upper bound in the benchmark.
layout(constant_id = QRY_ID_STOP_AT_BRICKS) const bool kQryStopAtBricks = false;

// Rays start inside the bounds of the set voxels, at t = 0.
layout(constant_id = QRY_ID_INSIDE) const bool kQryInside = false;
layout(constant_id = QRY_ID_SKIPS_MATERIAL) const bool kQrySkipsMaterial = false;  // uses `skip_material`
// True if fma() rounds once. It does on every GPU, but may not on software drivers.
layout(constant_id = QRY_ID_FUSED) const bool kQryFused = false;

// The words of walk.h that are not GLSL. They are macros, so that the shader is what it would be without them.
#define QRY_WALK
#define QRY_IN(type) const type
#define QRY_OUT(type) out type
#define QRY_INOUT(type) inout type
#define QRY_XY(v) v.xy
#define QryMasks uint64_t
#define QRY_OCTANT(root, masks, octant) QryWords(masks).at[octant]
#define QRY_TOGETHER()

#include "voxel/rays/walk.h"

#endif
