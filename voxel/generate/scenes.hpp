// SPDX-License-Identifier: Apache-2.0
// scenes.hpp - procedural scenes, so that there is something to see without a download.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/progress.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry {

struct Generator {
  const char* name;      // "terrain"
  const char* title;     // one line for --help
  int32_t default_size;  // edge in voxels
  int32_t min_size, max_size;
};
std::span<const Generator> generators();

// Deterministic in (name, size, seed), for any number of threads. size 0: the default. Errors: not_found (with the
// nearest name), invalid_argument (size), cancelled.
Result<Scene> generate(std::string_view name, int32_t size, uint32_t seed, const Progress& progress = {});

}  // namespace quarry
