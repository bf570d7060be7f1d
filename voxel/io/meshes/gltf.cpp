// SPDX-License-Identifier: Apache-2.0
// gltf.cpp - glTF 2.0, as one .glb file or as .gltf with its data inside. There is one mesh, with one primitive and one
// material for each colour. There are no normals, so by the specification readers shade each triangle flat, as voxels
// look.
#include <algorithm>
#include <cstring>

#include "voxel/io/files/atomic_file.hpp"
#include "voxel/io/meshes/surface_source.hpp"
#include "voxel/io/meshes/write.hpp"
#include "voxel/worlds/source_units.hpp"

namespace quarry::io {
namespace {
namespace fs = std::filesystem;

std::string json_text(std::string_view s) {
  std::string out = "\"";
  for (size_t i = 0; i < s.size(); ++i) {
    const auto c = uint8_t(s[i]);
    if (c == '"' || c == '\\') {
      (out += '\\') += char(c);
    } else if (c < 32) {
      constexpr char kHex[] = "0123456789abcdef";
      out += {'\\', 'u', '0', '0', kHex[c >> 4], kHex[c & 15]};
    } else if (c < 128) {
      out += char(c);
    } else {
      // Whole UTF-8 sequences are kept. Other bytes must not make the document invalid.
      const size_t more = c >= 0xf0 && c < 0xf5 ? 3 : c >= 0xe0 && c < 0xf0 ? 2 : c >= 0xc2 && c < 0xe0 ? 1 : 0;
      const bool whole = more > 0 && i + more < s.size() &&
                         std::all_of(s.begin() + int64_t(i) + 1, s.begin() + int64_t(i + more) + 1,
                                     [](char d) { return (uint8_t(d) & 0xc0) == 0x80; });
      if (whole) out += s.substr(i, more + 1), i += more;
      else out += '?';
    }
  }
  return out + "\"";
}

std::string json_numbers(std::initializer_list<float> values) {
  std::string out = "[";
  for (const float v : values) (out += out.size() > 1 ? "," : "") += number_text(v);
  return out + "]";
}

struct Extensions {
  bool emissive_strength = false, ior = false;
};

std::string material_json(const Palette& palette, uint8_t index, Extensions& used) {
  const Material& m = palette.materials[index];
  const auto c = linear_color(m);
  std::string out =
      "{\"name\":" + json_text(material_name(palette, index)) +
      ",\"pbrMetallicRoughness\":{\"baseColorFactor\":" + json_numbers({c[0], c[1], c[2], 1 - m.transparency}) +
      ",\"metallicFactor\":" + number_text(m.metalness) + ",\"roughnessFactor\":" + number_text(m.roughness) + "}";
  std::string extensions;
  if (m.emission > 0) {
    const float below_one = std::min(m.emission, 1.0f);
    out += ",\"emissiveFactor\":" + json_numbers({c[0] * below_one, c[1] * below_one, c[2] * below_one});
    if (m.emission > 1) {
      extensions = "\"KHR_materials_emissive_strength\":{\"emissiveStrength\":" + number_text(m.emission) + "}";
      used.emissive_strength = true;
    }
  }
  if (m.ior != Material{}.ior && m.ior >= 1) {
    (extensions += extensions.empty() ? "" : ",") += "\"KHR_materials_ior\":{\"ior\":" + number_text(m.ior) + "}";
    used.ior = true;
  }
  if (m.transparency > 0) out += ",\"alphaMode\":\"BLEND\"";
  if (!extensions.empty()) out += ",\"extensions\":{" + extensions + "}";
  return out + ",\"extras\":{\"palette_index\":" + std::to_string(index) + "}}";
}

// The sizes of one part's vertices and indices, for its accessors.
struct Primitive {
  uint64_t position_bytes = 0, index_bytes = 0;  // then padded to 4
  bool wide = false;                             // indices of 32 bits
  uint64_t bytes() const { return (position_bytes + index_bytes + 3) & ~uint64_t(3); }
};

Primitive primitive_of(uint64_t vertices, uint64_t indices) {
  const bool wide = vertices >= 65535;  // the highest value is for primitive restart
  return {vertices * 12, indices * (wide ? 4 : 2), wide};
}

// Writes the data in the file's form: plain, or in base64.
class DataSink {
 public:
  DataSink(AtomicFile& out, bool plain) : out_(out), plain_(plain) {}
  void put(const void* data, size_t count) {
    const auto* bytes = static_cast<const uint8_t*>(data);
    if (plain_) return out_.put({bytes, count});
    constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < count; ++i) {
      bits_ = bits_ << 8 | bytes[i];
      for (have_ += 8; have_ >= 6; have_ -= 6) letter(kLetters[bits_ >> (have_ - 6) & 63]);
    }
    if (count) last_ = kLetters[bits_ << (6 - have_) & 63];
  }
  void end() {
    if (plain_) return;
    if (have_) letter(last_);
    while (letters_ % 4) letter('=');
    out_.put(text_);
  }

 private:
  void letter(char c) {
    text_ += c;
    ++letters_;
    if (text_.size() < 4096) return;
    out_.put(text_);
    text_.clear();
  }
  AtomicFile& out_;
  const bool plain_;
  std::string text_;
  uint64_t letters_ = 0;
  uint32_t bits_ = 0, have_ = 0;
  char last_ = 0;
};

Result<void> put_primitive(const SurfaceSource& surface, size_t part, const Primitive& primitive,
                           const VertexNumbers& numbers, DataSink& out) {
  QRY_TRY(numbers.positions(surface, [&](Int3 p) {
    const float xyz[3] = {float(p.x), float(p.y), float(p.z)};
    out.put(xyz, sizeof xyz);
  }));
  auto listed = surface.indices(part, [&](std::span<const uint32_t> indices) {
    for (const uint32_t i : indices) {
      const uint32_t n = numbers.of(i);
      const auto narrow = uint16_t(n);
      if (primitive.wide) out.put(&n, 4);
      else out.put(&narrow, 2);
    }
  });
  constexpr uint8_t kPadding[4]{};
  out.put(kPadding, size_t(primitive.bytes() - primitive.position_bytes - primitive.index_bytes));
  return listed;
}

Result<void> write_gltf_surface(const Scene& scene, const SurfaceSource& surface, const Destination& to,
                                const Progress& progress) {
  std::string extension = to.file.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  const bool binary = extension == ".glb";
  const auto parts = surface.parts();

  Extensions extensions;
  std::string materials, primitive_list, views, accessors;
  std::vector<Primitive> primitives;
  VertexNumbers numbers(surface.vertices());
  uint64_t bytes = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped; nothing was written");
    QRY_TRY(numbers.use(surface, i));
    primitives.push_back(primitive_of(numbers.count(), parts[i].indices));
    const Primitive& p = primitives.back();
    const Box3& box = parts[i].bounds;
    const std::string comma = i ? "," : "", position_view = std::to_string(2 * i),
                      index_view = std::to_string(2 * i + 1);
    materials += comma;
    materials += material_json(scene.palette, parts[i].material, extensions);
    primitive_list += comma + "{\"attributes\":{\"POSITION\":" + position_view + "},\"indices\":" + index_view +
                      ",\"material\":" + std::to_string(i) + "}";
    views += comma + "{\"buffer\":0,\"byteOffset\":" + std::to_string(bytes) +
             ",\"byteLength\":" + std::to_string(p.position_bytes) +
             ",\"target\":34962},{\"buffer\":0,\"byteOffset\":" + std::to_string(bytes + p.position_bytes) +
             ",\"byteLength\":" + std::to_string(p.index_bytes) + ",\"target\":34963}";
    accessors += comma + "{\"bufferView\":" + position_view +
                 ",\"componentType\":5126,\"count\":" + std::to_string(numbers.count()) +
                 ",\"type\":\"VEC3\",\"min\":" + json_numbers({float(box.min.x), float(box.min.y), float(box.min.z)}) +
                 ",\"max\":" + json_numbers({float(box.max.x), float(box.max.y), float(box.max.z)}) +
                 "},{\"bufferView\":" + index_view + ",\"componentType\":" + (p.wide ? "5125" : "5123") +
                 ",\"count\":" + std::to_string(parts[i].indices) + ",\"type\":\"SCALAR\"}";
    bytes += p.bytes();
  }
  if (bytes > UINT32_MAX - (1u << 24))
    return fail(ErrorCode::unsupported, "its data would be " + std::to_string(bytes) +
                                            " bytes; a .glb file holds 4 GiB. Make it coarser or cut it into pieces");

  std::string used;
  if (extensions.emissive_strength) used += "\"KHR_materials_emissive_strength\"";
  if (extensions.ior) (used += used.empty() ? "" : ",") += "\"KHR_materials_ior\"";
  const std::string name = json_text(to.file.stem().string());
  std::string extras;
  if (const auto units = source_units(scene))
    extras = ",\"extras\":{\"voxel_size\":" + shortest_text(units->voxel_size) + ",\"origin\":[" +
             shortest_text(units->origin[0]) + "," + shortest_text(units->origin[1]) + "," +
             shortest_text(units->origin[2]) + "]}";
  std::string json = "{\"asset\":{\"version\":\"2.0\",\"generator\":\"Quarry\"},";
  if (!used.empty()) json += "\"extensionsUsed\":[" + used + "],";
  json += "\"scene\":0,\"scenes\":[{\"nodes\":[0]}],\"nodes\":[{\"name\":" + name + ",\"mesh\":0" + extras +
          "}],\"meshes\":[{\"name\":" + name + ",\"primitives\":[" + primitive_list + "]}],\"materials\":[" +
          materials + "],\"accessors\":[" + accessors + "],\"bufferViews\":[" + views + "],\"buffers\":[{";
  const std::string length = "\"byteLength\":" + std::to_string(bytes) + "}]}";
  if (binary) json += length;

  QRY_TRY_ASSIGN(auto out, AtomicFile::create(to));
  if (binary) {
    json.resize((json.size() + 3) & ~size_t(3), ' ');
    out.put("glTF");
    out.put_u32(2);
    out.put_u32(uint32_t(12 + 8 + json.size() + 8 + bytes));
    out.put_u32(uint32_t(json.size()));
    out.put("JSON");
    out.put(json);
    out.put_u32(uint32_t(bytes));
    out.put(std::string_view("BIN\0", 4));
  } else {
    out.put(json + "\"uri\":\"data:application/octet-stream;base64,");
  }
  DataSink data(out, binary);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped; nothing was written");
    if (parts.size() > 1) QRY_TRY(numbers.use(surface, i));
    QRY_TRY(put_primitive(surface, i, primitives[i], numbers, data));
    progress.say("write", double(i + 1) / double(parts.size()));
  }
  data.end();
  if (!binary) out.put("\"," + length + "\n");
  if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped; nothing was written");
  return out.commit();
}

}  // namespace

Result<void> write_gltf(const Scene& scene, const Destination& to, const Progress& progress) {
  const auto surface = surface_of(scene, progress);
  return surface ? write_gltf_surface(scene, **surface, to, progress) : tl::unexpected(surface.error());
}

Result<void> write_gltf_regions(const VisibleRegions& voxels, const Destination& to, const Progress& progress) {
  const auto surface = surface_of(voxels, to.file, progress);
  return surface ? write_gltf_surface(voxels.scene(), **surface, to, progress) : tl::unexpected(surface.error());
}

}  // namespace quarry::io
