#version 460
// SPDX-License-Identifier: Apache-2.0
// bench_rays.comp.glsl - the passes of `quarry bench render`, each a separate pipeline by kPass: rays of the reference
// scenes, with the same traversal as the pictures. The arithmetic of rays is written out with fma, as the scenes'
// specification has it.
#extension GL_GOOGLE_include_directive : require

#include "shaders/library/traverse.glsl"
#include "shaders/library/shadow_dispatch.glsl"
#include "shaders/library/beam.glsl"
#include "shaders/shared/frame.h"
#include "bench/render/shaders/bench_rays.h"

layout(local_size_x_id = QRY_ID_BENCH_GROUP_WIDTH, local_size_y_id = QRY_ID_BENCH_GROUP_ROWS) in;
layout(constant_id = QRY_ID_BENCH_PASS) const uint kPass = 0u;
layout(constant_id = QRY_ID_BENCH_FROM_BEAMS) const bool kFromBeams = false;
// For ambient rays: 1 (the sample is the dispatch's z, the same for a whole warp) or 4.
layout(constant_id = QRY_ID_BENCH_RAYS_A_THREAD) const uint kRaysAThread = 1u;

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer QryBenchFrameRef { QryBenchFrame frame; };
// QryVisibility: t, xy, zm, cost.
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer QryVisibilityRef { uvec4 at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer QryFloats { float at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer QryPixels { uint at[]; };
layout(push_constant, scalar) uniform QryPush { QryBenchPush push; };

vec3 of(const float a[3]) { return vec3(a[0], a[1], a[2]); }

float one_over_length(vec3 v) { return inversesqrt(fma(v.x, v.x, fma(v.y, v.y, v.z * v.z))); }
vec3 unit(vec3 v) { return v * one_over_length(v); }

// Its length is not 1.
vec3 pixel_ray(const QryBenchFrame f, vec2 at) {
  const float a = fma(f.pixel_step[0], at.x, -1.0), b = fma(f.pixel_step[1], at.y, 1.0);
  return vec3(fma(a, f.right[0], fma(b, f.up[0], f.forward[0])), fma(a, f.right[1], fma(b, f.up[1], f.forward[1])),
              fma(a, f.right[2], fma(b, f.up[2], f.forward[2])));
}
vec3 pixel_direction(const QryBenchFrame f, vec2 at) { return unit(pixel_ray(f, at)); }

uint mixed(uint x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

vec3 normal_of(uint face) {
  vec3 n = vec3(0.0);
  n[face >> 1] = (face & 1u) != 0u ? 1.0 : -1.0;
  return n;
}

// A cosine-weighted direction about the face's normal: normal + a point of the unit sphere, by rejection (G. Marsaglia,
// 1972).
vec3 ambient_direction(uint pixel, uint ray, uint face) {
  uint h = mixed(pixel * 4u + ray + 0x51ed270bu);
  float a = 0.25, b = 0.25, q = 2.0;
  for (int k = 0; k < 16 && q >= 1.0; ++k) {
    a = fma(float(h & 0xffffu), 2.0 / 65536.0, -1.0 + 1.0 / 65536.0);
    b = fma(float(h >> 16), 2.0 / 65536.0, -1.0 + 1.0 / 65536.0);
    q = fma(a, a, b * b);
    h = mixed(h + 0x9e3779b9u);
  }
  if (q >= 1.0) a = 0.25, b = 0.25, q = 0.125;
  const float r = 2.0 * sqrt(1.0 - q);
  const vec3 n = normal_of(face), v = vec3(fma(a, r, n.x), fma(b, r, n.y), fma(-2.0, q, 1.0) + n.z);
  return dot(v, v) < 1e-6 ? n : unit(v);
}

void main() {
  const QryBenchFrame f = QryBenchFrameRef(push.frame).frame;
  if (kPass == kQryBenchBeams) {
    const uint tiles = qry_tiles_across(f.width) * qry_tiles_down(f.height);
    const uint tile = qry_dispatch_tile();
    if (tile < tiles) {
      const float depth =
          qry_tile_beam(push.root, tile, of(f.origin), of(f.forward), of(f.right), of(f.up), uvec2(f.width, f.height));
      if (gl_SubgroupInvocationID == 0u) QryFloats(f.beams).at[tile] = depth;
    }
    return;
  }

  const uvec2 at = kPass == kQryBenchShadow ? qry_shadow_pixel(gl_WorkGroupSize.xy) : gl_GlobalInvocationID.xy;
  if (at.x >= f.width || at.y >= f.height) return;
  const uint pixel = at.y * f.width + at.x;
  if (kPass == kQryBenchMakeRays) {
    const vec3 d = pixel_direction(f, vec2(at) + 0.5);
    QryVisibilityRef(f.visibility).at[pixel] =
        uvec4(floatBitsToUint(d.x), floatBitsToUint(d.y), floatBitsToUint(d.z), 0u);
    return;
  }
  if (kPass == kQryBenchPrimary) {
    const vec3 ray = pixel_ray(f, vec2(at) + 0.5), d = unit(ray);
    const float t_min =
        kFromBeams
            ? QryFloats(f.beams).at[(at.y / kQryBeamTileHigh) * qry_tiles_across(f.width) + at.x / kQryBeamTileWide] /
                  one_over_length(ray)
            : 0.0;
    const QryHit hit = qry_traverse(push.root, of(f.origin), d, t_min, 1e29, 0u);
    uvec4 visible = uvec4(floatBitsToUint(hit.t), 0u, 0u, min(hit.steps, 0xFFFFu) | (min(hit.sectors, 0xFFFFu) << 16));
    if (hit.t >= 0.0) {
      visible.y = uint(hit.voxel.x) | (uint(hit.voxel.y) << 14) | (hit.face << 27);
      visible.z = uint(hit.voxel.z) | (kQryStopAtBricks ? 0u : qry_material(push.root, hit.brick, hit.voxel) << 14);
    }
    QryVisibilityRef(f.visibility).at[pixel] = visible;
    return;
  }

  const uvec4 visible = QryVisibilityRef(f.visibility).at[pixel];
  const float t = uintBitsToFloat(visible.x);
  const uint face = visible.y >> 27;
  if (kPass == kQryBenchShade) {
    vec3 color = vec3(0.55, 0.7, 0.9);
    if (t >= 0.0) {
      const vec3 albedo = unpackUnorm4x8(QryPalette(push.root.palette).at[(visible.z >> 14) & 255u].rgba).rgb;
      const uint count = f.width * f.height;
      float open = 0.0;
      for (uint i = 0u; i < 4u; ++i) open += QryFloats(f.open).at[i * count + pixel];
      color = albedo * (0.25 * open * vec3(0.45, 0.55, 0.7) +
                        QryFloats(f.lit).at[pixel] * max(dot(normal_of(face), of(f.sun)), 0.0) * vec3(0.9, 0.8, 0.65));
    }
    QryPixels(f.picture).at[pixel] = packUnorm4x8(vec4(sqrt(clamp(color, 0.0, 1.0)), 1.0));
    return;
  }

  // Secondary rays start 1/64 voxel off the face that was entered. The other coordinates are strictly inside it.
  if (t < 0.0) return;
  const ivec3 voxel = ivec3(visible.y & 16383u, (visible.y >> 14) & 8191u, visible.z & 16383u) - kVoxelBias;
  const vec3 d = pixel_direction(f, vec2(at) + 0.5), low = vec3(voxel);
  vec3 o = vec3(fma(t, d.x, f.origin[0]), fma(t, d.y, f.origin[1]), fma(t, d.z, f.origin[2]));
  o = clamp(o, low + 1.0 / 256.0, low + (1.0 - 1.0 / 256.0));
  const float off = (face & 1u) != 0u ? 1.0 + 1.0 / 64.0 : -1.0 / 64.0;
  if (face < 2u) o.x = low.x + off;
  else if (face < 4u) o.y = low.y + off;
  else o.z = low.z + off;
  // The addresses of the results are read only now, so that they take no registers before.
  QryBenchFrameRef late = QryBenchFrameRef(push.frame);
  if (kPass == kQryBenchShadow) {
    const bool occluded = qry_occluded(push.root, o, qry_ray_setup_of(push.root, push.to_sun), 1e29);
    QryFloats(late.frame.lit).at[pixel] = occluded ? 0.0 : 1.0;
  } else {
    for (uint i = 0u; i < kRaysAThread; ++i) {
      const uint ray = gl_GlobalInvocationID.z * kRaysAThread + i;
      const bool occluded =
          qry_occluded(push.root, o, qry_ray_setup(push.root, ambient_direction(pixel, ray, face)), f.reach);
      QryFloats(late.frame.open).at[ray * push.pixels + pixel] = occluded ? 0.0 : 1.0;
    }
  }
}
