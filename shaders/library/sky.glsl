// SPDX-License-Identifier: Apache-2.0
// sky.glsl - the light from beyond the world: sky, sun, the ground's haze below the horizon. It is invented to look
// pleasant and is no measured atmosphere. Only the sun's height decides day, evening and night.
#ifndef QRY_SKY_GLSL
#define QRY_SKY_GLSL

#extension GL_EXT_control_flow_attributes : require

vec3 qry_array3(const float a[3]) { return vec3(a[0], a[1], a[2]); }

// Radiance from direction d, without the sun's disc.
vec3 qry_sky_diffuse(const QryEnvironment environment, vec3 d) {
  const vec3 sun = qry_array3(environment.sun_direction), red = qry_array3(environment.red);
  vec3 horizon = qry_array3(environment.horizon);
  const vec2 flat_d = d.xz, flat_sun = sun.xz;
  const float toward = 0.5 + 0.5 * dot(flat_d, flat_sun) / max(length(flat_d) * length(flat_sun), 1e-4);
  const float up = max(d.y, 0.0), down = max(-d.y, 0.0);
  const float reddens = environment.evening * (0.12 + 0.80 * toward * toward * toward);
  const vec3 above =
      mix(mix(horizon, qry_array3(environment.zenith), 1.0 - exp(-4.0 * up)), red, reddens * exp(-5.5 * up));
  horizon = mix(horizon, red, reddens);
  // Below the horizon: hazy ground.
  const vec3 soil =
      mix(vec3(0.62, 0.63, 0.66) * (0.12 + 0.88 * environment.day), 0.3 * horizon, 0.85 * environment.evening);
  const vec3 below = mix(horizon, soil, 1.0 - exp(-3.0 * down));
  const float close_to_sun = max(dot(d, sun), 0.0);
  const vec3 glow = qry_array3(environment.sun_color) *
                    (0.22 * pow(close_to_sun, 8.0) * (0.25 + environment.evening) + 0.35 * pow(close_to_sun, 64.0));
  return (d.y < 0.0 ? below : above) + glow * exp(-6.0 * down);
}

// The same sky as light on a surface. It is less blue than the sky looks, because eyes and cameras correct for that.
vec3 qry_sky_light(const QryEnvironment environment, vec3 d) {
  const vec3 c = qry_sky_diffuse(environment, d);
  return mix(vec3(dot(c, vec3(0.30, 0.55, 0.15))), c, 0.45) * 1.6;
}

// Value noise on the plane, 0..1.
float qry_cloud_noise(vec2 p) {
  const vec2 cell = floor(p), f = p - cell, t = f * f * (3.0 - 2.0 * f);
  const uint x = uint(int(cell.x)), y = uint(int(cell.y));
  const uint row = qry_mix(y * 0x9E3779B9u), next_row = qry_mix((y + 1u) * 0x9E3779B9u);
  const vec4 corner =
      vec4(uvec4(qry_mix(x ^ row), qry_mix((x + 1u) ^ row), qry_mix(x ^ next_row), qry_mix((x + 1u) ^ next_row)) >> 8) /
      16777216.0;
  return mix(mix(corner.x, corner.y, t.x), mix(corner.z, corner.w, t.x), t.y);
}

// Thin clouds on a high layer: their light, and in w the share of the sky that they hide.
vec4 qry_clouds(const QryEnvironment environment, vec3 d) {
  if (d.y < 0.015) return vec4(0.0);
  vec2 p = d.xz / (d.y + 0.10) * vec2(1.1, 2.3) + vec2(7.3, 1.9);
  float sum = 0.0, height = 0.5;
  [[dont_unroll]] for (int octave = 0; octave < 5; ++octave) {
    sum += height * qry_cloud_noise(p);
    p = mat2(1.52, 1.22, -1.22, 1.52) * p + 11.7;
    height *= 0.5;
  }
  const float cover = smoothstep(0.44, 0.80, sum) * smoothstep(0.015, 0.20, d.y);
  const vec3 sun = qry_array3(environment.sun_direction);
  const float toward = max(dot(d, sun), 0.0);
  // A low sun lights them from below and shines through them.
  const vec3 lit = exp(-vec3(0.03, 0.10, 0.19) / (clamp(sun.y, 0.0, 1.0) + 0.10)) * smoothstep(-0.20, 0.05, sun.y);
  const vec3 light = 1.15 * lit * (0.55 + 0.5 * pow(toward, 3.0) + 1.6 * pow(toward, 24.0)) +
                     vec3(0.22, 0.27, 0.36) * (0.08 + 0.92 * environment.day) * (1.2 - 0.5 * cover);
  return vec4(light, 0.80 * cover);
}

// Stars are points of light in a grid of directions. They appear only if the sky is dark.
vec3 qry_stars(vec3 d, vec3 sun) {
  const float dark = (1.0 - smoothstep(-0.22, -0.06, sun.y)) * smoothstep(0.0, 0.25, d.y);
  if (dark <= 0.0) return vec3(0.0);
  const vec3 at = d * 90.0, cell = floor(at), inside = at - cell - 0.5;
  const uvec3 c = uvec3(ivec3(cell));
  const uint h = qry_mix(c.x ^ qry_mix(c.y ^ qry_mix(c.z * 0x9E3779B9u)));
  if ((h & 63u) != 0u) return vec3(0.0);
  const float bright = float((h >> 8) & 255u) / 255.0, warm = float((h >> 16) & 255u) / 255.0;
  return dark * (0.15 + 1.1 * bright * bright * bright) * exp(-dot(inside, inside) * 90.0) *
         mix(vec3(0.75, 0.85, 1.1), vec3(1.1, 0.95, 0.8), warm);
}

// The sky as the eye sees it, with clouds, stars and the sun's disc.
vec3 qry_sky(const QryEnvironment environment, vec3 d) {
  const vec3 sun = qry_array3(environment.sun_direction);
  const vec4 clouds = qry_clouds(environment, d);
  const float disc = smoothstep(0.99988, 0.99994, dot(d, sun)) * smoothstep(-0.02, 0.0, d.y);
  const vec3 open =
      qry_sky_diffuse(environment, d) + disc * 12.0 * qry_array3(environment.sun_color) + qry_stars(d, sun);
  return mix(open, clouds.rgb, clouds.a);
}

#endif
