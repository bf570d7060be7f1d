// SPDX-License-Identifier: Apache-2.0
// material.cpp - metal-rough and specular-gloss materials, texture transforms, and each image decoded once.
#include "voxel/foreign/gltf/material.hpp"

#include <algorithm>
#include <cmath>

namespace quarry::mesh_reader {
namespace {

Wrap wrap_of(uint64_t number) { return number == 33071 ? Wrap::clamp : number == 33648 ? Wrap::mirror : Wrap::repeat; }

// KHR_texture_transform: offset x rotation x scale, about the origin. A positive angle turns the coordinates
// counter-clockwise where v points down, as in Khronos' own viewer. The sample code in the extension's text has the
// other sign (KhronosGroup/glTF issue 1563).
void transform(const Json& how, const std::string& where, ImagePlace& place) {
  double offset[2] = {0, 0}, scale[2] = {1, 1};
  numbers(how, "offset", offset, where);
  numbers(how, "scale", scale, where);
  const double angle = number(how, "rotation", 0, where), c = std::cos(angle), s = std::sin(angle);
  const double m[6] = {c * scale[0], s * scale[1], offset[0], -s * scale[0], c * scale[1], offset[1]};
  std::transform(m, m + 6, place.m, [](double value) { return float(value); });
}

}  // namespace

void GltfMaterials::warn(const std::string& text) {
  if (warnings_.size() < 100) warnings_.push_back(text);
}

uint32_t GltfMaterials::of(std::optional<uint64_t> index, const std::string& who) {
  if (const auto known = known_.find(index); known != known_.end()) return known->second;
  MeshMaterial m;
  std::vector<uint64_t> uv_sets;
  m.roughness = m.metalness = 1;  // glTF's defaults
  if (index) m = read(document_.item("materials", *index, who), place("materials", *index), uv_sets);
  const auto at = uint32_t(mesh_.materials.size());
  mesh_.materials.push_back(std::move(m));
  uv_sets_.push_back(std::move(uv_sets));
  return known_[index] = at;
}

int32_t GltfMaterials::image(uint64_t index, bool numbers, const std::string& who) {
  const Json& source = document_.item("images", index, who);
  if (const auto known = image_of_.find({index, numbers}); known != image_of_.end()) return known->second;
  const std::string where = place("images", index);
  std::string why;
  std::optional<Image> decoded;
  if (const auto bytes = document_.image_bytes(source, where, why)) decoded = outside_.decode_image(*bytes, why);
  int32_t at = -1;
  if (decoded) {
    at = int32_t(mesh_.images.size());
    mesh_.images.push_back(std::move(*decoded));
  } else {
    std::string name = text(source, "uri");
    if (name.empty() || name.compare(0, 5, "data:") == 0)
      name = text(source, "name").empty() ? where : text(source, "name");
    warn("texture '" + name + "' is left out: " + why);
  }
  return image_of_[{index, numbers}] = at;
}

GltfMaterials::Texture GltfMaterials::texture(const Json& owner, const char* key, bool numbers,
                                              const std::string& where) {
  const Json* const info = member(owner, key);
  Texture out;
  if (!info) return out;
  const std::string here = where + "." + key;
  const auto index = whole_number(*info, "index", here);
  if (!index) gltf_fault(here + " names no texture.");
  const Json& named = document_.item("textures", *index, here + ".index");
  const std::string there = place("textures", *index);
  if (const auto source = whole_number(named, "source", there)) {
    out.image = image(*source, numbers, there + ".source");
  } else {
    const Json* const all = member(named, "extensions");
    const bool other = all && all->is_object() && !all->empty();
    warn("texture " + here + " is left out: " +
         (other ? "its picture is of " + all->begin().key() + ", which is not read, and there is no other"
                : "it names no image"));
  }
  out.coordinates = whole_number(*info, "texCoord", 0, here);
  if (const Json* const how = extension(*info, "KHR_texture_transform")) {
    const std::string at = here + ".extensions.KHR_texture_transform";
    transform(*how, at, out.place);
    out.coordinates = whole_number(*how, "texCoord", out.coordinates, at);
  }
  if (const auto sampler = whole_number(named, "sampler", there)) {
    const Json& how = document_.item("samplers", *sampler, there + ".sampler");
    out.place.wrap_u = wrap_of(whole_number(how, "wrapS", 10497, place("samplers", *sampler)));
    out.place.wrap_v = wrap_of(whole_number(how, "wrapT", 10497, place("samplers", *sampler)));
  }
  return out;
}

void GltfMaterials::use(const Texture& texture, int32_t& image, ImagePlace& place,
                        std::vector<uint64_t>& uv_sets) const {
  image = texture.image;
  place = texture.place;
  if (image < 0) return;
  const auto known = std::find(uv_sets.begin(), uv_sets.end(), texture.coordinates);
  place.uv_set = uint32_t(known - uv_sets.begin());
  if (known == uv_sets.end()) uv_sets.push_back(texture.coordinates);
}

// The older model of specular colour and gloss. A voxel can show only its diffuse part.
void GltfMaterials::read_specular(const Json& glossy, const std::string& where, MeshMaterial& m, Texture& base) {
  double diffuse[4] = {1, 1, 1, 1};
  numbers(glossy, "diffuseFactor", diffuse, where);
  std::transform(diffuse, diffuse + 4, m.base_color, [](double value) { return float(value); });
  m.roughness = float(1 - number(glossy, "glossinessFactor", 1, where));
  m.metalness = 0;
  base = texture(glossy, "diffuseTexture", false, where);
}

MeshMaterial GltfMaterials::read(const Json& source, const std::string& where, std::vector<uint64_t>& uv_sets) {
  MeshMaterial m;
  m.name = text(source, "name");
  m.roughness = m.metalness = 1;
  Texture base, metal_rough;
  const Json* const surface = member(source, "pbrMetallicRoughness");
  if (const Json* const glossy = extension(source, "KHR_materials_pbrSpecularGlossiness")) {
    read_specular(*glossy, where + ".extensions.KHR_materials_pbrSpecularGlossiness", m, base);
  } else if (surface) {
    const std::string here = where + ".pbrMetallicRoughness";
    double color[4] = {1, 1, 1, 1};
    numbers(*surface, "baseColorFactor", color, here);
    std::transform(color, color + 4, m.base_color, [](double value) { return float(value); });
    m.roughness = float(number(*surface, "roughnessFactor", 1, here));
    m.metalness = float(number(*surface, "metallicFactor", 1, here));
    base = texture(*surface, "baseColorTexture", false, here);
    metal_rough = texture(*surface, "metallicRoughnessTexture", true, here);
  }
  double glow[3] = {0, 0, 0}, strength = 1;
  numbers(source, "emissiveFactor", glow, where);
  if (const Json* const stronger = extension(source, "KHR_materials_emissive_strength"))
    strength = number(*stronger, "emissiveStrength", 1, where + ".extensions.KHR_materials_emissive_strength");
  std::transform(glow, glow + 3, m.emission, [&](double value) { return float(value * strength); });

  use(base, m.base_color_image, m.base_color_place, uv_sets);
  use(metal_rough, m.metal_rough_image, m.metal_rough_place, uv_sets);
  if (m.emission[0] > 0 || m.emission[1] > 0 || m.emission[2] > 0)
    use(texture(source, "emissiveTexture", false, where), m.emission_image, m.emission_place, uv_sets);
  return m;
}

}  // namespace quarry::mesh_reader
