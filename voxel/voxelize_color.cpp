#include "voxel/voxelize_color.hpp"

#include <algorithm>
#include <cmath>

namespace quarry::voxelize_detail {
namespace {

constexpr int kMaxLevels = 12;

struct SrgbTables {
  std::array<uint16_t, 256> to_linear;
  std::array<uint16_t, 256> upper;  // the largest linear value that rounds to this byte
  SrgbTables() {
    const auto linear = [](double c) { return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); };
    for (int i = 0; i < 256; ++i) {
      to_linear[size_t(i)] = uint16_t(std::lround(linear(i / 255.0) * 65535));
      upper[size_t(i)] = i == 255 ? uint16_t(65535) : uint16_t(std::lround(linear((i + 0.5) / 255.0) * 65535));
    }
  }
  uint8_t to_srgb(uint32_t value) const {
    return uint8_t(std::lower_bound(upper.begin(), upper.end() - 1, uint16_t(std::min(value, 65535u))) - upper.begin());
  }
};
const SrgbTables& srgb() {
  static const SrgbTables tables;
  return tables;
}

uint32_t to_16(double linear) { return uint32_t(std::clamp(linear, 0.0, 1.0) * 65535 + 0.5); }
uint32_t to_8(double value) { return uint32_t(std::clamp(value, 0.0, 1.0) * 255 + 0.5); }

// Wraps a texel coordinate.
uint32_t wrapped(int64_t i, uint32_t size, Wrap wrap) {
  const auto n = int64_t(size);
  if (wrap == Wrap::clamp) return uint32_t(std::clamp<int64_t>(i, 0, n - 1));
  if (wrap == Wrap::repeat) {
    i %= n;
    return uint32_t(i < 0 ? i + n : i);
  }
  i %= 2 * n;
  if (i < 0) i += 2 * n;
  return uint32_t(i < n ? i : 2 * n - 1 - i);
}

double dot(const double a[3], const double b[3]) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

}  // namespace

float emission_of_byte(uint32_t byte) {
  const float root = float(byte) / 255.0f;
  return 64.0f * root * root;
}

void LookSum::add(const Look& l, uint64_t weight) {
  weight_ += weight;
  const uint32_t values[9] = {l.r, l.g, l.b, l.a, l.rough, l.metal, l.glow_r, l.glow_g, l.glow_b};
  for (size_t i = 0; i < 9; ++i) sum_[i] += values[i] * weight;
}
Look LookSum::mean() const {
  const auto m = [&](size_t i) { return uint32_t((sum_[i] + weight_ / 2) / std::max<uint64_t>(weight_, 1)); };
  return {m(0), m(1), m(2), m(3), m(4), m(5), m(6), m(7), m(8)};
}

PackedLook pack(const Look& look) {
  Look l = look;
  double strength = 0;
  const uint32_t glow = std::max({l.glow_r, l.glow_g, l.glow_b});
  if (glow > 0) {
    // A palette's emission is in units of its colour. Where the glow outshines the surface, the colour is the glow's.
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
  const auto emission = uint64_t(std::lround(std::sqrt(std::min(strength, 64.0) / 64.0) * 255));
  const SrgbTables& table = srgb();
  return uint64_t(table.to_srgb(l.r)) | uint64_t(table.to_srgb(l.g)) << 8 | uint64_t(table.to_srgb(l.b)) << 16 | uint64_t(l.a) << 24 |
         uint64_t(l.rough) << 32 | uint64_t(l.metal) << 40 | emission << 48;
}

Surface::Surface(const Mesh& mesh) : mesh_(mesh), levels_(mesh.images.size()), srgb_(mesh.images.size(), true) {
  uniform_ = mesh.colors.empty();
  std::vector<bool> used(mesh.materials.size());
  for (const uint32_t m : mesh.triangle_material) used[m] = true;
  const MeshMaterial* first = nullptr;
  for (size_t i = 0; i < mesh.materials.size(); ++i) {
    if (!used[i]) continue;
    const MeshMaterial& m = mesh.materials[i];
    if (m.metal_rough_image >= 0) srgb_[size_t(m.metal_rough_image)] = false;
    if (m.base_color_image >= 0 || m.metal_rough_image >= 0 || m.emission_image >= 0) uniform_ = false;
    if (!first) first = &m;
    uniform_ = uniform_ && std::equal(m.base_color, m.base_color + 4, first->base_color) && m.roughness == first->roughness &&
               m.metalness == first->metalness && std::equal(m.emission, m.emission + 3, first->emission);
  }
  const SrgbTables& table = srgb();
  for (size_t i = 0; i < mesh.images.size(); ++i) {
    const Image& image = mesh.images[i];
    levels_[i].push_back({image.width, image.height, {}});
    while (levels_[i].size() < kMaxLevels && (levels_[i].back().width > 1 || levels_[i].back().height > 1)) {
      const Level& from = levels_[i].back();
      Level to{std::max(1u, from.width / 2), std::max(1u, from.height / 2), {}};
      to.rgba.resize(size_t(to.width) * to.height * 4);
      const auto read = [&](uint32_t x, uint32_t y, size_t c) -> uint32_t {
        const size_t at = (size_t(std::min(y, from.height - 1)) * from.width + std::min(x, from.width - 1)) * 4 + c;
        if (!from.rgba.empty()) return from.rgba[at];
        return c < 3 && srgb_[i] ? table.to_linear[image.rgba[at]] : image.rgba[at] * 257u;
      };
      for (uint32_t y = 0; y < to.height; ++y)
        for (uint32_t x = 0; x < to.width; ++x)
          for (size_t c = 0; c < 4; ++c)
            to.rgba[(size_t(y) * to.width + x) * 4 + c] = uint16_t(
                (read(2 * x, 2 * y, c) + read(2 * x + 1, 2 * y, c) + read(2 * x, 2 * y + 1, c) + read(2 * x + 1, 2 * y + 1, c) + 2) / 4);
      levels_[i].push_back(std::move(to));
    }
  }
}

int Surface::level_for(uint32_t triangle, double scale) const {
  const MeshMaterial& m = mesh_.materials[mesh_.triangle_material[triangle]];
  double texels = 0;  // twice the triangle's area in the largest texture's texels
  double u[3], v[3], p[3][3];
  if (mesh_.uvs.empty()) return 0;
  for (size_t k = 0; k < 3; ++k) {
    const size_t vertex = mesh_.indices[size_t(triangle) * 3 + k];
    u[k] = mesh_.uvs[vertex * 2];
    v[k] = mesh_.uvs[vertex * 2 + 1];
    for (size_t c = 0; c < 3; ++c) p[k][c] = double(mesh_.positions[vertex * 3 + c]) * scale;
  }
  for (const int32_t image : {m.base_color_image, m.metal_rough_image, m.emission_image})
    if (image >= 0)
      texels = std::max(texels, std::abs((u[1] - u[0]) * (v[2] - v[0]) - (u[2] - u[0]) * (v[1] - v[0])) *
                                    double(mesh_.images[size_t(image)].width) * double(mesh_.images[size_t(image)].height));
  const double a[3] = {p[1][0] - p[0][0], p[1][1] - p[0][1], p[1][2] - p[0][2]};
  const double b[3] = {p[2][0] - p[0][0], p[2][1] - p[0][1], p[2][2] - p[0][2]};
  const double n[3] = {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
  const double voxels = std::sqrt(dot(n, n));
  // Each level quarters the texels; half a level early, so that a texel is between 0.7 and 1.4 voxels.
  int level = 0;
  for (double limit = 2 * voxels; texels > limit && level < kMaxLevels - 1; limit *= 4) ++level;
  return level;
}

void Surface::sample(int32_t image, const MeshMaterial& material, double u, double v, int level, bool is_srgb, uint32_t out[4]) const {
  const auto& levels = levels_[size_t(image)];
  const Level& l = levels[std::min(size_t(level), levels.size() - 1)];
  const std::vector<uint8_t>& bytes = mesh_.images[size_t(image)].rgba;
  const SrgbTables& table = srgb();
  // 1/256 texel steps; far outside [0, 1] the texture repeats or is clamped, and a double has no digits left to matter.
  const double limit = 1 << 20;
  const auto x = int64_t(std::floor(std::clamp(u, -limit, limit) * l.width * 256.0)) - 128;
  const auto y = int64_t(std::floor(std::clamp(v, -limit, limit) * l.height * 256.0)) - 128;
  const uint32_t xs[2] = {wrapped(x >> 8, l.width, material.wrap_u), wrapped((x >> 8) + 1, l.width, material.wrap_u)};
  const uint32_t ys[2] = {wrapped(y >> 8, l.height, material.wrap_v), wrapped((y >> 8) + 1, l.height, material.wrap_v)};
  const uint32_t fx[2] = {256 - uint32_t(x & 255), uint32_t(x & 255)}, fy[2] = {256 - uint32_t(y & 255), uint32_t(y & 255)};
  uint64_t sum[4] = {0, 0, 0, 0};
  for (size_t j = 0; j < 2; ++j)
    for (size_t i = 0; i < 2; ++i) {
      const size_t at = (size_t(ys[j]) * l.width + xs[i]) * 4;
      const uint64_t weight = fx[i] * fy[j];
      for (size_t c = 0; c < 4; ++c)
        sum[c] += weight * (!l.rgba.empty() ? l.rgba[at + c] : c < 3 && is_srgb ? table.to_linear[bytes[at + c]] : bytes[at + c] * 257u);
    }
  for (size_t c = 0; c < 4; ++c) out[c] = uint32_t((sum[c] + 32768) >> 16);
}

Look Surface::at(uint32_t triangle, const double w[3], int level) const {
  const MeshMaterial& m = mesh_.materials[mesh_.triangle_material[triangle]];
  const uint32_t* corner = &mesh_.indices[size_t(triangle) * 3];
  double color[4] = {m.base_color[0], m.base_color[1], m.base_color[2], m.base_color[3]};
  double rough = m.roughness, metal = m.metalness, glow[3] = {m.emission[0], m.emission[1], m.emission[2]};
  if (!mesh_.colors.empty()) {
    for (size_t c = 0; c < 4; ++c) {
      double mixed = 0;
      for (size_t k = 0; k < 3; ++k) {
        const uint8_t byte = mesh_.colors[size_t(corner[k]) * 4 + c];
        mixed += w[k] * (c < 3 ? srgb().to_linear[byte] / 65535.0 : byte / 255.0);
      }
      color[c] *= mixed;
    }
  }
  if (m.base_color_image >= 0 || m.metal_rough_image >= 0 || m.emission_image >= 0) {
    double u = 0, v = 0;
    for (size_t k = 0; k < 3; ++k) {
      u += w[k] * mesh_.uvs[size_t(corner[k]) * 2];
      v += w[k] * mesh_.uvs[size_t(corner[k]) * 2 + 1];
    }
    if (!std::isfinite(u) || !std::isfinite(v)) u = v = 0;
    uint32_t texel[4];
    if (m.base_color_image >= 0) {
      sample(m.base_color_image, m, u, v, level, srgb_[size_t(m.base_color_image)], texel);
      for (size_t c = 0; c < 4; ++c) color[c] *= texel[c] / 65535.0;
    }
    if (m.metal_rough_image >= 0) {
      sample(m.metal_rough_image, m, u, v, level, srgb_[size_t(m.metal_rough_image)], texel);
      rough *= texel[1] / 65535.0;
      metal *= texel[2] / 65535.0;
    }
    if (m.emission_image >= 0) {
      sample(m.emission_image, m, u, v, level, srgb_[size_t(m.emission_image)], texel);
      for (size_t c = 0; c < 3; ++c) glow[c] *= texel[c] / 65535.0;
    }
  }
  Look look;
  look.r = to_16(color[0]);
  look.g = to_16(color[1]);
  look.b = to_16(color[2]);
  look.a = to_8(color[3]);
  look.rough = to_8(rough);
  look.metal = to_8(metal);
  look.glow_r = uint32_t(std::clamp(glow[0], 0.0, 64.0) * 1024 + 0.5);
  look.glow_g = uint32_t(std::clamp(glow[1], 0.0, 64.0) * 1024 + 0.5);
  look.glow_b = uint32_t(std::clamp(glow[2], 0.0, 64.0) * 1024 + 0.5);
  return look;
}

void nearest_point(const double c[3][3], const double p[3], double w[3]) {
  // Inside the prism over the triangle: the plane's point. Else the nearest point of the three edges.
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
  for (size_t i = 0; i < 3; ++i) {
    const size_t j = (i + 1) % 3;
    const double e[3] = {c[j][0] - c[i][0], c[j][1] - c[i][1], c[j][2] - c[i][2]};
    const double q[3] = {p[0] - c[i][0], p[1] - c[i][1], p[2] - c[i][2]};
    const double length = dot(e, e);
    const double t = length > 0 ? std::clamp(dot(q, e) / length, 0.0, 1.0) : 0.0;
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

double area_in_cell(const double corner[3][3], const double cell[3]) {
  // Sutherland-Hodgman against the six faces; a triangle cut six times has at most nine corners.
  double ring[2][10][3];
  int count = 3;
  for (int i = 0; i < 3; ++i)
    for (int k = 0; k < 3; ++k) ring[0][i][k] = corner[i][k] - cell[k];
  int now = 0;
  for (int k = 0; k < 3; ++k)
    for (int side = 0; side < 2; ++side) {
      const auto inside = [&](const double* v) { return side == 0 ? v[k] : 1 - v[k]; };
      int kept = 0;
      double(&from)[10][3] = ring[now];
      double(&to)[10][3] = ring[1 - now];
      for (int i = 0; i < count; ++i) {
        const double* a = from[i];
        const double* b = from[(i + 1) % count];
        const double da = inside(a), db = inside(b);
        if (da >= 0 && kept < 10) {
          std::copy(a, a + 3, to[kept]);
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

}  // namespace quarry::voxelize_detail
