// SPDX-License-Identifier: Apache-2.0
// file_builder.hpp - makes .vox bytes chunk by chunk, for tests and for the fuzzers' first inputs. It writes its
// arguments unchecked, right or wrong.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace quarry::test {

class VoxBuilder {
 public:
  using Bytes = std::vector<uint8_t>;
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  struct Voxel {
    uint8_t x, y, z, colour;
  };

  explicit VoxBuilder(uint32_t version = 150) : version_(version) {}

  static void put(Bytes& out, int64_t v) {
    for (int i = 0; i < 4; ++i) out.push_back(uint8_t(v >> (8 * i)));
  }
  static void put(Bytes& out, const std::string& s) {
    put(out, int64_t(s.size()));
    out.insert(out.end(), s.begin(), s.end());
  }
  static void put(Bytes& out, const Pairs& dict) {
    put(out, int64_t(dict.size()));
    for (const auto& [k, v] : dict) put(out, k), put(out, v);
  }

  VoxBuilder& chunk(const char* id, const Bytes& content) {
    chunks_.insert(chunks_.end(), id, id + 4);
    put(chunks_, int64_t(content.size()));
    put(chunks_, 0);
    chunks_.insert(chunks_.end(), content.begin(), content.end());
    return *this;
  }
  VoxBuilder& size(int64_t x, int64_t y, int64_t z) {
    Bytes c;
    put(c, x), put(c, y), put(c, z);
    return chunk("SIZE", c);
  }
  VoxBuilder& voxels(const std::vector<Voxel>& list) {
    Bytes c;
    put(c, int64_t(list.size()));
    for (const Voxel& v : list) c.insert(c.end(), {v.x, v.y, v.z, v.colour});
    return chunk("XYZI", c);
  }
  VoxBuilder& model(int64_t x, int64_t y, int64_t z, const std::vector<Voxel>& list) {
    return size(x, y, z).voxels(list);
  }
  VoxBuilder& transform(int64_t id, int64_t child, const std::vector<Pairs>& frames, const Pairs& attributes = {},
                        int64_t layer = -1) {
    Bytes c;
    put(c, id), put(c, attributes), put(c, child), put(c, -1), put(c, layer), put(c, int64_t(frames.size()));
    for (const Pairs& f : frames) put(c, f);
    return chunk("nTRN", c);
  }
  VoxBuilder& group(int64_t id, const std::vector<int64_t>& children, const Pairs& attributes = {}) {
    Bytes c;
    put(c, id), put(c, attributes), put(c, int64_t(children.size()));
    for (const int64_t child : children) put(c, child);
    return chunk("nGRP", c);
  }
  VoxBuilder& shape(int64_t id, const std::vector<std::pair<int64_t, Pairs>>& models) {
    Bytes c;
    put(c, id), put(c, Pairs{}), put(c, int64_t(models.size()));
    for (const auto& [model, attributes] : models) put(c, model), put(c, attributes);
    return chunk("nSHP", c);
  }
  VoxBuilder& dict_chunk(const char* name, int64_t id, const Pairs& attributes) {  // LAYR, MATL, rCAM
    Bytes c;
    put(c, id), put(c, attributes);
    if (std::string(name) == "LAYR") put(c, -1);
    return chunk(name, c);
  }
  VoxBuilder& palette(const std::vector<std::array<uint8_t, 4>>& colours) {  // colour 1 first
    Bytes c(1024, 0);
    for (size_t i = 0; i < colours.size() && i < 256; ++i) std::memcpy(&c[i * 4], colours[i].data(), 4);
    return chunk("RGBA", c);
  }

  Bytes bytes() const {
    Bytes out{'V', 'O', 'X', ' '};
    put(out, version_);
    out.insert(out.end(), {'M', 'A', 'I', 'N'});
    put(out, 0), put(out, int64_t(chunks_.size()));
    out.insert(out.end(), chunks_.begin(), chunks_.end());
    return out;
  }

 private:
  uint32_t version_;
  Bytes chunks_;
};

}  // namespace quarry::test
