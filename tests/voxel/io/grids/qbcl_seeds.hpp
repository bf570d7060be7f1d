// SPDX-License-Identifier: Apache-2.0
// qbcl_seeds.hpp - writes small Qubicle projects: first inputs of the fuzzer, and of the tests' mutations.
#pragma once

#include <zlib.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace quarry::test {

// Nodes are written in the order of the calls. The caller counts the children.
class QbclBuilder {
 public:
  using Columns =
      std::vector<std::vector<uint32_t>>;  // for each x, then z: words as written (r lowest, the mask highest)

  explicit QbclBuilder(uint32_t version = 2, uint32_t width = 1, uint32_t height = 1) {
    bytes_ = {'Q', 'B', 'C', 'L'};
    put(0x00020103).put(version).put(width).put(height);
    bytes_.insert(bytes_.end(), size_t(width) * height * 4, 0x44);
    for (const char* t : {"a title", "", "", "somebody", "", "", ""}) text(t);
    bytes_.insert(bytes_.end(), 16, 0x5a);
  }
  QbclBuilder& model(const std::string& name, uint32_t children, bool visible = true) {
    node(1, name, visible);
    bytes_.insert(bytes_.end(), 36, 0);
    return put(children);
  }
  QbclBuilder& matrix(const std::string& name, std::array<uint32_t, 3> size, std::array<int32_t, 3> position,
                      const Columns& columns, bool visible = true) {
    node(0, name, visible);
    return voxels(size, position, columns);
  }
  QbclBuilder& compound(const std::string& name, std::array<uint32_t, 3> size, std::array<int32_t, 3> position,
                        const Columns& columns, uint32_t children) {
    node(2, name, true);
    return voxels(size, position, columns).put(children);
  }
  QbclBuilder& put(uint32_t v) {
    for (int i = 0; i < 4; ++i) bytes_.push_back(uint8_t(v >> 8 * i));
    return *this;
  }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  void text(const std::string& t) {
    put(uint32_t(t.size()));
    bytes_.insert(bytes_.end(), t.begin(), t.end());
  }
  void node(uint32_t type, const std::string& name, bool visible) {
    put(type).put(1);
    text(name);
    bytes_.insert(bytes_.end(), {uint8_t(visible), 1, 0});
  }
  QbclBuilder& voxels(std::array<uint32_t, 3> size, std::array<int32_t, 3> position, const Columns& columns) {
    for (const uint32_t v : size) put(v);
    for (const int32_t v : position) put(uint32_t(v));
    for (int i = 0; i < 3; ++i) put(0);
    std::vector<uint8_t> plain;
    for (const auto& column : columns) {
      plain.push_back(uint8_t(column.size()));
      plain.push_back(uint8_t(column.size() >> 8));
      for (const uint32_t word : column)
        for (int i = 0; i < 4; ++i) plain.push_back(uint8_t(word >> 8 * i));
    }
    std::vector<uint8_t> packed(compressBound(uLong(plain.size())));
    uLongf length = uLongf(packed.size());
    compress(packed.data(), &length, plain.data(), uLong(plain.size()));
    put(uint32_t(length));
    bytes_.insert(bytes_.end(), packed.begin(), packed.begin() + int64_t(length));
    return *this;
  }
  std::vector<uint8_t> bytes_;
};

inline std::vector<std::pair<std::string, std::vector<uint8_t>>> qbcl_seeds() {
  return {
      {"plain.qbcl", QbclBuilder()
                         .model("m", 1)
                         .matrix("dot", {1, 3, 2}, {-1, 2, -3}, {{0xff0000ff, 0, 0xff00ff00}, {0xff123456}})
                         .bytes()},
      {"runs.qbcl",
       QbclBuilder(2, 0, 0)
           .model("", 2)
           .matrix("runs", {1, 9, 1}, {0, 0, 0}, {{0x02000005, 0xff302010, 0x02000003, 0, 0xff010203}}, false)
           .matrix("", {1, 1, 1}, {5, 5, 5}, {{}})
           .bytes()},
      {"tree.qbcl", QbclBuilder()
                        .model("root", 2)
                        .model("empty", 0, false)
                        .compound("c", {2, 1, 1}, {10, 0, 0}, {{0xff000001}, {0xff000002}}, 1)
                        .matrix("child", {1, 1, 1}, {1, 0, 0}, {{0xff000002}})
                        .bytes()},
  };
}

}  // namespace quarry::test
