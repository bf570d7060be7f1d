// SPDX-License-Identifier: Apache-2.0
// homes_test.cpp - worlds at home on a device, and on host threads in its place: drawn from the memory in which they
// are edited, beside the same worlds at home on the host.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <quarry/quarry.h>

#include "bench/cuda_arrays.hpp"
#include "tests/engine/api/world_at.hpp"
#include "tests/test_data.hpp"
#include "tests/wavy_ball.hpp"

namespace homes_test {

namespace {

void require_ok(qry_result result) {
  INFO(qry_last_error());
  REQUIRE(result == QRY_OK);
}

class Context {
 public:
  explicit Context(uint32_t device) {
    qry_context_info info = QRY_CONTEXT_INFO_INIT;
    info.device = device;
#if !defined(__SANITIZE_THREAD__)  // it does not know how the layer synchronises its threads
    info.validation = 1;
#endif
    info.log = [](void* user, int32_t level, const char* message) {
      if (level >= QRY_LOG_WARNING) *static_cast<std::string*>(user) += std::string(message) + "\n";
    };
    info.log_user = &said_;
    qry_result made = qry_context_create(QRY_ABI_VERSION, &info, &context_);
    if (made == QRY_ERROR_UNSUPPORTED) {  // a machine without the layers
      std::printf("skipped validation: %s\n", qry_last_error());
      info.validation = 0;
      made = qry_context_create(QRY_ABI_VERSION, &info, &context_);
    }
    require_ok(made);
  }
  ~Context() { qry_context_destroy(&context_); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  qry_context* get() const { return context_; }
  const std::string& said() const { return said_; }

 private:
  qry_context* context_ = nullptr;
  std::string said_;
};

using quarry::test::world_at;

qry_edit ball(int32_t x, int32_t y, int32_t z, double radius, uint32_t material, uint32_t mode = QRY_MODE_FILL) {
  qry_edit edit = QRY_EDIT_INIT;
  edit.shape = QRY_SHAPE_SPHERE;
  edit.mode = mode;
  edit.material = material;
  edit.a[0] = x, edit.a[1] = y, edit.a[2] = z;
  edit.radius = radius;
  return edit;
}

std::vector<uint8_t> picture(qry_world* world, uint32_t view = QRY_VIEW_SHADED) {
  qry_render_info info = QRY_RENDER_INFO_INIT;
  info.width = 96;
  info.height = 64;
  info.view = view;
  info.camera.position[0] = 90, info.camera.position[1] = 70, info.camera.position[2] = 160;
  info.camera.target[0] = info.camera.target[1] = info.camera.target[2] = 0;
  std::vector<uint8_t> rgba(96 * 64 * 4);
  require_ok(qry_world_render(world, &info, rgba.data(), rgba.size(), 0));
  return rgba;
}

qry_home_state home_of(qry_world* world) {
  qry_home_state state = QRY_HOME_STATE_INIT;
  require_ok(qry_world_get_home(world, &state));
  return state;
}

// An array where a home's pointers are: in the device's memory, or on the host, if host threads stand in for it.
template <class T>
class ArrayAt {
 public:
  ArrayAt(uint32_t home, std::vector<T> values)
      : on_device_(home == QRY_HOME_DEVICE), there_(on_device_ ? values : std::vector<T>()), here_(std::move(values)) {
    if (on_device_) REQUIRE(there_.get());
  }
  T* get() { return on_device_ ? there_.get() : here_.data(); }
  // After what CUDA's default stream has got.
  std::vector<T> values() const { return on_device_ ? there_.values() : here_; }

 private:
  bool on_device_;
  quarry::bench::CudaArray<T> there_;
  std::vector<T> here_;
};

}  // namespace

TEST_CASE(
    "c_api: a world at home on a device is drawn from the memory in which it is edited: the same pictures as of a "
    "world on the host, and no voxel goes over the bus") {
  const Context context(QRY_DEVICE_NOW);
  for (const uint32_t home : {uint32_t(QRY_HOME_EMULATED), uint32_t(QRY_HOME_DEVICE)}) {
    qry_world *there = world_at(context.get(), home), *here = world_at(context.get(), QRY_HOME_HOST);
    if (!there) {
      qry_world_destroy(&here);
      continue;
    }
    uint64_t last = 0;
    for (int round = 0; round < 14; ++round) {
      for (int i = 0; i < 30; ++i) {
        const int n = round * 30 + i;
        // Rounds end with an empty picture, a large edit, which needs more memory, and undone ones.
        const qry_edit edit = ball(n * 37 % 90 - 45, n * 53 % 60 - 30, n * 71 % 80 - 40, 3 + n * 13 % 14,
                                   uint32_t(1 + n % 200), n % 5 == 4 ? QRY_MODE_REMOVE : QRY_MODE_FILL);
        require_ok(qry_world_submit_edit(there, &edit, &last));
        require_ok(qry_world_edit(here, &edit, nullptr));
      }
      if (round % 5 == 2) {  // a palette is the world's, wherever it is at home
        for (qry_world* const world : {there, here}) {
          qry_material material;
          require_ok(qry_world_get_materials(world, 3, 1, &material));
          material.rgba[0] = uint8_t(40 * round);
          require_ok(qry_world_set_materials(world, 3, 1, &material));
        }
      }
      if (round == 5) {
        const qry_edit large = ball(0, -300, 0, 260, 17);
        require_ok(qry_world_submit_edit(there, &large, &last));
        require_ok(qry_world_edit(here, &large, nullptr));
      }
      for (int i = 0; i < round % 3 * 4; ++i) {
        require_ok(qry_world_submit_undo(there, &last));
        require_ok(qry_world_undo(here, nullptr));
      }
      REQUIRE((picture(there) == picture(here)));
      // The same once more, and another view.
      if (round % 4 == 0) REQUIRE((picture(there, QRY_VIEW_NORMALS) == picture(here, QRY_VIEW_NORMALS)));
    }
    // Where CUDA shares memory with shaders, host threads in its place do not.
    REQUIRE(home_of(there).home == home);
    if (home == QRY_HOME_DEVICE || home_of(there).in_place) REQUIRE(home_of(there).in_place == 1);
    // The 431 edits left in the device what they made there.
    if (home_of(there).in_place) {
      REQUIRE(home_of(there).bytes_from_device < 200000);
      REQUIRE(home_of(there).bytes_to_device < 4 * 1024 * 1024);
    }
    REQUIRE((picture(there) == picture(here)));
    for (const int i : {1, 2, 3}) {
      const qry_edit edit = ball(i * 10, 20, 0, 9, 30);
      require_ok(qry_world_edit(there, &edit, nullptr));
      require_ok(qry_world_edit(here, &edit, nullptr));
      require_ok(qry_world_trim(there));
      REQUIRE((picture(there) == picture(here)));
    }
    qry_world_destroy(&there);
    qry_world_destroy(&here);
  }
  INFO(context.said());
  REQUIRE(context.said().empty());
}

TEST_CASE(
    "c_api: a world at home on a device tells the stages of its last edit, once they are timed, and how often its "
    "memory has changed hands; at home on the host there are no stages") {
  const Context context(QRY_DEVICE_NOW);
  for (const uint32_t home : {uint32_t(QRY_HOME_EMULATED), uint32_t(QRY_HOME_DEVICE)}) {
    qry_world *there = world_at(context.get(), home), *untimed = world_at(context.get(), home);
    if (!there || !untimed) continue;
    std::vector<qry_edit_stage> stages(128);
    const auto listed = [&] {
      uint64_t count = stages.size();
      require_ok(qry_world_list_edit_stages(there, stages.data(), &count));
      return count;
    };
    const auto named = [&](uint64_t count, const std::string& name) {
      return std::count_if(stages.begin(), stages.begin() + int64_t(count),
                           [&](const qry_edit_stage& stage) { return stage.name == name; });
    };
    const auto hand_overs = [&] {
      qry_hand_over_state shared = QRY_HAND_OVER_STATE_INIT;
      shared.hand_overs = 77;
      qry_home_state state = QRY_HOME_STATE_INIT;
      state.next = &shared;
      require_ok(qry_world_get_home(there, &state));
      return shared.hand_overs;
    };
    const qry_edit first = ball(0, 0, 0, 30, 5), second = ball(30, 9, 4, 12, 6);
    for (qry_world* const world : {there, untimed}) require_ok(qry_world_edit(world, &first, nullptr));
    CHECK(listed() == 0);
    require_ok(qry_world_time_edits(there, 1));
    for (qry_world* const world : {there, untimed}) require_ok(qry_world_edit(world, &second, nullptr));
    uint64_t count = listed();
    REQUIRE(count >= 6);
    CHECK(std::string(stages[0].name) == "touch a box");
    CHECK((named(count, "cut") == 1 && named(count, "write tops") == 1 && named(count, "settle an undo") == 0));
    double sum = 0;
    for (uint64_t i = 0; i < count; ++i) {
      CHECK((stages[i].launches == 1 && stages[i].ms >= 0));
      sum += stages[i].ms;
    }
    CHECK(sum > 0);
    // Of an array that is too small it has the first ones.
    qry_edit_stage one = {nullptr, 0, 0};
    uint64_t room = 1;
    CHECK(qry_world_list_edit_stages(there, &one, &room) == QRY_INCOMPLETE);
    CHECK((room == count && one.name == stages[0].name && one.ms == stages[0].ms));
    room = 0;
    CHECK(qry_world_list_edit_stages(there, nullptr, &room) == QRY_INCOMPLETE);
    CHECK(qry_world_list_edit_stages(there, nullptr, &room) == QRY_ERROR_INVALID_ARGUMENT);
    CHECK(qry_world_list_edit_stages(there, stages.data(), nullptr) == QRY_ERROR_INVALID_ARGUMENT);
    // What is submitted is waited for.
    uint64_t ticket = 0;
    for (qry_world* const world : {there, untimed}) require_ok(qry_world_submit_undo(world, &ticket));
    count = listed();
    CHECK((named(count, "settle an undo") == 1 && named(count, "cut") == 0));
    require_ok(qry_world_time_edits(there, 0));
    for (qry_world* const world : {there, untimed}) require_ok(qry_world_redo(world, nullptr));
    CHECK(named(listed(), "settle a redo") == 0);
    CHECK((picture(there) == picture(untimed)));

    // A picture of a world that has changed takes the memory over, where it is not the host's.
    const uint64_t before = hand_overs();
    picture(there);
    CHECK(hand_overs() == before);
    require_ok(qry_world_undo(there, nullptr));
    picture(there);
    CHECK(hand_overs() == before + (home == QRY_HOME_DEVICE ? 1 : 0));
    CHECK((home == QRY_HOME_DEVICE) == (before > 0));
    qry_world_destroy(&there);
    qry_world_destroy(&untimed);
  }
  qry_world* here = world_at(context.get(), QRY_HOME_HOST);
  uint64_t count = 0;
  CHECK(qry_world_time_edits(here, 1) == QRY_ERROR_UNSUPPORTED);
  CHECK(qry_world_list_edit_stages(here, nullptr, &count) == QRY_ERROR_UNSUPPORTED);
  CHECK_THAT(qry_last_error(), Catch::Contains("at home on the host"));
  qry_hand_over_state shared = QRY_HAND_OVER_STATE_INIT;
  shared.hand_overs = 77;
  qry_flatten_state flattening = QRY_FLATTEN_STATE_INIT;
  flattening.next = &shared;
  qry_home_state state = QRY_HOME_STATE_INIT;
  state.next = &flattening;
  require_ok(qry_world_get_home(here, &state));
  CHECK((shared.hand_overs == 0 && state.home == QRY_HOME_HOST));
  qry_hand_over_state twice = QRY_HAND_OVER_STATE_INIT;
  shared.next = &twice;
  CHECK(qry_world_get_home(here, &state) == QRY_ERROR_DUPLICATE_STRUCT);
  CHECK_THAT(qry_last_error(), Catch::Contains("QRY_STYPE_HAND_OVER_STATE"));
  qry_world_destroy(&here);
  CHECK(context.said().empty());
}

TEST_CASE("c_api: lines, what is connected, and steps without waiting, at home on a device") {
  const Context context(QRY_DEVICE_NEVER);
  for (const uint32_t home : {uint32_t(QRY_HOME_EMULATED), uint32_t(QRY_HOME_DEVICE)}) {
    qry_world* there = world_at(context.get(), home);
    if (!there) continue;
    // A line without a radius, what is connected, and refused edits, which are not launched.
    qry_edit line = QRY_EDIT_INIT;
    line.shape = QRY_SHAPE_LINE;
    line.a[0] = -40, line.b[0] = 55, line.b[1] = 33;
    line.material = 5;
    uint64_t changed = 0;
    require_ok(qry_world_edit(there, &line, &changed));
    REQUIRE(changed == 95 + 33 + 1);
    qry_edit bucket = QRY_EDIT_INIT;
    bucket.shape = QRY_SHAPE_CONNECTED;
    bucket.mode = QRY_MODE_PAINT;
    bucket.material = 9;
    bucket.a[0] = -40;
    require_ok(qry_world_edit(there, &bucket, &changed));
    REQUIRE(changed == 95 + 33 + 1);
    const qry_edit outside = ball(8190, 0, 0, 5, 1);
    uint64_t ticket = 0;
    REQUIRE(qry_world_submit_edit(there, &outside, &ticket) == QRY_ERROR_OUT_OF_BOUNDS);
    REQUIRE(qry_world_await(there, 12345, nullptr, nullptr) == QRY_ERROR_INVALID_ARGUMENT);
    qry_world_state state = QRY_WORLD_STATE_INIT;
    require_ok(qry_world_get_state(there, &state));
    REQUIRE(state.version == 2);
    REQUIRE(state.history_length == 2);
    require_ok(qry_world_undo(there, &changed));
    require_ok(qry_world_undo(there, &changed));
    REQUIRE(qry_world_undo(there, &changed) == QRY_NOTHING_TO_DO);
    require_ok(qry_world_redo(there, &changed));
    require_ok(qry_world_submit_redo(there, &ticket));
    uint64_t version = 0;
    require_ok(qry_world_await(there, ticket, &changed, &version));
    REQUIRE(changed == 95 + 33 + 1);
    REQUIRE(version == 6);
    qry_world_destroy(&there);
  }
}

TEST_CASE(
    "c_api: a world that is opened at home on a device undoes and redoes its file's steps, and steps made after") {
  const Context context(QRY_DEVICE_NEVER);
  for (const uint32_t home : {uint32_t(QRY_HOME_EMULATED), uint32_t(QRY_HOME_DEVICE)}) {
    qry_world* there = world_at(context.get(), home);
    if (!there) continue;
    qry_world_destroy(&there);
    qry_world_home_info wanted = QRY_WORLD_HOME_INFO_INIT;
    wanted.home = home;
    qry_open_info info = QRY_OPEN_INFO_INIT;
    const std::string path = quarry::test::asset("compat/world-steps.quarry");
    info.path = path.c_str();
    info.next = &wanted;
    require_ok(qry_world_open(context.get(), &info, &there));
    const auto state = [&] {
      qry_world_state now = QRY_WORLD_STATE_INIT;
      require_ok(qry_world_get_state(there, &now));
      return now;
    };
    const auto undo = [&] {
      uint64_t changed = 0;
      require_ok(qry_world_undo(there, &changed));
      return changed;
    };
    const auto redo = [&] {
      uint64_t changed = 0;
      require_ok(qry_world_redo(there, &changed));
      return changed;
    };
    // The file has a ball, a stroke of four edits, a material, and a box that was undone.
    REQUIRE(state().history_length == 4);
    REQUIRE(state().history_position == 3);
    REQUIRE(state().version == 0);
    REQUIRE(undo() == 0);
    REQUIRE(undo() == 15);
    REQUIRE(undo() == 257);
    REQUIRE(state().voxel_count == 0);
    REQUIRE(qry_world_undo(there, nullptr) == QRY_NOTHING_TO_DO);
    for (const uint64_t step : {uint64_t(257), uint64_t(15), uint64_t(0), uint64_t(8)}) REQUIRE(redo() == step);
    REQUIRE(qry_world_redo(there, nullptr) == QRY_NOTHING_TO_DO);
    REQUIRE(state().voxel_count == 265);
    REQUIRE(state().version == 7);
    // A step of its own, and back through all of them.
    const qry_edit edit = ball(200, 0, 0, 2, 3);
    uint64_t made = 0;
    require_ok(qry_world_edit(there, &edit, &made));
    REQUIRE(state().history_length == 5);
    REQUIRE(undo() == made);
    for (const uint64_t step : {uint64_t(8), uint64_t(0), uint64_t(15), uint64_t(257)}) REQUIRE(undo() == step);
    REQUIRE(state().history_position == 0);
    REQUIRE(state().brick_count == 0);
    for (const uint64_t step : {uint64_t(257), uint64_t(15), uint64_t(0), uint64_t(8), made}) REQUIRE(redo() == step);
    REQUIRE(state().voxel_count == 265 + made);
    // A new step instead of those that were undone.
    REQUIRE(undo() == made);
    REQUIRE(undo() == 8);
    require_ok(qry_world_edit(there, &edit, &made));
    REQUIRE(qry_world_redo(there, nullptr) == QRY_NOTHING_TO_DO);
    REQUIRE(state().history_length == 4);
    REQUIRE(state().voxel_count == 257 + made);
    qry_world_destroy(&there);
  }
}

TEST_CASE(
    "c_api: lists, regions, rays and hits in a device's memory do what those in host memory do, in the order of the "
    "caller's stream") {
  const Context context(QRY_DEVICE_NEVER);
  qry_world* host = world_at(context.get(), QRY_HOME_HOST);
  REQUIRE(qry_world_cuda_wait(host, nullptr) == QRY_ERROR_UNSUPPORTED);
  REQUIRE(qry_world_cuda_trace(nullptr, nullptr, 0, nullptr, nullptr) == QRY_ERROR_INVALID_ARGUMENT);
  qry_world_destroy(&host);
  for (const uint32_t home : {uint32_t(QRY_HOME_EMULATED), uint32_t(QRY_HOME_DEVICE)}) {
    qry_world *there = world_at(context.get(), home), *here = world_at(context.get(), QRY_HOME_HOST);
    if (!there) {
      qry_world_destroy(&here);
      continue;
    }
    // Voxels, of which many come more than once, and some remove.
    std::vector<int32_t> xyz;
    std::vector<uint8_t> materials;
    for (int32_t i = 0; i < 30000; ++i) {
      xyz.insert(xyz.end(), {i * 37 % 61 - 30, i * 53 % 47 - 20, i * 71 % 53 - 25});
      materials.push_back(uint8_t(i * 31 % 9 == 0 ? 0 : 1 + i % 255));
    }
    uint64_t changed_there = 0, changed_here = 0;
    {
      ArrayAt<int32_t> its_xyz(home, xyz);
      ArrayAt<uint8_t> its_materials(home, materials);
      require_ok(qry_world_cuda_set_voxels(there, its_xyz.get(), its_materials.get(), materials.size(), nullptr,
                                           &changed_there));
    }
    require_ok(qry_world_set_voxels(here, 0, xyz.data(), materials.data(), materials.size(), &changed_here));
    REQUIRE(changed_there == changed_here);
    // The first that is outside is named, and nothing has changed.
    xyz[3 * 17001] = 8192;
    xyz[3 * 23001] = -9000;
    {
      ArrayAt<int32_t> its_xyz(home, xyz);
      ArrayAt<uint8_t> its_materials(home, materials);
      REQUIRE(qry_world_cuda_set_voxels(there, its_xyz.get(), its_materials.get(), materials.size(), nullptr,
                                        nullptr) == QRY_ERROR_OUT_OF_BOUNDS);
    }
    REQUIRE(std::string(qry_last_error()).find("(8192, ") != std::string::npos);
    REQUIRE(std::string(qry_last_error()).find("number 17001 ") != std::string::npos);
    REQUIRE(qry_world_set_voxels(there, 0, xyz.data(), materials.data(), materials.size(), nullptr) ==
            QRY_ERROR_OUT_OF_BOUNDS);
    REQUIRE(std::string(qry_last_error()).find("number 17001 ") != std::string::npos);
    // A dense box that begins and ends within bricks.
    const int32_t low[3] = {-13, -7, 3}, high[3] = {20, 31, 17};
    std::vector<uint8_t> box(34 * 39 * 15);
    for (size_t i = 0; i < box.size(); ++i) box[i] = uint8_t(i % 7 == 0 ? 0 : i % 256);
    {
      ArrayAt<uint8_t> its_box(home, box);
      require_ok(qry_world_cuda_write_region(there, low, high, its_box.get(), box.size(), nullptr, &changed_there));
    }
    require_ok(qry_world_write_region(here, 0, low, high, box.data(), box.size(), &changed_here));
    REQUIRE(changed_there == changed_here);
    // Read again, with a part that is outside of the world.
    const int32_t from[3] = {-40, -33, -30}, to[3] = {40, 35, 30}, edge[3] = {8170, 4080, 8180},
                  beyond[3] = {8200, 4100, 8195};
    for (const auto& [first, last] : {std::pair(from, to), std::pair(edge, beyond)}) {
      const size_t size =
          size_t(last[0] - first[0] + 1) * size_t(last[1] - first[1] + 1) * size_t(last[2] - first[2] + 1);
      ArrayAt<uint8_t> got(home, std::vector<uint8_t>(size, 99));
      require_ok(qry_world_cuda_read_region(there, first, last, got.get(), size, nullptr));
      std::vector<uint8_t> expected(size, 98);
      require_ok(qry_world_read_region(here, first, last, expected.data(), size));
      REQUIRE((got.values() == expected));
      std::vector<uint8_t> again(size, 97);
      require_ok(qry_world_read_region(there, first, last, again.data(), size));
      REQUIRE((again == expected));
    }
    // Rays of any length; two that cannot be traced meet nothing.
    std::vector<qry_ray> rays;
    for (int i = 0; i < 5000; ++i)
      rays.push_back({{float(i * 17 % 90) - 45, 60, float(i * 29 % 80) - 40},
                      {float(i * 7 % 19) - 9, -20 - float(i % 3), float(i * 11 % 17) - 8}});
    std::vector<qry_hit> expected(rays.size());
    require_ok(qry_world_trace(there, rays.data(), rays.size(), expected.data()));
    rays.push_back({{0, 60, 0}, {0, 0, 0}});
    rays.push_back({{0, 60, 0}, {0, -INFINITY, 0}});
    expected.resize(rays.size(), qry_hit{-1, {0, 0, 0}, 0, 0, 0, 0});
    ArrayAt<qry_ray> its_rays(home, rays);
    ArrayAt<qry_hit> hits(home, std::vector<qry_hit>(rays.size()));
    require_ok(qry_world_cuda_trace(there, its_rays.get(), rays.size(), hits.get(), nullptr));
    require_ok(qry_world_cuda_wait(there, nullptr));
    require_ok(qry_world_cuda_signal(there, nullptr));
    size_t wrong = 0, met = 0;
    const std::vector<qry_hit> got = hits.values();
    for (size_t i = 0; i < rays.size(); ++i) {
      const qry_hit &a = got[i], &b = expected[i];
      met += b.t >= 0;
      wrong += a.t != b.t || a.voxel[0] != b.voxel[0] || a.voxel[1] != b.voxel[1] || a.voxel[2] != b.voxel[2] ||
               a.face != b.face || a.material != b.material || a.probe_depth != b.probe_depth;
    }
    REQUIRE(wrong == 0);
    REQUIRE(met > 2000);
    REQUIRE(qry_world_cuda_trace(there, its_rays.get(), rays.size(),
                                 reinterpret_cast<qry_hit*>(reinterpret_cast<char*>(hits.get()) + 4),
                                 nullptr) == QRY_ERROR_INVALID_ARGUMENT);
    qry_world_destroy(&there);
    qry_world_destroy(&here);
  }
}

TEST_CASE(
    "c_api: a world file goes to every home with its history, and a damaged one is refused there in the same words") {
  const Context context(QRY_DEVICE_NEVER);
  const std::string good = quarry::test::asset("compat/world-steps.quarry");
  const auto open_at = [&](uint32_t home, const std::string& path, qry_world** world) {
    qry_world_home_info wanted = QRY_WORLD_HOME_INFO_INIT;
    wanted.home = home;
    qry_open_info open = QRY_OPEN_INFO_INIT;
    open.next = &wanted;
    open.path = path.c_str();
    return qry_world_open(context.get(), &open, world);
  };
  const auto state_of = [](qry_world* world) {
    qry_world_state state = QRY_WORLD_STATE_INIT;
    require_ok(qry_world_get_state(world, &state));
    return state;
  };
  // Bytes all over the file are damaged, one at a time; most are noticed, and then at every home.
  std::ifstream file(good, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  REQUIRE(bytes.size() > 4096);
  const std::filesystem::path damaged = std::filesystem::temp_directory_path() / "quarry-damaged-home.quarry";
  uint32_t refused = 0;
  for (size_t at = 0; at <= bytes.size(); at += bytes.size() / 97 + 1) {
    std::string some = bytes;
    if (at != 0) some[at] = char(some[at] ^ 0x5A);
    std::ofstream(damaged, std::ios::binary | std::ios::trunc) << some;
    qry_world *here = nullptr, *there = nullptr;
    const qry_result on_host = open_at(QRY_HOME_HOST, damaged.string(), &here);
    const std::string said = on_host == QRY_OK ? "" : qry_last_error();
    const qry_result on_device = open_at(QRY_HOME_EMULATED, damaged.string(), &there);
    INFO("byte " << at << ": " << said << " / " << qry_last_error());
    REQUIRE(on_device == on_host);
    if (on_host != QRY_OK) {
      REQUIRE(qry_last_error() == said);
      REQUIRE(there == nullptr);
      ++refused;
      continue;
    }
    for (int undone = 0;; ++undone) {
      const qry_world_state is = state_of(there), expected = state_of(here);
      REQUIRE(is.voxel_count == expected.voxel_count);
      REQUIRE(is.brick_count == expected.brick_count);
      REQUIRE(is.history_length == expected.history_length);
      REQUIRE(is.history_position == expected.history_position);
      REQUIRE(std::equal(is.min, is.min + 3, expected.min));
      const qry_result result = qry_world_undo(here, nullptr);
      REQUIRE(qry_world_undo(there, nullptr) == result);
      if (result == QRY_NOTHING_TO_DO) break;
      require_ok(result);
    }
    qry_world_destroy(&here);
    qry_world_destroy(&there);
  }
  REQUIRE(refused >= 10);
  std::filesystem::remove(damaged);
}

TEST_CASE(
    "c_api: a packed world at home on a device is drawn from its packed form: the same pictures as before, in less of "
    "its memory, and an edit is in the next one") {
  const Context context(QRY_DEVICE_NOW);
  for (const uint32_t home : {uint32_t(QRY_HOME_EMULATED), uint32_t(QRY_HOME_DEVICE)}) {
    qry_world* world = world_at(context.get(), home);
    if (!world) continue;
    const auto memory_of = [&] {
      qry_memory_state memory = QRY_MEMORY_STATE_INIT;
      require_ok(qry_world_get_memory(world, &memory));
      return memory;
    };
    for (int n = 0; n < 90; ++n) {
      const qry_edit edit = ball(n * 37 % 90 - 45, n * 53 % 60 - 30, n * 71 % 80 - 40, 3 + n * 13 % 14,
                                 uint32_t(1 + n % 200), n % 5 == 4 ? QRY_MODE_REMOVE : QRY_MODE_FILL);
      require_ok(qry_world_edit(world, &edit, nullptr));
    }
    constexpr uint32_t kViews[] = {QRY_VIEW_SHADED, QRY_VIEW_ALBEDO, QRY_VIEW_NORMALS};
    std::vector<std::vector<uint8_t>> pictures;
    for (const uint32_t view : kViews) pictures.push_back(picture(world, view));
    REQUIRE(pictures[0] != pictures[1]);
    const auto same = [&] {
      for (size_t i = 0; i < pictures.size(); ++i) REQUIRE((picture(world, kViews[i]) == pictures[i]));
    };
    const qry_memory_state before = memory_of();
    const qry_edit more = ball(0, 0, 0, 30, 5);
    for (int round = 0; round < 3; ++round) {
      require_ok(qry_world_pack(world));
      same();
      const qry_memory_state packed = memory_of();
      REQUIRE(packed.packed == 1);
      REQUIRE(packed.device_bytes + 8'000'000 < before.device_bytes);
      require_ok(qry_world_edit(world, &more, nullptr));
      REQUIRE(memory_of().packed == 0);
      REQUIRE((picture(world) != pictures[0]));
      require_ok(qry_world_pack(world));
      REQUIRE((picture(world) != pictures[0]));
      require_ok(qry_world_undo(world, nullptr));
      same();
      require_ok(qry_world_pack(world));
      require_ok(qry_world_unpack(world));
      same();
    }
    qry_world_destroy(&world);
  }
  INFO(context.said());
  REQUIRE(context.said().empty());
}

TEST_CASE(
    "c_api: unless it is told, a world is at home on a device that shares its memory with shaders, and elsewhere on "
    "the "
    "host, and the log says why") {
  for (const uint32_t device : {uint32_t(QRY_DEVICE_NEVER), uint32_t(QRY_DEVICE_LAZY)}) {
    std::string said;
    qry_context_info info = QRY_CONTEXT_INFO_INIT;
    info.device = device;
    info.log = [](void* user, int32_t, const char* message) {
      *static_cast<std::string*>(user) += std::string(message) + "\n";
    };
    info.log_user = &said;
    qry_context* context = nullptr;
    require_ok(qry_context_create(QRY_ABI_VERSION, &info, &context));
    qry_world* world = nullptr;
    require_ok(qry_world_create(context, nullptr, &world));
    const uint32_t home = home_of(world).home;
    INFO(said);
    const bool told = said.find("a world is at home on the host: ") != std::string::npos;
    REQUIRE(told == (home == QRY_HOME_HOST));
    REQUIRE((home == QRY_HOME_HOST || home == QRY_HOME_DEVICE));
    if (device == QRY_DEVICE_NEVER) REQUIRE(home == QRY_HOME_HOST);
    if (home == QRY_HOME_DEVICE) REQUIRE(home_of(world).in_place == 1);
    qry_world_destroy(&world);
    // So is a packed one.
    qry_world_home_info wanted = QRY_WORLD_HOME_INFO_INIT;
    qry_open_info open = QRY_OPEN_INFO_INIT;
    const std::string path = quarry::test::asset("compat/world-steps.quarry");
    open.path = path.c_str();
    open.flags = QRY_OPEN_PACK;
    for (const uint32_t asked : {uint32_t(QRY_HOME_AUTOMATIC), uint32_t(QRY_HOME_EMULATED)}) {
      open.next = &wanted;
      wanted.home = asked;
      require_ok(qry_world_open(context, &open, &world));
      REQUIRE(home_of(world).home == (asked == QRY_HOME_AUTOMATIC ? home : asked));
      qry_memory_state memory = QRY_MEMORY_STATE_INIT;
      require_ok(qry_world_get_memory(world, &memory));
      REQUIRE(memory.packed == 1);
      qry_world_destroy(&world);
    }
    qry_context_destroy(&context);
  }
}

TEST_CASE("c_api: single voxels are those of the last change at every home, and a device is asked once for many") {
  const Context context(QRY_DEVICE_NEVER);
  constexpr int32_t kMin[3] = {-20, -20, -20}, kMax[3] = {27, 27, 27};
  constexpr size_t kEdge = 48;
  for (const uint32_t home : {QRY_HOME_HOST, QRY_HOME_EMULATED, QRY_HOME_DEVICE}) {
    CAPTURE(home);
    qry_world* world = world_at(context.get(), home);
    if (!world) continue;
    uint64_t state = 7;
    const auto below = [&](uint32_t count) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      return int32_t((state >> 32) * count >> 32);
    };
    const auto check = [&] {
      std::vector<uint8_t> box(kEdge * kEdge * kEdge);
      require_ok(qry_world_read_region(world, kMin, kMax, box.data(), box.size()));
      for (int i = 0; i < 60; ++i) {
        // One, or some, near each other and far apart; some outside of the world.
        int32_t xyz[3 * 8];
        uint8_t got[8], expected[8];
        const int count = 1 + (i % 3 == 0 ? below(8) : 0);
        for (int k = 0; k < count; ++k) {
          int32_t* const at = xyz + 3 * k;
          for (int axis = 0; axis < 3; ++axis) at[axis] = kMin[axis] + below(kEdge);
          expected[k] = box[size_t(at[0] + 20) + kEdge * (size_t(at[1] + 20) + kEdge * size_t(at[2] + 20))];
          if (below(10)) continue;
          at[below(3)] = below(2) ? INT32_MAX : INT32_MIN;
          expected[k] = 0;
        }
        require_ok(qry_world_get_voxels(world, xyz, got, uint64_t(count)));
        REQUIRE(std::equal(got, got + count, expected));
      }
      // In the last bricks of the world, whose neighbours are not in it.
      const int32_t ends[6] = {8183, 4095, 8191, -8192, -4096, -8192};
      uint8_t got[2] = {9, 9};
      require_ok(qry_world_get_voxels(world, ends, got, 2));
      REQUIRE((got[0] == 0 && got[1] == 0));
    };
    check();
    for (int round = 0; round < 12; ++round) {
      uint64_t ticket = 0;
      const qry_edit edit = ball(below(30) - 10, below(30) - 10, below(30) - 10, 3 + below(9), uint32_t(1 + below(250)),
                                 round % 4 == 3 ? QRY_MODE_REMOVE : QRY_MODE_FILL);
      require_ok(qry_world_submit_edit(world, &edit, &ticket));  // which nobody waits for
      check();
      if (round % 3 == 2) require_ok(qry_world_undo(world, nullptr));
      if (round % 5 == 4) require_ok(qry_world_trim(world));
      check();
    }
    const qry_home_state before = home_of(world);
    for (int32_t x = 0; x < 8; ++x)
      for (int32_t y = 0; y < 8; ++y) {
        const int32_t at[3] = {x, y, 3};
        uint8_t got = 0;
        require_ok(qry_world_get_voxels(world, at, &got, 1));
      }
    REQUIRE(home_of(world).bytes_from_device - before.bytes_from_device < 64 * 516);
    qry_world_destroy(&world);
  }
}

TEST_CASE(
    "c_api: a mesh that is opened has the same voxels at every home, and those that CUDA makes for a world there do "
    "not come to the host") {
  namespace fs = std::filesystem;
  const fs::path dir = quarry::test::scratch_dir("api-mesh");
  std::ofstream(dir / "two.mtl") << "newmtl red\nKd 1 0 0\nnewmtl blue\nKd 0 0.2 1\n";
  quarry::test::wavy_ball(dir / "one.obj", 24, 1);
  quarry::test::wavy_ball(dir / "two.obj", 24, 1, "two.mtl", {"blue", "red"});
  std::ofstream(dir / "flat.obj") << "v 0 0 0\nv 0 0 0\nv 0 0 0\nf 1 2 3\n";  // no extent

  const Context context(QRY_DEVICE_NOW);
  const auto open = [&](uint32_t home, const char* name, uint32_t flags, qry_world** world) {
    qry_world_home_info wanted = QRY_WORLD_HOME_INFO_INIT;
    wanted.home = home;
    qry_open_info info = QRY_OPEN_INFO_INIT;
    info.next = &wanted;
    const std::string path = (dir / name).string();
    info.path = path.c_str();
    info.resolution = 150;
    info.flags = flags;
    return qry_world_open(context.get(), &info, world);
  };
  for (const char* name : {"one.obj", "two.obj"}) {
    qry_world* host = nullptr;
    require_ok(open(QRY_HOME_HOST, name, 0, &host));
    qry_world_sums expected = QRY_WORLD_SUMS_INIT;
    require_ok(qry_world_get_sums(host, &expected));
    REQUIRE(expected.voxel_count > 10000);
    for (const uint32_t home : {QRY_HOME_AUTOMATIC, QRY_HOME_EMULATED, QRY_HOME_DEVICE})
      for (const uint32_t flags : {0u, uint32_t(QRY_OPEN_PACK), uint32_t(QRY_OPEN_FLATTEN)}) {
        INFO(name << " at home " << home << ", flags " << flags);
        qry_world* world = nullptr;
        const qry_result opened = open(home, name, flags, &world);
        if (opened == QRY_ERROR_UNSUPPORTED && home == QRY_HOME_DEVICE) {
          quarry::test::skip(qry_last_error());
          break;
        }
        require_ok(opened);
        qry_world_sums sums = QRY_WORLD_SUMS_INIT;
        require_ok(qry_world_get_sums(world, &sums));
        CHECK(sums.voxel_count == expected.voxel_count);
        CHECK(sums.place_sum == expected.place_sum);
        CHECK(sums.colour_sum == expected.colour_sum);
        qry_world_state one = QRY_WORLD_STATE_INIT, other = QRY_WORLD_STATE_INIT;
        require_ok(qry_world_get_state(host, &one));
        require_ok(qry_world_get_state(world, &other));
        CHECK(other.version == 0);
        CHECK(other.brick_count == one.brick_count);
        CHECK(std::equal(one.min, one.min + 3, other.min));
        CHECK(std::equal(one.max, one.max + 3, other.max));
        CHECK(other.history_length == 0);
        if (home_of(world).home == QRY_HOME_DEVICE && !flags)
          CHECK(home_of(world).bytes_to_device < 516 * other.brick_count / 2);  // mostly arguments of steps
        // It is a world as any other.
        const qry_edit edit = ball(0, 100, 0, 30, 7);
        require_ok(qry_world_edit(host, &edit, nullptr));
        require_ok(qry_world_edit(world, &edit, nullptr));
        qry_world_sums edited = QRY_WORLD_SUMS_INIT, same = QRY_WORLD_SUMS_INIT;
        require_ok(qry_world_get_sums(host, &edited));
        require_ok(qry_world_get_sums(world, &same));
        CHECK(same.place_sum == edited.place_sum);
        require_ok(qry_world_undo(host, nullptr));
        require_ok(qry_world_undo(world, nullptr));
        require_ok(qry_world_get_sums(world, &same));
        CHECK(same.colour_sum == expected.colour_sum);
        qry_world_destroy(&world);
      }
    qry_world_destroy(&host);
  }
  for (const char* name : {"flat.obj", "missing.obj"}) {
    qry_world* none = nullptr;
    const qry_result at_host = open(QRY_HOME_HOST, name, 0, &none);
    const std::string said = qry_last_error();
    CHECK(at_host != QRY_OK);
    for (const uint32_t home : {QRY_HOME_AUTOMATIC, QRY_HOME_EMULATED}) {
      CHECK(open(home, name, 0, &none) == at_host);
      CHECK(std::string(qry_last_error()) == said);
      CHECK(!none);
    }
  }
}

}  // namespace homes_test
