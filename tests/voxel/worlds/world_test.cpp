// SPDX-License-Identifier: Apache-2.0
// world_test.cpp - World against std::map<Int3, Brick> under random batches; failures injected at every allocation.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>

#include "tests/voxel/limited_memory.hpp"
#include "voxel/worlds/world.hpp"

namespace world_test {

using namespace quarry;

namespace {

using Model = std::map<Int3, Brick>;

Brick random_brick(std::mt19937& random) {
  Brick brick;
  if (random() % 4 == 0) return full_brick(uint8_t(1 + random() % 3));
  const uint32_t count = random() % 3 == 0 ? 0 : 1 + uint32_t(random() % 40);
  for (uint32_t n = 0; n < count; ++n) brick.set(uint32_t(random() % 512), uint8_t(1 + random() % 255));
  return brick;
}

std::vector<World::BrickWrite> random_batch(std::mt19937& random, size_t count, int reach) {
  std::map<Int3, Brick> batch;
  while (batch.size() < count) {
    const auto pick = [&](int r) { return int(random() % uint32_t(2 * r)) - r; };
    const Int3 at{pick(reach), pick(std::min(reach, 512)), pick(reach)};
    if (brick_in_world(at)) batch[at] = random_brick(random);
  }
  std::vector<World::BrickWrite> writes;
  for (const auto& [at, brick] : batch) writes.push_back({at, brick});
  std::shuffle(writes.begin(), writes.end(), random);
  return writes;
}

void write_to(Model& model, std::span<const World::BrickWrite> writes) {
  for (const auto& write : writes)
    if (write.value.empty()) model.erase(write.brick);
    else model[write.brick] = write.value;
}

void require_same(const World& world, const Model& model) {
  uint64_t voxels = 0;
  Box3 bounds;
  std::set<uint32_t> keys;
  for (const auto& [at, brick] : model) {
    keys.insert(brick_key(at));
    Brick found;
    if (!world.find_brick(at, &found) || !(found == brick)) FAIL("brick " << at.x << ' ' << at.y << ' ' << at.z);
    voxels += brick.count();
    for (uint32_t i = 0; i < kVoxelsPerBrick; ++i) {
      if (!brick.get(i)) continue;
      const Int3 v = voxel_from_index(i) + Int3{at.x * 8, at.y * 8, at.z * 8};
      bounds = united(bounds, {v, v});
      if (world.get(v) != brick.get(i)) FAIL("voxel " << v.x << ' ' << v.y << ' ' << v.z);
    }
  }
  REQUIRE(world.voxel_count() == voxels);
  REQUIRE(world.brick_count() == model.size());
  REQUIRE(world.bounds() == bounds);
  REQUIRE((world.pyramid().keys() == std::vector<uint32_t>(keys.begin(), keys.end())));
  const auto pairs = world.grid().enumerate(true);
  REQUIRE(pairs);
  REQUIRE((pairs->keys == std::vector<uint32_t>(keys.begin(), keys.end())));
  // Each brick has an index of its own, but for those full of one material: they have one together.
  std::set<Int3> own;
  std::set<uint8_t> full;
  for (const auto& [at, brick] : model)
    if (const uint8_t material = full_material(brick)) full.insert(material);
    else own.insert(at);
  REQUIRE(std::set<uint32_t>(pairs->values.begin(), pairs->values.end()).size() == own.size() + full.size());
  auto key = keys.begin();
  world.for_each_brick([&](Int3 at, const Brick& brick) {
    if (key == keys.end() || brick_key(at) != *key++ || !(brick == model.at(at))) FAIL("for_each_brick");
  });
  REQUIRE(key == keys.end());
}

World make_world(const WorldMemory& memory = {}) {
  auto world = World::create(memory);
  REQUIRE(world);
  return std::move(*world);
}

}  // namespace

TEST_CASE("world: random batches leave the grid, the pool and the pyramid with what was written") {
  World world = make_world();
  Model model;
  std::mt19937 random(1);
  for (int round = 0; round < 60; ++round) {
    const auto batch = random_batch(random, 1 + random() % 400, round % 5 == 0 ? 1024 : 8);
    const uint64_t version = world.version();
    REQUIRE(world.write(batch));
    REQUIRE(world.version() > version);
    write_to(model, batch);
    if (round % 6 == 0) require_same(world, model);
  }
  require_same(world, model);
  REQUIRE(world.get({8192, 0, 0}) == 0);
  REQUIRE(world.get(kWorldMax) == 0);
  REQUIRE(world.size_bytes() >= world.pool().size_bytes() + world.pyramid().size_bytes());
  const auto stats = world.stats();
  REQUIRE(stats);
  REQUIRE(stats->live == model.size());
  REQUIRE(world.clear());
  require_same(world, {});
  REQUIRE(world.pool().live() == 0);
  const auto batch = random_batch(random, 100, 10);
  REQUIRE(world.write(batch));
  Model fresh;
  write_to(fresh, batch);
  require_same(world, fresh);
}

TEST_CASE("world: it grows past many pages of the grid and slabs of the pool") {
  World world = make_world();
  Model model;
  std::vector<World::BrickWrite> batch;
  Brick brick;
  for (int x = 0; x < 40; ++x)
    for (int y = 0; y < 40; ++y)
      for (int z = 0; z < 40; ++z) {
        brick.set(uint32_t(x + y + z), uint8_t(1 + x));
        batch.push_back({{x - 20, y - 20, z - 20}, brick});
      }
  REQUIRE(world.write(batch));
  write_to(model, batch);
  require_same(world, model);
  REQUIRE(world.grid().view().page_count > 10);
  REQUIRE(world.pool().mask_slabs().slabs().size() > 1);
}

TEST_CASE("world: a batch beyond the world, or with a brick twice, is refused whole") {
  World world = make_world();
  std::mt19937 random(2);
  Model model;
  const auto first = random_batch(random, 50, 6);
  REQUIRE(world.write(first));
  write_to(model, first);
  for (const Int3 bad : {Int3{1024, 0, 0}, {0, -513, 0}, {1023, 511, 1023}}) {
    auto batch = random_batch(random, 30, 6);
    batch.push_back({bad, random_brick(random)});
    const auto refused = world.write(batch);
    REQUIRE_FALSE(refused);
    REQUIRE(refused.error().code == ErrorCode::out_of_bounds);
    require_same(world, model);
  }
  auto batch = random_batch(random, 30, 6);
  batch.push_back(batch[3]);
  const auto refused = world.write(batch);
  REQUIRE_FALSE(refused);
  REQUIRE(refused.error().code == ErrorCode::invalid_argument);
  require_same(world, model);
}

TEST_CASE("world: a full pool refuses and loses nothing, and takes every batch after which the world fits") {
  World world = make_world({.max_bricks = 100});
  std::mt19937 random(3);
  Brick one;
  one.set(5, 5);
  Model model;
  std::vector<World::BrickWrite> fill;
  for (int i = 0; i < 95; ++i) fill.push_back({{i, 0, 0}, one});
  REQUIRE(world.write(fill));
  write_to(model, fill);
  std::vector<World::BrickWrite> six;
  for (int i = 0; i < 6; ++i) six.push_back({{i, 1, 0}, one});
  const auto refused = world.write(six);
  REQUIRE_FALSE(refused);
  REQUIRE(refused.error().code == ErrorCode::full);
  require_same(world, model);
  // All are removed and as many others added: the same number of bricks.
  std::vector<World::BrickWrite> swap;
  for (int i = 0; i < 95; ++i) swap.push_back({{i, 0, 0}, Brick{}});
  for (int i = 0; i < 100; ++i) swap.push_back({{i, 2, 0}, one});
  std::shuffle(swap.begin(), swap.end(), random);
  REQUIRE(world.write(swap));
  write_to(model, swap);
  require_same(world, model);
}

TEST_CASE(
    "world: a thousand bricks full of one material take one brick of the pool, packed or not, and count as a "
    "thousand") {
  World world = make_world({.max_bricks = 1000});
  Model model;
  std::vector<World::BrickWrite> writes;
  for (int i = 0; i < 1000; ++i) writes.push_back({{i % 10, i / 10 % 10, i / 100}, full_brick(7)});
  REQUIRE(world.write(writes));
  write_to(model, writes);
  require_same(world, model);
  CHECK(world.pool().live() == 1);
  REQUIRE(world.pack());
  require_same(world, model);
  CHECK(world.pool().live() == 1);
  CHECK(world.pool().material_slabs().size_bytes() <= 1024);
  REQUIRE(world.unpack());
  require_same(world, model);
  const std::vector<World::BrickWrite> more{{{20, 0, 0}, full_brick(7)}};
  const auto refused = world.write(more);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::full);
  // One of them gets a hole, others another material, some go.
  std::vector<World::BrickWrite> changes{{{0, 0, 0}, full_brick(7)}, {{1, 0, 0}, full_brick(8)}, {{2, 0, 0}, Brick{}}};
  changes[0].value.set(100, 0);
  REQUIRE(world.write(changes));
  write_to(model, changes);
  require_same(world, model);
  CHECK(world.pool().live() == 3);
  // And back: the brick with the hole is free again.
  REQUIRE(world.write(writes));
  write_to(model, writes);
  require_same(world, model);
  CHECK(world.pool().live() == 2);
  REQUIRE(world.shrink_to_fit());
  require_same(world, model);
  REQUIRE(world.clear());
  CHECK(world.pool().live() == 0);
  CHECK(world.brick_count() == 0);
}

TEST_CASE("world: memory refused at any point of a write leaves the world as it was") {
  test::LimitedMemory memory;
  {
    World world = make_world({.memory = &memory});
    std::mt19937 random(4);
    Model model;
    const auto first = random_batch(random, 300, 10);
    REQUIRE(world.write(first));
    write_to(model, first);
    // Enough for more slabs of the pool, more pages of the grid and more blocks of the pyramid.
    auto large = random_batch(random, kBricksPerSlab + 2000, 1000);
    for (auto& write : large)
      if (write.value.empty()) write.value.set(1, 1);
    size_t granted = 0;
    for (;; ++granted) {
      REQUIRE(granted < 20);
      memory.refuse_after = granted;
      const uint64_t version = world.version();
      const auto result = world.write(large);
      memory.refuse_after = size_t(-1);
      if (result) break;
      REQUIRE((result.error().code == ErrorCode::out_of_memory || result.error().code == ErrorCode::full));
      REQUIRE(world.version() == version);
      require_same(world, model);
    }
    REQUIRE(granted >= 3);  // some allocations were refused
    write_to(model, large);
    require_same(world, model);
  }
  REQUIRE(memory.blocks() == 0);
}

TEST_CASE("world: filling an empty one is like writing all its bricks, and whatever is refused leaves it empty",
          "[one-caller]") {
  std::mt19937 random(11);
  Model model;
  BrickMap bricks;
  for (int round = 0; round < 12; ++round) {
    test::LimitedMemory memory;
    WorldMemory place;
    place.memory = &memory;
    write_to(model, random_batch(random, 400, 6 + 40 * round));
    bricks = BrickMap();
    for (const auto& [at, brick] : model) bricks.put(at, brick);
    // Its bricks are the map's, of another pool, or some of its own.
    const bool own = round % 2 == 1;
    auto filled = World::create(place);
    REQUIRE(filled);
    BrickMap some = bricks;
    if (own) REQUIRE(some.move_to(filled->pool()));
    const uint32_t before = filled->pool().live();
    if (round < 6) {
      int refused = 0;
      for (size_t granted = 0;; ++granted, ++refused) {
        memory.refuse_after = granted;
        const auto done = filled->fill(some);
        memory.refuse_after = size_t(-1);
        if (done) break;
        CHECK(done.error().code == ErrorCode::out_of_memory);
        require_same(*filled, {});
        REQUIRE(filled->pool().live() == before);
      }
      CHECK(refused > 1);
    } else {
      std::atomic<bool> cancel{true};
      CHECK(filled->fill(some, {{}, &cancel}).error().code == ErrorCode::cancelled);
      require_same(*filled, {});
      REQUIRE(filled->fill(some));
    }
    require_same(*filled, model);
    CHECK(filled->fill(some).error().code == ErrorCode::invalid_argument);
    // It goes on like any other.
    Model later = model;
    const auto batch = random_batch(random, 100, 6 + 40 * round);
    write_to(later, batch);
    REQUIRE(filled->write(batch));
    require_same(*filled, later);
  }
  World small = std::move(*World::create({nullptr, nullptr, uint32_t(model.size() - 1)}));
  CHECK(small.fill(bricks).error().code == ErrorCode::full);
  bricks.put({1024, 0, 0}, full_brick(1));
  CHECK(World::create()->fill(bricks).error().code == ErrorCode::out_of_bounds);
}

TEST_CASE("world: a mirror fed by the dirty keys alone equals the world") {
  World world = make_world();
  std::mt19937 random(5);
  Model mirror, model;
  for (int round = 0; round < 30; ++round) {
    for (int writes = 0; writes < 3; ++writes) {
      const auto batch = random_batch(random, 20, 5);
      REQUIRE(world.write(batch));
      write_to(model, batch);
    }
    if (round == 17) {
      REQUIRE(world.clear());
      model.clear();
    }
    const auto keys = world.take_dirty_keys();
    for (size_t i = 0; i < keys.size(); ++i) {
      if (i) REQUIRE(keys[i - 1] < keys[i]);
      const Int3 at = brick_from_key(keys[i]);
      Brick brick;
      if (world.find_brick(at, &brick)) mirror[at] = brick;
      else mirror.erase(at);
    }
    REQUIRE((mirror == model));
  }
  REQUIRE(world.take_dirty_keys().empty());
  REQUIRE_FALSE(world.take_dirty_level2().empty());
}

TEST_CASE("world: an executor that is not the host's is refused by name") {
  struct Elsewhere final : hashgrid::Executor {
    std::unique_ptr<hashgrid::Executor> host = hashgrid::make_host_executor(1);
    hashgrid::ExecutorKind kind() const override { return hashgrid::ExecutorKind::cuda; }
    uint32_t parallelism() const override { return 1; }
    MemorySource& memory() override { return host->memory(); }
    Result<void> upload(void* to, const void* from, size_t n) override { return host->upload(to, from, n); }
    Result<void> download(void* to, const void* from, size_t n) override { return host->download(to, from, n); }
    hashgrid::BulkOperations<hashgrid::GridView>& pairs() override { return host->pairs(); }
    hashgrid::BulkOperations<hashgrid::CompactView>& compact() override { return host->compact(); }
    hashgrid::IndexOperations<uint32_t>& index32() override { return host->index32(); }
    hashgrid::IndexOperations<uint64_t>& index64() override { return host->index64(); }
    hashgrid::MultiOperations& multi() override { return host->multi(); }
    MemorySource& host_memory() override { return host->host_memory(); }
    Result<std::unique_ptr<hashgrid::Lane>> make_lane() override { return host->make_lane(); }
  } elsewhere;
  const auto world = World::create({.executor = &elsewhere});
  REQUIRE_FALSE(world);
  REQUIRE(world.error().code == ErrorCode::unsupported);
  REQUIRE(world.error().message.find("cuda") != std::string::npos);
}

}  // namespace world_test
