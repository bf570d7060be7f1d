// SPDX-License-Identifier: Apache-2.0
// parts_by_regions.cpp - pieces of chunks become parts, the largest first; steps then choose among a chunk's pieces.
#include "voxel/operations/regions/parts_by_regions.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "base/memory_budget.hpp"
#include "voxel/operations/internal.hpp"
#include "voxel/operations/regions/chunk_pieces.hpp"
#include "voxel/worlds/flatten.hpp"

namespace quarry {
using namespace operations_detail;
namespace {

using Pass = SceneByRegions::Pass;

// The parts of a scene's one volume that stay.
struct Parts {
  ChunkPieces pieces;
  std::deque<uint32_t> part_of;  // of each piece; the largest part is 0
  uint32_t count = 0;            // how many stay: those below this
};

// What is known of a piece or a part. A brick has at most 2^8 components.
struct Facts {
  uint64_t voxels = 0;
  PartBegin begin{kSceneMax, UINT32_MAX};  // after all others
};
constexpr uint32_t kComponentBits = 8;

// Facts of all pieces, in 8 bytes each. A chunk has 2^18 voxels and 2^9 bricks.
class PieceFacts {
 public:
  void add(const ConnectedParts& pieces) {
    const std::vector<PartBegin> begins = pieces.begins();
    for (size_t p = 0; p < begins.size(); ++p) {
      const auto [at, component] = begins[p];
      pieces_.push_back(
          {uint32_t(pieces.parts()[p].voxels),
           (uint32_t(at.x & 7) << 6 | uint32_t(at.y & 7) << 3 | uint32_t(at.z & 7)) << kComponentBits | component});
    }
  }
  Facts of(uint32_t piece, Int3 chunk) const {
    const auto [voxels, begin] = pieces_[piece];
    const uint32_t brick = begin >> kComponentBits;
    const Int3 at =
        box_of_bricks({chunk, chunk}).min + Int3{int32_t(brick >> 6), int32_t(brick >> 3 & 7u), int32_t(brick & 7u)};
    return {voxels, {at, begin & ((1u << kComponentBits) - 1)}};
  }

 private:
  struct Piece {
    uint32_t voxels, begin;
  };
  std::deque<Piece> pieces_;  // which never moves: no room for two of it is needed
};
// Errors: out_of_memory, if so many parts, of so many bytes each, do not fit what is left.
Result<void> check_room(uint64_t parts, uint64_t bytes_each, uint64_t left_bytes) {
  if (parts * bytes_each <= left_bytes) return {};
  return fail(ErrorCode::out_of_memory, "the " + std::to_string(parts) + " connected parts seen so far take " +
                                            memory_text(parts * bytes_each) + " more, and " + memory_text(left_bytes) +
                                            " are left of the memory it may take; allow more, or crop it");
}
constexpr uint64_t kPartBytes = sizeof(Facts) + 2 * sizeof(uint32_t);  // while parts are numbered

// Numbers the sets of pieces as ConnectedParts does parts, and counts those that stay.
void number_parts(Parts& parts, PieceFacts facts, const PartChoice& choice) {
  std::vector<Facts> sets(parts.pieces.sets());
  parts.part_of = parts.pieces.end();
  for (size_t c = 0; c < parts.pieces.chunks(); ++c)
    for (uint32_t p = parts.pieces.first(c); p < parts.pieces.end(c); ++p) {
      const Facts its = facts.of(p, parts.pieces.chunk(c));
      Facts& all = sets[parts.part_of[p]];
      all.voxels += its.voxels;
      all.begin = std::min(all.begin, its.begin);
    }
  facts = {};
  std::vector<uint32_t> order(sets.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, [&](uint32_t a, uint32_t b) {
    return sets[a].voxels != sets[b].voxels ? sets[a].voxels > sets[b].voxels : sets[a].begin < sets[b].begin;
  });
  const auto small =
      std::ranges::partition_point(order, [&](uint32_t set) { return sets[set].voxels >= choice.least; });
  parts.count = uint32_t(std::min<uint64_t>(uint64_t(small - order.begin()), choice.most));
  std::vector<uint32_t> place(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  for (uint32_t& part : parts.part_of) part = place[part];
}

// Of the scene's volume, which has all that was shown when it was `before`.
Result<std::shared_ptr<const Parts>> find_parts(const SceneByRegions& scene, const Scene& before,
                                                const PartChoice& choice, const Pass& pass, const Progress& progress) {
  const auto parts = std::make_shared<Parts>(Parts{ChunkPieces(choice.neighbours), {}});
  PieceFacts facts;
  QRY_TRY(pass(scene, [&](uint32_t, const BrickMap& bricks) -> Result<void> {
    for (const auto& [at, brick] : bricks.bricks())
      if (!brick_in_scene(at)) return tl::unexpected(instance_too_far(before, shown_instances(before, true).front()));
    QRY_TRY(parts->pieces.add(
        bricks.chunks(),
        [&](Int3 chunk) {
          BrickMap its;
          its.put(bricks.within(box_of_bricks({chunk, chunk})));
          return std::optional(std::move(its));
        },
        [&](const ConnectedParts& pieces) { facts.add(pieces); }, progress));
    // The region goes before parts are numbered.
    return check_room(parts->pieces.sets(), kPartBytes, pass.available_bytes() + bricks.size_bytes());
  }));
  number_parts(*parts, std::move(facts), choice);
  return std::shared_ptr<const Parts>(parts);
}

// The parts from `begin` to `end`, and the numbers of the chunks that they have voxels in, rising.
struct Chosen {
  std::shared_ptr<const Parts> parts;
  uint32_t begin, end;
  std::vector<uint32_t> chunks;

  // The box of their chunks in a box of chunks.
  Box3 within(const Box3& box) const {
    const auto first =
        std::ranges::lower_bound(chunks, uint32_t(parts->pieces.lower_bound({box.min.x, INT32_MIN, INT32_MIN})));
    Box3 out;
    for (auto it = first; it != chunks.end() && parts->pieces.chunk(*it).x <= box.max.x; ++it) {
      const Int3 at = parts->pieces.chunk(*it);
      out = united(out, intersected({at, at}, box));
    }
    return out;
  }
  Result<BrickMap> of_chunk(Int3 chunk, const BrickMap& bricks, const Progress& progress) const {
    const auto number = parts->pieces.number_of(chunk);
    if (!number) return BrickMap{};
    std::vector<uint8_t> chosen;
    for (uint32_t p = parts->pieces.first(*number); p < parts->pieces.end(*number); ++p)
      chosen.push_back(parts->part_of[p] >= begin && parts->part_of[p] < end);
    if (std::ranges::find(chosen, 0) == chosen.end()) return bricks;
    if (std::ranges::find(chosen, 1) == chosen.end()) return BrickMap{};
    QRY_TRY_ASSIGN(const auto pieces, parts->pieces.find(bricks, progress));
    return pieces.some(chosen);
  }
};

// The scene of these parts, of which `head` is without bricks.
SceneByRegions of_parts(const SceneByRegions& scene, Scene head, Chosen chosen) {
  SceneByRegions out = scene;
  const auto some = std::make_shared<const Chosen>(std::move(chosen));
  Box3 bounds;
  for (const uint32_t c : some->chunks) {
    const Int3 chunk = some->parts->pieces.chunk(c);
    bounds = united(bounds, box_of_voxels(box_of_bricks({chunk, chunk})));
  }
  out.change_chunks(std::move(head), {intersected(bounds, scene.bounds()[0])}, false,
                    {[some](uint32_t, const Box3& chunks) { return some->within(chunks); },
                     [some](uint32_t, Int3 chunk, const BrickMap& before, const Progress& progress) {
                       return some->of_chunk(chunk, before, progress);
                     }});
  return out;
}

}  // namespace

Result<SceneByRegions> keep_parts(SceneByRegions scene, const PartChoice& choice, const Pass& pass,
                                  const Progress& progress) {
  QRY_TRY(check(scene.scene()));
  const Scene head = scene.scene();
  SplitPlan plan = plan_keep_parts(head);
  if (plan.from.empty()) {
    QRY_TRY_ASSIGN(scene, flattened(std::move(scene), "parts", pass, progress));
  } else {
    scene.select(plan.scene, plan.from);
  }
  QRY_TRY_ASSIGN(const auto parts, find_parts(scene, head, choice, pass, progress));
  Chosen chosen{parts, 0, parts->count, {}};
  for (size_t c = 0; c < parts->pieces.chunks(); ++c)
    for (uint32_t p = parts->pieces.first(c); p < parts->pieces.end(c); ++p)
      if (parts->part_of[p] < parts->count) {
        chosen.chunks.push_back(uint32_t(c));
        break;
      }
  return of_parts(scene, std::move(plan.scene), std::move(chosen));
}

Result<std::vector<PartByRegions>> split_parts(SceneByRegions scene, Connectivity neighbours, const Pass& pass,
                                               const Progress& progress) {
  QRY_TRY(check(scene.scene()));
  const Scene head = scene.scene();
  QRY_TRY_ASSIGN(scene, flattened(std::move(scene), "parts", pass, progress));
  QRY_TRY_ASSIGN(const auto parts, find_parts(scene, head, PartChoice{.neighbours = neighbours}, pass, progress));
  const uint32_t count = parts->count;
  QRY_TRY(check_connected_parts(count));
  QRY_TRY(check_room(count, sizeof(PartByRegions), pass.available_bytes()));
  std::vector<Chosen> chosen;
  for (uint32_t i = 0; i < count; ++i) chosen.push_back({parts, i, i + 1, {}});
  for (size_t c = 0; c < parts->pieces.chunks(); ++c)
    for (uint32_t p = parts->pieces.first(c); p < parts->pieces.end(c); ++p)
      if (auto& chunks = chosen[parts->part_of[p]].chunks; chunks.empty() || chunks.back() != c)
        chunks.push_back(uint32_t(c));
  std::vector<PartByRegions> out;
  out.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    ScenePart part = connected_part(head, i, {});
    out.push_back({std::move(part.name), of_parts(scene, std::move(part.scene), std::move(chosen[i]))});
  }
  return out;
}

}  // namespace quarry
