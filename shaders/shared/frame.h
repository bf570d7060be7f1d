// SPDX-License-Identifier: Apache-2.0
// frame.h - the data that the host gives the passes and the passes give each other: one text for C++
// (engine/render/ray_marcher.cpp) and GLSL.
#ifndef QRY_FRAME_H
#define QRY_FRAME_H

#include "shaders/shared/world_root.h"
#include "voxel/rays/ray_setup.h"
#include "shaders/shared/environment.h"

// The data of a frame that is the same for all its passes. There is one in host-visible memory for each frame in
// flight. It is bound as a uniform block, because a software driver reads data behind an address once for every thread.
struct QryFrame {
  QRY_U64 visibility;  // width*height QryVisibility
  // width*height QryVisibility: what transparent voxels show. Only their pixels are written. 0: the palette has none.
  QRY_U64 refraction;
  // width*height QryVisibility: what smooth surfaces reflect. Only their pixels are written. 0: the palette has none.
  QRY_U64 reflection;
  QRY_U64 light;  // width*height vec4: light from all directions, and the visible share of the sun
  // width*height vec4: tone-mapped colour multiplied by coverage, and coverage, summed over sub-pixel samples.
  QRY_U64 accumulation;
  QRY_U64 page_loads;  // a uint for each page of the grid: slots in use; only for the view that shows them
  // A float for each tile, row by row: how far the tile sees nothing (beam.glsl), in lengths of forward + a*right +
  // b*up. With 0, rays start at the eye.
  QRY_U64 beams;
  QRY_F32 origin[3];
  QRY_F32 forward[3];
  QRY_F32 right[3];
  QRY_F32 up[3];
  QRY_U32 width;
  QRY_U32 height;
  QRY_U32 view;  // engine::DebugView
  QRY_U32 samples_a_side;
  QRY_U32 shadow_rays;
  QRY_U32 ambient_rays;
  QRY_U32 seed;
  QRY_F32 ambient_reach;
  QryEnvironment environment;
  QRY_U32 highlight;         // 0 or 1
  QRY_F32 highlight_min[3];  // world coordinates of the box's corners
  QRY_F32 highlight_max[3];
};

QRY_CONST kQryBeamTileWide = 16u;  // pixels; a workgroup of march.comp.glsl is inside one tile
QRY_CONST kQryBeamTileHigh = 32u;
QRY_CONST kQryBeamGroup = 128u;  // threads of a workgroup of beams; each of its subgroups computes one tile

// What a primary ray hit, 16 bytes. t < 0: nothing.
struct QryVisibility {
  QRY_F32 t;
  QRY_U32 xy;    // biased voxel x | y << 14 | face << 27
  QRY_U32 zm;    // biased voxel z | material << 14
  QRY_U32 cost;  // steps | sectors read for the hit brick << 16
};

struct QryFramePush {
  QryWorldRoot root;
  QRY_U32 sample_index;
  QryDirectionSetup to_sun;  // of rays to the middle of the sun
  // The tile of a pass in pixels, x | y << 16: its first pixel, and the one beyond its last. Only pipelines for tiles
  // use it (dispatch_pixel.glsl).
  QRY_U32 tile_from;
  QRY_U32 tile_to;
};

// trace.comp.glsl: rays in, hits out.
struct QryRay {
  QRY_F32 origin[3];
  QRY_F32 direction[3];
};
struct QryRayHit {
  QRY_F32 t;
  QRY_I32 voxel[3];  // world coordinates
  QRY_U32 face;
  QRY_U32 material;
  QRY_U32 steps;
  QRY_U32 probe_depth;
};
struct QryTracePush {
  QRY_U64 root;
  QRY_U64 rays;
  QRY_U64 hits;
  QRY_U32 count;
};

#endif
