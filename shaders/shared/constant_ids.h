// SPDX-License-Identifier: Apache-2.0
// constant_ids.h - the numbers of all specialisation constants: one text for C++ (engine/vulkan/pipeline_cache.cpp,
// bench/render/passes.cpp) and GLSL. The declaration in a shader says what a constant means. They are macros, because a
// constant of GLSL would become part of the shader.
#ifndef QRY_CONSTANT_IDS_H
#define QRY_CONSTANT_IDS_H

#define QRY_ID_COUNT 0           // traverse.glsl
#define QRY_ID_STOP_AT_BRICKS 1  // traverse.glsl
#define QRY_ID_INSIDE 5          // traverse.glsl
#define QRY_ID_FUSED 6           // traverse.glsl
#define QRY_ID_SKIPS_MATERIAL 7  // traverse.glsl
#define QRY_ID_BEAM_LANES 8      // beam.glsl
#define QRY_ID_ONE_DIRECTION 9   // shadow.comp.glsl
#define QRY_ID_STRIDED 10        // dispatch_pixel.glsl
#define QRY_ID_BY_COLUMNS 11     // shadow_dispatch.glsl
#define QRY_ID_ROWS 12           // shadow.comp.glsl: the workgroup's rows
#define QRY_ID_TILED 13          // dispatch_pixel.glsl
#define QRY_ID_SCAN_GROUP 14     // scan.glsl: the workgroup's threads
#define QRY_ID_SCAN_SPINS 15     // scan.glsl
#define QRY_ID_SCAN_STRIPED 16   // scan.glsl
#define QRY_ID_SCAN_TRIAL 17     // scan.glsl
#define QRY_ID_SCAN_QUADS 18     // scan.glsl

// Only for bench_rays.comp.glsl, which has neither rows nor tiles.
#define QRY_ID_BENCH_PASS 2
#define QRY_ID_BENCH_FROM_BEAMS 3
#define QRY_ID_BENCH_RAYS_A_THREAD 4
#define QRY_ID_BENCH_GROUP_WIDTH 12
#define QRY_ID_BENCH_GROUP_ROWS 13

#endif
