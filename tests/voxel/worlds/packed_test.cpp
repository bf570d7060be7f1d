// SPDX-License-Identifier: Apache-2.0
// packed_test.cpp - the promises of World::pack, of packed pools and of World::shrink_to_fit: the same voxels in less
// memory, and back again.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <random>

#include "tests/voxel/limited_memory.hpp"
#include "voxel/worlds/document.hpp"

namespace packed_test {

using namespace quarry;

namespace {

using Model = std::map<Int3, Brick>;

std::vector<World::BrickWrite> writes_of(const Model& model) {
  std::vector<World::BrickWrite> writes;
  for (const auto& [at, brick] : model) writes.push_back({at, brick});
  return writes;
}

Brick brick_with(uint32_t voxels, std::mt19937& random) {
  Brick brick;
  while (brick.count() < voxels) brick.set(uint32_t(random() % 512), uint8_t(1 + random() % 255));
  return brick;
}

// Bricks of every number of voxels from 1 to 512: scattered, in the corners of the world, and crowded.
Model all_kinds() {
  std::mt19937 random(7);
  Model model;
  for (uint32_t voxels = 1; voxels <= 512; ++voxels) {
    const int n = int(voxels);
    model[{n % 23 - 11, n / 23 - 9, (n * 7) % 31 - 15}] = brick_with(voxels, random);
  }
  for (const Int3 corner :
       {Int3{-1024, -512, -1024}, Int3{1023, -512, -1024}, Int3{-1024, 511, 1023}, Int3{1022, 511, 1023}})
    model[corner] = brick_with(3, random);
  Brick board;
  for (uint32_t i = 0; i < 512; ++i) {
    const Int3 v = voxel_from_index(i);
    if ((v.x + v.y + v.z) & 1) board.set(i, uint8_t(1 + i % 255));
  }
  model[{100, 100, 100}] = board;
  return model;
}

void require_same(const World& world, const Model& model) {
  size_t seen = 0;
  uint64_t voxels = 0;
  world.for_each_brick([&](Int3 at, const Brick& brick) {
    ++seen;
    const auto found = model.find(at);
    if (found == model.end() || !(found->second == brick))
      FAIL("for_each_brick " << at.x << ' ' << at.y << ' ' << at.z);
  });
  REQUIRE(seen == model.size());
  for (const auto& [at, brick] : model) {
    voxels += brick.count();
    Brick found;
    if (!world.find_brick(at, &found) || !(found == brick)) FAIL("find_brick " << at.x << ' ' << at.y << ' ' << at.z);
    for (uint32_t i = 0; i < kVoxelsPerBrick; ++i)
      if (world.get(voxel_from_index(i) + Int3{at.x * 8, at.y * 8, at.z * 8}) != brick.get(i))
        FAIL("voxel " << i << " of " << at.x << ' ' << at.y << ' ' << at.z);
  }
  REQUIRE(world.voxel_count() == voxels);
  REQUIRE(world.brick_count() == model.size());
  const auto stats = world.stats();
  REQUIRE(stats);
  REQUIRE(stats->live == model.size());
}

World world_of(const Model& model, MemorySource& memory) {
  WorldMemory where;
  where.memory = &memory;
  auto world = World::create(where);
  REQUIRE(world);
  REQUIRE(world->write(writes_of(model)));
  return std::move(*world);
}

bool one_more_edit_works(World& world, Model model) {
  Brick brick;
  brick.set(77, 5);
  model[{500, 0, 0}] = brick;
  if (!world.write(std::vector<World::BrickWrite>{{{500, 0, 0}, brick}})) return false;
  require_same(world, model);
  return true;
}

// All bytes of the pool's arrays.
std::vector<uint8_t> bytes_of(const World& world) {
  std::vector<uint8_t> bytes;
  for (const SlabArray* array : {&world.pool().mask_slabs(), &world.pool().material_slabs()})
    for (const MemoryBlock& slab : array->slabs())
      bytes.insert(bytes.end(), static_cast<const uint8_t*>(slab.data),
                   static_cast<const uint8_t*>(slab.data) + slab.size_bytes);
  return bytes;
}

}  // namespace

TEST_CASE("packed: a packed world has the same voxels, bricks, bounds and version as before") {
  test::LimitedMemory memory;
  for (const Model& model : {Model{},
                             Model{{{0, 0, 0},
                                    [] {
                                      Brick b;
                                      b.set(9, 200);
                                      return b;
                                    }()}},
                             all_kinds()}) {
    World world = world_of(model, memory);
    const Box3 bounds = world.bounds();
    const uint64_t version = world.version();
    const size_t held = memory.held_bytes;
    REQUIRE_FALSE(world.packed());
    REQUIRE(world.pack());
    REQUIRE(world.packed());
    require_same(world, model);
    CHECK(world.bounds() == bounds);
    CHECK(world.version() == version);
    CHECK(memory.held_bytes < held);  // no memory of the other form is kept
    CHECK(world.get({8191, 0, 0}) == 0);
    REQUIRE(world.pack());  // again: no effect
    require_same(world, model);
    REQUIRE(world.unpack());
    REQUIRE_FALSE(world.packed());
    require_same(world, model);
    CHECK(world.version() == version);
    REQUIRE(world.unpack());
  }
  CHECK(memory.blocks() == 0);
}

TEST_CASE("packed: an edit turns the world back first, and it can be packed again") {
  test::LimitedMemory memory;
  Model model = all_kinds();
  World world = world_of(model, memory);
  std::mt19937 random(11);
  for (int round = 0; round < 6; ++round) {
    REQUIRE(world.pack());
    Model batch;
    for (int i = 0; i < 40; ++i)
      batch[{int(random() % 30) - 15, int(random() % 30) - 15, int(random() % 30) - 15}] =
          i % 3 ? brick_with(1 + uint32_t(random() % 512), random) : Brick{};
    REQUIRE(world.write(writes_of(batch)));
    REQUIRE_FALSE(world.packed());
    for (const auto& [at, brick] : batch)
      if (brick.empty()) model.erase(at);
      else model[at] = brick;
    require_same(world, model);
  }
  REQUIRE(world.pack());
  REQUIRE(world.clear());
  require_same(world, {});
}

TEST_CASE("packed: memory is what masks, materials, offsets and a full grid come to") {
  test::LimitedMemory memory;
  std::mt19937 random(5);
  Model model;
  uint64_t voxels = 0;
  for (int z = 0; z < 36; ++z)
    for (int y = 0; y < 8; ++y)
      for (int x = 0; x < 36; ++x)
        voxels += (model[{x, y, z}] = brick_with(60 + uint32_t(random() % 100), random)).count();
  World world = world_of(model, memory);
  const uint64_t foretold = world.packed_bytes();
  REQUIRE(world.pack());
  require_same(world, model);
  CHECK(world.packed_bytes() == world.size_bytes());
  CHECK(foretold <= world.size_bytes() + world.size_bytes() / 100);  // packing frees runs that the pyramid outgrew
  CHECK(foretold + 3 * kQryPageBytes >= world.size_bytes());
  const uint64_t bricks = model.size();
  // Besides these, only pages of the grid, the pyramid's dense level and each array's last page may exist.
  CHECK(world.pool().size_bytes() <= bricks * (64 + 4 + 2) + voxels + 4096);
  CHECK(world.pyramid().size_bytes() <= kLevel3Nodes * 16 + bricks * 8 + 16384);
  const auto stats = world.stats();
  REQUIRE(stats);
  CHECK(stats->load_factor > 0.6);
  CHECK(world.size_bytes() == world.pool().size_bytes() + world.pyramid().size_bytes() + stats->size_bytes);
  CHECK(memory.held_bytes < world.size_bytes() + 10 * 4096);
}

TEST_CASE("packed: the bytes are the same whatever the order of edits and the number of threads") {
  test::LimitedMemory memory;
  const Model model = all_kinds();
  World one = world_of(model, memory);
  World other = world_of({}, memory);
  std::vector<World::BrickWrite> writes = writes_of(model);
  std::mt19937 random(3);
  std::shuffle(writes.begin(), writes.end(), random);
  for (size_t i = 0; i < writes.size(); i += 50)
    REQUIRE(other.write(std::span(writes).subspan(i, std::min<size_t>(50, writes.size() - i))));
  REQUIRE(one.pack());
  const char* const before = std::getenv("QUARRY_THREADS");
  const std::string saved = before ? before : "";
  setenv("QUARRY_THREADS", "1", 1);
  REQUIRE(other.pack());
  if (before) setenv("QUARRY_THREADS", saved.c_str(), 1);
  else unsetenv("QUARRY_THREADS");
  CHECK((bytes_of(one) == bytes_of(other)));
  const auto pairs = one.grid().enumerate(true), its_pairs = other.grid().enumerate(true);
  REQUIRE(pairs);
  REQUIRE(its_pairs);
  CHECK(pairs->keys == its_pairs->keys);
  CHECK(pairs->values == its_pairs->values);
}

TEST_CASE("packed: when memory ends while packing or turning back, the world is as before") {
  test::LimitedMemory memory;
  const Model model = all_kinds();
  World world = world_of(model, memory);
  for (const bool pack : {true, false}) {
    bool done = false;
    for (size_t after = 0; !done; ++after) {
      REQUIRE(after < 100);
      const size_t held = memory.held_bytes;
      memory.refuse_after = after;
      const auto result = pack ? world.pack() : world.unpack();
      memory.refuse_after = size_t(-1);
      done = bool(result);
      if (done) break;
      CHECK(result.error().code == ErrorCode::out_of_memory);
      CHECK(memory.held_bytes == held);
      REQUIRE(world.packed() != pack);
      require_same(world, model);
    }
    REQUIRE(world.packed() == pack);
    require_same(world, model);
  }
}

TEST_CASE("packed: a document edits, undoes and redoes on a packed world as on any other") {
  auto document = Document::create_empty();
  REQUIRE(document);
  Edit edit;
  edit.shape = Shape::sphere;
  edit.a = {0, 0, 0};
  edit.radius = 20;
  edit.material = 7;
  REQUIRE(document->apply(0, edit));
  const uint64_t voxels = document->world().voxel_count();
  REQUIRE(document->pack());
  edit.a = {30, 0, 0};
  edit.material = 9;
  REQUIRE(document->apply(0, edit));
  CHECK_FALSE(document->world().packed());
  CHECK(document->world().get({0, 0, 0}) == 7);
  CHECK(document->world().get({30, 0, 0}) == 9);
  REQUIRE(document->pack());
  REQUIRE(document->undo());
  CHECK(document->world().voxel_count() == voxels);
  CHECK(document->world().get({30, 0, 0}) == 0);
  REQUIRE(document->pack());
  REQUIRE(document->redo());
  CHECK(document->world().get({30, 0, 0}) == 9);
}

TEST_CASE(
    "shrink_to_fit: a world under edit comes down to its bricks and 18 bytes for each, and small edits make it "
    "little larger",
    "[one-caller]") {
  test::LimitedMemory memory;
  std::mt19937 random(5);
  Model model;
  for (int z = 0; z < 64; ++z)
    for (int y = 0; y < 8; ++y)
      for (int x = 0; x < 81; ++x) model[{x, y, z}] = brick_with(1 + uint32_t(random() % 3), random);
  World world = world_of(Model{}, memory);
  {
    const std::vector<World::BrickWrite> writes = writes_of(model);
    for (size_t i = 0; i < writes.size(); i += 1000)
      REQUIRE(world.write(std::span(writes).subspan(i, std::min<size_t>(1000, writes.size() - i))));
  }
  const Box3 bounds = world.bounds();
  const uint64_t version = world.version(), id = world.pyramid().id(), bricks = model.size();
  REQUIRE(world.shrink_to_fit());
  require_same(world, model);
  CHECK(world.bounds() == bounds);
  CHECK(world.version() == version);
  CHECK(world.pyramid().id() != id);  // a device is sent all of it again
  CHECK(world.pool().size_bytes() == bricks * 576);
  const uint64_t fitted = world.size_bytes();
  CHECK(fitted <= bricks * (576 + 18) + kLevel3Nodes * 16);
  CHECK(memory.held_bytes <= fitted + 8 * 4096);
  REQUIRE(world.shrink_to_fit());
  CHECK(world.size_bytes() == fitted);
  // One more brick takes a small part of the current memory; the grid and the pyramid have room for it.
  const std::vector<World::BrickWrite> one{{{200, 0, 0}, brick_with(1, random)}};
  model[{200, 0, 0}] = one[0].value;
  REQUIRE(world.write(one));
  require_same(world, model);
  CHECK(world.size_bytes() <= fitted + fitted / 64);
}

TEST_CASE("shrink_to_fit: memory of bricks that went is given back, and fitting after every edit wears nothing out") {
  test::LimitedMemory memory;
  Model model = all_kinds();
  World world = world_of(model, memory);
  std::mt19937 random(9);
  Model many;
  for (int z = 0; z < 30; ++z)
    for (int y = 0; y < 30; ++y)
      for (int x = 0; x < 30; ++x) many[{200 + x, y, z}] = brick_with(2, random);
  REQUIRE(world.write(writes_of(many)));
  std::vector<World::BrickWrite> gone = writes_of(many);
  for (World::BrickWrite& write : gone) write.value = {};
  REQUIRE(world.write(gone));
  REQUIRE(world.size_bytes() > many.size() * 576);
  REQUIRE(world.shrink_to_fit());
  require_same(world, model);
  CHECK(world.pool().size_bytes() == model.size() * 576);
  for (int i = 0; i < 100; ++i) {
    const Model one{{{300 + i, 0, 0}, brick_with(3, random)}};
    REQUIRE(world.write(writes_of(one)));
    model.insert(one.begin(), one.end());
    REQUIRE(world.shrink_to_fit());
    REQUIRE(world.pool().size_bytes() == model.size() * 576);
    REQUIRE(world.pool().mask_slabs().slabs().size() < 12);
  }
  require_same(world, model);
  REQUIRE(world.clear());
  REQUIRE(world.shrink_to_fit());
  CHECK(world.pool().size_bytes() == 0);
  require_same(world, {});
  REQUIRE(world.pack());
  REQUIRE(world.shrink_to_fit());  // nothing to do
  CHECK(world.packed());
}

TEST_CASE(
    "shrink_to_fit: bricks move within their memory, with the handles of volumes and history; snapshots keep theirs") {
  test::LimitedMemory memory;
  {
    std::mt19937 random(6);
    Scene scene;
    scene.volumes.resize(2);
    scene.instances.resize(2);
    scene.instances[1].volume = 1;
    scene.instances[1].offset = {4, 0, 400};  // so its bricks are made of parts
    for (int z = 0; z < 40; ++z)
      for (int x = 0; x < 300; ++x) scene.volumes[0].bricks.put({x - 100, 0, z - 20}, brick_with(5, random));
    for (int z = 0; z < 12; ++z)
      for (int x = 0; x < 12; ++x)
        scene.volumes[1].bricks.put({x, z % 5, z}, x % 4 ? brick_with(9, random) : full_brick(7));
    WorldMemory where;
    where.memory = &memory;
    auto document = Document::create(scene, where);
    REQUIRE(document);
    std::vector<World::BrickWrite> holes, changed;
    for (int z = 0; z < 40; ++z)
      for (int x = 0; x < 300; ++x)
        if (random() % 3) holes.push_back({{x - 100, 0, z - 20}, {}});
        else if (random() % 50 == 0) changed.push_back({{x - 100, 0, z - 20}, brick_with(30, random)});
    const auto bricks_of = [](const BrickMap& map) {
      Model model;
      for (const auto& [at, brick] : map.bricks()) model[at] = Brick{brick.mask, brick.materials};
      return model;
    };
    const BrickMap& volume = document->scene().volumes[0].bricks;
    std::optional<BrickMap> snapshot = volume;
    const Model at_first = bricks_of(volume);
    REQUIRE(document->write(0, holes, "holes"));
    document->set_history_budget(1);
    REQUIRE(document->write(0, changed, "changed"));
    document->set_history_budget(0);  // now the bricks of the holes are the snapshot's alone
    const Model before = bricks_of(volume);
    REQUIRE(document->write(1, std::vector<World::BrickWrite>{{{0, 0, 1}, brick_with(3, random)}}, "one"));
    Model model;
    document->world().for_each_brick([&](Int3 at, const Brick& brick) { model[at] = brick; });
    const Model two = bricks_of(document->scene().volumes[1].bricks);
    const auto check = [&] {
      require_same(document->world(), model);
      CHECK((bricks_of(volume) == before));
      CHECK((bricks_of(document->scene().volumes[1].bricks) == two));
      if (snapshot) CHECK((bricks_of(*snapshot) == at_first));
    };
    REQUIRE(document->shrink_to_fit());
    check();
    const BrickPool& pool = document->world().pool();
    const uint64_t with_snapshot = pool.size_bytes();
    snapshot.reset();
    REQUIRE(document->shrink_to_fit());
    check();
    CHECK(pool.size_bytes() == pool.live() * sizeof(Brick));
    CHECK(pool.size_bytes() < with_snapshot / 2);
    REQUIRE(document->undo());
    REQUIRE(document->undo());
    REQUIRE(document->redo());
    REQUIRE(document->redo());
    check();
  }
  CHECK(memory.blocks() == 0);
}

TEST_CASE("shrink_to_fit: a trim needs the memory of the grid and the pyramid at once, not that of the bricks") {
  test::LimitedMemory memory;
  std::mt19937 random(8);
  Model model;
  for (int z = 0; z < 100; ++z)
    for (int y = 0; y < 4; ++y)
      for (int x = 0; x < 100; ++x) model[{x, y, z}] = brick_with(1 + uint32_t(random() % 3), random);
  World world = world_of(model, memory);
  std::vector<World::BrickWrite> gone;
  for (auto it = model.begin(); it != model.end();) {
    if (random() % 5 < 2) {
      ++it;
      continue;
    }
    gone.push_back({it->first, {}});
    it = model.erase(it);
  }
  REQUIRE(world.write(gone));
  const size_t held = memory.held_bytes;
  const uint64_t tables = world.grid().block().size_bytes + world.pyramid().size_bytes();
  memory.most_held_bytes = 0;
  REQUIRE(world.shrink_to_fit());
  require_same(world, model);
  CHECK(memory.most_held_bytes <= held + tables);
  CHECK(tables < held / 8);  // otherwise this shows nothing
  CHECK(world.pool().size_bytes() == model.size() * sizeof(Brick));
  CHECK(one_more_edit_works(world, model));
}

TEST_CASE("shrink_to_fit: when memory ends on the way, the world is as before") {
  for (const bool sparse : {false, true}) {
    test::LimitedMemory memory;
    Model model = all_kinds();
    World world = world_of(model, memory);
    if (sparse) {
      std::vector<World::BrickWrite> gone;
      for (auto it = model.begin(); it != model.end();) {
        if (it->second.count() % 2) {
          ++it;
          continue;
        }
        gone.push_back({it->first, {}});
        it = model.erase(it);
      }
      REQUIRE(world.write(gone));
    }
    bool done = false;
    for (size_t after = 0; !done; ++after) {
      REQUIRE(after < 100);
      memory.refuse_after = after;
      const auto result = world.shrink_to_fit();
      memory.refuse_after = size_t(-1);
      done = bool(result);
      if (!done) CHECK(result.error().code == ErrorCode::out_of_memory);
      require_same(world, model);
    }
    CHECK(one_more_edit_works(world, model));
  }
}

TEST_CASE("shrink_to_fit: a document's world is fitted when it is made, and edits go on from there") {
  Scene scene;
  scene.volumes.resize(1);
  scene.instances.resize(1);
  std::mt19937 random(2);
  for (int z = 0; z < 40; ++z)
    for (int x = 0; x < 40; ++x) scene.volumes[0].bricks.put({x, 0, z}, brick_with(5, random));
  auto document = Document::create(std::move(scene));
  REQUIRE(document);
  CHECK(document->world().pool().size_bytes() == 1600 * 576);
  Edit edit;
  edit.shape = Shape::sphere;
  edit.a = {100, 100, 100};
  edit.radius = 30;
  edit.material = 7;
  REQUIRE(document->apply(0, edit));
  CHECK(document->world().get({100, 100, 100}) == 7);
  REQUIRE(document->undo());
  CHECK(document->world().voxel_count() == 8000);
}

}  // namespace packed_test
