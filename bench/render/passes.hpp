// SPDX-License-Identifier: Apache-2.0
// passes.hpp - `quarry bench render`: measures the rays traced per second on the reference scenes, pass by pass.
//
// Each pass is a separate dispatch between two timestamps. The median of `repeats` is reported, after a warm-up of two
// rounds and half a second. The same run measures two upper bounds: making the rays and writing 16 bytes, and
// traversing only the pyramid. Rays counted are rays traced: pixels for primary rays, pixels that hit for shadow rays,
// and four times these for ambient rays.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"

namespace quarry::bench {

struct RenderBenchOptions {
  std::vector<int> scenes{0, 1, 2};
  bool full_size = true;  // false: miniatures, for software drivers
  uint32_t width = 1920, height = 1080, repeats = 20;
  std::string device;  // part of a device's name
  bool validation = false;
  Progress progress{};
};

// {"device", "driver", "sharing", "scenes": [{"scene", "voxels", "bricks", "bytes_per_voxel", "packed_bytes_per_voxel",
// "cameras": [{"camera", "hits", "passes": {name: {"rays", "microseconds", "million_per_s"}}}]}]}. A second round
// measures the packed world: the rows "..., packed". Errors: a wrong number of voxels, bricks or hits makes the
// measurement void. So does a pixel that differs when the world is packed.
Result<nlohmann::json> bench_render(const RenderBenchOptions& options);

// The same result as a table for people.
std::string render_table(const nlohmann::json& result);

}  // namespace quarry::bench
