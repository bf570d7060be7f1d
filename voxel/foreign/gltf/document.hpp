// SPDX-License-Identifier: Apache-2.0
// document.hpp - a glTF 2.0 file's container, JSON, buffers and buffer views. What the numbers in them mean is
// gltf/accessor.hpp's, what the scene is gltf/reader.cpp's.
//
// A file is hostile until checked: every index, offset and length is compared as a 64-bit number before it is used.
// What is wrong is thrown as a GltfFault, which names the place in the JSON, and caught in read_gltf(): no other
// exception of this reader leaves it.
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

// What a glTF file may ask for beyond its own bytes. Both answer nullopt with the reason.
struct GltfOutside {
  std::function<std::optional<std::vector<uint8_t>>(const std::string& uri, std::string& why)> open;
  std::function<std::optional<Image>(std::span<const uint8_t> bytes, std::string& why)> decode_image;
};

// Members of a JSON object, checked. `where` is the object's place: "accessors[3]". They throw GltfFault.
using Json = nlohmann::json;
const Json* member(const Json& object, const char* key);  // null: there is none
const Json* extension(const Json& object, const char* name);
std::optional<uint64_t> whole_number(const Json& object, const char* key, const std::string& where);
uint64_t whole_number(const Json& object, const char* key, uint64_t otherwise, const std::string& where);
double number(const Json& object, const char* key, double otherwise, const std::string& where);
bool boolean(const Json& object, const char* key);
std::string text(const Json& object, const char* key);  // empty if there is none
// Exactly out.size() numbers into `out`; false, and nothing done, if there is no such member.
bool numbers(const Json& object, const char* key, std::span<double> out, const std::string& where);
// The elements of a member that is an array of indices; empty if there is none.
std::vector<uint64_t> indices(const Json& object, const char* key, const std::string& where);

std::string place(const char* list, uint64_t index);  // "accessors[3]"

class GltfDocument {
 public:
  // Of a whole .glb or .gltf file. `outside` is called for buffers when they are first asked for, and must outlive
  // this.
  GltfDocument(std::vector<uint8_t> file, const GltfOutside& outside);
  GltfDocument(const GltfDocument&) = delete;
  GltfDocument& operator=(const GltfDocument&) = delete;

  const Json& json() const { return json_; }
  uint64_t count(const char* list) const;
  // list[index]; `who` names the member that holds the index: "nodes[3].mesh".
  const Json& item(const char* list, uint64_t index, const std::string& who) const;

  struct View {
    std::span<const uint8_t> bytes;
    uint64_t stride = 0;  // 0: elements lie side by side
  };
  // Decompressed, where EXT_meshopt_compression says so. Valid as long as this.
  View view(uint64_t index, const std::string& who);
  // The bytes of an image: a view's or a URI's. nullopt with the reason in `why`.
  std::optional<std::vector<uint8_t>> image_bytes(const Json& image, const std::string& where, std::string& why);

  // Bytes of the file and of the buffers that were loaded so far: what counts out of nothing are measured by.
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

// The version that `file` says it has, if it is glTF at all: "2.0", "1.0". Of a .glb its header's number.
std::string gltf_version(std::span<const uint8_t> file);

}  // namespace quarry::mesh_reader
