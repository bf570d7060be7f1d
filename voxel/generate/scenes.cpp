// SPDX-License-Identifier: Apache-2.0
// scenes.cpp - the table of generators, and the check of name and size.
#include "voxel/generate/scenes.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "base/suggest.hpp"
#include "voxel/generate/canvas.hpp"

namespace quarry {
namespace {

struct Row {
  Generator about;
  Result<Scene> (*make)(int32_t size, uint32_t seed, const Progress& progress);
};
constexpr Row kRows[] = {
    {{"terrain", "mountains, a lake with a beach, forests and a few cabins", 512, 64, 1024}, generate_detail::terrain},
    {{"city", "blocks of towers and houses with lit windows, streets, cars and parks", 456, 128, 2048},
     generate_detail::city},
    {{"menger", "a Menger sponge around a glowing core; best with sizes that are powers of three", 729, 3, 2187},
     generate_detail::menger},
    {{"spheres", "spheres of different materials on a chequered floor, a small scene for trying things", 128, 32, 1024},
     generate_detail::spheres},
};

}  // namespace

std::span<const Generator> generators() {
  static const std::vector<Generator> all = [] {
    std::vector<Generator> list;
    for (const Row& row : kRows) list.push_back(row.about);
    return list;
  }();
  return all;
}

Result<Scene> generate(std::string_view name, int32_t size, uint32_t seed, const Progress& progress) {
  for (const Row& row : kRows) {
    if (row.about.name == name) {
      if (size == 0) size = row.about.default_size;
      if (size < row.about.min_size || size > row.about.max_size)
        return fail(ErrorCode::invalid_argument,
                    "the size of '" + std::string(name) + "' must be " + std::to_string(row.about.min_size) + " to " +
                        std::to_string(row.about.max_size) + ", not " + std::to_string(size));
      return row.make(size, seed, progress);
    }
  }
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.about.name);
  std::string all;
  for (const std::string& n : names) all += (all.empty() ? "" : ", ") + n;
  return fail(ErrorCode::not_found, "there is no generator named '" + std::string(name) + "'." +
                                        did_you_mean(name, names) + " There are: " + all);
}

}  // namespace quarry
