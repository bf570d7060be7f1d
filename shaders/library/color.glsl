// SPDX-License-Identifier: Apache-2.0
// color.glsl - converts sRGB to linear light and back, and has the tone curve from radiance to a display's range.
#ifndef QRY_COLOR_GLSL
#define QRY_COLOR_GLSL

vec3 qry_from_srgb(vec3 c) {
  return mix(c / 12.92, pow((c + 0.055) / 1.055, vec3(2.4)), greaterThan(c, vec3(0.04045)));
}
vec3 qry_to_srgb(vec3 c) {
  return mix(c * 12.92, 1.055 * pow(max(c, vec3(0.0)), vec3(1.0 / 2.4)) - 0.055, greaterThan(c, vec3(0.0031308)));
}
// The curve of K. Narkowicz, "ACES Filmic Tone Mapping Curve", 2015.
vec3 qry_filmic(vec3 c) { return clamp(c * (2.51 * c + 0.03) / (c * (2.43 * c + 0.59) + 0.14), 0.0, 1.0); }

#endif
