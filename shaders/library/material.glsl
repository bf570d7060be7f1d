// SPDX-License-Identifier: Apache-2.0
// material.glsl - how a voxel's face reflects light: colours, Fresnel, a rough reflection over a diffuse base.
//
// A dielectric's coat fades out with roughness: roughness 1 is purely diffuse, as chalk. A metal has no diffuse part.
// Microfacets: B. Walter et al., "Microfacet Models for Refraction", 2007 (GGX). Facets drawn as seen from v: E. Heitz,
// "Sampling the GGX Distribution of Visible Normals", 2018. Fresnel: C. Schlick, 1994.
#ifndef QRY_MATERIAL_GLSL
#define QRY_MATERIAL_GLSL

#include "shaders/library/color.glsl"

vec3 qry_face_normal(uint face) {
  vec3 n = vec3(0.0);
  n[face >> 1] = (face & 1u) != 0u ? 1.0 : -1.0;
  return n;
}

// The point o + t*d, clamped to the voxel's face and moved 1/64 voxel off it. So no ray from there starts in its own
// voxel.
vec3 qry_point_on(vec3 o, vec3 d, float t, ivec3 biased_voxel, uint face) {
  const vec3 low = vec3(biased_voxel - kVoxelBias);
  vec3 p = clamp(o + t * d, low + 1.0 / 256.0, low + 255.0 / 256.0);
  const uint axis = face >> 1;
  p[axis] = (face & 1u) != 0u ? low[axis] + 1.0 + 1.0 / 64.0 : low[axis] - 1.0 / 64.0;
  return p;
}

float qry_fresnel(float f0, float cosine) {
  const float x = clamp(1.0 - cosine, 0.0, 1.0);
  return f0 + (1.0 - f0) * x * x * x * x * x;
}

struct QrySurface {
  vec3 albedo;  // linear
  float alpha;  // GGX
  float metalness;
  float coat;  // share of light that the dielectric coat reflects in this view
};

QrySurface qry_surface(QryMaterial m, float cos_view, float roughest) {
  QrySurface s;
  s.albedo = qry_from_srgb(unpackUnorm4x8(m.rgba).rgb);
  const float roughness = clamp(max(m.roughness, roughest), 0.0, 1.0);
  s.alpha = max(roughness * roughness, 0.001);
  s.metalness = clamp(m.metalness, 0.0, 1.0);
  s.coat = (1.0 - roughness) * qry_fresnel(0.04, cos_view);
  return s;
}

float qry_ggx_side(float alpha, float cosine) {  // Smith's shadowing for one direction
  const float a2 = alpha * alpha, c2 = max(cosine * cosine, 1e-6);
  return 2.0 / (1.0 + sqrt(1.0 + a2 * (1.0 - c2) / c2));
}

// The light reflected from l to v, with the cosine, per unit of irradiance perpendicular to l.
vec3 qry_reflected_light(const QrySurface s, vec3 n, vec3 v, vec3 l) {
  const vec3 h = normalize(v + l);
  const float nv = max(dot(n, v), 1e-3), nl = max(dot(n, l), 0.0), nh = max(dot(n, h), 0.0), vh = max(dot(v, h), 0.0);
  const float a2 = s.alpha * s.alpha, q = nh * nh * (a2 - 1.0) + 1.0;
  const float facets = a2 / (kPi * q * q) * qry_ggx_side(s.alpha, nv) * qry_ggx_side(s.alpha, nl) / (4.0 * nv);
  const vec3 metal = s.albedo + (1.0 - s.albedo) * pow(clamp(1.0 - vh, 0.0, 1.0), 5.0);
  return facets * ((1.0 - s.metalness) * s.coat + s.metalness * metal);
}

// Draws a facet's normal about n, as seen from v.
vec3 qry_facet(vec3 n, vec3 v, float alpha, vec2 u) {
  const mat3 about = qry_frame_about(n);
  const vec3 view = transpose(about) * v;
  const vec3 stretched = normalize(vec3(alpha * view.xy, max(view.z, 1e-4)));
  const float across = dot(stretched.xy, stretched.xy);
  const vec3 side = across > 1e-9 ? vec3(-stretched.y, stretched.x, 0.0) / sqrt(across) : vec3(1.0, 0.0, 0.0);
  const vec3 other = cross(stretched, side);
  vec2 p = qry_disc(u);
  const float s = 0.5 * (1.0 + stretched.z);
  p.y = (1.0 - s) * sqrt(max(0.0, 1.0 - p.x * p.x)) + s * p.y;
  const vec3 h = p.x * side + p.y * other + sqrt(max(0.0, 1.0 - dot(p, p))) * stretched;
  return about * normalize(vec3(alpha * h.xy, max(1e-4, h.z)));
}

#endif
