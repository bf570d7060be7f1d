// SPDX-License-Identifier: Apache-2.0
// lost_device_test.cpp - worlds whose device is lost at its first call, its second one, and so on, in every call of the
// interface: what answers, what does not, and what the file has.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "tests/app/sanitized.hpp"
#include "tests/engine/api/files/faulty.hpp"
#include "tests/test_data.hpp"

namespace lost_device_test {

using namespace quarry::test;
namespace fs = std::filesystem;

namespace {

// The first calls one by one, later ones, which are much like them, in part. Sanitizers see the same in fewer.
uint64_t after(uint64_t number, bool slow = false) {
  return number + (slow ? 12 : kSanitized ? 6 : number < 4 ? 1 : 6);
}

void lost(qry_result result) {
  INFO(qry_last_error());
  CHECK(result == QRY_ERROR_DEVICE_LOST);
  CHECK_THAT(qry_last_error(), Catch::Contains("lost") && Catch::Contains("open files again"));
}

// A lost world still answers what it can without the device.
void answers_without_device(qry_world* world, uint64_t awaited) {
  require_ok(qry_world_await(world, awaited, nullptr, nullptr));
  qry_material material;
  require_ok(qry_world_get_materials(world, 7, 1, &material));
  const int32_t outside[3] = {9000, 0, 0};
  uint8_t none = 7;
  require_ok(qry_world_get_voxels(world, outside, &none, 1));
  CHECK(none == 0);
}

}  // namespace

TEST_CASE(
    "c_api: with the device lost at any of its calls, this call and all others that need it answer so, the world is "
    "destroyed or its file let go, and the file has what was flushed, at once and at every home",
    "[one-caller]") {
  const Worlds worlds;
  const fs::path dir = scratch_dir("api_lost"), begun = dir / "begun.quarry", file = dir / "w.quarry";
  const auto all = operations(dir);
  write_file(worlds, begun, begin_faulty);
  uint64_t losses = 0;
  const auto flushed = all_facts(opened(worlds, begun).get());
  for (const Operation& operation : all) {
    INFO(operation.name);
    for (uint64_t number = 1;; number = after(number, operation.slow)) {
      INFO("call " << number);
      const bool attached =
          (number == 1 && operation.changes) || losses % 4 == 0;  // files cost the most of the test's time
      Fault fault;
      if (attached) fs::copy_file(begun, file, fs::copy_options::overwrite_existing);
      OneWorld world = faulty_world(worlds, fault, attached ? file : fs::path());
      if (attached) require_ok(qry_world_attach(world.get(), file.c_str()));
      else begin_faulty(world.get());
      uint64_t awaited = 0;
      qry_edit nothing = QRY_EDIT_INIT;
      nothing.mode = QRY_MODE_REMOVE;
      nothing.a[0] = nothing.b[0] = 500;
      require_ok(qry_world_submit_edit(world.get(), &nothing, &awaited));
      require_ok(qry_world_await(world.get(), awaited, nullptr, nullptr));
      fault.arm(QRY_ERROR_DEVICE_LOST, number);
      const qry_result result = operation.call(world.get());
      if (!fault.disarm()) {
        require_ok(result);
        break;
      }
      ++losses;
      lost(result);
      for (size_t i = number == 1 ? 0 : number % 5; i < all.size(); i += number == 1 ? 1 : 5) {
        INFO("then " << all[i].name);
        lost(all[i].call(world.get()));
      }
      answers_without_device(world.get(), awaited);
      if (!attached) continue;
      if (number == 1 || losses % 2) {
        // An edit may have been launched, or not yet.
        const qry_result detached = qry_world_detach(world.get());
        INFO(qry_last_error());
        CHECK((detached == QRY_OK || detached == QRY_ERROR_DEVICE_LOST));
        if (detached != QRY_OK) CHECK_THAT(qry_last_error(), Catch::Contains("w.quarry"));
        CHECK(qry_world_detach(world.get()) == QRY_ERROR_INVALID_ARGUMENT);
      } else {
        world = OneWorld(nullptr);
      }
      CHECK_FALSE(fs::exists(file.string() + "-wal"));
      if (number == 1 && operation.changes)
        CHECK((all_facts(opened(worlds, file, losses % 2 ? QRY_HOME_HOST : QRY_HOME_EMULATED).get()) == flushed));
      else CHECK((facts_of(opened(worlds, file).get()) == flushed.back()));
    }
  }
  CHECK(losses > (kSanitized ? 1 : 2) * all.size());
}

TEST_CASE(
    "c_api: with the device lost at any call of a flush the file is as after the last one, or has all of it, and goes "
    "on at another home, while changes that were not flushed are said to be lost",
    "[one-caller]") {
  const Worlds worlds;
  const fs::path dir = scratch_dir("api_lost_flush"), file = dir / "w.quarry";
  for (const uint64_t budget : {0, 3000}) {
    INFO("budget " << budget);
    bool fired = true;
    for (uint64_t number = 1; fired; number = after(number)) {
      INFO("call " << number);
      fs::remove(file);
      Fault fault;
      OneWorld world = faulty_world(worlds, fault), twin = new_world(worlds, QRY_HOME_HOST);
      for (uint32_t i = 0; i < 8; ++i) change(world.get(), 31, i), change(twin.get(), 31, i);
      require_ok(qry_world_attach(world.get(), file.c_str()));
      require_ok(qry_world_set_history_budget(world.get(), budget));
      const auto before = facts_of(twin.get());
      for (uint32_t i = 8; i < 14; ++i) change(world.get(), 31, i), change(twin.get(), 31, i);
      fault.arm(QRY_ERROR_DEVICE_LOST, number);
      const qry_result result = qry_world_flush(world.get());
      fired = fault.disarm();
      if (result != QRY_OK) {
        CHECK(fired);
        lost(result);
        lost(qry_world_flush(world.get()));
        lost(qry_world_detach(world.get()));
        CHECK_THAT(qry_last_error(), Catch::Contains("w.quarry is as after the last flush"));
      } else {  // at the budget, when the file had all of it
        CHECK((!fired || budget));
        require_ok(qry_world_flush(world.get()));
        require_ok(qry_world_detach(world.get()));
      }
      CHECK_FALSE(fs::exists(file.string() + "-wal"));
      OneWorld again = opened(worlds, file);
      CHECK((facts_of(again.get()) == (result == QRY_OK ? facts_of(twin.get()) : before)));
      require_ok(qry_world_attach(again.get(), file.c_str()));
      change(again.get(), 31, 20);
      require_ok(qry_world_detach(again.get()));
    }
  }
}

TEST_CASE("c_api: what was submitted and had no answer when the device was lost is not said to be flushed") {
  const Worlds worlds;
  const fs::path dir = scratch_dir("api_lost_submitted"), file = dir / "w.quarry";
  Fault fault;
  const OneWorld world = faulty_world(worlds, fault);
  begin_faulty(world.get());
  const Facts flushed = facts_of(world.get());
  require_ok(qry_world_attach(world.get(), file.c_str()));
  // More bricks than there is room for. As no room can be made ahead, the device refuses the edit, and its answer waits
  // for the host.
  qry_edit plate = QRY_EDIT_INIT;
  plate.b[0] = plate.b[2] = 8 * 182 - 1;
  uint64_t ticket = 0;
  fault.arm(QRY_ERROR_OUT_OF_MEMORY, 1, QRY_EMULATED_ALLOCATION);
  require_ok(qry_world_submit_edit(world.get(), &plate, &ticket));
  REQUIRE(fault.disarm());
  fault.arm(QRY_ERROR_DEVICE_LOST, 1);
  for (int i = 0; i < 2; ++i) lost(qry_world_await(world.get(), ticket, nullptr, nullptr));
  CHECK(fault.disarm());
  lost(qry_world_flush(world.get()));
  lost(qry_world_detach(world.get()));
  CHECK((facts_of(opened(worlds, file).get()) == flushed));
}

TEST_CASE(
    "c_api: with the device lost at any call of opening or attaching there is no world, or no file is attached, and "
    "what "
    "the file has stays",
    "[one-caller]") {
  const Worlds worlds;
  const fs::path dir = scratch_dir("api_lost_open"), file = dir / "w.quarry", other = dir / "other.quarry";
  write_file(worlds, file, begin_faulty);
  const Facts facts = facts_of(opened(worlds, file).get());
  for (const bool empty : {true, false}) {
    bool fired = true;
    for (uint64_t number = 1; fired; number = after(number)) {
      INFO("call " << number << " of a world that is empty " << empty);
      Fault fault;
      fault.arm(QRY_ERROR_DEVICE_LOST, number);
      qry_result result;
      const OneWorld world = faulty_world(worlds, fault, empty ? fs::path() : file, &result);
      fired = fault.disarm();
      if (fired) lost(result);
      else CHECK(result == QRY_OK);
    }
  }
  for (const fs::path& to : {file, other}) {
    bool fired = true;
    for (uint64_t number = 1; fired; number = after(number)) {
      INFO("call " << number << " of attaching " << to);
      fs::remove(other);
      Fault fault;
      OneWorld world = faulty_world(worlds, fault, file);
      fault.arm(QRY_ERROR_DEVICE_LOST, number);
      const qry_result result = qry_world_attach(world.get(), to.c_str());
      fired = fault.disarm();
      if (fired) {
        lost(result);
        CHECK(qry_world_detach(world.get()) == QRY_ERROR_INVALID_ARGUMENT);
      } else {
        require_ok(result);
      }
      world = OneWorld(nullptr);
      if (!fired || fs::exists(to)) CHECK((facts_of(opened(worlds, to).get()) == facts));
    }
  }
  CHECK((facts_of(opened(worlds, file).get()) == facts));
}

TEST_CASE("c_api: an emulation is refused at any home but the emulated one, and no structure of it is ignored") {
  const Worlds worlds;
  Fault fault;
  for (const uint32_t home : {QRY_HOME_AUTOMATIC, QRY_HOME_HOST, QRY_HOME_DEVICE}) {
    qry_emulation_info emulation = fault.info();
    qry_world_home_info wanted = QRY_WORLD_HOME_INFO_INIT;
    wanted.home = home;
    wanted.next = &emulation;
    qry_world_info info = QRY_WORLD_INFO_INIT;
    info.next = &wanted;
    qry_world* world = nullptr;
    CHECK(qry_world_create(worlds.context(), &info, &world) == QRY_ERROR_INVALID_ARGUMENT);
    CHECK_THAT(qry_last_error(), Catch::Contains("QRY_HOME_EMULATED"));
    CHECK(world == nullptr);
  }
  qry_emulation_info twice = fault.info(), again = fault.info();
  twice.next = &again;
  qry_world_info info = QRY_WORLD_INFO_INIT;
  info.next = &twice;
  qry_world* world = nullptr;
  CHECK(qry_world_create(worlds.context(), &info, &world) == QRY_ERROR_DUPLICATE_STRUCT);
  CHECK_THAT(qry_last_error(), Catch::Contains("QRY_STYPE_EMULATION_INFO is twice"));
}

}  // namespace lost_device_test
