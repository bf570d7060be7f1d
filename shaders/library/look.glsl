// SPDX-License-Identifier: Apache-2.0
// look.glsl - a picture's surroundings as its QryLook says: what light comes from where nothing is hit, and the air between.
#ifndef QRY_LOOK_GLSL
#define QRY_LOOK_GLSL

#include "shaders/shared/look.h"
#include "shaders/library/color.glsl"
#include "shaders/library/sky.glsl"

const float kExposure = 0.45;  // radiance of a sunlit white wall is about 2; the curve's middle lies below 1

// Irradiance of a surface that faces the sun, over pi.
vec3 qry_sun_light(const QryLook look) {
  return look.sun_strength * (look.sky == kQrySkyUniform ? vec3(1.0) : qry_array3(look.sun_color));
}
// As it looks in a mirror or through glass, without the sun's disc.
vec3 qry_surroundings(const QryLook look, vec3 d) {
  return look.sky_strength * (look.sky == kQrySkyUniform ? qry_array3(look.sky_color) : qry_sky_diffuse(look, d));
}
// As light on a surface.
vec3 qry_surrounding_light(const QryLook look, vec3 d) {
  return look.sky_strength * (look.sky == kQrySkyUniform ? qry_array3(look.sky_color) : qry_sky_light(look, d));
}
// As the eye sees it.
vec3 qry_backdrop(const QryLook look, vec3 d) {
  if (look.sky == kQrySkyUniform) return look.sky_strength * qry_array3(look.sky_color);
  return qry_sky(look, d) * mix(1.0, look.sky_strength, 0.5);
}

vec3 qry_displayed(const QryLook look, vec3 radiance) {
  const vec3 c = radiance * look.exposure * kExposure;
  return look.tone == kQryToneFilmic ? qry_filmic(c) : clamp(c, 0.0, 1.0);
}

// Optical depth of the fog along o + s*d, s in [0, t]; it thins out upwards as exp(-height/fog_height) and ends at fog_base.
float qry_fog_until(const QryLook look, vec3 o, vec3 d, float t) {
  if (look.fog_density <= 0.0) return 0.0;
  float from = 0.0, to = min(t, 1e6);
  const float above = o.y - look.fog_base;
  if (above < 0.0) {
    if (d.y <= 0.0) return 0.0;
    from = -above / d.y;
  } else if (d.y < 0.0) {
    to = min(to, above / -d.y);
  }
  if (to <= from) return 0.0;
  const float k = d.y / look.fog_height, start = look.fog_density * exp(-(above + from * d.y) / look.fog_height), way = to - from;
  return abs(k * way) < 1e-4 ? start * way : start * (1.0 - exp(-k * way)) / k;
}
// Where along the ray that depth is reached; 1e30 beyond the fog's end.
float qry_fog_reach(const QryLook look, vec3 o, vec3 d, float depth) {
  float from = 0.0;
  const float above = o.y - look.fog_base;
  if (above < 0.0) {
    if (d.y <= 0.0) return 1e30;
    from = -above / d.y;
  }
  const float k = d.y / look.fog_height, start = look.fog_density * exp(-(above + from * d.y) / look.fog_height);
  const float share = 1.0 - depth * k / start;
  if (share <= 0.0) return 1e30;
  const float way = abs(k) < 1e-7 ? depth / start : -log(share) / k;
  return from + way;
}

#endif
