// SPDX-License-Identifier: Apache-2.0
// source_units.cpp - metadata entries to numbers and back, with the shortest text that reads back as the same number.
#include "voxel/worlds/source_units.hpp"

#include <charconv>
#include <cmath>

namespace quarry {
namespace {

// Reads the number at the beginning of `text`, and removes it with one following blank.
std::optional<double> take_number(std::string_view& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value)) return {};
  text.remove_prefix(size_t(end - text.data()));
  if (text.starts_with(' ')) text.remove_prefix(1);
  return value;
}

}  // namespace

std::string shortest_text(double value) {
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string origin_text(const SourceUnits& units) {
  return shortest_text(units.origin[0]) + " " + shortest_text(units.origin[1]) + " " + shortest_text(units.origin[2]);
}

std::optional<SourceUnits> source_units(const Scene& scene) {
  const auto size = scene.metadata.find("voxel_size"), origin = scene.metadata.find("origin");
  if (size == scene.metadata.end() || origin == scene.metadata.end()) return {};
  std::string_view size_text = size->second, place = origin->second;
  const auto edge = take_number(size_text);
  if (!edge || !(*edge > 0) || !size_text.empty()) return {};
  SourceUnits units{*edge, {}};
  for (double& o : units.origin) {
    const auto value = take_number(place);
    if (!value) return {};
    o = *value;
  }
  return place.empty() ? std::optional(units) : std::nullopt;
}

void set_source_units(Scene& scene, const SourceUnits& units) {
  scene.metadata["voxel_size"] = shortest_text(units.voxel_size);
  scene.metadata["origin"] = origin_text(units);
}

}  // namespace quarry
