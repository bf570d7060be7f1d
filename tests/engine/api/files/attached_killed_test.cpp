// SPDX-License-Identifier: Apache-2.0
// attached_killed_test.cpp - a program that edits an attached world and flushes is killed at any instant: its file has
// what the last flush brought there, or one more flush. QUARRY_LONG=1 kills it a thousand times; where a world may be
// at home on a device, two hundred of them there.
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/engine/api/files/twin.hpp"
#include "tests/test_data.hpp"
#include "tests/voxel/io/quarry/killed_child.hpp"

namespace attached_killed_test {

using namespace quarry::test;
namespace fs = std::filesystem;

namespace {

constexpr int kChangesAFlush = 3;

void play(qry_world* world, uint32_t seed, int32_t flush) {
  for (int i = 0; i < kChangesAFlush; ++i) change(world, seed, uint32_t(flush * kChangesAFlush + i));
}

// Another process finds out: CUDA does not go on in the children of one that has asked it.
bool has_device_home() {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    qry_context* context = nullptr;
    qry_context_info info = QRY_CONTEXT_INFO_INIT;
    info.device = QRY_DEVICE_NEVER;
    qry_world_home_info home = QRY_WORLD_HOME_INFO_INIT;
    home.home = QRY_HOME_DEVICE;
    qry_world_info wanted = QRY_WORLD_INFO_INIT;
    wanted.next = &home;
    qry_world* world = nullptr;
    const bool there = qry_context_create(QRY_ABI_VERSION, &info, &context) == QRY_OK &&
                       qry_world_create(context, &wanted, &world) == QRY_OK;
    _exit(there ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  skip("no world is at home on a device here");
  return false;
}

}  // namespace

TEST_CASE(
    "c_api: kill -9 at any instant of edits and flushes: what was flushed is there, what was not is whole or absent") {
  const fs::path dir = scratch_dir("api_attached_killed"), file = dir / "w.quarry";
  std::mt19937 random(11);
  const int rounds = std::getenv("QUARRY_LONG") ? 1000 : 6;
  const bool on_device = has_device_home();
  int with_log = 0, later = 0, killed_on_device = 0;
  for (int round = 0; round < rounds; ++round) {
    const uint32_t home = on_device && round % 5 == 2 ? uint32_t(QRY_HOME_DEVICE)
                          : round % 4 == 3            ? uint32_t(QRY_HOME_EMULATED)
                                                      : uint32_t(QRY_HOME_HOST);
    killed_on_device += home == QRY_HOME_DEVICE;
    INFO("round " << round << ", home " << home);
    for (const auto& entry : fs::directory_iterator(dir)) fs::remove(entry.path());
    const auto seed = uint32_t(round + 1);
    const int32_t reported = last_step_before_kill(-1, int32_t(random() % 4), 30000, random, [&](const auto& report) {
      const Worlds worlds;
      const OneWorld world = new_world(worlds, home);
      require_ok(qry_world_attach(world.get(), file.c_str()));
      for (int32_t flush = 0; flush < 2000; ++flush) {
        play(world.get(), seed, flush);
        require_ok(qry_world_flush(world.get()));
        report(flush);
      }
    });
    with_log += fs::exists(file.string() + "-wal") && fs::file_size(file.string() + "-wal") > 0;
    const Worlds worlds;
    const OneWorld found = opened(worlds, file), twin = new_world(worlds, QRY_HOME_HOST);
    for (int32_t flush = 0; flush <= reported; ++flush) play(twin.get(), seed, flush);
    // All facts: two flushes may differ in what can be redone alone, or in the place in the history.
    const std::vector<Facts> its = all_facts(found.get());
    if (its != all_facts(twin.get())) {
      ++later;
      play(twin.get(), seed, reported + 1);
      REQUIRE((its == all_facts(twin.get())));
    }
    // It goes on where it was.
    require_ok(qry_world_attach(found.get(), file.c_str()));
    play(found.get(), seed, 5000), play(twin.get(), seed, 5000);
    require_ok(qry_world_detach(found.get()));
    REQUIRE((facts_of(opened(worlds, file).get()) == facts_of(twin.get())));
  }
  std::printf("killed %d times, %d of them at home on a device\n", rounds, killed_on_device);
  INFO("with a log " << with_log << ", one flush more than reported " << later);
  CHECK(with_log > rounds / 2);
}

}  // namespace attached_killed_test
