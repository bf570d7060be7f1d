// operations_volume.cpp - operations on each volume's own voxels: hollow(), fill(), halve().
#include <algorithm>
#include <bit>
#include <map>

#include "voxel/operations_internal.hpp"

namespace quarry {
using namespace operations_detail;
namespace {

constexpr uint64_t kMaxFillBricks = uint64_t(1) << 30;
constexpr std::array<Int3, 6> kFaces{Int3{-1, 0, 0}, Int3{1, 0, 0}, Int3{0, -1, 0}, Int3{0, 1, 0}, Int3{0, 0, -1}, Int3{0, 0, 1}};

bool full(const BrickMask& m, Int3 local) {
  const uint32_t i = voxel_index(local);
  return (m[i >> 6] >> (i & 63u) & 1u) != 0;
}

using MaskMap = std::map<Int3, BrickMask>;

// What is left of a solid when every voxel with an open face is taken off.
MaskMap eroded(const MaskMap& solid) {
  MaskMap out;
  for (const auto& [at, mask] : solid) {
    std::array<const BrickMask*, 6> beside{};
    for (size_t f = 0; f < 6; ++f)
      if (const auto it = solid.find(at + kFaces[f]); it != solid.end()) beside[f] = &it->second;
    BrickMask kept{};
    bool any = false;
    for (uint32_t w = 0; w < 8; ++w)
      for (uint64_t left = mask[w]; left; left &= left - 1) {
        const uint32_t i = w * 64 + uint32_t(std::countr_zero(left));
        bool covered = true;
        for (size_t f = 0; f < 6 && covered; ++f) {
          const Int3 n = voxel_from_index(i) + kFaces[f];
          const bool out_of_brick = n.x < 0 || n.y < 0 || n.z < 0 || n.x > 7 || n.y > 7 || n.z > 7;
          const BrickMask* in = out_of_brick ? beside[f] : &mask;
          covered = in && full(*in, {n.x & 7, n.y & 7, n.z & 7});
        }
        if (covered) kept[w] |= uint64_t(1) << (i & 63u), any = true;
      }
    if (any) out.emplace(at, kept);
  }
  return out;
}

BrickMap hollowed(const BrickMap& bricks, uint32_t thickness) {
  MaskMap inner;
  for (const auto& [at, brick] : bricks.bricks()) inner.emplace(at, brick.mask);
  for (uint32_t i = 0; i < thickness && !inner.empty(); ++i) inner = eroded(inner);
  if (inner.empty()) return bricks;
  BrickMap out;
  for (const auto& [at, brick] : bricks.bricks()) {
    const auto it = inner.find(at);
    Brick kept = brick;
    if (it != inner.end())
      for (uint32_t i = 0; i < kVoxelsPerBrick; ++i)
        if (it->second[i >> 6] >> (i & 63u) & 1u) kept.set(i, 0);
    if (!kept.empty()) out.put(at, kept);
  }
  return out;
}

// The empty voxels that the outside reaches, brick by brick. A brick without voxels is reached whole or not at all.
class Flood {
 public:
  Flood(const BrickMap& bricks, const Box3& box) : bricks_(bricks), box_(box), size_(box.max - box.min + Int3{1, 1, 1}) {
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
        if (const Int3 next = at + kFaces[f]; inside(next)) reach(next, f ^ 1u, it == reached_.end() ? nullptr : &it->second);
    }
  }
  // The brick's empty voxels that stay empty.
  BrickMask open(Int3 at) const {
    if (state_[index(at)] == kWhole) return {~0ull, ~0ull, ~0ull, ~0ull, ~0ull, ~0ull, ~0ull, ~0ull};
    const auto it = reached_.find(at);
    return it == reached_.end() ? BrickMask{} : it->second;
  }

 private:
  static constexpr uint8_t kWhole = 1, kMixed = 2, kQueued = 3;  // 0: not seen yet

  bool inside(Int3 b) const { return b.x >= box_.min.x && b.x <= box_.max.x && b.y >= box_.min.y && b.y <= box_.max.y && b.z >= box_.min.z && b.z <= box_.max.z; }
  size_t index(Int3 b) const {
    const Int3 d = b - box_.min;
    return (size_t(d.x) * size_t(size_.y) + size_t(d.y)) * size_t(size_.z) + size_t(d.z);
  }

  // The outside comes in through face f; `from`: the reached voxels of the brick behind that face, null if all are.
  void reach(Int3 at, size_t f, const BrickMask* from) {
    uint8_t& state = state_[index(at)];
    if (state == kWhole) return;
    const Brick* brick = bricks_.find(at);
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
        if (const Int3 n = v + step; n.x >= 0 && n.y >= 0 && n.z >= 0 && n.x <= 7 && n.y <= 7 && n.z <= 7) seeds.push_back(n);
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

uint8_t commonest(const BrickMap& bricks) {
  std::array<uint64_t, 256> counts{};
  for (const auto& [at, brick] : bricks.bricks())
    for (const uint8_t m : brick.materials) ++counts[m];
  return uint8_t(std::max_element(counts.begin() + 1, counts.end()) - counts.begin());
}

Int3 with_axis(Int3 v, size_t axis, int32_t value) {
  (axis == 0 ? v.x : axis == 1 ? v.y : v.z) = value;
  return v;
}
int32_t along(Int3 v, size_t axis) { return axis == 0 ? v.x : axis == 1 ? v.y : v.z; }

// Cell c of the volume goes to (c + phase) >> 1.
BrickMap halved(const BrickMap& bricks, Int3 phase, uint32_t threshold) {
  struct Eight {
    std::array<uint8_t, 8> materials{};
  };
  BrickMap out;
  std::map<Int3, std::array<Eight, kVoxelsPerBrick>> coarse;  // of the bricks that later ones can still reach
  const auto finish = [&](Int3 at, const std::array<Eight, kVoxelsPerBrick>& cells) {
    Brick b;
    for (uint32_t i = 0; i < kVoxelsPerBrick; ++i) {
      auto m = cells[i].materials;
      std::sort(m.begin(), m.end());
      const auto first = std::upper_bound(m.begin(), m.end(), uint8_t(0));
      if (m.end() - first < int64_t(std::max(1u, threshold))) continue;
      uint8_t best = 0;
      int64_t most = 0;
      for (auto it = first; it != m.end();) {
        const auto end = std::upper_bound(it, m.end(), *it);
        if (end - it > most) most = end - it, best = *it;
        it = end;
      }
      b.set(i, best);
    }
    out.put(at, b);
  };
  for (const auto& [at, brick] : bricks.bricks()) {
    // Bricks come with rising x: what lies before this one's slab gets no more voxels.
    const int32_t slab = int32_t((int64_t(at.x) * 8 + phase.x) >> 4);
    while (!coarse.empty() && coarse.begin()->first.x < slab) {
      finish(coarse.begin()->first, coarse.begin()->second);
      coarse.erase(coarse.begin());
    }
    for (uint32_t i = 0; i < kVoxelsPerBrick; ++i) {
      const uint8_t m = brick.get(i);
      if (!m) continue;
      const Int3 local = voxel_from_index(i);
      std::array<int64_t, 3> fine{int64_t(at.x) * 8 + local.x + phase.x, int64_t(at.y) * 8 + local.y + phase.y, int64_t(at.z) * 8 + local.z + phase.z};
      const Int3 cell{int32_t(fine[0] >> 1), int32_t(fine[1] >> 1), int32_t(fine[2] >> 1)};
      const size_t corner = size_t(fine[0] & 1) | size_t(fine[1] & 1) << 1 | size_t(fine[2] & 1) << 2;
      coarse[brick_of(cell)][voxel_index({cell.x & 7, cell.y & 7, cell.z & 7})].materials[corner] = m;
    }
  }
  for (const auto& [at, cells] : coarse) finish(at, cells);
  return out;
}

}  // namespace

Result<Scene> hollow(const Scene& scene, uint32_t thickness) {
  if (auto r = check(scene); !r) return tl::unexpected(r.error());
  if (thickness == 0) return fail(ErrorCode::invalid_argument, "a shell of thickness 0; expected at least 1 voxel");
  Scene out = scene;
  for (Volume& v : out.volumes) v.bricks = hollowed(v.bricks, thickness);
  return out;
}

Result<Scene> fill(const Scene& scene, uint8_t material) {
  if (auto r = check(scene); !r) return tl::unexpected(r.error());
  Scene out = scene;
  for (size_t n = 0; n < out.volumes.size(); ++n) {
    BrickMap& bricks = out.volumes[n].bricks;
    if (bricks.empty()) continue;
    const Box3 box = bricks.brick_bounds();
    uint64_t count = 1;
    for (const int64_t edge : {int64_t(box.max.x) - box.min.x + 1, int64_t(box.max.y) - box.min.y + 1, int64_t(box.max.z) - box.min.z + 1})
      count = count > kMaxFillBricks ? count : count * uint64_t(edge);
    if (count > kMaxFillBricks)
      return fail(ErrorCode::unsupported, "volume " + std::to_string(n) + " spreads over more than 2^30 bricks, too far to look for cavities; crop it first");
    Flood flood(bricks, box);
    flood.run();
    const uint8_t with = material ? material : commonest(bricks);
    const BrickMap before = bricks;
    for (int32_t x = box.min.x; x <= box.max.x; ++x)
      for (int32_t y = box.min.y; y <= box.max.y; ++y)
        for (int32_t z = box.min.z; z <= box.max.z; ++z) {
          const BrickMask open = flood.open({x, y, z});
          const Brick* old = before.find({x, y, z});
          Brick b = old ? *old : Brick{};
          for (uint32_t i = 0; i < kVoxelsPerBrick; ++i)
            if (!((open[i >> 6] | b.mask[i >> 6]) >> (i & 63u) & 1u)) b.set(i, with);
          if (!(old ? b == *old : b.empty())) bricks.put({x, y, z}, b);
        }
  }
  return out;
}

Result<Scene> halve(const Scene& scene, uint32_t threshold) {
  if (auto r = check(scene); !r) return tl::unexpected(r.error());
  if (threshold < 1 || threshold > 8) return fail(ErrorCode::invalid_argument, "a threshold of " + std::to_string(threshold) + " of 8 voxels; expected 1 to 8");
  Scene out = scene;
  out.volumes.clear();
  // World cell w = s * c + o (one axis; -1 more if s < 0). With the lowest bit of o as the volume's phase, w >> 1 = s * ((c + phase) >> 1) + o',
  // where o' = o >> 1, and one more where s < 0 and the phase is 1: (b - 1 - c) >> 1 = -1 - ((c + b) >> 1) + b for b in {0, 1}.
  std::map<std::pair<uint32_t, Int3>, uint32_t> made;
  for (Instance& i : out.instances) {
    Int3 phase, offset;
    for (size_t row = 0; row < 3; ++row) {
      const int32_t o = along(i.offset, row), bit = o & 1;
      phase = with_axis(phase, i.rotation.axis[row], bit);
      offset = with_axis(offset, row, (o >> 1) + (i.rotation.sign[row] < 0 ? bit : 0));
    }
    i.offset = offset;
    const auto [it, fresh] = made.try_emplace({i.volume, phase}, uint32_t(out.volumes.size()));
    if (fresh) {
      const Volume& from = scene.volumes[i.volume];
      const auto half = [](int32_t edge, int32_t by) { return edge > 0 ? int32_t((int64_t(edge) + by + 1) >> 1) : edge; };
      out.volumes.push_back({from.name, halved(from.bricks, phase, threshold), {half(from.size.x, phase.x), half(from.size.y, phase.y), half(from.size.z, phase.z)}});
    }
    i.volume = it->second;
  }
  for (Camera& c : out.cameras)
    for (double* point : {c.position, c.target})
      for (int a = 0; a < 3; ++a) point[a] /= 2;
  scale_voxel_size(out, 2);
  return out;
}

}  // namespace quarry
