// SPDX-License-Identifier: Apache-2.0
// environment.glsl - the surroundings of a picture by its QryEnvironment: the light from directions in which nothing is
// hit, and the air between.
#ifndef QRY_ENVIRONMENT_GLSL
#define QRY_ENVIRONMENT_GLSL

#include "shaders/shared/environment.h"
#include "shaders/library/color.glsl"
#include "shaders/library/sky.glsl"

const float kExposure = 0.45;  // radiance of a sunlit white wall is about 2; the curve's middle is below 1

// Irradiance of a surface that faces the sun, over pi.
vec3 qry_sun_light(const QryEnvironment environment) {
  return environment.sun_strength * (environment.sky == kQrySkyUniform ? vec3(1.0) : qry_array3(environment.sun_color));
}
// The environment as reflections and refractions show it, without the sun's disc.
vec3 qry_environment(const QryEnvironment environment, vec3 d) {
  return environment.sky_strength *
         (environment.sky == kQrySkyUniform ? qry_array3(environment.sky_color) : qry_sky_diffuse(environment, d));
}
// The environment as light on a surface.
vec3 qry_environment_light(const QryEnvironment environment, vec3 d) {
  return environment.sky_strength *
         (environment.sky == kQrySkyUniform ? qry_array3(environment.sky_color) : qry_sky_light(environment, d));
}
// The environment as the eye sees it.
vec3 qry_backdrop(const QryEnvironment environment, vec3 d) {
  if (environment.sky == kQrySkyUniform) return environment.sky_strength * qry_array3(environment.sky_color);
  return qry_sky(environment, d) * mix(1.0, environment.sky_strength, 0.5);
}

vec3 qry_displayed(const QryEnvironment environment, vec3 radiance) {
  const vec3 c = radiance * environment.exposure * kExposure;
  return environment.tone == kQryToneFilmic ? qry_filmic(c) : clamp(c, 0.0, 1.0);
}

// Optical depth of the fog along o + s*d, s in [0, t]. The fog thins out upwards as exp(-height/fog_height) and ends at
// fog_base.
float qry_fog_until(const QryEnvironment environment, vec3 o, vec3 d, float t) {
  if (environment.fog_density <= 0.0) return 0.0;
  float from = 0.0, to = min(t, 1e6);
  const float above = o.y - environment.fog_base;
  if (above < 0.0) {
    if (d.y <= 0.0) return 0.0;
    from = -above / d.y;
  } else if (d.y < 0.0) {
    to = min(to, above / -d.y);
  }
  if (to <= from) return 0.0;
  const float k = d.y / environment.fog_height,
              start = environment.fog_density * exp(-(above + from * d.y) / environment.fog_height),
              path_length = to - from;
  return abs(k * path_length) < 1e-4 ? start * path_length : start * (1.0 - exp(-k * path_length)) / k;
}
// The distance along the ray at which that depth is reached; 1e30 if it is beyond the fog's end.
float qry_fog_reach(const QryEnvironment environment, vec3 o, vec3 d, float depth) {
  float from = 0.0;
  const float above = o.y - environment.fog_base;
  if (above < 0.0) {
    if (d.y <= 0.0) return 1e30;
    from = -above / d.y;
  }
  const float k = d.y / environment.fog_height,
              start = environment.fog_density * exp(-(above + from * d.y) / environment.fog_height);
  const float share = 1.0 - depth * k / start;
  if (share <= 0.0) return 1e30;
  const float path_length = abs(k) < 1e-7 ? depth / start : -log(share) / k;
  return from + path_length;
}

#endif
