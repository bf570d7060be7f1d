// SPDX-License-Identifier: Apache-2.0
// texturing.hpp - the colour of a triangle at a voxel: the same code for host threads and CUDA, which must agree bit
// for bit.
//
// Results that are summed or compared are integers. The geometry uses IEEE double arithmetic, in which every operation
// is rounded on its own: the files that include this are compiled without fused multiply-adds (-ffp-contract=off,
// -fmad=false), and only + - * / sqrt and floor are used, which both sides round correctly. Tables that need pow() are
// made on the host. voxelize/color.hpp owns the data of the views on the host, voxelize/cuda.cu on a device.
#pragma once

#include <cmath>
#include <cstdint>

#include "hashgrid/pairs/view.hpp"
#include "voxel/bricks/coords.hpp"
#include "voxel/voxelize/mesh.hpp"
#include "voxel/voxelize/overlap.hpp"

namespace quarry::voxelize_detail {

constexpr int kMaxLevels = 12;

// The colour and material of a surface at a point, linear: 16 bits for colours and glow, 8 for the rest.
struct SurfaceColor {
  uint32_t r = 0, g = 0, b = 0;                 // 0..65535
  uint32_t a = 255, rough = 255, metal = 0;     // 0..255
  uint32_t glow_r = 0, glow_g = 0, glow_b = 0;  // 1/1024 of radiance, up to 64
};

// The same in the palette's terms: sRGB bytes and one emission strength, in one word that can be sorted and counted.
//   r | g << 8 | b << 16 | a << 24 | rough << 32 | metal << 40 | emission << 48      emission e: strength 64 (e /
//   255)^2
using PackedMaterial = uint64_t;

struct SrgbTables {
  uint16_t to_linear[256];
  uint16_t upper[256];  // the largest linear value that rounds to this byte
};

// An image with its mip levels, each half as wide and high as the previous one (at least 1).
struct TextureView {
  uint32_t width = 0, height = 0, levels = 0;
  bool srgb = true;                   // colours; false: plain numbers
  const uint8_t* full = nullptr;      // level 0: RGBA bytes of the file
  const uint16_t* smaller = nullptr;  // levels 1, 2, ...: linear RGBA
  uint64_t offset[kMaxLevels] = {};   // of each level in `smaller`
};

struct PlaceView {
  uint64_t uvs = 0;  // the beginning of its set of coordinates
  double m[6] = {1, 0, 0, 0, 1, 0};
  Wrap wrap_u = Wrap::repeat, wrap_v = Wrap::repeat;
};

struct MaterialView {
  double base_color[4], roughness, metalness, emission[3];
  int32_t base_color_image, metal_rough_image, emission_image;  // -1: none
  PlaceView base_color_place, metal_rough_place, emission_place;
};

// Trivially copyable. The pointers are valid on the executor, host or device. Missing optional ones are null.
struct SurfaceView {
  const float* positions;
  const float* uvs;
  const uint8_t* colors;
  const uint32_t* indices;
  const uint32_t* triangle_material;
  const MaterialView* materials;
  const TextureView* textures;
  const SrgbTables* srgb;
};

QRY_HD inline double dot(const double a[3], const double b[3]) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
QRY_HD inline double larger(double a, double b) { return a < b ? b : a; }
// Clamps to [low, high]. NaN becomes `low`.
QRY_HD inline double within(double value, double low, double high) {
  return !(value > low) ? low : value > high ? high : value;
}
// NOLINTNEXTLINE(bugprone-incorrect-roundings): the same in kernels
QRY_HD inline uint32_t to_16(double linear) { return uint32_t(within(linear, 0.0, 1.0) * 65535 + 0.5); }
// NOLINTNEXTLINE(bugprone-incorrect-roundings): the same in kernels
QRY_HD inline uint32_t to_8(double value) { return uint32_t(within(value, 0.0, 1.0) * 255 + 0.5); }
// NOLINTNEXTLINE(bugprone-incorrect-roundings): the same in kernels
QRY_HD inline uint32_t to_glow(double value) { return uint32_t(within(value, 0.0, 64.0) * 1024 + 0.5); }

QRY_HD inline uint8_t to_srgb(const SrgbTables& table, uint32_t value) {
  uint32_t low = 0, high = 255;  // the first byte whose upper end is not below the value
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (table.upper[middle] < value) low = middle + 1;
    else high = middle;
  }
  return uint8_t(low);
}

// Weighted mean of surface colours. The sums are integers, so the order does not matter.
class SurfaceColorSum {
 public:
  QRY_HD void add(const SurfaceColor& l, uint64_t weight) {
    weight_ += weight;
    const uint32_t values[9] = {l.r, l.g, l.b, l.a, l.rough, l.metal, l.glow_r, l.glow_g, l.glow_b};
    for (int i = 0; i < 9; ++i) sum_[i] += values[i] * weight;
  }
  QRY_HD SurfaceColor mean() const {
    uint32_t m[9];
    for (int i = 0; i < 9; ++i) m[i] = uint32_t((sum_[i] + weight_ / 2) / (weight_ ? weight_ : 1));
    return {m[0], m[1], m[2], m[3], m[4], m[5], m[6], m[7], m[8]};
  }

 private:
  uint64_t weight_ = 0;
  uint64_t sum_[9] = {};
};

QRY_HD inline PackedMaterial pack(const SrgbTables& table, const SurfaceColor& color) {
  SurfaceColor l = color;
  double strength = 0;
  const uint32_t bright = l.glow_r > l.glow_g ? l.glow_r : l.glow_g, glow = bright > l.glow_b ? bright : l.glow_b;
  if (glow > 0) {
    // A palette's emission is in units of its colour. If the glow is brighter than the surface, its colour is used.
    const double luminance = 0.2126 * l.glow_r / 1024 + 0.7152 * l.glow_g / 1024 + 0.0722 * l.glow_b / 1024;
    const double base = (0.2126 * l.r + 0.7152 * l.g + 0.0722 * l.b) / 65535;
    if (luminance >= base) {
      strength = glow / 1024.0;
      l.r = uint32_t(uint64_t(l.glow_r) * 65535 / glow);
      l.g = uint32_t(uint64_t(l.glow_g) * 65535 / glow);
      l.b = uint32_t(uint64_t(l.glow_b) * 65535 / glow);
    } else {
      strength = luminance / base;
    }
  }
  const auto emission = uint64_t(std::floor(std::sqrt(within(strength, 0.0, 64.0) / 64.0) * 255 + 0.5));
  return uint64_t(to_srgb(table, l.r)) | uint64_t(to_srgb(table, l.g)) << 8 | uint64_t(to_srgb(table, l.b)) << 16 |
         uint64_t(l.a) << 24 | uint64_t(l.rough) << 32 | uint64_t(l.metal) << 40 | emission << 48;
}

// Wraps a texel coordinate.
QRY_HD inline uint32_t wrapped(int64_t i, uint32_t size, Wrap wrap) {
  const auto n = int64_t(size);
  if (wrap == Wrap::clamp) return uint32_t(i < 0 ? 0 : i >= n ? n - 1 : i);
  if (wrap == Wrap::repeat) {
    i %= n;
    return uint32_t(i < 0 ? i + n : i);
  }
  i %= 2 * n;
  if (i < 0) i += 2 * n;
  return uint32_t(i < n ? i : 2 * n - 1 - i);
}

// Samples bilinearly, in 1/256 texel steps, with 16 bits a channel.
QRY_HD inline void sample(const TextureView& t, const SrgbTables& table, const PlaceView& place, double u, double v,
                          int level, uint32_t out[4]) {
  const uint32_t l = uint32_t(level) < t.levels ? uint32_t(level) : t.levels - 1;
  const uint32_t width = t.width >> l ? t.width >> l : 1, height = t.height >> l ? t.height >> l : 1;
  // Coordinates far outside [0, 1] are clamped: the texture repeats or is clamped there, and a double has no digits
  // left that matter.
  const double limit = 1 << 20;
  const auto x = int64_t(std::floor(within(u, -limit, limit) * width * 256.0)) - 128;
  const auto y = int64_t(std::floor(within(v, -limit, limit) * height * 256.0)) - 128;
  const uint32_t xs[2] = {wrapped(x >> 8, width, place.wrap_u), wrapped((x >> 8) + 1, width, place.wrap_u)};
  const uint32_t ys[2] = {wrapped(y >> 8, height, place.wrap_v), wrapped((y >> 8) + 1, height, place.wrap_v)};
  const uint32_t fx[2] = {256 - uint32_t(x & 255), uint32_t(x & 255)},
                 fy[2] = {256 - uint32_t(y & 255), uint32_t(y & 255)};
  uint64_t sum[4] = {0, 0, 0, 0};
  for (int j = 0; j < 2; ++j)
    for (int i = 0; i < 2; ++i) {
      const uint64_t at = (uint64_t(ys[j]) * width + xs[i]) * 4;
      const uint64_t weight = uint64_t(fx[i]) * fy[j];
      for (int c = 0; c < 4; ++c)
        sum[c] += weight * (l > 0             ? t.smaller[t.offset[l] + at + uint64_t(c)]
                            : c < 3 && t.srgb ? table.to_linear[t.full[at + uint64_t(c)]]
                                              : t.full[at + uint64_t(c)] * 257u);
    }
  for (int c = 0; c < 4; ++c) out[c] = uint32_t((sum[c] + 32768) >> 16);
}

// The mip level (0: full size) from which a triangle's textures are read for voxels of 1 / scale units. At this level a
// texel of its largest texture is about as large as a voxel.
QRY_HD inline int level_for(const SurfaceView& s, uint32_t triangle, double scale) {
  if (!s.uvs) return 0;
  const MaterialView& m = s.materials[s.triangle_material[triangle]];
  double texels = 0;  // twice the triangle's area in the largest texture's texels
  const int32_t images[3] = {m.base_color_image, m.metal_rough_image, m.emission_image};
  const PlaceView* const places[3] = {&m.base_color_place, &m.metal_rough_place, &m.emission_place};
  const uint32_t* corner = s.indices + uint64_t(triangle) * 3;
  for (int i = 0; i < 3; ++i) {
    if (images[i] < 0) continue;
    const PlaceView& place = *places[i];
    const float* const uvs = s.uvs + place.uvs;
    double u[3], v[3];
    for (int k = 0; k < 3; ++k) {
      u[k] = uvs[uint64_t(corner[k]) * 2];
      v[k] = uvs[uint64_t(corner[k]) * 2 + 1];
    }
    const double across = ((u[1] - u[0]) * (v[2] - v[0]) - (u[2] - u[0]) * (v[1] - v[0])) *
                          (place.m[0] * place.m[4] - place.m[1] * place.m[3]);
    texels = larger(texels, (across < 0 ? -across : across) * double(s.textures[images[i]].width) *
                                double(s.textures[images[i]].height));
  }
  double p[3][3];
  for (int k = 0; k < 3; ++k)
    for (int c = 0; c < 3; ++c) p[k][c] = double(s.positions[uint64_t(corner[k]) * 3 + uint64_t(c)]) * scale;
  const double a[3] = {p[1][0] - p[0][0], p[1][1] - p[0][1], p[1][2] - p[0][2]};
  const double b[3] = {p[2][0] - p[0][0], p[2][1] - p[0][1], p[2][2] - p[0][2]};
  const double n[3] = {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
  const double voxels = std::sqrt(dot(n, n));
  // Each level quarters the number of texels. The switch is half a level early, so that a texel is between 0.7 and 1.4
  // voxels.
  int level = 0;
  for (double limit = 2 * voxels; texels > limit && level < kMaxLevels - 1; limit *= 4) ++level;
  return level;
}

// Samples an image at a point of a triangle given by its barycentric coordinates.
QRY_HD inline void sample_at(const SurfaceView& s, int32_t image, const PlaceView& place, const uint32_t* corner,
                             const double w[3], int level, uint32_t texel[4]) {
  const float* const uvs = s.uvs + place.uvs;
  double u = 0, v = 0;
  for (int k = 0; k < 3; ++k) {
    u += w[k] * uvs[uint64_t(corner[k]) * 2];
    v += w[k] * uvs[uint64_t(corner[k]) * 2 + 1];
  }
  if (!std::isfinite(u) || !std::isfinite(v)) u = v = 0;
  sample(s.textures[image], *s.srgb, place, place.m[0] * u + place.m[1] * v + place.m[2],
         place.m[3] * u + place.m[4] * v + place.m[5], level, texel);
}

// The surface colour at a point of a triangle given by its barycentric coordinates.
QRY_HD inline SurfaceColor surface_color_at(const SurfaceView& s, uint32_t triangle, const double w[3], int level) {
  const MaterialView& m = s.materials[s.triangle_material[triangle]];
  const uint32_t* corner = s.indices + uint64_t(triangle) * 3;
  double color[4] = {m.base_color[0], m.base_color[1], m.base_color[2], m.base_color[3]};
  double rough = m.roughness, metal = m.metalness, glow[3] = {m.emission[0], m.emission[1], m.emission[2]};
  if (s.colors) {
    for (int c = 0; c < 4; ++c) {
      double mixed = 0;
      for (int k = 0; k < 3; ++k) {
        const uint8_t byte = s.colors[uint64_t(corner[k]) * 4 + uint64_t(c)];
        mixed += w[k] * (c < 3 ? s.srgb->to_linear[byte] / 65535.0 : byte / 255.0);
      }
      color[c] *= mixed;
    }
  }
  uint32_t texel[4];
  if (m.base_color_image >= 0) {
    sample_at(s, m.base_color_image, m.base_color_place, corner, w, level, texel);
    for (int c = 0; c < 4; ++c) color[c] *= texel[c] / 65535.0;
  }
  if (m.metal_rough_image >= 0) {
    sample_at(s, m.metal_rough_image, m.metal_rough_place, corner, w, level, texel);
    rough *= texel[1] / 65535.0;
    metal *= texel[2] / 65535.0;
  }
  if (m.emission_image >= 0) {
    sample_at(s, m.emission_image, m.emission_place, corner, w, level, texel);
    for (int c = 0; c < 3; ++c) glow[c] *= texel[c] / 65535.0;
  }
  return {to_16(color[0]), to_16(color[1]),  to_16(color[2]),  to_8(color[3]),  to_8(rough),
          to_8(metal),     to_glow(glow[0]), to_glow(glow[1]), to_glow(glow[2])};
}

// The point of a triangle nearest to p, as barycentric coordinates. Defined for degenerate triangles too.
QRY_HD inline void nearest_point(const double c[3][3], const double p[3], double w[3]) {
  // Inside the prism over the triangle it is the projection onto the plane. Else it is the nearest point of the three
  // edges.
  const double ab[3] = {c[1][0] - c[0][0], c[1][1] - c[0][1], c[1][2] - c[0][2]};
  const double ac[3] = {c[2][0] - c[0][0], c[2][1] - c[0][1], c[2][2] - c[0][2]};
  const double ap[3] = {p[0] - c[0][0], p[1] - c[0][1], p[2] - c[0][2]};
  const double bb = dot(ab, ab), bc = dot(ab, ac), cc = dot(ac, ac), pb = dot(ap, ab), pc = dot(ap, ac);
  const double det = bb * cc - bc * bc;
  if (det > 1e-12 * bb * cc) {
    const double s = (pb * cc - pc * bc) / det, t = (pc * bb - pb * bc) / det;
    if (s >= 0 && t >= 0 && s + t <= 1) {
      w[0] = 1 - s - t;
      w[1] = s;
      w[2] = t;
      return;
    }
  }
  double best = 0;
  bool any = false;
  for (int i = 0; i < 3; ++i) {
    const int j = i == 2 ? 0 : i + 1;
    const double e[3] = {c[j][0] - c[i][0], c[j][1] - c[i][1], c[j][2] - c[i][2]};
    const double q[3] = {p[0] - c[i][0], p[1] - c[i][1], p[2] - c[i][2]};
    const double length = dot(e, e);
    const double t = length > 0 ? within(dot(q, e) / length, 0.0, 1.0) : 0.0;
    const double d[3] = {q[0] - t * e[0], q[1] - t * e[1], q[2] - t * e[2]};
    const double distance = dot(d, d);
    if (!any || distance < best) {
      any = true;
      best = distance;
      w[0] = w[1] = w[2] = 0;
      w[i] = 1 - t;
      w[j] = t;
    }
  }
}

// Area of the part of a triangle inside the unit cube at `cell`, in square voxels.
QRY_HD inline double area_in_cell(const double corner[3][3], const double cell[3]) {
  // Sutherland-Hodgman against the six faces; a triangle cut six times has at most nine corners.
  double ring[2][10][3];
  int count = 3;
  for (int i = 0; i < 3; ++i)
    for (int k = 0; k < 3; ++k) ring[0][i][k] = corner[i][k] - cell[k];
  int now = 0;
  for (int k = 0; k < 3; ++k)
    for (int side = 0; side < 2; ++side) {
      int kept = 0;
      double(&from)[10][3] = ring[now];
      double(&to)[10][3] = ring[1 - now];
      for (int i = 0; i < count; ++i) {
        const double* a = from[i];
        const double* b = from[i + 1 < count ? i + 1 : 0];
        const double da = side == 0 ? a[k] : 1 - a[k], db = side == 0 ? b[k] : 1 - b[k];
        if (da >= 0 && kept < 10) {
          for (int c = 0; c < 3; ++c) to[kept][c] = a[c];
          ++kept;
        }
        if (((da < 0 && db > 0) || (da > 0 && db < 0)) && kept < 10) {
          const double t = da / (da - db);
          for (int c = 0; c < 3; ++c) to[kept][c] = a[c] + t * (b[c] - a[c]);
          ++kept;
        }
      }
      count = kept;
      now = 1 - now;
      if (count < 3) return 0;
    }
  const double(&r)[10][3] = ring[now];
  double n[3] = {0, 0, 0};
  for (int i = 1; i + 1 < count; ++i) {
    const double a[3] = {r[i][0] - r[0][0], r[i][1] - r[0][1], r[i][2] - r[0][2]};
    const double b[3] = {r[i + 1][0] - r[0][0], r[i + 1][1] - r[0][1], r[i + 1][2] - r[0][2]};
    n[0] += a[1] * b[2] - a[2] * b[1];
    n[1] += a[2] * b[0] - a[0] * b[2];
    n[2] += a[0] * b[1] - a[1] * b[0];
  }
  return std::sqrt(dot(n, n)) / 2;
}

// The weight of a triangle's colour in a voxel that several triangles touch. A triangle that only touches the voxel has
// the least weight, but not 0.
QRY_HD inline uint64_t weight_in_cell(const double corner[3][3], const double cell[3]) {
  return 1 + uint64_t(std::floor(area_in_cell(corner, cell) * double(1 << 20)));
}

// Computes a triangle's corners in voxels, relative to the brick's corner. This is exact.
QRY_HD inline void corners_in_brick(const FixedTriangle& f, Int3 brick, double corner[3][3]) {
  const int64_t first[3] = {int64_t(brick.x) * 8 * kUnit, int64_t(brick.y) * 8 * kUnit, int64_t(brick.z) * 8 * kUnit};
  for (int v = 0; v < 3; ++v)
    for (int k = 0; k < 3; ++k) corner[v][k] = double(f.v[v][k] - first[k]) / double(kUnit);
}

}  // namespace quarry::voxelize_detail
