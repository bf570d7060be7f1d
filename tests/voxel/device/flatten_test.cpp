// SPDX-License-Identifier: Apache-2.0
// flatten_test.cpp - volumes laid into a world by a device, beside the host's flattener: random scenes of turned,
// shifted, overlapping and hidden instances, what is outside of the world, and room and memory that are refused.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "tests/app/sanitized.hpp"
#include "tests/voxel/device/homes.hpp"
#include "tests/voxel/taken.hpp"
#include "voxel/device/placed_volumes.hpp"
#include "voxel/device/store.hpp"
#include "voxel/worlds/edit_shape.hpp"
#include "voxel/worlds/scene.hpp"

namespace flatten_test {

using namespace quarry;
using device::PlacedVolumes;
using device::StepId;
using device::Store;
using test::taken;

namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2654435761u + 1) {}
  uint32_t below(uint32_t count) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return uint32_t((state_ >> 32) * count >> 32);
  }
  int32_t between(int32_t low, int32_t high) { return low + int32_t(below(uint32_t(high - low + 1))); }

 private:
  uint64_t state_;
};

std::vector<Rotation> all_rotations() {
  std::vector<Rotation> all;
  std::array<uint8_t, 3> axis{0, 1, 2};
  do {
    for (uint32_t signs = 0; signs < 8; ++signs) {
      Rotation rotation;
      rotation.axis = axis;
      for (uint32_t i = 0; i < 3; ++i) rotation.sign[i] = signs >> i & 1u ? int8_t(-1) : int8_t(1);
      all.push_back(rotation);
    }
  } while (std::next_permutation(axis.begin(), axis.end()));
  return all;
}

// Full bricks, bricks full but of two materials, single voxels at corners, layers, noise.
SharedBrick random_brick(Random& random) {
  const uint32_t kind = random.below(6);
  const auto material = uint8_t(1 + random.below(4) * 60);
  if (kind < 2) return SharedBrick::full(material);
  Brick brick;
  for (uint32_t i = 0; i < kVoxelsPerBrick; ++i) {
    const Int3 at = voxel_from_index(i);
    const bool there = kind == 2   ? true
                       : kind == 3 ? at.x % 7 == 0 && at.y % 7 == 0 && at.z % 7 == 0 && random.below(8) == 0
                       : kind == 4 ? at.y < 2
                                   : random.below(2) == 0;
    if (there)
      brick.set(i, kind == 2 && i == 100 ? uint8_t(material + 1)
                   : kind == 2           ? material
                                         : uint8_t(1 + random.below(255)));
  }
  if (brick.empty()) brick.set(random.below(kVoxelsPerBrick), material);
  return BrickPool::loose().make(brick);
}

// A block of bricks of a volume, some of which are not there.
void put_bricks(Volume& volume, Int3 from, Int3 size, uint32_t missing, Random& random) {
  std::vector<BrickPut> puts;
  for (int32_t x = 0; x < size.x; ++x)
    for (int32_t y = 0; y < size.y; ++y)
      for (int32_t z = 0; z < size.z; ++z)
        if (random.below(100) >= missing) puts.push_back({from + Int3{x, y, z}, random_brick(random)});
  volume.bricks.put(puts);
}

Instance instance_of(uint32_t volume, const Rotation& rotation, Int3 offset) {
  Instance instance;
  instance.volume = volume;
  instance.rotation = rotation;
  instance.offset = offset;
  return instance;
}

Scene random_scene(uint32_t seed, uint32_t instances) {
  Random random(seed);
  const auto rotations = all_rotations();
  Scene scene;
  scene.overlap = seed % 2 ? OverlapRule::last_instance_wins : OverlapRule::first_instance_wins;
  scene.layers = {{"shown", false}, {"hidden", true}};
  scene.volumes.resize(4);  // the last one stays empty
  put_bricks(scene.volumes[0], {-1, 0, 2}, {3, 2, 2}, 20, random);
  put_bricks(scene.volumes[1], {-2, -2, -2}, {1, 1, 1}, 0, random);
  put_bricks(scene.volumes[2], {100000, -200000, 7}, {2, 3, 2}, 40, random);  // far beyond the world
  for (uint32_t i = 0; i < instances; ++i) {
    const uint32_t volume = random.below(4);
    const Rotation rotation = rotations[(seed + i * 7) % rotations.size()];
    // Near the origin, wherever the volume is; every third one on whole bricks.
    const Int3 middle = volume == 2 ? rotation.apply_to_cell({800008, -1599988, 64}) : Int3{};
    Int3 offset = Int3{random.between(-30, 30), random.between(-30, 30), random.between(-30, 30)} - middle;
    if (random.below(3) == 0) offset = {offset.x & ~7, offset.y & ~7, offset.z & ~7};
    Instance instance = instance_of(volume, random.below(6) ? rotation : Rotation{}, offset);
    if (volume == 2) instance.rotation = rotation;
    instance.hidden = random.below(8) == 0;
    instance.layer = int32_t(random.below(8)) - 6;
    scene.instances.push_back(instance);
  }
  return scene;
}

// The visible instances, the first one covering what is behind; and the numbers that they have in the scene.
std::vector<device::Placement> placements_of(const Scene& scene, std::vector<size_t>* numbers = nullptr) {
  std::vector<device::Placement> placements;
  for (size_t i = 0; i < scene.instances.size(); ++i) {
    const size_t number = scene.overlap == OverlapRule::last_instance_wins ? scene.instances.size() - 1 - i : i;
    const Instance& instance = scene.instances[number];
    if (!scene.instance_visible(instance)) continue;
    placements.push_back({instance.volume, instance.rotation, instance.offset});
    if (numbers) numbers->push_back(number);
  }
  return placements;
}

// Sends all bricks, some at a time.
Result<std::unique_ptr<PlacedVolumes>> sent(Store& store, const Scene& scene, size_t at_once = 5) {
  QRY_TRY_ASSIGN(auto volumes, PlacedVolumes::create(store));
  std::vector<uint64_t> counts;
  for (const Volume& volume : scene.volumes) counts.push_back(volume.bricks.bricks().size());
  QRY_TRY(volumes->begin(counts));
  std::vector<PlacedVolumes::Row> rows;
  std::vector<Int3> at;
  std::vector<uint32_t> indices;
  std::vector<BrickMaterials> materials;
  // Volumes by turns, as threads that decode them may do.
  for (size_t first = 0, left = 1; left != 0; first += at_once) {
    rows.clear(), at.clear(), indices.clear(), materials.clear();
    for (uint32_t v = 0; v < counts.size(); ++v) {
      const size_t before = at.size();
      size_t number = 0;
      const auto bricks = scene.volumes[v].bricks.bricks();
      for (auto brick = bricks.begin(); brick != bricks.end(); ++brick, ++number) {
        if (number < first || number >= first + at_once) continue;
        at.push_back((*brick).first);
        const uint8_t full = brick.shared().material();
        indices.push_back(full ? device::full_index(full) : device::kFullBricks);
        if (!full) materials.push_back((*brick).second().materials);
      }
      rows.push_back({v, uint32_t(at.size() - before)});
    }
    left = at.size();
    QRY_TRY(volumes->send({rows, at, indices, materials}));
  }
  return volumes;
}

Result<Store::Flattened> flatten_on(Store& store, const Scene& scene, uint32_t most_made = 1u << 20) {
  QRY_TRY_ASSIGN(const auto volumes, sent(store, scene));
  return store.flatten(*volumes, placements_of(scene), most_made);
}

void require_same(Store& store, const Scene& scene) {
  const BrickMap flat = taken(flatten(scene, true));
  const auto entries = taken(store.entries()), reached = taken(store.pyramid_entries());
  REQUIRE(entries.size() == flat.bricks().size());
  REQUIRE(reached.size() == entries.size());
  bool same = true;
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto [key, index] = entries[i];
    same = same && reached[i].key == key && reached[i].index == index;
    const SharedBrick expected = flat.share(brick_from_key(key));
    const Brick brick = taken(store.brick(index));
    same =
        same && expected && brick == (*expected).copy() && device::is_full_index(index) == (full_material(brick) != 0);
  }
  REQUIRE(same);
  const Store::State state = taken(store.state());
  REQUIRE(state.voxels == flat.voxel_count());
  if (!entries.empty()) REQUIRE(state.bounds == flat.bounds());
  REQUIRE(state.steps == 0);
  if (entries.empty()) REQUIRE(state.version == 0);
}

void check_on_all(const Scene& scene, uint32_t most_made = 1u << 20) {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    const auto store = taken(Store::create(taken(home.make())));
    taken(flatten_on(*store, scene, most_made));
    require_same(*store, scene);
  }
}

}  // namespace

TEST_CASE("flatten: turned, shifted, overlapping and hidden instances are laid into a world as the host lays them") {
  for (uint32_t seed = 0; seed < (test::kSanitized ? 6u : 30u); ++seed) {
    INFO("seed " << seed);
    check_on_all(random_scene(seed, 1 + seed * 3), seed % 3 == 2 ? 3 : 1u << 20);
  }
}

TEST_CASE("flatten: each of the 48 rotations, on whole bricks and beside them") {
  Random random(99);
  Scene scene;
  scene.volumes.resize(2);
  put_bricks(scene.volumes[0], {-1, 0, 0}, {3, 2, 1}, 0, random);
  std::vector<BrickPut> full;
  for (int32_t i = 0; i < 27; ++i) full.push_back({{i % 3, i / 3 % 3, i / 9}, SharedBrick::full(9)});
  scene.volumes[1].bricks.put(full);
  int32_t number = 0;
  for (const Rotation& rotation : all_rotations()) {
    REQUIRE(rotation.valid());
    const Int3 corner{number % 7 * 64 - 200, number / 7 * 64 - 200, 0};
    scene.instances.push_back(instance_of(0, rotation, corner));
    scene.instances.push_back(instance_of(1, rotation, corner + Int3{number % 8, 3, 100 + number}));
    scene.instances.push_back(instance_of(0, rotation, corner + Int3{1 + number % 7, number / 7, 300 + number % 5}));
    ++number;
  }
  check_on_all(scene);
}

TEST_CASE("flatten: bricks that full bricks fill are found without a look at voxels, shifted and turned as they are") {
  Scene scene;
  scene.volumes.resize(1);
  std::vector<BrickPut> puts;
  for (int32_t i = 0; i < 125; ++i) puts.push_back({{i % 5, i / 5 % 5, i / 25}, SharedBrick::full(3)});
  puts[62].value = SharedBrick::full(4);  // the one in the middle
  scene.volumes[0].bricks.put(puts);
  scene.instances.push_back(instance_of(0, all_rotations()[13], {8, 16, -24}));
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    const auto found = [&](Int3 offset) {
      scene.instances[0].offset = offset;
      const auto store = taken(Store::create(taken(home.make())));
      const auto its = taken(flatten_on(*store, scene)).found;
      require_same(*store, scene);
      return std::array{its.pairs, its.contributions, its.filled, its.made};
    };
    CHECK(found({8, 16, -24}) == std::array{125u, 125u, 125u, 0u});
    CHECK(found({8, 16, -23}) == std::array{125u, 250u, 98u, 52u});
    // Of 6^3 bricks those within the 4^3 that are covered wholly, but for the eight that the middle one meets.
    CHECK(found({9, 17, -23}) == std::array{125u, 1000u, 56u, 160u});
  }
}

TEST_CASE("flatten: where many instances are at one place, the rule of overlap says whose voxels stay") {
  Random random(5);
  Scene scene;
  scene.volumes.resize(40);
  for (Volume& volume : scene.volumes) put_bricks(volume, {0, 0, 0}, {1, 1, 1}, 0, random);
  const auto rotations = all_rotations();
  for (uint32_t i = 0; i < 300; ++i)
    scene.instances.push_back(instance_of(i % 40, rotations[i % 48], {random.between(-6, 6), i % 3 ? 0 : 3, 0}));
  for (const OverlapRule rule : {OverlapRule::first_instance_wins, OverlapRule::last_instance_wins}) {
    scene.overlap = rule;
    check_on_all(scene);
  }
}

TEST_CASE("flatten: scenes without instances, without voxels, and with hidden ones alone make an empty world") {
  Scene none;
  check_on_all(none);
  none.volumes.resize(1);
  none.instances.push_back(instance_of(0, {}, {1, 2, 3}));
  check_on_all(none);
  Random random(3);
  put_bricks(none.volumes[0], {}, {2, 2, 2}, 0, random);
  none.instances[0].hidden = true;
  check_on_all(none);
}

TEST_CASE("flatten: the first instance that leaves the world is named, and nothing has been made") {
  Random random(17);
  Scene scene;
  scene.volumes.resize(2);
  put_bricks(scene.volumes[0], {0, 0, 0}, {2, 2, 2}, 0, random);
  Brick corner;  // one voxel, in the brick's lower corner
  corner.set(voxel_index({0, 0, 0}), 5);
  const std::array puts{BrickPut{{0, 0, 0}, BrickPool::loose().make(corner)}};
  scene.volumes[1].bricks.put(puts);
  const auto rotations = all_rotations();
  scene.instances = {instance_of(0, {}, {0, 0, 0}), instance_of(1, {}, {8191, 4080, 8191}),
                     instance_of(1, rotations[7], {-8191, -4095, -8191})};
  check_on_all(scene);  // voxels of theirs are not outside, though bricks are
  const std::array outside{instance_of(1, {}, {8192, 0, 0}), instance_of(1, {}, {0, -4097, 0}),
                           instance_of(1, {}, {8190, 4095, 8190}),  // in the brick whose key is reserved
                           instance_of(0, rotations[3], {2147483640, 0, 0}),
                           instance_of(0, rotations[40], {0, -2147483647, 0})};
  for (const OverlapRule rule : {OverlapRule::first_instance_wins, OverlapRule::last_instance_wins})
    for (const Instance& one : outside)
      for (const size_t at : {size_t(0), size_t(2), size_t(3)}) {
        Scene other = scene;
        other.overlap = rule;
        other.instances.insert(other.instances.begin() + std::ptrdiff_t(at), one);
        other.instances.push_back(outside[0]);
        const auto refused = flatten_for_world(other, true);
        REQUIRE(!refused);
        for (const test::DeviceHome& home : test::device_homes()) {
          INFO(home.name << ", " << refused.error().message);
          const auto store = taken(Store::create(taken(home.make())));
          const auto volumes = taken(sent(*store, other));
          std::vector<size_t> numbers;
          const auto placements = placements_of(other, &numbers);
          const auto made = store->flatten(*volumes, placements);
          REQUIRE(!made);
          CHECK(made.error().code == ErrorCode::out_of_bounds);
          const std::string named = "instance " + std::to_string(numbers[volumes->outside()]) + " ";
          CHECK(refused.error().message.starts_with(named));
          CHECK(taken(store->state()).keys == 0);
          CHECK(taken(store->pyramid_entries()).empty());
        }
      }
}

TEST_CASE("flatten: a world that was flattened is edited, undone and redone as any other") {
  const Scene scene = random_scene(4, 20);
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    const auto store = taken(Store::create(taken(home.make())));
    taken(flatten_on(*store, scene));
    Edit edit;
    edit.shape = Shape::sphere;
    edit.mode = Mode::fill;
    edit.radius = 20;
    edit.material = 77;
    const auto shape = taken(EditShape::create(edit));
    const uint64_t changed = taken(store->wait(taken(store->edit(*shape.solid(), edit)))).voxels;
    REQUIRE(changed > 0);
    REQUIRE(taken(store->wait(taken(store->undo()))).voxels == changed);
    const BrickMap flat = taken(flatten(scene, true));
    REQUIRE(taken(store->state()).voxels == flat.voxel_count());
    REQUIRE(taken(store->wait(taken(store->redo()))).voxels == changed);
    REQUIRE(store->trim());
    REQUIRE(taken(store->wait(taken(store->undo()))).voxels == changed);
    REQUIRE(taken(store->entries()).size() == flat.bricks().size());
  }
}

TEST_CASE("flatten: whatever step lacks room, it is made once more, and the world is the same", "[one-caller]") {
  for (const test::DeviceHome& home : test::faulty_homes()) {
    INFO(home.name);
    constexpr std::array<std::pair<StepId, uint32_t>, 15> kRefused{{{StepId::mask_bricks, device::kMissingBricks},
                                                                    {StepId::survey_placed, device::kMissingKeys},
                                                                    {StepId::scan_placed, device::kMissingScratch},
                                                                    {StepId::contribute, device::kMissingNodes},
                                                                    {StepId::group_placed, device::kMissingRecords},
                                                                    {StepId::list_filled, device::kMissingBricks},
                                                                    {StepId::compose, device::kMissingNodes},
                                                                    {StepId::touch_list, device::kMissingRecords},
                                                                    {StepId::touch_list, device::kMissingScratch},
                                                                    {StepId::cut_list, device::kMissingBricks},
                                                                    {StepId::cut_list, device::kMissingNodes},
                                                                    {StepId::cut_list, device::kMissingKeys},
                                                                    {StepId::cut_list, device::kMissingSteps},
                                                                    {StepId::keys, device::kMissingPlace},
                                                                    {StepId::regions, 0}}};
    const Scene scene = random_scene(8, 30);
    for (const auto& [step, missing] : kRefused)
      for (const uint32_t most_made : {1u << 20, 7u}) {
        INFO(device::name_of(step) << " lacks " << missing << ", " << most_made);
        bool armed = true;
        const auto refuse = [&, step = step, missing = missing](StepId now) {
          return now == step && std::exchange(armed, false) ? missing : 0u;
        };
        const auto store = taken(Store::create(taken(home.make_faulty({5, 0, refuse}))));
        taken(flatten_on(*store, scene, most_made));
        REQUIRE(!armed);
        require_same(*store, scene);
      }
  }
}

TEST_CASE("flatten: whichever allocation is refused, it is told, or the world is the same", "[one-caller]") {
  for (const test::DeviceHome& home : test::faulty_homes()) {
    INFO(home.name);
    const Scene scene = random_scene(9, 25);
    int refusals = 0;
    for (int allowed = 0;; ++allowed) {
      INFO(allowed << " allocations");
      int made = 0;
      bool counts = false;
      device::Emulation emulation;
      emulation.before = [&](device::DeviceCall call) {
        return counts && call == device::DeviceCall::allocation && made++ == allowed ? device::Fault::no_memory
                                                                                     : device::Fault::none;
      };
      const auto store = taken(Store::create(taken(home.make_faulty(std::move(emulation)))));
      counts = true;
      const auto done = flatten_on(*store, scene);
      counts = false;
      if (done) {
        require_same(*store, scene);
      } else {
        CHECK(done.error().code == ErrorCode::out_of_memory);
        CHECK(taken(store->state()).keys == 0);
        ++refusals;
      }
      if (made <= allowed) break;
    }
    CHECK(refusals > 12);
  }
}

TEST_CASE("flatten: what was only needed on the way is given back") {
  const Scene scene = random_scene(10, 40);
  const auto store = taken(Store::create(device::make_emulated_executor()));
  const uint64_t before = taken(store->state()).size_bytes;
  taken(flatten_on(*store, scene));
  const Store::State state = taken(store->state());
  CHECK(state.keys > 100);
  CHECK(state.size_bytes < before + (uint64_t(1) << 20));
}

}  // namespace flatten_test
