// SPDX-License-Identifier: Apache-2.0
// path.h - what the host tells the path tracer's two passes: one text for C++ (engine/pictures/path_tracer.cpp) and
// GLSL.
#ifndef QRY_PATH_H
#define QRY_PATH_H

#include "shaders/shared/environment.h"

struct QryPathFrame {
  QRY_U64 root;    // QryWorldRoot
  QRY_U64 sums;    // width*height vec4: radiance and coverage, summed over paths
  QRY_U64 layers;  // 0, or width*height pairs of vec4: albedo, depth | normal, hits; summed over paths
  QRY_U64 lights;  // 0: emissive voxels are found by scattered rays alone; or QryLights (light_tree.h)
  QRY_F32 origin[3];
  QRY_F32 forward[3];
  QRY_F32 right[3];
  QRY_F32 up[3];
  QRY_U32 width;
  QRY_U32 height;
  QRY_U32 bounces;  // times a path may scatter
  QRY_U32 seed;
  QRY_F32 clamp;  // brightest light that a scattered ray may bring; 0: no limit
  QryEnvironment environment;
};

// A step is one path in every sixteenth pixel: steps 16k..16k+15 together are path k of every pixel, in an order in
// which the first steps already lie all over the picture.
struct QryPathPush {
  QRY_U64 frame;
  QRY_U32 first_step;
  QRY_U32 steps;  // a multiple of 16 that starts at one, or a single one
  // Pixels of the tile, as QryFramePush has them; path.comp's first is in blocks of 4 x 4 where a single step is made.
  QRY_U32 tile_from;
  QRY_U32 tile_to;
};

#endif
