// SPDX-License-Identifier: Apache-2.0
// path.h - the data that the host gives the path tracer's two passes: one text for C++
// (engine/pictures/path_tracer.cpp) and GLSL.
#ifndef QRY_PATH_H
#define QRY_PATH_H

#include "shaders/shared/environment.h"

struct QryPathFrame {
  QRY_U64 root;    // QryWorldRoot
  QRY_U64 sums;    // width*height vec4: radiance and coverage, summed over paths
  QRY_U64 layers;  // 0, or width*height pairs of vec4: albedo, depth | normal, hits; summed over paths
  QRY_U64 lights;  // QryLights (light_tree.h); 0: only scattered rays find emissive voxels
  QRY_F32 origin[3];
  QRY_F32 forward[3];
  QRY_F32 right[3];
  QRY_F32 up[3];
  QRY_U32 width;
  QRY_U32 height;
  QRY_U32 bounces;  // how often a path may scatter
  QRY_U32 seed;
  QRY_F32 clamp;  // the brightest light that a scattered ray may add; 0: no limit
  QryEnvironment environment;
};

// A step is one path in every sixteenth pixel. Steps 16k..16k+15 together are path k of every pixel. Their order
// spreads even the first steps over the whole picture.
struct QryPathPush {
  QRY_U64 frame;
  QRY_U32 first_step;
  QRY_U32 steps;  // 1, or a multiple of 16 that starts at a multiple of 16
  // Pixels of the tile, as in QryFramePush. For a single step, path.comp's tile_from is in blocks of 4 x 4.
  QRY_U32 tile_from;
  QRY_U32 tile_to;
};

#endif
