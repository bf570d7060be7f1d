// SPDX-License-Identifier: Apache-2.0
// lists_test.cpp - lists of whole bricks, and of voxels that a device makes bricks of: beside a plain map and a
// document, whatever their order, with room that is refused and with more bricks than it groups.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/app/sanitized.hpp"
#include "tests/voxel/device/homes.hpp"
#include "tests/voxel/taken.hpp"
#include "voxel/device/store.hpp"
#include "voxel/worlds/document.hpp"

namespace lists_test {

using namespace quarry;
using device::StepId;
using device::Store;
using test::taken;

namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint32_t below(uint32_t count) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return uint32_t((state_ >> 32) * count >> 32);
  }

 private:
  uint64_t state_;
};

struct List {
  std::vector<int32_t> xyz;
  std::vector<uint8_t> materials;
  void put(Int3 at, uint32_t material) {
    xyz.insert(xyz.end(), {at.x, at.y, at.z});
    materials.push_back(uint8_t(material));
  }
  size_t size() const { return materials.size(); }
  Int3 at(size_t i) const { return {xyz[3 * i], xyz[3 * i + 1], xyz[3 * i + 2]}; }
  VoxelWrites writes() const { return {xyz.data(), materials.data(), materials.size()}; }
};

List shuffled(const List& list, uint64_t seed) {
  std::vector<size_t> order(list.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  Random random(seed);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(uint32_t(i))]);
  List other;
  for (const size_t i : order) other.put(list.at(i), list.materials[i]);
  return other;
}

// Every voxel of a box, x fastest.
List scanned(Int3 corner, Int3 size, uint32_t materials, uint64_t seed) {
  Random random(seed);
  List list;
  for (int32_t z = 0; z < size.z; ++z)
    for (int32_t y = 0; y < size.y; ++y)
      for (int32_t x = 0; x < size.x; ++x) list.put(corner + Int3{x, y, z}, random.below(materials));
  return list;
}

// Some voxels of a box, of which many come again.
List scattered(Int3 corner, Int3 size, size_t count, uint32_t materials, uint64_t seed) {
  Random random(seed);
  List list;
  while (list.size() < count) {
    const Int3 at{int32_t(random.below(uint32_t(size.x))), int32_t(random.below(uint32_t(size.y))),
                  int32_t(random.below(uint32_t(size.z)))};
    list.put(corner + at, random.below(materials));
  }
  return list;
}

// A world on a device, a document and a map, to which the same is done.
class Beside {
 public:
  explicit Beside(std::unique_ptr<device::Executor> executor)
      : store_(taken(Store::create(std::move(executor)))), document_(taken(Document::create_empty())) {}
  Store& store() { return *store_; }

  void write(const List& list) {
    INFO(list.size() << " voxels");
    uint64_t changed = 0;
    std::map<Int3, uint8_t> last;
    for (size_t i = 0; i < list.size(); ++i) last[list.at(i)] = list.materials[i];
    before_.push_back(voxels_);
    for (const auto& [at, material] : last) {
      const auto found = voxels_.find(at);
      changed += (found == voxels_.end() ? 0 : found->second) != material;
      if (material) voxels_[at] = material;
      else if (found != voxels_.end()) voxels_.erase(found);
    }
    REQUIRE(taken(store_->write_voxels({list.xyz.data(), list.materials.data(), list.materials.size()})).voxels ==
            changed);
    if (list.size()) REQUIRE(taken(document_.write(0, list.writes(), "set voxels"))->voxels_changed == changed);
    if (changed == 0) before_.pop_back();
    require_same();
  }
  void undo_all() {
    while (!before_.empty()) {
      REQUIRE(taken(store_->wait(taken(store_->undo()))).voxels > 0);
      taken(document_.undo());
      voxels_ = std::move(before_.back());
      before_.pop_back();
      require_same();
    }
    REQUIRE(taken(store_->wait(taken(store_->undo()))).voxels == 0);
  }
  void require_same() {
    const Store::State state = taken(store_->state());
    REQUIRE(state.voxels == voxels_.size());
    REQUIRE(state.keys == document_.world().brick_count());
    if (state.keys) REQUIRE(state.bounds == document_.world().bounds());
    const auto entries = taken(store_->entries()), reached = taken(store_->pyramid_entries());
    REQUIRE(entries.size() == state.keys);
    REQUIRE(reached.size() == state.keys);
    size_t i = 0, voxels = 0;
    bool same = true;
    document_.world().for_each_brick([&](Int3 at, const Brick& brick) {
      const Brick its = taken(store_->brick(entries[i].index));
      same = same && entries[i].key == brick_key(at) && reached[i].key == entries[i].key &&
             reached[i].index == entries[i].index && its == brick &&
             (full_material(its) != 0) == device::is_full_index(entries[i].index);
      for (uint32_t n = 0; n < kVoxelsPerBrick; ++n) {
        if (!its.materials[n]) continue;
        const auto found = voxels_.find(Int3{at.x * 8, at.y * 8, at.z * 8} + voxel_from_index(n));
        same = same && found != voxels_.end() && found->second == its.materials[n];
        ++voxels;
      }
      ++i;
    });
    REQUIRE(same);
    REQUIRE(voxels == voxels_.size());
  }

 private:
  std::unique_ptr<Store> store_;
  Document document_;
  std::map<Int3, uint8_t> voxels_;
  std::vector<std::map<Int3, uint8_t>> before_;
};

}  // namespace

TEST_CASE("store: a list that fills a brick counts the voxels that differ, whatever was there before") {
  // Of a brick that becomes full of material 5: nothing, another brick, some of the material, some of others.
  BrickMaterials none{}, others{}, mixed{}, nearly{}, full{};
  others.fill(7);
  full.fill(5);
  nearly = full;
  nearly[100] = 0, nearly[101] = 9;
  for (uint32_t i = 0; i < 300; ++i) mixed[i] = uint8_t(4 + i % 3);
  for (const test::DeviceHome& home : test::device_homes()) {
    CAPTURE(home.name);
    for (const auto& [before, differing] :
         {std::pair(none, 512u), std::pair(others, 512u), std::pair(mixed, 412u), std::pair(nearly, 2u)}) {
      CAPTURE(differing);
      auto executor = home.make();
      REQUIRE(executor);
      const auto store = taken(Store::create(std::move(*executor)));
      const std::vector<uint32_t> keys{brick_key({1, 2, 3})};
      const std::vector<BrickMaterials> materials{before};
      const std::vector<uint8_t> five{5};
      REQUIRE(store->put({{}, {}, keys, materials}));
      REQUIRE(taken(store->write_bricks({keys, five, {}, {}})).voxels == differing);
      REQUIRE(taken(store->state()).voxels == 512);
      REQUIRE(taken(store->wait(taken(store->undo()))).voxels == differing);
      REQUIRE(taken(store->wait(taken(store->redo()))).voxels == differing);
      REQUIRE(taken(store->write_bricks({keys, five, {}, {}})).voxels == 0);
      std::vector<BrickMaterials> read(1);
      REQUIRE(store->read(keys, read));
      REQUIRE(read[0] == full);
    }
  }
}

TEST_CASE("Lists of voxels in any order leave a world on a device as the last of equal voxels says") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    Beside beside(taken(home.make()));
    beside.write({});
    beside.write(scattered({5, -3, 9}, {1, 1, 1}, 1, 2, 4));  // one voxel
    beside.write(scanned({-20, -9, 3}, {41, 23, 30}, 200, 1));
    beside.write(shuffled(scanned({-13, -20, 0}, {50, 31, 17}, 3, 2), 3));
    beside.write(scattered({-30, -30, -30}, {60, 60, 60}, 40000, 4, 5));
    beside.write(scattered({-30, -30, -30}, {60, 60, 60}, 300000, 256, 6));  // each of them more than once
    beside.write(scattered({8, 16, -8}, {8, 8, 8}, 100000, 7, 7));           // one brick
    beside.write(scanned({0, 0, 0}, {48, 48, 48}, 1, 8));                    // removed, some of it not there
    // Bricks told apart by 18 and by 27 bits, which CUDA sorts otherwise.
    beside.write(scattered({-250, -250, -250}, {500, 500, 500}, 20000, 9, 9));
    beside.write(scattered({-2000, -2000, -2000}, {4000, 4000, 4000}, 20000, 9, 10));
    beside.write({});
    beside.undo_all();
  }
}

TEST_CASE("A list of voxels makes bricks full, takes them away, and changes nothing if all is there already") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    Beside beside(taken(home.make()));
    List full;
    for (int32_t n = 0; n < 24 * 24 * 24; ++n) full.put({n % 24, n / 24 % 24, n / 576}, 9);
    beside.write(full);
    REQUIRE(taken(beside.store().state()).bricks == 0);
    beside.write(full);
    REQUIRE(taken(beside.store().state()).steps == 1);
    List hole = full;
    hole.put({9, 9, 9}, 0);  // after all that is there already
    beside.write(hole);
    REQUIRE(taken(beside.store().state()).bricks == 1);
    List gone;
    for (size_t i = full.size(); i-- > 0;) gone.put(full.at(i), 0);
    beside.write(gone);
    REQUIRE(taken(beside.store().state()).keys == 0);
    beside.write(gone);
    beside.undo_all();
  }
}

TEST_CASE("Lists of voxels reach the corners of the world", "[one-caller]") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    Beside beside(taken(home.make()));
    List corners;
    for (const int32_t x : {-8192, -1, 0, 8191})
      for (const int32_t y : {-4096, -1, 0, 4095})
        for (const int32_t z : {-8192, -1, 0, 8191})
          if (voxel_in_world({x, y, z})) corners.put({x, y, z}, uint32_t(1 + corners.size() % 255));
    corners.put({8183, 4095, 8191}, 3);
    beside.write(corners);
    List spread;  // a brick a voxel
    Random random(11);
    while (spread.size() < 20000) {
      const Int3 at{int32_t(random.below(16384)) - 8192, int32_t(random.below(8192)) - 4096,
                    int32_t(random.below(16384)) - 8192};
      if (voxel_in_world(at)) spread.put(at, 1 + random.below(255));
    }
    beside.write(spread);
    for (uint8_t& material : spread.materials) material = uint8_t(random.below(2));
    beside.write(shuffled(spread, 12));
    beside.undo_all();
  }
}

TEST_CASE("Of a list with voxels outside of the world the first is named, wherever it is, and nothing changes") {
  constexpr int32_t kFar = std::numeric_limits<int32_t>::max(), kLow = std::numeric_limits<int32_t>::min();
  constexpr std::array<Int3, 14> kOutside{{{8192, 0, 0},
                                           {-8193, 0, 0},
                                           {0, 4096, 0},
                                           {0, -4097, 0},
                                           {0, 0, 8192},
                                           {0, 0, -8193},
                                           {kFar, 0, 0},
                                           {0, kLow, 0},
                                           {0, 0, kFar},
                                           {kLow, kFar, kLow},
                                           // The brick at the corner has no key.
                                           {8184, 4088, 8184},
                                           {8191, 4095, 8191},
                                           {8184, 4091, 8191},
                                           {8190, 4092, 8185}}};
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    const auto store = taken(Store::create(taken(home.make())));
    // Beside the corner's brick all is inside.
    List list = scattered({8176, 4080, 8176}, {8, 16, 16}, test::kSanitized ? 30'000 : 300'000, 250, 5);
    REQUIRE(store->write_voxels({list.xyz.data(), list.materials.data(), list.size()}));
    const uint64_t voxels = taken(store->state()).voxels;
    Random random(9);
    for (const Int3 outside : kOutside) {
      List bad = list;
      size_t first = bad.size();
      for (int i = 0; i < 3; ++i) {
        const size_t number = random.below(uint32_t(bad.size()));
        std::copy_n(std::array{outside.x, outside.y, outside.z}.data(), 3, bad.xyz.data() + 3 * number);
        first = std::min(first, number);
      }
      const auto refused = store->write_voxels({bad.xyz.data(), bad.materials.data(), bad.size()});
      REQUIRE(refused.error().code == ErrorCode::out_of_bounds);
      REQUIRE(refused.error().message == device::outside_of_world(outside, first).message);
      REQUIRE(taken(store->state()).voxels == voxels);
    }
    REQUIRE(taken(store->state()).steps == 1);
  }
}

TEST_CASE("A list that comes in several pieces is one step, and its last piece counts") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    const auto store = taken(Store::create(taken(home.make())));
    Document document = taken(Document::create_empty());
    const size_t count = test::kSanitized ? 300'001 : size_t((uint32_t(1) << 21)) * 2 + 12345;
    const List list = scattered({-64, -64, -64}, {128, 128, 128}, count, 256, 21);
    const auto change = taken(store->write_voxels({list.xyz.data(), list.materials.data(), list.materials.size()}));
    REQUIRE(change.voxels == taken(document.write(0, list.writes(), "set voxels"))->voxels_changed);
    size_t i = 0;
    bool same = true;
    const auto entries = taken(store->entries());
    REQUIRE(entries.size() == document.world().brick_count());
    document.world().for_each_brick([&](Int3 at, const Brick& brick) {
      same = same && entries[i].key == brick_key(at) && taken(store->brick(entries[i].index)) == brick;
      ++i;
    });
    REQUIRE(same);
    REQUIRE(taken(store->state()).steps == 1);
    REQUIRE(taken(store->wait(taken(store->undo()))).voxels == change.voxels);
    REQUIRE(taken(store->state()).voxels == 0);
  }
}

TEST_CASE("Room that is refused at any step of a list's edit leaves the list there, and it is made again",
          "[one-caller]") {
  for (const test::DeviceHome& home : test::faulty_homes()) {
    INFO(home.name);
    constexpr std::array<std::pair<StepId, uint32_t>, 6> kRefused{{{StepId::touch_list, device::kMissingRecords},
                                                                   {StepId::touch_list, device::kMissingScratch},
                                                                   {StepId::cut_list, device::kMissingBricks},
                                                                   {StepId::cut_list, device::kMissingNodes},
                                                                   {StepId::keys, device::kMissingPlace},
                                                                   {StepId::assemble, device::kMissingKeys}}};
    for (const auto& [step, missing] : kRefused) {
      INFO(device::name_of(step) << " lacks " << missing);
      int calls = 0;
      const auto refuse = [&, step = step, missing = missing](StepId now) {
        return now == step && calls++ % 2 == 0 && calls < 9 ? missing : 0u;
      };
      Beside beside(taken(home.make_faulty({5, 0, refuse})));
      for (uint64_t seed = 0; seed < 4; ++seed)
        beside.write(scattered({-20, -20, int32_t(seed) * 9}, {40, 40, 40}, 5000, 9, seed));
      REQUIRE(calls >= 4);
      beside.undo_all();
    }
  }
}

TEST_CASE("A list that gets no memory, or has more voxels than a device groups, changes nothing", "[one-caller]") {
  int refused = 0, done = 0;
  const List list = scattered({-500, -500, -500}, {1000, 1000, 1000}, 60000, 9, 31);
  for (uint64_t limit = 60; limit < 180; limit += test::kSanitized ? 40 : 10) {
    auto opened = Store::create(device::make_emulated_executor({3, limit << 20, {}}));
    if (!opened) continue;
    const auto change = (*opened)->write_voxels({list.xyz.data(), list.materials.data(), list.materials.size()});
    if (!change) {
      REQUIRE((change.error().code == ErrorCode::unsupported || change.error().code == ErrorCode::out_of_memory));
      REQUIRE(taken((*opened)->state()).keys == 0);
      REQUIRE(taken((*opened)->state()).steps == 0);
      ++refused;
    } else {
      ++done;
    }
    // What fits is made afterwards.
    const List few = scattered({0, 0, 0}, {9, 9, 9}, 10, 9, 31);
    if (change)
      REQUIRE(taken((*opened)->write_voxels({few.xyz.data(), few.materials.data(), few.materials.size()})).version > 0);
  }
  REQUIRE(refused > 0);
  REQUIRE(done > 0);
}

TEST_CASE("A list of more voxels than a device groups changes nothing, and the next one is made") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    Beside beside(taken(home.make()));
    const std::vector<uint8_t> many(device::kMostListed + 1, 1);
    // It is refused before a position is read.
    REQUIRE(beside.store().write_voxels({nullptr, many.data(), many.size()}).error().code == ErrorCode::unsupported);
    beside.require_same();
    beside.write(scattered({0, 0, 0}, {30, 30, 30}, 5000, 9, 41));
    beside.undo_all();
  }
}

}  // namespace lists_test
