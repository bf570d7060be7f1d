// SPDX-License-Identifier: Apache-2.0
// times_test.cpp - what the steps of an edit took: that each has a time, that the world is the same as untimed, and
// that timing makes nothing fail.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/app/sanitized.hpp"
#include "tests/voxel/device/homes.hpp"
#include "tests/voxel/taken.hpp"
#include "voxel/device/store.hpp"
#include "voxel/worlds/edit_shape.hpp"

namespace times_test {

using namespace quarry;
using device::StepTimes;
using device::Store;
using test::taken;

namespace {

Edit ball(int32_t at, double radius, uint8_t material) {
  Edit edit;
  edit.shape = Shape::sphere;
  edit.mode = material ? Mode::fill : Mode::remove;
  edit.material = material;
  edit.a = {at, at, at};
  edit.radius = radius;
  return edit;
}
Result<Store::Ticket> launched(Store& store, const Edit& edit) {
  return store.edit(*taken(EditShape::create(edit)).solid(), edit);
}
Result<Store::Change> done(Store& store, const Result<Store::Ticket>& ticket) {
  if (!ticket) return tl::unexpected(ticket.error());
  return store.wait(*ticket);
}

std::unique_ptr<Store> store_at(const test::DeviceHome& home) { return taken(Store::create(taken(home.make()))); }

std::set<std::string> names(const StepTimes& times) {
  std::set<std::string> names;
  for (const StepTimes::Time& time : times.steps()) CHECK(names.insert(time.name).second);
  return names;
}
uint64_t launches(const StepTimes& times, const std::string& name) {
  for (const StepTimes::Time& time : times.steps())
    if (time.name == name) return time.launches;
  return 0;
}
const std::set<std::string> kEdit{"touch a box", "cut", "write keys", "write regions", "write tops", "release"};

// Of every kind, with what it launches whatever it meets.
struct Kind {
  const char* name;
  std::function<Result<Store::Change>(Store&)> make;
  std::set<std::string> steps;
};
std::vector<Kind> kinds() {
  const auto voxels = [](Store& store) {
    std::vector<int32_t> xyz;
    std::vector<uint8_t> materials;
    for (int32_t i = 0; i < 300; ++i) {
      for (const int32_t at : {i % 7 * 9, i % 5 * 11, i}) xyz.push_back(at);
      materials.push_back(uint8_t(1 + i % 200));
    }
    return store.write_voxels({xyz.data(), materials.data(), materials.size()});
  };
  return {
      {"a ball", [](Store& s) { return done(s, launched(s, ball(20, 30, 3))); }, kEdit},
      {"a smaller one is removed",
       [](Store& s) { return done(s, launched(s, ball(18, 12, 0))); },
       {"touch a box", "cut", "write keys", "erase keys", "write regions", "write tops", "release"}},
      {"voxels", voxels, {"survey a list", "sort", "assemble bricks", "touch a list", "cut by a list", "write tops"}},
      {"a box",
       [](Store& s) {
         const std::vector<uint8_t> box(20 * 21 * 22, 9);
         return s.write_box({{-30, 4, 5}, {-11, 24, 26}}, box.data(), device::Side::host);
       },
       {"list a box", "touch a list", "write tops"}},
      {"undo",
       [](Store& s) { return done(s, s.undo()); },
       {"settle an undo", "write keys", "erase keys", "write regions", "write tops"}},
      {"redo",
       [](Store& s) { return done(s, s.redo()); },
       {"settle a redo", "write keys", "erase keys", "write regions", "write tops"}},
      {"a flood",
       [](Store& s) {
         Edit edit = ball(-20, 0, 7);
         edit.shape = Shape::connected;
         edit.mode = Mode::paint;
         edit.a = edit.b = {-20, 10, 10};
         return s.edit_connected(edit, 1u << 20);
       },
       {"seed a flood", "flood", "touch a list", "write tops"}},
      {"grow",
       [](Store& s) { return s.grow(18); },
       {"find nodes around", "list nodes around", "grow or erode masks", "grow or erode materials", "write tops"}},
      {"itself is taken away from it",
       [](Store& s) { return s.combine(s, device::Combination::difference); },
       {"list what is combined", "touch a list", "write tops"}},
  };
}

}  // namespace

TEST_CASE("store: every step of an edit has a time, and the world is the one that edits make untimed") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    const auto timed = store_at(home), plain = store_at(home);
    timed->time_edits(true);
    CHECK(timed->edit_times().steps().empty());
    for (const Kind& kind : kinds()) {
      INFO(kind.name);
      const auto begun = std::chrono::steady_clock::now();
      const Store::Change change = taken(kind.make(*timed));
      const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begun;
      const Store::Change expected = taken(kind.make(*plain));
      CHECK(change.voxels > 0);
      CHECK((change.voxels == expected.voxels && change.version == expected.version));
      const StepTimes& times = timed->edit_times();
      const auto steps = names(times);
      CHECK(std::includes(steps.begin(), steps.end(), kind.steps.begin(), kind.steps.end()));
      for (const StepTimes::Time& time : times.steps()) {
        INFO(time.name);
        CHECK((time.launches > 0 && time.ms >= 0));
      }
      CHECK(launches(times, "write tops") == 1);
      CHECK(times.ms() > 0);
      CHECK(times.ms() <= took.count() + (timed->executor().device() >= 0 ? 0.1 : 0));  // of two clocks
      CHECK(plain->edit_times().steps().empty());
    }
    const auto entries = taken(timed->entries()), others = taken(plain->entries());
    REQUIRE(entries.size() == others.size());
    for (size_t i = 0; i < entries.size(); ++i) {
      REQUIRE(entries[i].key == others[i].key);
      const Brick brick = taken(timed->brick(entries[i].index)), other = taken(plain->brick(others[i].index));
      REQUIRE((brick.mask == other.mask && brick.materials == other.materials));
    }
  }
}

TEST_CASE("store: times are the last edit's alone, and those of edits that are under way together are told as one") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    const auto store = store_at(home);
    taken(done(*store, launched(*store, ball(0, 20, 1))));
    store->time_edits(true);
    taken(done(*store, launched(*store, ball(40, 20, 2))));
    CHECK(names(store->edit_times()) == kEdit);
    // What is asked between edits is no part of the next one, nor of the last.
    taken(store->state());
    REQUIRE(store->grid_stats());
    CHECK(names(store->edit_times()) == kEdit);
    taken(done(*store, launched(*store, ball(-40, 20, 3))));
    CHECK(names(store->edit_times()) == kEdit);
    for (const StepTimes::Time& time : store->edit_times().steps()) CHECK(time.launches == 1);

    Store::Ticket last = 0;
    for (int32_t i = 0; i < 5; ++i) last = taken(launched(*store, ball(100 + 30 * i, 9, 4)));
    CHECK(launches(store->edit_times(), "cut") == 1);  // nobody has waited for them
    taken(store->wait(last));
    CHECK(names(store->edit_times()) == kEdit);
    for (const StepTimes::Time& time : store->edit_times().steps()) CHECK(time.launches == 5);

    store->time_edits(false);
    taken(done(*store, store->undo()));
    CHECK(launches(store->edit_times(), "cut") == 5);  // the last that was timed
    store->time_edits(true);
    taken(done(*store, store->undo()));
    CHECK(launches(store->edit_times(), "settle an undo") == 1);
    CHECK(launches(store->edit_times(), "cut") == 0);
  }
}

TEST_CASE("store: a flood of more rounds than events has all of them in its times") {
  for (const test::DeviceHome& home : test::device_homes()) {
    INFO(home.name);
    const auto store = store_at(home);
    store->time_edits(true);
    // A beam of 700 bricks, flooded from one end to the other, brick by brick.
    Edit beam;
    beam.material = 5;
    beam.a = {-2800, 0, 0};
    beam.b = {2799, 0, 0};
    taken(done(*store, launched(*store, beam)));
    Edit flood = beam;
    flood.shape = Shape::connected;
    flood.mode = Mode::paint;
    flood.material = 6;
    flood.b = flood.a;
    CHECK(taken(store->edit_connected(flood, 1u << 20)).voxels == 5600);
    CHECK(launches(store->edit_times(), "flood") >= 700);
    CHECK(names(store->edit_times()).count("cut by a list") == 1);
  }
}

TEST_CASE("store: an edit that has to make room has that in its times, and is made as untimed") {
  device::Emulation emulation;
  int left = 1;
  emulation.refuse = [&](device::StepId step) -> uint32_t {
    return step == device::StepId::cut && left-- == 1 ? uint32_t(device::kMissingBricks) : 0u;
  };
  const auto store = taken(Store::create(device::make_emulated_executor(emulation)));
  store->time_edits(true);
  CHECK(taken(done(*store, launched(*store, ball(0, 20, 1)))).voxels > 30000);
  CHECK(launches(store->edit_times(), "cut") == 2);
}

TEST_CASE("store: a device that is lost at any call answers as without times", "[one-caller]") {
  using device::Fault;
  uint64_t losses = 0;
  for (const Kind& kind : kinds()) {
    INFO(kind.name);
    bool lost = true;
    for (uint64_t number = 1; lost; number += test::kSanitized ? 3 : 1) {
      INFO("call " << number);
      std::vector<std::pair<ErrorCode, std::string>> answers;
      uint64_t calls[2] = {0, 0};
      for (const bool timing : {false, true}) {
        uint64_t left = 0;
        device::Emulation emulation;
        emulation.before = [&](device::DeviceCall) {
          ++calls[timing];
          return left && --left == 0 ? Fault::lost : Fault::none;
        };
        const auto store = taken(Store::create(device::make_emulated_executor(emulation)));
        store->time_edits(timing);
        taken(done(*store, launched(*store, ball(20, 30, 3))));
        taken(done(*store, launched(*store, ball(-20, 30, 4))));
        taken(done(*store, store->undo()));
        left = number;
        const auto change = kind.make(*store);
        lost = !change;
        left = 0;
        answers.emplace_back(lost ? change.error().code : ErrorCode(), lost ? change.error().message : std::string());
        if (lost) CHECK(change.error().code == ErrorCode::device_lost);
        if (lost) CHECK(done(*store, launched(*store, ball(0, 3, 3))).error().code == ErrorCode::device_lost);
      }
      CHECK(answers[0] == answers[1]);
      CHECK(calls[0] == calls[1]);
      losses += lost;
    }
  }
  CHECK(losses > (test::kSanitized ? 20 : 60));
}

}  // namespace times_test
