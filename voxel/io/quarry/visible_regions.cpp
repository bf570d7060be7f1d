// SPDX-License-Identifier: Apache-2.0
// visible_regions.cpp - finds the chunks of instances that meet a run of layers, and flattens only those.
#include "voxel/io/quarry/visible_regions.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <unordered_map>
#include <utility>

#include "base/parallel.hpp"
#include "voxel/io/quarry/tables.hpp"
#include "voxel/worlds/flatten.hpp"

namespace quarry::io {
namespace {

// The memory of a file's brick: twice the brick while it is flattened, and its contributions to world bricks.
constexpr uint64_t kBrickBytes = 2 * 650 + 8 * 16;
constexpr double kPlanned = 0.7;  // of the room

uint64_t bricks_that_fit(uint64_t bytes) { return uint64_t(double(bytes) * kPlanned) / kBrickBytes; }

int32_t& along(Int3& v, size_t axis) { return axis == 0 ? v.x : axis == 1 ? v.y : v.z; }
bool inside(const Box3& inner, const Box3& outer) { return intersected(inner, outer) == inner; }

// The instances that may place voxels into a box of the world.
std::vector<Instance> instances_for(const Scene& scene, const Box3& box, const std::vector<Box3>* bounds,
                                    bool visible_only = true) {
  std::vector<Instance> out;
  for (const Instance& instance : scene.instances) {
    if (visible_only && !scene.instance_visible(instance)) continue;
    if (!bounds || !intersected(placed(instance, (*bounds)[instance.volume]), box).empty()) out.push_back(instance);
  }
  return out;
}

// The scene without bricks, of these instances alone.
Scene with_instances(const Scene& scene, std::vector<Instance> instances) {
  Scene some;
  some.volumes.resize(scene.volumes.size());
  some.instances = std::move(instances);
  some.layers = scene.layers;
  some.overlap = scene.overlap;
  return some;
}

}  // namespace

Result<VisibleRegions> VisibleRegions::of(const Scene& scene, const Progress& progress) {
  progress.say("flatten", -1);
  QRY_TRY_ASSIGN(auto bricks, flatten(scene, true));
  VisibleRegions out;
  out.scene_ = &scene;
  out.bounds_ = bricks.bounds();
  out.whole_ = std::move(bricks);
  return out;
}

Result<VisibleRegions> VisibleRegions::of(StoreReader& store, const std::vector<Box3>& bounds,
                                          const std::function<uint64_t()>& available_bytes, const Progress& progress,
                                          bool visible_only) {
  VisibleRegions out;
  out.scene_ = &store.scene();
  out.store_ = &store;
  out.volume_bounds_ = bounds;
  out.available_bytes_ = available_bytes;
  out.progress_.cancel = progress.cancel;
  out.visible_only_ = visible_only;
  for (size_t i = 0; i < out.scene_->instances.size(); ++i) {
    const Instance& instance = out.scene_->instances[i];
    if (!out.counts(instance)) continue;
    const Box3 box = placed(instance, bounds[instance.volume]);
    if (!in_scene(box)) return tl::unexpected(instance_too_far(*out.scene_, uint32_t(i)));
    out.bounds_ = united(out.bounds_, box);
  }
  return out;
}

Result<VisibleRegions> VisibleRegions::of_chunks(StoreReader& store, uint64_t available_bytes, const Progress& progress,
                                                 bool visible_only) {
  std::vector<Box3> bounds(store.scene().volumes.size());
  for (uint32_t volume = 0; volume < bounds.size(); ++volume) {
    QRY_TRY_ASSIGN(const auto chunks, store.chunks(volume));
    for (const ChunkBricks& c : chunks) {
      const Int3 low{c.chunk.x * 64, c.chunk.y * 64, c.chunk.z * 64};
      bounds[volume] = united(bounds[volume], {low, low + Int3{63, 63, 63}});
    }
  }
  return of(
      store, bounds, [available_bytes] { return available_bytes; }, progress, visible_only);
}

bool VisibleRegions::counts(const Instance& instance) const {
  return (!visible_only_ || scene_->instance_visible(instance)) && !volume_bounds_[instance.volume].empty();
}

std::vector<VisibleRegions::Piece> VisibleRegions::pieces_of(size_t axis, int32_t first, int32_t last) const {
  Box3 slab{kSceneMin, kSceneMax};
  along(slab.min, axis) = first * 8;
  along(slab.max, axis) = last * 8 + 7;
  return pieces_of(slab);
}

std::vector<VisibleRegions::Piece> VisibleRegions::pieces_of(const Box3& box) const {
  std::vector<Piece> pieces;
  std::unordered_map<uint32_t, std::vector<size_t>> of_volume;
  for (const Instance& instance : scene_->instances) {
    if (!counts(instance)) continue;
    const Box3 here = intersected(placed(instance, volume_bounds_[instance.volume]), box);
    if (here.empty()) continue;
    const Rotation back = instance.rotation.inverse();
    const Int3 a = back.apply_to_cell(here.min - instance.offset), b = back.apply_to_cell(here.max - instance.offset);
    const Box3 cells = united({a, a}, {b, b});
    const Box3 chunks{{cells.min.x >> 6, cells.min.y >> 6, cells.min.z >> 6},
                      {cells.max.x >> 6, cells.max.y >> 6, cells.max.z >> 6}};
    std::vector<size_t>& known = of_volume[instance.volume];
    if (std::ranges::any_of(known, [&](size_t p) { return inside(chunks, pieces[p].chunks); })) continue;
    known.push_back(pieces.size());
    pieces.push_back({instance.volume, chunks});
  }
  return pieces;
}

Result<int32_t> VisibleRegions::last_layer(size_t axis, int32_t first) const {
  Int3 highest = brick_of(bounds_.max);
  const int32_t end = along(highest, axis);
  if (!store_) return end;
  const uint64_t available_bytes = available_bytes_();
  const uint64_t most = bricks_that_fit(available_bytes);
  // A run ends at the end of a chunk, then of half a chunk, and so on. Several chunks are tried first.
  int32_t fits = first - 1;
  uint64_t least = 0;
  for (int32_t count = 64; count >= 1 && fits < first; count /= 2) {
    const int32_t last = std::min(end, count >= 8 ? ((first >> 3) + count / 8) * 8 - 1 : first + count - 1);
    if (last < first) continue;
    QRY_TRY_ASSIGN(least, bricks_of(pieces_of(axis, first, last)));
    if (least <= most) fits = last;
  }
  // Where there is nothing it goes on in growing steps: parts of a scene may be far from each other.
  while (fits >= first && least == 0 && fits < end) {
    const int32_t next = int32_t(std::min<int64_t>(end, int64_t(fits) + (int64_t(fits) - first + 1)));
    for (const Piece& piece : pieces_of(axis, fits + 1, next)) {
      QRY_TRY_ASSIGN(const auto bricks, store_->count_bricks(piece.volume, piece.chunks));
      least += bricks;
    }
    if (least == 0) fits = next;
  }
  if (fits < first)
    return fail(ErrorCode::out_of_memory,
                "even layer by layer this needs " +
                    std::to_string((uint64_t(double(least * kBrickBytes) / kPlanned) >> 20) + 1) + " MiB, and " +
                    std::to_string(available_bytes >> 20) +
                    " MiB are left of the memory it may take; allow more, or crop it");
  return fits;
}

Result<BrickMap> VisibleRegions::layers(size_t axis, int32_t first, int32_t last) const {
  ++regions_;
  if (!store_) return whole_;
  Scene some = *scene_;
  for (const Piece& piece : pieces_of(axis, first, last))
    QRY_TRY(store_->read(piece.volume, piece.chunks, some.volumes[piece.volume].bricks, progress_,
                         bricks_that_fit(available_bytes_()) / kWaitingShare));
  return flatten(some, visible_only_);
}

Result<uint64_t> VisibleRegions::bricks_of(const std::vector<Piece>& pieces) const {
  uint64_t count = 0;
  for (const Piece& piece : pieces) {
    QRY_TRY_ASSIGN(const auto its, store_->count_bricks(piece.volume, piece.chunks));
    count += its;
  }
  return count;
}

Result<uint64_t> VisibleRegions::made_in(const Box3& box, uint64_t most) const {
  // A brick that is placed as it is costs an entry in a list. Of others some become several.
  constexpr uint64_t kEntriesABrick = 8, kMadeOfOne = 2;
  std::vector<std::optional<uint64_t>> whole(volume_bounds_.size());
  const auto chunks_of = [](const Box3& cells) {
    return Box3{{cells.min.x >> 6, cells.min.y >> 6, cells.min.z >> 6},
                {cells.max.x >> 6, cells.max.y >> 6, cells.max.z >> 6}};
  };
  uint64_t entries = 0, made = 0;
  for (const Instance& instance : scene_->instances) {
    if (!counts(instance)) continue;
    const Box3& all = volume_bounds_[instance.volume];
    const Box3 there = placed(instance, all), here = intersected(there, box);
    if (here.empty()) continue;
    uint64_t bricks = 0;
    if (here == there && whole[instance.volume]) {
      bricks = *whole[instance.volume];
    } else {
      const Rotation back = instance.rotation.inverse();
      const Int3 a = back.apply_to_cell(here.min - instance.offset), b = back.apply_to_cell(here.max - instance.offset);
      QRY_TRY_ASSIGN(bricks, store_->count_bricks(instance.volume, chunks_of(united({a, a}, {b, b}))));
      if (here == there) whole[instance.volume] = bricks;
    }
    const Int3& by = instance.offset;
    const bool as_they_are = instance.rotation.identity() && ((by.x | by.y | by.z) & 7) == 0;
    (as_they_are ? entries : made) += bricks;
    if (entries / kEntriesABrick + made * kMadeOfOne > most) break;
  }
  return entries / kEntriesABrick + made * kMadeOfOne;
}

Result<bool> VisibleRegions::fits(const Box3& bricks, uint64_t bytes) const {
  if (!store_) return true;
  QRY_TRY_ASSIGN(const uint64_t count, bricks_of(pieces_of(box_of_voxels(bricks))));
  return count <= bricks_that_fit(bytes);
}

Result<void> VisibleRegions::visit(const Box3& bricks, const TakeBricks& take) const {
  if (!store_) {
    ++regions_;
    return take(whole_.within(bricks));
  }
  return visit_parts(bricks, false, [&](const Scene& some, const Box3& part) -> Result<void> {
    QRY_TRY_ASSIGN(const BrickMap visible, flatten(some, visible_only_));
    return take(visible.within(part));
  });
}

Result<void> VisibleRegions::visit_shown(const Box3& bricks, const TakeShown& take) const {
  return visit_parts(bricks, true, [&](const Scene& some, const Box3& part) -> Result<void> {
    // Bricks are where they stay while they have handles: a brick's mask tells which one it is.
    std::vector<std::pair<const BrickMask*, ShownBrick::Source>> sources;
    for (uint32_t volume = 0; volume < some.volumes.size(); ++volume)
      for (const BrickMap::Entry& entry : some.volumes[volume].bricks.bricks())
        if (!entry.handle->material()) sources.push_back({&(*entry.handle)->mask, {volume, entry.first}});
    const auto before = [](const auto& a, const auto& b) { return std::less<>()(a.first, b.first); };
    std::sort(sources.begin(), sources.end(), before);
    QRY_TRY_ASSIGN(const BrickMap visible, flatten(some, visible_only_));
    const std::vector<BrickPut> all = visible.within(part);
    std::vector<ShownBrick> shown(all.size());
    parallel_for(all.size(), 4096, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        shown[i] = {all[i].brick, all[i].value};
        if (all[i].value.material()) continue;
        const std::pair<const BrickMask*, ShownBrick::Source> its{&(*all[i].value).mask, {}};
        const auto found = std::lower_bound(sources.begin(), sources.end(), its, before);
        if (found != sources.end() && found->first == its.first) shown[i].source = found->second;
      }
    });
    return take(shown);
  });
}

Result<void> VisibleRegions::visit_parts(const Box3& bricks, bool with_made, const TakePart& take) const {
  const Box3 cells = box_of_voxels(bricks);
  const std::vector<Piece> pieces = pieces_of(cells);
  QRY_TRY_ASSIGN(uint64_t count, bricks_of(pieces));
  if (count == 0) return {};
  const uint64_t available_bytes = available_bytes_(), most = bricks_that_fit(available_bytes);
  if (with_made && count <= most) {
    QRY_TRY_ASSIGN(const uint64_t made, made_in(cells, most - count));
    const auto edge = [](int32_t low, int32_t high) { return uint64_t(int64_t(high) - low + 1); };
    const uint64_t wide = edge(bricks.min.x, bricks.max.x) * edge(bricks.min.y, bricks.max.y);
    const uint64_t deep = edge(bricks.min.z, bricks.max.z);
    count += wide > made || wide * deep > made ? made : wide * deep;
  }
  if (count > most) {
    const Int3 size = bricks.max - bricks.min;
    const size_t axis = size.x >= size.y && size.x >= size.z ? 0 : size.y >= size.z ? 1 : 2;
    Box3 low = bricks, high = bricks;
    const int32_t from = along(low.min, axis), to = along(low.max, axis);
    if (to == from)
      return fail(ErrorCode::out_of_memory,
                  "even brick by brick this needs " +
                      std::to_string((uint64_t(double(count * kBrickBytes) / kPlanned) >> 20) + 1) + " MiB, and " +
                      std::to_string(available_bytes >> 20) +
                      " MiB are left of the memory it may take; allow more, or crop it");
    int32_t middle = from + (to - from) / 2;
    if ((middle | 7) < to) middle |= 7;  // the end of a chunk, so that both halves need other ones
    along(low.max, axis) = middle;
    along(high.min, axis) = middle + 1;
    QRY_TRY(visit_parts(low, with_made, take));
    return visit_parts(high, with_made, take);
  }
  ++regions_;
  Scene some = with_instances(*scene_, instances_for(*scene_, cells, &volume_bounds_, visible_only_));
  for (const Piece& piece : pieces)
    QRY_TRY(store_->read(piece.volume, piece.chunks, some.volumes[piece.volume].bricks, progress_,
                         bricks_that_fit(available_bytes_()) / kWaitingShare));
  return take(some, bricks);
}

namespace {

// The chunks from which instances place voxels into a box of the world.
std::vector<ChunkBox> chunks_for(const std::vector<Instance>& instances, const Box3& box) {
  std::vector<ChunkBox> needed;
  for (const Instance& instance : instances) {
    // In 64 bits: an offset may be anywhere, and then nothing of a volume is in the box.
    const Rotation back = instance.rotation.inverse();
    const auto chunk_of_cell = [&](Int3 cell) -> Int3 {
      const std::array<int64_t, 3> from{int64_t{cell.x} - instance.offset.x, int64_t{cell.y} - instance.offset.y,
                                        int64_t{cell.z} - instance.offset.z};
      std::array<int64_t, 3> to{};
      for (size_t axis = 0; axis < 3; ++axis) {
        const int64_t v = from[back.axis[axis]];
        to[axis] = (back.sign[axis] < 0 ? -1 - v : v) >> 6;
      }
      return {int32_t(to[0]), int32_t(to[1]), int32_t(to[2])};
    };
    const Int3 a = chunk_of_cell(box.min), b = chunk_of_cell(box.max);
    const ChunkBox chunks{instance.volume, united({a, a}, {b, b})};
    if (std::ranges::none_of(needed, [&](const ChunkBox& other) {
          return other.volume == chunks.volume && inside(chunks.chunks, other.chunks);
        }))
      needed.push_back(chunks);
  }
  return needed;
}

}  // namespace

Result<BrickMap> visible_in_box(StoreReader& store, const Box3& voxels, uint64_t* bricks_read,
                                const Progress& progress) {
  *bricks_read = 0;
  const Box3 box = intersected(voxels, {kSceneMin, kSceneMax});
  if (box.empty()) return BrickMap{};
  Scene some = with_instances(store.scene(), instances_for(store.scene(), box, nullptr));
  for (const ChunkBox& needed : chunks_for(some.instances, box)) {
    QRY_TRY_ASSIGN(const uint64_t bricks, store.count_bricks(needed.volume, needed.chunks));
    *bricks_read += bricks;
    if (bricks != 0) QRY_TRY(store.read(needed.volume, needed.chunks, some.volumes[needed.volume].bricks, progress));
  }
  return flatten(some, true);
}

Result<void> visible_in_boxes(StoreReader& store, std::span<const Box3> boxes, const std::vector<Box3>& bounds,
                              const BoxSteps& steps, const Progress& progress, size_t most_waiting) {
  std::vector<std::vector<Instance>> instances(boxes.size());
  std::vector<std::vector<ChunkBox>> pieces(boxes.size());
  for (size_t i = 0; i < boxes.size(); ++i) {
    const Box3 box = intersected(boxes[i], {kSceneMin, kSceneMax});
    if (box.empty()) continue;
    instances[i] = instances_for(store.scene(), box, &bounds);
    pieces[i] = chunks_for(instances[i], box);
  }
  const auto take = [&](size_t i, std::vector<ChunkRead>& chunks) -> Result<void> {
    Scene some = with_instances(store.scene(), std::move(instances[i]));
    uint64_t read = 0;
    for (const ChunkRead& chunk : chunks) {
      some.volumes[chunk.volume].bricks.put(chunk.bricks);
      read += chunk.bricks.size();
    }
    const ThreadShare share(1);  // the other threads have boxes of their own
    QRY_TRY_ASSIGN(const BrickMap bricks, flatten(some, true));
    return steps.take(i, bricks, read);
  };
  return store.read_pieces(pieces, {take, steps.put}, progress, most_waiting);
}

}  // namespace quarry::io
