// SPDX-License-Identifier: Apache-2.0
// world_root.h - the addresses of a world's arrays, as shaders see them: one text for C++ (engine/sharing/world.cpp)
// and GLSL (world.glsl). All addresses are buffer device addresses. Scalar layout in GLSL equals natural alignment in
// C++. The static_asserts are in sharing/world.cpp.
//
//   QryWorldRoot --> grid       pages of hashgrid/pairs/layout.h, by the keys of voxel/bricks/key.h
//                --> slabs      tables of addresses: masks (64 B a brick), materials (512 B a brick, or packed:
//                               voxel/bricks/pool.hpp)
//                --> pyramid    nodes and brick indices, granules of 16 bytes, as voxel/bricks/occupancy.hpp says
//                --> palette    256 x 32 B, as voxel/worlds/palette.hpp says
// Passes that trace rays have it in the push constants, so that its numbers are operands of instructions and cost no
// registers.
#ifndef QRY_WORLD_ROOT_H
#define QRY_WORLD_ROOT_H

#include "hashgrid/pairs/layout.h"
#include "voxel/bricks/key.h"

#if defined(QRY_GLSL)
#define QRY_I32 int
#define QRY_F32 float
#else
#define QRY_I32 int32_t
#define QRY_F32 float
#endif

struct QryWorldRoot {
  QRY_U64 grid_words;
  QRY_U64 mask_slabs;
  QRY_U64 material_slabs;
  QRY_U64 pyramid;
  QRY_U64 palette;
  QRY_U32 grid_pages;
  // Bricks in the slabs of the table. An index at or above it belongs to a newer world than this root.
  QRY_U32 brick_capacity;
  QRY_U32 node_capacity;  // the same for granules of the pyramid's arena
  QRY_U32 brick_count;
  // The box at which rays start, in whole world coordinates: a box of every set voxel, with its corners moved out by
  // kQryBoxMargin. In an empty world it is only the margins.
  QRY_F32 box_low[3];
  QRY_F32 box_high[3];
  QRY_U32 packed;  // 1: only set voxels have materials; else 0
  QRY_U32 level3;  // the granule at which the pyramid's level 3 starts
};

QRY_CONST kQryBoxMargin = 2u;

// Shapes of voxel/bricks/pool.hpp and voxel/bricks/occupancy.hpp.
QRY_CONST kQryBrickSlabShift = 12u;

// voxel - kWorldMin = voxel + bias
QRY_CONST kQryVoxelBiasXZ = 8192u;
QRY_CONST kQryVoxelBiasY = 4096u;

#endif
