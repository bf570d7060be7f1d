// SPDX-License-Identifier: Apache-2.0
// heightmap_seeds.hpp - writes small PNG pictures, stored without compression: first inputs of the fuzzer, and of the
// tests' mutations.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace quarry::test {

// `color_type` is PNG's: 0 grey, 2 RGB, 4 grey and alpha, 6 RGBA. `samples` are the rows' bytes, 16-bit samples with
// the high byte first.
inline std::vector<uint8_t> png_file(uint32_t width, uint32_t height, uint8_t bits, uint8_t color_type,
                                     const std::vector<uint8_t>& samples) {
  std::vector<uint8_t> out{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  const auto put32 = [](std::vector<uint8_t>& to, uint32_t v) {
    for (int shift = 24; shift >= 0; shift -= 8) to.push_back(uint8_t(v >> shift));
  };
  const auto chunk = [&](const std::string& name, const std::vector<uint8_t>& content) {
    put32(out, uint32_t(content.size()));
    uint32_t crc = ~0u;
    const auto add = [&](uint8_t byte) {
      out.push_back(byte);
      crc ^= byte;
      for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    };
    for (const char c : name) add(uint8_t(c));
    for (const uint8_t byte : content) add(byte);
    put32(out, ~crc);
  };
  std::vector<uint8_t> head;
  put32(head, width);
  put32(head, height);
  head.insert(head.end(), {bits, color_type, 0, 0, 0});
  chunk("IHDR", head);
  std::vector<uint8_t> rows;
  const size_t row = height ? samples.size() / height : 0;
  for (size_t y = 0; y < height; ++y) {
    rows.push_back(0);  // no filter
    rows.insert(rows.end(), samples.begin() + int64_t(y * row), samples.begin() + int64_t((y + 1) * row));
  }
  std::vector<uint8_t> zlib{0x78,
                            0x01,
                            0x01,
                            uint8_t(rows.size()),
                            uint8_t(rows.size() >> 8),
                            uint8_t(~rows.size()),
                            uint8_t(~rows.size() >> 8)};
  uint32_t a = 1, b = 0;
  for (const uint8_t byte : rows) {
    zlib.push_back(byte);
    a = (a + byte) % 65521;
    b = (b + a) % 65521;
  }
  put32(zlib, b << 16 | a);
  chunk("IDAT", zlib);
  chunk("IEND", {});
  return out;
}

inline std::vector<std::pair<std::string, std::vector<uint8_t>>> heightmap_seeds() {
  return {
      {"grey.png", png_file(3, 2, 8, 0, {0, 1, 2, 100, 200, 255})},
      {"deep.png", png_file(2, 1, 16, 0, {0, 0, 0xff, 0xff})},
      {"alpha.png", png_file(2, 2, 8, 6, {255, 0, 0, 10, 0, 255, 0, 20, 0, 0, 255, 0, 9, 9, 9, 255})},
      {"rgb.png", png_file(1, 2, 8, 2, {255, 0, 0, 10, 20, 30})},
      {"bits.png", png_file(8, 1, 1, 0, {0xa5})},
  };
}

}  // namespace quarry::test
