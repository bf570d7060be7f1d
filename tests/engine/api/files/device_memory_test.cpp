// SPDX-License-Identifier: Apache-2.0
// device_memory_test.cpp - worlds whose device refuses its first piece of memory, its second one, and so on, in every
// call of the interface: the call says so and nothing has changed, and it is made as soon as there is memory.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <vector>

#include "tests/app/sanitized.hpp"
#include "tests/engine/api/files/faulty.hpp"
#include "tests/test_data.hpp"

namespace device_memory_test {

using namespace quarry::test;
namespace fs = std::filesystem;

namespace {

// Calls body(number, fault) with a fault that is armed by the body, until none has failed; only each `stride`th
// is tried. How often one has.
template <class Body>
int until_none_fails(const Body& body, uint64_t stride = 1) {
  int failed = 0;
  for (uint64_t number = 1;; number += kSanitized ? 3 + stride : stride) {
    INFO("allocation " << number);
    Fault fault;
    if (!body(number, fault)) return failed;
    ++failed;
  }
}

// Refuses one piece, or all from it on.
void arm(Fault& fault, uint64_t number, bool lasts) {
  fault.arm(QRY_ERROR_OUT_OF_MEMORY, number, QRY_EMULATED_ALLOCATION, lasts);
}

void refused(qry_result result) {
  INFO(qry_last_error());
  CHECK(result == QRY_ERROR_OUT_OF_MEMORY);
  CHECK_THAT(qry_last_error(), Catch::Contains("memory"));
}

// Of worlds that are too large to be read whole: the counts, and a part.
struct Part {
  qry_world_state state;
  std::vector<uint8_t> voxels;
  // Versions apart, and bytes.
  friend bool operator==(const Part& a, const Part& b) {
    return a.state.voxel_count == b.state.voxel_count && a.state.brick_count == b.state.brick_count &&
           a.state.history_length == b.state.history_length && a.state.history_position == b.state.history_position &&
           std::equal(a.state.min, a.state.min + 3, b.state.min) &&
           std::equal(a.state.max, a.state.max + 3, b.state.max) && a.voxels == b.voxels;
  }
};
Part part_of(qry_world* world) {
  const int32_t min[3] = {-4, -4, -4}, max[3] = {59, 59, 59};
  Part part{state_of(world), std::vector<uint8_t>(size_t(64) * 64 * 64)};
  require_ok(qry_world_read_region(world, min, max, part.voxels.data(), part.voxels.size()));
  return part;
}

}  // namespace

TEST_CASE(
    "c_api: with any piece of a device's memory refused a call is out of memory and the world as before, byte for "
    "byte, or it does without, and the next one is made",
    "[one-caller]") {
  const Worlds worlds;
  const fs::path dir = scratch_dir("api_device_memory");
  int failed = 0, turn = 0;
  const OneWorld begun = new_world(worlds, QRY_HOME_EMULATED);
  begin_faulty(begun.get());
  const Facts facts_before = facts_of(begun.get());
  const uint64_t version = state_of(begun.get()).version;
  for (const Operation& operation : operations(dir)) {
    INFO(operation.name);
    std::vector<Facts> facts_after = {facts_before};
    if (operation.changes) {
      const OneWorld twin = new_world(worlds, QRY_HOME_EMULATED);
      begin_faulty(twin.get());
      require_ok(operation.call(twin.get()));
      CHECK(state_of(twin.get()).version > version);
      facts_after = all_facts(twin.get());
    }
    failed += until_none_fails(
        [&](uint64_t number, Fault& fault) {
          const OneWorld world = faulty_world(worlds, fault);
          begin_faulty(world.get());
          arm(fault, number, turn++ % 2);
          const qry_result result = operation.call(world.get());
          const bool fired = fault.disarm();
          if (!fired) require_ok(result);
          if (result != QRY_OK) {
            refused(result);
            CHECK(state_of(world.get()).version == version);
            CHECK((facts_of(world.get()) == facts_before));
            require_ok(operation.call(world.get()));
          }
          if (fired && number == 1 && operation.changes) CHECK((all_facts(world.get()) == facts_after));
          else if (fired) CHECK((facts_of(world.get()) == facts_after.back()));
          return fired;
        },
        operation.slow ? 3 : 1);
  }
  CHECK(failed > (kSanitized ? 15 : 40));
}

TEST_CASE(
    "c_api: a change that needs more of each array than a device has room for is made as a whole, or is out of memory "
    "and changes nothing",
    "[one-caller]") {
  const Worlds worlds;
  const Operation large[] = {
      {"a box of many full bricks", true, [](qry_world* w) { return edit_at(w, QRY_SHAPE_BOX, -204, 407, 2); }},
      {"a plate of many bricks in part", true, [](qry_world* w) {
         qry_edit edit = QRY_EDIT_INIT;
         edit.b[0] = edit.b[2] = 8 * 182 - 1;
         return qry_world_edit(w, &edit, nullptr);
       }}};
  for (const Operation& operation : large) {
    INFO(operation.name);
    Fault none;
    const OneWorld twin = faulty_world(worlds, none);
    begin_faulty(twin.get());
    const Part before = part_of(twin.get());
    require_ok(operation.call(twin.get()));
    const Part made = part_of(twin.get());
    CHECK(made.state.brick_count > 32768);
    int out_of_memory = 0;
    until_none_fails([&](uint64_t number, Fault& fault) {
      const OneWorld world = faulty_world(worlds, fault);
      begin_faulty(world.get());
      // Room that is made ahead is asked for once more: so all is refused from here on.
      arm(fault, number, true);
      const qry_result result = operation.call(world.get());
      if (!fault.disarm()) return false;
      if (result != QRY_OK) {
        ++out_of_memory;
        refused(result);
        CHECK((part_of(world.get()) == before));
        require_ok(operation.call(world.get()));
      }
      CHECK((part_of(world.get()) == made));
      return true;
    });
    CHECK(out_of_memory > 0);
  }
}

TEST_CASE(
    "c_api: with any piece of a device's memory refused to opening, attaching or flushing there is no world, or it "
    "goes on, and what a flush then brings is all of it",
    "[one-caller]") {
  const Worlds worlds;
  const fs::path dir = scratch_dir("api_device_memory_files"), file = dir / "w.quarry", other = dir / "other.quarry";
  const auto begin = [](qry_world* world) {
    for (uint32_t i = 0; i < 8; ++i) change(world, 41, i);
  };
  write_file(worlds, file, begin);
  const auto facts = all_facts(opened(worlds, file).get());
  CHECK(until_none_fails([&](uint64_t number, Fault& fault) {
          arm(fault, number, number % 2);
          qry_result result;
          const OneWorld world = faulty_world(worlds, fault, file, &result);
          const bool fired = fault.disarm();
          if (!fired) require_ok(result);
          if (result != QRY_OK) refused(result);
          else CHECK((facts_of(world.get()) == facts.back()));
          return fired;
        }) > (kSanitized ? 5 : 30));
  CHECK((all_facts(opened(worlds, file).get()) == facts));

  for (const fs::path& to : {file, other}) {
    INFO("to " << to);
    const int failed = until_none_fails([&](uint64_t number, Fault& fault) {
      fs::remove(other);
      OneWorld world = faulty_world(worlds, fault, file), twin = opened(worlds, file);
      arm(fault, number, number % 2);
      const qry_result attached = qry_world_attach(world.get(), to.c_str());
      bool fired = fault.disarm();
      if (attached != QRY_OK) {
        refused(attached);
        CHECK(qry_world_detach(world.get()) == QRY_ERROR_INVALID_ARGUMENT);
        fs::remove(other);
        require_ok(qry_world_attach(world.get(), to.c_str()));
      }
      const auto both = [&](uint32_t i) { change(world.get(), 42, i), change(twin.get(), 42, i); };
      for (uint32_t i = 0; i < 6; ++i) both(i);
      arm(fault, number, number % 2);
      const qry_result flushed = qry_world_flush(world.get());
      fired = fault.disarm() || fired;
      if (flushed != QRY_OK) refused(flushed);
      for (uint32_t i = 6; i < 9; ++i) both(i);
      require_ok(qry_world_detach(world.get()));
      CHECK((all_facts(opened(worlds, to).get()) == all_facts(twin.get())));
      if (to == file) {  // as it was
        fs::remove(file);
        write_file(worlds, file, begin);
      }
      return fired;
    });
    CHECK(failed > 0);
  }
}

}  // namespace device_memory_test
