// SPDX-License-Identifier: Apache-2.0
// in_parts_test.cpp - what needs all voxels of a world that does not fit its budget, beside a world on the host that
// has all of itself: it grows, is eroded, taken apart, flooded, combined and compared with another one, and what
// glows in it lights pictures.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/app/sanitized.hpp"
#include "tests/engine/api/files/budgeted.hpp"
#include "tests/engine/api/files/full_disk.hpp"
#include "tests/engine/api/files/twin.hpp"
#include "tests/test_data.hpp"

namespace in_parts_test {

using namespace quarry::test;
using namespace quarry::test::budgeted;
namespace fs = std::filesystem;

namespace {

// The same in both, of which one does not fit its budget.
struct Two {
  OneWorld world, twin;
  std::array<qry_world*, 2> both() const { return {world.get(), twin.get()}; }
};

// Loose voxels in some pages, of which every brick is stored, others full of one material, or empty; and balls.
void fill(const std::array<qry_world*, 2>& worlds, uint32_t seed) {
  constexpr int32_t kEdge = 128;
  std::mt19937 random(seed);
  std::vector<uint8_t> noise(size_t(kEdge) * kEdge * kEdge);
  // The same every eight layers, so that a file is written soon.
  for (size_t i = 0; i < noise.size(); ++i)
    noise[i] = i < noise.size() / 16 ? uint8_t(random() % 40) : noise[i - noise.size() / 16];
  for (int32_t page = 0; page < 32; ++page) {
    const std::array<int32_t, 3> min{kMin[0] + (page & 3) * kEdge, kMin[1] + (page >> 2 & 1) * kEdge,
                                     kMin[2] + (page >> 3) * kEdge};
    const std::array<int32_t, 3> max{min[0] + kEdge - 1, min[1] + kEdge - 1, min[2] + kEdge - 1};
    const uint32_t dice = uint32_t(page * 5 + int32_t(seed)) % 7;
    if (dice < 2) {
      std::rotate(noise.begin(), noise.begin() + 12345, noise.end());
      for (qry_world* one : worlds)
        require_ok(qry_world_write_region(one, 0, min.data(), max.data(), noise.data(), noise.size(), nullptr));
      continue;
    }
    qry_edit edit = QRY_EDIT_INIT;
    edit.shape = dice < 5 ? QRY_SHAPE_BOX : QRY_SHAPE_SPHERE;
    edit.mode = QRY_MODE_FILL;
    edit.material = uint32_t(page + 1);
    edit.radius = 50;
    for (size_t a = 0; a < 3; ++a) edit.a[a] = min[a], edit.b[a] = max[a];
    for (qry_world* one : worlds)
      if (dice != 3) require_ok(qry_world_edit(one, &edit, nullptr));
  }
}

Two two_worlds(const Worlds& worlds, uint32_t home, const fs::path& file, uint32_t seed, Fault* fault = nullptr) {
  Two two{attached(worlds, home, file, fault), new_world(worlds, QRY_HOME_HOST)};
  fill(two.both(), seed);
  REQUIRE(paging_of(two.world.get()).pages.absent_pages > 0);
  return two;
}

// By a comparison, and some voxels as they are read; `all`: all, with those around where the edits are.
void expect_same_world(const Two& two, bool all = false) {
  expect_same_state(two.world.get(), two.twin.get());
  qry_comparison found = QRY_COMPARISON_INIT;
  require_ok(qry_world_compare(two.world.get(), two.twin.get(), 0, &found));
  REQUIRE(found.alike_count == state_of(two.twin.get()).voxel_count);
  for (int32_t y = kMin[1] - 16; all && y < kMax[1] + 16; y += 64) {
    auto min = kMin, max = kMax;
    for (size_t a : {size_t(0), size_t(2)}) min[a] -= 16, max[a] += 16;
    min[1] = y, max[1] = y + 63;
    expect_same_voxels(two.world.get(), two.twin.get(), min, max);
  }
  if (!all) expect_same_voxels(two.world.get(), two.twin.get(), {-140, -130, -20}, {150, -120, 140});
}

using Change = std::function<qry_result(qry_world* world, uint64_t* changed)>;
Change by_steps(bool grows, uint32_t neighbours, uint32_t steps) {
  return [=](qry_world* world, uint64_t* changed) {
    return (grows ? qry_world_dilate : qry_world_erode)(world, 0, neighbours, steps, nullptr, changed);
  };
}

void expect_same_change(const Two& two, const Change& change) {
  uint64_t ours = 0, others = 0;
  const qry_result result = change(two.world.get(), &ours);
  INFO(qry_last_error());
  REQUIRE(result == QRY_OK);
  require_ok(change(two.twin.get(), &others));
  REQUIRE(ours == others);
  expect_same_world(two);
}

// Back through all changes, and forth again, as often as they were called.
void expect_same_history(const Two& two, size_t changes) {
  for (const auto step : {&qry_world_undo, &qry_world_redo})
    for (size_t i = 0; i < changes; ++i) {
      uint64_t ours = 0, others = 0;
      require_ok(step(two.world.get(), &ours));
      require_ok(step(two.twin.get(), &others));
      REQUIRE(ours == others);
      if (i + 1 == changes) expect_same_world(two, changes > 2);
      else expect_same_state(two.world.get(), two.twin.get());
    }
  REQUIRE(qry_world_redo(two.world.get(), nullptr) == QRY_NOTHING_TO_DO);
}

void expect_same_parts(const Two& two, uint32_t neighbours) {
  std::array<std::vector<qry_part>, 2> parts;
  for (size_t i = 0; i < 2; ++i) {
    uint64_t count = 0;
    const qry_result found = qry_world_find_parts(two.both()[i], neighbours, nullptr, nullptr, &count);
    INFO(qry_last_error());
    REQUIRE(found == QRY_INCOMPLETE);
    parts[i].resize(count);
    require_ok(qry_world_find_parts(two.both()[i], neighbours, nullptr, parts[i].data(), &count));
  }
  REQUIRE(parts[0].size() > 10);
  REQUIRE(std::ranges::equal(parts[0], parts[1], [](const qry_part& a, const qry_part& b) {
    return a.voxel_count == b.voxel_count && a.material == b.material && std::ranges::equal(a.min, b.min) &&
           std::ranges::equal(a.max, b.max);
  }));
}

void reopen(const Worlds& worlds, uint32_t home, const fs::path& file, Two& two) {
  require_ok(qry_world_flush(two.world.get()));
  two.world = OneWorld(nullptr);
  Made made = with_budget(worlds, home, budget_at(worlds, home), file);
  require_ok(made.result);
  two.world = std::move(made.world);
}

// Balls and a slab, in and beside the voxels of the others.
void fill_other(const std::array<qry_world*, 2>& worlds) {
  for (qry_world* one : worlds) {
    std::mt19937 random(8);
    for (int i = 0; i < 12; ++i) {
      qry_edit ball = QRY_EDIT_INIT;
      ball.shape = i == 11 ? QRY_SHAPE_BOX : QRY_SHAPE_SPHERE;
      ball.mode = QRY_MODE_FILL;
      ball.material = uint32_t(100 + i);
      ball.radius = double(20 + random() % 70);
      for (int a = 0; a < 3; ++a) ball.a[a] = at_random(random, a), ball.b[a] = ball.a[a] + 200;
      require_ok(qry_world_edit(one, &ball, nullptr));
    }
  }
}

}  // namespace

TEST_CASE(
    "c_api: a world that does not fit its budget grows and is eroded by any neighbours as one that is there as a "
    "whole, "
    "each as one step, which is undone and redone, also from the file alone",
    "[one-caller]") {
  const Worlds worlds;
  const fs::path file = scratch_dir("api_parts_morphology") / "w.quarry";
  const std::vector<Change> changes = {
      by_steps(false, 26, 1),
      [](qry_world* world, uint64_t* changed) { return qry_world_keep_parts(world, 0, 6, 300, 3, nullptr, changed); },
      by_steps(true, 26, 1), by_steps(true, 6, 2), by_steps(false, 18, 1)};
  const size_t count = kThreadSanitized ? 1 : kSanitized ? 3 : changes.size();
  for (const uint32_t home : homes_with_host(worlds)) {
    INFO("home " << home);
    Two two = two_worlds(worlds, home, file, 5);
    for (size_t i = 0; i < count; ++i) {
      INFO("change " << i);
      const uint64_t flushes = paging_of(two.world.get()).pages.flushes;
      expect_same_change(two, changes[i]);
      CHECK(paging_of(two.world.get()).pages.flushes > flushes);
      CHECK(paging_of(two.world.get()).device_bytes <= budget_at(worlds, home) + kSlack);
      if (i < 2) expect_same_parts(two, i == 0 ? 6 : 18);
    }
    expect_same_history(two, count);
    reopen(worlds, home, file, two);
    expect_same_history(two, 1);
    qry_world_sums ours = QRY_WORLD_SUMS_INIT, others = QRY_WORLD_SUMS_INIT;
    require_ok(qry_world_get_sums(two.world.get(), &ours));
    require_ok(qry_world_get_sums(two.twin.get(), &others));
    CHECK(ours.voxel_count == others.voxel_count);
    CHECK(ours.place_sum == others.place_sum);
    CHECK(ours.colour_sum == others.colour_sum);
    std::vector<std::array<int32_t, 3>> bricks, twins;
    for (const auto& [one, list] : {std::pair(two.world.get(), &bricks), std::pair(two.twin.get(), &twins)}) {
      uint64_t listed = state_of(one).brick_count;
      list->resize(listed);
      require_ok(qry_world_list_bricks(one, (*list)[0].data(), &listed));
      std::ranges::sort(*list);
    }
    CHECK((bricks == twins));
  }
}

TEST_CASE(
    "c_api: a world that does not fit its budget is combined with others, wherever they are at home, fit they or not, "
    "as "
    "one that is there as a whole",
    "[one-caller]") {
  const Worlds worlds;
  const fs::path dir = scratch_dir("api_parts_combine"), file = dir / "w.quarry";
  for (const uint32_t home : homes_with_host(worlds)) {
    INFO("home " << home);
    Two two = two_worlds(worlds, home, file, 6);
    // On the host without a budget; on a device without one; larger than its budget.
    const OneWorld on_host = new_world(worlds, QRY_HOME_HOST);
    const OneWorld whole = new_world(worlds, home == QRY_HOME_HOST ? uint32_t(QRY_HOME_EMULATED) : home);
    fill_other({on_host.get(), whole.get()});
    Two large{attached(worlds, home, dir / "other.quarry"), new_world(worlds, QRY_HOME_HOST)};
    fill(large.both(), 9);
    const auto combined = [&](const OneWorld& other, const OneWorld& twins, uint32_t mode) -> Change {
      return [&, mode](qry_world* world, uint64_t* changed) {
        return qry_world_combine(world, 0, (world == two.world.get() ? other : twins).get(), mode, nullptr, changed);
      };
    };
    // Through many pages, and with a bend; and what is like it elsewhere.
    const auto tunnel = [](qry_world* world, uint64_t* changed) {
      qry_result result = QRY_OK;
      for (int32_t part = 0; part < 3 && result == QRY_OK; ++part) {
        qry_edit line = QRY_EDIT_INIT;
        line.shape = part < 2 ? QRY_SHAPE_LINE : QRY_SHAPE_SPHERE;
        line.mode = QRY_MODE_FILL;
        line.material = 250;
        line.radius = part < 2 ? 6 : 20;
        const std::array<int32_t, 9> ends{-250, -120, -250, 250, 120, -200, -200, 100, 250};
        std::copy_n(&ends[size_t(part) * 3], 3, line.a);
        if (part < 2) std::copy_n(&ends[size_t(part) * 3 + 3], 3, line.b);
        else line.a[0] = 100, line.a[1] = -100, line.a[2] = 200;
        result = qry_world_edit(world, &line, changed);
      }
      return result;
    };
    const auto flood = [](uint32_t mode, std::array<int32_t, 3> at) -> Change {
      return [=](qry_world* world, uint64_t* changed) {
        qry_edit edit = QRY_EDIT_INIT;
        edit.shape = QRY_SHAPE_CONNECTED;
        edit.mode = mode;
        edit.material = 251;
        std::ranges::copy(at, edit.a);
        return qry_world_edit(world, &edit, changed);
      };
    };
    for (qry_world* one : two.both()) require_ok(tunnel(one, nullptr));
    const std::vector<Change> changes = {flood(QRY_MODE_PAINT, {-250, -120, -250}),
                                         flood(QRY_MODE_REMOVE, {250, 120, -200}),
                                         combined(on_host, on_host, QRY_COMBINE_DIFFERENCE),
                                         combined(large.world, large.twin, QRY_COMBINE_UNION),
                                         combined(whole, on_host, QRY_COMBINE_UNION),
                                         combined(on_host, on_host, QRY_COMBINE_UNION),
                                         combined(large.world, large.twin, QRY_COMBINE_INTERSECTION)};
    const size_t count = kThreadSanitized ? 1 : kSanitized ? 4 : changes.size();
    for (size_t i = 0; i < count; ++i) {
      INFO("change " << i);
      const uint64_t flushes = paging_of(two.world.get()).pages.flushes;
      expect_same_change(two, changes[i]);
      CHECK(paging_of(two.world.get()).pages.flushes > flushes);
    }
    // Compared: with each other, and with what differs.
    const std::array<std::pair<const OneWorld*, const OneWorld*>, 4> pairs = {
        {{&two.world, &two.twin}, {&two.twin, &two.world}, {&two.world, &large.world}, {&whole, &large.world}}};
    for (size_t i = 0; i < pairs.size(); ++i) {
      INFO("pair " << i);
      const auto& [first, second] = pairs[i];
      const auto twin_of = [&](const OneWorld* one) {
        return (one == &large.world ? large.twin : one == &whole ? on_host : two.twin).get();
      };
      qry_comparison ours = QRY_COMPARISON_INIT, others = QRY_COMPARISON_INIT;
      require_ok(qry_world_compare(first->get(), second->get(), 0, &ours));
      require_ok(qry_world_compare(twin_of(first), twin_of(second), 0, &others));
      CHECK(ours.alike_count == others.alike_count);
      for (const auto kind : {&qry_comparison::added, &qry_comparison::removed, &qry_comparison::recoloured}) {
        CHECK((ours.*kind).voxel_count == (others.*kind).voxel_count);
        CHECK(std::ranges::equal((ours.*kind).min, (others.*kind).min));
        CHECK(std::ranges::equal((ours.*kind).max, (others.*kind).max));
        if (i < 2) CHECK((ours.*kind).voxel_count == 0);
      }
    }
    expect_same_history(two, count);
    // Of which one that has no budget becomes what is left beside one that does not fit its own.
    require_ok(qry_world_combine(whole.get(), 0, large.world.get(), QRY_COMBINE_DIFFERENCE, nullptr, nullptr));
    require_ok(qry_world_combine(on_host.get(), 0, large.twin.get(), QRY_COMBINE_DIFFERENCE, nullptr, nullptr));
    expect_same_state(whole.get(), on_host.get());
    require_ok(qry_world_undo(whole.get(), nullptr));
    require_ok(qry_world_undo(on_host.get(), nullptr));
    expect_same_state(whole.get(), on_host.get());
  }
}

TEST_CASE(
    "c_api: what glows in a world that does not fit its budget lights pictures of paths as in one that is there as a "
    "whole, wherever it is, and follows edits, undos and flushes",
    "[one-caller]") {
  const Worlds worlds(QRY_DEVICE_LAZY);
  const fs::path dir = scratch_dir("api_parts_lights");
  {
    qry_device_state device = QRY_DEVICE_STATE_INIT;
    if (const qry_result there = qry_context_get_device(worlds.context(), &device); there != QRY_OK) {
      REQUIRE((there == QRY_ERROR_NOT_FOUND || there == QRY_ERROR_MISSING_FEATURE));
      skip(qry_last_error());
      return;
    }
  }
  constexpr uint32_t kWidth = 24, kHeight = 16;
  const auto paths = [&](qry_world* world) {
    qry_paths* sums = nullptr;
    require_ok(qry_paths_create(worlds.context(), &sums));
    qry_paths_info info = QRY_PATHS_INFO_INIT;
    require_ok(qry_world_fit_camera(world, 45.0, 1.5, 30, 20, &info.camera));
    info.width = kWidth, info.height = kHeight;
    info.samples = 2;
    info.bounces = 2;
    const qry_result traced = qry_world_trace_paths(world, sums, &info);
    INFO(qry_last_error());
    REQUIRE(traced == QRY_OK);
    std::vector<uint8_t> rgba(size_t(kWidth) * kHeight * 4);
    require_ok(qry_paths_read(sums, QRY_LAYER_COLOR, rgba.data(), rgba.size(), 0));
    qry_paths_destroy(&sums);
    return rgba;
  };
  for (const uint32_t home : device_homes(worlds)) {
    INFO("home " << home);
    Two two = two_worlds(worlds, home, dir / "w.quarry", 4);
    const auto lamp = [&](std::array<int32_t, 3> at, uint32_t material) {
      for (qry_world* one : two.both()) {
        qry_edit edit = QRY_EDIT_INIT;
        edit.shape = QRY_SHAPE_SPHERE;
        edit.mode = QRY_MODE_FILL;
        edit.material = material;
        edit.radius = 40;
        std::ranges::copy(at, edit.a);
        require_ok(qry_world_edit(one, &edit, nullptr));
      }
    };
    const auto glow = [&](uint32_t material, float emission) {
      for (qry_world* one : two.both()) {
        qry_material its;
        require_ok(qry_world_get_materials(one, material, 1, &its));
        its.emission = emission;
        require_ok(qry_world_set_materials(one, material, 1, &its));
      }
    };
    const std::vector<uint8_t> dark = paths(two.world.get());
    REQUIRE((dark == paths(two.twin.get())));
    const std::vector<std::function<void()>> changes = {
        [&] {
          glow(200, 40), lamp({-128, 130, 0}, 200), lamp({100, 140, 100}, 200);
        },
        [&] {
          lamp({-120, 130, 0}, 7);
        },  // across pages
        [&] {
          for (qry_world* one : two.both()) require_ok(qry_world_undo(one, nullptr));
        },
        [&] {
          require_ok(qry_world_flush(two.world.get())), lamp({128, 128, 127}, 200);
        },
        [&] { glow(3, 5); },
    };
    std::vector<uint8_t> before = dark;
    for (size_t i = 0; i < changes.size(); ++i) {
      INFO("change " << i);
      changes[i]();
      const std::vector<uint8_t> lit = paths(two.world.get());
      REQUIRE((lit == paths(two.twin.get())));
      CHECK((lit != std::exchange(before, lit)));
    }
    CHECK(paging_of(two.world.get()).pages.absent_pages > 0);
  }
}

TEST_CASE(
    "c_api: a growth, an erosion or a combination in parts that fails on the way is taken back when memory is refused; "
    "when the disk is full, too, or the call says what of it is done",
    "[one-caller]") {
  const Worlds worlds;
  const fs::path file = scratch_dir("api_parts_faults") / "w.quarry";
  Fault fault;
  const Two two = two_worlds(worlds, QRY_HOME_EMULATED, file, 7, &fault);
  const OneWorld other = new_world(worlds, QRY_HOME_HOST);
  fill_other({other.get(), other.get()});
  require_ok(qry_world_flush(two.world.get()));
  std::mt19937 random(5);
  uint32_t failed = 0, said = 0;
  const std::array<Change, 3> changes = {
      by_steps(true, 6, 2), by_steps(false, 26, 1), [&](qry_world* world, uint64_t* changed) {
        return qry_world_combine(world, 0, other.get(), QRY_COMBINE_UNION, nullptr, changed);
      }};
  for (uint32_t i = 0; i < (kSanitized ? 5 : 10); ++i) {
    INFO("change " << i);
    const auto call = [&](qry_world* one) {
      return i % 5 < 3 ? changes[i % 5](one, nullptr) : (i % 5 == 3 ? qry_world_undo : qry_world_redo)(one, nullptr);
    };
    qry_result result;
    if (random() % 3) {
      fault.arm(QRY_ERROR_OUT_OF_MEMORY, 1 + random() % 5, QRY_EMULATED_ALLOCATION);
      result = call(two.world.get());
      fault.disarm();
    } else {
      const FullDisk disk(uint64_t(1 + random() % 24) << 15);
      result = call(two.world.get());
    }
    INFO(qry_last_error());
    REQUIRE((result == QRY_OK || result == QRY_ERROR_OUT_OF_MEMORY || result == QRY_ERROR_IO));
    if (result != QRY_OK) {
      ++failed;
      const std::string message = qry_last_error();
      const bool partly = message.find("undo takes it back") != std::string::npos,
                 goes_on = message.find("the next call goes on with it") != std::string::npos;
      said += partly || goes_on ? 1 : 0;
      if (partly) require_ok(qry_world_undo(two.world.get(), nullptr));
      if (!goes_on) expect_same_state(two.world.get(), two.twin.get());
      if (i % 5 < 3 && !partly) REQUIRE(qry_world_redo(two.world.get(), nullptr) == QRY_NOTHING_TO_DO);
      REQUIRE(call(two.world.get()) == QRY_OK);
    }
    require_ok(call(two.twin.get()));
    expect_same_state(two.world.get(), two.twin.get());
  }
  CHECK(failed > (kSanitized ? 0u : 2u));
  CHECK(said < failed);
  expect_same_world(two);
}

}  // namespace in_parts_test
