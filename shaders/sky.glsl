// sky.glsl - what lies beyond the world: sky, sun, the ground's haze below the horizon. An invention that looks pleasant, not a
// measured atmosphere: the sun's height alone decides day, evening and night.
#ifndef QRY_SKY_GLSL
#define QRY_SKY_GLSL

vec3 qry_sun_color(vec3 sun) {
  // Low sun: longer way through air, less blue.
  const float height = clamp(sun.y, 0.0, 1.0);
  const vec3 thickness = vec3(0.06, 0.18, 0.42) / (height + 0.12);
  return exp(-thickness) * smoothstep(-0.12, 0.08, sun.y) * 1.15;
}

// Radiance from direction d, without the sun's disc.
vec3 qry_sky_diffuse(vec3 d, vec3 sun) {
  const float day = smoothstep(-0.15, 0.25, sun.y), evening = exp(-18.0 * sun.y * sun.y) * smoothstep(-0.3, -0.02, sun.y);
  const vec3 zenith = mix(vec3(0.012, 0.018, 0.045), vec3(0.08, 0.30, 1.05), day);
  vec3 horizon = mix(vec3(0.035, 0.045, 0.09), vec3(0.60, 0.92, 1.40), day);
  const vec2 flat_d = d.xz, flat_sun = sun.xz;
  const float toward = 0.5 + 0.5 * dot(flat_d, flat_sun) / max(length(flat_d) * length(flat_sun), 1e-4);
  horizon = mix(horizon, vec3(1.0, 0.48, 0.20), evening * (0.25 + 0.65 * toward * toward));
  const float up = max(d.y, 0.0), down = max(-d.y, 0.0);
  const vec3 above = mix(horizon, zenith, 1.0 - exp(-4.0 * up));
  // Below the horizon: hazy ground.
  const vec3 soil = vec3(0.62, 0.63, 0.66) * (0.12 + 0.88 * day) + 0.25 * evening * vec3(0.5, 0.28, 0.16);
  const vec3 below = mix(horizon, soil, 1.0 - exp(-3.0 * down));
  const float close_to_sun = max(dot(d, sun), 0.0);
  const vec3 glow = qry_sun_color(sun) * (0.22 * pow(close_to_sun, 8.0) * (0.25 + evening) + 0.35 * pow(close_to_sun, 64.0));
  return (d.y < 0.0 ? below : above) + glow * exp(-6.0 * down);
}

// The same as light on a surface: less blue than it looks, as eyes and cameras correct it.
vec3 qry_sky_light(vec3 d, vec3 sun) {
  const vec3 c = qry_sky_diffuse(d, sun);
  return mix(vec3(dot(c, vec3(0.30, 0.55, 0.15))), c, 0.45) * 1.6;
}

vec3 qry_sky(vec3 d, vec3 sun) {
  const float disc = smoothstep(0.99988, 0.99994, dot(d, sun)) * smoothstep(-0.02, 0.0, d.y);
  return qry_sky_diffuse(d, sun) + disc * 12.0 * qry_sun_color(sun);
}

#endif
