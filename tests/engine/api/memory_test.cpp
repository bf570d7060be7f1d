// SPDX-License-Identifier: Apache-2.0
// memory_test.cpp - running out of host memory behind the plugin interface. Every allocation of a call is refused once,
// in turn. Each time the call must return QRY_ERROR_OUT_OF_MEMORY or succeed without that memory. No exception may
// leave it, and the world must be unchanged. The test replaces operator new of the whole process, including the shared
// library. So it is a separate executable.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
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

// Host threads stand in for a device: what their kernels need is never refused, as a device's own memory is another.
// A call there may need no memory of the host.
constexpr uint32_t kHomes[] = {QRY_HOME_HOST, QRY_HOME_EMULATED};
qry_world* new_world(qry_context* context, uint32_t home) {
  qry_world_home_info wanted = QRY_WORLD_HOME_INFO_INIT;
  wanted.home = home;
  qry_world_info info = QRY_WORLD_INFO_INIT;
  info.next = &wanted;
  qry_world* world = nullptr;
  REQUIRE(qry_world_create(context, &info, &world) == QRY_OK);
  return world;
}

struct Snapshot {
  std::vector<uint8_t> voxels = std::vector<uint8_t>(48 * 48 * 48);
  uint64_t version = 0;  // rises though all else is the same, so it is compared by itself
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
  s.version = state.version;
  s.voxel_count = state.voxel_count;
  s.brick_count = state.brick_count;
  s.history = state.history_length;
  s.position = state.history_position;
  s.grid_live = stats.live;
  REQUIRE(qry_world_get_materials(world, 9, 1, &s.material) == QRY_OK);
  return s;
}

// Runs `call` until it gets all its memory. Calls `unchanged` after every refusal. A call that does without the memory
// ends it, unless there is `again`, which makes the state before the call once more. Returns the number of refused
// allocations.
template <class Call, class Unchanged>
int exhaust_memory(Call&& call, Unchanged&& unchanged, const std::function<void()>& again = {}) {
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
    if (result == QRY_OK) {
      if (!again) return n;
      again();
      continue;
    }
    REQUIRE(result == QRY_ERROR_OUT_OF_MEMORY);
    unchanged();
  }
  FAIL("more allocations than a call may take");
  return 0;
}

void require_same(qry_world* world, const Snapshot& before) {
  const Snapshot now = snapshot(world);
  REQUIRE(now == before);
  REQUIRE(now.version == before.version);
}

// Bricks of one material, of several, and cut ones. A third step was undone: a refused call must not lose it.
qry_world* world_of_two_steps(qry_context* context, uint32_t home) {
  qry_world* world = new_world(context, home);
  qry_edit edit = QRY_EDIT_INIT;
  edit.mode = QRY_MODE_FILL;
  edit.a[1] = edit.a[2] = -6;
  edit.b[0] = edit.b[1] = edit.b[2] = 17;
  REQUIRE(qry_world_edit(world, &edit, nullptr) == QRY_OK);
  edit.material = 2;
  edit.a[0] = 9;
  REQUIRE(qry_world_edit(world, &edit, nullptr) == QRY_OK);
  edit.material = 3;
  edit.a[2] = 10;
  REQUIRE(qry_world_edit(world, &edit, nullptr) == QRY_OK);
  REQUIRE(qry_world_undo(world, nullptr) == QRY_OK);
  return world;
}

// Every shape in every mode, lists and regions.
struct WritingCall {
  std::string name;
  std::function<qry_result(qry_world*)> call;
};
std::vector<WritingCall> writing_calls() {
  std::vector<WritingCall> calls;
  for (const uint32_t shape : {QRY_SHAPE_BOX, QRY_SHAPE_SPHERE, QRY_SHAPE_LINE, QRY_SHAPE_CONNECTED})
    for (const uint32_t mode : {QRY_MODE_ADD, QRY_MODE_REMOVE, QRY_MODE_PAINT, QRY_MODE_REPLACE, QRY_MODE_FILL}) {
      if (shape == QRY_SHAPE_CONNECTED && mode == QRY_MODE_ADD) continue;  // no voxel of it is empty
      qry_edit edit = QRY_EDIT_INIT;
      edit.shape = shape;
      edit.mode = mode;
      edit.material = 30;
      edit.from = 2;
      for (size_t i = 0; i < 3; ++i) edit.a[i] = shape == QRY_SHAPE_CONNECTED ? 11 : -3, edit.b[i] = 21;
      edit.radius = shape == QRY_SHAPE_SPHERE ? 12.5 : 2;
      calls.push_back({"shape " + std::to_string(shape) + ", mode " + std::to_string(mode),
                       [edit](qry_world* world) { return qry_world_edit(world, &edit, nullptr); }});
    }
  qry_edit thin = QRY_EDIT_INIT;
  thin.shape = QRY_SHAPE_LINE;
  thin.mode = QRY_MODE_FILL;
  thin.material = 31;
  thin.a[0] = -15, thin.b[0] = 30, thin.b[1] = 17;
  calls.push_back({"a thin line", [thin](qry_world* world) { return qry_world_edit(world, &thin, nullptr); }});

  std::vector<int32_t> xyz;
  std::vector<uint8_t> materials;
  for (int32_t n = 0; n < 3000; ++n) {  // set, removed, given twice
    xyz.insert(xyz.end(), {n * 37 % 48 - 16, n * 101 % 40 - 16, n * 17 % 24 - 8});
    materials.push_back(uint8_t(n % 5));
  }
  calls.push_back({"a list", [xyz, materials](qry_world* world) {
                     return qry_world_set_voxels(world, 0, xyz.data(), materials.data(), materials.size(), nullptr);
                   }});
  const auto region = [](int32_t low, int32_t high, const std::vector<uint8_t>& voxels) {
    return [low, high, voxels](qry_world* world) {
      const int32_t min[3] = {low, low, low}, max[3] = {high, high, high};
      return qry_world_write_region(world, 0, min, max, voxels.data(), voxels.size(), nullptr);
    };
  };
  std::vector<uint8_t> noise(27 * 27 * 27);
  for (size_t i = 0; i < noise.size(); ++i) noise[i] = uint8_t(i * i % 7);
  calls.push_back({"a region of noise", region(-5, 21, noise)});
  calls.push_back({"whole bricks of one material", region(-8, 15, std::vector<uint8_t>(24 * 24 * 24, 40))});
  calls.push_back({"whole bricks removed", region(-8, 15, std::vector<uint8_t>(24 * 24 * 24, 0))});
  calls.push_back({"grown", [](qry_world* world) { return qry_world_dilate(world, 0, 26, 1, nullptr, nullptr); }});
  calls.push_back({"eroded", [](qry_world* world) { return qry_world_erode(world, 0, 6, 1, nullptr, nullptr); }});
  calls.push_back({"less itself", [](qry_world* world) {
                     return qry_world_combine(world, 0, world, QRY_COMBINE_DIFFERENCE, nullptr, nullptr);
                   }});
  calls.push_back({"parts of less than 10^9 voxels removed", [](qry_world* world) {
                     return qry_world_keep_parts(world, 0, 6, 1, 1000000000, nullptr, nullptr);
                   }});
  return calls;
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
  for (const uint32_t home : kHomes) {
    CAPTURE(home);
    qry_context* context = one_thread_context();
    qry_world* world = new_world(context, home);
    Snapshot before = snapshot(world);
    const auto unchanged = [&] { require_same(world, before); };
    const auto step = [&](auto&& call) {
      before = snapshot(world);
      const int refused = exhaust_memory(call, unchanged);
      CHECK_FALSE(snapshot(world) == before);
      return refused;
    };

    qry_edit edit = QRY_EDIT_INIT;
    edit.shape = QRY_SHAPE_SPHERE;
    edit.radius = 11;
    CHECK((step([&] { return qry_world_edit(world, &edit, nullptr); }) > 0 || home != QRY_HOME_HOST));
    const int32_t xyz[] = {1, 1, 1, 20, 20, 20, -9, 3, -12, 1, 1, 1};
    const uint8_t materials[] = {3, 4, 5, 0};
    CHECK((step([&] { return qry_world_set_voxels(world, 0, xyz, materials, 4, nullptr); }) > 0 ||
           home != QRY_HOME_HOST));
    const int32_t min[3] = {4, 4, 4}, max[3] = {19, 11, 13};
    const std::vector<uint8_t> dense(16 * 8 * 10, 17);
    CHECK((step([&] { return qry_world_write_region(world, 0, min, max, dense.data(), dense.size(), nullptr); }) > 0 ||
           home != QRY_HOME_HOST));
    step([&] { return qry_world_undo(world, nullptr); });
    step([&] { return qry_world_undo(world, nullptr); });
    step([&] { return qry_world_redo(world, nullptr); });
    edit.mode = QRY_MODE_REMOVE;
    edit.radius = 5;
    CHECK((step([&] { return qry_world_edit(world, &edit, nullptr); }) > 0 || home != QRY_HOME_HOST));
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
}

TEST_CASE(
    "c_api: each shape in each mode, lists, regions, and undo and redo of each, that run out of memory at any "
    "allocation leave the world as it was") {
  for (const uint32_t home : kHomes) {
    CAPTURE(home);
    qry_context* context = one_thread_context();
    for (const WritingCall& writing : writing_calls()) {
      INFO(writing.name);
      qry_world* world = world_of_two_steps(context, home);
      const Snapshot first = snapshot(world);
      const auto anew = [&] {
        qry_world_destroy(&world);
        world = world_of_two_steps(context, home);
        require_same(world, first);
      };
      const int refused =
          exhaust_memory([&] { return writing.call(world); }, [&] { require_same(world, first); }, anew);
      CHECK((refused > 0 || home != QRY_HOME_HOST));
      Snapshot second = snapshot(world);
      REQUIRE_FALSE(second == first);
      REQUIRE(second.history == 3);
      REQUIRE(second.position == 3);
      REQUIRE(second.version > first.version);
      const auto redo = [&] {
        REQUIRE(qry_world_redo(world, nullptr) == QRY_OK);
        REQUIRE(snapshot(world) == second);
        second = snapshot(world);
      };
      exhaust_memory([&] { return qry_world_undo(world, nullptr); }, [&] { require_same(world, second); }, redo);
      Snapshot undone = snapshot(world);
      REQUIRE((undone.voxels == first.voxels));
      REQUIRE(undone.voxel_count == first.voxel_count);
      REQUIRE(undone.brick_count == first.brick_count);
      REQUIRE(undone.history == 3);
      REQUIRE(undone.position == 2);
      const auto undo = [&] {
        REQUIRE(qry_world_undo(world, nullptr) == QRY_OK);
        REQUIRE(snapshot(world) == undone);
        undone = snapshot(world);
      };
      exhaust_memory([&] { return qry_world_redo(world, nullptr); }, [&] { require_same(world, undone); }, undo);
      REQUIRE(snapshot(world) == second);
      qry_world_destroy(&world);
    }
    qry_context_destroy(&context);
  }
}

TEST_CASE(
    "c_api: packing, unpacking and trimming that run out of memory at any allocation leave the world and its "
    "form as they were") {
  for (const uint32_t home : kHomes) {
    CAPTURE(home);
    qry_context* context = one_thread_context();
    qry_world* world = new_world(context, home);
    // Bricks of a step that was undone and left behind: free places before those that come.
    qry_edit ball = QRY_EDIT_INIT;
    ball.shape = QRY_SHAPE_SPHERE;
    ball.radius = 30;
    REQUIRE(qry_world_edit(world, &ball, nullptr) == QRY_OK);
    REQUIRE(qry_world_undo(world, nullptr) == QRY_OK);
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
    unchanged();
    const uint64_t masks = memory.mask_bytes;
    CHECK(exhaust_memory([&] { return qry_world_trim(world); }, unchanged) > 0);
    unchanged();
    if (home == QRY_HOME_HOST) CHECK(memory.mask_bytes < masks);
    CHECK(exhaust_memory([&] { return qry_world_pack(world); }, unchanged) > 0);
    packed = 1;
    unchanged();
    CHECK(exhaust_memory([&] { return qry_world_unpack(world); }, unchanged) > 0);
    packed = 0;
    unchanged();
    qry_world_destroy(&world);
    qry_context_destroy(&context);
  }
}

TEST_CASE(
    "c_api: reading, saving and opening that run out of memory at any allocation leave no half file and no handle") {
  for (const uint32_t home : kHomes) {
    CAPTURE(home);
    const std::filesystem::path folder = quarry::test::scratch_dir("c_api_memory");
    qry_context* context = one_thread_context();
    qry_world* world = new_world(context, home);
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
    qry_world_sums sums = QRY_WORLD_SUMS_INIT;
    exhaust_memory([&] { return qry_world_get_sums(world, &sums); }, [] {});
    qry_comparison comparison = QRY_COMPARISON_INIT;
    exhaust_memory([&] { return qry_world_compare(world, world, 0, &comparison); }, [] {});
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
      CHECK(exhaust_memory([&] { return qry_world_open(context, &open, &opened); },
                           [&] { REQUIRE(opened == nullptr); }) > 0);
      REQUIRE(opened != nullptr);
      state = QRY_WORLD_STATE_INIT;
      REQUIRE(qry_world_get_state(opened, &state) == QRY_OK);
      CHECK(state.voxel_count == 13 * 13 * 13);
      qry_world_destroy(&opened);
    }
    qry_world_destroy(&world);
    qry_context_destroy(&context);
  }
}
