// SPDX-License-Identifier: Apache-2.0
// document.cpp - chunks of .glb, JSON of limited depth, data URIs in base64, and typed access to members with the place
// in the message.
#include "voxel/foreign/gltf/document.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "voxel/foreign/gltf/compressed.hpp"

namespace quarry::mesh_reader {
namespace {

constexpr uint32_t kJsonChunk = 0x4E4F534A, kBinaryChunk = 0x004E4942;
constexpr size_t kDeepest = 128;  // real files go about 10 levels deep

uint32_t little(std::span<const uint8_t> bytes, size_t at) {
  return uint32_t(bytes[at]) | uint32_t(bytes[at + 1]) << 8 | uint32_t(bytes[at + 2]) << 16 |
         uint32_t(bytes[at + 3]) << 24;
}
bool is_glb(std::span<const uint8_t> file) { return file.size() >= 4 && std::memcmp(file.data(), "glTF", 4) == 0; }

// nlohmann's parser does not recurse, but code that walks or copies a document does. So the depth is checked before
// parsing.
void check_depth(std::string_view text) {
  size_t depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      else if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDeepest)
        gltf_fault("its JSON is nested deeper than " + std::to_string(kDeepest) + " levels, at byte " +
                   std::to_string(i) + ".");
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
}

Json parse(std::string_view text) {
  check_depth(text);
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const Json::exception& e) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    const std::string_view message = e.what();
    const size_t end = message.find("] ");
    gltf_fault("its JSON is broken: " + std::string(message.substr(end == message.npos ? 0 : end + 2).substr(0, 200)) +
               ".");
  }
}

struct Chunks {
  std::string_view json;
  std::optional<std::span<const uint8_t>> binary;
};

// A header of 12 bytes, then chunks: length, kind, bytes. The first is JSON. The second may be binary. Others are
// skipped.
Chunks chunks_of(std::span<const uint8_t> file) {
  if (file.size() < 20)
    gltf_fault("it ends within its header: a .glb has at least 20 bytes, this has " + std::to_string(file.size()) +
               ".");
  const uint64_t length = little(file, 8);
  if (length > file.size())
    gltf_fault("it is cut short: its header says " + std::to_string(length) + " bytes, and there are " +
               std::to_string(file.size()) + ".");
  if (length < 20) gltf_fault("its header says that it is " + std::to_string(length) + " bytes long.");
  Chunks found;
  bool first = true;
  for (uint64_t at = 12; at + 8 <= length;) {
    const uint64_t size = little(file, at), kind = little(file, at + 4);
    if (size > length - at - 8)
      gltf_fault("the chunk at byte " + std::to_string(at) + " says " + std::to_string(size) + " bytes, and " +
                 std::to_string(length - at - 8) + " follow.");
    const auto bytes = file.subspan(at + 8, size);
    if (first && kind != kJsonChunk) gltf_fault("its first chunk is not JSON.");
    if (first) found.json = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    else if (kind == kBinaryChunk && !found.binary) found.binary = bytes;
    first = false;
    at += 8 + (size + 3) / 4 * 4;  // padding is part of a chunk's length, but some writers leave it out
  }
  // Padding is spaces, but some writers use zeros.
  while (!found.json.empty() && found.json.back() == 0) found.json.remove_suffix(1);
  return found;
}

std::string_view text_of(std::span<const uint8_t> file) {
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

// The decoded bytes of "data:[type][;parameters];base64,BYTES".
std::optional<std::vector<uint8_t>> data_uri(std::string_view uri, std::string& why) {
  const size_t comma = uri.find(',');
  if (comma == uri.npos || uri.substr(0, comma).find(";base64") == uri.npos) {
    why = "a data URI that is not base64";
    return std::nullopt;
  }
  std::vector<uint8_t> out;
  out.reserve((uri.size() - comma) / 4 * 3);
  uint32_t bits = 0;
  int have = 0;
  for (const char c : uri.substr(comma + 1)) {
    if (c == '=') break;
    const int digit = base64_digit(c);
    if (digit < 0) {
      why = "a data URI with a character that is no base64";
      return std::nullopt;
    }
    bits = bits << 6 | uint32_t(digit);
    if ((have += 6) >= 8) out.push_back(uint8_t(bits >> (have -= 8)));
  }
  return out;
}

bool is_data_uri(std::string_view uri) { return uri.substr(0, 5) == "data:"; }

uint64_t as_whole(const Json& value, const std::string& what) {
  if (value.is_number_unsigned()) return value.get<uint64_t>();
  // Some writers write all numbers as floating point.
  if (value.is_number_float()) {
    const double d = value.get<double>();
    if (d >= 0 && d <= 9007199254740992.0 && d == std::floor(d)) return uint64_t(d);
  }
  gltf_fault(what + " is not a whole number of at least 0.");
}
double as_number(const Json& value, const std::string& what) {
  if (!value.is_number()) gltf_fault(what + " is not a number.");
  return value.get<double>();
}

}  // namespace

void gltf_fault(const std::string& message) { throw GltfFault{{ErrorCode::malformed_input, message}}; }

std::string place(const char* list, uint64_t index) { return std::string(list) + "[" + std::to_string(index) + "]"; }

const Json* member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto at = object.find(key);
  return at == object.end() ? nullptr : &*at;
}
const Json* extension(const Json& object, const char* name) {
  const Json* const all = member(object, "extensions");
  return all ? member(*all, name) : nullptr;
}
std::optional<uint64_t> whole_number(const Json& object, const char* key, const std::string& where) {
  const Json* const value = member(object, key);
  if (!value) return std::nullopt;
  return as_whole(*value, where + "." + key);
}
uint64_t whole_number(const Json& object, const char* key, uint64_t otherwise, const std::string& where) {
  return whole_number(object, key, where).value_or(otherwise);
}
double number(const Json& object, const char* key, double otherwise, const std::string& where) {
  const Json* const value = member(object, key);
  return value ? as_number(*value, where + "." + key) : otherwise;
}
bool boolean(const Json& object, const char* key) {
  const Json* const value = member(object, key);
  return value && value->is_boolean() && value->get<bool>();
}
std::string text(const Json& object, const char* key) {
  const Json* const value = member(object, key);
  return value && value->is_string() ? value->get<std::string>() : std::string();
}
bool numbers(const Json& object, const char* key, std::span<double> out, const std::string& where) {
  const Json* const value = member(object, key);
  if (!value) return false;
  if (!value->is_array() || value->size() != out.size())
    gltf_fault(where + "." + key + " is not an array of " + std::to_string(out.size()) + " numbers.");
  for (size_t i = 0; i < out.size(); ++i) out[i] = as_number((*value)[i], where + "." + key);
  return true;
}
std::vector<uint64_t> indices(const Json& object, const char* key, const std::string& where) {
  std::vector<uint64_t> out;
  const Json* const value = member(object, key);
  if (!value) return out;
  if (!value->is_array()) gltf_fault(where + "." + key + " is not an array.");
  for (const Json& element : *value) out.push_back(as_whole(element, where + "." + key));
  return out;
}

GltfDocument::GltfDocument(std::vector<uint8_t> file, const GltfOutside& outside)
    : outside_(outside), file_(std::move(file)) {
  known_bytes_ = file_.size();
  std::string_view json = text_of(file_);
  if (is_glb(file_)) {
    const Chunks chunks = chunks_of(file_);
    json = chunks.json;
    binary_ = chunks.binary;
  }
  json_ = parse(json);
  if (!json_.is_object()) gltf_fault("its JSON is not an object.");
  if (!is_glb(file_)) file_ = {};
}

uint64_t GltfDocument::count(const char* list) const {
  const Json* const all = member(json_, list);
  if (!all) return 0;
  if (!all->is_array()) gltf_fault(std::string(list) + " is not an array.");
  return all->size();
}

const Json& GltfDocument::item(const char* list, uint64_t index, const std::string& who) const {
  const uint64_t there = count(list);
  if (index >= there) {
    // The name is split into words for the message: "there are 5 buffer views".
    std::string words;
    for (const char* c = list; *c; ++c)
      words += *c >= 'A' && *c <= 'Z' ? std::string(" ") + char(*c - 'A' + 'a') : std::string(1, *c);
    if (there == 1) words = words == "meshes" ? "mesh" : words.substr(0, words.size() - 1);
    gltf_fault(who + " " + std::to_string(index) + ": there " +
               (there == 1   ? "is 1 "
                : there == 0 ? "are no "
                             : "are " + std::to_string(there) + " ") +
               words + ".");
  }
  const Json& found = (*member(json_, list))[size_t(index)];
  if (!found.is_object()) gltf_fault(place(list, index) + " is not an object.");
  return found;
}

std::span<const uint8_t> GltfDocument::buffer(uint64_t index, const std::string& who) {
  const Json& object = item("buffers", index, who);
  const std::string where = place("buffers", index);
  const uint64_t length = whole_number(object, "byteLength", 0, where);
  const auto checked = [&](std::span<const uint8_t> bytes, const std::string& holder) {
    if (bytes.size() < length)
      gltf_fault(where + ".byteLength " + std::to_string(length) + ": " + holder + " holds " +
                 std::to_string(bytes.size()) + " bytes.");
    return bytes.first(length);
  };
  if (const auto known = buffers_.find(index); known != buffers_.end()) return checked(known->second, "it");
  const Json* const uri = member(object, "uri");
  if (!uri) {
    if (index == 0 && binary_) return checked(*binary_, "the .glb's binary chunk");
    gltf_fault(where + " has no uri" + (index == 0 ? ", and there is no binary chunk." : "."));
  }
  if (!uri->is_string()) gltf_fault(where + ".uri is not a string.");
  const auto& name = uri->get_ref<const std::string&>();
  std::string why;
  std::optional<std::vector<uint8_t>> bytes = is_data_uri(name) ? data_uri(name, why) : outside_.open(name, why);
  if (!bytes) gltf_fault(where + ".uri" + (is_data_uri(name) ? "" : " \"" + name + "\"") + ": " + why + ".");
  known_bytes_ += bytes->size();
  const auto& kept = buffers_[index] = std::move(*bytes);
  return checked(kept, is_data_uri(name) ? "its data URI" : name);
}

std::span<const uint8_t> GltfDocument::part_of_buffer(const Json& object, const std::string& where) {
  const auto index = whole_number(object, "buffer", where);
  if (!index) gltf_fault(where + " names no buffer.");
  const auto bytes = buffer(*index, where + ".buffer");
  const uint64_t offset = whole_number(object, "byteOffset", 0, where),
                 length = whole_number(object, "byteLength", 0, where);
  if (offset > bytes.size() || length > bytes.size() - offset)
    gltf_fault(where + ": bytes " + std::to_string(offset) + " to " + std::to_string(offset) + " + " +
               std::to_string(length) + " of a buffer of " + std::to_string(bytes.size()) + ".");
  return bytes.subspan(offset, length);
}

GltfDocument::View GltfDocument::compressed_view(const Json& packed, const Json& view, const std::string& where,
                                                 std::vector<uint8_t>& out) {
  const auto bytes = part_of_buffer(packed, where);
  MeshoptStream stream;
  stream.count = whole_number(packed, "count", 0, where);
  stream.stride = whole_number(packed, "byteStride", 0, where);
  stream.mode = text(packed, "mode");
  stream.filter = text(packed, "filter");
  auto decoded = decode_meshopt(bytes, stream);
  if (!decoded) throw GltfFault{{decoded.error().code, where + ": " + decoded.error().message}};
  out = std::move(*decoded);
  known_bytes_ += out.size();
  return {out, whole_number(view, "byteStride", stream.stride, where)};
}

GltfDocument::View GltfDocument::view(uint64_t index, const std::string& who) {
  const Json& object = item("bufferViews", index, who);
  const std::string where = place("bufferViews", index);
  for (const char* name : {"EXT_meshopt_compression", "KHR_meshopt_compression"})
    if (const Json* const packed = extension(object, name)) {
      if (const auto known = decoded_views_.find(index); known != decoded_views_.end())
        return {known->second,
                whole_number(object, "byteStride", whole_number(*packed, "byteStride", 0, where), where)};
      std::vector<uint8_t> out;
      const View decoded = compressed_view(*packed, object, where + ".extensions." + name, out);
      // Moving a vector does not move its bytes.
      decoded_views_[index] = std::move(out);
      return decoded;
    }
  return {part_of_buffer(object, where), whole_number(object, "byteStride", 0, where)};
}

std::optional<std::vector<uint8_t>> GltfDocument::image_bytes(const Json& image, const std::string& where,
                                                              std::string& why) {
  if (const auto index = whole_number(image, "bufferView", where)) {
    const auto bytes = view(*index, where + ".bufferView").bytes;
    return std::vector<uint8_t>(bytes.begin(), bytes.end());
  }
  const std::string uri = text(image, "uri");
  if (uri.empty()) {
    why = "it has no bytes";
    return std::nullopt;
  }
  return is_data_uri(uri) ? data_uri(uri, why) : outside_.open(uri, why);
}

std::string gltf_version(std::span<const uint8_t> file) {
  if (is_glb(file)) return file.size() < 8 ? "" : std::to_string(little(file, 4)) + ".0";
  // The version is searched for without parsing, so that a file that is not JSON is not parsed twice.
  const std::string_view all = text_of(file);
  const size_t asset = all.find("\"asset\"");
  if (asset == all.npos) return "";
  const size_t end = all.find('}', asset), key = all.find("\"version\"", asset);
  if (key == all.npos || (end != all.npos && key > end)) return "";
  const size_t begin = all.find('"', key + 9);
  const size_t close = begin == all.npos ? all.npos : all.find('"', begin + 1);
  return close == all.npos || close - begin > 20 ? "" : std::string(all.substr(begin + 1, close - begin - 1));
}

}  // namespace quarry::mesh_reader
