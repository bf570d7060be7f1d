// SPDX-License-Identifier: Apache-2.0
// flatten.cpp - contributions of all instances sorted by world brick and precedence, then merged by tables of each
// voxel's place after the rotation.
#include "voxel/worlds/flatten.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>

#include "base/parallel.hpp"

namespace quarry {
namespace {

constexpr int64_t kSlabs = 512;  // along x; four bricks thick at least, as they are in a scene as large as a world

int32_t component(Int3 v, uint32_t axis) { return axis == 0 ? v.x : axis == 1 ? v.y : v.z; }
bool part_bit(uint32_t part, uint32_t axis) { return (part >> axis & 1u) != 0; }

bool meets(const BrickMask& a, const BrickMask& b) {
  uint64_t any = 0;
  for (size_t i = 0; i < 8; ++i) any |= a[i] & b[i];
  return any != 0;
}

Int3 brick_at(const std::array<int64_t, 3>& b) { return {int32_t(b[0]), int32_t(b[1]), int32_t(b[2])}; }

// What sorts contributions by world brick, then by precedence: the brick, the place in placed_, the part. The first is
// for bricks of the world, the other for those of any scene; both are as small as they can be, since many are sorted.
struct WorldOrder {
  uint64_t order;  // ordered key << 32 | place in placed_ << 3 | part
  static bool holds(const std::array<int64_t, 3>& b);
  static WorldOrder of(Int3 brick, size_t rank, uint32_t part) {
    return {uint64_t(ordered_key(brick)) << 32 | uint64_t(rank) << 3 | part};
  }
  Int3 brick() const { return brick_from_ordered_key(uint32_t(order >> 32)); }
  size_t rank() const { return uint32_t(order) >> 3; }
  uint32_t part() const { return uint32_t(order & 7u); }
  bool same_brick(const WorldOrder& other) const { return order >> 32 == other.order >> 32; }
  friend auto operator<=>(const WorldOrder&, const WorldOrder&) = default;
};
struct SceneOrder {
  uint64_t x_y;         // 28 bits each
  uint64_t z_and_rank;  // 28 bits; place in placed_ << 3 | part
  static bool holds(const std::array<int64_t, 3>& b) {
    constexpr int64_t kEnd = 1 << 27;
    return std::ranges::all_of(b, [](int64_t c) { return c >= -kEnd && c < kEnd; });
  }
  static SceneOrder of(Int3 brick, size_t rank, uint32_t part) {
    const auto raised = [](int32_t c) { return uint64_t(int64_t(c) + (1 << 27)); };
    return {raised(brick.x) << 28 | raised(brick.y), raised(brick.z) << 36 | uint64_t(rank) << 3 | part};
  }
  Int3 brick() const {
    const auto lowered = [](uint64_t c) { return int32_t(c & ((1u << 28) - 1)) - (1 << 27); };
    return {lowered(x_y >> 28), lowered(x_y), lowered(z_and_rank >> 36)};
  }
  size_t rank() const { return size_t(z_and_rank >> 3 & ((uint64_t(1) << 33) - 1)); }
  uint32_t part() const { return uint32_t(z_and_rank & 7u); }
  bool same_brick(const SceneOrder& other) const {
    return x_y == other.x_y && z_and_rank >> 36 == other.z_and_rank >> 36;
  }
  friend auto operator<=>(const SceneOrder&, const SceneOrder&) = default;
};

bool within_world(const std::array<int64_t, 3>& b) {
  if (b[0] < -1024 || b[0] > 1023 || b[1] < -512 || b[1] > 511 || b[2] < -1024 || b[2] > 1023) return false;
  return brick_in_world({int32_t(b[0]), int32_t(b[1]), int32_t(b[2])});
}

bool WorldOrder::holds(const std::array<int64_t, 3>& b) { return within_world(b); }

// Copies the voxels of `source` that fall into `part`, where `target` is still empty.
void place_brick(const BrickRemap& remap, uint32_t part, const BrickView& source, Brick& target) {
  if (remap.aligned) {
    for (size_t i = 0; i < kVoxelsPerBrick; ++i)
      target.materials[i] = target.materials[i] ? target.materials[i] : source.materials[i];
    for (size_t w = 0; w < 8; ++w) target.mask[w] |= source.mask[w];
    return;
  }
  for (uint32_t w = 0; w < 8; ++w) {
    for (uint64_t left = source.mask[w] & remap.window[part][w]; left; left &= left - 1) {
      const uint32_t from = w * 64 + uint32_t(std::countr_zero(left));
      const uint32_t to = remap.place[from] & 511u;
      const uint64_t bit = uint64_t(1) << (to & 63u);
      if (target.mask[to >> 6] & bit) continue;
      target.mask[to >> 6] |= bit;
      target.materials[to] = source.materials[from];
    }
  }
}

}  // namespace

// One source brick's part in a world brick. Sorting groups them by world brick, in order of precedence.
template <class Order>
struct Flattener::Contribution {
  Order order;
  const SharedBrick* source;
  friend bool operator<(const Contribution& a, const Contribution& b) { return a.order < b.order; }
};
template <class Order>
struct Flattener::Slab {
  std::mutex lock;
  std::vector<Contribution<Order>> contributions;
};

BrickRemap make_brick_remap(const Rotation& rotation, Int3 offset) {
  BrickRemap remap;
  remap.aligned = rotation.identity() && ((offset.x | offset.y | offset.z) & 7) == 0;
  for (uint32_t from = 0; from < kVoxelsPerBrick; ++from) {
    const Int3 cell = voxel_from_index(from);
    uint32_t to[3], part = 0;
    for (uint32_t row = 0; row < 3; ++row) {
      const int32_t along = component(cell, rotation.axis[row]);
      const auto shifted = uint32_t((rotation.sign[row] > 0 ? along : 7 - along) + (component(offset, row) & 7));
      to[row] = shifted & 7u;
      part |= (shifted >> 3) << row;
    }
    remap.place[from] = uint16_t(part << 9 | voxel_index({int32_t(to[0]), int32_t(to[1]), int32_t(to[2])}));
    remap.window[part][from >> 6] |= uint64_t(1) << (from & 63u);
  }
  return remap;
}

std::optional<uint32_t> volume_at_origin(const Scene& scene, bool visible_only) {
  const Instance* only = nullptr;
  for (const Instance& instance : scene.instances) {
    if (instance.volume >= scene.volumes.size() || (visible_only && !scene.instance_visible(instance))) continue;
    if (only) return std::nullopt;
    only = &instance;
  }
  if (!only || !only->rotation.identity() || only->offset != Int3{}) return std::nullopt;
  return only->volume;
}

Result<void> check_instances(const Scene& scene) {
  for (size_t i = 0; i < scene.instances.size(); ++i) {
    if (scene.instances[i].volume >= scene.volumes.size())
      return fail(ErrorCode::invalid_argument,
                  "instance " + std::to_string(i) + " shows volume " + std::to_string(scene.instances[i].volume) +
                      ", but the scene has only " + std::to_string(scene.volumes.size()) + " volumes");
  }
  return {};
}

std::vector<uint32_t> shown_instances(const Scene& scene, bool visible_only) {
  std::vector<uint32_t> shown;
  for (uint32_t i = 0; i < scene.instances.size(); ++i) {
    const Instance& instance = scene.instances[i];
    if (instance.volume < scene.volumes.size() && (!visible_only || scene.instance_visible(instance)))
      shown.push_back(i);
  }
  if (scene.overlap == OverlapRule::last_instance_wins) std::reverse(shown.begin(), shown.end());
  return shown;
}

bool in_scene(const Box3& voxels) { return intersected(voxels, {kSceneMin, kSceneMax}) == voxels; }
bool in_world(const Box3& voxels) { return intersected(voxels, {kWorldMin, kWorldMax}) == voxels; }

namespace {
Error out_of(const Scene& scene, uint32_t number, const char* what) {
  const Instance& instance = scene.instances[number];
  const std::string& name = instance.name.empty() ? scene.volumes[instance.volume].name : instance.name;
  return {ErrorCode::out_of_bounds, "instance " + std::to_string(number) + (name.empty() ? "" : " (\"" + name + "\")") +
                                        " at offset (" + std::to_string(instance.offset.x) + ", " +
                                        std::to_string(instance.offset.y) + ", " + std::to_string(instance.offset.z) +
                                        ") has voxels " + what};
}
}  // namespace

Error instance_outside(const Scene& scene, uint32_t number) {
  return out_of(scene, number,
                "outside the world, which is x and z in [-8192, 8191], y in [-4096, 4095]; move it or make it smaller");
}
Error instance_too_far(const Scene& scene, uint32_t number) {
  return out_of(scene, number, "farther out than 2^30 along an axis; move it");
}

Flattener::Flattener(const Scene& scene, bool visible_only) : scene_(&scene), visible_only_(visible_only) {
  for (const uint32_t i : shown_instances(scene, visible_only)) {
    const Instance& instance = scene.instances[i];
    const Rotation& r = instance.rotation;
    uint32_t alike = 0;
    for (uint32_t row = 0; row < 3; ++row)
      alike = alike << 6 | uint32_t(r.axis[row]) << 4 | uint32_t(r.sign[row] < 0) << 3 |
              uint32_t(component(instance.offset, row) & 7);
    std::unique_ptr<BrickRemap>& remap = remaps_[alike];
    if (!remap) remap = std::make_unique<BrickRemap>(make_brick_remap(r, instance.offset));
    uint32_t parts = 0;
    for (uint32_t p = 0; p < 8; ++p) parts |= uint32_t(meets(remap->window[p], remap->window[p])) << p;
    placed_.push_back({i, instance.volume, r, instance.offset, remap.get(), parts});
  }
  volume_bricks_.reserve(scene.volumes.size());
  for (const Volume& volume : scene.volumes) volume_bricks_.push_back(volume.bricks.brick_bounds());
}

void Flattener::volume_has(uint32_t volume, const Box3& bricks) {
  volume_bricks_[volume] = united(volume_bricks_[volume], bricks);
}

// The world brick of part 0. 64 bits: a volume may be anywhere.
std::array<int64_t, 3> Flattener::target_of(const Placed& placed, Int3 source) {
  std::array<int64_t, 3> target;
  for (uint32_t row = 0; row < 3; ++row) {
    const int64_t along = component(source, placed.rotation.axis[row]);
    target[row] = (placed.rotation.sign[row] > 0 ? along : -1 - along) + (component(placed.offset, row) >> 3);
  }
  return target;
}

bool Flattener::source_of(const Placed& placed, Int3 world_brick, uint32_t part, Int3* source) {
  int64_t found[3];
  for (uint32_t row = 0; row < 3; ++row) {
    const int64_t along =
        int64_t(component(world_brick, row)) - part_bit(part, row) - (component(placed.offset, row) >> 3);
    found[placed.rotation.axis[row]] = placed.rotation.sign[row] > 0 ? along : -1 - along;
  }
  for (const int64_t c : found)
    if (c != int32_t(c)) return false;
  *source = {int32_t(found[0]), int32_t(found[1]), int32_t(found[2])};
  return true;
}

Result<BrickMap> Flattener::all(bool for_world, const BrickPool& pool, uint32_t threads) const {
  if (volume_at_origin(*scene_, visible_only_)) {
    // A scene of one volume at the origin is already flat: the copy shares every brick.
    const BrickMap& only = scene_->volumes[placed_[0].volume].bricks;
    std::atomic<bool> fits{true};
    only.visit_pieces([&](size_t, std::span<const Int3> at, std::span<const SharedBrick>) {
      if (!std::all_of(at.begin(), at.end(), for_world ? brick_in_world : brick_in_scene)) fits = false;
    });
    if (fits) return only;
    const uint32_t instance = placed_[0].instance;
    return tl::unexpected(for_world ? instance_outside(*scene_, instance) : instance_too_far(*scene_, instance));
  }
  if (for_world) return all_by<WorldOrder>(pool, threads);
  bool fits = true;
  for (const Placed& placed : placed_) {
    const Box3& box = volume_bricks_[placed.volume];
    if (box.empty()) continue;
    std::array<int64_t, 3> low = target_of(placed, box.min), high = target_of(placed, box.max);
    for (uint32_t row = 0; row < 3; ++row) {
      if (low[row] > high[row]) std::swap(low[row], high[row]);
      high[row] += (component(placed.offset, row) & 7) != 0;
    }
    fits = fits && within_world(low) && within_world(high);
  }
  return fits ? all_by<WorldOrder>(pool, threads) : all_by<SceneOrder>(pool, threads);
}

// The first layer of bricks along x that has one, and the last.
std::array<int64_t, 2> Flattener::layers() const {
  std::array<int64_t, 2> layers{INT64_MAX, INT64_MIN};
  for (const Placed& placed : placed_) {
    const Box3& box = volume_bricks_[placed.volume];
    if (box.empty()) continue;
    const int64_t a = target_of(placed, box.min)[0], b = target_of(placed, box.max)[0];
    layers = {std::min({layers[0], a, b}), std::max({layers[1], a + 1, b + 1})};  // a part may be in the next
  }
  return layers;
}

template <class Order>
Result<BrickMap> Flattener::all_by(const BrickPool& pool, uint32_t threads) const {
  // The contributions to each slab of the world, some bricks thick along x: slabs follow each other in the order of the
  // bricks, and are flattened by different threads.
  const std::array<int64_t, 2> ends = layers();
  const int64_t first_layer = ends[0], last_layer = ends[1];
  if (first_layer > last_layer) return BrickMap{};
  const int64_t slab_layers = std::max<int64_t>(4, (last_layer - first_layer) / kSlabs + 1);
  std::vector<Slab<Order>> slabs(size_t((last_layer - first_layer) / slab_layers + 1));
  std::atomic<size_t> beyond{placed_.size()};  // the first rank that leaves where bricks may be
  parallel_for(
      placed_.size(), 1,
      [&](size_t rank, size_t) {
        const Placed& placed = placed_[rank];
        scene_->volumes[placed.volume].bricks.visit_pieces(
            [&](size_t, std::span<const Int3> at, std::span<const SharedBrick> bricks) {
              if (!contribute<Order>(rank, at, bricks, first_layer, slab_layers, slabs))
                for (size_t first = beyond.load(); rank < first && !beyond.compare_exchange_weak(first, rank);) {
                }
            });
      },
      threads);
  if (beyond < placed_.size()) {
    const uint32_t instance = placed_[beyond].instance;
    constexpr bool kWorld = std::is_same_v<Order, WorldOrder>;
    return tl::unexpected(kWorld ? instance_outside(*scene_, instance) : instance_too_far(*scene_, instance));
  }
  std::vector<std::vector<Contribution<Order>>*> filled;
  for (Slab<Order>& slab : slabs)
    if (!slab.contributions.empty()) filled.push_back(&slab.contributions);
  std::vector<BrickMap> maps(filled.size());
  parallel_for(
      filled.size(), 1, [&](size_t i, size_t) { maps[i] = merge<Order>(*filled[i], pool); }, threads);
  BrickMap flat;
  for (BrickMap& map : maps) flat.append(std::move(map));
  return flat;
}

// Adds what these bricks of a volume contribute through one of its instances. False: a part lies where no brick may be.
template <class Order>
bool Flattener::contribute(size_t rank, std::span<const Int3> at, std::span<const SharedBrick> bricks,
                           int64_t first_layer, int64_t slab_layers, std::vector<Slab<Order>>& slabs) const {
  const Placed& placed = placed_[rank];
  std::vector<Contribution<Order>> found;
  for (size_t i = 0; i < at.size(); ++i) {
    const std::array<int64_t, 3> base = target_of(placed, at[i]);
    const BrickView brick = *bricks[i];
    for (uint32_t part = 0; part < 8; ++part) {
      if (!(placed.parts >> part & 1u) || !meets(brick.mask, placed.remap->window[part])) continue;
      const std::array<int64_t, 3> target{base[0] + part_bit(part, 0), base[1] + part_bit(part, 1),
                                          base[2] + part_bit(part, 2)};
      if (!Order::holds(target)) return false;
      found.push_back({Order::of(brick_at(target), rank, part), &bricks[i]});
    }
  }
  // To the slabs in runs: a piece reaches few of them.
  std::sort(found.begin(), found.end());
  const auto slab_of = [&](size_t i) { return size_t((found[i].order.brick().x - first_layer) / slab_layers); };
  for (size_t begin = 0; begin < found.size();) {
    const size_t its = slab_of(begin);
    size_t end = begin;
    while (end < found.size() && slab_of(end) == its) ++end;
    const std::lock_guard hold(slabs[its].lock);
    slabs[its].contributions.insert(slabs[its].contributions.end(), found.begin() + std::ptrdiff_t(begin),
                                    found.begin() + std::ptrdiff_t(end));
    begin = end;
  }
  return true;
}

// The bricks of a slab.
template <class Order>
BrickMap Flattener::merge(std::vector<Contribution<Order>>& contributions, const BrickPool& pool) const {
  // Two contributions of one instance to one brick never fill the same cell, so their relative order does not matter.
  std::sort(contributions.begin(), contributions.end());
  BrickMap flat;
  BrickWriter writer(pool);
  const auto remap_of = [&](const Contribution<Order>& from) { return placed_[from.order.rank()].remap; };
  for (size_t c = 0; c < contributions.size();) {
    const Order first = contributions[c].order;
    size_t stop = c;
    while (stop < contributions.size() && contributions[stop].order.same_brick(first)) ++stop;
    SharedBrick only;
    if (remap_of(contributions[c])->aligned) only = *contributions[c++].source;
    if (c < stop && !only.material()) {
      Brick target = only->copy();
      for (; c < stop; ++c)
        place_brick(*remap_of(contributions[c]), contributions[c].order.part(), **contributions[c].source, target);
      only = writer.make(target);
    }
    flat.put(first.brick(), std::move(only));
    c = stop;
  }
  std::vector<Contribution<Order>>().swap(contributions);
  return flat;
}

std::vector<Flattener::Candidate> Flattener::candidates(const Box3& world_bricks) const {
  std::vector<Candidate> found;
  for (const Placed& placed : placed_) {
    const Box3& box = volume_bricks_[placed.volume];
    if (box.empty()) continue;
    const std::array<int64_t, 3> a = target_of(placed, box.min), b = target_of(placed, box.max);
    Candidate candidate{&placed, {}, {}};
    bool reaches = true;
    for (uint32_t row = 0; row < 3; ++row) {
      candidate.min[row] = std::min(a[row], b[row]);
      candidate.max[row] = std::max(a[row], b[row]) + ((component(placed.offset, row) & 7) != 0);
      reaches = reaches && candidate.min[row] <= component(world_bricks.max, row) &&
                candidate.max[row] >= component(world_bricks.min, row);
    }
    if (reaches) found.push_back(candidate);
  }
  return found;
}

SharedBrick Flattener::place_all(const std::vector<Candidate>& from, Int3 world_brick, BrickWriter& writer) const {
  SharedBrick only;  // the first brick, while it alone fills the world brick as it is
  std::optional<Brick> several;
  for (const Candidate& candidate : from) {
    bool reaches = true;
    for (uint32_t row = 0; row < 3; ++row)
      reaches = reaches && component(world_brick, row) >= candidate.min[row] &&
                component(world_brick, row) <= candidate.max[row];
    if (!reaches) continue;
    const Placed& placed = *candidate.placed;
    const BrickMap& bricks = scene_->volumes[placed.volume].bricks;
    for (uint32_t part = 0; part < 8; ++part) {
      Int3 source;
      if (!(placed.parts >> part & 1u) || !source_of(placed, world_brick, part, &source)) continue;
      SharedBrick brick = bricks.share(source);
      if (!brick) continue;
      if (!only && !several && placed.remap->aligned) {
        only = std::move(brick);
        if (only.material()) return only;  // no later one can fill a cell
        continue;
      }
      if (!several) several = only->copy();
      place_brick(*placed.remap, part, *brick, *several);
    }
  }
  return several ? writer.make(*several) : only;
}

Brick Flattener::brick(Int3 world_brick) const {
  BrickWriter writer(BrickPool::loose());
  return place_all(candidates({world_brick, world_brick}), world_brick, writer)->copy();
}

void Flattener::bricks(std::span<BrickPut> puts, const BrickPool& pool, uint32_t threads) const {
  Box3 box;
  for (const BrickPut& put : puts) box = united(box, {put.brick, put.brick});
  const std::vector<Candidate> near = candidates(box);
  parallel_for(
      puts.size(), 64,
      [&](size_t begin, size_t end) {
        BrickWriter writer(pool);
        for (size_t i = begin; i < end; ++i) puts[i].value = place_all(near, puts[i].brick, writer);
      },
      threads);
}

std::optional<uint32_t> Flattener::only_volume() const {
  if (placed_.size() != 1 || !placed_[0].remap->aligned) return std::nullopt;
  return placed_[0].volume;
}

Error Flattener::outside(uint32_t volume) const {
  const auto its = std::find_if(placed_.begin(), placed_.end(), [&](const Placed& p) { return p.volume == volume; });
  return instance_outside(*scene_, its->instance);
}

Result<std::span<const BrickPut>> Flattener::in_world(uint32_t volume, std::span<const BrickPut> puts,
                                                      std::vector<BrickPut>& moved) const {
  const Placed& placed =
      *std::find_if(placed_.begin(), placed_.end(), [&](const Placed& p) { return p.volume == volume; });
  const bool moves = placed.offset != Int3{};
  if (moves) moved.assign(puts.begin(), puts.end());
  for (size_t i = 0; i < puts.size(); ++i) {
    const std::array<int64_t, 3> target = target_of(placed, puts[i].brick);
    if (!within_world(target)) return tl::unexpected(instance_outside(*scene_, placed.instance));
    if (moves) moved[i].brick = {int32_t(target[0]), int32_t(target[1]), int32_t(target[2])};
  }
  return moves ? std::span<const BrickPut>(moved) : puts;
}

Result<void> Flattener::touched(uint32_t volume, Int3 source, const BrickMask& mask, std::vector<Int3>& touched) const {
  for (const Placed& placed : placed_) {
    if (placed.volume != volume) continue;
    const std::array<int64_t, 3> base = target_of(placed, source);
    for (uint32_t part = 0; part < 8; ++part) {
      if (!(placed.parts >> part & 1u) || !meets(mask, placed.remap->window[part])) continue;
      const std::array<int64_t, 3> target{base[0] + part_bit(part, 0), base[1] + part_bit(part, 1),
                                          base[2] + part_bit(part, 2)};
      if (!within_world(target)) return tl::unexpected(instance_outside(*scene_, placed.instance));
      touched.push_back({int32_t(target[0]), int32_t(target[1]), int32_t(target[2])});
    }
  }
  return {};
}

Result<void> Flattener::check_box(uint32_t volume, const Box3& box) const {
  for (const Placed& placed : placed_) {
    if (placed.volume != volume) continue;
    for (uint32_t row = 0; row < 3; ++row) {
      const int64_t a = component(box.min, placed.rotation.axis[row]),
                    b = component(box.max, placed.rotation.axis[row]);
      const bool up = placed.rotation.sign[row] > 0;
      const int64_t offset = component(placed.offset, row);
      if ((up ? a : -1 - b) + offset < component(kWorldMin, row) ||
          (up ? b : -1 - a) + offset > component(kWorldMax, row))
        return tl::unexpected(instance_outside(*scene_, placed.instance));
    }
  }
  return {};
}

}  // namespace quarry
