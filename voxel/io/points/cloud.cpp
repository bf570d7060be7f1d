// SPDX-License-Identifier: Apache-2.0
// cloud.cpp - sorts points by the voxel that they fall into. It is deterministic: the order of the points does not
// matter.
#include "voxel/io/points/cloud.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#include "voxel/io/files/spill.hpp"
#include "voxel/io/streams/volume_builder.hpp"
#include "voxel/worlds/source_units.hpp"

namespace quarry::io {
namespace {

struct Sample {
  uint64_t key;  // brick x, y, z (17 bits each) and the voxel in it; bricks rise with the key
  uint32_t rgba;
  friend bool operator<(const Sample& a, const Sample& b) { return a.key < b.key; }
};

uint64_t key_of(Int3 cell) {
  const Int3 b = brick_of(cell);
  return uint64_t(b.x) << 43 | uint64_t(b.y) << 26 | uint64_t(b.z) << 9 |
         voxel_index({cell.x & 7, cell.y & 7, cell.z & 7});
}

// The key for regions: chunk x, y, z (14 bits each), brick in it (3 bits each), voxel in that; 60 bits.
uint64_t chunk_key_of(Int3 cell) {
  const auto interleaved = [&](int shift, uint32_t mask, int bits) {
    const auto part = [&](int32_t v) { return uint64_t(uint32_t(v) >> shift & mask); };
    return part(cell.x) << 2 * bits | part(cell.y) << bits | part(cell.z);
  };
  return interleaved(6, (1u << 14) - 1, 14) << 18 | interleaved(3, 7, 3) << 9 |
         voxel_index({cell.x & 7, cell.y & 7, cell.z & 7});
}
Int3 brick_of_chunk_key(uint64_t key) {
  const auto at = [&](int chunk_bit, int brick_bit) {
    return int32_t((key >> chunk_bit & ((1u << 14) - 1)) << 3 | (key >> brick_bit & 7));
  };
  return {at(46, 15), at(32, 12), at(18, 9)};
}

// A point that may wait on disk. No two are equal, so the sort drops none as a duplicate.
struct WaitingSample {
  uint64_t key_and_number;  // chunk key, and the high four bits of the point's number
  uint32_t rgba, number;
  uint64_t key() const { return key_and_number >> 4; }
  friend bool operator<(const WaitingSample& a, const WaitingSample& b) {
    return std::tie(a.key_and_number, a.number, a.rgba) < std::tie(b.key_and_number, b.number, b.rgba);
  }
};
struct WaitingCell {
  uint64_t key;
  uint32_t rgba, zero;
};

std::array<double, 3> in_world_axes(const double p[3], bool z_up) {
  return z_up ? std::array<double, 3>{p[0], p[2], -p[1]} : std::array<double, 3>{p[0], p[1], p[2]};
}

// The mean colour of a voxel's points, rounded. The sums are integers, so the order does not matter.
struct ColorSum {
  uint64_t sum[4] = {0, 0, 0, 0}, count = 0;
  void add(uint32_t rgba) {
    for (int c = 0; c < 4; ++c) sum[c] += rgba >> 8 * c & 255;
    ++count;
  }
  uint32_t mean() const { return rgba_of(part(0), part(1), part(2), part(3)); }

 private:
  uint32_t part(int c) const { return uint32_t((sum[c] + count / 2) / count); }
};

std::string number_text(double v) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", v);
  return text;
}

bool finite_point(const double p[3]) {
  return std::all_of(p, p + 3, [](double v) { return std::abs(v) <= 1e15; });  // false for NaN
}

// The grid that a cloud's points fall into.
class PointFrame {
 public:
  static Result<PointFrame> of(const PointCloud& cloud, const ReadOptions& options) {
    PointFrame f;
    f.z_up_ = options.up == "z" || (cloud.z_up && options.up != "y");
    f.points_ = cloud.points;
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    std::array<double, 3> high{-kInfinity, -kInfinity, -kInfinity};
    f.low_ = {kInfinity, kInfinity, kInfinity};
    uint64_t outside = 0;
    const auto walked = cloud.walk([&](const double p[3], uint32_t) {
      if (!finite_point(p)) {
        ++outside;
        return true;
      }
      const auto w = in_world_axes(p, f.z_up_);
      for (size_t a = 0; a < 3; ++a) f.low_[a] = std::min(f.low_[a], w[a]), high[a] = std::max(high[a], w[a]);
      return true;
    });
    QRY_TRY(walked);
    if (outside == cloud.points)
      return fail(
          ErrorCode::malformed_input,
          "byte 0: expected at least one point with finite coordinates, found none of " + std::to_string(cloud.points));
    if (outside)
      add_warning(
          options.warnings,
          std::to_string(outside) + " points have coordinates that are no numbers, or beyond 1e15, and were left out");
    f.inside_ = cloud.points - outside;
    if (f.inside_ >> 36) return fail(ErrorCode::unsupported, "it has more than 2^36 points; split it");
    const double longest = std::max({high[0] - f.low_[0], high[1] - f.low_[1], high[2] - f.low_[2]});
    f.edge_ = options.voxel_size;
    if (f.edge_ <= 0) {
      if (options.resolution < 1 || options.resolution > kPointsMaxEdge)
        return fail(ErrorCode::invalid_argument, "the resolution must be 1 to " + std::to_string(kPointsMaxEdge) +
                                                     ", not " + std::to_string(options.resolution));
      f.edge_ = longest > 0 ? longest / options.resolution : 1;
      if (f.edge_ <= 0) f.edge_ = longest;  // so small that the division gave 0
    }
    f.most_ = options.voxel_size > 0 ? kPointsMaxEdge : options.resolution;
    if (!(longest / f.edge_ < kPointsMaxEdge + 1.0) ||
        (options.voxel_size > 0 && std::floor(longest / f.edge_) >= kPointsMaxEdge))
      return fail(ErrorCode::invalid_argument, "voxels of " + number_text(f.edge_) + " would be more than " +
                                                   std::to_string(kPointsMaxEdge) + " along the longest edge of " +
                                                   number_text(longest) + "; use larger ones");
    return f;
  }

  uint64_t inside() const { return inside_; }
  // Calls take(cell, colour) for each point. `take` returns false to end the walk.
  template <class Take>
  Result<void> walk(const PointCloud& cloud, const Take& take) {
    uint64_t seen = 0;
    auto walked = cloud.walk([&](const double p[3], uint32_t rgba) {
      if (!finite_point(p)) return true;
      if (++seen > inside_) return false;
      const auto w = in_world_axes(p, z_up_);
      int32_t c[3];
      // The far side belongs to the last voxel.
      for (size_t a = 0; a < 3; ++a)
        c[a] = int32_t(std::clamp(std::floor((w[a] - low_[a]) / edge_), 0.0, double(most_ - 1)));
      size_ = {std::max(size_.x, c[0] + 1), std::max(size_.y, c[1] + 1), std::max(size_.z, c[2] + 1)};
      return bool(take(Int3{c[0], c[1], c[2]}, rgba));
    });
    return walked;
  }
  // Completes the scene, whose palette holds the colours already, with the cells' bricks.
  void finish(const PointCloud& cloud, Scene& scene, BrickMap bricks) const {
    scene.metadata["points"] = std::to_string(points_);
    scene.metadata["points.color"] = cloud.color;
    set_source_units(scene, {edge_, {low_[0], low_[1], low_[2]}});
    scene.metadata["points.origin"] = number_text(low_[0]) + " " + number_text(low_[1]) + " " + number_text(low_[2]);
    add_single_volume(scene, "points", std::move(bricks), size_);
  }

 private:
  std::array<double, 3> low_{};
  double edge_ = 1;
  int32_t most_ = 1;
  uint64_t points_ = 0, inside_ = 0;
  bool z_up_ = false;
  Int3 size_{};
};

// The share of the room that sorting gets, and the share of the remaining room that regions get.
constexpr double kPointSortShare = 0.5, kPointRegionShare = 0.5;
constexpr uint64_t kPointBrickBytes = 700, kPointBricksPerChunk = 512;

}  // namespace

Result<Scene> voxelize_points(const PointCloud& cloud, const ReadOptions& options) {
  QRY_TRY_ASSIGN(auto frame, PointFrame::of(cloud, options));
  QRY_TRY_ASSIGN(auto promise, MemoryBudget::promise(options.budget, frame.inside() * sizeof(Sample),
                                                     "sorting its " + std::to_string(frame.inside()) + " points"));
  std::vector<Sample> samples;
  samples.reserve(frame.inside());
  const auto walked = frame.walk(cloud, [&](Int3 cell, uint32_t rgba) {
    samples.push_back({key_of(cell), rgba});
    if (samples.size() % 65536 == 0) promise.taken(65536 * sizeof(Sample));
    return true;
  });
  QRY_TRY(walked);
  promise.taken(UINT64_MAX);
  std::sort(samples.begin(), samples.end());
  if (options.progress.cancelled()) return fail(ErrorCode::cancelled, "stopped");

  ColorTable colours(options.budget);
  size_t cells = 0;  // samples[0 .. cells) become one for each voxel, with its mean colour
  for (size_t begin = 0, end; begin < samples.size(); begin = end) {
    ColorSum sum;
    for (end = begin; end < samples.size() && samples[end].key == samples[begin].key; ++end) sum.add(samples[end].rgba);
    const Sample cell{samples[begin].key, sum.mean()};
    colours.count(cell.rgba);
    samples[cells++] = cell;
  }
  QRY_TRY(colours.good());
  Scene scene;
  colours.finish(scene, options.warnings);
  BrickBudget budget(cloud.file_bytes, {options.budget, nullptr});
  BrickMap bricks;
  for (size_t i = 0; i < cells;) {
    const uint64_t place = samples[i].key >> 9;
    Brick brick;
    for (; i < cells && samples[i].key >> 9 == place; ++i)
      brick.set(uint32_t(samples[i].key & 511), colours.material(samples[i].rgba));
    if (!budget.take(1)) return tl::unexpected(budget.error(""));
    constexpr uint64_t kEdge = (1u << 17) - 1;
    bricks.put({int32_t(place >> 34), int32_t(place >> 17 & kEdge), int32_t(place & kEdge)}, brick);
  }
  frame.finish(cloud, scene, std::move(bricks));
  return scene;
}

Result<RegionsDone> voxelize_points_in_regions(const PointCloud& cloud, const std::filesystem::path& file,
                                               const ReadOptions& options, const RegionSink& sink) {
  QRY_TRY_ASSIGN(auto frame, PointFrame::of(cloud, options));
  auto points_wait = Spill::create(sink.beside), cells_wait = Spill::create(sink.beside);
  if (!points_wait || !cells_wait) return tl::unexpected((points_wait ? cells_wait : points_wait).error());
  ColorTable colours(options.budget);
  uint64_t cells = 0;
  {
    const uint64_t all = frame.inside() * sizeof(WaitingSample);
    SpilledSort<WaitingSample> sorted(
        **points_wait, std::min<uint64_t>(all, uint64_t(double(sink.available_bytes()) * kPointSortShare)));
    uint64_t number = 0;
    const auto walked = frame.walk(cloud, [&](Int3 cell, uint32_t rgba) {
      sorted.add({chunk_key_of(cell) << 4 | number >> 32, rgba, uint32_t(number)});
      ++number;
      return true;
    });
    QRY_TRY(walked);
    sorted.finish();
    std::optional<uint64_t> open;
    ColorSum sum;
    const auto close = [&] {
      if (!open) return;
      const WaitingCell cell{*open, sum.mean(), 0};
      colours.count(cell.rgba);
      (*cells_wait)->append_all(std::span(&cell, 1));
      ++cells;
    };
    for (WaitingSample sample{}; sorted.next(sample); sum.add(sample.rgba)) {
      if (open == sample.key()) continue;
      close();
      open = sample.key();
      sum = {};
      if (options.progress.cancelled()) return fail(ErrorCode::cancelled, "stopped");
    }
    close();
    QRY_TRY((*points_wait)->good());
    QRY_TRY(colours.good());
  }
  points_wait->reset();
  Scene scene;
  colours.finish(scene, options.warnings);
  frame.finish(cloud, scene, {});
  scene = std::move(*named_after(file, std::move(scene)));
  QRY_TRY(sink.begin(scene));

  const auto most =
      std::max<uint64_t>(1, uint64_t(double(sink.available_bytes()) * kPointRegionShare) / kPointBrickBytes);
  BrickBudget budget(cloud.file_bytes);
  RegionsDone done;
  BrickMap region;
  Brick brick;
  std::optional<uint64_t> place;  // of `brick`
  const auto hand_over = [&]() -> Result<void> {
    if (region.empty()) return {};
    ++done.regions;
    auto taken = sink.take(0, std::move(region));
    region = {};
    return taken;
  };
  const auto close = [&](uint64_t next) -> Result<void> {
    if (place) {
      if (!budget.take(1)) return tl::unexpected(budget.error(""));
      region.put(brick_of_chunk_key(*place << 9), brick);
    }
    const bool new_chunk = place && *place >> 9 != next >> 9;
    brick = {};
    place = next;
    if (!new_chunk) return {};
    if (options.progress.cancelled()) return fail(ErrorCode::cancelled, "stopped");
    // Chunks are passed on whole, so there must be room for one more.
    return region.bricks().size() + kPointBricksPerChunk > most ? hand_over() : Result<void>();
  };
  std::vector<WaitingCell> some;
  for (uint64_t at = 0; at < cells; at += some.size()) {
    some.resize(size_t(std::min<uint64_t>(cells - at, 8192)));
    if (!(*cells_wait)->read_all(at * sizeof(WaitingCell), std::span(some)))
      return tl::unexpected((*cells_wait)->good().error());
    for (const WaitingCell& cell : some) {
      if (place != cell.key >> 9) QRY_TRY(close(cell.key >> 9));
      brick.set(uint32_t(cell.key & 511), colours.material(cell.rgba));
    }
    options.progress.say("regions", double(at) / double(cells));
  }
  if (place) QRY_TRY(close(*place));
  QRY_TRY(hand_over());
  return done;
}

Result<Scene> read_cloud(const std::filesystem::path& file, uint64_t limit, const ReadOptions& options,
                         CloudOfBytes cloud_of) {
  options.progress.say("read", -1);
  QRY_TRY_ASSIGN(auto bytes, BufferedReader::open(file, limit));
  QRY_TRY_ASSIGN(const auto cloud, cloud_of(bytes, options));
  return named_after(file, voxelize_points(cloud, options));
}

Result<RegionsDone> read_cloud_regions(const std::filesystem::path& file, uint64_t limit, const ReadOptions& options,
                                       const RegionSink& sink, CloudOfBytes cloud_of) {
  options.progress.say("read", -1);
  QRY_TRY_ASSIGN(auto bytes, BufferedReader::open(file, limit));
  QRY_TRY_ASSIGN(const auto cloud, cloud_of(bytes, options));
  return voxelize_points_in_regions(cloud, file, options, sink);
}

}  // namespace quarry::io
