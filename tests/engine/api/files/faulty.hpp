// SPDX-License-Identifier: Apache-2.0
// faulty.hpp - worlds at home on an emulated device of which one call fails, each call of the interface that such a
// world takes, and what must be as before.
#pragma once

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tests/engine/api/files/twin.hpp"

namespace quarry::test {

// Makes one call of an emulated device fail. It outlives the worlds that are made with it.
class Fault {
 public:
  // The call number `number` from now on, from 1 on, of this kind, or of any; and, if it lasts, all such after it.
  static constexpr uint32_t kAny = ~uint32_t(0);
  void arm(qry_result fault, uint64_t number, uint32_t kind = kAny, bool lasts = false) {
    fault_ = fault;
    kind_ = kind;
    left_ = number;
    lasts_ = lasts;
    fired_ = false;
  }
  // Whether it has failed; no call fails from now on but those of a lost device.
  bool disarm() {
    left_ = 0;
    return fired_;
  }
  // Called before each call of the device, by the thread that makes it. Null: nothing is.
  void watch(std::function<void()> each_call) { watch_ = std::move(each_call); }
  // To be chained.
  qry_emulation_info info() {
    qry_emulation_info info = QRY_EMULATION_INFO_INIT;
    info.user = this;
    info.before = [](void* user, uint32_t call) -> qry_result {
      Fault& fault = *static_cast<Fault*>(user);
      if (fault.watch_) fault.watch_();
      if (fault.left_ == 0 || (fault.kind_ != kAny && call != fault.kind_)) return QRY_OK;
      if (--fault.left_ > 0) return QRY_OK;
      if (fault.lasts_) fault.left_ = 1;
      fault.fired_ = true;
      return fault.fault_;
    };
    return info;
  }

 private:
  qry_result fault_ = QRY_OK;
  uint32_t kind_ = kAny;
  uint64_t left_ = 0;
  bool lasts_ = false, fired_ = false;
  std::function<void()> watch_;
};

// A new world at home on an emulated device, or, with a `file`, the one that is there. Null: it was refused, as
// `result` says.
inline OneWorld faulty_world(const Worlds& worlds, Fault& fault, const std::filesystem::path& file = {},
                             qry_result* result = nullptr, uint32_t flags = 0) {
  qry_emulation_info emulation = fault.info();
  qry_world_home_info home = QRY_WORLD_HOME_INFO_INIT;
  home.home = QRY_HOME_EMULATED;
  home.next = &emulation;
  Made made = made_as(worlds, home, file, flags);
  if (result) *result = made.result;
  else require_ok(made.result);
  REQUIRE(bool(made.world) == (made.result == QRY_OK));
  return std::move(made.world);
}

// One call of the interface that needs the device.
struct Operation {
  const char* name;
  bool changes;  // voxels or the history
  std::function<qry_result(qry_world*)> call;
  bool slow = false;  // on host threads: fewer of its faults are tried
};

inline qry_result edit_at(qry_world* world, uint32_t shape, int32_t at, double radius, uint32_t material) {
  qry_edit edit = QRY_EDIT_INIT;
  edit.shape = shape;
  edit.mode = QRY_MODE_FILL;
  edit.material = material;
  edit.radius = radius;
  for (int a = 0; a < 3; ++a) edit.a[a] = at, edit.b[a] = at + int32_t(radius);
  return qry_world_edit(world, &edit, nullptr);
}

// What every operation finds: some steps, of which one can be redone.
inline void begin_faulty(qry_world* world) {
  require_ok(edit_at(world, QRY_SHAPE_SPHERE, 10, 9, 3));
  require_ok(edit_at(world, QRY_SHAPE_BOX, 12, 5, 4));
  require_ok(edit_at(world, QRY_SHAPE_BOX, 40, 3, 5));
  require_ok(qry_world_undo(world, nullptr));
}

// The file of a world of the host, as `begin` leaves that, with its history.
template <class Begin>
void write_file(const Worlds& worlds, const std::filesystem::path& file, const Begin& begin) {
  const OneWorld world = new_world(worlds, QRY_HOME_HOST);
  begin(world.get());
  require_ok(qry_world_attach(world.get(), file.c_str()));
  require_ok(qry_world_detach(world.get()));
}

// `folder`: where one saves.
inline std::vector<Operation> operations(const std::filesystem::path& folder) {
  const auto some_voxels = [](uint32_t count) {
    return [count](qry_world* world) {
      std::vector<int32_t> xyz;
      std::vector<uint8_t> materials;
      for (uint32_t i = 0; i < count; ++i) {
        for (const uint32_t step : {1u, 5u, 25u}) xyz.push_back(int32_t(i / step % 5) * 8 - 40 + int32_t(i / 125));
        materials.push_back(uint8_t(1 + i % 255));
      }
      return qry_world_set_voxels(world, 0, xyz.data(), materials.data(), count, nullptr);
    };
  };
  static constexpr int32_t kMin[3] = {-9, 0, 3}, kMax[3] = {30, 21, 26};
  static constexpr size_t kBox = 40 * 22 * 24;
  const std::string saved = (folder / "saved.vox").string();
  return {
      {"edit a sphere", true, [](qry_world* w) { return edit_at(w, QRY_SHAPE_SPHERE, 30, 11, 7); }},
      {"edit a box, timed", true,
       [](qry_world* w) {
         qry_result result = qry_world_time_edits(w, 1);
         if (result == QRY_OK) result = edit_at(w, QRY_SHAPE_BOX, 30, 11, 7);
         qry_edit_stage stages[128];
         uint64_t count = 128;
         return result ? result : qry_world_list_edit_stages(w, stages, &count);
       }},
      {"edit what is connected", true, [](qry_world* w) { return edit_at(w, QRY_SHAPE_CONNECTED, 12, 0, 9); }},
      {"set a few voxels", true, some_voxels(20)},
      {"set many voxels", true, some_voxels(400)},
      {"write a region", true,
       [](qry_world* w) {
         const std::vector<uint8_t> box(kBox, 8);
         return qry_world_write_region(w, 0, kMin, kMax, box.data(), box.size(), nullptr);
       }},
      {"write a region that CUDA has", true,
       [](qry_world* w) {
         const std::vector<uint8_t> box(kBox, 9);
         return qry_world_cuda_write_region(w, kMin, kMax, box.data(), box.size(), nullptr, nullptr);
       }},
      {"undo", true, [](qry_world* w) { return qry_world_undo(w, nullptr); }},
      {"redo", true, [](qry_world* w) { return qry_world_redo(w, nullptr); }},
      {"submit and await", true,
       [](qry_world* w) {
         uint64_t first = 0, second = 0;
         qry_edit edit = QRY_EDIT_INIT;
         edit.material = 6;
         if (const qry_result result = qry_world_submit_edit(w, &edit, &first)) return result;
         if (const qry_result result = qry_world_submit_undo(w, &second)) return result;
         const qry_result result = qry_world_await(w, first, nullptr, nullptr);
         return result ? result : qry_world_await(w, second, nullptr, nullptr);
       }},
      {"combine", true,
       [](qry_world* w) { return qry_world_combine(w, 0, w, QRY_COMBINE_DIFFERENCE, nullptr, nullptr); }},
      {"grow", true, [](qry_world* w) { return qry_world_dilate(w, 0, 6, 1, nullptr, nullptr); }, true},
      {"grow twice", true, [](qry_world* w) { return qry_world_dilate(w, 0, 26, 2, nullptr, nullptr); }},
      {"keep parts", true, [](qry_world* w) { return qry_world_keep_parts(w, 0, 6, 1, 100000, nullptr, nullptr); }},
      {"pack and unpack", false,
       [](qry_world* w) {
         const qry_result packed = qry_world_pack(w);
         return packed < 0 ? packed : qry_world_unpack(w);
       }},
      {"edit what is packed", true,
       [](qry_world* w) {
         const qry_result packed = qry_world_pack(w);
         return packed < 0 ? packed : edit_at(w, QRY_SHAPE_SPHERE, 30, 11, 8);
       }},
      {"find parts of what is packed", false,
       [](qry_world* w) {
         const qry_result packed = qry_world_pack(w);
         qry_part parts[8];
         uint64_t count = 8;
         return packed < 0 ? packed : qry_world_find_parts(w, 26, nullptr, parts, &count);
       }},
      {"find parts", false,
       [](qry_world* w) {
         qry_part parts[8];
         uint64_t count = 8;
         return qry_world_find_parts(w, 6, nullptr, parts, &count);
       }},
      {"sum voxels up", false,
       [](qry_world* w) {
         qry_world_sums sums = QRY_WORLD_SUMS_INIT;
         return qry_world_get_sums(w, &sums);
       }},
      {"compare", false,
       [](qry_world* w) {
         qry_comparison comparison = QRY_COMPARISON_INIT;
         return qry_world_compare(w, w, 0, &comparison);
       }},
      {"get voxels", false,
       [](qry_world* w) {
         const int32_t at[3] = {10, 10, 10};
         uint8_t material = 0;
         return qry_world_get_voxels(w, at, &material, 1);
       }},
      {"read a region", false,
       [](qry_world* w) {
         std::vector<uint8_t> box(kBox);
         return qry_world_read_region(w, kMin, kMax, box.data(), box.size());
       }},
      {"read a region to CUDA", false,
       [](qry_world* w) {
         std::vector<uint8_t> box(kBox);
         return qry_world_cuda_read_region(w, kMin, kMax, box.data(), box.size(), nullptr);
       }},
      {"order a stream", false,
       [](qry_world* w) {
         const qry_result result = qry_world_cuda_wait(w, nullptr);
         return result ? result : qry_world_cuda_signal(w, nullptr);
       }},
      {"list bricks", false,
       [](qry_world* w) {
         uint64_t count = 400;
         std::vector<int32_t> bricks(size_t(count) * 3);
         return qry_world_list_bricks(w, bricks.data(), &count);
       }},
      {"get the state", false,
       [](qry_world* w) {
         qry_world_state state = QRY_WORLD_STATE_INIT;
         return qry_world_get_state(w, &state);
       }},
      {"get the grid's statistics", false,
       [](qry_world* w) {
         qry_grid_stats stats = QRY_GRID_STATS_INIT;
         return qry_world_get_grid_stats(w, &stats);
       }},
      {"get the memory", false,
       [](qry_world* w) {
         qry_memory_history history = QRY_MEMORY_HISTORY_INIT;
         qry_memory_state memory = QRY_MEMORY_STATE_INIT;
         memory.next = &history;
         return qry_world_get_memory(w, &memory);
       }},
      {"get the home", false,
       [](qry_world* w) {
         qry_home_state home = QRY_HOME_STATE_INIT;
         return qry_world_get_home(w, &home);
       }},
      {"reserve", false, [](qry_world* w) { return qry_world_reserve(w, 300000, 40000); }},
      {"trim", false, [](qry_world* w) { return qry_world_trim(w); }},
      {"snapshot", false,
       [](qry_world* w) {
         qry_world* snapshot = nullptr;
         const qry_result result = qry_world_snapshot(w, &snapshot);
         CHECK((snapshot != nullptr) == (result == QRY_OK));
         qry_world_destroy(&snapshot);
         return result;
       }},
      {"save", false,
       [saved](qry_world* w) {
         qry_save_info info = QRY_SAVE_INFO_INIT;
         info.path = saved.c_str();
         return qry_world_save(w, &info);
       }},
  };
}

}  // namespace quarry::test
