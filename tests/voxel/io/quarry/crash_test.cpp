// SPDX-License-Identifier: Apache-2.0
// crash_test.cpp - kill -9 in the middle of edits: every acknowledged edit is in the file afterwards, and the file
// holds a whole number of edits.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <random>

#include "tests/test_data.hpp"
#include "tests/voxel/io/quarry/killed_child.hpp"
#include "tests/voxel/io/quarry/store_edits.hpp"

namespace crash_test {

using namespace quarry;
using io::Store;
using test::EditScenario;
namespace fs = std::filesystem;

namespace {

// The child plays the scenario from its current step on and reports each step that the store acknowledged.
[[noreturn]] void edit_and_report(const fs::path& file, EditScenario scenario,
                                  const std::function<void(int32_t)>& report) {
  auto store = Store::open(file);
  if (!store) _exit(2);
  for (;;) {
    if (!scenario.next(&*store)) _exit(3);
    report(scenario.steps());
  }
}

}  // namespace

TEST_CASE("crash: after kill -9 at any instant, all acknowledged edits are there, and nothing by halves") {
  const fs::path dir = test::scratch_dir("crash");
  const fs::path file = dir / "w.quarry";
  EditScenario scenario;
  REQUIRE(Store::save(scenario.scene(), file));
  std::mt19937 random(12345);
  int killed_with_log = 0, acknowledged_in_all = 0, unacknowledged_but_there = 0;
  for (int round = 0; round < 60; ++round) {
    INFO("round " << round);
    const int32_t wait_for = scenario.steps() + int32_t(random() % 4);
    const int32_t reported =
        test::last_step_before_kill(scenario.steps(), wait_for, 12000, random,
                                    [&](const auto& report) { edit_and_report(file, scenario, report); });
    killed_with_log += fs::exists(file.string() + "-wal");

    std::vector<UndoRecord> history;
    size_t position = 0;
    Result<Scene> scene = fail(ErrorCode::io, "not read");
    if (round % 2) {
      scene = Store::read(file, {}, &history, &position);
    } else {
      auto store = Store::open(file);
      REQUIRE(store);
      scene = store->read_scene({}, &history, &position);
    }
    INFO((scene ? std::string() : scene.error().message));
    REQUIRE(scene);
    acknowledged_in_all += reported - scenario.steps();
    while (scenario.steps() < reported) REQUIRE(scenario.next(nullptr));
    // One more step may be on disk: committed, but killed before it could be reported.
    if (test::same_scene(scenario.scene(), *scene) != "" || position != scenario.position() ||
        test::same_history(scenario.history(), history) != "") {
      REQUIRE(scenario.next(nullptr));
      ++unacknowledged_but_there;
    }
    REQUIRE(test::same_scene(scenario.scene(), *scene) == "");
    REQUIRE(test::same_history(scenario.history(), history) == "");
    REQUIRE(position == scenario.position());
  }
  INFO("acknowledged " << acknowledged_in_all << ", with a log left " << killed_with_log
                       << ", committed but not reported " << unacknowledged_but_there);
  CHECK(acknowledged_in_all > 60);
  CHECK(killed_with_log > 20);
}

TEST_CASE("crash: saving over a file whose editor was killed leaves the saved scene, not the dead editor's log") {
  const fs::path dir = test::scratch_dir("crash-save");
  const fs::path file = dir / "w.quarry";
  EditScenario scenario;
  REQUIRE(Store::save(scenario.scene(), file));
  std::mt19937 random(1);
  REQUIRE(test::last_step_before_kill(0, 5, 1, random,
                                      [&](const auto& report) { edit_and_report(file, scenario, report); }) >= 5);
  REQUIRE(fs::exists(file.string() + "-wal"));
  Scene other = test::busy_scene();
  REQUIRE(Store::save(other, file));
  CHECK_FALSE(fs::exists(file.string() + "-wal"));
  const auto back = Store::read(file);
  REQUIRE(back);
  CHECK(test::same_scene(other, *back) == "");
}

}  // namespace crash_test
