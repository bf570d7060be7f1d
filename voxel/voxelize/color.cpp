// SPDX-License-Identifier: Apache-2.0
// color.cpp - mip levels as the mean of 2 x 2 linear texels, the sRGB tables, and materials as plain data that a device
// can copy.
#include "voxel/voxelize/color.hpp"

#include <algorithm>
#include <cmath>

#include "base/parallel.hpp"

namespace quarry::voxelize_detail {
namespace {

SrgbTables make_tables() {
  SrgbTables t;
  const auto linear = [](double c) { return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); };
  for (int i = 0; i < 256; ++i) {
    t.to_linear[i] = uint16_t(std::lround(linear(i / 255.0) * 65535));
    t.upper[i] = i == 255 ? uint16_t(65535) : uint16_t(std::lround(linear((i + 0.5) / 255.0) * 65535));
  }
  return t;
}

PlaceView view_of(const ImagePlace& place, uint64_t uv_set_size) {
  PlaceView v{};
  v.uvs = place.uv_set * uv_set_size;
  std::copy(place.m, place.m + 6, v.m);
  v.wrap_u = place.wrap_u;
  v.wrap_v = place.wrap_v;
  return v;
}

MaterialView view_of(const MeshMaterial& m, uint64_t uv_set_size) {
  MaterialView v;
  std::copy(m.base_color, m.base_color + 4, v.base_color);
  v.roughness = m.roughness;
  v.metalness = m.metalness;
  std::copy(m.emission, m.emission + 3, v.emission);
  v.base_color_image = m.base_color_image;
  v.metal_rough_image = m.metal_rough_image;
  v.emission_image = m.emission_image;
  v.base_color_place = view_of(m.base_color_place, uv_set_size);
  v.metal_rough_place = view_of(m.metal_rough_place, uv_set_size);
  v.emission_place = view_of(m.emission_place, uv_set_size);
  return v;
}

bool textured(const MeshMaterial& m) {
  return m.base_color_image >= 0 || m.metal_rough_image >= 0 || m.emission_image >= 0;
}

// Fills `smaller` and the view's offsets. Each level is the mean of 2 x 2 texels of the previous one.
void halve(const Image& image, TextureView& view, std::vector<uint16_t>& smaller, uint32_t threads) {
  const SrgbTables& table = srgb_tables();
  size_t size = 0;
  view.levels = 1;
  for (uint32_t w = view.width, h = view.height; view.levels < uint32_t(kMaxLevels) && (w > 1 || h > 1);
       ++view.levels) {
    w = std::max(1u, w / 2);
    h = std::max(1u, h / 2);
    view.offset[view.levels] = size;
    size += size_t(w) * h * 4;
  }
  smaller.resize(size);
  uint32_t from_width = view.width, from_height = view.height;
  for (uint32_t level = 1; level < view.levels; ++level) {
    const uint32_t width = std::max(1u, from_width / 2), height = std::max(1u, from_height / 2);
    const uint16_t* const from = level > 1 ? smaller.data() + view.offset[level - 1] : nullptr;
    uint16_t* const to = smaller.data() + view.offset[level];
    const auto read = [&](uint32_t x, uint32_t y, size_t c) -> uint32_t {
      const size_t at = (size_t(std::min(y, from_height - 1)) * from_width + std::min(x, from_width - 1)) * 4 + c;
      if (from) return from[at];
      return c < 3 && view.srgb ? table.to_linear[image.rgba[at]] : image.rgba[at] * 257u;
    };
    parallel_for(
        height, std::max<size_t>(1, (size_t(1) << 16) / width),
        [&](size_t begin, size_t end) {
          for (auto y = uint32_t(begin); y < end; ++y)
            for (uint32_t x = 0; x < width; ++x)
              for (size_t c = 0; c < 4; ++c)
                to[(size_t(y) * width + x) * 4 + c] =
                    uint16_t((read(2 * x, 2 * y, c) + read(2 * x + 1, 2 * y, c) + read(2 * x, 2 * y + 1, c) +
                              read(2 * x + 1, 2 * y + 1, c) + 2) /
                             4);
        },
        threads);
    from_width = width;
    from_height = height;
  }
  view.smaller = smaller.data();
}

}  // namespace

const SrgbTables& srgb_tables() {
  static const SrgbTables tables = make_tables();
  return tables;
}

float emission_of_byte(uint32_t byte) {
  const float root = float(byte) / 255.0f;
  return 64.0f * root * root;
}

Surface::Surface(const Mesh& mesh, uint32_t threads)
    : mesh_(mesh), textures_(mesh.images.size()), smaller_(mesh.images.size()) {
  for (const MeshMaterial& m : mesh.materials) materials_.push_back(view_of(m, mesh.vertex_count() * 2));
  uniform_ = mesh.colors.empty();
  std::vector<bool> used(mesh.materials.size()), read(mesh.images.size());
  for (const uint32_t m : mesh.triangle_material) used[m] = true;
  const MeshMaterial* first = nullptr;
  for (size_t i = 0; i < mesh.materials.size(); ++i) {
    if (!used[i]) continue;
    const MeshMaterial& m = mesh.materials[i];
    for (const int32_t image : {m.base_color_image, m.metal_rough_image, m.emission_image})
      if (image >= 0) read[size_t(image)] = true;
    if (m.metal_rough_image >= 0) textures_[size_t(m.metal_rough_image)].srgb = false;
    if (textured(m)) uniform_ = false;
    if (!first) first = &m;
    uniform_ = uniform_ && std::equal(m.base_color, m.base_color + 4, first->base_color) &&
               m.roughness == first->roughness && m.metalness == first->metalness &&
               std::equal(m.emission, m.emission + 3, first->emission);
  }
  for (size_t i = 0; i < mesh.images.size(); ++i) {
    if (!read[i]) continue;
    const Image& image = mesh.images[i];
    textures_[i].width = image.width;
    textures_[i].height = image.height;
    textures_[i].full = image.rgba.data();
    halve(image, textures_[i], smaller_[i], threads);
  }
  view_ = {mesh.positions.data(),
           mesh.uvs.empty() ? nullptr : mesh.uvs.data(),
           mesh.colors.empty() ? nullptr : mesh.colors.data(),
           mesh.indices.data(),
           mesh.triangle_material.data(),
           materials_.data(),
           textures_.data(),
           &srgb_tables()};
}

}  // namespace quarry::voxelize_detail
