// SPDX-License-Identifier: Apache-2.0
// look_ups.hpp - `quarry bench readers`, look-ups: random bricks of a world in a device's memory, found in the grid,
// with a word of the mask and a material each, by a kernel and by a shader; in a world that is large and in one that is
// a sixteenth of it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/result.hpp"
#include "bench/readers/rays.hpp"
#include "bench/readers/shaders/look_ups.h"
#include "hashgrid/pairs/view.hpp"

namespace quarry::bench {

// What the kernel reads.
struct LookedUp {
  hashgrid::GridView grid;
  const uint64_t* masks;     // 8 words a brick
  const uint8_t* materials;  // 512 a brick
  uint32_t bricks, count;    // of the world; look-ups
};

// Look-up `i`, in halves, as in look_ups.comp.glsl, so that several are in flight together: the brick's index, and what
// is at the voxel.
QRY_FN uint32_t brick_looked_up(const LookedUp& world, uint32_t i) {
  return hashgrid::find(world.grid, qry_key_of_number(qry_looked_up(i, world.bricks))).value;
}
QRY_FN uint32_t found_at(const LookedUp& world, uint32_t brick, uint32_t at) {
  if (brick == kQryReservedValue) return 0;
  const uint64_t word = world.masks[size_t(brick) * 8 + (at >> 6)];
  return world.materials[size_t(brick) * 512 + at] + 256u * uint32_t(word >> (at & 63u) & 1u);
}

// The microseconds that a CUDA device takes for all of them, and their sum. Errors: device, unsupported (a build
// without CUDA).
struct Summed {
  double us = 0;
  uint32_t sum = 0;
};
Result<Summed> look_up_on_cuda(int device, const LookedUp& world);
// The microseconds that as many reads at random places of the same arrays take.
Result<double> read_on_cuda(int device, const LookedUp& world);
// The same on host threads.
Summed look_up_on_host(const LookedUp& world);

// {"worlds": [{"bricks", "bytes", "look_ups", "rows": {"kernel", "shader", "reads": {"microseconds", "million_per_s"}},
// "ratio": the shader's rate by the kernel's}], "ratios": {"kernel", "shader", "reads": the large world's rate by the
// small one's}}. "reads", on CUDA alone: read_on_cuda(). The large one is the first. Medians, as of
// bench_reader_rays(). Errors: a wrong sum makes the measurement void; unsupported, out_of_memory, device.
Result<nlohmann::json> bench_reader_look_ups(engine::Device& device, const ReadersOptions& options);

}  // namespace quarry::bench
