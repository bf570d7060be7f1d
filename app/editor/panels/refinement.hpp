// SPDX-License-Identifier: Apache-2.0
// refinement.hpp - how far the picture has come since it last changed: its resolution, and light paths that add up.
#pragma once

#include <chrono>
#include <cstdint>

#include "engine/pictures/path_tracer.hpp"

namespace quarry::app {

constexpr uint32_t kUsualPaths = 512;  // a pixel: little grain is left

// How fine the picture is drawn. A software device cannot draw a whole picture between two mouse movements: while
// something moves fewer pixels are marched, and when all is still the picture is made whole, in tiles (Refinement).
struct Resolution {
  double scale = 1;     // of the newest picture
  double tiles_ms = 0;  // that the newest picture took, if it was whole and came in tiles
  double full_ms = 0;   // what a whole picture of one ray a pixel is thought to cost
  bool whole = false;   // the newest picture is at full resolution and quality
  std::chrono::steady_clock::time_point changed;
};

// Light paths that add up while nothing moves.
struct Convergence {
  uint32_t wanted = 0;  // paths a pixel; 0: quick shading only
  uint32_t steps = 0;   // of PathTracer, since the picture last changed
  double step_ms = 0;   // what a step is thought to cost
  uint32_t paths() const { return steps / engine::PathTracer::kStepsAPath; }
  bool done() const { return paths() >= wanted; }
};

}  // namespace quarry::app
