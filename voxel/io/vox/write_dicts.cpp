// SPDX-License-Identifier: Apache-2.0
// write_dicts.cpp - dictionaries are kept from the file if the scene still agrees with them, else made anew.
#include "voxel/io/vox/write_dicts.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <set>
#include <string_view>

#include "voxel/io/vox/chunks.hpp"

namespace quarry::io::vox {
namespace {

int nibble(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

// Undoes the escapes of dict_text. Returns nothing if an escape is broken, because then a person has edited the
// metadata.
std::optional<std::string> unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size() || nibble(text[i + 1]) < 0 || nibble(text[i + 2]) < 0) return std::nullopt;
    out += char(nibble(text[i + 1]) << 4 | nibble(text[i + 2]));
    i += 2;
  }
  return out;
}

std::optional<NumberedDict> parse_line(std::string_view line) {
  NumberedDict out;
  const auto [rest, err] = std::from_chars(line.data(), line.data() + line.size(), out.id);
  if (err != std::errc{}) return std::nullopt;
  line.remove_prefix(size_t(rest - line.data()));
  while (!line.empty()) {
    if (line[0] != ' ') return std::nullopt;
    line.remove_prefix(1);
    if (line.empty()) break;
    const std::string_view word = line.substr(0, line.find(' '));
    line.remove_prefix(word.size());
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    auto key = unescaped(word.substr(0, equals)), value = unescaped(word.substr(equals + 1));
    if (!key || !value) return std::nullopt;
    out.dict.emplace_back(std::move(*key), std::move(*value));
  }
  return out;
}

// The lines of a metadata entry. There are none if any line is not as the reader writes it.
std::vector<NumberedDict> kept_dicts(const Scene& scene, const char* entry) {
  std::vector<NumberedDict> out;
  const auto it = scene.metadata.find(entry);
  if (it == scene.metadata.end()) return out;
  std::string_view text = it->second;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    auto parsed = parse_line(line);
    if (!parsed) return {};
    out.push_back(std::move(*parsed));
  }
  return out;
}

Dict view_of(const OwnedDict& dict) { return {dict.begin(), dict.end()}; }

void set_value(OwnedDict& dict, const char* key, std::string value) {
  const auto it = std::find_if(dict.begin(), dict.end(), [&](const auto& pair) { return pair.first == key; });
  if (it != dict.end()) it->second = std::move(value);
  else dict.emplace_back(key, std::move(value));
}

// The shortest text that reads back as the same number.
template <class T>
std::string number_text(T v) {
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, v).ptr};
}

bool same_surface(const Material& a, const Material& b) {
  return a.roughness == b.roughness && a.metalness == b.metalness && a.emission == b.emission &&
         a.transparency == b.transparency && a.ior == b.ior;
}

// MagicaVoxel's kinds of material cannot express all of ours. Other programs see the nearest kind. The properties that
// it cannot express are in keys of our own, which other programs skip.
OwnedDict make_material(const Material& m, const std::string& name) {
  constexpr Material kDefault;
  OwnedDict dict;
  const bool emits = m.emission > 0, metal = m.metalness > 0, clear = m.transparency > 0;
  dict.emplace_back("_type", emits            ? "_emit"
                             : metal && clear ? "_blend"
                             : metal          ? "_metal"
                             : clear          ? "_glass"
                                              : "_diffuse");
  if (emits) {
    // Radiance = _emit * (1 + _flux). Powers of two keep the product exact.
    float power = 1;
    while (m.emission > power && power < 64) power *= 2;
    dict.emplace_back("_emit", number_text(m.emission / power));
    dict.emplace_back("_flux", number_text(power - 1));
  }
  if (metal) dict.emplace_back(emits ? "_quarry_metal" : "_metal", number_text(m.metalness));
  if (clear) dict.emplace_back(emits ? "_quarry_alpha" : "_alpha", number_text(m.transparency));
  const bool rough_said = !emits && (metal || clear);
  if (rough_said || m.roughness != kDefault.roughness)
    dict.emplace_back(rough_said ? "_rough" : "_quarry_rough", number_text(m.roughness));
  if (m.ior != kDefault.ior) dict.emplace_back("_ri", number_text(m.ior));
  if (!name.empty()) dict.emplace_back("_quarry_name", name);
  return dict;
}

bool same_camera(const Camera& a, const Camera& b) {
  return a.name == b.name && a.vertical_fov_degrees == b.vertical_fov_degrees &&
         std::equal(a.position, a.position + 3, b.position) && std::equal(a.target, a.target + 3, b.target);
}

std::string three(double x, double y, double z) {
  return number_text(float(x)) + " " + number_text(float(y)) + " " + number_text(float(z));
}

NumberedDict make_camera_dict(const Camera& c, int32_t id) {
  // This inverts the reader: focus is the target in the file's axes, and the angles turn the view from +y.
  const double forward[3] = {c.target[0] - c.position[0], -(c.target[2] - c.position[2]), c.target[1] - c.position[1]};
  const double radius = std::hypot(forward[0], forward[1], forward[2]);
  const double degrees = 180 / std::numbers::pi;
  const double pitch = std::atan2(-forward[2], std::hypot(forward[0], forward[1])) * degrees;
  const double yaw = std::atan2(-forward[0], forward[1]) * degrees;
  NumberedDict out{
      id,
      {{"_mode", "pers"}, {"_focus", three(c.target[0], -c.target[2], c.target[1])}, {"_angle", three(pitch, yaw, 0)}}};
  out.dict.emplace_back("_radius", number_text(float(radius)));
  out.dict.emplace_back("_fov", number_text(float(c.vertical_fov_degrees)));
  if (c.name != "camera " + std::to_string(id)) out.dict.emplace_back("_name", c.name);
  return out;
}

}  // namespace

std::vector<NumberedDict> layer_dicts(const Scene& scene) {
  std::vector<NumberedDict> out = kept_dicts(scene, "vox.layer_dicts");
  std::set<int32_t> ids;
  for (const NumberedDict& d : out) ids.insert(d.id);
  if (out.size() != scene.layers.size() || ids.size() != out.size()) {
    out.assign(scene.layers.size(), {});
    for (size_t i = 0; i < out.size(); ++i) out[i].id = int32_t(i);
  }
  for (size_t i = 0; i < out.size(); ++i) {
    const Layer& layer = scene.layers[i];
    const std::string_view name = value_of(view_of(out[i].dict), "_name");
    if ((name.empty() ? "layer " + std::to_string(out[i].id) : std::string(name)) != layer.name)
      set_value(out[i].dict, "_name", layer.name);
    if ((value_of(view_of(out[i].dict), "_hidden") == "1") != layer.hidden)
      set_value(out[i].dict, "_hidden", layer.hidden ? "1" : "0");
  }
  return out;
}

std::vector<NumberedDict> material_dicts(const Scene& scene) {
  const std::vector<NumberedDict> kept = kept_dicts(scene, "vox.material_dicts");
  File file;
  for (const NumberedDict& d : kept) file.materials.push_back({d.id, view_of(d.dict)});
  uint32_t ignored = 0;
  const Palette read_back = make_palette(file, &ignored);
  std::array<bool, 256> holds{};
  for (size_t i = 1; i < 256; ++i)
    holds[i] = same_surface(read_back.materials[i], scene.palette.materials[i]) &&
               read_back.names[i] == scene.palette.names[i];
  std::vector<NumberedDict> out;
  for (const NumberedDict& d : kept)  // ids outside the palette belong to no voxel and are kept
    if (d.id < 1 || d.id > 255 || holds[size_t(d.id)]) out.push_back(d);
  for (size_t i = 1; i < 256; ++i)
    if (!holds[i]) out.push_back({int32_t(i), make_material(scene.palette.materials[i], scene.palette.names[i])});
  return out;
}

std::vector<NumberedDict> camera_dicts(const Scene& scene) {
  std::vector<NumberedDict> out = kept_dicts(scene, "vox.camera_dicts");
  if (out.size() != scene.cameras.size()) out.clear();
  for (size_t i = 0; i < scene.cameras.size(); ++i) {
    if (i < out.size() && same_camera(make_camera({out[i].id, view_of(out[i].dict)}), scene.cameras[i])) continue;
    NumberedDict made = make_camera_dict(scene.cameras[i], i < out.size() ? out[i].id : int32_t(i));
    if (i < out.size()) out[i] = std::move(made);
    else out.push_back(std::move(made));
  }
  return out;
}

std::optional<std::vector<uint8_t>> hex_entry(const Scene& scene, const char* key, size_t count) {
  const auto it = scene.metadata.find(key);
  if (it == scene.metadata.end() || it->second.size() != 2 * count) return std::nullopt;
  std::vector<uint8_t> out;
  for (size_t i = 0; i < 2 * count; i += 2) {
    const int high = nibble(it->second[i]), low = nibble(it->second[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    out.push_back(uint8_t(high << 4 | low));
  }
  return out;
}

}  // namespace quarry::io::vox
