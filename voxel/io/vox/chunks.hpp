// SPDX-License-Identifier: Apache-2.0
// chunks.hpp - the contents of a .vox file's chunks, before the scene graph is walked. Internal to the reader:
// vox/chunks.cpp reads them from bytes, vox/graph.cpp converts nodes to instances, vox/palette_and_materials.cpp
// converts material dictionaries to materials.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "voxel/io/streams/salvage.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::io::vox {

// Sentences for the user, at most a screenful, because a hostile file could cause millions.
class Warnings {
 public:
  explicit Warnings(std::vector<std::string>* out) : out_(out) {}
  void add(std::string sentence);

 private:
  std::vector<std::string>* out_;
  size_t count_ = 0;
};

using Dict = std::vector<std::pair<std::string_view, std::string_view>>;  // views into the file's bytes
std::string_view value_of(const Dict& dict, std::string_view key);        // "" if absent

// Reads little-endian fields of one chunk. After the first failure every read returns zeros, and `error` says what was
// wrong and where.
class Cursor {
 public:
  Cursor(std::span<const uint8_t> file, size_t begin, size_t end, const char* chunk)
      : file_(file), at_(begin), end_(end), chunk_(chunk) {}
  bool ok() const { return !error_; }
  size_t at() const { return at_; }
  size_t left() const { return end_ - at_; }
  uint32_t u32(const char* what);
  int32_t i32(const char* what) { return int32_t(u32(what)); }
  float f32(const char* what);
  std::string_view text(const char* what);
  Dict dict(const char* what);
  const uint8_t* bytes(size_t count, const char* what);  // null after a failure
  void fail_at(size_t offset, const std::string& what);
  const Error& error() const { return *error_; }
  Result<void> good() const { return error_ ? Result<void>(tl::unexpected(*error_)) : Result<void>(); }

 private:
  std::span<const uint8_t> file_;
  size_t at_, end_;
  const char* chunk_;
  std::optional<Error> error_;
};

enum class NodeKind : uint8_t { transform, group, shape };

struct Node {
  NodeKind kind{};
  bool hidden = false;
  bool animated = false;  // more than one frame
  int32_t id = 0;
  int32_t layer = -1;   // transform: layer id
  int32_t target = -1;  // transform: child node id; shape: model of frame 0, -1: none
  Rotation rotation;    // transform: file axes
  std::array<int32_t, 3> translation{};
  size_t offset = 0;  // of the chunk, for messages
  std::string_view name;
  std::vector<int32_t> children;  // group
};

struct LayerChunk {
  int32_t id = 0;
  bool hidden = false;
  Dict dict;
};
struct DictChunk {  // MATL, rCAM
  int32_t id = 0;
  Dict dict;
};
struct OldMaterial {  // MATT
  int32_t id = 0, type = 0;
  float weight = 1;
  std::array<std::optional<float>, 7> properties;  // plastic, roughness, specular, ior, attenuation, power, glow
};

// Access to a file that is not in memory as a whole. It loads bytes and frees them again, and takes each model as soon
// as it is read.
class Stream {
 public:
  virtual ~Stream() = default;
  // Called before these bytes are read.
  virtual Result<void> load(size_t begin, size_t end) = 0;
  // Called when these bytes are no longer needed.
  virtual void drop(size_t begin, size_t end) = 0;
  virtual Result<void> take(size_t model, BrickMap&& bricks) = 0;
};

struct File {
  uint32_t version = 0;
  std::vector<Volume> models;
  std::vector<Node> nodes;
  std::vector<LayerChunk> layers;
  std::vector<DictChunk> materials, cameras;
  std::vector<OldMaterial> old_materials;
  std::vector<uint64_t> taken_voxels;  // of each model, if a Stream took their bricks
  const uint8_t* rgba = nullptr;       // 256 x 4 bytes or null
  const uint8_t* index_map = nullptr;  // 256 bytes or null
  // For salvage:
  bool damaged = false;  // something was repaired or left out
  // From this model on, it is not known which model a shape means, because the number of missing ones is not known.
  size_t certain_models = size_t(-1);
};

// `salvage` (may be null) is as for parse_vox. `stream` (may be null) receives the models, which are left without
// bricks. It works only without salvage.
Result<File> read_chunks(std::span<const uint8_t> bytes, Warnings& warnings, Salvage* salvage,
                         Stream* stream = nullptr);

// Walks the graph from its root, in file order, without recursion. Layers are given as indices into scene.layers. With
// `salvage` wrong parts are left out, and nodes of a damaged file that have lost their parents are placed by their own
// transforms.
Result<std::vector<Instance>> place_instances(const File& file, Warnings& warnings, Salvage* salvage);

// The palette with colours and materials; counts materials that are not diffuse.
Palette make_palette(const File& file, uint32_t* nondiffuse);
Camera make_camera(const DictChunk& chunk);
bool parse_float(std::string_view text, float* out);
// Parses three whitespace-separated numbers. Returns false if the text is different.
bool parse_ints(std::string_view text, std::array<int32_t, 3>* out);
bool parse_floats(std::string_view text, std::array<float, 3>* out);
// "key=value key=value", with everything but letters, digits, '.', '-' and '_' as %XX. The metadata keeps dictionaries
// in this form.
std::string dict_text(const Dict& dict);

}  // namespace quarry::io::vox
