// SPDX-License-Identifier: Apache-2.0
// bench_rays.h - the data that the benchmark gives its passes (bench_rays.comp.glsl): one text for C++
// (bench/render/passes.cpp) and GLSL.
#ifndef QRY_BENCH_RAYS_H
#define QRY_BENCH_RAYS_H

#include "shaders/shared/world_root.h"
#include "voxel/rays/ray_setup.h"

struct QryBenchFrame {
  QRY_U64 visibility;  // width*height QryVisibility
  QRY_U64 lit;         // width*height floats: 1 where the sun's ray is free
  QRY_U64 open;        // 4 * width*height floats, ray by ray: 1 if the ambient ray is free
  QRY_U64 picture;     // width*height RGBA8
  QRY_U64 beams;       // as in QryFrame
  QRY_F32 origin[3];
  QRY_F32 forward[3];
  QRY_F32 right[3];
  QRY_F32 up[3];
  QRY_F32 sun[3];
  QRY_F32 reach;          // of ambient rays
  QRY_F32 pixel_step[2];  // 2 / width, -2 / height
  QRY_U32 width;
  QRY_U32 height;
};

// The same as in QryFramePush.
struct QryBenchPush {
  QryWorldRoot root;
  QRY_U64 frame;
  QryDirectionSetup to_sun;
  QRY_U32 pixels;  // width * height
};

// The values of the specialisation constant kPass.
QRY_CONST kQryBenchMakeRays = 0u;
QRY_CONST kQryBenchPrimary = 1u;
QRY_CONST kQryBenchShadow = 2u;
QRY_CONST kQryBenchAmbient = 3u;
QRY_CONST kQryBenchShade = 4u;
QRY_CONST kQryBenchBeams = 5u;

#endif
