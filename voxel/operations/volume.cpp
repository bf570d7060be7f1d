// SPDX-License-Identifier: Apache-2.0
// volume.cpp - operations on each volume's own voxels: hollow(), fill(), dilate(), erode().
#include <algorithm>
#include <map>

#include "voxel/operations/internal.hpp"

namespace quarry {
using namespace operations_detail;
namespace {

constexpr uint64_t kMaxFillBricks = uint64_t(1) << 30;
constexpr std::array<Int3, 6> kFaces{Int3{-1, 0, 0}, Int3{1, 0, 0},  Int3{0, -1, 0},
                                     Int3{0, 1, 0},  Int3{0, 0, -1}, Int3{0, 0, 1}};

bool full(const BrickMask& m, Int3 local) {
  const uint32_t i = voxel_index(local);
  return (m[i >> 6] >> (i & 63u) & 1u) != 0;
}

// The empty voxels that the outside reaches, brick by brick. A brick without voxels is reached whole or not at all.
class Flood {
 public:
  Flood(const BrickMap& bricks, const Box3& box)
      : bricks_(bricks), box_(box), size_(box.max - box.min + Int3{1, 1, 1}) {
    state_.resize(size_t(size_.x) * size_t(size_.y) * size_t(size_.z));
  }
  void run() {
    for (int32_t x = 0; x < size_.x; ++x)
      for (int32_t y = 0; y < size_.y; ++y)
        for (int32_t z = 0; z < size_.z; ++z)
          for (size_t f = 0; f < 6; ++f)
            if (const Int3 from = box_.min + Int3{x, y, z}; !inside(from + kFaces[f])) reach(from, f, nullptr);
    while (!queue_.empty()) {
      const Int3 at = queue_.back();
      queue_.pop_back();
      if (state_[index(at)] == kQueued) state_[index(at)] = kMixed;
      const auto it = reached_.find(at);
      for (size_t f = 0; f < 6; ++f)
        if (const Int3 next = at + kFaces[f]; inside(next))
          reach(next, f ^ 1u, it == reached_.end() ? nullptr : &it->second);
    }
  }
  // The brick's voxels that the outside reaches: they stay empty.
  BrickMask open(Int3 at) const {
    if (state_[index(at)] == kWhole) return {~0ull, ~0ull, ~0ull, ~0ull, ~0ull, ~0ull, ~0ull, ~0ull};
    const auto it = reached_.find(at);
    return it == reached_.end() ? BrickMask{} : it->second;
  }

 private:
  static constexpr uint8_t kWhole = 1, kMixed = 2, kQueued = 3;  // 0: not seen yet

  bool inside(Int3 b) const {
    return b.x >= box_.min.x && b.x <= box_.max.x && b.y >= box_.min.y && b.y <= box_.max.y && b.z >= box_.min.z &&
           b.z <= box_.max.z;
  }
  size_t index(Int3 b) const {
    const Int3 d = b - box_.min;
    return (size_t(d.x) * size_t(size_.y) + size_t(d.y)) * size_t(size_.z) + size_t(d.z);
  }

  // Floods the brick through face f; `from`: the reached voxels of the brick behind that face, null if all are.
  void reach(Int3 at, size_t f, const BrickMask* from) {
    uint8_t& state = state_[index(at)];
    if (state == kWhole) return;
    const auto brick = bricks_.find(at);
    const size_t axis = f / 2;
    std::vector<Int3> seeds;
    for (int32_t a = 0; a < 8; ++a)
      for (int32_t b = 0; b < 8; ++b) {
        int32_t c[3], opposite[3];
        c[axis] = f % 2 ? 7 : 0, c[(axis + 1) % 3] = a, c[(axis + 2) % 3] = b;
        std::copy(c, c + 3, opposite);
        opposite[axis] = 7 - c[axis];
        if (!from || full(*from, {opposite[0], opposite[1], opposite[2]})) seeds.push_back({c[0], c[1], c[2]});
      }
    if (seeds.empty()) return;
    if (!brick) {
      state = kWhole;
      queue_.push_back(at);
      return;
    }
    BrickMask& mask = reached_[at];
    bool more = false;
    while (!seeds.empty()) {
      const Int3 v = seeds.back();
      seeds.pop_back();
      const uint32_t i = voxel_index(v);
      const uint64_t bit = uint64_t(1) << (i & 63u);
      if ((brick->mask[i >> 6] | mask[i >> 6]) & bit) continue;
      mask[i >> 6] |= bit;
      more = true;
      for (const Int3 step : kFaces)
        if (const Int3 n = v + step; n.x >= 0 && n.y >= 0 && n.z >= 0 && n.x <= 7 && n.y <= 7 && n.z <= 7)
          seeds.push_back(n);
    }
    if (more && state != kQueued) {
      state = kQueued;
      queue_.push_back(at);
    }
  }

  const BrickMap& bricks_;
  Box3 box_;
  Int3 size_;
  std::vector<uint8_t> state_;
  std::map<Int3, BrickMask> reached_;
  std::vector<Int3> queue_;
};

}  // namespace

namespace operations_detail {

Result<void> check_fill(size_t volume, const Box3& bricks) {
  uint64_t count = 1;
  for (const int64_t edge : {int64_t(bricks.max.x) - bricks.min.x + 1, int64_t(bricks.max.y) - bricks.min.y + 1,
                             int64_t(bricks.max.z) - bricks.min.z + 1})
    count = count > kMaxFillBricks ? count : count * uint64_t(edge);
  if (count > kMaxFillBricks)
    return fail(ErrorCode::unsupported,
                "volume " + std::to_string(volume) +
                    " spreads over more than 2^30 bricks, too far to look for cavities; crop it first");
  return {};
}

uint8_t commonest(const MaterialCounts& counts) {
  return uint8_t(std::max_element(counts.begin() + 1, counts.end()) - counts.begin());
}

Result<void> check_hollow(uint32_t thickness) {
  if (thickness == 0) return fail(ErrorCode::invalid_argument, "a shell of thickness 0; expected at least 1 voxel");
  return {};
}

Result<BrickMap> hollowed(const BrickMap& bricks, uint32_t thickness, const Progress& progress) {
  QRY_TRY_ASSIGN(const BrickMap inner, erode(bricks, Connectivity::faces, thickness, progress));
  return boolean(bricks, inner, BooleanKind::difference, progress);
}

}  // namespace operations_detail

Result<Scene> hollow(const Scene& scene, uint32_t thickness) {
  QRY_TRY(check(scene));
  QRY_TRY(check_hollow(thickness));
  Scene out = scene;
  for (Volume& v : out.volumes) {
    QRY_TRY_ASSIGN(v.bricks, hollowed(v.bricks, thickness, {}));
  }
  return out;
}

Result<Scene> fill(const Scene& scene, uint8_t material) {
  QRY_TRY(check(scene));
  Scene out = scene;
  for (size_t n = 0; n < out.volumes.size(); ++n) {
    BrickMap& bricks = out.volumes[n].bricks;
    if (bricks.empty()) continue;
    const Box3 box = bricks.brick_bounds();
    QRY_TRY(check_fill(n, box));
    Flood flood(bricks, box);
    flood.run();
    VolumeSummary its;
    if (!material) its.add(bricks);
    const uint8_t with = material ? material : commonest(its.materials);
    const BrickMap before = bricks;
    for (int32_t x = box.min.x; x <= box.max.x; ++x)
      for (int32_t y = box.min.y; y <= box.max.y; ++y)
        for (int32_t z = box.min.z; z <= box.max.z; ++z) {
          const BrickMask open = flood.open({x, y, z});
          const auto old = before.find({x, y, z});
          Brick b = old ? old->copy() : Brick{};
          for (uint32_t i = 0; i < kVoxelsPerBrick; ++i)
            if (!((open[i >> 6] | b.mask[i >> 6]) >> (i & 63u) & 1u)) b.set(i, with);
          if (!(old ? b == *old : b.empty())) bricks.put({x, y, z}, b);
        }
  }
  return out;
}

Result<Scene> dilate(const Scene& scene, Connectivity neighbours, uint32_t steps, const Progress& progress) {
  QRY_TRY(check(scene));
  Scene out = scene;
  for (size_t n = 0; n < out.volumes.size(); ++n) {
    auto done = dilate(scene.volumes[n].bricks, neighbours, steps, progress);
    if (!done) return fail(done.error().code, "volume " + std::to_string(n) + ": " + done.error().message);
    out.volumes[n].bricks = std::move(*done);
  }
  return out;
}

Result<Scene> erode(const Scene& scene, Connectivity neighbours, uint32_t steps, const Progress& progress) {
  QRY_TRY(check(scene));
  Scene out = scene;
  for (Volume& v : out.volumes) {
    QRY_TRY_ASSIGN(v.bricks, erode(v.bricks, neighbours, steps, progress));
  }
  return out;
}

}  // namespace quarry
