// SPDX-License-Identifier: Apache-2.0
// store_test.cpp - worlds on a device: random changes beside a plain array, room that is refused at every step, memory
// that is refused, and what is left when all is undone.
#include "voxel/device/store.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/app/sanitized.hpp"
#include "tests/engine/flat_world.hpp"
#include "tests/voxel/device/homes.hpp"
#include "tests/voxel/taken.hpp"
#include "voxel/worlds/document.hpp"
#include "voxel/worlds/edit_shape.hpp"

namespace store_test {

using namespace quarry;
using device::StepId;
using device::Store;
using test::taken;

namespace {

std::unique_ptr<Store> store_on(const test::DeviceHome& home) { return taken(Store::create(taken(home.make()))); }

SolidShape solid(const Edit& edit) { return *taken(EditShape::create(edit)).solid(); }
Edit ball(Int3 at, double radius, Mode mode = Mode::add, uint8_t material = 1) {
  Edit edit;
  edit.shape = Shape::sphere;
  edit.mode = mode;
  edit.a = edit.b = at;
  edit.radius = radius;
  edit.material = material;
  return edit;
}
Store::Change made(Store& store, const Edit& edit) { return taken(store.wait(taken(store.edit(solid(edit), edit)))); }

// The grid's and the pyramid's bricks are those of the document, voxel by voxel.
void require_same(Store& store, const Document& document) {
  const Store::State state = taken(store.state());
  REQUIRE(state.voxels == document.world().voxel_count());
  REQUIRE(state.keys == document.world().brick_count());
  if (state.keys) REQUIRE(state.bounds == document.world().bounds());
  const auto entries = taken(store.entries()), reached = taken(store.pyramid_entries());
  REQUIRE(entries.size() == state.keys);
  REQUIRE(reached.size() == state.keys);
  size_t i = 0;
  bool same = true;
  document.world().for_each_brick([&](Int3 at, const Brick& brick) {
    same = same && entries[i].key == brick_key(at) && reached[i].key == entries[i].key &&
           reached[i].index == entries[i].index && taken(store.brick(entries[i].index)) == brick;
    ++i;
  });
  REQUIRE(same);
}

}  // namespace

TEST_CASE("Random changes of a world on a device leave the voxels, steps and bounds of a plain array") {
  // QUARRY_LONG=1: 10,200 changes.
  const uint32_t seeds = std::getenv("QUARRY_LONG") ? 34 : 2;
  for (const test::DeviceHome& home : test::device_homes())
    for (uint32_t seed = 1; seed <= seeds; ++seed) {
      INFO(home.name << ", seed " << seed);
      test::DeviceTested tested(store_on(home));
      test::check_random_history(tested, test::DenseModel({-64, -64, -64}, {160, 128, 160}), seed, 300);
    }
}

TEST_CASE("A world on a device and a document make the same of large shapes in every mode") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    const auto store = store_on(home);
    Document document = taken(Document::create_empty());
    const auto both = [&](const Edit& edit) {
      const Store::Change change = made(*store, edit);
      REQUIRE(change.voxels == taken(document.apply(0, edit))->voxels_changed);
    };
    both(ball({3001, -1003, 2005}, 100.5, Mode::add, 3));
    both(ball({3041, -1003, 2005}, 60, Mode::fill, 4));
    both(ball({2961, -1003, 2005}, 70, Mode::remove));
    Edit line;
    line.shape = Shape::line;
    line.a = {-8000, -4000, -8000};
    line.b = {-7000, 300, 1500};
    line.radius = 9.75;
    line.material = 200;
    both(line);
    line.mode = Mode::replace;
    line.from = 200;
    line.material = 7;
    line.radius = 5;
    both(line);
    Edit box;
    box.a = {2000, -2000, 1000};
    box.b = {4003, 0, 3001};
    box.mode = Mode::paint;  // more bricks than there are in the grid
    box.material = 9;
    both(box);
    require_same(*store, document);
    for (int i = 0; i < 4; ++i) {
      REQUIRE(taken(store->wait(taken(store->undo()))).voxels > 0);
      taken(document.undo());
    }
    require_same(*store, document);
    both(ball({3000, -1000, 2000}, 40, Mode::fill, 5));  // what could be redone is gone
    REQUIRE(taken(store->wait(taken(store->redo()))).voxels == 0);
    require_same(*store, document);
  }
}

TEST_CASE("Edits under way are answered in their order, and none has to be waited for") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    const auto store = store_on(home);
    Document document = taken(Document::create_empty());
    std::vector<Store::Ticket> tickets;
    std::vector<uint64_t> expected;
    const int edits = test::kThreadSanitized ? 60 : 200, undone = edits * 3 / 4, redone = edits / 3;
    for (int i = 0; i < edits; ++i) {
      // Some are larger than the room that a new world has.
      const Edit edit = ball({i * 37 % 900 - 450, i * 53 % 700 - 350, i * 71 % 800 - 400}, 4 + i * 13 % 90,
                             i % 4 == 3 ? Mode::remove : Mode::fill, uint8_t(1 + i % 255));
      tickets.push_back(taken(store->edit(solid(edit), edit)));
      expected.push_back(taken(document.apply(0, edit))->voxels_changed);
    }
    for (size_t i = tickets.size(); i-- > 0;) REQUIRE(taken(store->wait(tickets[i])).voxels == expected[i]);
    require_same(*store, document);
    for (int i = 0; i < undone; ++i) {
      tickets.push_back(taken(store->undo()));
      taken(document.undo());
    }
    for (int i = 0; i < redone; ++i) {
      tickets.push_back(taken(store->redo()));
      taken(document.redo());
    }
    require_same(*store, document);
  }
}

TEST_CASE("When all is undone a world on a device has neither a key nor a node, and redone it is whole again") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    const auto store = store_on(home);
    for (int i = 0; i < 30; ++i) made(*store, ball({i * 19, i * 7, -i * 11}, 20 + i, Mode::fill, uint8_t(1 + i)));
    const auto before = taken(store->entries());
    const Store::State full = taken(store->state());
    while (taken(store->wait(taken(store->undo()))).voxels) {
    }
    REQUIRE(taken(store->state()).keys == 0);
    REQUIRE(taken(store->state()).voxels == 0);
    REQUIRE(taken(store->pyramid_entries()).empty());
    while (taken(store->wait(taken(store->redo()))).voxels) {
    }
    const auto after = taken(store->entries());
    REQUIRE(after.size() == before.size());
    REQUIRE(std::memcmp(after.data(), before.data(), after.size() * sizeof(Store::Entry)) == 0);
    // A new edit, and what can no longer be redone is free.
    while (taken(store->wait(taken(store->undo()))).voxels) {
    }
    made(*store, ball({0, 0, 0}, 3));
    REQUIRE(taken(store->state()).bricks < 10);
    REQUIRE(full.bricks > 1000);
  }
}

TEST_CASE("Room that is refused at any step leaves the world as it was, and the edits are played again in order",
          "[one-caller]") {
  constexpr uint32_t kAll[] = {device::kMissingRecords, device::kMissingScratch, device::kMissingBricks,
                               device::kMissingNodes,   device::kMissingKeys,    device::kMissingPlace,
                               device::kMissingSteps};
  for (const test::DeviceHome& home : test::faulty_homes()) {
    INFO(home.name);
    int refusals = 0;
    for (const StepId step :
         {StepId::find_tiles, StepId::touch_box, StepId::touch_tiles, StepId::cut, StepId::settle_undo, StepId::keys})
      for (const uint32_t missing : kAll) {
        // A key that finds no place is told by the step that writes keys, and by no other.
        if ((missing == device::kMissingPlace) != (step == StepId::keys)) continue;
        INFO(device::name_of(step) << " lacks " << missing);
        int calls = 0;
        const auto refuse = [&](StepId now) -> uint32_t {
          // Each time the room becomes half as much again.
          if (now != step || ++calls % 3 != 2 || calls > 30) return 0;
          ++refusals;
          return missing;
        };
        const auto store = taken(Store::create(taken(home.make_faulty({7, 0, refuse}))));
        Document document = taken(Document::create_empty());
        for (int round = 0; round < 4; ++round) {
          std::vector<Store::Ticket> tickets;
          std::vector<uint64_t> expected;
          for (int i = 0; i < 5; ++i) {
            Edit edit = ball({i * 30, round * 9, 0}, 15 + i, i % 2 ? Mode::remove : Mode::fill, uint8_t(1 + i));
            if (i == 3) {
              edit.shape = Shape::line;
              edit.mode = Mode::add;
              edit.b = {60, 90, 10};
              edit.radius = 6;
            }
            tickets.push_back(taken(store->edit(solid(edit), edit)));
            expected.push_back(taken(document.apply(0, edit))->voxels_changed);
          }
          for (int i = 0; i < 2; ++i) {
            tickets.push_back(taken(store->undo()));
            uint64_t voxels = 0;
            for (const UndoRecord& record : taken(document.undo())) voxels += record.voxels_changed;
            expected.push_back(voxels);
          }
          for (size_t i = 0; i < tickets.size(); ++i) REQUIRE(taken(store->wait(tickets[i])).voxels == expected[i]);
          require_same(*store, document);
        }
      }
    REQUIRE(refusals > 100);
  }
}

TEST_CASE("An edit that gets no memory changes nothing, and those after it are made without it", "[one-caller]") {
  for (const test::DeviceHome& home : test::faulty_homes()) {
    INFO(home.name);
    // The limits that refuse some of it are found by trying all.
    int refused = 0, done = 0;
    for (uint64_t limit = 48; limit < 200; limit += test::kSanitized ? 40 : 12) {
      auto opened = Store::create(taken(home.make_faulty({3, limit << 20, {}})));
      if (!opened) {
        REQUIRE(opened.error().code == ErrorCode::out_of_memory);
        continue;
      }
      Store& store = **opened;
      Document document = taken(Document::create_empty());
      for (int i = 0; i < 6; ++i) {
        const Edit edit = ball({i * 300 - 600, 0, i * 40}, i % 2 ? 30 : 230 + i * 10, Mode::fill, uint8_t(1 + i));
        const auto ticket = taken(store.edit(solid(edit), edit));
        const auto change = store.wait(ticket);
        if (change) {
          REQUIRE(change->voxels == taken(document.apply(0, edit))->voxels_changed);
          ++done;
        } else {
          REQUIRE(change.error().code == ErrorCode::out_of_memory);
          ++refused;
        }
      }
      require_same(store, document);
    }
    REQUIRE(refused > 0);
    REQUIRE(done > 0);
  }
}

TEST_CASE("A world on a device has no more bricks than it may have") {
  const auto store = taken(Store::create(device::make_emulated_executor(), 1000));
  REQUIRE(made(*store, ball({0, 0, 0}, 30)).voxels > 0);
  const auto before = taken(store->state());
  const Edit large = ball({300, 0, 0}, 90);
  const auto refused = store->wait(taken(store->edit(solid(large), large)));
  REQUIRE(refused.error().code == ErrorCode::full);
  REQUIRE(taken(store->state()).voxels == before.voxels);
  REQUIRE(made(*store, ball({100, 0, 0}, 20)).voxels > 0);
}

TEST_CASE("Bricks put into a world on a device are no step, and without its history only the world's bricks are kept") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    Document document = taken(Document::create_empty());
    for (int i = 0; i < 9; ++i)
      taken(document.apply(
          0, ball({i * 40, i * 9, -i * 30}, 20 + i, i % 3 == 2 ? Mode::remove : Mode::fill, uint8_t(1 + i))));
    const auto store = store_on(home);
    made(*store, ball({1000, 0, 0}, 25));  // what is put over it replaces it
    made(*store, ball({0, 0, 0}, 30, Mode::fill, 77));
    taken(store->wait(taken(store->undo())));
    REQUIRE(store->forget());
    REQUIRE(taken(store->state()).steps == 0);
    std::vector<uint32_t> keys, full_keys;
    std::vector<BrickMaterials> materials;
    std::vector<uint8_t> full;
    for (const auto& entry : taken(store->entries())) {
      full_keys.push_back(entry.key);
      full.push_back(0);
    }
    REQUIRE(store->put({full_keys, full, {}, {}}));
    REQUIRE(taken(store->state()).keys == 0);
    REQUIRE(taken(store->state()).bricks == 0);
    full_keys.clear();
    full.clear();
    size_t not_full = 0;
    document.world().for_each_brick([&](Int3 at, const Brick& brick) {
      if (const uint8_t material = full_material(brick)) {
        full_keys.push_back(brick_key(at));
        full.push_back(material);
      } else {
        keys.push_back(brick_key(at));
        materials.push_back(brick.materials);
        ++not_full;
      }
    });
    REQUIRE(store->put({full_keys, full, keys, materials}));
    require_same(*store, document);
    REQUIRE(taken(store->state()).bricks == not_full);
    REQUIRE(taken(store->state()).steps == 0);
    // And back: what is not there has no voxel.
    keys.push_back(brick_key({900, 100, 100}));
    std::vector<BrickMaterials> read(keys.size());
    REQUIRE(store->read(keys, read));
    REQUIRE(std::equal(materials.begin(), materials.end(), read.begin()));
    REQUIRE(read.back() == BrickMaterials{});
    REQUIRE(taken(store->wait(taken(store->undo()))).voxels == 0);
    made(*store, ball({0, 0, 0}, 30, Mode::fill, 77));
    taken(document.apply(0, ball({0, 0, 0}, 30, Mode::fill, 77)));
    require_same(*store, document);
    REQUIRE(taken(store->wait(taken(store->undo()))).voxels > 0);
    taken(document.undo());
    require_same(*store, document);
  }
}

TEST_CASE("Rays after edits under way meet what rays meet in a document's world") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    const auto store = store_on(home);
    Document document = taken(Document::create_empty());
    uint64_t state = 20261125;
    const auto random = [&](float reach) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      return (float(double(state >> 40) / double(1 << 24)) * 2 - 1) * reach;
    };
    std::vector<Ray> rays(test::kSanitized ? 40000 : 1200000);
    for (int round = test::kThreadSanitized ? 2 : 0; round < 4; ++round) {
      for (int i = 0; i < 12; ++i) {
        const Edit edit = ball({int32_t(random(200)), int32_t(random(200)), int32_t(random(200))}, 10 + i * 6,
                               i % 4 == 3 ? Mode::remove : Mode::fill, uint8_t(1 + i));
        taken(store->edit(solid(edit), edit));
        taken(document.apply(0, edit));
      }
      if (round == 2) {
        taken(store->undo());
        taken(document.undo());
      }
      for (Ray& ray : rays)
        for (int axis = 0; axis < 3; ++axis) {
          ray.origin[axis] = random(400);
          ray.direction[axis] = random(200) - ray.origin[axis];
        }
      const test::FlatWorld reference(document.world());
      // More than a piece holds go another road than few.
      for (const size_t count : {size_t(1), size_t(3000), round == 3 ? rays.size() : size_t(20000)}) {
        std::atomic<size_t> filled{0}, wrong{0}, hits{0};
        const auto traced = store->trace(
            count,
            [&](size_t first, std::span<Ray> to) {
              std::copy_n(rays.begin() + std::ptrdiff_t(first), to.size(), to.begin());
              filled += to.size();
            },
            [&](size_t first, std::span<const RayHit> found) {
              size_t met = 0, other = 0;
              for (size_t i = 0; i < found.size(); ++i) {
                const RayHit expected = told(trace_ray(reference.rays, of_unit_length(rays[first + i])));
                const RayHit& hit = found[i];
                met += expected.t >= 0;
                other += hit.t != expected.t || hit.voxel[0] != expected.voxel[0] ||
                         hit.voxel[1] != expected.voxel[1] || hit.voxel[2] != expected.voxel[2] ||
                         hit.face != expected.face || hit.material != expected.material ||
                         (hit.t >= 0) != (hit.probe_depth > 0);
              }
              hits += met;
              wrong += other;
            });
        REQUIRE(traced);
        REQUIRE(filled == count);
        REQUIRE(wrong == 0);
        if (count > 1000) REQUIRE(hits > count / 10);
      }
    }
  }
}

TEST_CASE("However often edits are made and undone, a world on a device keeps to the memory that it needs",
          "[one-caller]") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    const auto store = store_on(home);
    Document document = taken(Document::create_empty());
    for (int round = 0; round < (test::kSanitized ? 600 : 3000); ++round) {
      const Edit edit = ball({round % 40 * 8, round % 7 * 5, 0}, 20 + round % 24, round % 3 ? Mode::fill : Mode::remove,
                             uint8_t(1 + round % 200));
      taken(store->edit(solid(edit), edit));
      taken(document.apply(0, edit));
      if (round % 3 != 1) {
        taken(store->undo());
        if (document.can_undo()) taken(document.undo());
      }
    }
    require_same(*store, document);
    // What has no use any more would be ten times this: 4000 changes, each of up to 100 nodes of level 1.
    const Store::State state = taken(store->state());
    constexpr uint64_t kEmpty = 80u << 20;  // of a new world
    const uint64_t bricks = uint64_t(state.bricks) * (sizeof(Brick) + 4);
    REQUIRE(state.size_bytes < kEmpty + 2 * bricks + (40u << 20));
    REQUIRE(store->trim());
    require_same(*store, document);
    REQUIRE(taken(store->state()).size_bytes <= state.size_bytes);
    for (int i = 0; i < 500; ++i) {
      taken(store->undo());
      if (document.can_undo()) taken(document.undo());
    }
    require_same(*store, document);
  }
}

}  // namespace store_test
