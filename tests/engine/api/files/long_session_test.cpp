// SPDX-License-Identifier: Apache-2.0
// long_session_test.cpp - a session that goes on for hours: edits, undo, pictures, flushes, copies and reopenings of
// an attached world leave no more memory, handles or files open behind, however many there are. QUARRY_LONG=N: N edits
// at each home, such as 100000.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "tests/app/sanitized.hpp"
#include "tests/engine/api/files/twin.hpp"
#include "tests/held_by_process.hpp"
#include "tests/test_data.hpp"

namespace long_session_test {

using namespace quarry::test;
namespace fs = std::filesystem;

namespace {

// What a session holds, at a point at which nothing is under way.
struct Held {
  HeldByProcess process;
  uint64_t device_bytes = 0, history_bytes = 0;
};
Held held_by(qry_world* world) {
  qry_home_state home = QRY_HOME_STATE_INIT;
  require_ok(qry_world_get_home(world, &home));
  qry_memory_history history = QRY_MEMORY_HISTORY_INIT;
  qry_memory_state memory = QRY_MEMORY_STATE_INIT;
  memory.next = &history;
  require_ok(qry_world_get_memory(world, &memory));
  return {held_by_process(), home.device_bytes, history.used_bytes};
}

constexpr uint64_t kHistoryBytes = uint64_t(2) << 20;

// Of a world whose voxels are in one box, so that what it needs does not grow with the session.
qry_edit random_edit(std::mt19937& random) {
  qry_edit edit = QRY_EDIT_INIT;
  constexpr uint32_t kShapes[] = {QRY_SHAPE_SPHERE, QRY_SHAPE_BOX, QRY_SHAPE_LINE};
  constexpr uint32_t kModes[] = {QRY_MODE_FILL,   QRY_MODE_FILL,   QRY_MODE_ADD,
                                 QRY_MODE_REMOVE, QRY_MODE_REMOVE, QRY_MODE_PAINT};
  edit.shape = kShapes[random() % 3];
  edit.mode = kModes[random() % 6];
  edit.material = 1 + uint32_t(random() % 255);
  edit.radius = double(1 + random() % 12);
  for (int a = 0; a < 3; ++a) {
    edit.a[a] = int32_t(random() % 100);
    edit.b[a] = edit.a[a] + int32_t(random() % 20);
  }
  return edit;
}

}  // namespace

TEST_CASE("c_api: a session of many edits, pictures, flushes and reopenings holds no more at its end than at its start",
          "[one-caller]") {
  const char* const wanted = std::getenv("QUARRY_LONG");
  const long edits = wanted ? std::max(1000L, std::atol(wanted)) : kSanitized ? 400 : 2000;
  const long reopens = edits / 10;
  const fs::path dir = scratch_dir("api_long_session"), file = dir / "w.quarry", copy = dir / "copy.quarry";
  // One device for all of it, as a program has.
  const Worlds worlds(QRY_DEVICE_LAZY);
  qry_device_state device = QRY_DEVICE_STATE_INIT;
  const bool draws = qry_context_get_device(worlds.context(), &device) == QRY_OK;
  if (!draws) skip("no Vulkan device to draw with");
  qry_render_info look = QRY_RENDER_INFO_INIT;
  look.width = look.height = 16;
  look.shadow_rays = look.ambient_rays = 0;
  look.camera.position[0] = look.camera.position[1] = look.camera.position[2] = 200;
  std::vector<uint8_t> picture(16 * 16 * 4);
  for (const uint32_t home : homes(worlds)) {
    CAPTURE(home);
    std::mt19937 random(home + 5);
    OneWorld world = new_world(worlds, home);
    require_ok(qry_world_set_history_budget(world.get(), kHistoryBytes));
    require_ok(qry_world_attach(world.get(), file.string().c_str()));
    Held first;
    uint64_t changes = 0, pictures = 0;
    for (long i = 1; i <= edits; ++i) {
      const qry_edit edit = random_edit(random);
      uint64_t ticket = 0;
      require_ok(qry_world_submit_edit(world.get(), &edit, &ticket));
      ++changes;
      if (i % 5 == 0) REQUIRE(qry_world_undo(world.get(), nullptr) >= 0);
      if (i % 10 == 0) REQUIRE(qry_world_redo(world.get(), nullptr) >= 0);
      if (draws) {  // which publishes it
        require_ok(qry_world_render(world.get(), &look, picture.data(), picture.size(), 0));
        ++pictures;
      }
      if (i % 50 == 0) require_ok(qry_world_flush(world.get()));
      if (i % 97 == 0) require_ok(qry_world_trim(world.get()));
      if (i % reopens) continue;
      // The file is closed and opened again, and a copy is made of it.
      require_ok(qry_world_flush(world.get()));
      qry_save_info save = QRY_SAVE_INFO_INIT;
      const std::string path = copy.string();
      save.path = path.c_str();
      require_ok(qry_world_save(world.get(), &save));
      const qry_world_state before = state_of(world.get());
      require_ok(qry_world_detach(world.get()));
      world = opened(worlds, file, home, QRY_OPEN_WITHOUT_HISTORY);
      REQUIRE(state_of(world.get()).voxel_count == before.voxel_count);
      require_ok(qry_world_set_history_budget(world.get(), kHistoryBytes));
      // What has gone for the budget stays in the file, and can be undone from there.
      require_ok(qry_world_attach(world.get(), file.string().c_str()));
      const Held now = held_by(world.get());
      CHECK(now.history_bytes <= kHistoryBytes + (uint64_t(1) << 20));
      if (i == 3 * reopens) first = now;
      if (i > 3 * reopens) {
        CAPTURE(i);
        CHECK(now.process.files == first.process.files);
        CHECK(now.process.threads == first.process.threads);
        CHECK(now.device_bytes <= first.device_bytes + (uint64_t(32) << 20));
        // Sanitizers keep what was freed.
        if (!kSanitized) CHECK(now.process.resident_bytes <= first.process.resident_bytes + (uint64_t(24) << 20));
      }
    }
    const Held last = held_by(world.get());
    INFO(first.process.resident_bytes << " and " << last.process.resident_bytes << " bytes resident");
    if (wanted)
      std::printf("home %u: %llu edits, %llu pictures; resident %.1f, %.1f MB; device %.1f, %.1f MB; files %zu, %zu\n",
                  home, static_cast<unsigned long long>(changes), static_cast<unsigned long long>(pictures),
                  double(first.process.resident_bytes) / 1e6, double(last.process.resident_bytes) / 1e6,
                  double(first.device_bytes) / 1e6, double(last.device_bytes) / 1e6, first.process.files,
                  last.process.files);
    REQUIRE(changes == uint64_t(edits));
    require_ok(qry_world_detach(world.get()));
    fs::remove(file);
  }
}

}  // namespace long_session_test
