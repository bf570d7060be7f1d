#include "voxel/generate.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "voxel/generate_canvas.hpp"

namespace quarry {
namespace {

struct Row {
  Generator about;
  Result<Scene> (*make)(int32_t size, uint32_t seed, const Progress& progress);
};
constexpr Row kRows[] = {
    {{"terrain", "mountains, a lake with a beach, forests and a few cabins", 512, 64, 1024}, generate_detail::terrain},
    {{"city", "blocks of towers and houses with lit windows, streets, cars and parks", 456, 128, 2048}, generate_detail::city},
    {{"menger", "a Menger sponge around a glowing core; best with sizes that are powers of three", 729, 3, 2187}, generate_detail::menger},
    {{"spheres", "spheres of different materials on a chequered floor, a small scene for trying things", 128, 32, 1024},
     generate_detail::spheres},
};

// Changes of one letter between two words.
size_t letters_apart(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

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
  const Row* nearest = kRows;
  for (const Row& row : kRows) {
    if (row.about.name == name) {
      if (size == 0) size = row.about.default_size;
      if (size < row.about.min_size || size > row.about.max_size)
        return fail(ErrorCode::invalid_argument, "the size of '" + std::string(name) + "' must be " + std::to_string(row.about.min_size) +
                                                     " to " + std::to_string(row.about.max_size) + ", not " + std::to_string(size));
      return row.make(size, seed, progress);
    }
    if (letters_apart(name, row.about.name) < letters_apart(name, nearest->about.name)) nearest = &row;
  }
  return fail(ErrorCode::not_found, "there is no generator named '" + std::string(name) + "'; did you mean '" + nearest->about.name + "'?");
}

}  // namespace quarry
