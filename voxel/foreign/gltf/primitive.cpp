// SPDX-License-Identifier: Apache-2.0
// primitive.cpp - converts attributes and indices to triangles. Vertices are renumbered without gaps in rising order.
#include "voxel/foreign/gltf/primitive.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "voxel/foreign/gltf/accessor.hpp"
#include "voxel/foreign/gltf/compressed.hpp"
#include "voxel/foreign/pipe/vertex_color.hpp"

namespace quarry::mesh_reader {
namespace {

constexpr uint64_t kTriangles = 4, kTriangleStrip = 5, kTriangleFan = 6;

// A primitive's attributes by name, compressed or not.
class Attributes {
 public:
  Attributes(GltfDocument& document, const Json& primitive, const std::string& where, const GltfWanted& wanted)
      : document_(document), primitive_(primitive), where_(where), wanted_(wanted) {
    if (const Json* const draco = extension(primitive, "KHR_draco_mesh_compression")) decompress(*draco);
  }

  const std::optional<DracoMesh>& draco() const { return draco_; }

  std::optional<GltfAccessor> find(const std::string& name) {
    if (draco_)
      for (DracoAttribute& attribute : draco_->attributes)
        if (attribute.name == name) return decompressed(attribute);
    const Json* const all = member(primitive_, "attributes");
    if (!all) return std::nullopt;
    const auto index = whole_number(*all, name.c_str(), where_ + ".attributes");
    if (!index) return std::nullopt;
    return GltfAccessor(document_, *index, where_ + ".attributes." + name);
  }

 private:
  void decompress(const Json& draco) {
    const std::string here = where_ + ".extensions.KHR_draco_mesh_compression";
    const auto view = whole_number(draco, "bufferView", here);
    if (!view) gltf_fault(here + " names no bufferView.");
    std::vector<std::string> names{"POSITION", "COLOR_0", "TEXCOORD_0"};
    for (const uint64_t n : wanted_.uv_sets)
      if (n != 0) names.push_back("TEXCOORD_" + std::to_string(n));
    std::vector<std::pair<std::string, uint64_t>> ids;
    if (const Json* const all = member(draco, "attributes"))
      for (const std::string& name : names)
        if (const auto id = whole_number(*all, name.c_str(), here + ".attributes")) ids.emplace_back(name, *id);
    auto decoded = decode_draco(document_.view(*view, here + ".bufferView").bytes, ids);
    if (!decoded) throw GltfFault{{decoded.error().code, here + ": " + decoded.error().message}};
    draco_ = std::move(*decoded);
  }

  // The accessor says what the numbers mean, though it has no bytes.
  GltfAccessor decompressed(DracoAttribute& attribute) {
    auto& kept = kept_.emplace_back(attribute.name, nullptr);
    for (const auto& [name, values] : kept_)
      if (name == attribute.name && values) return {values, attribute.components};
    const Json* const all = member(primitive_, "attributes");
    const auto index = all ? whole_number(*all, attribute.name.c_str(), where_ + ".attributes") : std::nullopt;
    if (index && !attribute.normalized) {
      const Json& object = document_.item("accessors", *index, where_ + ".attributes." + attribute.name);
      const double divisor = boolean(object, "normalized")
                                 ? largest_of_type(whole_number(object, "componentType", 0, place("accessors", *index)))
                                 : 1;
      for (float& value : attribute.values) value = divisor == 1 ? value : std::max(float(value / divisor), -1.0f);
    }
    kept.second = std::make_shared<const std::vector<float>>(std::move(attribute.values));
    return {kept.second, attribute.components};
  }

  static double largest_of_type(uint64_t type) {
    switch (type) {
      case 5120: return 127;
      case 5121: return 255;
      case 5122: return 32767;
      case 5123: return 65535;
      default: return 1;
    }
  }

  GltfDocument& document_;
  const Json& primitive_;
  const std::string& where_;
  const GltfWanted& wanted_;
  std::optional<DracoMesh> draco_;
  std::vector<std::pair<std::string, std::shared_ptr<const std::vector<float>>>> kept_;
};

uint64_t mode_of(const Json& primitive, const std::string& where) {
  const uint64_t mode = whole_number(primitive, "mode", kTriangles, where);
  if (mode > kTriangleFan) gltf_fault(where + ".mode " + std::to_string(mode) + ": glTF has modes 0 to 6.");
  return mode;
}

// The corners of triangle t of a sequence of vertices.
std::array<uint64_t, 3> corners(uint64_t mode, uint64_t t) {
  if (mode == kTriangleStrip) return {t, t + 1 + t % 2, t + 2 - t % 2};
  if (mode == kTriangleFan) return {t + 1, t + 2, 0};
  return {3 * t, 3 * t + 1, 3 * t + 2};
}

// The triangles whose vertex numbers are in range.
std::vector<uint32_t> triangles_of(uint64_t mode, uint64_t length, uint64_t vertices,
                                   const std::function<uint32_t(uint64_t)>& index, const GltfWanted& wanted,
                                   uint64_t& bad) {
  const uint64_t triangles = mode == kTriangles ? length / 3 : length < 3 ? 0 : length - 2;
  if (triangles > wanted.most_triangles) throw GltfFault{{ErrorCode::out_of_memory, ""}};
  std::vector<uint32_t> out;
  out.reserve(triangles * 3);
  for (uint64_t t = 0; t < triangles; ++t) {
    const auto at = corners(mode, t);
    const uint32_t v[3] = {index(at[0]), index(at[1]), index(at[2])};
    if (v[0] < vertices && v[1] < vertices && v[2] < vertices) out.insert(out.end(), v, v + 3);
    else ++bad;
  }
  return out;
}

// Renumbers `indices` from 0 on without gaps. Returns the old numbers, rising.
std::vector<uint32_t> keep_used(std::vector<uint32_t>& indices, uint64_t vertices) {
  std::vector<uint32_t> used;
  if (vertices / 4 <= indices.size()) {
    std::vector<uint32_t> number(vertices, 0);
    for (const uint32_t i : indices) number[i] = 1;
    for (uint64_t v = 0; v < vertices; ++v)
      if (number[v]) {
        number[v] = uint32_t(used.size());
        used.push_back(uint32_t(v));
      }
    for (uint32_t& i : indices) i = number[i];
  } else {  // few vertices are used: an array over all of them for each primitive would take quadratic time
    used = indices;
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    for (uint32_t& i : indices) i = uint32_t(std::lower_bound(used.begin(), used.end(), i) - used.begin());
  }
  return used;
}

std::vector<float> floats_of(const GltfAccessor& from, std::span<const uint32_t> which) {
  std::vector<float> out;
  out.reserve(which.size() * from.components());
  double values[4];
  for (const uint32_t v : which) {
    from.read(v, values);
    for (uint32_t c = 0; c < from.components(); ++c) out.push_back(float(values[c]));
  }
  return out;
}

std::vector<uint8_t> colors_of(const GltfAccessor& from, std::span<const uint32_t> which) {
  std::vector<uint8_t> out;
  out.reserve(which.size() * 4);
  for (const uint32_t v : which) {
    double c[4] = {0, 0, 0, 1};  // three components are opaque
    from.read(v, c);
    for (int k = 0; k < 3; ++k) out.push_back(linear_to_srgb_byte(float(c[k])));
    out.push_back(to_byte(float(c[3])));
  }
  return out;
}

}  // namespace

bool has_triangles(const Json& primitive, const std::string& where) { return mode_of(primitive, where) >= kTriangles; }

GltfPart read_primitive(GltfDocument& document, const Json& primitive, const std::string& where,
                        const GltfWanted& wanted) {
  GltfPart part;
  Attributes attributes(document, primitive, where, wanted);
  const auto position = attributes.find("POSITION");
  if (!position) return part;  // the specification lets readers skip primitives without positions
  if (position->components() != 3) gltf_fault(where + ".attributes.POSITION is not of VEC3.");
  const uint64_t vertices = position->count(), mode = mode_of(primitive, where);
  if (vertices > kMaxVertices) throw GltfFault{{ErrorCode::out_of_memory, ""}};

  if (attributes.draco()) {
    const auto& list = attributes.draco()->indices;
    part.indices = triangles_of(
        kTriangles, list.size(), vertices, [&](uint64_t i) { return list[i]; }, wanted, part.bad_indices);
  } else if (const auto index = whole_number(primitive, "indices", where)) {
    const GltfAccessor list(document, *index, where + ".indices");
    const bool whole =
        list.component() == Component::u8 || list.component() == Component::u16 || list.component() == Component::u32;
    if (!whole || list.components() != 1)
      gltf_fault(place("accessors", *index) + ": " + where + ".indices needs single unsigned integers.");
    part.indices = triangles_of(
        mode, list.count(), vertices, [&](uint64_t i) { return list.read_index(i); }, wanted, part.bad_indices);
  } else {
    part.indices = triangles_of(
        mode, vertices, vertices, [](uint64_t i) { return uint32_t(i); }, wanted, part.bad_indices);
  }
  const std::vector<uint32_t> used = keep_used(part.indices, vertices);
  part.positions = floats_of(*position, used);

  // An attribute of the wrong length or kind is left out, so that the shape is not lost.
  const auto fits = [&](const std::optional<GltfAccessor>& attribute, const std::string& name, uint32_t least,
                        uint32_t most) {
    if (!attribute) return false;
    const bool good =
        attribute->count() >= vertices && attribute->components() >= least && attribute->components() <= most;
    if (!good) wanted.warn(where + ".attributes." + name + " is left out: it does not go with the positions");
    return good;
  };
  if (const auto color = attributes.find("COLOR_0"); fits(color, "COLOR_0", 3, 4))
    part.colors = colors_of(*color, used);
  for (const uint64_t n : wanted.uv_sets) {
    std::string name = "TEXCOORD_" + std::to_string(n);
    auto uv = attributes.find(name);
    if (!uv) uv = attributes.find(name = "TEXCOORD_0");
    part.uvs.push_back(fits(uv, name, 2, 2) ? floats_of(*uv, used) : std::vector<float>());
  }
  if (wanted.targets > 0)
    if (const Json* const targets = member(primitive, "targets"); targets && targets->is_array())
      for (size_t i = 0; i < std::min(wanted.targets, targets->size()); ++i) {
        const std::string name = where + ".targets[" + std::to_string(i) + "]";
        part.targets.emplace_back();
        const auto index = whole_number((*targets)[i], "POSITION", name);
        if (!index) continue;
        const GltfAccessor moves(document, *index, name + ".POSITION");
        if (moves.components() != 3 || moves.count() < vertices)
          gltf_fault(name + ".POSITION is not as long as the positions, or not of VEC3.");
        part.targets.back() = floats_of(moves, used);
      }
  return part;
}

}  // namespace quarry::mesh_reader
