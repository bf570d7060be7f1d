// debug_view.cpp - the names of the debug views.
#include <algorithm>
#include <array>
#include <string>

#include "engine/renderer.hpp"

namespace quarry::engine {
namespace {

constexpr std::array<const char*, 7> kNames = {"shaded", "albedo", "normals", "depth", "bricks", "probe_depth", "steps"};

size_t edit_distance(std::string_view a, std::string_view b) {
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

std::span<const char* const> debug_view_names() { return kNames; }

Result<DebugView> debug_view_from_name(std::string_view name) {
  size_t nearest = 0;
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (name == kNames[i]) return DebugView(i);
    if (edit_distance(name, kNames[i]) < edit_distance(name, kNames[nearest])) nearest = i;
  }
  std::string all;
  for (const char* n : kNames) all += std::string(all.empty() ? "" : ", ") + n;
  return fail(ErrorCode::bad_usage, "there is no view '" + std::string(name) + "'; did you mean '" + kNames[nearest] + "'? There are: " + all);
}

}  // namespace quarry::engine
