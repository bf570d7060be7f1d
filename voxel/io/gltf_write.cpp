// gltf_write.cpp - glTF 2.0, as one .glb file or as .gltf with its data inside. One mesh, one primitive and one material for each colour.
// No normals: the specification has readers then shade each triangle flat, which is what voxels look like.
#include <algorithm>
#include <cstring>

#include "voxel/io/mesh_write.hpp"
#include "voxel/io/whole_file.hpp"
#include "voxel/source_units.hpp"

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
      // Whole UTF-8 sequences go through; names that are none must not spoil the document.
      const size_t more = c >= 0xf0 && c < 0xf5 ? 3 : c >= 0xe0 && c < 0xf0 ? 2 : c >= 0xc2 && c < 0xe0 ? 1 : 0;
      const bool whole = more > 0 && i + more < s.size() && std::all_of(s.begin() + int64_t(i) + 1, s.begin() + int64_t(i + more) + 1, [](char d) { return (uint8_t(d) & 0xc0) == 0x80; });
      if (whole) out += s.substr(i, more + 1), i += more;
      else out += '?';
    }
  }
  return out + "\"";
}

std::string numbers(std::initializer_list<float> values) {
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
  std::string out = "{\"name\":" + json_text(material_name(palette, index)) + ",\"pbrMetallicRoughness\":{\"baseColorFactor\":" +
                    numbers({c[0], c[1], c[2], 1 - m.transparency}) + ",\"metallicFactor\":" + number_text(m.metalness) + ",\"roughnessFactor\":" + number_text(m.roughness) + "}";
  std::string extensions;
  if (m.emission > 0) {
    const float below_one = std::min(m.emission, 1.0f);
    out += ",\"emissiveFactor\":" + numbers({c[0] * below_one, c[1] * below_one, c[2] * below_one});
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

// One part's vertices and indices, as accessors see them.
struct Primitive {
  std::vector<uint8_t> bytes;  // positions, then indices, padded to 4
  uint64_t position_bytes = 0, index_bytes = 0;
  uint32_t vertices = 0;
  bool wide = false;  // indices of 32 bits
  Int3 min, max;
};

Primitive make_primitive(const SurfaceMesh& mesh, const SurfaceMesh::Part& part, std::vector<uint32_t>& number, std::vector<uint8_t>& seen) {
  Primitive out;
  std::vector<uint32_t> used;
  for (const uint32_t i : part.indices)
    if (!seen[i]) seen[i] = 1, used.push_back(i);
  std::sort(used.begin(), used.end());
  out.vertices = uint32_t(used.size());
  out.position_bytes = uint64_t(used.size()) * 12;
  out.wide = used.size() >= 65535;  // the highest value is for primitive restart
  out.index_bytes = part.indices.size() * (out.wide ? 4 : 2);
  out.bytes.resize((out.position_bytes + out.index_bytes + 3) & ~uint64_t(3));
  out.min = out.max = mesh.positions[used.front()];
  for (size_t n = 0; n < used.size(); ++n) {
    number[used[n]] = uint32_t(n);
    seen[used[n]] = 0;
    const Int3 p = mesh.positions[used[n]];
    out.min = {std::min(out.min.x, p.x), std::min(out.min.y, p.y), std::min(out.min.z, p.z)};
    out.max = {std::max(out.max.x, p.x), std::max(out.max.y, p.y), std::max(out.max.z, p.z)};
    const float xyz[3] = {float(p.x), float(p.y), float(p.z)};
    std::memcpy(out.bytes.data() + 12 * n, xyz, 12);
  }
  uint8_t* at = out.bytes.data() + out.position_bytes;
  for (const uint32_t i : part.indices) {
    const uint32_t n = number[i];
    const auto narrow = uint16_t(n);
    if (out.wide) std::memcpy(at, &n, 4), at += 4;
    else std::memcpy(at, &narrow, 2), at += 2;
  }
  return out;
}

std::string base64(const std::vector<Primitive>& primitives) {
  constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  uint32_t bits = 0, have = 0;
  for (const Primitive& p : primitives)
    for (const uint8_t b : p.bytes) {
      bits = bits << 8 | b;
      for (have += 8; have >= 6; have -= 6) out += kLetters[bits >> (have - 6) & 63];
    }
  if (have) out += kLetters[bits << (6 - have) & 63];
  while (out.size() % 4) out += '=';
  return out;
}

}  // namespace

Result<void> write_gltf(const Scene& scene, const fs::path& file, const Progress& progress) {
  const auto mesh = visible_surface(scene, progress);
  if (!mesh) return tl::unexpected(mesh.error());
  std::string extension = file.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  const bool binary = extension == ".glb";

  Extensions extensions;
  std::string materials, primitive_list, views, accessors;
  std::vector<Primitive> primitives;
  std::vector<uint32_t> number(mesh->positions.size());
  std::vector<uint8_t> seen(mesh->positions.size());
  uint64_t bytes = 0;
  for (size_t i = 0; i < mesh->parts.size(); ++i) {
    if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped; nothing was written");
    primitives.push_back(make_primitive(*mesh, mesh->parts[i], number, seen));
    const Primitive& p = primitives.back();
    const std::string comma = i ? "," : "", positions = std::to_string(2 * i), indices = std::to_string(2 * i + 1);
    materials += comma + material_json(scene.palette, mesh->parts[i].material, extensions);
    primitive_list += comma + "{\"attributes\":{\"POSITION\":" + positions + "},\"indices\":" + indices + ",\"material\":" + std::to_string(i) + "}";
    views += comma + "{\"buffer\":0,\"byteOffset\":" + std::to_string(bytes) + ",\"byteLength\":" + std::to_string(p.position_bytes) + ",\"target\":34962},{\"buffer\":0,\"byteOffset\":" +
             std::to_string(bytes + p.position_bytes) + ",\"byteLength\":" + std::to_string(p.index_bytes) + ",\"target\":34963}";
    accessors += comma + "{\"bufferView\":" + positions + ",\"componentType\":5126,\"count\":" + std::to_string(p.vertices) + ",\"type\":\"VEC3\",\"min\":" +
                 numbers({float(p.min.x), float(p.min.y), float(p.min.z)}) + ",\"max\":" + numbers({float(p.max.x), float(p.max.y), float(p.max.z)}) + "},{\"bufferView\":" + indices +
                 ",\"componentType\":" + (p.wide ? "5125" : "5123") + ",\"count\":" + std::to_string(mesh->parts[i].indices.size()) + ",\"type\":\"SCALAR\"}";
    bytes += p.bytes.size();
    progress.say("write", double(i + 1) / double(mesh->parts.size()));
  }
  if (bytes > UINT32_MAX - (1u << 24)) return fail(ErrorCode::unsupported, "its data would be " + std::to_string(bytes) + " bytes; a .glb file holds 4 GiB. Make it coarser or cut it into pieces");

  std::string used;
  if (extensions.emissive_strength) used += "\"KHR_materials_emissive_strength\"";
  if (extensions.ior) (used += used.empty() ? "" : ",") += "\"KHR_materials_ior\"";
  const std::string name = json_text(file.stem().string());
  std::string extras;
  if (const auto units = source_units(scene))
    extras = ",\"extras\":{\"voxel_size\":" + shortest_text(units->voxel_size) + ",\"origin\":[" + shortest_text(units->origin[0]) + "," + shortest_text(units->origin[1]) + "," +
             shortest_text(units->origin[2]) + "]}";
  std::string json = "{\"asset\":{\"version\":\"2.0\",\"generator\":\"Quarry\"},";
  if (!used.empty()) json += "\"extensionsUsed\":[" + used + "],";
  json += "\"scene\":0,\"scenes\":[{\"nodes\":[0]}],\"nodes\":[{\"name\":" + name + ",\"mesh\":0" + extras + "}],\"meshes\":[{\"name\":" + name + ",\"primitives\":[" + primitive_list +
          "]}],\"materials\":[" + materials + "],\"accessors\":[" + accessors + "],\"bufferViews\":[" + views + "],\"buffers\":[{";
  if (!binary) json += "\"uri\":\"data:application/octet-stream;base64," + base64(primitives) + "\",";
  json += "\"byteLength\":" + std::to_string(bytes) + "}]}";

  auto out = WholeFile::create(file);
  if (!out) return tl::unexpected(out.error());
  if (!binary) {
    out->put(json + "\n");
    return out->commit();
  }
  json.resize((json.size() + 3) & ~size_t(3), ' ');
  out->put("glTF");
  out->put_u32(2);
  out->put_u32(uint32_t(12 + 8 + json.size() + 8 + bytes));
  out->put_u32(uint32_t(json.size()));
  out->put("JSON");
  out->put(json);
  out->put_u32(uint32_t(bytes));
  out->put(std::string_view("BIN\0", 4));
  for (const Primitive& p : primitives) out->put(p.bytes);
  if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped; nothing was written");
  return out->commit();
}

}  // namespace quarry::io
