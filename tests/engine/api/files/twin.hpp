// SPDX-License-Identifier: Apache-2.0
// twin.hpp - worlds of the C interface by random changes, and all facts of them: an attached world, what is reopened
// from its file, and a twin that never had a file must have the same.
#pragma once

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <quarry/quarry.h>

#include "tests/engine/api/world_at.hpp"

namespace quarry::test {

inline void require_ok(qry_result result) {
  INFO(qry_last_error());
  REQUIRE(result == QRY_OK);
}

// A context, and its worlds.
class Worlds {
 public:
  explicit Worlds(uint32_t device = QRY_DEVICE_NEVER) {
    qry_context_info info = QRY_CONTEXT_INFO_INIT;
    info.device = device;
    require_ok(qry_context_create(QRY_ABI_VERSION, &info, &context_));
  }
  ~Worlds() { qry_context_destroy(&context_); }
  Worlds(const Worlds&) = delete;
  Worlds& operator=(const Worlds&) = delete;
  qry_context* context() const { return context_; }

 private:
  qry_context* context_ = nullptr;
};

class OneWorld {
 public:
  explicit OneWorld(qry_world* world) : world_(world) {}
  OneWorld(OneWorld&& other) noexcept : world_(std::exchange(other.world_, nullptr)) {}
  OneWorld& operator=(OneWorld&& other) noexcept {
    std::swap(world_, other.world_);
    return *this;
  }
  ~OneWorld() { qry_world_destroy(&world_); }
  qry_world* get() const { return world_; }
  explicit operator bool() const { return world_ != nullptr; }

 private:
  qry_world* world_;
};

inline OneWorld new_world(const Worlds& worlds, uint32_t home) { return OneWorld(world_at(worlds.context(), home)); }

inline OneWorld opened(const Worlds& worlds, const std::filesystem::path& file, uint32_t home = QRY_HOME_HOST,
                       uint32_t flags = 0) {
  qry_world_home_info wanted = QRY_WORLD_HOME_INFO_INIT;
  wanted.home = home;
  qry_open_info info = QRY_OPEN_INFO_INIT;
  const std::string path = file.string();
  info.path = path.c_str();
  info.flags = flags;
  info.next = &wanted;
  qry_world* world = nullptr;
  require_ok(qry_world_open(worlds.context(), &info, &world));
  return OneWorld(world);
}

// A new world, or the one of a file, as `wanted` and what is chained to it say; null: it was refused.
struct Made {
  OneWorld world{nullptr};
  qry_result result = QRY_OK;
};
inline Made made_as(const Worlds& worlds, const qry_world_home_info& wanted, const std::filesystem::path& file,
                    uint32_t flags = 0) {
  qry_world* world = nullptr;
  Made made;
  if (file.empty()) {
    qry_world_info info = QRY_WORLD_INFO_INIT;
    info.next = &wanted;
    made.result = qry_world_create(worlds.context(), &info, &world);
  } else {
    const std::string path = file.string();
    qry_open_info info = QRY_OPEN_INFO_INIT;
    info.path = path.c_str();
    info.flags = flags;
    info.next = &wanted;
    made.result = qry_world_open(worlds.context(), &info, &world);
  }
  made.world = OneWorld(world);
  return made;
}

inline qry_world_state state_of(qry_world* world) {
  qry_world_state state = QRY_WORLD_STATE_INIT;
  require_ok(qry_world_get_state(world, &state));
  return state;
}

// All voxels, palette and the place in the history.
struct Facts {
  uint64_t voxels = 0, length = 0, position = 0;
  std::vector<int32_t> bricks;
  std::vector<uint8_t> materials;
  std::vector<uint8_t> colors;
  friend bool operator==(const Facts&, const Facts&) = default;
};

inline Facts facts_of(qry_world* world) {
  Facts facts;
  const qry_world_state state = state_of(world);
  facts.voxels = state.voxel_count;
  facts.length = state.history_length;
  facts.position = state.history_position;
  uint64_t count = state.brick_count;
  facts.bricks.resize(count * 3);
  require_ok(qry_world_list_bricks(world, facts.bricks.data(), &count));
  REQUIRE(count * 3 == facts.bricks.size());
  std::vector<int32_t> xyz(count * 512 * 3);
  int32_t* to = xyz.data();
  for (uint64_t i = 0; i < count; ++i) {
    const int32_t* const brick = &facts.bricks[i * 3];
    for (int32_t v = 0; v < 512; ++v) {
      *to++ = brick[0] * 8 + (v & 7);
      *to++ = brick[1] * 8 + (v >> 3 & 7);
      *to++ = brick[2] * 8 + (v >> 6);
    }
  }
  facts.materials.resize(count * 512);
  require_ok(qry_world_get_voxels(world, xyz.data(), facts.materials.data(), facts.materials.size()));
  std::vector<qry_material> palette(255);
  require_ok(qry_world_get_materials(world, 1, 255, palette.data()));
  for (const qry_material& m : palette) {
    facts.colors.insert(facts.colors.end(), m.rgba, m.rgba + 4);
    facts.colors.push_back(uint8_t(m.roughness * 255));
  }
  return facts;
}

// The facts at every place of the history, which is gone through to both ends, and last those of now. The world is as
// before.
inline std::vector<Facts> all_facts(qry_world* world) {
  const uint64_t position = state_of(world).history_position;
  while (qry_world_undo(world, nullptr) == QRY_OK) {
  }
  std::vector<Facts> facts = {facts_of(world)};
  while (qry_world_redo(world, nullptr) == QRY_OK) facts.push_back(facts_of(world));
  while (state_of(world).history_position > position) require_ok(qry_world_undo(world, nullptr));
  facts.push_back(facts_of(world));
  return facts;
}

// Changes of which number n is the same in every world and process.
inline void change(qry_world* world, uint32_t seed, uint32_t number) {
  std::mt19937 random(seed * 7919u + number * 2654435761u);
  const auto dice = random() % 16;
  if (dice < 3) {
    REQUIRE(qry_world_undo(world, nullptr) >= 0);
  } else if (dice < 5) {
    REQUIRE(qry_world_redo(world, nullptr) >= 0);
  } else if (dice == 5) {
    qry_material material;
    const uint32_t index = 1 + uint32_t(random() % 255);
    require_ok(qry_world_get_materials(world, index, 1, &material));
    material.rgba[0] = uint8_t(random());
    require_ok(qry_world_set_materials(world, index, 1, &material));
  } else if (dice < 8) {
    std::vector<int32_t> xyz;
    std::vector<uint8_t> materials;
    for (int i = 0; i < 10; ++i) {
      for (int a = 0; a < 3; ++a) xyz.push_back(int32_t(random() % 600) - 300);
      materials.push_back(uint8_t(random() % 3 ? 1 + random() % 255 : 0));
    }
    require_ok(qry_world_set_voxels(world, 0, xyz.data(), materials.data(), materials.size(), nullptr));
  } else {
    qry_edit edit = QRY_EDIT_INIT;
    edit.shape = random() % 2 ? QRY_SHAPE_SPHERE : QRY_SHAPE_BOX;
    edit.mode = random() % 4 ? QRY_MODE_FILL : QRY_MODE_REMOVE;
    edit.material = 1 + uint32_t(random() % 255);
    edit.radius = double(random() % 11);
    for (int a = 0; a < 3; ++a) {
      edit.a[a] = int32_t(random() % 600) - 300;
      edit.b[a] = edit.a[a] + int32_t(random() % 16);
    }
    require_ok(qry_world_edit(world, &edit, nullptr));
  }
}

// Those that this machine has; of them $QUARRY_TEST_EXECUTOR=cuda leaves CUDA's.
inline std::vector<uint32_t> homes(const Worlds& worlds) {
  std::vector<uint32_t> there;
  const char* const only = std::getenv("QUARRY_TEST_EXECUTOR");
  if (!only || std::string(only) != "cuda") there = {QRY_HOME_HOST, QRY_HOME_EMULATED};
  if (new_world(worlds, QRY_HOME_DEVICE)) there.push_back(QRY_HOME_DEVICE);
  return there;
}

// What another program finds that reads the file now, with the log beside it.
inline OneWorld copied(const Worlds& worlds, const std::filesystem::path& file, const std::filesystem::path& to) {
  namespace fs = std::filesystem;
  fs::copy_file(file, to, fs::copy_options::overwrite_existing);
  fs::remove(to.string() + "-wal");
  if (fs::exists(file.string() + "-wal")) fs::copy_file(file.string() + "-wal", to.string() + "-wal");
  return opened(worlds, to);
}

}  // namespace quarry::test
