// SPDX-License-Identifier: Apache-2.0
// palette.cpp - the standard palette: greys, hues in eight tones, earths, and materials that are not matt.
#include "voxel/worlds/palette.hpp"

#include <algorithm>
#include <cmath>

namespace quarry {
namespace {

// Hue in degrees, saturation and value in 0..1, to sRGB bytes.
Material from_hsv(double hue, double saturation, double value) {
  const auto channel = [&](double n) {
    const double k = std::fmod(n + hue / 60.0, 6.0);
    return uint8_t(std::lround(255.0 * (value - value * saturation * std::clamp(std::min(k, 4.0 - k), 0.0, 1.0))));
  };
  Material material;
  material.r = channel(5);
  material.g = channel(3);
  material.b = channel(1);
  return material;
}

}  // namespace

Palette Palette::standard() {
  Palette palette;
  size_t next = 1;
  // 1..16: greys, white first, so that material 1 (the default of an edit) shows its shape best.
  for (int i = 0; i < 16; ++i) palette.materials[next++] = from_hsv(0, 0, 1.0 - i / 16.0);
  // 17..208: 24 hues in eight tones, light to dark.
  constexpr double kTones[8][2] = {{0.25, 1.0}, {0.5, 1.0}, {0.75, 1.0}, {1.0, 1.0},
                                   {0.9, 0.8},  {0.8, 0.6}, {0.6, 0.5},  {0.9, 0.35}};
  for (const auto& tone : kTones)
    for (int hue = 0; hue < 24; ++hue) palette.materials[next++] = from_hsv(hue * 15.0, tone[0], tone[1]);
  // 209..240: earths and skins, from sand to dark wood.
  for (int warmth = 0; warmth < 4; ++warmth)
    for (int i = 0; i < 8; ++i)
      palette.materials[next++] = from_hsv(16.0 + 8.0 * warmth, 0.28 + 0.06 * i, 0.95 - 0.1 * i);
  // 241..255: materials that are not matt.
  struct Special {
    const char* name;
    double hue, saturation, value;
    float roughness, metalness, emission, transparency;
  };
  constexpr Special kSpecial[15] = {
      {"steel", 210, 0.05, 0.75, 0.35f, 1, 0, 0},     {"iron", 210, 0.08, 0.45, 0.6f, 1, 0, 0},
      {"gold", 45, 0.65, 1.0, 0.25f, 1, 0, 0},        {"copper", 18, 0.55, 0.95, 0.3f, 1, 0, 0},
      {"bronze", 32, 0.6, 0.7, 0.4f, 1, 0, 0},        {"chrome", 0, 0, 0.95, 0.05f, 1, 0, 0},
      {"glass", 190, 0.1, 0.95, 0.02f, 0, 0, 0.85f},  {"green glass", 140, 0.5, 0.8, 0.02f, 0, 0, 0.7f},
      {"red glass", 0, 0.7, 0.85, 0.02f, 0, 0, 0.7f}, {"water", 200, 0.6, 0.7, 0.02f, 0, 0, 0.6f},
      {"warm lamp", 35, 0.35, 1.0, 0.9f, 0, 6, 0},    {"cold lamp", 205, 0.15, 1.0, 0.9f, 0, 6, 0},
      {"red neon", 345, 0.85, 1.0, 0.9f, 0, 4, 0},    {"green neon", 130, 0.85, 1.0, 0.9f, 0, 4, 0},
      {"lava", 18, 0.95, 1.0, 0.8f, 0, 3, 0},
  };
  for (const Special& special : kSpecial) {
    Material& material = palette.materials[next] = from_hsv(special.hue, special.saturation, special.value);
    material.roughness = special.roughness;
    material.metalness = special.metalness;
    material.emission = special.emission;
    material.transparency = special.transparency;
    palette.names[next++] = special.name;
  }
  return palette;
}

}  // namespace quarry
