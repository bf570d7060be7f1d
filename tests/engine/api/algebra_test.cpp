// SPDX-License-Identifier: Apache-2.0
// algebra_test.cpp - volumes combined, grown, eroded and taken apart through the C interface, at every home, beside the
// same done voxel by voxel on a plain array.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <climits>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <quarry/quarry.h>

#include "tests/engine/api/world_at.hpp"

namespace algebra_test {

namespace {

using quarry::test::world_at;

void require_ok(qry_result result) {
  INFO(qry_last_error());
  REQUIRE(result == QRY_OK);
}
void require_refused(qry_result result, qry_result wanted, const std::string& part) {
  const std::string said = qry_last_error();
  CAPTURE(said, part);
  REQUIRE(result == wanted);
  REQUIRE(said.find(part) != std::string::npos);
}

class Context {
 public:
  Context() {
    qry_context_info info = QRY_CONTEXT_INFO_INIT;
    info.device = QRY_DEVICE_NEVER;
    require_ok(qry_context_create(QRY_ABI_VERSION, &info, &context_));
  }
  ~Context() { qry_context_destroy(&context_); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  qry_context* get() const { return context_; }

 private:
  qry_context* context_ = nullptr;
};

// The box that is looked at. What is set keeps away from its sides, so that steps stay inside.
constexpr int32_t kMin[3] = {-20, -12, -20}, kMax[3] = {19, 11, 19};
constexpr int32_t kSize[3] = {40, 24, 40};
using Dense = std::vector<uint8_t>;
constexpr size_t kVoxels = size_t(40) * 24 * 40;

bool inside(int32_t x, int32_t y, int32_t z) {
  return x >= 0 && y >= 0 && z >= 0 && x < kSize[0] && y < kSize[1] && z < kSize[2];
}
size_t index_of(int32_t x, int32_t y, int32_t z) {
  return size_t(x) + size_t(kSize[0]) * (size_t(y) + size_t(kSize[1]) * size_t(z));
}
// Calls visit(x, y, z, index) in the array's order.
template <class Visit>
void each(Visit&& visit) {
  for (int32_t z = 0; z < kSize[2]; ++z)
    for (int32_t y = 0; y < kSize[1]; ++y)
      for (int32_t x = 0; x < kSize[0]; ++x) visit(x, y, z, index_of(x, y, z));
}

// As quarry.h states them, in the order that decides on materials.
std::vector<std::array<int32_t, 3>> steps_to(uint32_t neighbours) {
  if (neighbours == 6) return {{-1, 0, 0}, {1, 0, 0}, {0, -1, 0}, {0, 1, 0}, {0, 0, -1}, {0, 0, 1}};
  std::vector<std::array<int32_t, 3>> out;
  for (int32_t z = -1; z <= 1; ++z)
    for (int32_t y = -1; y <= 1; ++y)
      for (int32_t x = -1; x <= 1; ++x)
        if (const int32_t far = x * x + y * y + z * z; far > 0 && far <= (neighbours == 18 ? 2 : 3))
          out.push_back({x, y, z});
  return out;
}
Dense dilated(Dense now, uint32_t neighbours, uint32_t steps) {
  const auto around = steps_to(neighbours);
  for (uint32_t i = 0; i < steps; ++i) {
    const Dense before = now;
    each([&](int32_t x, int32_t y, int32_t z, size_t at) {
      for (const auto& s : around)
        if (!now[at] && inside(x + s[0], y + s[1], z + s[2])) now[at] = before[index_of(x + s[0], y + s[1], z + s[2])];
    });
  }
  return now;
}
Dense eroded(Dense now, uint32_t neighbours, uint32_t steps) {
  const auto around = steps_to(neighbours);
  for (uint32_t i = 0; i < steps; ++i) {
    const Dense before = now;
    each([&](int32_t x, int32_t y, int32_t z, size_t at) {
      for (const auto& s : around)
        if (!inside(x + s[0], y + s[1], z + s[2]) || !before[index_of(x + s[0], y + s[1], z + s[2])]) now[at] = 0;
    });
  }
  return now;
}

struct Part {
  std::vector<size_t> voxels;
  std::array<int32_t, 3> min{INT_MAX, INT_MAX, INT_MAX}, max{INT_MIN, INT_MIN, INT_MIN};
  uint32_t material = 0;
};
// The largest first. Tests do not look at the order of equal ones, but by their contents.
std::vector<Part> parts_of(const Dense& voxels, uint32_t neighbours) {
  const auto around = steps_to(neighbours);
  std::vector<Part> parts;
  std::vector<bool> seen(voxels.size());
  each([&](int32_t x, int32_t y, int32_t z, size_t at) {
    if (!voxels[at] || seen[at]) return;
    Part part;
    std::array<uint32_t, 256> counts{};
    std::vector<std::array<int32_t, 3>> open{{x, y, z}};
    seen[at] = true;
    while (!open.empty()) {
      const auto v = open.back();
      open.pop_back();
      part.voxels.push_back(index_of(v[0], v[1], v[2]));
      ++counts[voxels[part.voxels.back()]];
      for (size_t i = 0; i < 3; ++i) {
        part.min[i] = std::min(part.min[i], v[i] + kMin[i]);
        part.max[i] = std::max(part.max[i], v[i] + kMin[i]);
      }
      for (const auto& s : around) {
        const std::array<int32_t, 3> to{v[0] + s[0], v[1] + s[1], v[2] + s[2]};
        if (!inside(to[0], to[1], to[2])) continue;
        const size_t there = index_of(to[0], to[1], to[2]);
        if (voxels[there] && !seen[there]) seen[there] = true, open.push_back(to);
      }
    }
    part.material = uint32_t(std::max_element(counts.begin(), counts.end()) - counts.begin());
    parts.push_back(std::move(part));
  });
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.voxels.size() > b.voxels.size(); });
  return parts;
}

// Solid boxes with bricks that are full, nearly full and full of two materials, and loose voxels about them.
Dense example(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](uint32_t count) { return int32_t(random() % count); };
  Dense out(kVoxels);
  for (int box = 0; box < 3; ++box) {
    const int32_t from[3] = {4 + below(12), 4 + below(4), 4 + below(12)};
    const int32_t to[3] = {from[0] + 8 + below(10), std::min(from[1] + 8 + below(6), 19), from[2] + 8 + below(10)};
    each([&](int32_t x, int32_t y, int32_t z, size_t at) {
      if (x >= from[0] && x <= to[0] && y >= from[1] && y <= to[1] && z >= from[2] && z <= to[2])
        out[at] = uint8_t(3 + box % 2);
    });
  }
  each([&](int32_t x, int32_t y, int32_t z, size_t at) {
    const bool near_side = x < 4 || y < 4 || z < 4 || x > 35 || y > 19 || z > 35;
    const auto dice = uint32_t(random() % 400);
    if (!near_side && dice < 8) out[at] = dice < 4 ? uint8_t(0) : uint8_t(1 + dice);
  });
  return out;
}

Dense read(const qry_world* world) {
  Dense out(kVoxels);
  require_ok(qry_world_read_region(world, kMin, kMax, out.data(), out.size()));
  return out;
}
void write(qry_world* world, const Dense& voxels) {
  require_ok(qry_world_write_region(world, 0, kMin, kMax, voxels.data(), voxels.size(), nullptr));
}
qry_world_state state_of(qry_world* world) {
  qry_world_state state = QRY_WORLD_STATE_INIT;
  require_ok(qry_world_get_state(world, &state));
  return state;
}
uint64_t differing(const Dense& a, const Dense& b) {
  uint64_t count = 0;
  for (size_t i = 0; i < kVoxels; ++i) count += a[i] != b[i];
  return count;
}

// The call makes `after` of what is there, in one step, which can be undone and redone.
void check_step(qry_world* world, const std::function<qry_result(uint64_t*)>& call, const Dense& after) {
  const Dense before = read(world);
  const qry_world_state old = state_of(world);
  uint64_t changed = 77;
  require_ok(call(&changed));
  REQUIRE(read(world) == after);
  REQUIRE(changed == differing(before, after));
  const qry_world_state now = state_of(world);
  REQUIRE(now.voxel_count == kVoxels - uint64_t(std::count(after.begin(), after.end(), 0)));
  REQUIRE(now.history_position == old.history_position + (changed ? 1 : 0));
  REQUIRE((now.version != old.version) == (changed != 0));
  if (!changed) return;
  uint64_t back = 0;
  require_ok(qry_world_undo(world, &back));
  REQUIRE(back == changed);
  REQUIRE(read(world) == before);
  require_ok(qry_world_redo(world, &back));
  REQUIRE(back == changed);
  REQUIRE(read(world) == after);
  require_ok(qry_world_undo(world, nullptr));
}

const std::array<uint32_t, 3> kHomes{QRY_HOME_HOST, QRY_HOME_EMULATED, QRY_HOME_DEVICE};
const std::array<uint32_t, 3> kNeighbours{6, 18, 26};

}  // namespace

TEST_CASE("c_api: at every home a volume grows and is eroded in one step, as voxel by voxel") {
  const Context context;
  const Dense voxels = example(1);
  for (const uint32_t home : kHomes) {
    CAPTURE(home);
    qry_world* world = world_at(context.get(), home);
    if (!world) continue;
    write(world, voxels);
    for (const uint32_t neighbours : kNeighbours)
      for (const uint32_t steps : {1u, 3u}) {
        CAPTURE(neighbours, steps);
        check_step(
            world, [&](uint64_t* changed) { return qry_world_dilate(world, 0, neighbours, steps, nullptr, changed); },
            dilated(voxels, neighbours, steps));
        check_step(
            world, [&](uint64_t* changed) { return qry_world_erode(world, 0, neighbours, steps, nullptr, changed); },
            eroded(voxels, neighbours, steps));
      }
    check_step(
        world, [&](uint64_t* changed) { return qry_world_erode(world, 0, 26, 4096, nullptr, changed); },
        Dense(kVoxels));
    qry_world_destroy(&world);
  }
}

TEST_CASE("c_api: a brick with voxels that becomes full of one material counts those that differ, at every home") {
  const Context context;
  for (const uint32_t home : kHomes) {
    CAPTURE(home);
    qry_world* world = world_at(context.get(), home);
    if (!world) continue;
    Dense voxels(kVoxels), full(kVoxels);
    each([&](int32_t x, int32_t y, int32_t z, size_t at) {  // one brick, a hole of 2 x 1 x 1 in it
      const bool in_brick = x >= 12 && x < 20 && y >= 12 && y < 20 && z >= 12 && z < 20;
      full[at] = in_brick ? 5 : 0;
      voxels[at] = in_brick && !((x == 14 || x == 15) && y == 15 && z == 15) ? 5 : 0;
    });
    qry_world* filling = world_at(context.get(), QRY_HOME_HOST);
    write(filling, full);
    write(world, voxels);
    check_step(
        world,
        [&](uint64_t* changed) { return qry_world_combine(world, 0, filling, QRY_COMBINE_UNION, nullptr, changed); },
        full);
    qry_world_destroy(&filling);
    qry_world_destroy(&world);
  }
}

TEST_CASE("c_api: at every home a volume is combined with a world at any, and its own material wins") {
  const Context context;
  const Dense ours = example(2), theirs = example(3);
  Dense results[3] = {ours, ours, ours};
  for (size_t i = 0; i < kVoxels; ++i) {
    if (!ours[i]) results[QRY_COMBINE_UNION][i] = theirs[i];
    if (!theirs[i]) results[QRY_COMBINE_INTERSECTION][i] = 0;
    if (theirs[i]) results[QRY_COMBINE_DIFFERENCE][i] = 0;
  }
  for (const uint32_t home : kHomes)
    for (const uint32_t other_home : kHomes) {
      CAPTURE(home, other_home);
      qry_world *world = world_at(context.get(), home), *other = world_at(context.get(), other_home);
      if (world && other) {
        write(world, ours);
        write(other, theirs);
        for (uint32_t mode = QRY_COMBINE_UNION; mode <= QRY_COMBINE_DIFFERENCE; ++mode) {
          CAPTURE(mode);
          check_step(
              world, [&](uint64_t* changed) { return qry_world_combine(world, 0, other, mode, nullptr, changed); },
              results[mode]);
        }
        REQUIRE(read(other) == theirs);
        // With itself: nothing changes, or all goes.
        check_step(
            world,
            [&](uint64_t* changed) { return qry_world_combine(world, 0, world, QRY_COMBINE_UNION, nullptr, changed); },
            ours);
        check_step(
            world,
            [&](uint64_t* changed) {
              return qry_world_combine(world, 0, world, QRY_COMBINE_DIFFERENCE, nullptr, changed);
            },
            Dense(kVoxels));
      }
      qry_world_destroy(&other);
      qry_world_destroy(&world);
    }
}

TEST_CASE("c_api: at every home parts are found as by a flood, and those that are asked for are kept") {
  const Context context;
  const Dense voxels = example(4);
  for (const uint32_t home : kHomes) {
    CAPTURE(home);
    qry_world* world = world_at(context.get(), home);
    if (!world) continue;
    uint64_t none = 0;
    require_ok(qry_world_find_parts(world, 6, nullptr, nullptr, &none));  // of an empty world
    REQUIRE(none == 0);
    write(world, voxels);
    for (const uint32_t neighbours : kNeighbours) {
      CAPTURE(neighbours);
      const std::vector<Part> expected = parts_of(voxels, neighbours);
      uint64_t count = 0;
      require_refused(qry_world_find_parts(world, neighbours, nullptr, nullptr, &count), QRY_INCOMPLETE,
                      "room for 0 parts");
      REQUIRE(count == expected.size());
      std::vector<qry_part> parts(count);
      require_ok(qry_world_find_parts(world, neighbours, nullptr, parts.data(), &count));
      REQUIRE(count == expected.size());
      std::vector<std::vector<int64_t>> got, wanted;
      for (size_t i = 0; i < count; ++i) {
        const qry_part& p = parts[i];
        REQUIRE(p.voxel_count == expected[i].voxels.size());  // the largest first
        REQUIRE(p.reserved == 0);
        got.push_back({int64_t(p.voxel_count), p.material, p.min[0], p.min[1], p.min[2], p.max[0], p.max[1], p.max[2]});
        const Part& e = expected[i];
        wanted.push_back(
            {int64_t(e.voxels.size()), e.material, e.min[0], e.min[1], e.min[2], e.max[0], e.max[1], e.max[2]});
      }
      std::sort(got.begin(), got.end());
      std::sort(wanted.begin(), wanted.end());
      REQUIRE(got == wanted);

      const auto kept = [&](uint64_t least) {
        Dense out(kVoxels);
        for (const Part& part : expected)
          if (part.voxels.size() >= least)
            for (const size_t at : part.voxels) out[at] = voxels[at];
        return out;
      };
      // Loose voxels go, but for the largest part; those of at least 2 stay; all.
      REQUIRE(expected[0].voxels.size() > expected[1].voxels.size());
      check_step(
          world, [&](uint64_t* changed) { return qry_world_keep_parts(world, 0, neighbours, 1, 0, nullptr, changed); },
          kept(expected[0].voxels.size()));
      check_step(
          world,
          [&](uint64_t* changed) {
            return qry_world_keep_parts(world, 0, neighbours, UINT64_MAX, 2, nullptr, changed);
          },
          kept(2));
      check_step(
          world,
          [&](uint64_t* changed) {
            return qry_world_keep_parts(world, 0, neighbours, UINT64_MAX, 1, nullptr, changed);
          },
          voxels);
    }
    qry_world_destroy(&world);
  }
}

TEST_CASE("c_api: what leaves the world or is more than its bricks is refused, and all is as before, at every home") {
  const Context context;
  for (const uint32_t home : kHomes) {
    CAPTURE(home);
    qry_world* world = world_at(context.get(), home);
    if (!world) continue;
    const int32_t at_side[] = {8191, 0, 0, 3, 3, 3};
    const uint8_t materials[] = {1, 2};
    require_ok(qry_world_set_voxels(world, 0, at_side, materials, 2, nullptr));
    const Dense before = read(world);
    const qry_world_state state = state_of(world);
    uint64_t changed = 77;
    REQUIRE(qry_world_dilate(world, 0, 6, 1, nullptr, &changed) == QRY_ERROR_OUT_OF_BOUNDS);
    REQUIRE(std::string(qry_last_error()).find("world") != std::string::npos);
    REQUIRE(changed == 77);
    REQUIRE(read(world) == before);
    REQUIRE(state_of(world).history_length == state.history_length);
    REQUIRE(state_of(world).version == state.version);
    qry_world_destroy(&world);

    qry_world_home_info wanted = QRY_WORLD_HOME_INFO_INIT;
    wanted.home = home;
    qry_world_info info = QRY_WORLD_INFO_INIT;
    info.next = &wanted;
    info.max_bricks = 2;
    require_ok(qry_world_create(context.get(), &info, &world));
    const int32_t corner[] = {0, 0, 0};
    require_ok(qry_world_set_voxels(world, 0, corner, materials, 1, nullptr));
    const Dense one = read(world);
    REQUIRE(qry_world_dilate(world, 0, 26, 1, nullptr, &changed) == QRY_ERROR_FULL);  // into eight bricks
    REQUIRE(read(world) == one);
    REQUIRE(state_of(world).history_length == 1);
    qry_world_destroy(&world);
  }
}

TEST_CASE("c_api: a packed world is combined and eroded as another, at every home") {
  const Context context;
  for (const uint32_t home : kHomes) {
    qry_world* world = world_at(context.get(), home);
    if (!world) continue;
    const Dense voxels = example(5);
    write(world, voxels);
    require_ok(qry_world_pack(world));
    check_step(
        world, [&](uint64_t* changed) { return qry_world_erode(world, 0, 18, 1, nullptr, changed); },
        eroded(voxels, 18, 1));
    require_ok(qry_world_pack(world));
    check_step(
        world, [&](uint64_t* changed) { return qry_world_dilate(world, 0, 18, 1, nullptr, changed); },
        dilated(voxels, 18, 1));
    qry_world_destroy(&world);
  }
}

namespace {

// Stops the call number `stop_at`, and keeps what it is told.
struct Watch {
  size_t stop_at = 0;  // 0: none
  std::vector<double> said{};
  static int32_t QRY_CALL call(void* user, const char* stage, double fraction) {
    auto& watch = *static_cast<Watch*>(user);
    watch.said.push_back(std::string(stage).empty() ? -1.0 : fraction);
    return watch.said.size() == watch.stop_at ? 1 : 0;
  }
  qry_progress_info info() {
    qry_progress_info out = QRY_PROGRESS_INFO_INIT;
    out.progress = call;
    out.progress_user = this;
    return out;
  }
};

}  // namespace

TEST_CASE("c_api: algebra tells how far it is, and stopped at any call it leaves all as it was, at every home") {
  const Context context;
  const Dense voxels = example(6), mask = example(7);
  std::vector<qry_part> parts(1000, qry_part{});
  uint64_t changed = 77, count = parts.size();
  for (const uint32_t home : kHomes) {
    CAPTURE(home);
    qry_world *world = world_at(context.get(), home), *other = world_at(context.get(), QRY_HOME_HOST);
    if (!world) {
      qry_world_destroy(&other);
      continue;
    }
    write(world, voxels);
    write(other, mask);
    using Call = std::function<qry_result(const qry_progress_info*)>;
    const std::vector<std::pair<Call, Dense>> calls{
        {[&](const qry_progress_info* info) { return qry_world_dilate(world, 0, 18, 3, info, &changed); },
         dilated(voxels, 18, 3)},
        {[&](const qry_progress_info* info) { return qry_world_erode(world, 0, 6, 2, info, &changed); },
         eroded(voxels, 6, 2)},
        {[&](const qry_progress_info* info) {
           return qry_world_combine(world, 0, other, QRY_COMBINE_UNION, info, &changed);
         },
         [&] {
           Dense both = voxels;
           for (size_t i = 0; i < kVoxels; ++i) both[i] = voxels[i] ? voxels[i] : mask[i];
           return both;
         }()},
        {[&](const qry_progress_info* info) {
           return qry_world_combine(world, 0, other, QRY_COMBINE_DIFFERENCE, info, &changed);
         },
         [&] {
           Dense left = voxels;
           for (size_t i = 0; i < kVoxels; ++i) left[i] = mask[i] ? uint8_t(0) : voxels[i];
           return left;
         }()},
        {[&](const qry_progress_info* info) { return qry_world_keep_parts(world, 0, 6, 1, 0, info, &changed); },
         [&] {
           Dense largest(kVoxels);
           const std::vector<Part> all = parts_of(voxels, 6);
           for (const size_t at : all[0].voxels) largest[at] = voxels[at];
           return largest;
         }()},
        {[&](const qry_progress_info* info) { return qry_world_find_parts(world, 6, info, parts.data(), &count); },
         voxels},
    };
    for (size_t c = 0; c < calls.size(); ++c) {
      CAPTURE(c);
      const auto& [call, after] = calls[c];
      const bool reads = c + 1 == calls.size();
      const qry_world_state old = state_of(world);
      size_t stopped = 0;
      for (;; ++stopped) {
        Watch watch{stopped + 1};
        const qry_progress_info info = watch.info();
        changed = 77, count = parts.size(), parts[0] = qry_part{};
        const qry_result result = call(&info);
        // A slow machine may be told more often.
        REQUIRE((result == QRY_OK ? watch.said.size() <= stopped : watch.said.size() == stopped + 1));
        REQUIRE(std::is_sorted(watch.said.begin(), watch.said.end()));
        REQUIRE((watch.said.front() == 0 && watch.said.back() <= 1));
        if (result == QRY_OK) {
          REQUIRE(watch.said.back() == 1);
          break;
        }
        require_refused(result, QRY_ERROR_CANCELLED, "stopped");
        REQUIRE(changed == 77);
        REQUIRE(count == parts.size());
        REQUIRE(parts[0].voxel_count == 0);
        REQUIRE(read(world) == voxels);
        REQUIRE(state_of(world).version == old.version);
        REQUIRE(state_of(world).history_length == old.history_length);
      }
      REQUIRE(stopped >= 2);  // at the beginning and before the edit
      REQUIRE(read(world) == after);
      if (reads) {
        REQUIRE(count == parts_of(voxels, 6).size());
      } else {
        REQUIRE(changed == differing(voxels, after));
        require_ok(qry_world_undo(world, nullptr));
      }
    }
    qry_world_destroy(&world);
    qry_world_destroy(&other);
  }
}

TEST_CASE("c_api: worlds at any two homes are compared voxel by voxel, and their sums tell them apart") {
  const Context context;
  const Dense first = example(4), second = example(5);
  std::array<std::array<uint64_t, 3>, 2> told{};  // of either: the same at every home
  for (const uint32_t home : kHomes)
    for (const uint32_t other_home : kHomes) {
      CAPTURE(home, other_home);
      qry_world *world = world_at(context.get(), home), *other = world_at(context.get(), other_home);
      if (world && other) {
        write(world, first);
        write(other, second);
        // A material of the other world that looks like another one here.
        qry_material materials[2];
        require_ok(qry_world_get_materials(world, 3, 2, materials));
        std::swap(materials[0], materials[1]);
        require_ok(qry_world_set_materials(other, 3, 2, materials));
        const auto looks_there = [](uint8_t material) {
          return uint8_t(material == 3 ? 4 : material == 4 ? 3 : material);
        };
        for (const uint32_t flags : {0u, uint32_t(QRY_COMPARE_SHAPE)}) {
          std::array<uint64_t, 4> counts{};  // added, removed, recoloured, alike
          std::array<std::array<int32_t, 6>, 3> boxes{};
          for (auto& box : boxes) box = {INT_MAX, INT_MAX, INT_MAX, INT_MIN, INT_MIN, INT_MIN};
          each([&](int32_t x, int32_t y, int32_t z, size_t at) {
            if (!first[at] && !second[at]) return;
            const size_t kind = !first[at]                                      ? 0
                                : !second[at]                                   ? 1
                                : flags || first[at] == looks_there(second[at]) ? 3
                                                                                : 2;
            ++counts[kind];
            if (kind == 3) return;
            const std::array<int32_t, 3> place{x + kMin[0], y + kMin[1], z + kMin[2]};
            for (size_t i = 0; i < 3; ++i) {
              boxes[kind][i] = std::min(boxes[kind][i], place[i]);
              boxes[kind][i + 3] = std::max(boxes[kind][i + 3], place[i]);
            }
          });
          qry_comparison found = QRY_COMPARISON_INIT;
          require_ok(qry_world_compare(world, other, flags, &found));
          const std::array<const qry_difference*, 3> kinds{&found.added, &found.removed, &found.recoloured};
          for (size_t kind = 0; kind < 3; ++kind) {
            CAPTURE(kind, flags);
            REQUIRE(kinds[kind]->voxel_count == counts[kind]);
            for (size_t i = 0; i < 3 && counts[kind]; ++i) {
              REQUIRE(kinds[kind]->min[i] == boxes[kind][i]);
              REQUIRE(kinds[kind]->max[i] == boxes[kind][i + 3]);
            }
            if (counts[kind] == 0) REQUIRE(kinds[kind]->min[0] > kinds[kind]->max[0]);
          }
          REQUIRE(found.alike_count == counts[3]);
          REQUIRE((counts[0] > 0 && counts[1] > 0 && counts[3] > 0));
        }
        qry_comparison itself = QRY_COMPARISON_INIT;
        require_ok(qry_world_compare(other, other, 0, &itself));
        REQUIRE(itself.added.voxel_count + itself.removed.voxel_count + itself.recoloured.voxel_count == 0);

        const std::array<qry_world*, 2> worlds{world, other};
        for (size_t i = 0; i < 2; ++i) {
          qry_world_sums sums = QRY_WORLD_SUMS_INIT;
          require_ok(qry_world_get_sums(worlds[i], &sums));
          REQUIRE(sums.voxel_count == uint64_t(std::ranges::count_if(i ? second : first, [](uint8_t m) { return m; })));
          const std::array<uint64_t, 3> now{sums.voxel_count, sums.place_sum, sums.colour_sum};
          if (told[i][0] == 0) told[i] = now;
          REQUIRE(now == told[i]);
        }
        REQUIRE(told[0] != told[1]);
      }
      qry_world_destroy(&other);
      qry_world_destroy(&world);
    }
}

TEST_CASE("c_api: algebra refuses bad arguments by name") {
  const Context context, another;
  qry_world *world = world_at(context.get(), QRY_HOME_HOST), *foreign = world_at(another.get(), QRY_HOME_HOST);
  uint64_t count = 0;
  const auto bad = QRY_ERROR_INVALID_ARGUMENT;
  require_refused(qry_world_combine(nullptr, 0, world, 0, nullptr, nullptr), bad, "qry_world_combine: world is NULL");
  require_refused(qry_world_combine(world, 0, nullptr, 0, nullptr, nullptr), bad, "other is NULL");
  require_refused(qry_world_combine(world, 1, world, 0, nullptr, nullptr), bad, "volume is 1");
  require_refused(qry_world_combine(world, 0, world, 3, nullptr, nullptr), bad, "mode is 3");
  require_refused(qry_world_combine(world, 0, foreign, 0, nullptr, nullptr), bad, "another context");
  require_refused(qry_world_dilate(nullptr, 0, 6, 1, nullptr, nullptr), bad, "qry_world_dilate: world is NULL");
  require_refused(qry_world_dilate(world, 2, 6, 1, nullptr, nullptr), bad, "volume is 2");
  require_refused(qry_world_dilate(world, 0, 7, 1, nullptr, nullptr), bad, "neighbours is 7, expected 6, 18 or 26");
  require_refused(qry_world_erode(world, 0, 6, 0, nullptr, nullptr), bad,
                  "qry_world_erode: steps is 0, expected 1..4096");
  require_refused(qry_world_erode(world, 0, 6, 4097, nullptr, nullptr), bad, "steps is 4097");
  require_refused(qry_world_find_parts(nullptr, 6, nullptr, nullptr, &count), bad, "world is NULL");
  require_refused(qry_world_find_parts(world, 6, nullptr, nullptr, nullptr), bad, "count is NULL");
  require_refused(qry_world_find_parts(world, 0, nullptr, nullptr, &count), bad, "neighbours is 0");
  count = 1;
  require_refused(qry_world_find_parts(world, 6, nullptr, nullptr, &count), bad, "parts is NULL");
  require_refused(qry_world_keep_parts(nullptr, 0, 6, 1, 0, nullptr, nullptr), bad, "world is NULL");
  require_refused(qry_world_keep_parts(world, 3, 6, 1, 0, nullptr, nullptr), bad, "volume is 3");
  require_refused(qry_world_keep_parts(world, 0, 5, 1, 0, nullptr, nullptr), bad, "neighbours is 5");
  require_refused(qry_world_keep_parts(world, 0, 6, 0, 0, nullptr, nullptr), bad, "most is 0");
  qry_comparison comparison = QRY_COMPARISON_INIT;
  qry_world_sums sums = QRY_WORLD_SUMS_INIT;
  require_refused(qry_world_compare(nullptr, world, 0, &comparison), bad, "qry_world_compare: world is NULL");
  require_refused(qry_world_compare(world, nullptr, 0, &comparison), bad, "other is NULL");
  require_refused(qry_world_compare(world, world, 2, &comparison), bad, "flags are 0x2");
  require_refused(qry_world_compare(world, foreign, 0, &comparison), bad, "another context");
  require_refused(qry_world_compare(world, world, 0, nullptr), bad, "comparison is NULL");
  require_refused(qry_world_get_sums(nullptr, &sums), bad, "qry_world_get_sums: world is NULL");
  require_refused(qry_world_get_sums(world, nullptr), bad, "sums is NULL");
  sums.stype = QRY_STYPE_COMPARISON;
  require_refused(qry_world_get_sums(world, &sums), QRY_ERROR_UNKNOWN_STRUCT, "QRY_STYPE_WORLD_SUMS");
  qry_progress_info info = QRY_PROGRESS_INFO_INIT;
  info.stype = QRY_STYPE_SAVE_INFO;
  const auto unknown = QRY_ERROR_UNKNOWN_STRUCT;
  require_refused(qry_world_combine(world, 0, world, 0, &info, nullptr), unknown, "QRY_STYPE_PROGRESS_INFO");
  require_refused(qry_world_dilate(world, 0, 6, 1, &info, nullptr), unknown, "qry_world_dilate: info->stype");
  require_refused(qry_world_erode(world, 0, 6, 1, &info, nullptr), unknown, "qry_world_erode: info->stype");
  require_refused(qry_world_find_parts(world, 6, &info, nullptr, &count), bad, "parts is NULL");
  count = 0;
  require_refused(qry_world_find_parts(world, 6, &info, nullptr, &count), unknown, "qry_world_find_parts");
  require_refused(qry_world_keep_parts(world, 0, 6, 1, 0, &info, nullptr), unknown, "qry_world_keep_parts");
  info = QRY_PROGRESS_INFO_INIT;
  info.next = &info;
  require_refused(qry_world_dilate(world, 0, 6, 1, &info, nullptr), unknown, "in this chain");
  qry_world_destroy(&world);
  qry_world_destroy(&foreign);
}

}  // namespace algebra_test
