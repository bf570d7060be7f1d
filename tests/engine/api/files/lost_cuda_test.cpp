// SPDX-License-Identifier: Apache-2.0
// lost_cuda_test.cpp - a CUDA device that is lost to the process for good: a kernel of a world there is told to write
// where no memory is. A program of its own, because nothing else in the process can use the device afterwards.
#include <catch2/catch.hpp>
#include <filesystem>
#include <vector>

#include "tests/engine/api/files/faulty.hpp"
#include "tests/test_data.hpp"

namespace lost_cuda_test {

using namespace quarry::test;
namespace fs = std::filesystem;

TEST_CASE(
    "c_api: when a kernel has lost the CUDA device, worlds there say so, are destroyed, and their files have what was "
    "flushed, on the host at once and there no more") {
  const fs::path dir = scratch_dir("api_lost_cuda"), file = dir / "w.quarry", other = dir / "other.quarry";
  const Worlds worlds;
  OneWorld world = new_world(worlds, QRY_HOME_DEVICE);
  if (!world) return;
  OneWorld destroyed = new_world(worlds, QRY_HOME_DEVICE);
  const OneWorld idle = new_world(worlds, QRY_HOME_DEVICE), on_host = new_world(worlds, QRY_HOME_HOST);
  for (uint32_t i = 0; i < 12; ++i)
    for (qry_world* one : {world.get(), destroyed.get(), on_host.get()}) change(one, 51, i);
  require_ok(qry_world_attach(world.get(), file.c_str()));
  require_ok(qry_world_attach(destroyed.get(), other.c_str()));
  require_ok(qry_world_attach(idle.get(), (dir / "idle.quarry").c_str()));
  const auto flushed = all_facts(on_host.get());
  for (uint32_t i = 12; i < 20; ++i) change(world.get(), 51, i), change(destroyed.get(), 51, i);
  uint64_t awaited = 0, under_way = 0;
  qry_edit edit = QRY_EDIT_INIT;
  edit.material = 3;
  require_ok(qry_world_submit_edit(world.get(), &edit, &awaited));
  require_ok(qry_world_await(world.get(), awaited, nullptr, nullptr));

  // It may be told by this call, or by the next one.
  const int32_t min[3] = {0, 0, 0}, max[3] = {63, 63, 63};
  // An address that no memory is at.
  const auto nowhere = reinterpret_cast<uint8_t*>(uintptr_t(4096));  // NOLINT(performance-no-int-to-ptr)
  const qry_result read = qry_world_cuda_read_region(world.get(), min, max, nowhere, 64 * 64 * 64, nullptr);
  CHECK((read == QRY_OK || read == QRY_ERROR_DEVICE_LOST));
  const auto lost = [](qry_result result) {
    INFO(qry_last_error());
    CHECK(result == QRY_ERROR_DEVICE_LOST);
    CHECK_THAT(qry_last_error(), Catch::Contains("lost"));
  };
  qry_world_state state = QRY_WORLD_STATE_INIT;
  lost(qry_world_get_state(world.get(), &state));
  for (const Operation& operation : operations(dir))
    for (qry_world* one : {world.get(), destroyed.get()}) {
      INFO(operation.name);
      lost(operation.call(one));
    }
  lost(qry_world_submit_edit(world.get(), &edit, &under_way));
  require_ok(qry_world_await(world.get(), awaited, nullptr, nullptr));
  lost(qry_world_flush(world.get()));
  lost(qry_world_detach(world.get()));
  CHECK(qry_world_detach(world.get()) == QRY_ERROR_INVALID_ARGUMENT);
  require_ok(qry_world_flush(idle.get()));
  require_ok(qry_world_detach(idle.get()));
  destroyed = OneWorld(nullptr);

  for (const fs::path& its : {file, other}) {
    CHECK_FALSE(fs::exists(its.string() + "-wal"));
    CHECK((all_facts(opened(worlds, its).get()) == flushed));
    CHECK((all_facts(opened(worlds, its, QRY_HOME_EMULATED).get()) == flushed));
  }
  CHECK((all_facts(on_host.get()) == flushed));
  qry_world_home_info home = QRY_WORLD_HOME_INFO_INIT;
  home.home = QRY_HOME_DEVICE;
  qry_world_info info = QRY_WORLD_INFO_INIT;
  info.next = &home;
  qry_world* again = nullptr;
  lost(qry_world_create(worlds.context(), &info, &again));
  CHECK(again == nullptr);
  world = OneWorld(nullptr);
}

}  // namespace lost_cuda_test
