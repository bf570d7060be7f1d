// SPDX-License-Identifier: Apache-2.0
// sampling.glsl - numbers that fill the unit square evenly: two dimensions of I. Sobol's sequence (1967). They are
// shuffled and scrambled after A. Owen (1995), by the hashes of B. Burley, "Practical Hash-based Owen Scrambling",
// 2020. Further dimensions are further pairs, each with its own seed. The sequence's second dimension is a Taylor shift
// by one over GF(2). It is computed by halves here instead of bit by bit.
#ifndef QRY_SAMPLING_GLSL
#define QRY_SAMPLING_GLSL

const float kPi = 3.14159265358979;

uint qry_scrambled(uint x, uint seed) {  // Owen scrambling of the bits of x, from the highest one on
  x = bitfieldReverse(x) + seed;
  x ^= x * 0x6c50b47cu;
  x ^= x * 0xb82f1e52u;
  x ^= x * 0xc7afe638u;
  x ^= x * 0x8d22f6e6u;
  return bitfieldReverse(x);
}

uint qry_combined(uint seed, uint v) { return qry_mix(seed ^ (v * 0x9E3779B9u + 0x7F4A7C15u)); }

// The pair `pair` of sample `index` of the pixel with this seed; both in [0, 1).
vec2 qry_sample(uint index, uint pixel_seed, uint pair) {
  const uint seed = qry_combined(pixel_seed, pair);
  const uint shuffled = qry_scrambled(index, seed);
  uint y = shuffled;
  y ^= y >> 16;
  y ^= (y & 0xFF00FF00u) >> 8;
  y ^= (y & 0xF0F0F0F0u) >> 4;
  y ^= (y & 0xCCCCCCCCu) >> 2;
  y ^= (y & 0xAAAAAAAAu) >> 1;
  const uvec2 bits = uvec2(qry_scrambled(bitfieldReverse(shuffled), seed ^ 0xA511E9B3u),
                           qry_scrambled(bitfieldReverse(y), seed ^ 0x63D83595u));
  return vec2(bits >> 8) / 16777216.0;
}

// A matrix whose columns are two sides and n. T. Duff et al., "Building an Orthonormal Basis, Revisited", 2017.
mat3 qry_frame_about(vec3 n) {
  const float s = n.z >= 0.0 ? 1.0 : -1.0, a = -1.0 / (s + n.z), b = n.x * n.y * a;
  return mat3(vec3(1.0 + s * n.x * n.x * a, s * b, -s * n.x), vec3(b, s + n.y * n.y * a, -n.y), n);
}

vec2 qry_disc(vec2 u) {
  const float r = sqrt(u.x), phi = 2.0 * kPi * u.y;
  return r * vec2(cos(phi), sin(phi));
}

// A cosine-weighted direction about n.
vec3 qry_cosine_about(vec3 n, vec2 u) {
  const vec2 p = qry_disc(u);
  return normalize(qry_frame_about(n) * vec3(p, sqrt(max(1e-6, 1.0 - u.x))));
}

// A direction evenly distributed within `radius` radians (small) of d.
vec3 qry_cone_about(vec3 d, float radius, vec2 u) {
  return normalize(qry_frame_about(d) * vec3(radius * qry_disc(u), 1.0));
}

// Offset in pixels, distributed as the tent filter of radius 1.
vec2 qry_tent(vec2 u) { return mix(1.0 - sqrt(2.0 - 2.0 * u), sqrt(2.0 * u) - 1.0, lessThan(u, vec2(0.5))); }

#endif
