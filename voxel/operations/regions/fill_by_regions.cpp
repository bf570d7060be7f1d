// SPDX-License-Identifier: Apache-2.0
// fill_by_regions.cpp - goes through all chunks of a volume's bounds in their order, those without voxels too.
#include "voxel/operations/regions/fill_by_regions.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "voxel/operations/internal.hpp"
#include "voxel/operations/regions/chunk_pieces.hpp"

namespace quarry {
using namespace operations_detail;
namespace {

// The voxels that a chunk does not have, as voxels of that material.
BrickMap missing(Int3 chunk, const BrickMap& bricks, uint8_t material) {
  std::vector<BrickPut> puts;
  const Box3 all = box_of_bricks({chunk, chunk});
  for (int32_t x = all.min.x; x <= all.max.x; ++x)
    for (int32_t y = all.min.y; y <= all.max.y; ++y)
      for (int32_t z = all.min.z; z <= all.max.z; ++z) {
        const Int3 at{x, y, z};
        const SharedBrick own = bricks.share(at);
        if (!own) {
          puts.push_back({at, SharedBrick::full(material)});
        } else if (!own.material()) {
          const BrickView view = *own;
          Brick rest;
          for (uint32_t i = 0; i < kVoxelsPerBrick; ++i) rest.set(i, view.get(i) ? uint8_t(0) : material);
          if (!rest.empty()) puts.push_back({at, BrickPool::loose().make(rest)});
        }
      }
  BrickMap out;
  out.put(puts);
  return out;
}

// The cavities of a volume.
class Cavities {
 public:
  // `bounds`: of its voxels, none of which need be there.
  explicit Cavities(const Box3& bounds) : pieces_(Connectivity::faces) {
    if (bounds.empty()) return;
    const Int3 one{1, 1, 1};
    around_ = {chunk_of(brick_of(bounds.min)) - one, chunk_of(brick_of(bounds.max)) + one};
    next_ = around_.min;
  }

  // The next region; what lies between it and the one before has no voxels.
  Result<void> add(const BrickMap& region, const Progress& progress) {
    counts_.add(region);
    const std::vector<Int3> with = region.chunks();
    return go_on(with.back(), progress, [&](Int3 chunk) -> std::optional<BrickMap> {
      if (!std::ranges::binary_search(with, chunk)) return {};
      BrickMap its;
      its.put(region.within(box_of_bricks({chunk, chunk})));
      return missing(chunk, its, 1);
    });
  }
  // After all regions. Material 0: the commonest.
  Result<void> end(uint8_t material, const Progress& progress) {
    material_ = material ? material : commonest(counts_.materials);
    if (around_.empty()) return {};
    QRY_TRY(go_on(around_.max, progress, [](Int3) { return std::optional<BrickMap>(); }));
    // The first chunk is of the layer around all.
    for (const uint32_t set : pieces_.end()) closed_.push_back(set != 0);
    for (size_t c = 0; c < pieces_.chunks(); ++c)
      if (pieces_.full(c) && closed_[pieces_.first(c)]) empty_chunks_.push_back(pieces_.chunk(c));
    return {};
  }

  // The closed chunks without voxels in a box of chunks.
  std::vector<Int3> empty_chunks(const Box3& box) const {
    std::vector<Int3> out;
    for (auto it = std::ranges::lower_bound(empty_chunks_, box.min); it != empty_chunks_.end() && it->x <= box.max.x;
         ++it)
      if (!intersected({*it, *it}, box).empty()) out.push_back(*it);
    return out;
  }
  Result<BrickMap> filled(Int3 chunk, const BrickMap& before, const Progress& progress) const {
    const auto number = pieces_.number_of(chunk);
    if (!number) return before;
    std::vector<uint8_t> closed;
    for (uint32_t p = pieces_.first(*number); p < pieces_.end(*number); ++p) closed.push_back(closed_[p]);
    if (std::ranges::find(closed, 1) == closed.end()) return before;
    const BrickMap rest = missing(chunk, before, material_);
    if (before.empty()) return rest;
    QRY_TRY_ASSIGN(const auto pieces, pieces_.find(rest, progress));
    return boolean(before, pieces.some(closed), BooleanKind::union_of, progress);
  }

 private:
  // Adds the chunks up to `last`, some at a time.
  Result<void> go_on(Int3 last, const Progress& progress, const ChunkPieces::Voxels& missing_of) {
    constexpr size_t kAtOnce = 4096;
    std::vector<Int3> chunks;
    while (next_ <= last) {
      for (chunks.clear(); next_ <= last && chunks.size() < kAtOnce; step()) chunks.push_back(next_);
      QRY_TRY(pieces_.add(
          chunks, missing_of, [](const ConnectedParts&) {}, progress));
    }
    return {};
  }
  void step() {
    if (++next_.z <= around_.max.z) return;
    next_.z = around_.min.z;
    if (++next_.y <= around_.max.y) return;
    next_.y = around_.min.y;
    ++next_.x;
  }

  ChunkPieces pieces_;  // of what is empty
  Box3 around_;         // chunks
  Int3 next_;
  VolumeSummary counts_;
  uint8_t material_ = 0;
  std::vector<bool> closed_;        // of each piece
  std::vector<Int3> empty_chunks_;  // that are closed, rising
};

}  // namespace

Result<SceneByRegions> fill(SceneByRegions scene, uint8_t material, const SceneByRegions::Pass& pass,
                            const Progress& progress) {
  QRY_TRY(check(scene.scene()));
  QRY_TRY(scene.tighten(pass));
  const std::vector<Box3> bounds = scene.bounds();
  const auto cavities = std::make_shared<std::vector<Cavities>>();
  for (size_t v = 0; v < bounds.size(); ++v) {
    if (!bounds[v].empty()) QRY_TRY(check_fill(v, {brick_of(bounds[v].min), brick_of(bounds[v].max)}));
    cavities->emplace_back(bounds[v]);
  }
  QRY_TRY(
      pass(scene, [&](uint32_t volume, const BrickMap& region) { return (*cavities)[volume].add(region, progress); }));
  for (Cavities& its : *cavities) QRY_TRY(its.end(material, progress));
  scene.change_chunks(
      Scene(scene.scene()), bounds, true,
      {[](uint32_t, const Box3& chunks) { return chunks; },
       [cavities](uint32_t volume, Int3 chunk, const BrickMap& before, const Progress& step_progress) {
         return (*cavities)[volume].filled(chunk, before, step_progress);
       },
       [cavities](uint32_t volume, const Box3& chunks) { return (*cavities)[volume].empty_chunks(chunks); }});
  return scene;
}

}  // namespace quarry
