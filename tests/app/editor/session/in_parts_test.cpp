// SPDX-License-Identifier: Apache-2.0
// in_parts_test.cpp - documents that take more than they may of a device's memory, beside a session on the host: the
// same edits, picks and history, and the same voxels in the files.
#include <array>
#include <catch2/catch.hpp>
#include <functional>
#include <glm/geometric.hpp>
#include <random>
#include <utility>
#include <vector>

#include "app/editor/session/document_session.hpp"
#include "app/editor/session/volume_changes.hpp"
#include "base/memory_budget.hpp"
#include "tests/app/sanitized.hpp"
#include "tests/test_data.hpp"
#include "voxel/io/formats.hpp"

namespace in_parts_test {

using namespace quarry;
using namespace quarry::app;
namespace fs = std::filesystem;

namespace {

// A world of loose voxels, of which every brick is stored: 69 MB on a device at home there.
constexpr Int3 kBricks{72, 24, 64};

fs::path loose_world(const fs::path& dir, Int3 bricks = kBricks) {
  Scene scene;
  scene.volumes.push_back({"world", {}, {}});
  scene.instances.push_back({});
  std::mt19937 random(7);
  for (int32_t z = 0; z < bricks.z; ++z)
    for (int32_t y = 0; y < bricks.y; ++y)
      for (int32_t x = 0; x < bricks.x; ++x) {
        Brick brick;
        for (int i = 0; i < 3; ++i) brick.set(uint32_t(random() % kVoxelsPerBrick), uint8_t(1 + random() % 9));
        scene.volumes[0].bricks.put({x, y, z}, SharedBrick(brick));
      }
  fs::path file = dir / "loose.quarry";
  REQUIRE(io::write_scene(scene, file));
  return file;
}

WorldPlace place_at(engine::Home home, uint64_t device_memory_bytes) {
  WorldPlace place;
  place.home = home;
  place.prepare_home = [](engine::Home its) {
    return engine::home_memory(its, nullptr, engine::SharingMode::automatic);
  };
  place.device_memory_bytes = device_memory_bytes;
  // Nothing is drawn.
  place.frames = [](bool) { return device::Store::Frames{}; };
  return place;
}

// Little more than the least, which is told to who asks for less.
uint64_t small_part(engine::Home home, const fs::path& file) {
  Session session(place_at(home, 1000), {});
  const auto opened = session.open(file);
  REQUIRE_FALSE(opened);
  const std::string& message = opened.error().message;
  const size_t at = message.find(" takes ");
  INFO(message);
  REQUIRE(at != std::string::npos);
  return (std::stoull(message.substr(at + 7)) + 2) << 20;
}

Edit random_edit(std::mt19937& random) {
  const auto within = [&](int32_t bricks) { return int32_t(random() % uint32_t(bricks * 8)); };
  Edit edit;
  edit.shape = std::array{Shape::sphere, Shape::box, Shape::line}[random() % 3];
  edit.mode = std::array{Mode::add, Mode::remove, Mode::paint, Mode::fill}[random() % 4];
  edit.a = {within(kBricks.x), within(kBricks.y), within(kBricks.z)};
  edit.b = edit.a + Int3{int32_t(random() % 60), int32_t(random() % 40), int32_t(random() % 50)};
  edit.radius = 2 + double(random() % 20);
  edit.material = uint8_t(1 + random() % 20);
  return edit;
}

SceneFacts facts_of(const Session& session) {
  const auto whole = session.whole_scene();
  REQUIRE(whole);
  return *scene_facts(*whole, Axes::y_up);
}

}  // namespace

TEST_CASE(
    "session: a document that takes more than its part of a device's memory is edited, picked, undone, saved and "
    "reopened as one on the host is, and never is there as a whole",
    "[one-caller]") {
  const fs::path dir = test::scratch_dir("session-in-parts"), file = loose_world(dir), twin_file = dir / "twin.quarry";
  const engine::Home home = device::cuda_device_count() > 0 ? engine::Home::device : engine::Home::emulated;
  fs::copy_file(file, twin_file);
  const uint64_t part = small_part(home, file);
  auto session = std::make_unique<Session>(place_at(home, part), dir / "recovery");
  Session twin(place_at(engine::Home::host, UINT64_MAX), dir / "recovery");
  REQUIRE(session->open(file));
  REQUIRE(twin.open(twin_file));
  REQUIRE(session->device_world()->pages());
  const auto counters = [&] { return session->device_world()->pages()->counters(); };
  CHECK(counters().absent == counters().pages);
  std::mt19937 random(20261128);
  constexpr int kSteps = test::kThreadSanitized ? 12 : test::kSanitized ? 24 : 60;
  for (int step = 0; step < kSteps; ++step) {
    INFO("step " << step);
    const auto what = random() % 10;
    std::vector<Edit> edits;
    // Strokes go from page to page.
    const bool stroke = what < 3;
    for (int dabs = stroke ? 6 : what < 7 ? 1 : 0; dabs > 0; --dabs) edits.push_back(random_edit(random));
    for (Session* const one : {session.get(), &twin}) {
      if (stroke) REQUIRE(one->begin_stroke());
      for (const Edit& edit : edits) {
        const auto made = one->apply(edit);
        INFO((made ? std::string() : made.error().message));
        REQUIRE(made);
      }
      if (stroke) REQUIRE(one->end_stroke());
      for (auto times = what == 7 ? 1 : what == 8 ? 4 : 0; times > 0; --times) REQUIRE(one->undo());
      for (auto times = what == 9 ? 3 : 0; times > 0; --times) REQUIRE(one->redo());
    }
    if (step % 20 == 13) {
      session = std::make_unique<Session>(place_at(home, part), dir / "recovery");
      REQUIRE(session->open(file));
    }
    REQUIRE(session->shown().voxels == twin.shown().voxels);
    REQUIRE(session->shown().bricks == twin.shown().bricks);
    REQUIRE(session->shown().bounds == twin.shown().bounds);
    REQUIRE(session->steps().size() == twin.steps().size());
    REQUIRE(session->step_position() == twin.step_position());
    for (int i = 0; i < 4; ++i) {
      app::Ray ray;
      // Not on the voxels' planes, where homes may differ in which of two comes first.
      ray.origin = {double(random() % 600) - 50.3, double(random() % 300) + 20.3, double(random() % 500) + 0.3};
      const glm::dvec3 to{double(random() % 500), double(random() % 190), double(random() % 440)};
      ray.direction = glm::normalize(to - ray.origin + glm::dvec3(0.1));
      const auto met = session->pick(ray), expected = twin.pick(ray);
      REQUIRE(met.has_value() == expected.has_value());
      if (!met) continue;
      REQUIRE(met->voxel == expected->voxel);
      REQUIRE(met->material == expected->material);
    }
    if (step % 8 == 7) REQUIRE(facts_of(*session).col_sum == facts_of(twin).col_sum);
  }
  CHECK(counters().absent > 0);
  CHECK(counters().left > 0);
  const auto state = session->device_world()->home->state();
  REQUIRE(state);
  CHECK(state->store.size_bytes <= part + std::max<uint64_t>(part / 10, 24'000'000));
  // All the way back, and forth.
  const size_t steps = twin.steps().size();
  for (const size_t position : {size_t(0), steps}) {
    REQUIRE(session->go_to_step(position));
    REQUIRE(twin.go_to_step(position));
    REQUIRE(facts_of(*session).col_sum == facts_of(twin).col_sum);
  }
  // Under a new name it goes on there, and the old file stays as it is.
  const fs::path elsewhere = dir / "elsewhere.quarry";
  REQUIRE(session->save_as(elsewhere));
  REQUIRE(session->file() == elsewhere);
  const uint64_t saved = facts_of(twin).col_sum;
  for (Session* const one : {session.get(), &twin}) {
    Edit edit;
    edit.shape = Shape::sphere;
    edit.mode = Mode::fill;
    edit.a = {200, 100, 200};
    edit.radius = 30;
    edit.material = 33;
    REQUIRE(one->apply(edit));
  }
  REQUIRE(facts_of(*session).col_sum == facts_of(twin).col_sum);
  session.reset();
  Session old(place_at(engine::Home::host, UINT64_MAX), {}), now(place_at(engine::Home::host, UINT64_MAX), {});
  REQUIRE(old.open(file));
  REQUIRE(now.open(elsewhere));
  CHECK(facts_of(old).col_sum == saved);
  CHECK(facts_of(now).col_sum == facts_of(twin).col_sum);
  CHECK(now.steps().size() == twin.steps().size());
}

TEST_CASE(
    "session: a document that does not fit its part of a device's memory grows, is eroded and is combined with a file "
    "as "
    "one on the host is, each as one step",
    "[one-caller]") {
  const fs::path dir = test::scratch_dir("session-volume-parts"), file = loose_world(dir),
                 twin_file = dir / "twin.quarry", other = dir / "other.quarry";
  const engine::Home home = device::cuda_device_count() > 0 ? engine::Home::device : engine::Home::emulated;
  fs::copy_file(file, twin_file);
  Scene small;
  small.volumes.push_back({"small", {}, {}});
  small.instances.push_back({});
  for (int32_t i = 0; i < 60; ++i)
    for (int32_t j = 0; j < 30; ++j)
      small.volumes[0].bricks.put({i, 3, j}, SharedBrick::full(uint8_t(1 + (i ^ j) % 5)));
  REQUIRE(io::write_scene(small, other));
  Session session(place_at(home, small_part(home, file)), dir / "recovery"),
      twin(place_at(engine::Home::host, UINT64_MAX), dir / "recovery");
  REQUIRE(session.open(file));
  REQUIRE(twin.open(twin_file));
  const auto expect_same = [&] {
    REQUIRE(session.shown().voxels == twin.shown().voxels);
    REQUIRE(session.shown().bounds == twin.shown().bounds);
    REQUIRE(session.steps().size() == twin.steps().size());
    REQUIRE(session.step_position() == twin.step_position());
  };
  const std::vector<std::function<Result<uint64_t>(Session&)>> changes = {
      [&](Session& one) { return one.combine(other, BooleanKind::difference); },
      [&](Session& one) { return one.change(grow(Connectivity::edges, 2)); },
      [&](Session& one) { return one.combine(other, BooleanKind::union_of); }};
  for (size_t i = 0; i < changes.size(); ++i) {
    INFO("change " << i);
    const uint64_t flushes = session.device_world()->pages()->counters().flushes;
    const auto made = changes[i](session), expected = changes[i](twin);
    INFO((made ? std::string() : made.error().message));
    REQUIRE(made);
    REQUIRE(expected);
    REQUIRE(*made == *expected);
    CHECK(session.device_world()->pages()->counters().flushes > flushes);
    expect_same();
  }
  REQUIRE(facts_of(session).col_sum == facts_of(twin).col_sum);
  for (Session* const one : {&session, &twin}) REQUIRE(one->go_to_step(1));
  expect_same();
  for (Session* const one : {&session, &twin}) REQUIRE(one->go_to_step(2));
  REQUIRE(facts_of(session).col_sum == facts_of(twin).col_sum);
}

TEST_CASE(
    "session: a file that is copied in the middle of a stroke for which pages have left, as a kill would leave it, has "
    "the document as before the stroke",
    "[one-caller]") {
  const fs::path dir = test::scratch_dir("session-cut-stroke"), file = loose_world(dir), copy = dir / "copy.quarry";
  const engine::Home home = device::cuda_device_count() > 0 ? engine::Home::device : engine::Home::emulated;
  Session session(place_at(home, small_part(home, file)), dir / "recovery");
  REQUIRE(session.open(file));
  const auto in_copy = [&] {
    for (const char* suffix : {"", "-wal"})
      fs::copy_file(file.string() + suffix, copy.string() + suffix, fs::copy_options::overwrite_existing);
    Session there(place_at(engine::Home::host, UINT64_MAX), {});
    REQUIRE(there.open(copy));
    return std::pair(facts_of(there).col_sum, there.steps().size());
  };
  const auto flushes = [&] { return session.device_world()->pages()->counters().flushes; };
  const auto sweep = [&](uint8_t material) -> Edit {
    Edit edit;
    edit.mode = Mode::paint;
    edit.material = material;
    edit.b = {0, kBricks.y * 8 - 1, kBricks.z * 8 - 1};
    return edit;
  };
  int cut = 0;
  for (uint8_t stroke = 0; stroke < 2; ++stroke) {
    const auto before = in_copy();
    REQUIRE(session.begin_stroke());
    Edit dab = sweep(uint8_t(20 + stroke));
    for (uint64_t known = flushes(); dab.a.x < kBricks.x * 8; dab.a.x += 64) {
      dab.b.x = dab.a.x + 63;
      REQUIRE(session.apply(dab));
      if (std::exchange(known, flushes()) == flushes()) continue;
      ++cut;
      REQUIRE(in_copy() == before);
    }
    REQUIRE(session.end_stroke());
    REQUIRE(in_copy() == std::pair(facts_of(session).col_sum, before.second + 1));
  }
  CHECK(cut > 2);
}

TEST_CASE(
    "session: without a device a document that does not fit the memory for documents is edited in parts, by host "
    "threads, and one that fits is there as a whole",
    "[one-caller]") {
  const fs::path dir = test::scratch_dir("session-host-parts"), small = loose_world(dir, {8, 8, 8}),
                 small_copy = dir / "small.quarry";
  fs::rename(small, small_copy);
  const fs::path file = loose_world(dir, {112, 48, 64}), twin_file = dir / "twin.quarry";
  fs::copy_file(file, twin_file);
  // What earlier cases have left is given back by who has too little.
  CHECK(MemoryBudget(1, "--memory").available_bytes() == 0);
  const MemoryBudget all(uint64_t(1) << 50, "--memory");
  const uint64_t held = (uint64_t(1) << 50) - all.available_bytes();
  const MemoryBudget some(held + 200'000'000, "--memory");
  io::ReadOptions options;
  options.budget = &some;
  Session session(place_at(engine::Home::host, UINT64_MAX), dir / "recovery");
  REQUIRE(session.open(small_copy, options));
  CHECK_FALSE(session.on_device());
  const auto opened = session.open(file, options);
  INFO((opened ? std::string() : opened.error().message));
  REQUIRE(opened);
  REQUIRE(session.on_device());
  CHECK(session.at_home() == engine::Home::host);
  engine::ResidentPages& pages = *session.device_world()->pages();
  CHECK(pages.counters().absent == pages.counters().pages);
  Session twin(place_at(engine::Home::host, UINT64_MAX), dir / "recovery");
  REQUIRE(twin.open(twin_file));
  std::mt19937 random(4);
  for (int step = 0; step < (test::kSanitized ? 8 : 20); ++step) {
    const Edit edit = random_edit(random);
    for (Session* const one : {&session, &twin}) {
      if (step % 5 == 4) REQUIRE(one->undo());
      else REQUIRE(one->apply(edit));
    }
    REQUIRE(session.shown().voxels == twin.shown().voxels);
    REQUIRE(session.shown().bounds == twin.shown().bounds);
  }
  // All of it, in one edit.
  Edit paint;
  paint.mode = Mode::paint;
  paint.material = 3;
  paint.b = {895, 383, 511};
  for (Session* const one : {&session, &twin}) REQUIRE(one->apply(paint));
  CHECK(pages.counters().left > 0);
  REQUIRE(facts_of(session).col_sum == facts_of(twin).col_sum);
  for (Session* const one : {&session, &twin}) REQUIRE(one->undo());
  REQUIRE(facts_of(session).col_sum == facts_of(twin).col_sum);
  REQUIRE(session.steps().size() == twin.steps().size());
  // Where nothing can be had in parts, it is said what does not fit.
  WorldPlace place = place_at(engine::Home::host, UINT64_MAX);
  place.prepare_home = {};
  Session other(place, {});
  const auto refused = other.open(twin_file, options);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::out_of_memory);
}

TEST_CASE(
    "session: a document that one grid does not hold is opened, edited and picked wherever the camera goes, undone, "
    "and "
    "its file has all of it",
    "[one-caller]") {
  const fs::path dir = test::scratch_dir("session-wide"), file = dir / "wide.quarry";
  // Blocks of 16^3 voxels, each half a million from the next.
  const std::vector<Int3> places{{0, 0, 0}, {520'000, 4'000, -70'000}, {-1'500'000, -900'000, 650'000}};
  {
    Scene scene;
    scene.volumes.push_back({"world", {}, {}});
    scene.instances.push_back({});
    for (size_t i = 0; i < places.size(); ++i)
      for (int32_t z = 0; z < 2; ++z)
        for (int32_t y = 0; y < 2; ++y)
          for (int32_t x = 0; x < 2; ++x)
            scene.volumes[0].bricks.put(brick_of(places[i]) + Int3{x, y, z}, SharedBrick::full(uint8_t(i + 1)));
    REQUIRE(io::write_scene(scene, file));
  }
  std::vector<engine::Home> homes{engine::Home::host};
  if (device::cuda_device_count() > 0) homes.push_back(engine::Home::device);
  for (const engine::Home home : homes) {
    INFO("home " << int(home));
    Session session(place_at(home, UINT64_MAX), dir / "recovery");
    MemoryBudget budget(uint64_t(4) << 30, "--memory");
    io::ReadOptions options;
    options.budget = &budget;
    REQUIRE(session.open(file, options));
    REQUIRE(session.on_device());
    engine::ResidentPages& pages = *session.device_world()->pages();
    uint64_t voxels = 3 * 4096;
    CHECK(session.shown().voxels == voxels);
    for (const Int3 place : places) {
      INFO("at " << place.x);
      const glm::dvec3 middle(place.x + 8.5, place.y + 8.5, place.z + 8.5), eye = middle + glm::dvec3(100.25, 0, 0);
      REQUIRE(pages.look_from({eye.x, eye.y, eye.z}));
      const auto pick = session.pick({eye, glm::dvec3(-1, 0, 0)});
      REQUIRE(pick);
      CHECK(pick->voxel == place + Int3{15, 8, 8});
      CHECK(pick->normal == Int3{1, 0, 0});
      CHECK(pick->t == Approx(92.75));
      Edit edit;
      edit.shape = Shape::sphere;
      edit.mode = Mode::add;
      edit.a = pick->voxel + Int3{10, 0, 0};
      edit.radius = 2;
      edit.material = 9;
      const auto changed = session.apply(edit);
      REQUIRE(changed);
      CHECK(*changed == 33);
      voxels += *changed;
      CHECK(session.shown().voxels == voxels);
    }
    // A stroke from place to place is one step.
    REQUIRE(session.begin_stroke());
    for (const Int3 place : {places[1], places[0], places[2]}) {
      Edit dab;
      dab.shape = Shape::sphere;
      dab.mode = Mode::add;
      dab.a = place + Int3{-40, 0, 0};
      dab.radius = 1;
      dab.material = 3;
      const auto changed = session.apply(dab);
      REQUIRE(changed);
      CHECK(*changed == 7);
    }
    REQUIRE(session.end_stroke());
    CHECK(session.shown().voxels == voxels + 21);
    CHECK(session.steps().size() == 4);
    REQUIRE(session.undo());
    CHECK(session.shown().voxels == voxels);
    // Undone from where the camera is now; and one of them made again.
    for (int i = 0; i < 3; ++i) REQUIRE(session.undo());
    CHECK(session.shown().voxels == 3 * 4096);
    REQUIRE(session.redo());
    CHECK(session.shown().voxels == 3 * 4096 + 33);
    const auto scene = session.whole_scene();
    REQUIRE(scene);
    CHECK(scene->volumes[0].bricks.voxel_count() == 3 * 4096 + 33);
    CHECK(scene->volumes[0].bricks.get(places[0] + Int3{25, 8, 8}) == 9);
    REQUIRE(session.undo());
  }
  CHECK(io::Store::read(file)->volumes[0].bricks.voxel_count() == 3 * 4096);
}

}  // namespace in_parts_test
