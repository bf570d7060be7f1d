// SPDX-License-Identifier: Apache-2.0
// gltf_seeds.hpp - writes small glTF files: what the reader's tests compare, and first inputs of its fuzzer.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace quarry::test {

using GltfJson = nlohmann::json;
using GltfBytes = std::vector<uint8_t>;

template <class T>
void put_number(GltfBytes& out, T value) {
  uint8_t bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

// A file in the making: `json` may be changed at will; the one buffer grows.
class Gltf {
 public:
  using Rows = std::vector<std::vector<double>>;

  Gltf() {
    json = GltfJson::parse(
        R"({"asset":{"version":"2.0"},"scene":0,"scenes":[{"nodes":[0]}],"nodes":[{"mesh":0}],"meshes":[],)"
        R"("accessors":[],"bufferViews":[]})");
  }
  GltfJson json;
  GltfBytes bytes;

  size_t view(const GltfBytes& data, size_t stride = 0) {
    bytes.resize((bytes.size() + 3) / 4 * 4);
    GltfJson v{{"buffer", 0}, {"byteOffset", bytes.size()}, {"byteLength", data.size()}};
    if (stride) v["byteStride"] = stride;
    bytes.insert(bytes.end(), data.begin(), data.end());
    json["bufferViews"].push_back(v);
    return json["bufferViews"].size() - 1;
  }

  // `type`: b B h H I f, as in Python's struct. Rows begin at multiples of 4 bytes, but those of one column, and those
  // of a `stride`.
  size_t accessor(const Rows& rows, char type, bool normalized = false, size_t stride = 0) {
    const size_t columns = rows[0].size(), size = columns * size_of(type);
    if (!stride) stride = columns == 1 ? size : (size + 3) / 4 * 4;
    GltfBytes data;
    for (const auto& row : rows) {
      for (const double value : row) put(data, type, value);
      data.resize((data.size() + stride - 1) / stride * stride);
    }
    const GltfJson a{{"bufferView", view(data, stride == size ? 0 : stride)},
                     {"componentType", code_of(type)},
                     {"count", rows.size()},
                     {"type", kind(columns)}};
    json["accessors"].push_back(a);
    if (normalized) json["accessors"].back()["normalized"] = true;
    return json["accessors"].size() - 1;
  }
  size_t column(const std::vector<uint32_t>& numbers, char type = 'H') {
    Rows rows;
    for (const uint32_t n : numbers) rows.push_back({double(n)});
    return accessor(rows, type);
  }

  GltfJson& primitive(const GltfJson& attributes, const std::vector<uint32_t>& indices, char type = 'H') {
    json["meshes"].push_back(
        {{"primitives", GltfJson::array({{{"attributes", attributes}, {"indices", column(indices, type)}}})}});
    return json["meshes"].back()["primitives"][0];
  }

  void require(const std::string& name) {
    json["extensionsUsed"].push_back(name);
    json["extensionsRequired"].push_back(name);
  }

  GltfBytes glb() {
    json["buffers"] = GltfJson::array({{{"byteLength", bytes.size()}}});
    if (!other_buffers.empty())
      json["buffers"].insert(json["buffers"].end(), other_buffers.begin(), other_buffers.end());
    return container(json.dump(), bytes);
  }
  // `uri`: of the buffer; empty: it is inside, as base64.
  std::string text(std::string uri = "") {
    if (uri.empty()) uri = data_uri("application/octet-stream", bytes);
    json["buffers"] = GltfJson::array({{{"byteLength", bytes.size()}, {"uri", uri}}});
    return json.dump();
  }
  GltfJson other_buffers = GltfJson::array();

  static GltfBytes container(std::string text, GltfBytes binary) {
    text.resize((text.size() + 3) / 4 * 4, ' ');
    binary.resize((binary.size() + 3) / 4 * 4);
    GltfBytes out{'g', 'l', 'T', 'F'};
    for (const size_t n : {size_t(2), 28 + text.size() + binary.size(), text.size(), size_t(0x4E4F534A)})
      put_number(out, uint32_t(n));
    out.insert(out.end(), text.begin(), text.end());
    for (const size_t n : {binary.size(), size_t(0x004E4942)}) put_number(out, uint32_t(n));
    out.insert(out.end(), binary.begin(), binary.end());
    return out;
  }
  static std::string data_uri(const std::string& type, const GltfBytes& from) {
    static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out = "data:" + type + ";base64,";
    for (size_t i = 0; i < from.size(); i += 3) {
      const size_t have = std::min<size_t>(3, from.size() - i);
      const uint32_t bits =
          uint32_t(from[i]) << 16 | uint32_t(have > 1 ? from[i + 1] : 0) << 8 | uint32_t(have > 2 ? from[i + 2] : 0);
      for (size_t k = 0; k < 4; ++k) out += k > have ? '=' : kDigits[bits >> (18 - 6 * k) & 63];
    }
    return out;
  }
  static size_t size_of(char type) { return type == 'b' || type == 'B' ? 1 : type == 'h' || type == 'H' ? 2 : 4; }
  static int code_of(char type) {
    return type == 'b'   ? 5120
           : type == 'B' ? 5121
           : type == 'h' ? 5122
           : type == 'H' ? 5123
           : type == 'I' ? 5125
                         : 5126;
  }
  static const char* kind(size_t columns) {
    return columns == 1 ? "SCALAR" : columns == 2 ? "VEC2" : columns == 3 ? "VEC3" : "VEC4";
  }
  static void put(GltfBytes& out, char type, double value) {
    switch (type) {
      case 'b': return put_number(out, int8_t(value));
      case 'B': return put_number(out, uint8_t(value));
      case 'h': return put_number(out, int16_t(value));
      case 'H': return put_number(out, uint16_t(value));
      case 'I': return put_number(out, uint32_t(value));
      default: return put_number(out, float(value));
    }
  }
};

// A box of 2 x 1 x 0.5: eight corners, twelve triangles.
inline Gltf::Rows box_corners() {
  Gltf::Rows out;
  for (const double z : {-.25, .25})
    for (const double y : {-.5, .5})
      for (const double x : {-1., 1.}) out.push_back({x, y, z});
  return out;
}
inline std::vector<uint32_t> box_triangles() {
  std::vector<uint32_t> out;
  for (const auto& q : std::vector<std::array<uint32_t, 4>>{
           {0, 2, 3, 1}, {4, 5, 7, 6}, {0, 1, 5, 4}, {2, 6, 7, 3}, {0, 4, 6, 2}, {1, 3, 7, 5}})
    for (const size_t k : {0, 1, 2, 0, 2, 3}) out.push_back(q[k]);
  return out;
}
inline Gltf::Rows each(Gltf::Rows rows, double scale, double plus = 0) {
  for (auto& row : rows)
    for (double& value : row) value = std::round(value * scale) + plus;
  return rows;
}
inline Gltf gltf_box(const Gltf::Rows& rows = box_corners(), char type = 'f', bool normalized = false,
                     size_t stride = 0) {
  Gltf g;
  if (type != 'f') g.require("KHR_mesh_quantization");
  g.primitive({{"POSITION", g.accessor(rows, type, normalized, stride)}}, box_triangles());
  return g;
}

// A picture of 2 x 2: red, green, blue, yellow. Uncompressed PNG.
inline GltfBytes small_png() {
  const auto crc = [](const GltfBytes& from, size_t at) {
    uint32_t c = ~0u;
    for (size_t i = at; i < from.size(); ++i) {
      c ^= from[i];
      for (int k = 0; k < 8; ++k) c = c >> 1 ^ (c & 1 ? 0xEDB88320u : 0);
    }
    return ~c;
  };
  GltfBytes png{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  const auto big = [&](uint32_t v) {
    for (int shift = 24; shift >= 0; shift -= 8) png.push_back(uint8_t(v >> shift));
  };
  const auto chunk = [&](const std::string& name, const GltfBytes& content) {
    big(uint32_t(content.size()));
    const size_t at = png.size();
    png.insert(png.end(), name.begin(), name.end());
    png.insert(png.end(), content.begin(), content.end());
    big(crc(png, at));
  };
  chunk("IHDR", {0, 0, 0, 2, 0, 0, 0, 2, 8, 2, 0, 0, 0});
  const GltfBytes rows{0, 255, 0, 0, 0, 255, 0, 0, 0, 0, 255, 255, 255, 0};
  GltfBytes packed{0x78, 1, 1, uint8_t(rows.size()), 0, uint8_t(~rows.size()), 0xff};  // one stored block
  packed.insert(packed.end(), rows.begin(), rows.end());
  uint32_t a = 1, b = 0;
  for (const uint8_t v : rows) b = (b + (a = (a + v) % 65521)) % 65521;
  for (const uint32_t v : {b >> 8, b, a >> 8, a}) packed.push_back(uint8_t(v));
  chunk("IDAT", packed);
  chunk("IEND", {});
  return png;
}

// A square in the xy plane with that picture, not repeated; `uv` as numbers of `type`.
inline Gltf gltf_square(char type = 'f', double scale = 1, const Gltf::Rows& uv = {{0, 1}, {1, 1}, {1, 0}, {0, 0}}) {
  Gltf g;
  const size_t at = g.accessor({{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0}}, 'f');
  const size_t coordinates = g.accessor(type == 'f' ? uv : each(uv, scale), type, type != 'f');
  g.primitive({{"POSITION", at}, {"TEXCOORD_0", coordinates}}, {0, 1, 2, 0, 2, 3})["material"] = 0;
  g.json["materials"] =
      GltfJson::parse(R"([{"pbrMetallicRoughness":{"baseColorTexture":{"index":0},"metallicFactor":0}}])");
  g.json["textures"] = GltfJson::parse(R"([{"source":0,"sampler":0}])");
  g.json["samplers"] = GltfJson::parse(R"([{"magFilter":9728,"minFilter":9728,"wrapS":33071,"wrapT":33071}])");
  g.json["images"] = GltfJson::array({{{"bufferView", g.view(small_png())}, {"mimeType", "image/png"}}});
  return g;
}

inline GltfBytes text_bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

inline std::vector<std::pair<std::string, GltfBytes>> gltf_seeds() {
  std::vector<std::pair<std::string, GltfBytes>> out;
  out.emplace_back("box.glb", gltf_box().glb());
  out.emplace_back("box.gltf", text_bytes_of(gltf_box().text()));
  out.emplace_back("outside.gltf", text_bytes_of(gltf_box().text("a.bin")));
  out.emplace_back("quantised.glb", gltf_box(each(box_corners(), 32767), 'h', true).glb());
  out.emplace_back("square.glb", gltf_square('B', 255).glb());
  Gltf sparse = gltf_box();
  sparse.json["accessors"][0]["sparse"] = {{"count", 1},
                                           {"indices", {{"bufferView", sparse.view({7})}, {"componentType", 5121}}},
                                           {"values", {{"bufferView", 0}}}};
  out.emplace_back("sparse.glb", sparse.glb());
  Gltf instances = gltf_box();
  instances.require("EXT_mesh_gpu_instancing");
  instances.json["nodes"][0]["extensions"]["EXT_mesh_gpu_instancing"]["attributes"] = {
      {"TRANSLATION", instances.accessor({{0, 0, 0}, {0, 0, 4}}, 'f')},
      {"ROTATION", instances.accessor({{0, 0, 0, 127}, {127, 0, 0, 0}}, 'b', true)}};
  out.emplace_back("instances.glb", instances.glb());
  Gltf rich = gltf_square();
  auto& p = rich.json["meshes"][0]["primitives"][0];
  p["attributes"]["COLOR_0"] = rich.accessor({{255, 0, 0}, {0, 255, 0}, {0, 0, 255}, {9, 9, 9}}, 'B', true);
  p["attributes"]["TEXCOORD_1"] = p["attributes"]["TEXCOORD_0"];
  p["targets"] = GltfJson::array({{{"POSITION", p["attributes"]["POSITION"]}}});
  p["mode"] = 6;
  rich.json["nodes"] = GltfJson::parse(
      R"([{"mesh":0,"weights":[0.5],"rotation":[0,0,1,0],"scale":[1,2,1],"children":[1]},{"matrix":[1,0,)"
      R"(0,0,0,1,0,0,0,0,1,0,5,0,0,1],"mesh":0,"extensions":{"KHR_node_visibility":{"visible":true}}}])");
  auto& m = rich.json["materials"][0];
  m["pbrMetallicRoughness"]["metallicRoughnessTexture"] = {{"index", 0}, {"texCoord", 1}};
  m["pbrMetallicRoughness"]["baseColorTexture"]["extensions"]["KHR_texture_transform"] = {
      {"offset", {.1, .2}}, {"rotation", 1}, {"scale", {2, 3}}, {"texCoord", 0}};
  m["emissiveFactor"] = {1, 1, 1};
  m["emissiveTexture"] = {{"index", 0}};
  m["extensions"]["KHR_materials_emissive_strength"]["emissiveStrength"] = 3;
  rich.json["materials"].push_back({{"extensions",
                                     {{"KHR_materials_pbrSpecularGlossiness",
                                       {{"diffuseFactor", {1, 0, 0, 1}}, {"diffuseTexture", {{"index", 0}}}}}}}});
  out.emplace_back("rich.glb", rich.glb());
  return out;
}

}  // namespace quarry::test
