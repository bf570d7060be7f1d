// SPDX-License-Identifier: Apache-2.0
// document.hpp - a glTF 2.0 file's container, JSON, buffers and buffer views. gltf/accessor.hpp interprets the numbers
// in them, gltf/reader.cpp the scene.
//
// A file is not trusted: every index, offset and length is compared as a 64-bit number before it is used. A fault is
// thrown as a GltfFault, which names the place in the JSON. read_gltf() catches it. No other exception leaves this
// reader.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "voxel/voxelize/mesh.hpp"

namespace quarry::mesh_reader {

struct GltfFault {
  Error error;
};
[[noreturn]] void gltf_fault(const std::string& message);

// The access of a glTF file to data outside its own bytes. Both functions return nullopt with the reason on failure.
struct GltfOutside {
  std::function<std::optional<std::vector<uint8_t>>(const std::string& uri, std::string& why)> open;
  std::function<std::optional<Image>(std::span<const uint8_t> bytes, std::string& why)> decode_image;
};

// Members of a JSON object, checked. `where` is the object's place: "accessors[3]". They throw GltfFault.
using Json = nlohmann::json;
const Json* member(const Json& object, const char* key);  // null if there is none
const Json* extension(const Json& object, const char* name);
std::optional<uint64_t> whole_number(const Json& object, const char* key, const std::string& where);
uint64_t whole_number(const Json& object, const char* key, uint64_t otherwise, const std::string& where);
double number(const Json& object, const char* key, double otherwise, const std::string& where);
bool boolean(const Json& object, const char* key);
std::string text(const Json& object, const char* key);  // empty if there is none
// Reads exactly out.size() numbers into `out`. If there is no such member, it returns false and changes nothing.
bool numbers(const Json& object, const char* key, std::span<double> out, const std::string& where);
// The elements of a member that is an array of indices; empty if there is none.
std::vector<uint64_t> indices(const Json& object, const char* key, const std::string& where);

std::string place(const char* list, uint64_t index);  // "accessors[3]"

class GltfDocument {
 public:
  // `file` is a whole .glb or .gltf file. `outside` is called when a buffer is first needed. It must outlive this
  // document.
  GltfDocument(std::vector<uint8_t> file, const GltfOutside& outside);
  GltfDocument(const GltfDocument&) = delete;
  GltfDocument& operator=(const GltfDocument&) = delete;

  const Json& json() const { return json_; }
  uint64_t count(const char* list) const;
  // Returns list[index]. `who` names the member that holds the index: "nodes[3].mesh".
  const Json& item(const char* list, uint64_t index, const std::string& who) const;

  struct View {
    std::span<const uint8_t> bytes;
    uint64_t stride = 0;  // 0: elements are adjacent
  };
  // Returns a buffer view, decompressed if EXT_meshopt_compression says so. It is valid as long as this document.
  View view(uint64_t index, const std::string& who);
  // The bytes of an image: a view's or a URI's. nullopt with the reason in `why`.
  std::optional<std::vector<uint8_t>> image_bytes(const Json& image, const std::string& where, std::string& why);

  // Bytes of the file and of the buffers loaded so far. Counts that no data backs are compared with it.
  uint64_t known_bytes() const { return known_bytes_; }

 private:
  std::span<const uint8_t> buffer(uint64_t index, const std::string& who);
  std::span<const uint8_t> part_of_buffer(const Json& object, const std::string& where);
  View compressed_view(const Json& packed, const Json& view, const std::string& where, std::vector<uint8_t>& out);

  const GltfOutside& outside_;
  std::vector<uint8_t> file_;
  Json json_;
  std::optional<std::span<const uint8_t>> binary_;  // the .glb's second chunk
  std::map<uint64_t, std::vector<uint8_t>> buffers_, decoded_views_;
  uint64_t known_bytes_ = 0;
};

// The version that `file` states, if it is glTF: "2.0", "1.0". For a .glb it is the number in the header.
std::string gltf_version(std::span<const uint8_t> file);

}  // namespace quarry::mesh_reader
