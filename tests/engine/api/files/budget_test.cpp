// SPDX-License-Identifier: Apache-2.0
// budget_test.cpp - worlds that are larger than their part of a device's memory, beside a world on the host that has
// all of itself.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "tests/app/sanitized.hpp"
#include "tests/engine/api/files/budgeted.hpp"
#include "tests/engine/api/files/faulty.hpp"
#include "tests/engine/api/files/full_disk.hpp"
#include "tests/engine/api/files/twin.hpp"
#include "tests/voxel/io/quarry/killed_child.hpp"

namespace budget_test {

using namespace quarry::test;
using namespace quarry::test::budgeted;
namespace fs = std::filesystem;

TEST_CASE(
    "c_api: a world that is larger than its part of a device's memory has the voxels, counts and bounds of one that is "
    "there as a whole, whatever is edited, undone, redone, flushed and opened again, and keeps to its part") {
  const Worlds worlds;
  const fs::path dir = scratch_dir("api_budget");
  for (const uint32_t home : device_homes(worlds)) {
    INFO("home " << home);
    const fs::path file = dir / ("w" + std::to_string(home) + ".quarry");
    OneWorld world = attached(worlds, home, file);
    const OneWorld twin = new_world(worlds, QRY_HOME_HOST);
    std::mt19937 random(11);
    uint64_t brought = 0, left = 0, flushes = 0;
    const auto note = [&] {
      const Paging paging = paging_of(world.get());
      CHECK(paging.pages.budget_bytes == budget_at(worlds, home));
      qry_memory_bricks held = QRY_MEMORY_BRICKS_INIT;
      qry_memory_state memory = QRY_MEMORY_STATE_INIT;
      memory.next = &held;
      require_ok(qry_world_get_memory(world.get(), &memory));
      INFO("grid " << memory.grid_bytes << " masks " << memory.mask_bytes << " materials " << memory.material_bytes
                   << " pyramid " << memory.pyramid_bytes << " history " << memory.history_bytes << " keys "
                   << held.keys << " bricks " << held.bricks);
      CHECK(held.history_bricks <= held.bricks);
      CHECK(paging.device_bytes <= budget_at(worlds, home) + kSlack);
      return paging.pages;
    };
    for (int i = 0; i < (kSanitized ? 50 : 120); ++i) {
      INFO("change " << i);
      const auto dice = random() % 16;
      if (dice < 3) {
        const qry_result ours = qry_world_undo(world.get(), nullptr);
        REQUIRE(ours >= 0);
        REQUIRE(qry_world_undo(twin.get(), nullptr) == ours);
      } else if (dice < 5) {
        const qry_result ours = qry_world_redo(world.get(), nullptr);
        REQUIRE(ours >= 0);
        REQUIRE(qry_world_redo(twin.get(), nullptr) == ours);
      } else if (dice == 5) {
        require_ok(qry_world_flush(world.get()));
      } else if (dice == 6 && i > 20) {
        const qry_paging_state pages = note();
        brought += pages.brought_pages, left += pages.left_pages, flushes += pages.flushes;
        require_ok(qry_world_flush(world.get()));
        world = OneWorld(nullptr);
        Made made = with_budget(worlds, home, budget_at(worlds, home), file);
        require_ok(made.result);
        world = std::move(made.world);
        const qry_paging_state again = note();
        CHECK(again.absent_pages == again.pages);
      } else {
        const auto same = uint32_t(random());
        const qry_result ours = random_change(world.get(), same);
        INFO(qry_last_error());
        REQUIRE(ours == QRY_OK);
        require_ok(random_change(twin.get(), same));
      }
      expect_same_state(world.get(), twin.get());
      if (i % 8 == 0) {
        std::array<int32_t, 3> min{}, max{};
        for (size_t a = 0; a < 3; ++a) {
          min[a] = kMin[a] - 10 + int32_t(random() % uint32_t(kMax[a] - kMin[a] - 80));
          max[a] = min[a] + 99;
        }
        expect_same_voxels(world.get(), twin.get(), min, max);
      }
    }
    const qry_paging_state pages = note();
    brought += pages.brought_pages, left += pages.left_pages, flushes += pages.flushes;
    CHECK(brought > 20);
    CHECK(left > 20);
    CHECK(flushes > 2);
    CHECK(pages.absent_pages > 0);
    expect_same(world.get(), twin.get());
    // To both ends of the history, which is in the file.
    uint64_t steps = 0;
    for (; qry_world_undo(world.get(), nullptr) == QRY_OK; ++steps) require_ok(qry_world_undo(twin.get(), nullptr));
    CHECK(qry_world_undo(twin.get(), nullptr) == QRY_NOTHING_TO_DO);
    CHECK(state_of(world.get()).voxel_count == 0);
    CHECK(steps > 20);
    while (qry_world_redo(world.get(), nullptr) == QRY_OK) require_ok(qry_world_redo(twin.get(), nullptr));
    CHECK(qry_world_redo(twin.get(), nullptr) == QRY_NOTHING_TO_DO);
    expect_same(world.get(), twin.get());
    // What another program finds.
    require_ok(qry_world_flush(world.get()));
    const OneWorld again = copied(worlds, file, dir / "copy.quarry");
    expect_same(again.get(), twin.get());
    // Saved under another name, as another format.
    const std::string saved = (dir / "saved.quarry").string();
    qry_save_info save = QRY_SAVE_INFO_INIT;
    save.path = saved.c_str();
    require_ok(qry_world_save(world.get(), &save));
    expect_same(opened(worlds, saved).get(), twin.get());
  }
}

TEST_CASE(
    "c_api: pictures of a world with a budget have the bytes of those of a whole one, between edits, whatever of it is "
    "there",
    "[one-caller]") {
  const Worlds worlds(QRY_DEVICE_LAZY);
  const fs::path dir = scratch_dir("api_budget_pictures");
  constexpr uint32_t kWidth = 48, kHeight = 32;
  const auto picture = [&](qry_world* world, const qry_camera& camera, uint32_t view) {
    qry_render_info info = QRY_RENDER_INFO_INIT;
    info.camera = camera;
    info.width = kWidth, info.height = kHeight;
    info.view = view;
    std::vector<uint8_t> rgba(size_t(kWidth) * kHeight * 4);
    require_ok(qry_world_render(world, &info, rgba.data(), rgba.size(), 0));
    return rgba;
  };
  const auto paths = [&](qry_world* world, const qry_camera& camera) {
    qry_paths* sums = nullptr;
    require_ok(qry_paths_create(worlds.context(), &sums));
    qry_paths_info info = QRY_PATHS_INFO_INIT;
    info.camera = camera;
    info.width = kWidth, info.height = kHeight;
    info.samples = 1;
    info.bounces = 2;
    const qry_result traced = qry_world_trace_paths(world, sums, &info);
    INFO(qry_last_error());
    REQUIRE(traced == QRY_OK);
    std::vector<uint8_t> rgba(size_t(kWidth) * kHeight * 4);
    require_ok(qry_paths_read(sums, QRY_LAYER_COLOR, rgba.data(), rgba.size(), 0));
    qry_paths_destroy(&sums);
    return rgba;
  };
  {
    qry_device_state device = QRY_DEVICE_STATE_INIT;
    if (const qry_result there = qry_context_get_device(worlds.context(), &device); there != QRY_OK) {
      REQUIRE((there == QRY_ERROR_NOT_FOUND || there == QRY_ERROR_MISSING_FEATURE));
      skip(qry_last_error());
      return;
    }
  }
  for (const uint32_t home : device_homes(worlds)) {
    INFO("home " << home);
    // With so much more all of it is there at times.
    const OneWorld world = attached(worlds, home, dir / "w.quarry", nullptr, 1'500'000),
                   twin = new_world(worlds, QRY_HOME_HOST);
    std::mt19937 random(31);
    for (int i = 0; i < 4; ++i) {
      INFO("picture " << i);
      for (int j = 0; j < (i > 0 ? 3 : 30); ++j) {
        const auto same = uint32_t(random());
        for (qry_world* one : {world.get(), twin.get()}) require_ok(random_change(one, same));
      }
      if (i == 3) {
        require_ok(qry_world_undo(world.get(), nullptr));
        require_ok(qry_world_undo(twin.get(), nullptr));
      }
      qry_camera camera{}, other{};
      const double around = i * 40.0, above = 10.0 + i;
      require_ok(qry_world_fit_camera(world.get(), 45.0, 1.5, around, above, &camera));
      require_ok(qry_world_fit_camera(twin.get(), 45.0, 1.5, around, above, &other));
      for (int a = 0; a < 3; ++a) REQUIRE(camera.position[a] == other.position[a]);
      const uint32_t view = i % 3 == 2 ? uint32_t(QRY_VIEW_MATERIAL) : uint32_t(QRY_VIEW_SHADED);
      REQUIRE((picture(world.get(), camera, view) == picture(twin.get(), camera, view)));
      const Paging paging = paging_of(world.get());
      CHECK(paging.device_bytes <= paging.pages.budget_bytes + kSlack);
      if (i >= 2) continue;
      const std::vector<uint8_t> lit = paths(twin.get(), camera);
      REQUIRE((paths(world.get(), camera) == lit));
      // Pages leave and come for a picture from elsewhere, and what glows is as it was.
      require_ok(qry_world_fit_camera(world.get(), 45.0, 1.5, around + 180, -above, &other));
      (void)picture(world.get(), other, QRY_VIEW_SHADED);
      REQUIRE((paths(world.get(), camera) == lit));
    }
    const qry_paging_state pages = paging_of(world.get()).pages;
    CHECK(pages.absent_pages > 0);
    CHECK(pages.left_pages > 0);
    expect_same(world.get(), twin.get());
  }
}

TEST_CASE("c_api: changes of a world with a budget that are submitted without waiting are all made, and so are undos") {
  const Worlds worlds;
  const fs::path dir = scratch_dir("api_budget_async");
  for (const uint32_t home : device_homes(worlds)) {
    INFO("home " << home);
    const OneWorld world = attached(worlds, home, dir / "w.quarry"), twin = new_world(worlds, QRY_HOME_HOST);
    uint64_t last = 0;
    constexpr int kBalls = 60;
    for (int i = 0; i < kBalls; ++i) {
      qry_edit edit = QRY_EDIT_INIT;
      edit.shape = QRY_SHAPE_SPHERE;
      edit.mode = QRY_MODE_FILL;
      edit.material = uint32_t(i + 1);
      edit.radius = 60;
      edit.a[0] = i % 8 * 85 - 300, edit.a[1] = i / 32 * 150 - 90, edit.a[2] = i / 8 % 4 * 150 - 230;
      require_ok(qry_world_submit_edit(world.get(), &edit, &last));
      require_ok(qry_world_edit(twin.get(), &edit, nullptr));
    }
    require_ok(qry_world_await(world.get(), last, nullptr, nullptr));
    CHECK(paging_of(world.get()).pages.flushes > 0);
    expect_same(world.get(), twin.get());
    for (int i = 0; i < kBalls; ++i) require_ok(qry_world_submit_undo(world.get(), &last));
    uint64_t changed = 0;
    require_ok(qry_world_await(world.get(), last, &changed, nullptr));
    CHECK(changed > 900000);
    CHECK(state_of(world.get()).voxel_count == 0);
    require_ok(qry_world_submit_undo(world.get(), &last));
    require_ok(qry_world_await(world.get(), last, &changed, nullptr));
    CHECK(changed == 0);
    for (int i = 0; i < kBalls; ++i) require_ok(qry_world_submit_redo(world.get(), &last));
    require_ok(qry_world_await(world.get(), last, nullptr, nullptr));
    expect_same(world.get(), twin.get());
  }
}

TEST_CASE(
    "c_api: what a world with a budget cannot do is refused with what to do, and the world is as before: without a "
    "file, and with all voxels together",
    "[one-caller]") {
  const Worlds worlds;
  const fs::path dir = scratch_dir("api_budget_refused");
  const auto refused = [](qry_result result, qry_result expected, const char* part) {
    INFO(qry_last_error());
    CHECK(result == expected);
    CHECK_THAT(qry_last_error(), Catch::Contains(part));
  };
  for (const uint32_t home : device_homes(worlds)) {
    INFO("home " << home);
    refused(with_budget(worlds, home, 1000).result, QRY_ERROR_INVALID_ARGUMENT, " MiB at least");
    Made made = with_budget(worlds, home, budget_at(worlds, home));
    require_ok(made.result);
    qry_world* const world = made.world.get();
    const OneWorld twin = new_world(worlds, QRY_HOME_HOST);
    // As much as there is room for, and no more.
    std::mt19937 random(3);
    qry_result result = QRY_OK;
    for (int i = 0; i < 200 && result == QRY_OK; ++i) {
      const auto same = uint32_t(random());
      result = random_change(world, same);
      if (result == QRY_OK) require_ok(random_change(twin.get(), same));
    }
    refused(result, QRY_ERROR_OUT_OF_MEMORY, "attach the world to a file");
    expect_same(world, twin.get());
    // With a file it goes on.
    const fs::path file = dir / "w.quarry";
    fs::remove(file);
    require_ok(qry_world_attach(world, file.c_str()));
    for (int i = 0; i < 60; ++i) {
      const auto same = uint32_t(random());
      require_ok(random_change(world, same));
      require_ok(random_change(twin.get(), same));
    }
    REQUIRE(paging_of(world).pages.absent_pages > 0);
    refused(qry_world_pack(world), QRY_ERROR_OUT_OF_MEMORY, "needs all of the world");
    refused(qry_world_detach(world), QRY_ERROR_OUT_OF_MEMORY, "needs all of the world");
    expect_same(world, twin.get());
    require_ok(qry_world_flush(world));
    expect_same(copied(worlds, file, dir / "copy.quarry").get(), twin.get());
  }
}

namespace {

// Changes of which each needs most pages of a world of noise, and none fits the budget.
qry_result large_change(qry_world* world, uint32_t number) {
  qry_edit edit = QRY_EDIT_INIT;
  std::mt19937 random(number);
  switch (number % 5) {
    case 0:
      edit.shape = QRY_SHAPE_SPHERE;
      edit.mode = QRY_MODE_FILL;
      edit.material = 7 + number;
      edit.radius = 250;
      break;
    case 1:
      edit.mode = QRY_MODE_REPLACE;
      edit.from = 9;
      edit.material = 200;
      for (int a = 0; a < 3; ++a) edit.a[a] = kMin[size_t(a)] - 1000, edit.b[a] = kMax[size_t(a)] + 1000;
      break;
    case 2: {
      // A field of noise, with room around it.
      const std::array<int32_t, 3> min{-200, -100, -250}, max{199, 99, 260};
      std::vector<uint8_t> noise(size_t(400) * 200 * 511);
      for (uint8_t& voxel : noise) voxel = uint8_t(random() % 3 ? random() : 0);
      return qry_world_write_region(world, 0, min.data(), max.data(), noise.data(), noise.size(), nullptr);
    }
    case 3: {
      std::vector<int32_t> xyz;
      std::vector<uint8_t> materials;
      for (int i = 0; i < 60'000; ++i) {
        for (int a = 0; a < 3; ++a) xyz.push_back(at_random(random, a));
        materials.push_back(uint8_t(random()));
      }
      return qry_world_set_voxels(world, 0, xyz.data(), materials.data(), materials.size(), nullptr);
    }
    default:
      edit.shape = QRY_SHAPE_LINE;
      edit.mode = QRY_MODE_REMOVE;
      edit.radius = 90;
      for (int a = 0; a < 3; ++a) edit.a[a] = kMin[size_t(a)], edit.b[a] = kMax[size_t(a)];
  }
  return qry_world_edit(world, &edit, nullptr);
}

}  // namespace

TEST_CASE(
    "c_api: a change that needs more of the world than its part of a device's memory is made all the same, and undone "
    "and redone as one step, also from the file alone",
    "[one-caller]") {
  const Worlds worlds;
  const fs::path file = scratch_dir("api_budget_large") / "w.quarry";
  for (const uint32_t home : homes_with_host(worlds)) {
    INFO("home " << home);
    OneWorld world = attached(worlds, home, file);
    qry_home_state at = QRY_HOME_STATE_INIT;
    require_ok(qry_world_get_home(world.get(), &at));
    CHECK(at.home == home);
    const OneWorld twin = new_world(worlds, QRY_HOME_HOST);
    fill_with_noise({world.get(), twin.get()});
    constexpr uint32_t kChanges = 5;
    for (uint32_t i = 0; i < kChanges; ++i) {
      INFO("change " << i);
      const uint64_t flushes = paging_of(world.get()).pages.flushes;
      for (qry_world* one : {world.get(), twin.get()}) require_ok(large_change(one, i));
      INFO(qry_last_error());
      CHECK(paging_of(world.get()).pages.flushes > flushes);
      CHECK(paging_of(world.get()).device_bytes <= budget_at(worlds, home) + kSlack);
      expect_same_state(world.get(), twin.get());
      if (i % 5 == 4) {
        expect_same(world.get(), twin.get());
        // Back and forth through all of them, as often as they were called.
        for (uint32_t back = 0; back < 5; ++back) {
          uint64_t ours = 0, others = 0;
          require_ok(qry_world_undo(world.get(), &ours));
          require_ok(qry_world_undo(twin.get(), &others));
          REQUIRE(ours == others);
          expect_same_state(world.get(), twin.get());
        }
        expect_same(world.get(), twin.get());
        for (uint32_t forth = 0; forth < 5; ++forth) {
          uint64_t ours = 0, others = 0;
          require_ok(qry_world_redo(world.get(), &ours));
          require_ok(qry_world_redo(twin.get(), &others));
          REQUIRE(ours == others);
          expect_same_state(world.get(), twin.get());
        }
        REQUIRE(qry_world_redo(world.get(), nullptr) == QRY_NOTHING_TO_DO);
        require_ok(qry_world_flush(world.get()));
        world = OneWorld(nullptr);
        Made made = with_budget(worlds, home, budget_at(worlds, home), file);
        require_ok(made.result);
        world = std::move(made.world);
        expect_same(world.get(), twin.get());
      }
    }
    // What another program finds: as many steps.
    require_ok(qry_world_flush(world.get()));
    const OneWorld again = copied(worlds, file, file.parent_path() / "copy.quarry");
    for (uint32_t i = 0; i < kChanges; ++i) {
      require_ok(qry_world_undo(again.get(), nullptr));
      require_ok(qry_world_undo(twin.get(), nullptr));
    }
    expect_same(again.get(), twin.get());
  }
}

TEST_CASE(
    "c_api: a change in parts, an undo or a redo of one, that fails on the way is taken back when memory is refused; "
    "when the disk is full, too, or the call says what of it is done",
    "[one-caller]") {
  const Worlds worlds;
  const fs::path file = scratch_dir("api_budget_large_faults") / "w.quarry";
  Fault fault;
  const OneWorld world = attached(worlds, QRY_HOME_EMULATED, file, &fault), twin = new_world(worlds, QRY_HOME_HOST);
  fill_with_noise({world.get(), twin.get()});
  require_ok(qry_world_flush(world.get()));
  std::mt19937 random(5);
  uint32_t failed = 0, said = 0;
  for (uint32_t i = 0; i < (kSanitized ? 10 : 20); ++i) {
    INFO("change " << i);
    const auto call = [&](qry_world* one) {
      return i % 5 < 3    ? large_change(one, i / 5)
             : i % 5 == 3 ? qry_world_undo(one, nullptr)
                          : qry_world_redo(one, nullptr);
    };
    qry_result result;
    if (i % 2) {
      fault.arm(QRY_ERROR_OUT_OF_MEMORY, 1 + random() % 40, QRY_EMULATED_ALLOCATION);
      result = call(world.get());
      fault.disarm();
    } else {
      const FullDisk disk(uint64_t(1 + random() % 64) << 18);
      result = call(world.get());
    }
    INFO(qry_last_error());
    REQUIRE((result == QRY_OK || result == QRY_ERROR_OUT_OF_MEMORY || result == QRY_ERROR_IO));
    if (result != QRY_OK) {
      ++failed;
      // What is in the file already comes back from there with what it changed, which a full disk may not take: then it
      // is said.
      const std::string message = qry_last_error();
      const bool partly = message.find("undo takes it back") != std::string::npos,
                 goes_on = message.find("the next call goes on with it") != std::string::npos;
      REQUIRE(!(result == QRY_ERROR_OUT_OF_MEMORY && (partly || goes_on)));
      said += partly || goes_on ? 1 : 0;
      if (partly) require_ok(qry_world_undo(world.get(), nullptr));
      if (!goes_on) expect_same_state(world.get(), twin.get());
      // What was done of it cannot be redone, neither here nor by the file.
      if (i % 5 < 3 && !partly) {
        REQUIRE(qry_world_redo(world.get(), nullptr) == QRY_NOTHING_TO_DO);
        if (failed % 2) require_ok(qry_world_flush(world.get()));
        REQUIRE(qry_world_redo(world.get(), nullptr) == QRY_NOTHING_TO_DO);
        REQUIRE(state_of(world.get()).history_length == state_of(world.get()).history_position);
      }
      REQUIRE(call(world.get()) == QRY_OK);
    }
    require_ok(call(twin.get()));
    expect_same_state(world.get(), twin.get());
  }
  CHECK(failed > (kSanitized ? 2u : 5u));
  CHECK(said < failed);
  expect_same(world.get(), twin.get());
}

namespace {

// Of changes 0 to 8 in turn: one that needs parts, its undo and its redo.
qry_result large_step(qry_world* world, uint32_t number) {
  if (number % 3 == 1) return qry_world_undo(world, nullptr);
  return number % 3 == 2 ? qry_world_redo(world, nullptr) : large_change(world, std::array{0u, 2u, 3u}[number / 3 % 3]);
}
constexpr uint32_t kLargeSteps = 9;

void expect_same_history(qry_world* world, qry_world* twin) {
  CHECK(state_of(world).history_position == state_of(twin).history_position);
  CHECK(state_of(world).history_length == state_of(twin).history_length);
}

// What this thread sees of a file that is attached.
class ChangesOfFile {
 public:
  explicit ChangesOfFile(fs::path file) : file_(std::move(file)), known_(now()) {}
  // Whether it has changed since the last call. Other threads, which may ask while it is written, are told nothing.
  bool another() {
    if (std::this_thread::get_id() != thread_) return false;
    const State before = std::exchange(known_, now());
    return known_ != before;
  }

 private:
  using State = std::pair<uintmax_t, fs::file_time_type>;
  State now() const {
    std::error_code none;
    const auto log_bytes = fs::file_size(file_.string() + "-wal", none);
    return {none ? 0 : log_bytes, fs::last_write_time(file_)};
  }
  fs::path file_;
  State known_;
  std::thread::id thread_ = std::this_thread::get_id();
};

// Of a file that was copied, or left, in the middle of a step: what the twin has, at home on the host, where it is read
// and then attached, or with a budget, where it is attached at once.
void expect_same_in_file(const Worlds& worlds, const fs::path& file, qry_world* twin, bool budget) {
  Made made;
  if (budget) made = with_budget(worlds, QRY_HOME_EMULATED, budget_at(worlds, QRY_HOME_EMULATED), file);
  else made.world = opened(worlds, file);
  require_ok(made.result);
  expect_same(made.world.get(), twin);
  if (budget) return;
  expect_same_history(made.world.get(), twin);
  require_ok(qry_world_attach(made.world.get(), file.c_str()));  // it is the file that was read
}

}  // namespace

TEST_CASE(
    "c_api: a file that is copied between the parts of a change, an undo or a redo, as a kill would leave it, has the "
    "world as before it, for who reads it and for who edits it",
    "[one-caller]") {
  const Worlds worlds;
  const fs::path dir = scratch_dir("api_budget_between"), file = dir / "w.quarry", copy = dir / "copy.quarry";
  Fault fault;
  const OneWorld world = attached(worlds, QRY_HOME_EMULATED, file, &fault), twin = new_world(worlds, QRY_HOME_HOST);
  fill_with_noise({world.get(), twin.get()});
  require_ok(qry_world_flush(world.get()));
  uint32_t between = 0;
  for (uint32_t step = 0; step < (kSanitized ? 3 : kLargeSteps); ++step) {
    INFO("step " << step);
    // One copy for each state of the file that this thread's calls of the device see.
    std::vector<fs::path> copies;
    ChangesOfFile changes(file);
    fault.watch([&] {
      if (!changes.another()) return;
      copies.push_back(dir / ("between" + std::to_string(copies.size()) + ".quarry"));
      for (const char* suffix : {"", "-wal"})
        fs::copy_file(file.string() + suffix, copies.back().string() + suffix, fs::copy_options::overwrite_existing);
    });
    require_ok(large_step(world.get(), step));
    fault.watch(nullptr);
    CHECK(copies.size() > 1);
    for (size_t i = 0; i < copies.size(); i += 1 + copies.size() / 3) {
      INFO("copy " << i << " of " << copies.size());
      expect_same_in_file(worlds, copies[i], twin.get(), (step + i) % 2 != 0);
    }
    between += uint32_t(copies.size());
    require_ok(large_step(twin.get(), step));
    require_ok(qry_world_flush(world.get()));
    const OneWorld flushed = copied(worlds, file, copy);
    expect_same(flushed.get(), twin.get());
    expect_same_history(flushed.get(), twin.get());
  }
  CHECK(between > kLargeSteps);
}

TEST_CASE(
    "c_api: what a change in parts had brought to its file before it failed and was taken back can be redone neither "
    "in the world nor by who opens the file",
    "[one-caller]") {
  const Worlds worlds;
  const fs::path dir = scratch_dir("api_budget_taken_back"), file = dir / "w.quarry";
  Fault fault;
  std::optional<OneWorld> world, twin;
  for (const bool flush_before : {false, true}) {
    INFO("flush " << flush_before);
    // Some allocations can be done without; and what a change has made memory for, the next one has. So each is refused
    // in a world of its own.
    qry_result result = QRY_OK;
    for (uint32_t number = 1; result == QRY_OK && number < 20; ++number) {
      world.reset();
      for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(file.string() + suffix);
      world.emplace(attached(worlds, QRY_HOME_EMULATED, file, &fault));
      twin.emplace(new_world(worlds, QRY_HOME_HOST));
      fill_with_noise({world->get(), twin->get()});
      require_ok(qry_world_flush(world->get()));
      ChangesOfFile changes(file);
      int seen = 0;
      fault.watch([&] {
        if (changes.another() && ++seen == 3) fault.arm(QRY_ERROR_OUT_OF_MEMORY, number, QRY_EMULATED_ALLOCATION);
      });
      result = large_change(world->get(), 0);
      fault.watch(nullptr);
      fault.disarm();
    }
    INFO(qry_last_error());
    REQUIRE(result == QRY_ERROR_OUT_OF_MEMORY);
    REQUIRE(std::string(qry_last_error()).find("undo takes it back") == std::string::npos);
    if (flush_before) require_ok(qry_world_flush(world->get()));
    REQUIRE(qry_world_redo(world->get(), nullptr) == QRY_NOTHING_TO_DO);
    expect_same_state(world->get(), twin->get());
    require_ok(qry_world_flush(world->get()));
    const OneWorld again = copied(worlds, file, dir / "copy.quarry");
    expect_same(again.get(), twin->get());
    expect_same_history(again.get(), twin->get());
  }
  for (qry_world* one : {world->get(), twin->get()}) require_ok(large_change(one, 0));
  require_ok(qry_world_flush(world->get()));
  expect_same(copied(worlds, file, dir / "copy.quarry").get(), twin->get());
}

TEST_CASE("c_api: kill -9 in the middle of changes in parts, their undo and redo: each is whole or absent",
          "[one-caller]") {
  const fs::path dir = scratch_dir("api_budget_killed"), base = dir / "base.quarry", file = dir / "w.quarry";
  const auto budget_world = [&](const Worlds& worlds, const fs::path& of) {
    Made made = with_budget(worlds, QRY_HOME_EMULATED, budget_at(worlds, QRY_HOME_EMULATED), of);
    require_ok(made.result);
    return std::move(made.world);
  };
  {
    const Worlds worlds;
    const OneWorld world = new_world(worlds, QRY_HOME_HOST);
    fill_with_noise({world.get(), world.get()});
    require_ok(qry_world_attach(world.get(), base.c_str()));
    require_ok(qry_world_detach(world.get()));
  }
  std::mt19937 random(3);
  const int rounds = std::getenv("QUARRY_LONG") ? 60 : 3;
  for (int round = 0; round < rounds; ++round) {
    INFO("round " << round);
    for (const char* suffix : {"-wal", "-journal"}) fs::remove(file.string() + suffix);
    fs::copy_file(base, file, fs::copy_options::overwrite_existing);
    const int32_t reported =
        last_step_before_kill(-1, int32_t(random() % 4) - 1, 1'500'000, random, [&](const auto& report) {
          const Worlds worlds;
          const OneWorld world = budget_world(worlds, file);
          for (uint32_t step = 0; step < 2000; ++step) {
            require_ok(large_step(world.get(), step));
            require_ok(qry_world_flush(world.get()));
            report(int32_t(step));
          }
        });
    const Worlds worlds;
    const OneWorld twin = opened(worlds, base), found = opened(worlds, file);
    for (int32_t step = 0; step <= reported; ++step) require_ok(large_step(twin.get(), uint32_t(step)));
    const auto same = [&] {
      return state_of(found.get()).voxel_count == state_of(twin.get()).voxel_count &&
             state_of(found.get()).history_position == state_of(twin.get()).history_position;
    };
    if (!same()) require_ok(large_step(twin.get(), uint32_t(reported + 1)));  // flushed, and not reported
    expect_same_in_file(worlds, file, twin.get(), round % 2 != 0);
  }
}

TEST_CASE("c_api: rays in a world that is larger than its part of a device's memory meet what they meet in all of it",
          "[one-caller]") {
  const Worlds worlds;
  const fs::path file = scratch_dir("api_budget_rays") / "w.quarry";
  for (const uint32_t home : device_homes(worlds)) {
    INFO("home " << home);
    const OneWorld world = attached(worlds, home, file), twin = new_world(worlds, QRY_HOME_HOST);
    std::mt19937 random(31);
    for (int i = 0; i < 40; ++i) {
      const auto same = uint32_t(random());
      for (qry_world* one : {world.get(), twin.get()}) require_ok(random_change(one, same));
    }
    // At the same home, for which all of it is there.
    const fs::path all = file.parent_path() / "whole.quarry";
    const std::string path = all.string();
    fs::remove(all);
    qry_save_info save = QRY_SAVE_INFO_INIT;
    save.path = path.c_str();
    require_ok(qry_world_save(twin.get(), &save));
    const OneWorld whole = opened(worlds, all, home);
    for (const size_t count : {size_t(1), size_t(7), size_t(1500)}) {
      REQUIRE(paging_of(world.get()).pages.absent_pages > 0);
      std::vector<qry_ray> rays(count);
      // Those that run along the planes between pages may as well meet either voxel beside an edge.
      std::vector<bool> along_planes(count);
      for (size_t i = 0; i < count; ++i) {
        qry_ray& ray = rays[i];
        for (int a = 0; a < 3; ++a) {
          ray.origin[a] = float(at_random(random, a)) + 0.25f;
          ray.direction[a] = float(at_random(random, a)) - ray.origin[a] + 0.125f;
        }
        if (random() % 8 == 0) {
          const auto a = random() % 3;
          ray.direction[a] = 0;
          ray.origin[a] = 128;
          along_planes[i] = true;
        }
        if (random() % 8 == 0) ray.direction[random() % 3] = 0;
        if (random() % 4 == 0) ray.origin[1] += 400;
      }
      std::vector<qry_hit> hits(count), expected(count);
      require_ok(qry_world_trace(world.get(), rays.data(), count, hits.data()));
      require_ok(qry_world_trace(whole.get(), rays.data(), count, expected.data()));
      size_t met = 0;
      for (size_t i = 0; i < count; ++i) {
        INFO("ray " << i);
        REQUIRE(hits[i].t == expected[i].t);
        met += hits[i].t >= 0;
        if (along_planes[i]) continue;
        REQUIRE(std::ranges::equal(hits[i].voxel, expected[i].voxel));
        REQUIRE(hits[i].face == expected[i].face);
        REQUIRE(hits[i].material == expected[i].material);
      }
      CHECK((count < 100 || met > count / 4));
    }
  }
}

TEST_CASE("c_api: a world with a budget that becomes small again does all that others do, and can be detached",
          "[one-caller]") {
  const Worlds worlds;
  const fs::path dir = scratch_dir("api_budget_small");
  for (const uint32_t home : homes_with_host(worlds)) {
    INFO("home " << home);
    const fs::path file = dir / "w.quarry";
    const OneWorld world = attached(worlds, home, file), twin = new_world(worlds, QRY_HOME_HOST);
    std::mt19937 random(9);
    for (int i = 0; i < 60; ++i) {
      const auto same = uint32_t(random());
      INFO("change " << i);
      for (qry_world* one : {world.get(), twin.get()}) require_ok(random_change(one, same));
    }
    REQUIRE(paging_of(world.get()).pages.absent_pages > 0);
    // All but what is at one corner goes, page by page.
    for (int32_t z = kMin[2]; z < kMax[2]; z += 128)
      for (int32_t y = kMin[1]; y < kMax[1]; y += 128)
        for (int32_t x = kMin[0]; x < kMax[0]; x += 128) {
          if (x < -128 && y < 0 && z < -128) continue;
          qry_edit edit = QRY_EDIT_INIT;
          edit.mode = QRY_MODE_REMOVE;
          for (int a = 0; a < 3; ++a) edit.a[a] = (a == 0 ? x : a == 1 ? y : z), edit.b[a] = edit.a[a] + 127;
          for (qry_world* one : {world.get(), twin.get()}) require_ok(qry_world_edit(one, &edit, nullptr));
        }
    expect_same(world.get(), twin.get());
    require_ok(qry_world_flush(world.get()));
    for (qry_world* one : {world.get(), twin.get()}) {
      qry_edit edit = QRY_EDIT_INIT;
      edit.a[0] = edit.a[2] = -200, edit.a[1] = -100;
      edit.b[0] = edit.b[2] = -198, edit.b[1] = -98;
      edit.mode = QRY_MODE_FILL;
      require_ok(qry_world_edit(one, &edit, nullptr));
      edit.shape = QRY_SHAPE_CONNECTED;
      edit.mode = QRY_MODE_PAINT;
      edit.material = 9;
      require_ok(qry_world_edit(one, &edit, nullptr));
      require_ok(qry_world_dilate(one, 0, 6, 1, nullptr, nullptr));
    }
    CHECK(paging_of(world.get()).pages.absent_pages == 0);
    require_ok(qry_world_detach(world.get()));
    CHECK_FALSE(fs::exists(file.string() + "-wal"));
    CHECK((facts_of(world.get()).materials == facts_of(twin.get()).materials));
    expect_same(opened(worlds, file).get(), twin.get());
  }
}

TEST_CASE(
    "c_api: when the disk is full, memory is refused or the device is lost while pages of a world leave and come, the "
    "call says so, and no voxel is lost that was there or in the file",
    "[one-caller]") {
  const Worlds worlds;
  const fs::path dir = scratch_dir("api_budget_faults"), file = dir / "w.quarry";
  {
    const OneWorld world = attached(worlds, QRY_HOME_EMULATED, file), twin = new_world(worlds, QRY_HOME_HOST);
    std::mt19937 random(21);
    uint32_t full = 0;
    for (int i = 0; i < 80; ++i) {
      const auto same = uint32_t(random());
      qry_result result;
      {
        const FullDisk disk(uint64_t(1) << (i % 3 == 2 ? 40 : 18));
        result = random_change(world.get(), same);
      }
      INFO(qry_last_error());
      REQUIRE((result == QRY_OK || result == QRY_ERROR_IO));
      if (result != QRY_OK) ++full, require_ok(random_change(world.get(), same));
      require_ok(random_change(twin.get(), same));
      expect_same_state(world.get(), twin.get());
    }
    CHECK(full > 2);
    expect_same(world.get(), twin.get());
  }
  // One call after the other of the device, in a change that makes pages leave and others come.
  Fault fault;
  OneWorld world = attached(worlds, QRY_HOME_EMULATED, file, &fault);
  const OneWorld twin = new_world(worlds, QRY_HOME_HOST);
  std::mt19937 random(22);
  uint32_t refused = 0, lost = 0;
  for (int i = 0; i < (kSanitized ? 40 : 120); ++i) {
    const auto same = uint32_t(random());
    fault.arm(QRY_ERROR_OUT_OF_MEMORY, 1 + random() % 4, QRY_EMULATED_ALLOCATION, i % 2 != 0);
    const qry_result result = random_change(world.get(), same);
    // As long as there is no memory, what the world has is told as it is, or not at all.
    qry_world_state state = QRY_WORLD_STATE_INIT;
    const qry_result told = result == QRY_OK ? QRY_ERROR_OUT_OF_MEMORY : qry_world_get_state(world.get(), &state);
    fault.disarm();
    REQUIRE((result == QRY_OK || result == QRY_ERROR_OUT_OF_MEMORY));
    REQUIRE((told == QRY_OK || told == QRY_ERROR_OUT_OF_MEMORY));
    if (told == QRY_OK) REQUIRE(state.voxel_count == state_of(twin.get()).voxel_count);
    if (result != QRY_OK) ++refused, require_ok(random_change(world.get(), same));
    require_ok(random_change(twin.get(), same));
    expect_same_state(world.get(), twin.get());
  }
  CHECK(refused > 0);
  expect_same(world.get(), twin.get());
  // What was flushed is there when the device goes, whatever it was doing.
  require_ok(qry_world_flush(world.get()));
  for (uint64_t number = 1; lost < (kSanitized ? 4u : 12u); number += 1 + number / 3) {
    const auto same = uint32_t(random());
    fault.arm(QRY_ERROR_DEVICE_LOST, number);
    const qry_result result = random_change(world.get(), same);
    if (!fault.disarm()) {
      require_ok(result);
      require_ok(random_change(twin.get(), same));
      require_ok(qry_world_flush(world.get()));
      number = 1;
      continue;
    }
    REQUIRE(result == QRY_ERROR_DEVICE_LOST);
    ++lost;
    world = OneWorld(nullptr);
    Made made = with_budget(worlds, QRY_HOME_EMULATED, budget_at(worlds, QRY_HOME_EMULATED), file, &fault);
    require_ok(made.result);
    world = std::move(made.world);
    expect_same_state(world.get(), twin.get());
    REQUIRE(random() != 1);  // the next change is another one
  }
  expect_same(world.get(), twin.get());
}

}  // namespace budget_test
