// SPDX-License-Identifier: Apache-2.0
// info_file.cpp - sums over chunks and over boxes of world bricks, and a world of the same keys whose bricks are
// counted and not there.
#include "app/commands/info_file.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "app/console/terminal.hpp"
#include "base/parallel.hpp"
#include "voxel/io/quarry/codec.hpp"
#include "voxel/io/quarry/reader.hpp"
#include "voxel/io/quarry/visible_regions.hpp"
#include "voxel/worlds/flatten.hpp"

namespace quarry::app {
namespace {

constexpr uint64_t kRegionBytes = uint64_t(256) << 20;

// The bricks of a world as the world has them.
struct WorldKeys {
  std::vector<uint32_t> places;  // ordered_key()
  // Bricks that are not full of one material: that it shows, words of their packed materials, and those that it has.
  uint64_t shown = 0, words = 0, stored = 0;
  std::array<bool, 256> full{};  // materials of its full bricks
  VoxelSums sums;
  Box3 bounds;
  bool too_far = false;    // a brick of the volume is where no scene has one
  uint64_t elsewhere = 0;  // bricks where no world has one; then `places` lacks them

  void show(const BrickView& brick) { ++shown, words += (brick.count() + 3) / 4; }
  void place(Int3 brick) {
    if (brick_in_world(brick)) places.push_back(ordered_key(brick));
    else ++elsewhere;
  }
  void add(const WorldKeys& more) {
    places.insert(places.end(), more.places.begin(), more.places.end());
    shown += more.shown, words += more.words, stored += more.stored;
    for (size_t m = 0; m < full.size(); ++m) full[m] = full[m] || more.full[m];
    sums.add(more.sums), elsewhere += more.elsewhere;
    bounds = united(bounds, more.bounds);
    too_far = too_far || more.too_far;
  }
};

// The grid and the pyramid as the world has them: its keys in the same order, all with one full brick.
Result<void> make_world(FileFacts& out, WorldKeys& keys) {
  std::vector<uint32_t>& places = keys.places;
  out.bricks = places.size() + keys.elsewhere;
  out.voxels = keys.sums.voxels;
  if (keys.elsewhere) return {};
  std::sort(places.begin(), places.end());
  const bool empty = places.empty();
  BrickMap same_keys;
  for (const uint32_t place : places) same_keys.put(brick_from_ordered_key(place), SharedBrick::full(1));
  std::vector<uint32_t>().swap(places);
  QRY_TRY_ASSIGN(auto world, World::create());
  QRY_TRY(world.fill(std::move(same_keys)));
  if (!empty) (void)world.shrink_to_fit();
  const auto fulls = uint64_t(std::count(keys.full.begin(), keys.full.end(), true));
  const uint64_t bricks = keys.stored + fulls;
  out.more_bytes = bricks * sizeof(Brick) - world.pool().size_bytes();
  const uint64_t shown = keys.shown + fulls, words = keys.words + fulls * (kVoxelsPerBrick / 4) + shown;
  constexpr uint64_t kElement = sizeof(BrickMaterials);
  const uint64_t packed = shown * sizeof(BrickMask) + (words * 4 + kElement - 1) / kElement * kElement;
  // The only brick of this world, when it is packed.
  const uint64_t only = empty ? 0 : sizeof(BrickMask) + 2 * kElement;
  out.more_packed = packed - only;
  out.world.emplace(std::move(world));
  return {};
}

// Of the only instance, which shows a volume's bricks as they are.
Result<void> find_as_it_is(io::StoreReader& store, FileFacts& out, Axes axes, const Progress& progress) {
  const Instance& instance = out.scene.instances[0];
  const Int3 offset = brick_of(instance.offset);
  const VoxelHash hash(out.scene.palette, axes);
  WorldKeys keys;
  std::mutex lock;
  const auto describe = [&](uint32_t volume, const io::PackedChunk& chunk) -> Result<void> {
    WorldKeys some;
    QRY_TRY(chunk.each([&](Int3 at, const Brick& brick, uint8_t full) {
      some.stored += !full;
      if (volume != instance.volume) return;
      const Int3 in_world = at + offset;
      if (!brick_in_scene(in_world)) {
        some.too_far = true;
        return;
      }
      some.place(in_world);
      if (full) some.full[full] = true;
      else some.show(brick);
      hash.add(in_world, brick, some.sums);
      some.bounds = united(some.bounds, voxel_bounds(in_world, brick.mask));
    }));
    const std::lock_guard hold(lock);
    keys.add(some);
    return {};
  };
  QRY_TRY(store.visit_all(describe, progress));
  if (keys.too_far) return tl::unexpected(instance_too_far(out.scene, 0));
  SceneFacts& facts = out.facts;
  facts.placed = facts.flat_all = facts.flat_visible = keys.sums.voxels;
  facts.colors_used = uint32_t(std::count(keys.sums.used.begin(), keys.sums.used.end(), true));
  facts.bounds = in_axes(keys.bounds, axes);
  facts.pos_sum = keys.sums.pos_sum;
  facts.col_sum = keys.sums.col_sum;
  return make_world(out, keys);
}

// Bricks of volumes, of which each is counted once.
class SeenBricks {
 public:
  // Whether it has not been seen before.
  bool add(uint32_t volume, Int3 brick) {
    const std::pair chunk{volume, Int3{brick.x >> 3, brick.y >> 3, brick.z >> 3}};
    if (!last_ || chunk != last_at_) last_ = &bits_[chunk], last_at_ = chunk;
    const uint32_t bit = uint32_t(brick.x & 7) << 3 | uint32_t(brick.y & 7);
    const auto mask = uint8_t(1u << (brick.z & 7));
    uint8_t& its = (*last_)[bit];
    const bool fresh = !(its & mask);
    its = uint8_t(its | mask);
    return fresh;
  }

 private:
  std::map<std::pair<uint32_t, Int3>, std::array<uint8_t, 64>> bits_;
  std::array<uint8_t, 64>* last_ = nullptr;
  std::pair<uint32_t, Int3> last_at_;
};

// What several instances place, or one that is turned or between bricks.
Result<void> find_placed(io::StoreReader& store, FileFacts& out, Axes axes, const Progress& progress) {
  const Scene& scene = out.scene;
  QRY_TRY(check_instances(scene));
  // First what the volumes have.
  struct Extent {
    Box3 bounds;
    uint64_t voxels = 0, stored = 0;
    std::array<bool, 256> used{};
  };
  std::vector<Extent> volumes(scene.volumes.size());
  std::mutex lock;
  QRY_TRY(store.visit_all(
      [&](uint32_t volume, const io::PackedChunk& chunk) -> Result<void> {
        Extent some;
        QRY_TRY(chunk.each([&](Int3 at, const Brick& brick, uint8_t full) {
          some.bounds = united(some.bounds, voxel_bounds(at, brick.mask));
          some.voxels += full ? kVoxelsPerBrick : brick.count();
          some.stored += !full;
          if (full) some.used[full] = true;
          else
            for (const uint8_t material : brick.materials) some.used[material] = true;
        }));
        const std::lock_guard hold(lock);
        Extent& its = volumes[volume];
        its.bounds = united(its.bounds, some.bounds);
        its.voxels += some.voxels, its.stored += some.stored;
        for (size_t m = 1; m < its.used.size(); ++m) its.used[m] = its.used[m] || some.used[m];
        return {};
      },
      progress));
  std::vector<Box3> bounds;
  bounds.reserve(volumes.size());
  for (const Extent& its : volumes) bounds.push_back(its.bounds);
  for (const uint32_t i : shown_instances(scene, false))
    if (!in_scene(placed(scene.instances[i], bounds[scene.instances[i].volume])))
      return tl::unexpected(instance_too_far(scene, i));

  SceneFacts& facts = out.facts;
  std::array<bool, 256> used{};
  std::vector<uint32_t> as_they_are(volumes.size());  // visible instances that show a volume's bricks so
  bool hidden = false, in_a_world = true;
  for (const Instance& instance : scene.instances) {
    const Extent& its = volumes[instance.volume];
    facts.placed += its.voxels;
    for (size_t m = 1; m < used.size(); ++m) used[m] = used[m] || its.used[m];
    if (!scene.instance_visible(instance)) {
      hidden = true;
      continue;
    }
    const Int3& by = instance.offset;
    as_they_are[instance.volume] += instance.rotation.identity() && ((by.x | by.y | by.z) & 7) == 0;
    in_a_world = in_a_world && in_world(placed(instance, its.bounds));
  }
  facts.colors_used = uint32_t(std::count(used.begin(), used.end(), true));

  // Then what they are where they are placed. Sums are of all instances, the world of those that are visible.
  const VoxelHash hash(scene.palette, axes);
  WorldKeys keys;
  for (const Extent& its : volumes) keys.stored += its.stored;
  SeenBricks seen;
  const auto add_bricks = [&](const auto& bricks, WorldKeys& to, const auto& add) {
    parallel_for(bricks.size(), 256, [&](size_t begin, size_t end) {
      WorldKeys some;
      for (size_t i = begin; i < end; ++i) add(bricks[i], some);
      const std::lock_guard hold(lock);
      to.add(some);
    });
  };
  const auto add_sums = [&](const auto& brick, WorldKeys& some) {
    hash.add(brick.brick, *brick.value, some.sums);
    some.bounds = united(some.bounds, voxel_bounds(brick.brick, (*brick.value).mask));
  };
  const auto room = [] { return kRegionBytes; };
  progress.say("placing instances", -1);
  const auto bricks_of = [](const Box3& voxels) { return Box3{brick_of(voxels.min), brick_of(voxels.max)}; };
  WorldKeys all;
  if (hidden) {
    QRY_TRY_ASSIGN(const auto regions, io::VisibleRegions::of(store, bounds, room, progress, false));
    if (!regions.bounds().empty())
      QRY_TRY(regions.visit_shown(bricks_of(regions.bounds()), [&](const auto& bricks) -> Result<void> {
        add_bricks(bricks, all, add_sums);
        return {};
      }));
  }
  QRY_TRY_ASSIGN(const auto regions, io::VisibleRegions::of(store, bounds, room, progress));
  using Shown = io::VisibleRegions::ShownBrick;
  if (!regions.bounds().empty())
    QRY_TRY(regions.visit_shown(bricks_of(regions.bounds()), [&](const std::vector<Shown>& bricks) -> Result<void> {
      add_bricks(bricks, keys, [&](const Shown& brick, WorldKeys& some) {
        if (in_a_world) some.place(brick.brick);
        else ++some.elsewhere;
        const uint8_t full = brick.value.material();
        if (full) some.full[full] = true;
        else if (!brick.source) ++some.stored;
        if (!full && (!brick.source || as_they_are[brick.source->volume] == 1)) some.show(*brick.value);
        if (hidden) some.sums.voxels += brick.value.voxels();
        else add_sums(brick, some);
      });
      for (const Shown& brick : bricks)
        if (brick.source && as_they_are[brick.source->volume] > 1 &&
            seen.add(brick.source->volume, brick.source->brick))
          keys.show(*brick.value);
      return {};
    }));
  const WorldKeys& summed = hidden ? all : keys;
  facts.flat_all = summed.sums.voxels, facts.flat_visible = keys.sums.voxels;
  facts.bounds = in_axes(summed.bounds, axes);
  facts.pos_sum = summed.sums.pos_sum;
  facts.col_sum = summed.sums.col_sum;
  return make_world(out, keys);
}

}  // namespace

Result<std::optional<FileFacts>> file_facts(const std::string& file, const io::Format& format) {
  if (format.kind != io::FormatKind::world) return std::nullopt;
  std::vector<std::string> warnings;
  auto store = io::StoreReader::open(file, &warnings);
  FileFacts out;
  Result<void> found;
  if (store) {
    out.scene = store->scene();
    io::note_source(out.scene, format, file);
    out.facts.volumes = out.scene.volumes.size();
    out.facts.instances = out.scene.instances.size();
    const Axes axes = format.z_up ? Axes::z_up : Axes::y_up;
    const auto& all = out.scene.instances;
    const bool as_it_is = all.size() == 1 && all[0].volume < out.scene.volumes.size() &&
                          out.scene.instance_visible(all[0]) && Flattener(out.scene, true).alone(all[0].volume);
    ProgressLine line(shown(file));
    found = (as_it_is ? find_as_it_is : find_placed)(*store, out, axes, line.progress());
    if (!found && found.error().code == ErrorCode::out_of_memory && !as_it_is) return std::nullopt;
  }
  for (const std::string& warning : warnings) say_warning(shown(file), warning);
  QRY_TRY(store);
  QRY_TRY(found);
  return out;
}

}  // namespace quarry::app
