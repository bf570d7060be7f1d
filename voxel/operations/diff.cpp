// SPDX-License-Identifier: Apache-2.0
// diff.cpp - compares masks brick by brick, and materials by a table of equal looks.
#include "voxel/operations/diff.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <optional>
#include <span>
#include <string>

namespace quarry {
namespace {

bool is_in(const Box3& box, Int3 at) {
  return at.x >= box.min.x && at.y >= box.min.y && at.z >= box.min.z && at.x <= box.max.x && at.y <= box.max.y &&
         at.z <= box.max.z;
}

bool looks_alike(const Material& a, const Material& b) {
  return a.r == b.r && a.g == b.g && a.b == b.b && a.a == b.a && a.roughness == b.roughness &&
         a.metalness == b.metalness && a.emission == b.emission && a.transparency == b.transparency && a.ior == b.ior;
}

// Finds bricks of a map whose places are asked for in rising order: it goes along with them, because both rise.
class Beside {
 public:
  Beside(const BrickMap& map, Int3 first) : next_(map.bricks().lower_bound(first)), end_(map.bricks().end()) {}
  std::optional<BrickView> find(Int3 at) {
    while (next_ != end_ && (*next_).first < at) ++next_;
    if (next_ == end_ || (*next_).first != at) return std::nullopt;
    return (*next_).second();
  }

 private:
  BrickMap::const_iterator next_;
  const BrickMap::const_iterator end_;
};

void count(SceneDiff::Kind& kind, Int3 at, const BrickMask& voxels) {
  const uint32_t n = count_of(voxels);
  if (n == 0) return;
  kind.voxels += n;
  kind.bounds = united(kind.bounds, voxel_bounds(at, voxels));
}

}  // namespace

std::array<uint32_t, 512> material_looks(const Palette& a, const Palette& b, bool shape_only) {
  std::array<uint32_t, 512> looks{};
  if (shape_only) return looks;
  const auto material = [&](size_t i) -> const Material& { return i < 256 ? a.materials[i] : b.materials[i - 256]; };
  for (size_t i = 0; i < 512; ++i) {
    // The first that it is like.
    size_t first = 0;
    while (first < i && !looks_alike(material(first), material(i))) ++first;
    looks[i] = uint32_t(first);
  }
  return looks;
}

void SceneDiff::add(const SceneDiff& part) {
  const auto add_kind = [](Kind& to, const Kind& from) {
    to.voxels += from.voxels;
    to.bounds = united(to.bounds, from.bounds);
  };
  voxels_a += part.voxels_a, voxels_b += part.voxels_b, same += part.same;
  add_kind(added, part.added);
  add_kind(removed, part.removed);
  add_kind(recoloured, part.recoloured);
}

Result<SceneDiff> diff_scenes(const Scene& a, const Scene& b, const SceneDiffOptions& options) {
  const auto flat = [&](const Scene& scene, const char* which) {
    return flatten(scene, options.visible_only).map_error([&](const Error& e) {
      return Error{e.code, std::string(which) + " scene: " + e.message};
    });
  };
  QRY_TRY_ASSIGN(const auto first, flat(a, "the first"));
  QRY_TRY_ASSIGN(const auto second, flat(b, "the second"));
  return diff_bricks({first, a.palette}, {second, b.palette}, {brick_of(kSceneMin), brick_of(kSceneMax)},
                     options.shape_only);
}

SceneDiff diff_bricks(const FlatScene& a, const FlatScene& b, const Box3& box, bool shape_only) {
  const BrickMap &first = a.bricks, &second = b.bricks;
  const std::array<uint32_t, 512> looks = material_looks(a.palette, b.palette, shape_only);
  const bool each_like_itself = std::equal(looks.begin(), looks.begin() + 256, looks.begin() + 256);

  (void)second.bricks().begin();  // a view gets its bricks here, and not while many threads wait for them
  SceneDiff out;
  std::mutex lock;
  first.visit_pieces([&](size_t, std::span<const Int3> places, std::span<const SharedBrick> bricks) {
    SceneDiff part;
    Beside others(second, places.front());
    for (size_t i = 0; i < places.size(); ++i) {
      if (!is_in(box, places[i])) continue;
      const BrickView brick = *bricks[i];
      const auto other = others.find(places[i]);
      part.voxels_a += brick.count();
      BrickMask removed{}, both{};
      for (size_t w = 0; w < 8; ++w) {
        const uint64_t theirs = other ? other->mask[w] : 0;
        removed[w] = brick.mask[w] & ~theirs;
        both[w] = brick.mask[w] & theirs;
      }
      count(part.removed, places[i], removed);
      if (!other) continue;
      if (each_like_itself && brick.materials == other->materials) {
        part.same += count_of(both);
        continue;
      }
      BrickMask recoloured{};
      for (uint32_t w = 0; w < 8; ++w) {
        for (uint64_t left = both[w]; left; left &= left - 1) {
          const uint32_t v = w * 64 + uint32_t(std::countr_zero(left));
          if (looks[brick.materials[v]] == looks[256u + other->materials[v]]) ++part.same;
          else recoloured[w] |= left & (~left + 1);
        }
      }
      count(part.recoloured, places[i], recoloured);
    }
    const std::lock_guard hold(lock);
    out.add(part);
  });
  second.visit_pieces([&](size_t, std::span<const Int3> places, std::span<const SharedBrick> bricks) {
    SceneDiff part;
    Beside others(first, places.front());
    for (size_t i = 0; i < places.size(); ++i) {
      if (!is_in(box, places[i])) continue;
      const BrickView brick = *bricks[i];
      const auto other = others.find(places[i]);
      part.voxels_b += brick.count();
      BrickMask added{};
      for (size_t w = 0; w < 8; ++w) added[w] = brick.mask[w] & ~(other ? other->mask[w] : 0);
      count(part.added, places[i], added);
    }
    const std::lock_guard hold(lock);
    out.add(part);
  });
  return out;
}

}  // namespace quarry
