// SPDX-License-Identifier: Apache-2.0
// palette_and_materials.cpp - converts palette, material and camera dictionaries of a .vox file.
// MagicaVoxel's materials are for a path tracer. Properties without a field here (media, scattering, clear coat,
// absorption) are kept as text in the scene's metadata and are not shown. docs/formats.md has the table.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>

#include "voxel/io/vox/chunks.hpp"

namespace quarry::io::vox {
namespace {

// Makes the palette of a file without an RGBA chunk: a 6^3 colour cube from white down without its black, then ramps of
// red, green, blue and grey. The cube has the six steps 0xff, 0xcc .. 0x00 on each axis, and blue varies fastest.
void default_colours(Palette& palette) {
  size_t at = 1;
  for (int r = 255; r >= 0; r -= 51)
    for (int g = 255; g >= 0; g -= 51)
      for (int b = 255; b >= 0; b -= 51) {
        if (r + g + b == 0) continue;
        Material& m = palette.materials[at++];
        m.r = uint8_t(r), m.g = uint8_t(g), m.b = uint8_t(b), m.a = 255;
      }
  constexpr uint8_t kRamp[10] = {0xee, 0xdd, 0xbb, 0xaa, 0x88, 0x77, 0x55, 0x44, 0x22, 0x11};
  for (int ramp = 0; ramp < 4; ++ramp)
    for (const uint8_t v : kRamp) {
      Material& m = palette.materials[at++];
      m.r = ramp == 0 || ramp == 3 ? v : 0, m.g = ramp == 1 || ramp == 3 ? v : 0, m.b = ramp >= 2 ? v : 0, m.a = 255;
    }
}

float number(const Dict& dict, std::string_view key, float otherwise) {
  float v = 0;
  return parse_float(value_of(dict, key), &v) ? v : otherwise;
}
bool has(const Dict& dict, std::string_view key) {
  float v = 0;
  return parse_float(value_of(dict, key), &v);
}
float unit(float v) { return std::clamp(v, 0.0f, 1.0f); }

// `_ri` is the index of refraction. Older files have `_ior` instead, which is one less.
float ior_of(const Dict& d) {
  if (has(d, "_ri")) return std::clamp(number(d, "_ri", 1.5f), 1.0f, 4.0f);
  const float ior = number(d, "_ior", 0.5f);
  return std::clamp(ior < 1 ? 1 + ior : ior, 1.0f, 4.0f);
}

void apply(const Dict& d, Material& m) {
  const std::string_view type = value_of(d, "_type");
  const float weight = unit(number(d, "_weight", 1));  // files before version 0.99.5 have one weight for the amount
  m.ior = ior_of(d);
  if (type == "_metal" || type == "_blend") {
    m.metalness = unit(number(d, "_metal", weight));
    m.roughness = unit(number(d, "_rough", 0.1f));
  }
  if (type == "_glass" || type == "_blend") {
    m.transparency =
        unit(has(d, "_alpha") ? number(d, "_alpha", 0.5f)
                              : number(d, "_trans", type == "_glass" && has(d, "_weight") ? weight : 0.5f));
    m.roughness = unit(number(d, "_rough", 0.0f));
  }
  // `_flux` is the power step 0..4 in addition to the slider `_emit`.
  if (type == "_emit")
    m.emission =
        std::clamp(number(d, "_emit", weight), 0.0f, 100.0f) * (1 + std::clamp(number(d, "_flux", 0), 0.0f, 100.0f));
  // Our writer's keys for properties that the kinds of material cannot express together (vox/write_dicts.cpp).
  m.roughness = unit(number(d, "_quarry_rough", m.roughness));
  m.metalness = unit(number(d, "_quarry_metal", m.metalness));
  m.transparency = unit(number(d, "_quarry_alpha", m.transparency));
}

void apply(const OldMaterial& o, Material& m) {
  const auto property = [&](size_t i, float otherwise) {
    return o.properties[i] && std::isfinite(*o.properties[i]) ? *o.properties[i] : otherwise;
  };
  const float weight = std::isfinite(o.weight) ? unit(o.weight) : 1;
  if (o.type >= 1 && o.type <= 2) m.roughness = unit(property(1, o.type == 1 ? 0.1f : 0.0f));
  if (o.type == 1) m.metalness = weight;
  if (o.type == 2) m.transparency = weight;
  if (o.type == 3) m.emission = weight * (1 + std::clamp(property(5, 0), 0.0f, 100.0f));
  m.ior = std::clamp(1 + property(3, 0.5f), 1.0f, 4.0f);
}

template <class T, class Parse>
bool parse_three(std::string_view text, std::array<T, 3>* out, Parse parse) {
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto skip_blanks = [&] {
    while (at != end && (*at == ' ' || *at == '\t')) ++at;
  };
  for (T& v : *out) {
    skip_blanks();
    const auto [next, err] = parse(at, end, v);
    if (err != std::errc{}) return false;
    at = next;
    if (at != end && *at != ' ' && *at != '\t') return false;
  }
  skip_blanks();
  return at == end;
}

}  // namespace

bool parse_float(std::string_view text, float* out) {
  float v = 0;
  const auto [end, err] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (err != std::errc{} || end != text.data() + text.size() || !std::isfinite(v)) return false;
  *out = v;
  return true;
}

bool parse_ints(std::string_view text, std::array<int32_t, 3>* out) {
  return parse_three(text, out, [](const char* a, const char* b, int32_t& v) { return std::from_chars(a, b, v); });
}

bool parse_floats(std::string_view text, std::array<float, 3>* out) {
  if (!parse_three(text, out, [](const char* a, const char* b, float& v) { return std::from_chars(a, b, v); }))
    return false;
  return std::all_of(out->begin(), out->end(), [](float v) { return std::isfinite(v); });
}

std::string dict_text(const Dict& dict) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  const auto append = [&](std::string_view s) {
    for (const char c : s) {
      if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
          c == '_')
        out += c;
      else (out += '%') += {kHex[uint8_t(c) >> 4], kHex[uint8_t(c) & 15]};
    }
  };
  for (const auto& [key, value] : dict) {
    if (!out.empty()) out += ' ';
    append(key);
    out += '=';
    append(value);
  }
  return out;
}

Palette make_palette(const File& file, uint32_t* nondiffuse) {
  Palette palette;
  default_colours(palette);
  if (file.rgba)
    for (size_t i = 1; i < 256; ++i) {  // the file's entry 0 is colour 1; no voxel uses its last entry
      const uint8_t* p = file.rgba + (i - 1) * 4;
      Material& m = palette.materials[i];
      m.r = p[0], m.g = p[1], m.b = p[2], m.a = p[3];
    }
  *nondiffuse = 0;
  for (const OldMaterial& o : file.old_materials) {
    *nondiffuse += o.type != 0;
    if (o.id >= 1 && o.id <= 255) apply(o, palette.materials[size_t(o.id)]);
  }
  for (const DictChunk& c : file.materials) {
    const std::string_view type = value_of(c.dict, "_type");
    *nondiffuse += !type.empty() && type != "_diffuse";
    if (c.id < 1 || c.id > 255) continue;  // 0 and 256 belong to no voxel
    apply(c.dict, palette.materials[size_t(c.id)]);
    if (const std::string_view name = value_of(c.dict, "_quarry_name"); !name.empty())
      palette.names[size_t(c.id)] = name;
  }
  return palette;
}

Camera make_camera(const DictChunk& chunk) {
  std::array<float, 3> focus{}, angle{};
  parse_floats(value_of(chunk.dict, "_focus"), &focus);
  parse_floats(value_of(chunk.dict, "_angle"), &angle);
  const double pitch = angle[0] * std::numbers::pi / 180, yaw = angle[1] * std::numbers::pi / 180;
  const double radius = std::max(1.0, double(number(chunk.dict, "_radius", 1)));
  Camera camera;
  camera.name = value_of(chunk.dict, "_name");
  if (camera.name.empty()) camera.name = "camera " + std::to_string(chunk.id);
  camera.vertical_fov_degrees = std::clamp(double(number(chunk.dict, "_fov", 45)), 1.0, 170.0);
  // With zero angles the camera looks along +y of the file. Pitch looks down, yaw turns about the up axis.
  const double forward[3] = {-std::sin(yaw) * std::cos(pitch), std::cos(yaw) * std::cos(pitch), -std::sin(pitch)};
  const double target[3] = {focus[0], focus[2], -double(focus[1])};
  const double back[3] = {-forward[0], -forward[2], forward[1]};
  for (int i = 0; i < 3; ++i) {
    camera.target[i] = target[i];
    camera.position[i] = target[i] + back[i] * radius;
  }
  return camera;
}

}  // namespace quarry::io::vox
