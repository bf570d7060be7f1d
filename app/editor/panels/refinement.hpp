// SPDX-License-Identifier: Apache-2.0
// refinement.hpp - the state of the picture since its last change: its resolution, and the light paths added up so far.
#pragma once

#include <chrono>
#include <cstdint>

#include "engine/pictures/path_tracer.hpp"

namespace quarry::app {

constexpr uint32_t kUsualPaths = 512;  // paths a pixel; little grain is left

// How fine the picture is drawn. A software device cannot draw a whole picture between two mouse movements. While
// something moves, fewer pixels are marched. When all is still, the whole picture is drawn in tiles (Refinement).
struct Resolution {
  double scale = 1;     // of the newest picture
  double tiles_ms = 0;  // time of the newest picture, if it was whole and drawn in tiles
  double full_ms = 0;   // estimated time of a whole picture of one ray a pixel
  bool whole = false;   // the newest picture is at full resolution and quality
  std::chrono::steady_clock::time_point changed;
};

// Light paths that are added up while nothing moves.
struct Convergence {
  uint32_t wanted = 0;  // paths a pixel; 0: quick shading only
  uint32_t steps = 0;   // of PathTracer, since the picture last changed
  double step_ms = 0;   // estimated time of a step
  uint32_t paths() const { return steps / engine::PathTracer::kStepsAPath; }
  bool done() const { return paths() >= wanted; }
};

}  // namespace quarry::app
