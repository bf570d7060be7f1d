// SPDX-License-Identifier: Apache-2.0
// debug_view.cpp - the names of the debug views.
#include <algorithm>
#include <array>
#include <string>

#include "base/suggest.hpp"
#include "engine/render/ray_marcher.hpp"

namespace quarry::engine {
namespace {

constexpr std::array<const char*, 9> kNames = {"shaded",      "albedo", "normals",  "depth", "bricks",
                                               "probe_depth", "steps",  "material", "load"};

}  // namespace

std::span<const char* const> debug_view_names() { return kNames; }

Result<DebugView> debug_view_from_name(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (name == kNames[i]) return DebugView(i);
  std::string all;
  for (const char* n : kNames) all += std::string(all.empty() ? "" : ", ") + n;
  return fail(ErrorCode::bad_usage, "there is no view '" + std::string(name) + "'." +
                                        did_you_mean(name, {kNames.begin(), kNames.end()}) + " There are: " + all);
}

}  // namespace quarry::engine
