// SPDX-License-Identifier: Apache-2.0
// qb_seeds.hpp - writes small Qubicle files: first inputs of the fuzzer, and of the tests' mutations.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace quarry::test {

class QbBuilder {
 public:
  explicit QbBuilder(uint32_t colour_format = 0, uint32_t z_axis = 1, uint32_t compressed = 0, uint32_t masks = 0,
                     uint32_t matrices = 1) {
    for (const uint32_t v : {257u, colour_format, z_axis, compressed, masks, matrices}) put(v);
  }
  // `words` are written unchanged: colours, or the runs of compressed slices.
  QbBuilder& matrix(const std::string& name, std::array<uint32_t, 3> size, std::array<int32_t, 3> position,
                    const std::vector<uint32_t>& words) {
    bytes_.push_back(uint8_t(name.size()));
    bytes_.insert(bytes_.end(), name.begin(), name.end());
    for (const uint32_t v : size) put(v);
    for (const int32_t v : position) put(uint32_t(v));
    for (const uint32_t v : words) put(v);
    return *this;
  }
  QbBuilder& put(uint32_t v) {
    for (int i = 0; i < 4; ++i) bytes_.push_back(uint8_t(v >> 8 * i));
    return *this;
  }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

inline std::vector<std::pair<std::string, std::vector<uint8_t>>> qb_seeds() {
  return {
      {"plain.qb", QbBuilder()
                       .matrix("dot", {2, 1, 3}, {-1, 2, -3}, {0xff0000ff, 0, 0xff00ff00, 0, 0x80123456, 0xffffffff})
                       .bytes()},
      {"masks.qb", QbBuilder(1, 0, 0, 1, 2)
                       .matrix("a", {1, 2, 1}, {0, 0, 0}, {0x01102030, 0x55102030})
                       .matrix("", {1, 1, 1}, {5, 5, 5}, {0})
                       .bytes()},
      {"runs.qb", QbBuilder(0, 0, 1, 0, 2)
                      .matrix("runs", {3, 4, 2}, {1, 2, 3}, {2, 10, 0xff112233, 0xff445566, 0, 6, 2, 12, 0xff778899, 6})
                      .matrix("big", {40, 40, 1}, {-9, 0, 0}, {2, 1600, 0xffaabbcc, 6})
                      .bytes()},
  };
}

}  // namespace quarry::test
