// SPDX-License-Identifier: Apache-2.0
// light_tree.h - the layout of the emissive faces for the path tracer: one text for C++ (engine/sharing/light_tree.cpp)
// and GLSL (light_tree.glsl). Scalar layout in GLSL equals natural alignment in C++. The static_asserts are in
// engine/sharing/light_tree.cpp.
//
//   QryLights --> nodes   a binary tree: the emissive cells on either side of a bit of the cells' Morton numbers
//             --> cells   4^3 voxels each, with at least one emissive face that touches air
//             --> faces   those of one cell are adjacent, ordered by direction
#ifndef QRY_LIGHT_TREE_H
#define QRY_LIGHT_TREE_H

#include "shaders/shared/world_root.h"

// Power here is radiance times area, averaged over colour. Choosing a light needs no more.
struct QryLights {
  QRY_U64 nodes;
  QRY_U64 cells;
  QRY_U64 faces;
  QRY_F32 powers[256];  // of one face of each material
};

// A node's two children are adjacent, the first at `link` & kQryLightIndex. They differ in bit b = `link` >> 26 of
// their Morton numbers, which is bit b / 3 of the cell's x, y or z (b % 3 = 0, 1, 2). The second child has it set. If b
// = kQryLightLeaf, the index is that of a cell.
struct QryLightNode {
  QRY_U32 bounds[3];  // of the faces, in biased voxels, 16 bits each: x0 y0 z0 x1 y1 z1
  QRY_F32 power;      // of the strongest direction
  // Power of each direction (2*axis, +1 if the face looks up the axis) as a share of `power`, 16 bits each, rounded up.
  QRY_U32 shares[3];
  QRY_U32 link;
};

struct QryLightCell {
  QRY_F32 powers[6];  // by direction
  QRY_U32 first;      // face
  QRY_U32 ends[3];    // number of faces up to and including each direction; 16 bits each
  QRY_U32 x;          // the cell: biased voxel >> 2
  QRY_U32 y;
  QRY_U32 z;
  QRY_U32 reserved;
};

struct QryLightFace {
  QRY_U32 place;       // voxel of the cell: x | y << 2 | z << 4; material << 8
  QRY_F32 cumulative;  // power of the faces of this direction up to and including this one
};

QRY_CONST kQryLightIndex = 0x03FFFFFFu;
QRY_CONST kQryLightLeaf = 63u;
QRY_CONST kQryLightCellShift = 2u;

#endif
