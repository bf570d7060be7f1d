// SPDX-License-Identifier: Apache-2.0
// transmission.glsl - light in transparent voxels: Fresnel's formulae, and the path from the entry to the exit. Include
// it after world.glsl.
//
// Voxels' faces are at right angles. So a reflection inside only changes the sign of a direction's component. The share
// of light that each axis' faces reflect is therefore the same along the whole path. Light that entered on one axis
// cannot leave on another if the index is above 1.41, because it is totally reflected there.
#ifndef QRY_TRANSMISSION_GLSL
#define QRY_TRANSMISSION_GLSL

const uint kTransmissionSteps = 2048u;  // the most voxels through which light is followed

// The share of unpolarised light that an interface reflects at this cosine. `ratio` is index beyond / index here. A
// result of 1 means total reflection.
float qry_dielectric(float cosine, float ratio) {
  const float c = clamp(cosine, 0.0, 1.0), g_square = ratio * ratio - 1.0 + c * c;
  if (g_square <= 0.0) return 1.0;
  const float g = sqrt(g_square), a = (g - c) / (g + c), b = (c * (g + c) - 1.0) / (c * (g - c) + 1.0);
  return 0.5 * a * a * (1.0 + b * b);
}

float qry_refraction(const QryMaterial m) { return clamp(m.ior, 1.0, 4.0); }

// The share of light that a material of this colour lets pass: at the face of entry, and on a path inside (A. Beer,
// 1852).
vec3 qry_interface_tint(vec3 albedo) { return pow(max(albedo, vec3(0.01)), vec3(0.1)); }
vec3 qry_absorption(vec3 albedo, float path_length) { return pow(max(albedo, vec3(0.01)), vec3(0.06 * path_length)); }

struct QryTransmissionPath {
  bool ends;  // false: it was given up
  float path_length;
  vec3 point;      // where it ends, on the face of the material's last voxel
  vec3 d;          // direction there, still inside
  bool reflected;  // it was reflected at least once
  uint axis;       // of the face
  uint material;   // beyond the face; 0: air
  ivec3 voxel;     // beyond the face
  uint brick;      // beyond the face; kQryReservedValue: none
};

// Follows light from the point p inside a voxel of material `same` along d. The path ends at another material, or at
// air into which the light leaves. The number `random` in 0..1 decides whether it leaves. If it is above 1, light goes
// straight on and the faces reflect nothing.
QryTransmissionPath qry_trace_transmission(const QryWorldRoot root, vec3 p, vec3 d, uint same, float index,
                                           float random) {
  QryTransmissionPath w;
  w.ends = w.reflected = false;
  w.material = same;
  const vec3 size = max(abs(d), vec3(1e-12)), inv = 1.0 / size;
  const vec3 reflectance = vec3(qry_dielectric(size.x, 1.0 / index), qry_dielectric(size.y, 1.0 / index),
                                qry_dielectric(size.z, 1.0 / index));
  bvec3 rising = greaterThanEqual(d, vec3(0.0));
  ivec3 v = ivec3(floor(p)) + kVoxelBias;
  vec3 next = mix(p - floor(p), 1.0 - (p - floor(p)), rising) * inv;
  uint key = qry_key_of(v), brick = qry_brick_at(root, v);
  w.path_length = 0.0;
  for (uint n = 0u; n < kTransmissionSteps && !w.ends; ++n) {
    w.axis = next.x <= next.y && next.x <= next.z ? 0u : (next.y <= next.z ? 1u : 2u);
    w.path_length = next[w.axis];
    w.voxel = v;
    w.voxel[w.axis] += rising[w.axis] ? 1 : -1;
    w.brick = kQryReservedValue;
    if (all(greaterThanEqual(w.voxel, ivec3(0))) && all(lessThan(w.voxel, kVoxelExtent)))
      w.brick = qry_key_of(w.voxel) == key ? brick : qry_brick_at(root, w.voxel);
    w.material = w.brick == kQryReservedValue ? 0u : qry_material(root, w.brick, w.voxel);
    const float back = reflectance[w.axis];
    if (w.material == same) {
      v = w.voxel;
      key = qry_key_of(v);
      brick = w.brick;
      next[w.axis] += inv[w.axis];
    } else if (w.material == 0u && random < back) {
      random /= back;
      rising[w.axis] = !rising[w.axis];
      next[w.axis] += inv[w.axis];
      w.reflected = true;
    } else {
      w.ends = true;
    }
  }
  const vec3 left = clamp((next - w.path_length) * size, 0.0, 1.0), low = vec3(v - kVoxelBias);
  w.point = low + clamp(mix(left, 1.0 - left, rising), 1.0 / 256.0, 255.0 / 256.0);
  w.point[w.axis] = low[w.axis] + (rising[w.axis] ? 1.0 : 0.0);
  w.d = mix(-abs(d), abs(d), rising);
  return w;
}

#endif
