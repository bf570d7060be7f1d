// SPDX-License-Identifier: Apache-2.0
// diff.cpp - compares masks brick by brick, and materials by a table of equal looks.
#include "voxel/operations/diff.hpp"

#include <array>
#include <bit>
#include <memory>
#include <string>

namespace quarry {
namespace {

bool looks_alike(const Material& a, const Material& b) {
  return a.r == b.r && a.g == b.g && a.b == b.b && a.a == b.a && a.roughness == b.roughness &&
         a.metalness == b.metalness && a.emission == b.emission && a.transparency == b.transparency && a.ior == b.ior;
}

void count(SceneDiff::Kind& kind, Int3 at, const BrickMask& voxels) {
  uint64_t n = 0;
  for (const uint64_t w : voxels) n += uint64_t(std::popcount(w));
  if (n == 0) return;
  kind.voxels += n;
  kind.bounds = united(kind.bounds, voxel_bounds(at, voxels));
}

}  // namespace

Result<SceneDiff> diff_scenes(const Scene& a, const Scene& b, const SceneDiffOptions& options) {
  const auto flat = [&](const Scene& scene, const char* which) {
    return flatten(scene, options.visible_only).map_error([&](const Error& e) {
      return Error{e.code, std::string(which) + " scene: " + e.message};
    });
  };
  QRY_TRY_ASSIGN(const auto first, flat(a, "the first"));
  QRY_TRY_ASSIGN(const auto second, flat(b, "the second"));

  // alike[m * 256 + n]: material m of `a` looks like n of `b`.
  const auto alike = std::make_unique<std::array<bool, 65536>>();
  for (size_t m = 0; m < 256; ++m)
    for (size_t n = 0; n < 256; ++n)
      (*alike)[m * 256 + n] = options.shape_only || looks_alike(a.palette.materials[m], b.palette.materials[n]);

  SceneDiff out;
  for (const auto& [at, brick] : first.bricks()) {
    out.voxels_a += brick.count();
    const auto other = second.find(at);
    BrickMask removed{}, recoloured{};
    for (uint32_t w = 0; w < 8; ++w) {
      const uint64_t theirs = other ? other->mask[w] : 0;
      removed[w] = brick.mask[w] & ~theirs;
      for (uint64_t left = brick.mask[w] & theirs; left; left &= left - 1) {
        const uint32_t i = w * 64 + uint32_t(std::countr_zero(left));
        if ((*alike)[size_t(brick.materials[i]) * 256 + other->materials[i]]) ++out.same;
        else recoloured[w] |= left & (~left + 1);
      }
    }
    count(out.removed, at, removed);
    count(out.recoloured, at, recoloured);
  }
  for (const auto& [at, brick] : second.bricks()) {
    out.voxels_b += brick.count();
    const auto other = first.find(at);
    BrickMask added{};
    for (size_t w = 0; w < 8; ++w) added[w] = brick.mask[w] & ~(other ? other->mask[w] : 0);
    count(out.added, at, added);
  }
  return out;
}

}  // namespace quarry
