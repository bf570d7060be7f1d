// SPDX-License-Identifier: Apache-2.0
// wavy_ball.hpp - an OBJ mesh for tests that voxelise one: closed, and nowhere flat.
#pragma once

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace quarry::test {

// A ball of so many rings, `height` times as high as wide. Rings take turns with the materials of `library`; none: one
// look for all. Returns the file's name.
inline std::string wavy_ball(const std::filesystem::path& file, int rings, double height,
                             const std::string& library = {}, const std::vector<std::string>& materials = {}) {
  std::ofstream out(file);
  if (!library.empty()) out << "mtllib " << library << '\n';
  for (int j = 0; j <= rings; ++j)
    for (int i = 0; i < 2 * rings; ++i) {
      const double a = M_PI * j / rings, b = M_PI * i / rings, r = 1 + 0.2 * std::sin(5 * a) * std::cos(4 * b);
      out << "v " << r * std::sin(a) * std::cos(b) << ' ' << height * r * std::cos(a) << ' '
          << r * std::sin(a) * std::sin(b) << '\n';
    }
  const auto at = [rings](int i, int j) { return 1 + j * 2 * rings + i % (2 * rings); };
  for (int j = 0; j < rings; ++j) {
    if (!materials.empty()) out << "usemtl " << materials[size_t(j) % materials.size()] << '\n';
    for (int i = 0; i < 2 * rings; ++i)
      out << "f " << at(i, j) << ' ' << at(i, j + 1) << ' ' << at(i + 1, j) << "\nf " << at(i + 1, j) << ' '
          << at(i, j + 1) << ' ' << at(i + 1, j + 1) << '\n';
  }
  return file.string();
}

}  // namespace quarry::test
