// surface.glsl - what a visible voxel is made of, where rays leave it, and the numbers that spread them: shared by the passes that light it.
#ifndef QRY_SURFACE_GLSL
#define QRY_SURFACE_GLSL

#include "shaders/traverse.glsl"
#include "shaders/frame.h"
#include "shaders/frame_access.glsl"
#include "shaders/ramp.glsl"

const float kPi = 3.14159265;

vec3 from_srgb(vec3 c) { return mix(c / 12.92, pow((c + 0.055) / 1.055, vec3(2.4)), greaterThan(c, vec3(0.04045))); }

vec3 face_normal(uint face) {
  vec3 n = vec3(0.0);
  n[face >> 1] = (face & 1u) != 0u ? 1.0 : -1.0;
  return n;
}

struct Surface {
  vec3 point, normal, albedo;
  float roughness, metalness, emission, transparency, ior;
  uint material;
};

// Where rays leave the voxel: the hit point kept inside the face, then 1/64 voxel off it, so that none starts inside its own voxel.
vec3 leaving_point(vec3 o, vec3 d, float t, ivec3 voxel, uint face) {
  const vec3 low = vec3(voxel - kVoxelBias);
  vec3 p = clamp(o + t * d, low + 1.0 / 256.0, low + 255.0 / 256.0);
  const uint axis = face >> 1;
  p[axis] = (face & 1u) != 0u ? low[axis] + 1.0 + 1.0 / 64.0 : low[axis] - 1.0 / 64.0;
  return p;
}

Surface surface_of(const QryWorldRoot root, vec3 o, vec3 d, float t, ivec3 voxel, uint face, uint material) {
  const QryMaterial m = QryPalette(root.palette).at[material];
  Surface s;
  s.normal = face_normal(face);
  s.point = leaving_point(o, d, t, voxel, face);
  s.albedo = from_srgb(unpackUnorm4x8(m.rgba).rgb);
  s.roughness = m.roughness;
  s.metalness = m.metalness;
  s.emission = m.emission;
  s.transparency = m.transparency;
  s.ior = m.ior;
  s.material = material;
  return s;
}

// Glass: how much counts as see-through, and where the ray on goes on inside.
bool lets_through(float transparency) { return transparency > 0.01; }
vec3 point_inside(vec3 point, vec3 normal) { return point - normal * (1.0 / 32.0); }

// Two numbers in 0..1 for a pixel's rays. Interleaved gradient noise (J. Jimenez, 2014) spreads the error over neighbouring pixels; who has
// several rays turns them by the plastic number's fractions (M. Roberts, "R2", 2018).
vec2 pixel_noise(const QryFrame frame, uvec2 pixel, uint sample_index) {
  const vec2 p = vec2(pixel) + 5.588238 * float((frame.seed * 16u + sample_index) & 63u);
  const float noise = fract(52.9829189 * fract(dot(p, vec2(0.06711056, 0.00583715))));
  return vec2(noise, float(qry_mix(pixel.x + pixel.y * 65536u + (frame.seed * 16u + sample_index) * 0x9E3779B9u) >> 8) / 16777216.0);
}

#endif
