// SPDX-License-Identifier: Apache-2.0
// page_cache_test.cpp - pages of a world file that are read behind the caller's back: what is there is what the file
// has, wishes are met in their order, and memory stays within its bounds.
#include "engine/pages/page_cache.hpp"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <map>
#include <new>
#include <random>
#include <thread>

#include "engine/sharing/residency.hpp"
#include "tests/file_bytes.hpp"
#include "tests/test_data.hpp"

namespace page_cache_test {

using namespace quarry;
using namespace quarry::engine;
namespace fs = std::filesystem;

namespace {

constexpr uint64_t kMiB = uint64_t(1) << 20;

// 24 pages, 4 x 3 x 2, of some 400 bricks each that hardly shrink when they are compressed, and of some
// that are full.
struct World {
  fs::path file;
  std::vector<uint32_t> pages;
  std::map<uint32_t, std::map<uint32_t, BrickMaterials>> bricks;  // by page and key
  std::map<uint32_t, std::map<uint32_t, uint8_t>> full;
};

World make(const char* name) {
  World world;
  std::mt19937 random(7);
  Scene scene;
  scene.volumes.push_back({"v", {}, {}});
  scene.instances.push_back({});
  for (int i = 0; i < 24; ++i) {
    const Int3 low{i % 4 * 16 - 32, i / 4 % 3 * 16, i / 12 * 16};
    const uint32_t page = page_of(low);
    world.pages.push_back(page);
    for (int n = 0; n < 400; ++n) {
      const Int3 at = low + Int3{int32_t(random() % 16), int32_t(random() % 16), int32_t(random() % 16)};
      Brick brick;
      const bool full = n % 10 == 0;
      for (uint32_t v = 0; v < kVoxelsPerBrick; ++v) brick.set(v, full ? uint8_t(n / 10 + 1) : uint8_t(random()));
      scene.volumes[0].bricks.put(at, brick);
      world.full[page].erase(brick_key(at));
      world.bricks[page].erase(brick_key(at));
      if (full) world.full[page][brick_key(at)] = brick.materials[0];
      else world.bricks[page][brick_key(at)] = brick.materials;
    }
  }
  world.file = test::scratch_dir(name) / "world.quarry";
  REQUIRE(io::Store::save(scene, world.file));
  return world;
}

void check_page(const World& world, uint32_t number, const SharedPage& page) {
  REQUIRE(page);
  INFO("page " << number);
  std::map<uint32_t, uint8_t> full;
  for (size_t i = 0; i < page->full_keys.size(); ++i) full[page->full_keys[i]] = page->full[i];
  CHECK(full == world.full.at(number));
  std::map<uint32_t, BrickMaterials> bricks;
  auto key = page->keys.begin();
  for (const auto& part : page->parts)
    for (const BrickMaterials& materials : part) bricks[*key++] = materials;
  CHECK(key == page->keys.end());
  CHECK((bricks == world.bricks.at(number)));
}

PageMemory::Allocate plain(std::atomic<uint64_t>& held) {
  return [&held](size_t bytes) -> std::shared_ptr<void> {
    held += bytes;
    return {::operator new(bytes, std::align_val_t(64)), [&held, bytes](void* at) {
              ::operator delete(at, std::align_val_t(64));
              held -= bytes;
            }};
  };
}

// A world in its file, and a cache of its pages, which may be told to follow that.
struct Cached {
  Cached(const char* name, uint64_t most_bytes, bool follows = true)
      : world(make(name)),
        store([&] {
          auto opened = io::Store::open(world.file);
          REQUIRE(opened);
          return std::move(*opened);
        }()),
        cache(most_bytes, plain(held), 0) {
    if (follows) cache.follow(store);
  }
  World world;
  io::Store store;
  std::atomic<uint64_t> held = 0;  // bytes
  PageCache cache;
};

// Until `done`, or a minute is over.
template <class Done>
bool soon(const Done& done) {
  for (int i = 0; i < 6000; ++i) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace

TEST_CASE("page cache: what is wanted is there soon, and is what the file has") {
  const World world = make("page-cache-wanted");
  auto store = io::Store::open(world.file);
  REQUIRE(store);
  std::atomic<uint64_t> held = 0;
  {
    PageCache cache(64 * kMiB, plain(held), 0);
    CHECK(!cache.find(world.pages[0]));
    REQUIRE(cache.want(world.pages, {}));  // no file yet: of no effect
    cache.follow(*store);
    CHECK(cache.counters().pages == 0);
    const std::vector<uint32_t> wanted(world.pages.begin(), world.pages.begin() + 5),
        near(world.pages.begin() + 5, world.pages.end() - 1);
    REQUIRE(cache.want(wanted, near));
    REQUIRE(soon([&] { return cache.counters().pages == 23; }));
    for (const uint32_t page : world.pages)
      if (page != world.pages.back()) check_page(world, page, cache.find(page));
    CHECK(!cache.find(world.pages.back()));
    CHECK(cache.counters().read == 23);
    CHECK(cache.counters().bytes <= held);
    // What is there is not read again.
    REQUIRE(cache.want(world.pages, {}));
    REQUIRE(soon([&] { return cache.counters().pages == 24; }));
    CHECK(cache.counters().read == 24);
    CHECK(cache.failure());
    // A page without voxels is one, too.
    const uint32_t empty = page_of({1000, 0, 0});
    REQUIRE(cache.want({empty}, {}));
    REQUIRE(soon([&] { return cache.find(empty) != nullptr; }));
    CHECK(cache.find(empty)->keys.empty());
    // A page that somebody still has outlives all.
    const SharedPage kept = cache.find(world.pages[3]);
    cache.let_go();
    CHECK(!cache.find(world.pages[3]));
    CHECK(cache.counters().pages == 0);
    check_page(world, world.pages[3], kept);
  }
  CHECK(held == 0);
}

TEST_CASE("page cache: memory stays within its bounds, and what is asked for now is what stays") {
  // of which a block is had: room for some twenty pages
  Cached its("page-cache-bounds", 1 * kMiB);
  const World& world = its.world;
  PageCache& cache = its.cache;
  // A smaller memory than all pages take: some leave for others, in the order of being asked for.
  const std::vector<uint32_t>& pages = world.pages;
  for (int round = 0; round < 40; ++round) {
    const std::vector<uint32_t> wanted{pages[round % 24], pages[(round + 5) % 24]};
    REQUIRE(cache.want(wanted, {pages[(round + 9) % 24]}));
    REQUIRE(soon([&] { return cache.find(wanted[0]) && cache.find(wanted[1]); }));
    for (const uint32_t page : wanted) check_page(world, page, cache.find(page));
    CHECK(its.held <= 4 * kMiB);
  }
}

TEST_CASE(
    "page cache: where memory is short nothing leaves for what is merely near, and what is wanted comes all the same") {
  // 64 pieces of 128 bricks: 21 pages of three pieces.
  Cached its("page-cache-short", 1);
  const World& world = its.world;
  PageCache& cache = its.cache;
  // Handles keep most of the memory from everybody.
  std::vector<SharedPage> kept;
  REQUIRE(cache.want({world.pages.begin(), world.pages.begin() + 12}, {}));
  REQUIRE(soon([&] { return cache.counters().pages == 12; }));
  for (int i = 0; i < 12; ++i) kept.push_back(cache.find(world.pages[size_t(i)]));
  for (int i = 0; i < 12; ++i) cache.forget(world.pages[size_t(i)]);
  REQUIRE(cache.want({world.pages.begin(), world.pages.begin() + 9}, {world.pages.begin() + 9, world.pages.end()}));
  REQUIRE(soon([&] { return cache.counters().pages == 9; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  for (int i = 0; i < 9; ++i) check_page(world, world.pages[size_t(i)], cache.find(world.pages[size_t(i)]));
  CHECK(cache.counters().pages == 9);
  CHECK(cache.failure());  // no room is none
  // For what is wanted the others leave.
  REQUIRE(cache.want({world.pages[14]}, {}));
  REQUIRE(soon([&] { return cache.find(world.pages[14]) != nullptr; }));
  check_page(world, world.pages[14], cache.find(world.pages[14]));
  // Who reads at once gets all, room or not.
  size_t count = 0;
  REQUIRE(cache.read(
      its.store, world.pages,
      [&](size_t number, const SharedPage& page) -> Result<void> {
        CHECK(number == count++);
        check_page(world, world.pages[number], page);
        kept.push_back(page);
        return {};
      },
      3));
  CHECK(count == 24);
  CHECK(its.held == 4 * kMiB);
}

TEST_CASE("page cache: what is forgotten while it is read is not kept, and neither waits for the other") {
  Cached its("page-cache-forget", 64 * kMiB);
  const World& world = its.world;
  PageCache& cache = its.cache;
  // `put` is called when the pages have been read and are not here yet, or are: forgotten then, none may stay.
  REQUIRE(cache.read(
      its.store, world.pages,
      [&](size_t number, const SharedPage&) -> Result<void> {
        for (const uint32_t page : {world.pages[number], world.pages[(number + 1) % 24]}) cache.forget(page);
        return {};
      },
      16));
  CHECK(cache.counters().pages == 0);
  // Against the thread, for as long as it reads.
  for (int round = 0; round < 20; ++round) {
    REQUIRE(cache.want(world.pages, {}));
    for (const uint32_t page : world.pages) cache.forget(page);
    REQUIRE(cache.want({}, {}));
  }
  cache.pause();
  cache.follow(its.store);
  REQUIRE(cache.want(world.pages, {}));
  REQUIRE(soon([&] { return cache.counters().pages == 24; }));
  for (const uint32_t page : world.pages) check_page(world, page, cache.find(page));
}

TEST_CASE("page cache: a page that cannot be read is told once, and lets the others come") {
  const World world = make("page-cache-damaged");
  auto store = io::Store::open(world.file);  // which has looked at all of it
  REQUIRE(store);
  // The middle of the file is damaged behind its back.
  std::vector<uint8_t> bytes = test::file_bytes(world.file);
  REQUIRE(bytes.size() > 3 * kMiB);
  for (size_t i = bytes.size() / 3; i < bytes.size() / 3 + 40'000; ++i) bytes[i] ^= 0x55;
  (void)test::write_bytes(world.file, bytes);
  std::atomic<uint64_t> held = 0;
  PageCache cache(64 * kMiB, plain(held), 0);
  cache.follow(*store);
  REQUIRE(cache.want(world.pages, {}));
  Result<void> failure;
  REQUIRE(soon([&] {
    if (auto now = cache.failure(); !now) failure = now;
    return std::ranges::all_of(world.pages,
                               [&](uint32_t page) { return cache.find(page) != nullptr || cache.failed(page); });
  }));
  REQUIRE(!failure);
  CHECK(failure.error().code == ErrorCode::malformed_input);
  CHECK(failure.error().message.find("world.quarry") != std::string::npos);
  const auto failed = std::ranges::count_if(world.pages, [&](uint32_t page) { return cache.failed(page); });
  CHECK(failed >= 1);
  CHECK(failed <= 3);
  for (const uint32_t page : world.pages)
    if (!cache.failed(page)) check_page(world, page, cache.find(page));
  // It is not tried again, until its file has changed.
  const uint64_t read = cache.counters().read;
  REQUIRE(cache.want(world.pages, {}));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(cache.counters().read == read);
  CHECK(cache.failure());
  const uint32_t one = *std::ranges::find_if(world.pages, [&](uint32_t page) { return cache.failed(page); });
  cache.forget(one);
  CHECK(!cache.failed(one));
  REQUIRE(cache.want({one}, {}));
  REQUIRE(soon([&] { return cache.failed(one); }));
  CHECK(!cache.failure());
}

TEST_CASE("page cache: whoever needs a page at once, or lets the file go, does not wait for what is read behind") {
  Cached its("page-cache-turns", 64 * kMiB, false);
  const World& world = its.world;
  PageCache& cache = its.cache;
  for (int round = 0; round < 30; ++round) {
    cache.follow(its.store);
    REQUIRE(cache.want(world.pages, {}));
    const std::vector<uint32_t> one{world.pages[size_t(round) % 24]};
    REQUIRE(cache.read(
        its.store, one,
        [&](size_t, const SharedPage& page) -> Result<void> {
          check_page(world, one[0], page);
          return {};
        },
        1));
    check_page(world, one[0], cache.find(one[0]));
    // Others use the file meanwhile.
    REQUIRE(its.store.step_names(0, 0));
    if (round % 2) cache.let_go();
    else cache.pause();
  }
  CHECK(cache.failure());
}

TEST_CASE("page cache: without memory that devices copy from pages still come to who reads them") {
  const World world = make("page-cache-none");
  auto store = io::Store::open(world.file);
  REQUIRE(store);
  PageCache cache(
      64 * kMiB, [](size_t) -> std::shared_ptr<void> { return nullptr; }, 0);
  cache.follow(*store);
  REQUIRE(cache.want(world.pages, {}));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(cache.counters().pages == 0);
  REQUIRE(cache.read(
      *store, world.pages,
      [&](size_t number, const SharedPage& page) -> Result<void> {
        CHECK(!page->kept);
        check_page(world, world.pages[number], page);
        return {};
      },
      4));
}

}  // namespace page_cache_test
