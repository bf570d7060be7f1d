// SPDX-License-Identifier: Apache-2.0
// memory_test.cpp - running out of host memory behind the plugin interface. Every allocation of a call is refused once,
// in turn. Each time the call must return QRY_ERROR_OUT_OF_MEMORY or succeed without that memory. No exception may
// leave it, and the world must be unchanged. The test replaces operator new of the whole process, including the shared
// library. So it is a separate executable.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <string>
#include <vector>

#include <quarry/quarry.h>

#include "tests/test_data.hpp"

namespace {
// They are of the arming thread only. Contexts here use one thread, so that every allocation is on it.
thread_local bool t_armed = false, t_fired = false;
thread_local uint64_t t_left = 0;

bool refuse_this_one() {
  if (!t_armed || t_fired) return false;
  if (t_left-- > 0) return false;
  return t_fired = true;
}
void* take(std::size_t size) {
  if (refuse_this_one()) throw std::bad_alloc();
  if (void* memory = std::malloc(size ? size : 1)) return memory;
  throw std::bad_alloc();
}
void* take_aligned(std::size_t size, std::align_val_t alignment) {
  if (refuse_this_one()) throw std::bad_alloc();
  const auto edge = std::size_t(alignment);
  if (void* memory = std::aligned_alloc(edge, (size + edge - 1) / edge * edge)) return memory;
  throw std::bad_alloc();
}
}  // namespace

void* operator new(std::size_t size) { return take(size); }
void* operator new[](std::size_t size) { return take(size); }
void* operator new(std::size_t size, std::align_val_t alignment) { return take_aligned(size, alignment); }
void* operator new[](std::size_t size, std::align_val_t alignment) { return take_aligned(size, alignment); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return refuse_this_one() ? nullptr : std::malloc(size ? size : 1);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return refuse_this_one() ? nullptr : std::malloc(size ? size : 1);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace {

qry_context* one_thread_context() {
  qry_context_info info = QRY_CONTEXT_INFO_INIT;
  info.device = QRY_DEVICE_NEVER;
  info.threads = 1;
  qry_context* context = nullptr;
  REQUIRE(qry_context_create(QRY_ABI_VERSION, &info, &context) == QRY_OK);
  return context;
}

struct Snapshot {
  std::vector<uint8_t> voxels = std::vector<uint8_t>(48 * 48 * 48);
  uint64_t voxel_count = 0, brick_count = 0, history = 0, position = 0, grid_live = 0;
  qry_material material{};
  friend bool operator==(const Snapshot& a, const Snapshot& b) {
    return a.voxels == b.voxels && a.voxel_count == b.voxel_count && a.brick_count == b.brick_count &&
           a.history == b.history && a.position == b.position && a.grid_live == b.grid_live &&
           a.material.emission == b.material.emission;
  }
};
Snapshot snapshot(qry_world* world) {
  Snapshot s;
  const int32_t min[3] = {-16, -16, -16}, max[3] = {31, 31, 31};
  REQUIRE(qry_world_read_region(world, min, max, s.voxels.data(), s.voxels.size()) == QRY_OK);
  qry_world_state state = QRY_WORLD_STATE_INIT;
  REQUIRE(qry_world_get_state(world, &state) == QRY_OK);
  qry_grid_stats stats = QRY_GRID_STATS_INIT;
  REQUIRE(qry_world_get_grid_stats(world, &stats) == QRY_OK);
  s.voxel_count = state.voxel_count;
  s.brick_count = state.brick_count;
  s.history = state.history_length;
  s.position = state.history_position;
  s.grid_live = stats.live;
  REQUIRE(qry_world_get_materials(world, 9, 1, &s.material) == QRY_OK);
  return s;
}

// Runs `call` until it gets all its memory. Calls `unchanged` after every refusal. Returns the number of refused
// allocations.
template <class Call, class Unchanged>
int exhaust_memory(Call&& call, Unchanged&& unchanged) {
  for (int n = 0; n < 100000; ++n) {
    t_left = uint64_t(n);
    t_fired = false;
    t_armed = true;
    const qry_result result = call();
    t_armed = false;
    if (!t_fired) {
      INFO(qry_last_error());
      REQUIRE(result == QRY_OK);
      return n;
    }
    INFO("allocation number " << n << " refused: " << qry_result_name(result) << ": " << qry_last_error());
    if (result == QRY_OK) return n;  // done without the memory
    REQUIRE(result == QRY_ERROR_OUT_OF_MEMORY);
    unchanged();
  }
  FAIL("more allocations than a call may take");
  return 0;
}

}  // namespace

TEST_CASE("c_api: a context or world that cannot get its memory is not made") {
  qry_context* context = nullptr;
  CHECK(exhaust_memory([&] { return qry_context_create(QRY_ABI_VERSION, nullptr, &context); },
                       [&] { REQUIRE(context == nullptr); }) > 0);
  qry_context_destroy(&context);
  context = one_thread_context();
  qry_world* world = nullptr;
  CHECK(exhaust_memory([&] { return qry_world_create(context, nullptr, &world); }, [&] { REQUIRE(world == nullptr); }) >
        0);
  qry_world_destroy(&world);
  qry_context_destroy(&context);
}

TEST_CASE("c_api: a writing call that runs out of memory at any allocation leaves the world as it was") {
  qry_context* context = one_thread_context();
  qry_world* world = nullptr;
  REQUIRE(qry_world_create(context, nullptr, &world) == QRY_OK);
  Snapshot before = snapshot(world);
  const auto unchanged = [&] { REQUIRE(snapshot(world) == before); };
  const auto step = [&](auto&& call) {
    before = snapshot(world);
    const int refused = exhaust_memory(call, unchanged);
    CHECK_FALSE(snapshot(world) == before);
    return refused;
  };

  qry_edit edit = QRY_EDIT_INIT;
  edit.shape = QRY_SHAPE_SPHERE;
  edit.radius = 11;
  CHECK(step([&] { return qry_world_edit(world, &edit, nullptr); }) > 0);
  const int32_t xyz[] = {1, 1, 1, 20, 20, 20, -9, 3, -12, 1, 1, 1};
  const uint8_t materials[] = {3, 4, 5, 0};
  CHECK(step([&] { return qry_world_set_voxels(world, 0, xyz, materials, 4, nullptr); }) > 0);
  const int32_t min[3] = {4, 4, 4}, max[3] = {19, 11, 13};
  const std::vector<uint8_t> dense(16 * 8 * 10, 17);
  CHECK(step([&] { return qry_world_write_region(world, 0, min, max, dense.data(), dense.size(), nullptr); }) > 0);
  step([&] { return qry_world_undo(world, nullptr); });
  step([&] { return qry_world_undo(world, nullptr); });
  step([&] { return qry_world_redo(world, nullptr); });
  edit.mode = QRY_MODE_REMOVE;
  edit.radius = 5;
  CHECK(step([&] { return qry_world_edit(world, &edit, nullptr); }) > 0);
  qry_material material{};
  REQUIRE(qry_world_get_materials(world, 9, 1, &material) == QRY_OK);
  material.emission += 3;
  step([&] { return qry_world_set_materials(world, 9, 1, &material); });
  // After all these refusals the world still works normally.
  REQUIRE(qry_world_undo(world, nullptr) == QRY_OK);
  REQUIRE(qry_world_undo(world, nullptr) == QRY_OK);
  REQUIRE(qry_world_undo(world, nullptr) == QRY_OK);
  CHECK(snapshot(world).voxel_count == 0);
  CHECK(snapshot(world).brick_count == 0);
  qry_world_destroy(&world);
  qry_context_destroy(&context);
}

TEST_CASE(
    "c_api: packing, unpacking and trimming that run out of memory at any allocation leave the world and its "
    "form as they were") {
  qry_context* context = one_thread_context();
  qry_world* world = nullptr;
  REQUIRE(qry_world_create(context, nullptr, &world) == QRY_OK);
  qry_edit edit = QRY_EDIT_INIT;
  edit.b[0] = edit.b[1] = edit.b[2] = 31;
  REQUIRE(qry_world_edit(world, &edit, nullptr) == QRY_OK);
  edit.mode = QRY_MODE_FILL;  // a second material in each brick, as bricks full of one have no places in the pool
  edit.material = 2;
  for (int32_t y = 0; y < 32; y += 8) {
    edit.a[1] = edit.b[1] = y;
    REQUIRE(qry_world_edit(world, &edit, nullptr) == QRY_OK);
  }
  edit.mode = QRY_MODE_REMOVE;  // whole bricks: a trim removes their places in the pool
  edit.a[1] = 0;
  edit.b[0] = edit.b[1] = edit.b[2] = 15;
  REQUIRE(qry_world_edit(world, &edit, nullptr) == QRY_OK);
  const Snapshot before = snapshot(world);
  qry_memory_state memory = QRY_MEMORY_STATE_INIT;
  uint32_t packed = 0;
  const auto unchanged = [&] {
    REQUIRE(snapshot(world) == before);
    REQUIRE(qry_world_get_memory(world, &memory) == QRY_OK);
    REQUIRE(memory.packed == packed);
  };
  CHECK(exhaust_memory([&] { return qry_world_trim(world); }, unchanged) > 0);
  CHECK(exhaust_memory([&] { return qry_world_pack(world); }, unchanged) > 0);
  packed = 1;
  unchanged();
  CHECK(exhaust_memory([&] { return qry_world_unpack(world); }, unchanged) > 0);
  packed = 0;
  unchanged();
  qry_world_destroy(&world);
  qry_context_destroy(&context);
}

TEST_CASE(
    "c_api: reading, saving and opening that run out of memory at any allocation leave no half file and no handle") {
  const std::filesystem::path folder = quarry::test::scratch_dir("c_api_memory");
  qry_context* context = one_thread_context();
  qry_world* world = nullptr;
  REQUIRE(qry_world_create(context, nullptr, &world) == QRY_OK);
  qry_edit edit = QRY_EDIT_INIT;
  edit.b[0] = edit.b[1] = edit.b[2] = 12;
  REQUIRE(qry_world_edit(world, &edit, nullptr) == QRY_OK);
  std::vector<uint8_t> voxels(16 * 16 * 16);
  const int32_t min[3] = {0, 0, 0}, max[3] = {15, 15, 15};
  exhaust_memory([&] { return qry_world_read_region(world, min, max, voxels.data(), voxels.size()); }, [] {});
  exhaust_memory([&] { return qry_world_get_voxels(world, min, voxels.data(), 1); }, [] {});
  qry_world_state state = QRY_WORLD_STATE_INIT;
  exhaust_memory([&] { return qry_world_get_state(world, &state); }, [] {});
  qry_grid_stats stats = QRY_GRID_STATS_INIT;
  exhaust_memory([&] { return qry_world_get_grid_stats(world, &stats); }, [] {});
  CHECK(stats.live == 8);

  const std::string path = (folder / "saved.quarry").string();
  qry_save_info save = QRY_SAVE_INFO_INIT;
  save.path = path.c_str();
  CHECK(exhaust_memory([&] { return qry_world_save(world, &save); },
                       [&] { REQUIRE_FALSE(std::filesystem::exists(path)); }) > 0);
  CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 1);
  qry_open_info open = QRY_OPEN_INFO_INIT;
  open.path = path.c_str();
  qry_world* opened = nullptr;
  for (const uint32_t flags : {0u, uint32_t(QRY_OPEN_FLATTEN)}) {
    open.flags = flags;
    CHECK(exhaust_memory([&] { return qry_world_open(context, &open, &opened); }, [&] { REQUIRE(opened == nullptr); }) >
          0);
    REQUIRE(opened != nullptr);
    state = QRY_WORLD_STATE_INIT;
    REQUIRE(qry_world_get_state(opened, &state) == QRY_OK);
    CHECK(state.voxel_count == 13 * 13 * 13);
    qry_world_destroy(&opened);
  }
  qry_world_destroy(&world);
  qry_context_destroy(&context);
}
