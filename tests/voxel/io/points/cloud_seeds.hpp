// SPDX-License-Identifier: Apache-2.0
// cloud_seeds.hpp - writes small point clouds: first inputs of the fuzzer (the first byte selects the reader), and of
// the tests' mutations.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace quarry::test {

struct LasPoint {
  std::array<int32_t, 3> at;
  uint16_t intensity;
  std::array<uint16_t, 3> rgb;
};

// A LAS file with scale 0.5 and offsets 100, 200, 300.
inline std::vector<uint8_t> las_file(int format, const std::vector<LasPoint>& points, int minor = 2) {
  constexpr size_t kLength[] = {20, 28, 26, 34, 0, 0, 30, 36, 38}, kColor[] = {0, 0, 20, 28, 0, 0, 0, 30, 30};
  const size_t header = minor >= 4 ? 375 : 227, length = kLength[format];
  std::vector<uint8_t> out(header + length * points.size());
  const auto put = [&](size_t at, auto value) { std::memcpy(&out[at], &value, sizeof value); };
  std::memcpy(out.data(), "LASF", 4);
  out[24] = 1;
  out[25] = uint8_t(minor);
  put(94, uint16_t(header));
  put(96, uint32_t(header));
  out[104] = uint8_t(format);
  put(105, uint16_t(length));
  put(107, uint32_t(minor >= 4 ? 0 : points.size()));
  for (size_t a = 0; a < 3; ++a) put(131 + 8 * a, 0.5), put(155 + 8 * a, 100.0 * double(a + 1));
  if (minor >= 4) put(247, uint64_t(points.size()));
  for (size_t i = 0; i < points.size(); ++i) {
    const size_t at = header + i * length;
    for (size_t a = 0; a < 3; ++a) put(at + 4 * a, points[i].at[a]);
    put(at + 12, points[i].intensity);
    for (size_t a = 0; a < 3 && kColor[format]; ++a) put(at + kColor[format] + 2 * a, points[i].rgb[a]);
  }
  return out;
}

inline std::vector<uint8_t> text_file(const std::string& text) { return {text.begin(), text.end()}; }

inline std::string ply_header(const std::string& encoding, int vertices) {
  return "ply\nformat " + encoding + " 1.0\ncomment two\nelement vertex " + std::to_string(vertices) +
         "\nproperty float x\nproperty float y\nproperty float z\nproperty uchar red\nproperty uchar green\n"
         "property uchar blue\nend_header\n";
}
inline std::vector<uint8_t> ply_binary(bool big) {
  std::vector<uint8_t> out = text_file(ply_header(big ? "binary_big_endian" : "binary_little_endian", 2));
  const float points[2][3] = {{0, 0, 0}, {3, 1, 2}};
  for (int i = 0; i < 2; ++i) {
    for (const float v : points[i]) {
      uint8_t b[4];
      std::memcpy(b, &v, 4);
      for (size_t k = 0; k < 4; ++k) out.push_back(b[big ? 3 - k : k]);
    }
    out.insert(out.end(), {uint8_t(10 + i), 20, 30});
  }
  return out;
}
inline std::vector<uint8_t> ply_text() {
  return text_file(ply_header("ascii", 2) + "0 0 0 10 20 30\n3.0 1 2e0 11 20 30\n");
}

inline std::vector<std::pair<std::string, std::vector<uint8_t>>> points_seeds() {
  const std::vector<LasPoint> points{
      {{0, 0, 0}, 10, {65535, 0, 0}}, {{20, 40, 60}, 200, {0, 0x8000, 255}}, {{21, 40, 60}, 30, {0, 0, 65535}}};
  std::vector<std::pair<std::string, std::vector<uint8_t>>> seeds;
  const auto add = [&](const std::string& name, uint8_t which, std::vector<uint8_t> bytes) {
    bytes.insert(bytes.begin(), which);
    seeds.push_back({name, std::move(bytes)});
  };
  for (const int format : {0, 1, 2, 3, 6, 7, 8})
    add("format" + std::to_string(format) + ".las", 0, las_file(format, points, format >= 6 ? 4 : 2));
  add("plain.xyz", 1, text_file("# a comment\n1 2 3\n1.5e1,-2;3\n"));
  add("coloured.xyz", 1, text_file("x y z r g b\n0 0 0 255 0 0\r\n9 0.25 -7 1 2 3\n"));
  add("text.ply", 2, ply_text());
  add("little.ply", 2, ply_binary(false));
  add("big.ply", 2, ply_binary(true));
  return seeds;
}

}  // namespace quarry::test
