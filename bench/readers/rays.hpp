// SPDX-License-Identifier: Apache-2.0
// rays.hpp - `quarry bench readers`, rays: the same rays of the reference scenes' cameras, traced by a kernel
// (device::Store::trace_there) and by a shader (shaders/passes/trace.comp.glsl) in the same memory; and the primary
// rays that a shader makes itself, as in `quarry bench render`.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "bench/readers/shared_store.hpp"

namespace quarry::bench {

struct ReadersOptions {
  SharedStore::Kernels kernels = SharedStore::Kernels::automatic;
  bool full_size = true;       // false: miniatures, for software drivers
  uint32_t bricks = 27500000;  // of the larger world that is looked up in; the smaller one has a sixteenth
  uint32_t look_ups = 100000000;
  uint32_t rays_across = 2048;  // and down; a multiple of 8
  uint32_t repeats = 5;
  Progress progress{};
};

// An array of {"scene", "camera", "rays", "hits": {"kernel", "shader", "primary"}, "different", "rows": {name:
// {"microseconds", "million_per_s"}}, "ratios": {name: the kernel's rate by that row's}}. In each round all are
// measured one after the other, and the median of each is told, after two rounds of warm-up. Rays lie in the list as
// threads of a picture have them, in tiles of 8 x 8 pixels. Errors: other hits than the shader's, but for 20 rays
// in 100,000 that meet an edge (of worlds in tests at most 14 do), make the measurement void; unsupported,
// out_of_memory, device.
Result<nlohmann::json> bench_reader_rays(engine::Device& device, const ReadersOptions& options);

}  // namespace quarry::bench
