// SPDX-License-Identifier: Apache-2.0
// long_session_test.cpp - an editor that is open for hours: strokes, undo, picks, saves and reopenings leave no more
// memory, files or threads behind, however many there are. QUARRY_LONG=N: N edits at each home, such as 100000.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "app/editor/session/document_session.hpp"
#include "tests/app/sanitized.hpp"
#include "tests/held_by_process.hpp"
#include "tests/test_data.hpp"

namespace long_session_test {

using namespace quarry;
using namespace quarry::app;
namespace fs = std::filesystem;

namespace {

// In one box, so that what the document needs does not grow with the session.
Edit random_edit(std::mt19937& random) {
  constexpr Shape kShapes[] = {Shape::sphere, Shape::box, Shape::line};
  constexpr Mode kModes[] = {Mode::fill, Mode::fill, Mode::add, Mode::remove, Mode::remove, Mode::paint, Mode::replace};
  Edit edit;
  edit.shape = kShapes[random() % 3];
  edit.mode = kModes[random() % 7];
  edit.material = uint8_t(1 + random() % 255);
  edit.from = uint8_t(1 + random() % 255);
  edit.radius = double(1 + random() % 10);
  edit.a = {int32_t(random() % 80), int32_t(random() % 80), int32_t(random() % 80)};
  edit.b = edit.a + Int3{int32_t(random() % 16), int32_t(random() % 16), int32_t(random() % 16)};
  return edit;
}

}  // namespace

TEST_CASE("session: many strokes, undo, saves and reopenings hold no more at their end than at their start",
          "[one-caller]") {
  const char* const wanted = std::getenv("QUARRY_LONG");
  const long edits = wanted ? std::max(1000L, std::atol(wanted)) : test::kSanitized ? 200 : 1000;
  const long reopens = edits / 10;
  const engine::Home device = device::cuda_device_count() > 0 ? engine::Home::device : engine::Home::emulated;
  for (const engine::Home home : {engine::Home::host, device}) {
    CAPTURE(engine::to_string(home));
    const fs::path dir = test::scratch_dir("session-long"), file = dir / "world.quarry", copy = dir / "copy.quarry";
    const WorldPlace place{{}, {}, home, [](engine::Home its) {
                             return engine::home_memory(its, nullptr, engine::SharingMode::automatic);
                           }};
    Session session(place, dir / "recovery");
    session.set_history_budget(uint64_t(2) << 20);
    REQUIRE(session.start_new());
    REQUIRE(session.save_as(file));
    std::mt19937 random(uint32_t(home) + 3);
    test::HeldByProcess first;
    long round = 0;
    for (long i = 1; i <= edits;) {
      REQUIRE(session.begin_stroke());
      for (uint32_t part = 1 + random() % 4; part > 0; --part, ++i) REQUIRE(session.apply(random_edit(random)));
      REQUIRE(session.end_stroke());
      if (random() % 4 == 0 && session.can_undo()) REQUIRE(session.undo());
      if (random() % 8 == 0 && session.can_redo()) REQUIRE(session.redo());
      (void)session.pick({{40.5f, 200.0f, 40.5f}, {0, -1, 0}});
      if (i < reopens * (round + 1)) continue;
      ++round;
      // Closed and opened again, and saved under another name, in turn.
      if (round % 2 == 0) REQUIRE(session.save_as(copy));
      const uint64_t voxels = session.shown().voxels;
      REQUIRE(session.open(round % 2 == 0 ? copy : file));
      REQUIRE(session.shown().voxels == voxels);
      REQUIRE(session.save_as(file));
      fs::remove(copy);
      // An edit that changes something opens the file's log, which was closed with the file. Of two materials at one
      // place one is new there, also after the last mark was undone.
      uint64_t marked = 0;
      for (const uint8_t material : {uint8_t(1), uint8_t(2)}) {
        Edit mark;
        mark.mode = Mode::fill;
        mark.material = material;
        marked += session.apply(mark).value_or(0);
      }
      REQUIRE(marked > 0);
      const test::HeldByProcess now = test::held_by_process();
      if (first.files == 0 && round >= 3) first = now;
      if (first.files == 0) continue;
      CAPTURE(i);
      CHECK(now.files == first.files);
      CHECK(now.threads == first.threads);
      // Sanitizers keep what was freed.
      if (!test::kSanitized) CHECK(now.resident_bytes <= first.resident_bytes + (uint64_t(24) << 20));
    }
    const test::HeldByProcess last = test::held_by_process();
    if (wanted)
      std::printf("%s: %ld edits; resident %.1f, %.1f MB; files %zu, %zu\n", engine::to_string(home), edits,
                  double(first.resident_bytes) / 1e6, double(last.resident_bytes) / 1e6, first.files, last.files);
    REQUIRE(first.files > 0);
    REQUIRE(session.on_device() == (home != engine::Home::host));
  }
}

}  // namespace long_session_test
