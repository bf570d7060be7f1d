// SPDX-License-Identifier: Apache-2.0
// scale.cpp - whole-number changes of resolution: enlarge(), shrink().
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>

#include "voxel/operations/internal.hpp"
#include "voxel/worlds/source_units.hpp"

namespace quarry {
using namespace operations_detail;
namespace {

constexpr uint32_t kMaxFactor = 64;

Result<void> check_factor(uint32_t n) {
  if (n < 1 || n > kMaxFactor)
    return fail(ErrorCode::invalid_argument,
                "a factor of " + std::to_string(n) + "; expected 1 to " + std::to_string(kMaxFactor));
  return {};
}

// Updates the metadata of a scene whose voxels have become `factor` times as long.
void scale_voxel_size(Scene& scene, double factor) {
  const auto it = scene.metadata.find("voxel_size");
  if (it == scene.metadata.end()) return;
  double size = 0;
  const auto [end, error] = std::from_chars(it->second.data(), it->second.data() + it->second.size(), size);
  if (error == std::errc() && size > 0 && std::isfinite(size * factor)) it->second = shortest_text(size * factor);
  else scene.metadata.erase(it);
}

}  // namespace

namespace operations_detail {

BrickMap enlarged(const BrickMap& bricks, int32_t n, const Box3& within) {
  BrickMap out;
  // The images of a source brick along an axis, from 0 to n - 1, that are in the box.
  struct Images {
    int32_t first, last;
  };
  const auto images = [n](int32_t at, int32_t low, int32_t high) {
    const int64_t begin = int64_t(at) * n;
    return Images{int32_t(std::clamp<int64_t>(low - begin, 0, n)),
                  int32_t(std::clamp<int64_t>(high - begin, -1, n - 1))};
  };
  std::vector<BrickMap::Entry> slab;  // source bricks of one x: their images fill x slabs in rising order
  const auto enlarge_slab = [&] {
    if (slab.empty()) return;
    const Images xs = images(slab.front().first.x, within.min.x, within.max.x);
    for (int32_t x = xs.first; x <= xs.last; ++x)
      for (const auto& [at, brick] : slab) {
        const Images ys = images(at.y, within.min.y, within.max.y), zs = images(at.z, within.min.z, within.max.z);
        for (int32_t y = ys.first; y <= ys.last; ++y)
          for (int32_t z = zs.first; z <= zs.last; ++z) {
            Brick image;
            for (uint32_t i = 0; i < kVoxelsPerBrick; ++i) {
              const Int3 local = voxel_from_index(i);
              if (const uint8_t m =
                      brick.get(voxel_index({(x * 8 + local.x) / n, (y * 8 + local.y) / n, (z * 8 + local.z) / n})))
                image.set(i, m);
            }
            if (!image.empty()) out.put({at.x * n + x, at.y * n + y, at.z * n + z}, image);
          }
      }
    slab.clear();
  };
  for (const BrickMap::Entry& entry : bricks.bricks()) {
    if (!slab.empty() && slab.front().first.x != entry.first.x) enlarge_slab();
    slab.push_back(entry);
  }
  enlarge_slab();
  return out;
}

BrickMap shrunk(const BrickMap& bricks, Int3 phase, int64_t n, uint32_t threshold) {
  const auto divided = [n](int64_t a) { return int32_t(floor_div(a, n)); };
  BrickMap out;
  // Of the bricks that later ones can still affect: place in the brick << 8 | material.
  std::map<Int3, std::vector<uint32_t>> coarse;
  std::vector<uint8_t> materials;
  const auto finish = [&](Int3 at, const std::vector<uint32_t>& voxels) {
    // For each place, the begin of its materials; after filling, their end.
    std::array<uint32_t, kVoxelsPerBrick> ends{};
    for (const uint32_t v : voxels)
      if (v >> 8 < kVoxelsPerBrick - 1) ++ends[(v >> 8) + 1];
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
    materials.resize(voxels.size());
    for (const uint32_t v : voxels) materials[ends[v >> 8]++] = uint8_t(v);
    Brick b;
    for (uint32_t place = 0; place < kVoxelsPerBrick; ++place) {
      const auto begin = materials.begin() + (place ? ends[place - 1] : 0), last = materials.begin() + ends[place];
      if (last - begin < int64_t(threshold)) continue;
      std::sort(begin, last);
      uint8_t best = 0;
      int64_t most = 0;
      for (auto it = begin; it != last;) {
        const auto end = std::upper_bound(it, last, *it);
        if (end - it > most) most = end - it, best = *it;
        it = end;
      }
      b.set(place, best);
    }
    out.put(at, b);
  };
  for (const auto& [at, brick] : bricks.bricks()) {
    std::array<Int3, 8> cells;  // where the brick's corner and the next on its diagonal are mapped to
    for (int64_t i = 0; i < 8; ++i)
      cells[size_t(i)] = {divided(int64_t(at.x) * 8 + i + phase.x), divided(int64_t(at.y) * 8 + i + phase.y),
                          divided(int64_t(at.z) * 8 + i + phase.z)};
    // Bricks come with rising x: everything before this one's slab is complete.
    while (!coarse.empty() && coarse.begin()->first.x < cells[0].x >> 3) {
      finish(coarse.begin()->first, coarse.begin()->second);
      coarse.erase(coarse.begin());
    }
    std::vector<uint32_t>* voxels = nullptr;
    Int3 reached;
    for (uint32_t i = 0; i < kVoxelsPerBrick; ++i) {
      const uint8_t m = brick.get(i);
      if (!m) continue;
      const Int3 local = voxel_from_index(i);
      const Int3 cell{cells[size_t(local.x)].x, cells[size_t(local.y)].y, cells[size_t(local.z)].z};
      if (!voxels || brick_of(cell) != reached) reached = brick_of(cell), voxels = &coarse[reached];
      voxels->push_back(voxel_index({cell.x & 7, cell.y & 7, cell.z & 7}) << 8 | m);
    }
  }
  for (const auto& [at, voxels] : coarse) finish(at, voxels);
  return out;
}

Result<Scene> plan_enlarge(const Scene& scene, std::span<const Box3> bounds, uint32_t n) {
  QRY_TRY(check(scene));
  QRY_TRY(check_factor(n));
  Scene out = scene;
  if (n == 1) return out;
  const auto factor = int32_t(n);
  const auto fits = [&](Int3 v) {
    return std::max({std::abs(int64_t(v.x)), std::abs(int64_t(v.y)), std::abs(int64_t(v.z))}) * factor <=
           INT32_MAX - 8 * factor;
  };
  for (size_t v = 0; v < out.volumes.size(); ++v) {
    Volume& volume = out.volumes[v];
    const Box3& box = bounds[v];
    if (!box.empty() && (!fits(box.min) || !fits(box.max)))
      return fail(ErrorCode::out_of_bounds, "volume " + std::to_string(v) + " would reach beyond 32 bits");
    if (fits(volume.size)) volume.size = {volume.size.x * factor, volume.size.y * factor, volume.size.z * factor};
    else volume.size = {};
  }
  for (size_t i = 0; i < out.instances.size(); ++i) {
    Int3& o = out.instances[i].offset;
    if (!fits(o))
      return fail(ErrorCode::out_of_bounds, "instance " + std::to_string(i) + " would be moved beyond 32 bits");
    o = {o.x * factor, o.y * factor, o.z * factor};
  }
  for (Camera& c : out.cameras)
    for (double* point : {c.position, c.target})
      for (int a = 0; a < 3; ++a) point[a] *= factor;
  scale_voxel_size(out, 1.0 / factor);
  return out;
}

Result<ShrinkPlan> plan_shrink(const Scene& scene, uint32_t n) {
  QRY_TRY(check(scene));
  QRY_TRY(check_factor(n));
  ShrinkPlan plan;
  plan.scene = scene;
  plan.scene.volumes.clear();
  // World cell w = s * c + o (one axis; -1 more if s < 0). With o = n * q + r, 0 <= r < n: floor(w / n) = floor((c + r)
  // / n) + q where s > 0, and where s < 0, w = -1 - (c - o), so floor(w / n) = -1 - floor((c - r) / n) + q = -1 -
  // floor((c + n - r) / n) + q + 1, with phase n - r unless r is 0.
  const auto edge = int32_t(n);
  std::map<std::pair<uint32_t, Int3>, uint32_t> made;
  for (Instance& i : plan.scene.instances) {
    std::array<int32_t, 3> phase{}, offset{};
    const std::array<int32_t, 3> o{i.offset.x, i.offset.y, i.offset.z};
    for (size_t row = 0; row < 3; ++row) {
      const int32_t rest = ((o[row] % edge) + edge) % edge, whole = int32_t((int64_t(o[row]) - rest) / edge);
      const bool turned = i.rotation.sign[row] < 0 && rest > 0;
      phase[i.rotation.axis[row]] = turned ? edge - rest : rest;
      offset[row] = whole + turned;
    }
    i.offset = {offset[0], offset[1], offset[2]};
    const Int3 p{phase[0], phase[1], phase[2]};
    const auto [it, fresh] = made.try_emplace({i.volume, p}, uint32_t(plan.parts.size()));
    if (fresh) {
      const Volume& from = scene.volumes[i.volume];
      const auto part = [&](int32_t size, int32_t by) {
        return size > 0 ? int32_t((int64_t(size) + by + edge - 1) / edge) : size;
      };
      plan.scene.volumes.push_back(
          {from.name, {}, {part(from.size.x, p.x), part(from.size.y, p.y), part(from.size.z, p.z)}});
      plan.parts.push_back({i.volume, p});
    }
    i.volume = it->second;
  }
  for (Camera& c : plan.scene.cameras)
    for (double* point : {c.position, c.target})
      for (int a = 0; a < 3; ++a) point[a] /= edge;
  scale_voxel_size(plan.scene, edge);
  return plan;
}

}  // namespace operations_detail

Result<Scene> enlarge(const Scene& scene, uint32_t n) {
  QRY_TRY(check(scene));
  std::vector<Box3> bounds;
  for (const Volume& volume : scene.volumes) bounds.push_back(volume.bricks.bounds());
  QRY_TRY_ASSIGN(Scene out, plan_enlarge(scene, bounds, n));
  if (n == 1) return out;
  constexpr Box3 kEverywhere{{INT32_MIN, INT32_MIN, INT32_MIN}, {INT32_MAX, INT32_MAX, INT32_MAX}};
  for (Volume& volume : out.volumes) volume.bricks = enlarged(volume.bricks, int32_t(n), kEverywhere);
  return out;
}

Result<Scene> shrink(const Scene& scene, uint32_t n, uint32_t threshold) {
  QRY_TRY(check(scene));
  QRY_TRY(check_factor(n));
  if (threshold < 1 || threshold > n * n * n)
    return fail(ErrorCode::invalid_argument, "a threshold of " + std::to_string(threshold) + " of " +
                                                 std::to_string(n * n * n) + " voxels; expected 1 to all of them");
  if (n == 1) return scene;
  QRY_TRY_ASSIGN(ShrinkPlan plan, plan_shrink(scene, n));
  for (size_t v = 0; v < plan.parts.size(); ++v)
    plan.scene.volumes[v].bricks =
        shrunk(scene.volumes[plan.parts[v].volume].bricks, plan.parts[v].phase, n, threshold);
  return std::move(plan.scene);
}

}  // namespace quarry
