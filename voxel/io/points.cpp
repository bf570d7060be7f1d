// points.cpp - points sorted by the voxel that they fall into. Deterministic: the order of the points does not matter.
#include "voxel/io/points.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "voxel/io/volume_builder.hpp"
#include "voxel/source_units.hpp"

namespace quarry::io {
namespace {

struct Sample {
  uint64_t key;  // brick x, y, z (11 bits each) and the voxel in it: rising keys are bricks in rising order
  uint32_t rgba;
  friend bool operator<(const Sample& a, const Sample& b) { return a.key < b.key; }
};

uint64_t key_of(Int3 cell) {
  const Int3 b = brick_of(cell);
  return uint64_t(b.x) << 31 | uint64_t(b.y) << 20 | uint64_t(b.z) << 9 | voxel_index({cell.x & 7, cell.y & 7, cell.z & 7});
}

std::array<double, 3> in_world_axes(const double p[3], bool z_up) { return z_up ? std::array<double, 3>{p[0], p[2], -p[1]} : std::array<double, 3>{p[0], p[1], p[2]}; }

// The mean colour of samples [begin, end), rounded; sums of whole numbers, so that no order matters.
uint32_t mean_colour(const std::vector<Sample>& samples, size_t begin, size_t end) {
  uint64_t sum[4] = {0, 0, 0, 0};
  for (size_t i = begin; i < end; ++i)
    for (int c = 0; c < 4; ++c) sum[c] += samples[i].rgba >> 8 * c & 255;
  const uint64_t n = end - begin;
  return rgba_of(uint32_t((sum[0] + n / 2) / n), uint32_t((sum[1] + n / 2) / n), uint32_t((sum[2] + n / 2) / n), uint32_t((sum[3] + n / 2) / n));
}

std::string number_text(double v) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", v);
  return text;
}

}  // namespace

Result<Scene> voxelize_points(const PointWalk& walk, uint64_t points, bool z_up, uint64_t file_bytes, const ReadOptions& options) {
  if (options.up == "y") z_up = false;
  if (options.up == "z") z_up = true;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::array<double, 3> low{kInfinity, kInfinity, kInfinity}, high{-kInfinity, -kInfinity, -kInfinity};
  uint64_t outside = 0;
  const auto finite = [](const double p[3]) { return std::all_of(p, p + 3, [](double v) { return std::abs(v) <= 1e15; }); };  // false for NaN
  walk([&](const double p[3], uint32_t) {
    if (!finite(p)) {
      ++outside;
      return;
    }
    const auto w = in_world_axes(p, z_up);
    for (size_t a = 0; a < 3; ++a) low[a] = std::min(low[a], w[a]), high[a] = std::max(high[a], w[a]);
  });
  if (outside == points) return fail(ErrorCode::malformed_input, "byte 0: expected at least one point with finite coordinates, found none of " + std::to_string(points));
  if (outside) add_warning(options.warnings, std::to_string(outside) + " points have coordinates that are no numbers, or beyond 1e15, and were left out");
  const double longest = std::max({high[0] - low[0], high[1] - low[1], high[2] - low[2]});
  double edge = options.voxel_size;
  if (edge <= 0) {
    if (options.resolution < 1 || options.resolution > kPointsMaxEdge)
      return fail(ErrorCode::invalid_argument, "the resolution must be 1 to " + std::to_string(kPointsMaxEdge) + ", not " + std::to_string(options.resolution));
    edge = longest > 0 ? longest / options.resolution : 1;
    if (edge <= 0) edge = longest;  // so small that the division gave nothing
  }
  const int32_t most = options.voxel_size > 0 ? kPointsMaxEdge : options.resolution;
  if (!(longest / edge < kPointsMaxEdge + 1.0) || (options.voxel_size > 0 && std::floor(longest / edge) >= kPointsMaxEdge))
    return fail(ErrorCode::invalid_argument, "voxels of " + number_text(edge) + " would be more than " + std::to_string(kPointsMaxEdge) + " along the longest edge of " + number_text(longest) +
                                                 "; use larger ones");

  std::vector<Sample> samples;
  samples.reserve(points - outside);
  Int3 size{};
  walk([&](const double p[3], uint32_t rgba) {
    if (!finite(p)) return;
    const auto w = in_world_axes(p, z_up);
    int32_t c[3];
    for (size_t a = 0; a < 3; ++a) c[a] = std::clamp(int32_t(std::floor((w[a] - low[a]) / edge)), 0, most - 1);  // the far side belongs to the last voxel
    size = {std::max(size.x, c[0] + 1), std::max(size.y, c[1] + 1), std::max(size.z, c[2] + 1)};
    samples.push_back({key_of({c[0], c[1], c[2]}), rgba});
  });
  std::sort(samples.begin(), samples.end());

  ColorTable colours;
  size_t cells = 0;  // samples[0 .. cells) become one for each voxel, with its mean colour
  for (size_t begin = 0, end; begin < samples.size(); begin = end) {
    for (end = begin + 1; end < samples.size() && samples[end].key == samples[begin].key;) ++end;
    const Sample cell{samples[begin].key, mean_colour(samples, begin, end)};
    colours.count(cell.rgba);
    samples[cells++] = cell;
  }
  Scene scene;
  colours.finish(scene, options.warnings);
  BrickBudget budget(file_bytes);
  BrickMap bricks;
  for (size_t i = 0; i < cells;) {
    const uint64_t place = samples[i].key >> 9;
    Brick brick;
    for (; i < cells && samples[i].key >> 9 == place; ++i) brick.set(uint32_t(samples[i].key & 511), colours.material(samples[i].rgba));
    if (!budget.take(1)) return tl::unexpected(budget.error(""));
    bricks.put({int32_t(place >> 22), int32_t(place >> 11 & 2047), int32_t(place & 2047)}, brick);
  }
  scene.metadata["points"] = std::to_string(points);
  set_source_units(scene, {edge, {low[0], low[1], low[2]}});
  scene.metadata["points.origin"] = number_text(low[0]) + " " + number_text(low[1]) + " " + number_text(low[2]);
  add_single_volume(scene, "points", std::move(bricks), size);
  return scene;
}

}  // namespace quarry::io
