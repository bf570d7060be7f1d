// SPDX-License-Identifier: Apache-2.0
// palette.hpp - 255 PBR materials; index 0 means "no voxel".
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace quarry {

// 32 bytes as shaders see it (std430); colours are also kept as the file's sRGB bytes, so that writing loses nothing.
struct Material {
  uint8_t r = 255, g = 255, b = 255, a = 255;  // sRGB, straight alpha: the exact bytes of the source
  float roughness = 0.9f;                      // 0..1
  float metalness = 0.0f;                      // 0..1
  float emission = 0.0f;                       // radiance in units of the colour; 0: none
  float transparency = 0.0f;                   // 0 opaque .. 1 clear (glass)
  float ior = 1.5f;                            // index of refraction
  float reserved[2] = {0, 0};
  friend bool operator==(const Material&, const Material&) = default;
};
static_assert(sizeof(Material) == 32);
constexpr uint32_t rgba_word(const Material& m) {
  return m.r | uint32_t(m.g) << 8 | uint32_t(m.b) << 16 | uint32_t(m.a) << 24;
}

struct Palette {
  std::array<Material, 256> materials{};  // [0] unused
  std::array<std::string, 256> names{};   // "" for most
  friend bool operator==(const Palette&, const Palette&) = default;
  static Palette standard();  // general-purpose hues, greys and earths, for new worlds
};

}  // namespace quarry
