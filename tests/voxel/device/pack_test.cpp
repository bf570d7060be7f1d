// SPDX-License-Identifier: Apache-2.0
// pack_test.cpp - worlds on a device that are packed for reading: what they answer, what unpacks them, frames of either
// form, and memory that is refused.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/app/sanitized.hpp"
#include "tests/voxel/device/homes.hpp"
#include "tests/voxel/device/host_shaders.hpp"
#include "tests/voxel/taken.hpp"
#include "voxel/bricks/shared.hpp"
#include "voxel/device/store.hpp"
#include "voxel/worlds/edit_shape.hpp"

namespace pack_test {

using namespace quarry;
using device::Combination;
using device::Store;
using test::Bricks;
using test::HostShaders;
using test::seen_by_frame;
using test::taken;

namespace {

constexpr Box3 kBox{{-45, -42, -50}, {46, 44, 41}};

Store::Change edit(Store& store, Shape shape, Mode mode, Int3 a, Int3 b, double radius, uint8_t material) {
  Edit edit;
  edit.shape = shape;
  edit.mode = mode;
  edit.a = a;
  edit.b = b;
  edit.radius = radius;
  edit.material = material;
  edit.from = 2;
  const auto solid = taken(EditShape::create(edit));
  return taken(store.wait(taken(store.edit(*solid.solid(), edit))));
}
uint64_t ball(Store& store, Int3 at, double radius, Mode mode, uint8_t material) {
  return edit(store, Shape::sphere, mode, at, at, radius, material).voxels;
}
uint64_t undone(Store& store) { return taken(store.wait(taken(store.undo()))).voxels; }
uint64_t redone(Store& store) { return taken(store.wait(taken(store.redo()))).voxels; }

// Voxels by chance in a box: bricks of any number of voxels, of one to 512.
uint64_t scatter(Store& store, uint32_t seed, size_t count, int32_t edge) {
  std::mt19937 random(seed);
  std::vector<int32_t> xyz;
  std::vector<uint8_t> materials;
  for (size_t i = 0; i < count; ++i) {
    for (int axis = 0; axis < 3; ++axis) xyz.push_back(int32_t(random() % uint32_t(edge)) - edge / 2);
    materials.push_back(random() % 9 ? uint8_t(1 + random() % 255) : uint8_t(0));
  }
  return taken(store.write_voxels({xyz.data(), materials.data(), count})).voxels;
}

// Bricks of all kinds, and a history with steps before and after where it is.
void fill(Store& store, uint32_t seed) {
  std::mt19937 random(seed);
  const auto at = [&] {
    return Int3{int32_t(random() % 64) - 32, int32_t(random() % 64) - 32, int32_t(random() % 64) - 32};
  };
  for (int i = 0; i < 10; ++i) {
    const Int3 low = at();
    const Mode mode = i % 4 == 3 ? Mode::remove : i % 4 == 2 ? Mode::paint : Mode::fill;
    const auto material = uint8_t(i == 5 ? 255 : 1 + random() % 6);
    if (i % 2) ball(store, low, 4 + double(random() % 9), mode, material);
    else edit(store, Shape::box, mode, low, low + Int3{19, 12, 9}, 0, material);
    if (i % 3 == 0) scatter(store, seed * 100 + uint32_t(i), 3000, i % 2 ? 80 : 20);
  }
  scatter(store, seed + 7, 40, 80);  // bricks of a voxel or two
  undone(store);
  undone(store);
}
std::unique_ptr<Store> filled(std::unique_ptr<device::Executor> executor, uint32_t seed) {
  auto store = taken(Store::create(std::move(executor)));
  fill(*store, seed);
  return store;
}

BrickMaterials whole(uint8_t material) {
  BrickMaterials materials;
  materials.fill(material);
  return materials;
}

// What a store answers of itself, places of bricks apart.
struct Seen {
  uint64_t voxels = 0, version = 0, steps = 0, position = 0;
  uint32_t keys = 0, bricks = 0;
  Box3 bounds;
  Bricks by_key, by_place;
  std::vector<uint32_t> reached;
  std::vector<uint8_t> box;
  struct Side {
    uint32_t key;
    BrickMaterials before, after;
    bool operator==(const Side&) const = default;
  };
  std::vector<Side> history;
  bool operator==(const Seen&) const = default;
};

Seen seen(Store& store) {
  Seen seen;
  const Store::State state = taken(store.state());
  seen.voxels = state.voxels;
  seen.version = state.version;
  seen.steps = state.steps;
  seen.position = state.position;
  seen.keys = state.keys;
  seen.bricks = state.bricks;
  if (state.keys) seen.bounds = state.bounds;
  const auto entries = taken(store.entries());
  std::vector<uint32_t> keys;
  for (const Store::Entry& entry : entries) keys.push_back(entry.key);
  std::vector<uint32_t> places(keys.size());
  REQUIRE(store.look_up(keys, places));
  std::vector<BrickMaterials> materials(keys.size());
  REQUIRE(store.read(keys, materials));
  uint64_t voxels = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    seen.by_key.emplace(keys[i], materials[i]);
    REQUIRE(places[i] == entries[i].index);
    const Brick brick = taken(store.brick(entries[i].index));
    for (uint32_t voxel = 0; voxel < 512; ++voxel) {
      const bool set = (brick.mask[voxel >> 6] >> (voxel & 63u) & 1u) != 0;
      if (set != (brick.materials[voxel] != 0)) REQUIRE(false);
      voxels += set;
    }
    seen.by_place.emplace(keys[i], brick.materials);
  }
  REQUIRE(voxels == state.voxels);
  for (const Store::Entry& entry : taken(store.pyramid_entries())) seen.reached.push_back(entry.key);
  const Int3 size = kBox.max - kBox.min + Int3{1, 1, 1};
  seen.box.resize(size_t(size.x) * size_t(size.y) * size_t(size.z));
  REQUIRE(store.read_box(kBox, seen.box.data(), device::Side::host));
  for (const Store::StepRecords& step : taken(store.step_records(0))) {
    std::vector<Seen::Side> sides;
    for (const device::Record& record : step.records) {
      const auto side = [&](uint32_t index) {
        if (index == device::kNone) return whole(0);
        if (device::is_full_index(index)) return whole(uint8_t(index + 1));
        BrickMaterials one;
        REQUIRE(store.read_places({&index, 1}, {&one, 1}));
        return one;
      };
      if (record.before != record.after) sides.push_back({record.key, side(record.before), side(record.after)});
    }
    std::ranges::sort(sides, {}, &Seen::Side::key);
    std::ranges::copy(sides, std::back_inserter(seen.history));
  }
  return seen;
}

Int3 some_voxel(Store& store) {
  const Store::Entry first = taken(store.entries()).front();
  const Brick brick = taken(store.brick(first.index));
  uint32_t voxel = 0;
  while (brick.materials[voxel] == 0) ++voxel;
  const Int3 at = brick_from_key(first.key);
  return Int3{at.x * 8, at.y * 8, at.z * 8} + voxel_from_index(voxel);
}

struct Answers {
  std::vector<std::array<int64_t, 7>> hits, parts;
  bool operator==(const Answers&) const = default;
};
Answers answers(Store& store) {
  Answers all;
  std::mt19937 random(77);
  const auto number = [&](float reach) { return (float(random() % 100001) / 50000.0f - 1) * reach; };
  std::vector<Ray> rays(3000);
  for (Ray& ray : rays)
    for (int axis = 0; axis < 3; ++axis) {
      ray.origin[axis] = number(100);
      ray.direction[axis] = number(40) - ray.origin[axis];
    }
  all.hits.resize(rays.size());
  REQUIRE(store.trace(
      rays.size(),
      [&](size_t first, std::span<Ray> to) {
        std::copy_n(rays.begin() + std::ptrdiff_t(first), to.size(), to.begin());
      },
      [&](size_t first, std::span<const RayHit> found) {
        for (size_t i = 0; i < found.size(); ++i) {
          const RayHit& hit = found[i];
          all.hits[first + i] = {hit.voxel[0], hit.voxel[1], hit.voxel[2],
                                 hit.face,     hit.material, int64_t(double(hit.t) * 1e6),
                                 hit.steps};
        }
      }));
  for (const uint32_t neighbours : {6u, 26u})
    for (const auto& part : taken(store.find_parts(neighbours)))
      all.parts.push_back({int64_t(part.voxels), part.material, part.box.min.x, part.box.min.y, part.box.min.z,
                           part.box.max.x, part.box.max.z});
  return all;
}

// The materials of set voxels, four a word, brick after brick in the order of places, each where its start says.
void check_packed_words(Store& store) {
  std::map<uint32_t, uint32_t> places;  // by start
  uint64_t end = 0;
  std::vector<uint32_t> kept;
  for (const Store::Entry& entry : taken(store.entries())) kept.push_back(entry.index);
  for (uint32_t full = 0; full < device::kFullBricks; ++full) kept.push_back(full);
  for (const Store::StepRecords& step : taken(store.step_records(0)))
    for (const device::Record& record : step.records)
      for (const uint32_t index : {record.before, record.after})
        if (record.before != record.after && index != device::kNone) kept.push_back(index);
  std::ranges::sort(kept);
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  const uint32_t* const packed = store.memory().packed;
  device::Executor& executor = store.executor();
  for (const uint32_t index : kept) {
    uint32_t start = 0;
    REQUIRE(executor.copy_out(&start, packed + index, sizeof start));
    if (end) REQUIRE(start == end);
    BrickMask mask;
    REQUIRE(executor.copy_out(&mask, store.memory().masks + size_t(index) * 8, sizeof mask));
    const uint32_t voxels = count_of(mask), words = (voxels + 3) / 4;
    std::array<uint8_t, 512> bytes{};
    REQUIRE(executor.copy_out(bytes.data(), packed + start, words * sizeof(uint32_t)));
    const BrickMaterials materials = taken(store.brick(index)).materials;
    uint32_t number = 0;
    for (uint32_t voxel = 0; voxel < 512; ++voxel)
      if (mask[voxel >> 6] >> (voxel & 63u) & 1u)
        if (bytes[number++] != materials[voxel] || materials[voxel] == 0) REQUIRE(false);
    REQUIRE(number == voxels);
    REQUIRE(std::all_of(bytes.begin() + number, bytes.begin() + words * 4, [](uint8_t byte) { return byte == 0; }));
    end = uint64_t(start) + words;
  }
}

}  // namespace

TEST_CASE("pack: a packed world answers all as before, with its history, in less memory") {
  for (const test::DeviceHome& home : test::device_homes())
    for (const uint32_t seed : {1u, 2u}) {
      INFO(home.name << ", seed " << seed);
      const auto store = filled(taken(home.make()), seed);
      const Seen before = seen(*store);
      const Answers answered = answers(*store);
      REQUIRE(before.history.size() > 100);
      REQUIRE(before.steps == before.position + 2);
      REQUIRE(answered.parts.size() > 20);
      REQUIRE(std::ranges::count_if(answered.hits, [](const auto& hit) { return hit[4] != 0; }) > 500);
      const Store::MemoryUse use = taken(store->memory_use());
      const Store::State state = taken(store->state());
      REQUIRE_FALSE(store->packed());
      REQUIRE(store->pack());
      REQUIRE(store->packed());
      REQUIRE((seen(*store) == before));
      REQUIRE((answers(*store) == answered));
      check_packed_words(*store);
      const Store::MemoryUse packed = taken(store->memory_use());
      REQUIRE(packed.mask_bytes + packed.material_bytes + packed.grid_bytes + packed.pyramid_bytes ==
              packed.packed_bytes);
      REQUIRE(packed.packed_bytes == taken(store->state()).world_bytes);
      REQUIRE(packed.packed_bytes * 2 < state.world_bytes);
      REQUIRE(packed.material_bytes * 4 < use.material_bytes);
      REQUIRE(packed.full_keys == use.full_keys);
      REQUIRE(packed.history_changes == use.history_changes);
      // It was foretold.
      REQUIRE(use.packed_bytes < packed.packed_bytes + packed.packed_bytes / 100 + 131072);
      REQUIRE(packed.packed_bytes < use.packed_bytes + use.packed_bytes / 100 + 131072);
      REQUIRE(store->unpack());
      REQUIRE_FALSE(store->packed());
      REQUIRE((seen(*store) == before));
      REQUIRE((answers(*store) == answered));
      // Of another world it is read as it is.
      const auto target = taken(Store::create(taken(home.make()))), same = taken(Store::create(taken(home.make())));
      for (const Combination how : {Combination::union_of, Combination::difference, Combination::intersection}) {
        for (Store* const each : {target.get(), same.get()}) ball(*each, {3, 4, 5}, 20, Mode::fill, 9);
        const uint64_t voxels = taken(same->combine(*store, how)).voxels;
        REQUIRE(voxels > 0);
        REQUIRE(store->pack());
        REQUIRE(taken(target->combine(*store, how)).voxels == voxels);
        REQUIRE(store->packed());
        REQUIRE((seen(*target) == seen(*same)));
        REQUIRE(store->unpack());
      }
    }
}

TEST_CASE("pack: a world of no voxel is packed, and what a world had before it was packed twice is there") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    const auto store = taken(Store::create(taken(home.make())));
    REQUIRE(store->unpack());  // nothing to do
    REQUIRE(store->pack());
    REQUIRE(store->packed());
    const Seen empty = seen(*store);
    // Nothing is there to be undone, redone, or made of a list without bricks: it stays packed.
    REQUIRE(undone(*store) == 0);
    REQUIRE(redone(*store) == 0);
    REQUIRE(taken(store->write_voxels({nullptr, nullptr, 0})).voxels == 0);
    REQUIRE(store->packed());
    const uint64_t bytes = taken(store->state()).size_bytes;
    REQUIRE(store->pack());  // again: no effect
    REQUIRE(taken(store->state()).size_bytes == bytes);
    REQUIRE((seen(*store) == empty));
    fill(*store, 3);
    REQUIRE_FALSE(store->packed());
    const Seen before = seen(*store);
    for (int i = 0; i < 3; ++i) {
      REQUIRE(store->pack());
      REQUIRE(store->trim());
      REQUIRE((seen(*store) == before));
      REQUIRE(store->unpack());
    }
    REQUIRE((seen(*store) == before));
  }
}

TEST_CASE("pack: whatever changes a packed world changes it as one that was never packed", "[one-caller]") {
  using Call = std::function<uint64_t(Store&)>;
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    const auto other = filled(taken(home.make()), 9);
    const Store* changed = nullptr;
    const auto recalled = [](Store& store) {
      while (undone(store)) continue;
      std::vector<uint32_t> keys{brick_key({1, 1, 1}), brick_key({50, 2, 3})};
      std::vector<BrickMaterials> materials{whole(0), whole(0)};
      materials[0][5] = 7;
      materials[1][511] = 255;
      REQUIRE((store.packed() || taken(store.state()).position == 0));
      return taken(store.recall_step({{}, {}, keys, materials})).version > 0 ? uint64_t(1) : uint64_t(0);
    };
    const std::vector<std::pair<const char*, Call>> calls = {
        {"a ball",
         [](Store& s) {
           return ball(s, {5, 6, 7}, 12.5, Mode::fill, 3);
         }},
        {"undo", undone},
        {"redo", redone},
        {"paint",
         [](Store& s) {
           return ball(s, {0, 0, 0}, 30, Mode::paint, 200);
         }},
        {"replace",
         [](Store& s) {
           return ball(s, {0, 0, 0}, 300, Mode::replace, 66);
         }},
        {"remove",
         [](Store& s) {
           return ball(s, {-9, 8, 3}, 15, Mode::remove, 0);
         }},
        {"a list", [](Store& s) { return scatter(s, 31, 2000, 70); }},
        {"a dense box",
         [](Store& s) {
           std::vector<uint8_t> box(31 * 17 * 9);
           for (size_t i = 0; i < box.size(); ++i) box[i] = uint8_t(i % 7 ? i : 0);
           return taken(s.write_box({{-20, -3, 4}, {10, 13, 12}}, box.data(), device::Side::host)).voxels;
         }},
        {"whole bricks",
         [](Store& s) {
           const std::vector<uint32_t> full{brick_key({0, 0, 0}), brick_key({1, 0, 0})}, keys{brick_key({-1, 2, 0})};
           const std::vector<uint8_t> its{44, 0};
           std::vector<BrickMaterials> materials{whole(12)};
           materials[0][77] = 0;
           return taken(s.write_bricks({full, its, keys, materials})).voxels;
         }},
        {"undo again", undone},
        {"combine", [&](Store& s) { return taken(s.combine(*other, Combination::union_of)).voxels; }},
        {"combine with itself", [](Store& s) { return taken(s.combine(s, Combination::difference)).voxels; }},
        {"undo that", undone},
        {"grow", [](Store& s) { return taken(s.grow(18)).voxels; }},
        {"erode", [](Store& s) { return taken(s.erode(6)).voxels; }},
        {"connected",
         [](Store& s) {
           Edit edit;
           edit.shape = Shape::connected;
           edit.mode = Mode::paint;
           edit.a = some_voxel(s);
           edit.material = 123;
           return taken(s.edit_connected(edit, 1000)).voxels;
         }},
        {"keep parts", [](Store& s) { return taken(s.keep_parts(6, 2, 3)).voxels; }},
        {"a step of two edits",
         [](Store& s) {
           REQUIRE(s.begin_step());
           const uint64_t voxels = ball(s, {5, 6, 7}, 9, Mode::fill, 4) + ball(s, {9, 6, 7}, 9, Mode::fill, 5);
           REQUIRE(s.end_step());
           return voxels;
         }},
        {"a step that is packed on the way",
         [&](Store& s) {
           REQUIRE(s.begin_step());
           uint64_t voxels = 0;
           for (const int32_t x : {-20, -16, -12}) {
             voxels += ball(s, {x, 6, 7}, 7, Mode::fill, uint8_t(100 + x));
             if (&s == changed) REQUIRE(s.pack());
           }
           REQUIRE(s.end_step());
           return voxels + ball(s, {-19, 6, 7}, 3, Mode::remove, 0);
         }},
        {"undo all",
         [](Store& s) {
           uint64_t sum = 0;
           while (const uint64_t voxels = undone(s)) sum += voxels;
           return sum;
         }},
        {"recall", recalled},
        {"redo once", redone},
        {"drop what could be redone", [](Store& s) { return uint64_t(bool(s.forget_redo())); }},
        {"a budget", [](Store& s) { return uint64_t(bool(s.set_history_budget(1))); }},
        {"a ball over the budget",
         [](Store& s) {
           return ball(s, {30, 6, 7}, 12.5, Mode::fill, 3);
         }},
        {"forget", [](Store& s) { return uint64_t(bool(s.forget())); }},
        {"put",
         [](Store& s) {
           const std::vector<uint32_t> keys{brick_key({7, 7, 7})};
           const std::vector<BrickMaterials> materials{whole(3)};
           return uint64_t(bool(s.put({{}, {}, keys, materials})));
         }},
        {"reserve", [](Store& s) { return uint64_t(bool(s.reserve(500'000, 100'000))); }},
    };
    const auto store = filled(taken(home.make()), 4), plain = filled(taken(home.make()), 4);
    REQUIRE((seen(*store) == seen(*plain)));
    changed = store.get();
    const auto stays = [](const std::string& name) {
      return name.starts_with("drop") || name == "a budget" || name == "forget";
    };
    for (const auto& [name, call] : calls) {
      INFO(name);
      REQUIRE(store->pack());
      REQUIRE(store->packed());
      const uint64_t voxels = call(*plain);
      REQUIRE(call(*store) == voxels);
      REQUIRE(voxels > 0);
      REQUIRE(store->packed() == stays(name));
      REQUIRE((seen(*store) == seen(*plain)));
    }
    REQUIRE((answers(*store) == answers(*plain)));
  }
}

TEST_CASE("pack: a frame that is not done sees what was published for it in either form, and its memory comes back") {
  HostShaders shaders;
  const auto store = taken(Store::create(device::make_emulated_executor({}, &shaders)));
  // More than a slab of words.
  Bricks bricks;
  std::mt19937 random(5);
  const auto write = [&](uint32_t count, int32_t across) {
    std::vector<uint32_t> keys;
    std::vector<BrickMaterials> materials;
    while (keys.size() < count) {
      const Int3 at{int32_t(random() % uint32_t(across)), int32_t(random() % 32), int32_t(random() % 32)};
      if (std::ranges::find(keys, brick_key(at)) != keys.end()) continue;
      BrickMaterials its;
      for (uint8_t& material : its) material = random() % 10 ? uint8_t(1 + random() % 255) : uint8_t(0);
      keys.push_back(brick_key(at));
      materials.push_back(its);
      bricks[keys.back()] = its;
    }
    taken(store->write_bricks({{}, {}, keys, materials}));
  };
  write(5'500, 16);
  const auto publish = [&](uint64_t recorded, uint64_t done) {
    Store::Published published = *taken(store->publish({recorded, done}));
    REQUIRE(published.packed == store->packed());
    REQUIRE((seen_by_frame(published) == bricks));
    return published;
  };
  const size_t editable = shaders.bytes;
  const Store::Published first = publish(1, 0);  // for frame 2
  const Bricks at_first = bricks;
  REQUIRE(store->pack());
  REQUIRE((seen_by_frame(first) == at_first));
  const Store::Published second = publish(2, 1);  // for frame 3
  REQUIRE(second.materials.size() >= 2);
  REQUIRE(second.number != first.number);
  REQUIRE(store->executor().size_bytes() > editable);  // both forms
  // Packed, unpacked by an edit and packed again while both frames are not done.
  write(300, 16);
  REQUIRE_FALSE(store->packed());
  REQUIRE((seen_by_frame(first) == at_first));
  REQUIRE((seen_by_frame(second) == at_first));
  const Store::Published third = publish(3, 1);
  const Bricks at_third = bricks;
  REQUIRE(store->forget());
  REQUIRE(store->pack());
  REQUIRE(store->unpack());
  REQUIRE(store->pack());
  const Store::Published fourth = publish(4, 1);
  REQUIRE((seen_by_frame(first) == at_first));
  REQUIRE((seen_by_frame(second) == at_first));
  REQUIRE((seen_by_frame(third) == at_third));
  write(200, 20);
  publish(5, 1);
  REQUIRE((seen_by_frame(fourth) == at_third));
  REQUIRE((seen_by_frame(second) == at_first));
  // All are done but the last one.
  REQUIRE(store->forget());
  REQUIRE(store->pack());
  for (uint64_t frame = 6; frame < 12; ++frame) publish(frame, frame - 1);
  REQUIRE(store->packed());
  const Store::MemoryUse use = taken(store->memory_use());
  REQUIRE(shaders.bytes == use.packed_bytes);  // nothing else
  // Bricks that go move behind frames in a packed world, too: what is behind them is given back.
  REQUIRE(store->unpack());
  {
    std::vector<uint32_t> keys;
    for (const auto& [key, its] : bricks)
      if (keys.size() < 4'000) keys.push_back(key);
    const std::vector<uint8_t> none(keys.size(), 0);
    publish(12, 11);  // for frame 13, which stays
    const Store::Published last = *taken(store->publish({12, 11}));
    const Bricks at_last = bricks;
    taken(store->write_bricks({keys, none, {}, {}}));
    for (const uint32_t key : keys) bricks.erase(key);
    REQUIRE(store->forget());
    REQUIRE(store->pack());
    for (int i = 0; i < 3; ++i) publish(13, 11);
    REQUIRE((seen_by_frame(last) == at_last));
    for (uint64_t frame = 14; frame < 20; ++frame) publish(frame, frame - 1);
    uint32_t highest = 0;
    for (const Store::Entry& entry : taken(store->entries())) highest = std::max(highest, entry.index);
    REQUIRE(highest < device::kFullBricks + bricks.size());
    REQUIRE(store->packed());
    REQUIRE(store->unpack());
    publish(20, 19);
  }
}

TEST_CASE("pack: with any piece of memory refused a world is as before, or without it, and then the call is made",
          "[one-caller]") {
  const std::pair<const char*, std::function<Result<void>(Store&)>> calls[] = {
      {"pack", [](Store& s) { return s.pack(); }},
      {"unpack", [](Store& s) { return s.unpack(); }},
      {"edit",
       [](Store& s) -> Result<void> {
         Edit edit;
         edit.shape = Shape::sphere;
         edit.mode = Mode::fill;
         edit.radius = 14;
         edit.material = 9;
         const auto shape = taken(EditShape::create(edit));
         QRY_TRY_ASSIGN(const auto ticket, s.edit(*shape.solid(), edit));
         QRY_TRY(s.wait(ticket));
         return {};
       }},
      {"undo",
       [](Store& s) -> Result<void> {
         QRY_TRY_ASSIGN(const auto ticket, s.undo());
         QRY_TRY(s.wait(ticket));
         return {};
       }},
      {"grow", [](Store& s) -> Result<void> {
         QRY_TRY(s.grow(6));
         return {};
       }}};
  for (const auto& [name, call] : calls) {
    INFO(name);
    const bool packs = std::string(name) == "pack";
    uint64_t refused = 0;
    for (uint64_t number = 1;; ++number) {
      INFO("allocation " << number);
      const auto left = std::make_shared<uint64_t>(0);  // until the one that is refused; 0: none is
      device::Emulation emulation;
      emulation.before = [left](device::DeviceCall asked) {
        if (asked != device::DeviceCall::allocation || *left == 0 || --*left != 0) return device::Fault::none;
        return device::Fault::no_memory;
      };
      const auto store = filled(device::make_emulated_executor(emulation), 6);
      if (!packs) REQUIRE(store->pack());
      const Seen before = seen(*store);
      const uint64_t bytes = taken(store->state()).size_bytes;
      *left = number;
      const auto made = call(*store);
      const bool fired = std::exchange(*left, 0) == 0;
      if (!made) {
        REQUIRE(made.error().code == ErrorCode::out_of_memory);
        ++refused;
        REQUIRE((packs ? !store->packed() : true));
        if (std::string(name) == "unpack") {
          REQUIRE(store->packed());
          REQUIRE(taken(store->state()).size_bytes == bytes);
        }
        REQUIRE((seen(*store) == before));
        REQUIRE(call(*store));
      }
      const Seen after = seen(*store);
      REQUIRE(store->packed() == packs);
      const auto twin = filled(device::make_emulated_executor(), 6);
      REQUIRE(call(*twin));
      REQUIRE((seen(*twin) == after));
      if (!fired) break;
    }
    REQUIRE(refused >= (packs ? 4 : 1));
  }
}

TEST_CASE(
    "pack: growths of many bricks come back one by one, or none of them, and a trim gives back those without bricks",
    "[one-caller]") {
  const auto left = std::make_shared<uint64_t>(0);
  device::Emulation emulation;
  emulation.before = [left](device::DeviceCall asked) {
    if (asked != device::DeviceCall::allocation || *left == 0 || --*left != 0) return device::Fault::none;
    return device::Fault::no_memory;
  };
  const auto store = taken(Store::create(device::make_emulated_executor(emulation)));
  // More than a new world has room for, each of a voxel.
  std::vector<uint32_t> keys;
  std::vector<BrickMaterials> materials;
  for (uint32_t i = 0; i < 34'000; ++i) {
    keys.push_back(brick_key({int32_t(i % 40), int32_t(i / 40 % 40), int32_t(i / 1600)}));
    materials.emplace_back();
    materials.back()[i % 512] = uint8_t(1 + i % 255);
  }
  taken(store->write_bricks({{}, {}, keys, materials}));
  REQUIRE(store->forget());
  REQUIRE(store->trim());
  const uint64_t editable = taken(store->state()).size_bytes;
  REQUIRE(store->pack());
  const uint64_t bytes = taken(store->state()).size_bytes;
  uint64_t refused = 0;
  for (uint64_t number = 1;; ++number) {
    *left = number;
    const auto made = store->unpack();
    if (*left) {
      *left = 0;
      REQUIRE(made);
      break;
    }
    ++refused;
    REQUIRE(made.error().code == ErrorCode::out_of_memory);
    REQUIRE(store->packed());
    REQUIRE(taken(store->state()).size_bytes == bytes);
  }
  REQUIRE(refused >= 2);
  REQUIRE(taken(store->state()).size_bytes <= editable);
  std::vector<BrickMaterials> read(keys.size());
  REQUIRE(store->read(keys, read));
  REQUIRE((read == materials));
  // All but some go, and with them the growth behind those.
  const auto gone = std::span(keys).subspan(1'000);
  taken(store->write_bricks({gone, std::vector<uint8_t>(gone.size(), 0), {}, {}}));
  REQUIRE(store->forget());
  REQUIRE(store->trim());
  REQUIRE(taken(store->state()).size_bytes + 4'000 * sizeof(Brick) < editable);
}

TEST_CASE("pack: a device that is lost at any call on the way is told of, and the world is destroyed") {
  for (const bool packs : {true, false})
    for (uint64_t number = 1;; ++number) {
      INFO((packs ? "pack" : "unpack") << ", call " << number);
      const auto left = std::make_shared<uint64_t>(0);
      device::Emulation emulation;
      emulation.before = [left](device::DeviceCall) {
        return *left && --*left == 0 ? device::Fault::lost : device::Fault::none;
      };
      const auto store = taken(Store::create(device::make_emulated_executor(emulation)));
      ball(*store, {0, 0, 0}, 9, Mode::fill, 3);
      if (!packs) REQUIRE(store->pack());
      *left = number;
      const auto made = packs ? store->pack() : store->unpack();
      if (*left) {
        REQUIRE(made);
        REQUIRE(number > 5);
        break;
      }
      REQUIRE_FALSE(made);
      REQUIRE(made.error().code == ErrorCode::device_lost);
      REQUIRE(store->version().error().code == ErrorCode::device_lost);
    }
}

}  // namespace pack_test
