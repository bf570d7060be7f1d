// SPDX-License-Identifier: Apache-2.0
// place.cpp - operations that move instances or cut them: turn(), crop(), boolean(), and what differs.
#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include "voxel/operations/internal.hpp"
#include "voxel/worlds/source_units.hpp"

namespace quarry {
using namespace operations_detail;
namespace {

using Long3 = std::array<int64_t, 3>;
Long3 wide(Int3 v) { return {v.x, v.y, v.z}; }

bool inside(Int3 v, const Box3& box) {
  return v.x >= box.min.x && v.x <= box.max.x && v.y >= box.min.y && v.y <= box.max.y && v.z >= box.min.z &&
         v.z <= box.max.z;
}

// Progress over the bricks of a map, in pieces.
class BrickProgress {
 public:
  BrickProgress(const Progress& progress, size_t bricks)
      : pieces_(progress, "combining"), stopped_(progress.cancelled()) {
    pieces_.begin(bricks / kPiece + 1, 0, 1);
  }
  // Call it before each brick. False if the work is to stop.
  bool go_on() {
    if (++bricks_ % kPiece == 0) stopped_ = !pieces_.piece_done();
    return !stopped_;
  }

 private:
  static constexpr size_t kPiece = 1024;
  PieceProgress pieces_;
  size_t bricks_ = 0;
  bool stopped_;
};
tl::unexpected<Error> stopped() { return fail(ErrorCode::cancelled, "stopped"); }

// Voxels of `a` that are (or are not) in `b`: the inner (or left) join of the two maps' keys, which are both sorted.
Result<BrickMap> filtered(const BrickMap& a, const BrickMap& b, bool in_b, const Progress& progress) {
  BrickProgress bricks(progress, a.bricks().size());
  BrickMap out;
  const auto theirs_end = b.bricks().end();
  auto their = b.bricks().begin();
  const auto ours = a.bricks();
  for (auto our = ours.begin(); our != ours.end(); ++our) {
    const auto [at, brick] = *our;
    if (!bricks.go_on()) return stopped();
    while (their != theirs_end && their->first < at) ++their;
    const bool there = their != theirs_end && their->first == at;
    if (!there || their.shared() == our.shared()) {
      if (there == in_b) out.put(at, our.shared());
      continue;
    }
    Brick kept;
    for (uint32_t w = 0; w < 8; ++w) {
      const uint64_t theirs = their->second().mask[w];
      kept.mask[w] = brick.mask[w] & (in_b ? theirs : ~theirs);
      for (uint64_t left = kept.mask[w]; left; left &= left - 1) {
        const uint32_t i = w * 64 + uint32_t(std::countr_zero(left));
        kept.materials[i] = brick.materials[i];
      }
    }
    if (!kept.empty()) out.put(at, kept);
  }
  return out;
}

// The voxels of both, those of `a` where it has them: the full join of the two maps' keys.
Result<BrickMap> united_bricks(const BrickMap& a, const BrickMap& b, const Progress& progress) {
  BrickProgress bricks(progress, a.bricks().size() + b.bricks().size());
  BrickMap out;
  const auto ours = a.bricks(), theirs = b.bricks();
  auto our = ours.begin(), their = theirs.begin();
  while (our != ours.end() || their != theirs.end()) {
    if (!bricks.go_on()) return stopped();
    if (their == theirs.end() || (our != ours.end() && our->first < their->first)) {
      out.put(our->first, our.shared());
      ++our;
    } else if (our == ours.end() || their->first < our->first) {
      out.put(their->first, their.shared());
      ++their;
    } else {
      Brick both = our->second().copy();
      const BrickView added = their->second();
      bool more = false;
      for (uint32_t w = 0; w < 8; ++w)
        for (uint64_t left = added.mask[w] & ~both.mask[w]; left; left &= left - 1) {
          const uint32_t i = w * 64 + uint32_t(std::countr_zero(left));
          both.set(i, added.materials[i]);
          more = true;
        }
      if (more) out.put(our->first, both);
      else out.put(our->first, our.shared());
      ++our, ++their;
    }
  }
  return out;
}

}  // namespace

Result<Scene> turn(const Scene& scene, const Rotation& rotation) {
  QRY_TRY(check(scene));
  if (!rotation.valid())
    return fail(ErrorCode::invalid_argument,
                "the rotation is not one of the 48: each axis must be there once, each sign be 1 or -1");
  Scene out = scene;
  for (size_t n = 0; n < out.instances.size(); ++n) {
    Instance& i = out.instances[n];
    i.rotation = rotation * i.rotation;
    const Long3 from = wide(i.offset);
    std::array<int32_t, 3> to{};
    for (size_t row = 0; row < 3; ++row) {
      const int64_t v = rotation.sign[row] * from[rotation.axis[row]];
      if (v > INT32_MAX)
        return fail(ErrorCode::out_of_bounds, "instance " + std::to_string(n) + " would be moved beyond 32 bits");
      to[row] = int32_t(v);
    }
    i.offset = {to[0], to[1], to[2]};
  }
  const auto turn_point = [&](double* point) {
    const double before[3] = {point[0], point[1], point[2]};
    for (size_t row = 0; row < 3; ++row) point[row] = rotation.sign[row] * before[rotation.axis[row]];
  };
  for (Camera& c : out.cameras) turn_point(c.position), turn_point(c.target);
  if (auto units = source_units(out)) {
    turn_point(units->origin.data());
    set_source_units(out, *units);
  }
  return out;
}

namespace operations_detail {

Box3 box_in_volume(const Instance& instance, const Box3& box) {
  const Long3 low = wide(box.min), high = wide(box.max), offset = wide(instance.offset);
  std::array<int32_t, 3> min{}, max{};
  for (size_t row = 0; row < 3; ++row) {
    int64_t a = low[row] - offset[row], b = high[row] - offset[row];
    if (instance.rotation.sign[row] < 0) std::tie(a, b) = std::pair(-1 - b, -1 - a);
    min[instance.rotation.axis[row]] = int32_t(std::clamp<int64_t>(a, INT32_MIN, INT32_MAX));
    max[instance.rotation.axis[row]] = int32_t(std::clamp<int64_t>(b, INT32_MIN, INT32_MAX));
  }
  return {{min[0], min[1], min[2]}, {max[0], max[1], max[2]}};
}

Scene single(BrickMap bricks, const Palette& palette, const char* name) {
  Scene out;
  out.palette = palette;
  out.volumes.push_back({name, std::move(bricks), {}});
  out.instances.emplace_back();
  out.instances.back().name = name;
  return out;
}

BrickMap cut(const BrickMap& bricks, const Box3& box) {
  BrickMap out;
  const Int3 first = brick_of(box.min), last = brick_of(box.max);
  for (const auto& [at, brick] : bricks.bricks()) {
    if (!inside(at, {first, last})) continue;
    const Box3 own = voxel_bounds(at, brick.mask);
    if (inside(own.min, box) && inside(own.max, box)) {
      out.put(at, brick);
      continue;
    }
    Brick kept;
    for (uint32_t i = 0; i < kVoxelsPerBrick; ++i)
      if (const uint8_t m = brick.get(i); m && inside(Int3{at.x * 8, at.y * 8, at.z * 8} + voxel_from_index(i), box))
        kept.set(i, m);
    if (!kept.empty()) out.put(at, kept);
  }
  return out;
}

CropPlan plan_crop(const Scene& scene, std::span<const Box3> bounds, const Box3& box) {
  CropPlan plan;
  plan.scene = scene;
  plan.scene.volumes.clear();
  plan.scene.instances.clear();
  if (box.empty()) return plan;
  std::map<std::tuple<uint32_t, Int3, Int3>, uint32_t> made;  // volume and the part of it that is kept -> new volume
  for (const Instance& instance : scene.instances) {
    const Box3& all = bounds[instance.volume];
    const Box3 kept = intersected(box_in_volume(instance, box), all);
    if (kept.empty()) continue;
    const auto [it, fresh] = made.try_emplace({instance.volume, kept.min, kept.max}, uint32_t(plan.parts.size()));
    if (fresh) {
      const Volume& from = scene.volumes[instance.volume];
      plan.scene.volumes.push_back({from.name, {}, from.size});
      plan.parts.push_back({instance.volume, kept, kept == all});
    }
    plan.scene.instances.push_back(instance);
    plan.scene.instances.back().volume = it->second;
  }
  return plan;
}

std::vector<uint32_t> drop_volumes(Scene& scene, const std::vector<bool>& empty) {
  std::vector<uint32_t> number(scene.volumes.size()), stay;
  std::vector<Volume> full;
  for (uint32_t v = 0; v < scene.volumes.size(); ++v) {
    number[v] = uint32_t(full.size());
    if (empty[v]) continue;
    full.push_back(std::move(scene.volumes[v]));
    stay.push_back(v);
  }
  scene.volumes = std::move(full);
  std::erase_if(scene.instances, [&](const Instance& i) { return empty[i.volume]; });
  for (Instance& i : scene.instances) i.volume = number[i.volume];
  return stay;
}

}  // namespace operations_detail

Result<Scene> crop(const Scene& scene, const Box3& box) {
  QRY_TRY(check(scene));
  std::vector<Box3> bounds;
  for (const Volume& v : scene.volumes) bounds.push_back(v.bricks.bounds());
  CropPlan plan = plan_crop(scene, bounds, box);
  std::vector<bool> empty;
  for (size_t v = 0; v < plan.parts.size(); ++v) {
    const CropPlan::Part& part = plan.parts[v];
    const BrickMap& from = scene.volumes[part.volume].bricks;
    BrickMap& bricks = plan.scene.volumes[v].bricks;
    bricks = part.whole ? from : cut(from, part.kept);
    empty.push_back(bricks.empty());  // a box that overlapped bounds, but no voxels
  }
  drop_volumes(plan.scene, empty);
  return std::move(plan.scene);
}

Result<Scene> boolean(const Scene& a, const Scene& b, BooleanKind kind, PaletteError* error) {
  if (error) *error = {};
  if (kind == BooleanKind::union_of) {
    Scene visible[2] = {a, b};
    for (Scene& s : visible) {
      QRY_TRY(check(s));
      QRY_TRY_ASSIGN(auto bricks, flatten(s, true));
      s = single(std::move(bricks), s.palette, "union");
    }
    const Scene* both[2] = {&visible[0], &visible[1]};
    QRY_TRY_ASSIGN(auto merged, merge(both, error));
    auto bricks = flatten(merged, true);  // the first instance wins
    QRY_TRY(bricks);
    return single(std::move(*bricks), merged.palette, "union");
  }
  QRY_TRY_ASSIGN(const auto first, flatten(a, true));
  QRY_TRY_ASSIGN(const auto second, flatten(b, true));
  const bool both = kind == BooleanKind::intersection;
  QRY_TRY_ASSIGN(auto bricks, boolean(first, second, kind));
  return single(std::move(bricks), a.palette, both ? "intersection" : "difference");
}

Result<BrickMap> boolean(const BrickMap& a, const BrickMap& b, BooleanKind kind, const Progress& progress) {
  return kind == BooleanKind::union_of ? united_bricks(a, b, progress)
                                       : filtered(a, b, kind == BooleanKind::intersection, progress);
}

std::vector<BrickPut> differences(const BrickMap& before, const BrickMap& after) {
  std::vector<BrickPut> puts;
  const auto olds = before.bricks(), news = after.bricks();
  auto old = olds.begin();
  for (auto one = news.begin(); one != news.end(); ++one) {
    for (; old != olds.end() && (*old).first < (*one).first; ++old) puts.push_back({(*old).first, {}});
    const bool there = old != olds.end() && (*old).first == (*one).first;
    if (!there || !(old.shared() == one.shared())) puts.push_back({(*one).first, one.shared()});
    if (there) ++old;
  }
  for (; old != olds.end(); ++old) puts.push_back({(*old).first, {}});
  return puts;
}

}  // namespace quarry
