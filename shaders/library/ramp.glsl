// SPDX-License-Identifier: Apache-2.0
// ramp.glsl - the colours of numbers in the debug views.
#ifndef QRY_RAMP_GLSL
#define QRY_RAMP_GLSL

// 0..1: black-blue, blue, teal, green, yellow, orange, red, nearly white. Lightness rises, so it is readable in grey
// too.
vec3 qry_ramp(float x) {
  const vec3 stops[8] =
      vec3[8](vec3(0.05, 0.03, 0.20), vec3(0.12, 0.20, 0.62), vec3(0.05, 0.46, 0.63), vec3(0.12, 0.62, 0.38),
              vec3(0.56, 0.75, 0.18), vec3(0.95, 0.78, 0.15), vec3(0.97, 0.45, 0.15), vec3(1.0, 0.92, 0.88));
  const float at = clamp(x, 0.0, 1.0) * 7.0;
  const int i = min(int(at), 6);
  return mix(stops[i], stops[i + 1], at - float(i));
}

// A colour for the sectors read in a look-up: 1 blue, 2 green, 3 yellow, 4 orange, more from red to white at 16.
vec3 qry_depth_color(uint sectors) {
  if (sectors == 0u) return vec3(0.25);
  if (sectors == 1u) return vec3(0.13, 0.34, 0.78);
  if (sectors == 2u) return vec3(0.16, 0.66, 0.36);
  if (sectors == 3u) return vec3(0.96, 0.82, 0.20);
  if (sectors == 4u) return vec3(0.95, 0.52, 0.15);
  return mix(vec3(0.85, 0.12, 0.12), vec3(1.0, 0.85, 0.85), clamp(float(sectors - 5u) / 11.0, 0.0, 1.0));
}

// A light colour for each brick, different from its neighbours' colours.
vec3 qry_label_color(uint label) {
  const uint h = qry_mix(label * 0x9E3779B9u + 1u);
  const float hue = float(h & 1023u) / 1024.0, value = 0.65 + 0.3 * float((h >> 10) & 255u) / 255.0;
  const vec3 rgb = clamp(abs(fract(vec3(hue) + vec3(0.0, 2.0 / 3.0, 1.0 / 3.0)) * 6.0 - 3.0) - 1.0, 0.0, 1.0);
  return value * mix(vec3(1.0), rgb, 0.55);
}

#endif
