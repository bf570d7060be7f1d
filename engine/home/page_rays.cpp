// SPDX-License-Identifier: Apache-2.0
// page_rays.cpp - follows rays through the pages of a world, and brings those that they miss.
#include "engine/home/page_rays.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/parallel.hpp"
#include "engine/sharing/residency.hpp"

namespace quarry::engine {
namespace {

constexpr double kPageVoxels = 128, kCellVoxels = 32;
// Rays that pass a cell so closely may meet it by rounding.
constexpr double kNearby = 1.0 / 64;

struct Line {
  std::array<double, 3> origin, direction;

  explicit Line(const Ray& ray) : origin(), direction() {
    const Ray unit = of_unit_length(ray);
    std::copy_n(unit.origin, 3, origin.begin());
    std::copy_n(unit.direction, 3, direction.begin());
  }
  // Narrows from..to to where the line is in a box. False: nowhere.
  bool clip(const std::array<double, 3>& low, const std::array<double, 3>& high, double& from, double& to) const {
    for (size_t a = 0; a < 3; ++a) {
      if (direction[a] == 0) {
        if (origin[a] < low[a] || origin[a] > high[a]) return false;
        continue;
      }
      const double one = (low[a] - origin[a]) / direction[a], other = (high[a] - origin[a]) / direction[a];
      from = std::max(from, std::min(one, other));
      to = std::min(to, std::max(one, other));
    }
    return from <= to;
  }
};

}  // namespace

void AbsentPages::add(uint32_t page, uint64_t cells) {
  cells_[page] = cells;
  bounds_ = united(bounds_, voxels_of_page(page));
}

std::optional<AbsentPages::Met> AbsentPages::first_met(const Ray& ray, double from, double until) const {
  if (cells_.empty() || !can_be_traced(ray)) return {};
  const Line line(ray);
  const std::array<int32_t, 3> first{bounds_.min.x >> 7, bounds_.min.y >> 7, bounds_.min.z >> 7},
      last{bounds_.max.x >> 7, bounds_.max.y >> 7, bounds_.max.z >> 7};
  std::array<double, 3> low{}, high{};
  for (size_t a = 0; a < 3; ++a) low[a] = first[a] * kPageVoxels, high[a] = (last[a] + 1) * kPageVoxels;
  double t = from, end = until;
  if (!line.clip(low, high, t, end)) return {};
  std::array<int32_t, 3> at{};
  for (size_t a = 0; a < 3; ++a)
    at[a] = std::clamp(int32_t(std::floor((line.origin[a] + line.direction[a] * t) / kPageVoxels)), first[a], last[a]);
  for (;;) {
    size_t axis = 0;
    double exit = std::numeric_limits<double>::infinity();
    for (size_t a = 0; a < 3; ++a) {
      if (line.direction[a] == 0) continue;
      const double plane = (at[a] + (line.direction[a] > 0 ? 1 : 0)) * kPageVoxels;
      if (const double there = (plane - line.origin[a]) / line.direction[a]; there < exit) exit = there, axis = a;
    }
    const uint32_t page = page_of({at[0] * 16, at[1] * 16, at[2] * 16});
    if (const auto found = cells_.find(page); found != cells_.end() && exit > from)
      for (uint64_t left = found->second; left; left &= left - 1) {
        const auto cell = uint32_t(std::countr_zero(left));
        for (size_t a = 0; a < 3; ++a) {
          low[a] = at[a] * kPageVoxels + (cell >> (2 * a) & 3u) * kCellVoxels - kNearby;
          high[a] = low[a] + kCellVoxels + 2 * kNearby;
        }
        double begin = from, stop = until;
        if (line.clip(low, high, begin, stop)) return Met{page, exit};
      }
    if (exit >= end) return {};
    at[axis] += line.direction[axis] > 0 ? 1 : -1;
    if (at[axis] < first[axis] || at[axis] > last[axis]) return {};
  }
}

Result<void> trace_in_parts(ResidentPages& pages, std::span<const Ray> rays, std::span<RayHit> hits,
                            const TraceThere& trace) {
  const auto stay = pages.stay();
  std::vector<size_t> pending(rays.size());
  std::iota(pending.begin(), pending.end(), size_t(0));
  std::vector<double> clear(rays.size(), 0);  // up to there a ray has met nothing
  std::vector<std::optional<AbsentPages::Met>> missed(rays.size());
  std::vector<Ray> again;
  std::vector<RayHit> found;
  while (!pending.empty()) {
    again.clear();
    for (const size_t i : pending) again.push_back(rays[i]);
    found.resize(pending.size());
    QRY_TRY(trace(again, found));
    const AbsentPages absent = pages.absent();
    parallel_for(pending.size(), 256, [&](size_t begin, size_t end) {
      for (size_t n = begin; n < end; ++n) {
        const size_t i = pending[n];
        // The page that it missed has been there this time, unless there was no room for it.
        if (missed[i] && !absent.has(missed[i]->page)) clear[i] = missed[i]->exit;
        hits[i] = found[n];
        const double until = found[n].t < 0 ? 1e9 : double(found[n].t);
        missed[i] = absent.first_met(rays[i], clear[i], until);
      }
    });
    std::erase_if(pending, [&](size_t i) { return !missed[i]; });
    std::vector<uint32_t> wanted;
    wanted.reserve(pending.size());
    for (const size_t i : pending) wanted.push_back(missed[i]->page);
    std::ranges::sort(wanted);
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    while (!wanted.empty()) {
      const auto there = pages.pages(wanted);
      if (there) break;
      if (there.error().code != ErrorCode::out_of_memory || wanted.size() == 1) return tl::unexpected(there.error());
      wanted.resize(wanted.size() / 2);
    }
  }
  return {};
}

}  // namespace quarry::engine
