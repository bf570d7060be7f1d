// SPDX-License-Identifier: Apache-2.0
// world_bench.cpp - quarry-bench-world, which `quarry bench world` starts: edits, undo and lists of voxels on worlds
// with history, as a user of the library makes them. It links libquarry and calls quarry.h alone, with default
// settings. Each row is the median of --repeats runs, each in a new world; a wrong count of voxels fails the run. Warm
// rows are of one world, in which qry_world_reserve has made room and the same was done once before.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <quarry/quarry.h>

#include "bench/cuda_arrays.hpp"
#include "bench/flight.hpp"
#include "bench/turned_scene.hpp"

namespace {

using Json = nlohmann::json;

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "quarry bench world: %s\n", what.c_str());
  std::exit(1);
}

void require(qry_result result, const char* call) {
  if (result != QRY_OK) give_up(std::string(call) + ": " + qry_last_error());
}

double ms_of(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ptrdiff_t(values.size() / 2), values.end());
  return values[values.size() / 2];
}

uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t pages = 0, resident = 0;
  statm >> pages >> resident;
  return resident * uint64_t(sysconf(_SC_PAGESIZE));
}

uint64_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return uint64_t(usage.ru_maxrss) * 1024;
}

using quarry::bench::CudaArray;

// Gone at the end, with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder() { std::filesystem::create_directory(path_); }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  const std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("quarry-bench-world-" + std::to_string(getpid()));
};

// A world of its own, destroyed with it.
class World {
 public:
  World(qry_context* context, uint32_t home, uint64_t budget_bytes = 0) {
    qry_device_budget_info budget = QRY_DEVICE_BUDGET_INFO_INIT;
    budget.bytes = budget_bytes;
    qry_world_home_info home_info = QRY_WORLD_HOME_INFO_INIT;
    home_info.next = &budget;
    home_info.home = home;
    qry_world_info info = QRY_WORLD_INFO_INIT;
    info.next = &home_info;
    require(qry_world_create(context, &info, &world_), "qry_world_create");
  }
  World(qry_context* context, uint32_t home, const std::string& path, uint32_t flags = 0, uint64_t budget_bytes = 0) {
    qry_device_budget_info budget = QRY_DEVICE_BUDGET_INFO_INIT;
    budget.bytes = budget_bytes;
    qry_world_home_info home_info = QRY_WORLD_HOME_INFO_INIT;
    home_info.next = &budget;
    home_info.home = home;
    qry_open_info info = QRY_OPEN_INFO_INIT;
    info.next = &home_info;
    info.path = path.c_str();
    info.flags = flags;
    require(qry_world_open(context, &info, &world_), "qry_world_open");
  }
  ~World() { qry_world_destroy(&world_); }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  qry_world* get() const { return world_; }
  qry_world_state state() const {
    qry_world_state state = QRY_WORLD_STATE_INIT;
    require(qry_world_get_state(world_, &state), "qry_world_get_state");
    return state;
  }
  void edit(const qry_edit& edit) const { require(qry_world_edit(world_, &edit, nullptr), "qry_world_edit"); }
  void undo() const { require(qry_world_undo(world_, nullptr), "qry_world_undo"); }
  void redo() const { require(qry_world_redo(world_, nullptr), "qry_world_redo"); }
  // Without waiting; returns the ticket.
  uint64_t submit(const qry_edit& edit) const {
    uint64_t ticket = 0;
    require(qry_world_submit_edit(world_, &edit, &ticket), "qry_world_submit_edit");
    return ticket;
  }
  uint64_t submit_undo() const {
    uint64_t ticket = 0;
    require(qry_world_submit_undo(world_, &ticket), "qry_world_submit_undo");
    return ticket;
  }
  void await(uint64_t ticket) const { require(qry_world_await(world_, ticket, nullptr, nullptr), "qry_world_await"); }
  void reserve(uint64_t bricks, uint64_t not_full) const {
    require(qry_world_reserve(world_, uint32_t(bricks), uint32_t(not_full)), "qry_world_reserve");
  }
  qry_hit pick(int32_t x, int32_t y, int32_t z) const {  // straight down
    const qry_ray ray = {{float(x) + 0.5f, float(y) + 0.5f, float(z) + 0.5f}, {0, -1, 0}};
    qry_hit hit;
    require(qry_world_trace(world_, &ray, 1, &hit), "qry_world_trace");
    return hit;
  }
  qry_home_state home() const {
    qry_home_state state = QRY_HOME_STATE_INIT;
    require(qry_world_get_home(world_, &state), "qry_world_get_home");
    return state;
  }
  void expect_voxels(uint64_t count, const std::string& row) const {
    if (const uint64_t there = state().voxel_count; there != count)
      give_up(row + ": the world has " + std::to_string(there) + " voxels, not " + std::to_string(count));
  }

 private:
  qry_world* world_ = nullptr;
};

qry_edit sphere(int32_t x, int32_t y, int32_t z, double radius, uint32_t material) {
  qry_edit edit = QRY_EDIT_INIT;
  edit.shape = QRY_SHAPE_SPHERE;
  edit.mode = QRY_MODE_FILL;
  edit.material = material;
  edit.a[0] = x, edit.a[1] = y, edit.a[2] = z;
  edit.radius = radius;
  return edit;
}

struct List {
  std::vector<int32_t> xyz;
  std::vector<uint8_t> materials;

  void add(int32_t x, int32_t y, int32_t z) {
    xyz.insert(xyz.end(), {x, y, z});
    materials.push_back(uint8_t(1 + (materials.size() * 2654435761u >> 24) % 255));
  }
  void shuffle() {
    uint64_t state = 1;
    for (uint64_t i = materials.size() - 1; i > 0; --i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const uint64_t j = (state >> 33) % (i + 1);
      for (uint64_t axis = 0; axis < 3; ++axis) std::swap(xyz[3 * i + axis], xyz[3 * j + axis]);
      std::swap(materials[i], materials[j]);
    }
  }
};

class Rows {
 public:
  Rows(qry_context* context, int repeats, bool small, uint32_t home, uint64_t budget_bytes)
      : context_(context), repeats_(repeats), small_(small), home_(home), budget_bytes_(budget_bytes) {}

  // What people did in an editor: NAME.csv of the folder, and what is left at the end, by facts.json.
  void session(const std::string& folder, const std::string& name, bool carve, bool with_file) {
    std::ifstream file(folder + "/" + name + ".csv"), facts_file(folder + "/facts.json");
    if (!file || !facts_file) give_up("no " + name + ".csv or facts.json in '" + folder + "'");
    std::vector<qry_edit> edits;
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
      int frame = 0, x = 0, y = 0, z = 0;
      double radius = 0;
      if (std::sscanf(line.c_str(), "%d,%d,%d,%d,%lf", &frame, &x, &y, &z, &radius) != 5)
        give_up(name + ".csv: a line is not frame,x,y,z,radius: " + line);
      edits.push_back(sphere(x, y, z, radius, uint32_t(1 + edits.size() % 255)));
      if (carve && edits.size() % 4 == 0) edits.back().mode = QRY_MODE_REMOVE;
    }
    const Json all_facts = Json::parse(facts_file).at(name);
    if (!all_facts.contains(carve ? "carve" : "fill")) return;  // nobody has counted it
    const Json facts = all_facts.at(carve ? "carve" : "fill");
    const std::string row = "session " + name + (carve ? ", carve" : ", fill");
    if (with_file) return replay_with_file(row, edits, facts);
    replay(row, edits, facts, false);
    // Memory is there before: what is left is the edits.
    if (home_ != QRY_HOME_HOST) replay(row + ", warm", edits, facts, true);
  }

  // Edits go without waiting for each other, from the first call to the last one's answer.
  void replay(const std::string& row, const std::vector<qry_edit>& edits, const Json& facts, bool warm) {
    std::vector<double> made, undone;
    for (int i = 0; i < repeats_; ++i) {
      const World world(context_, home_);
      if (warm) world.reserve(facts.at("bricks").get<uint64_t>() * 3, facts.at("bricks").get<uint64_t>() / 4 + 40000);
      made.push_back(ms_of([&] {
        uint64_t last = 0;
        for (const qry_edit& edit : edits) last = world.submit(edit);
        world.await(last);
      }));
      world.expect_voxels(facts.at("voxels").get<uint64_t>(), row);
      if (world.state().brick_count != facts.at("bricks").get<uint64_t>()) give_up(row + ": not as many bricks");
      note_memory(row, world);
      const uint64_t steps = world.state().history_length;
      undone.push_back(ms_of([&] {
        uint64_t last = 0;
        for (uint64_t step = 0; step < steps; ++step) last = world.submit_undo();
        if (steps) world.await(last);
      }));
      world.expect_voxels(0, row + ", undone");
    }
    add(row, median(made), "ms");
    add(row + ", undone", median(undone), "ms");
  }

  // With a file behind the world, flushed once at the session's end; then the file is opened, and has all of it.
  void replay_with_file(const std::string& row, const std::vector<qry_edit>& edits, const Json& facts) {
    const TemporaryFolder folder;
    const std::string path = (folder.path() / "session.quarry").string();
    uint64_t steps = 0;
    {
      const World world(context_, home_, budget_bytes_);
      require(qry_world_attach(world.get(), path.c_str()), "qry_world_attach");
      const double made = ms_of([&] {
        uint64_t last = 0;
        for (const qry_edit& edit : edits) last = world.submit(edit);
        world.await(last);
      });
      const double flushed = ms_of([&] { require(qry_world_flush(world.get()), "qry_world_flush"); });
      add(row + ", attached", made, "ms");
      add(row + ", attached and flushed at its end", made + flushed, "ms");
      add(row + ", host's memory at its peak", double(peak_bytes()) / 1e6, "MB");
      if (budget_bytes_) return replayed_in_parts(row, world, facts);
      steps = world.state().history_length;
      require(qry_world_detach(world.get()), "qry_world_detach");
    }
    add(row + ", its file", double(std::filesystem::file_size(path)) / 1e6, "MB");
    std::optional<World> opened;
    add(row + ", its file opened", ms_of([&] { opened.emplace(context_, home_, path); }), "ms");
    add(row + ", host's memory at its peak, opening included", double(peak_bytes()) / 1e6, "MB");
    opened->expect_voxels(facts.at("voxels").get<uint64_t>(), row + ", opened");
    const qry_world_state state = opened->state();
    if (state.brick_count != facts.at("bricks").get<uint64_t>() || state.history_length != steps)
      give_up(row + ": the file has " + std::to_string(state.brick_count) + " bricks and " +
              std::to_string(state.history_length) + " steps");
  }

  // The world is a part of its file's: which is looked at, undone step by step, and opened again.
  void replayed_in_parts(const std::string& row, const World& world, const Json& facts) {
    const auto expect = [&](uint64_t voxels, uint64_t bricks, const char* when) {
      world.expect_voxels(voxels, row + when);
      if (world.state().brick_count != bricks)
        give_up(row + when + ": " + std::to_string(world.state().brick_count) + " bricks");
    };
    expect(facts.at("voxels").get<uint64_t>(), facts.at("bricks").get<uint64_t>(), "");
    qry_paging_state paging = QRY_PAGING_STATE_INIT;
    qry_home_state home = QRY_HOME_STATE_INIT;
    home.next = &paging;
    const auto tell = [&](const std::string& of) {
      require(qry_world_get_home(world.get(), &home), "qry_world_get_home");
      add(of + ", device's memory", double(home.device_bytes) / 1e6, "MB");
      add(of + ", pages with voxels", double(paging.pages), "pages");
      add(of + ", of which in the file alone", double(paging.absent_pages), "pages");
      add(of + ", pages brought", double(paging.brought_pages), "pages");
      add(of + ", flushed for room", double(paging.flushes), "times");
      add(of + ", host's memory at its peak", double(peak_bytes()) / 1e6, "MB");
    };
    tell(row);
    add(row + ", undone", ms_of([&] {
          qry_result undone = QRY_OK;
          while (undone == QRY_OK) undone = qry_world_undo(world.get(), nullptr);
          if (undone != QRY_NOTHING_TO_DO) require(undone, "qry_world_undo");
        }),
        "ms");
    expect(0, 0, ", undone");
    tell(row + ", undone");
  }

  // Lists of 4 million voxels of all materials: a solid cube, and the shell of a ball, as scanners and simulations give
  // them; in scan order (x fastest) and shuffled.
  void lists() {
    const int32_t edge = small_ ? 40 : 160, radius = small_ ? 70 : 564;
    List cube, shell;
    for (int32_t z = 0; z < edge; ++z)
      for (int32_t y = 0; y < edge; ++y)
        for (int32_t x = 0; x < edge; ++x) cube.add(x, y, z);
    for (int32_t z = -radius; z <= radius; ++z)
      for (int32_t y = -radius; y <= radius; ++y)
        for (int32_t x = -radius; x <= radius; ++x) {
          const int64_t r2 = int64_t(x) * x + int64_t(y) * y + int64_t(z) * z;
          if (r2 <= int64_t(radius) * radius && r2 > int64_t(radius - 1) * (radius - 1)) shell.add(x, y, z);
        }
    measure_list("set_voxels, cube", cube);
    measure_list("set_voxels, shell", shell);
    if (home_ == QRY_HOME_HOST) return;
    warm_list("set_voxels, shell of " + std::to_string(shell.materials.size()) + ", shuffled, warm", shell);
    if (small_) return;
    // Larger than a cache: a shell of 20 million.
    List large;
    constexpr int64_t kRadius = 1262;
    for (int64_t y = -kRadius; y <= kRadius; ++y)
      for (int64_t x = -kRadius; x <= kRadius; ++x) {
        const int64_t rest = kRadius * kRadius - x * x - y * y;
        if (rest < 0) continue;
        for (auto z = int64_t(std::sqrt(double(rest))); z >= 0; --z) {
          if (z * z > rest) continue;
          if (x * x + y * y + z * z <= (kRadius - 1) * (kRadius - 1)) break;
          large.add(int32_t(x), int32_t(y), int32_t(z));
          if (z) large.add(int32_t(x), int32_t(y), int32_t(-z));
        }
      }
    large.shuffle();
    warm_list("set_voxels, shell of " + std::to_string(large.materials.size()) + ", shuffled, warm", large);
    if (home_ == QRY_HOME_DEVICE) add("bus to the device, pinned", quarry::bench::cuda_bus_rate() / 1e9, "GB/s");
  }

  // By pointers to host memory and, at home on a device, to its memory; where nothing is, and where each voxel is
  // already, of another material.
  void warm_list(const std::string& row, const List& list) {
    const World world(context_, home_);
    const uint64_t count = list.materials.size();
    world.reserve(1u << 20, 1u << 20);
    List other = list;
    for (uint8_t& material : other.materials) material = uint8_t(1 + material % 255);
    for (const bool on_device : {false, true}) {
      if (on_device && home_ != QRY_HOME_DEVICE) break;
      const std::vector<int32_t> no_xyz;
      const std::vector<uint8_t> no_materials;
      const CudaArray<int32_t> xyz(on_device ? list.xyz : no_xyz);
      const CudaArray<uint8_t> materials(on_device ? list.materials : no_materials),
          others(on_device ? other.materials : no_materials);
      if (on_device && !(xyz.get() && materials.get() && others.get())) give_up(row + ": no device memory");
      std::vector<double> empty, used;
      for (int i = 0; i <= repeats_; ++i) {
        uint64_t changed = 0;
        const auto set = [&](const List& host, const CudaArray<uint8_t>& its) {
          return ms_of([&] {
            if (on_device)
              require(qry_world_cuda_set_voxels(world.get(), xyz.get(), its.get(), count, nullptr, &changed),
                      "qry_world_cuda_set_voxels");
            else
              require(qry_world_set_voxels(world.get(), 0, host.xyz.data(), host.materials.data(), count, &changed),
                      "qry_world_set_voxels");
          });
        };
        const double first = set(list, materials);
        if (changed != count) give_up(row + ": not every voxel was new");
        const double second = set(other, others);
        if (changed != count) give_up(row + ": not every voxel has another material");
        world.expect_voxels(count, row);
        world.undo();
        world.undo();
        if (i == 0) continue;
        empty.push_back(first);
        used.push_back(second);
      }
      const std::string where = row + (on_device ? ", device pointers" : ", host pointers");
      add(where + ", empty", double(count) / median(empty) / 1e3, "million voxels a second");
      add(where + ", in use", double(count) / median(used) / 1e3, "million voxels a second");
    }
  }

  struct Ball {
    int radius;
    uint64_t voxels;
  };
  static constexpr Ball kBalls[] = {{8, 2109}, {32, 137065}, {128, 8782785}, {300, 113094545}};

  void spheres() {
    for (const Ball& one : kBalls) {
      if (small_ && one.radius > 32) break;
      const std::string row = "sphere of radius " + std::to_string(one.radius);
      std::vector<double> made, undone;
      for (int i = 0; i < repeats_; ++i) {
        const World world(context_, home_);
        made.push_back(ms_of([&] { world.edit(sphere(3, 5, 7, one.radius, 9)); }));
        world.expect_voxels(one.voxels, row);
        note_memory(row, world);
        undone.push_back(ms_of([&] { world.undo(); }));
        world.expect_voxels(0, row + ", undone");
      }
      add(row, median(made), "ms");
      add(row + ", undone", median(undone), "ms");
    }
  }

  // In a world that has room: edits until their answer is there, until a ray meets them, undone and redone; in an empty
  // world, and beside many bricks.
  void warm_spheres() {
    const World world(context_, home_);
    world.reserve(small_ ? 1u << 16 : 12u << 20, small_ ? 1u << 15 : 3u << 20);
    for (const bool beside : {false, true}) {
      if (beside) {
        uint64_t last = 0;
        for (int32_t x = -3; x <= 3; ++x)
          for (int32_t z = -3; z <= 1; ++z) last = world.submit(sphere(x * 620, 0, z * 620, small_ ? 20 : 300, 5));
        world.await(last);
      }
      for (const Ball& one : kBalls) {
        if (small_ && one.radius > 32) break;
        const std::string row = "sphere of radius " + std::to_string(one.radius) + ", warm" +
                                (beside ? ", beside " + std::to_string(world.state().brick_count) + " bricks" : "");
        std::vector<double> made, traced, undone, redone;
        const uint64_t before = world.state().voxel_count;
        for (int i = 0; i < 4 * repeats_; ++i) {
          const qry_edit edit = sphere(3001, -1003, 2005, one.radius, uint32_t(9 + i % 2));
          made.push_back(ms_of([&] { world.edit(edit); }));
          if (i == 0) world.expect_voxels(before + one.voxels, row);
          undone.push_back(ms_of([&] { world.undo(); }));
          redone.push_back(ms_of([&] { world.redo(); }));
          world.undo();
          qry_hit hit;
          traced.push_back(ms_of([&] {
            world.submit(edit);
            hit = world.pick(3001, -1003 + one.radius + 40, 2005);
          }));
          if (hit.voxel[1] != -1003 + one.radius || hit.material != edit.material)
            give_up(row + ": a ray did not meet the edit before it");
          world.undo();
        }
        add(row, median(made), "ms");
        add(row + ", until a ray meets it", median(traced), "ms");
        add(row + ", undone", median(undone), "ms");
        add(row + ", redone", median(redone), "ms");
      }
    }
  }

  // Strokes of a world with a file behind it, and what brings each to the file: saving what has changed; the same
  // without a file. Then the file is opened, and has them. `begun`: a world to begin with, in a copy of its file;
  // empty: some balls.
  void strokes(const std::string& begun) {
    const TemporaryFolder folder;
    const std::string path = (folder.path() / "strokes.quarry").string();
    if (!begun.empty()) std::filesystem::copy_file(begun, path);
    const auto make = [&] {
      return begun.empty() ? std::make_unique<World>(context_, home_) : std::make_unique<World>(context_, home_, path);
    };
    const auto ours_made = make(), alone_made = make();
    const World &attached = *ours_made, &alone = *alone_made;
    for (const World* world : {&attached, &alone}) {
      world->reserve(1u << 20, 1u << 19);
      if (!begun.empty()) continue;
      for (int i = 0; i < 40; ++i)
        world->edit(sphere(i * 37 % 400 - 200, i * 53 % 100 - 50, i * 71 % 400 - 200, 10 + i % 30, uint32_t(1 + i)));
    }
    add("strokes, attached to the file",
        ms_of([&] { require(qry_world_attach(attached.get(), path.c_str()), "qry_world_attach"); }), "ms");
    for (const Ball& one : kBalls) {
      if (one.radius < 32 || one.radius > (small_ ? 32 : 128)) continue;
      std::vector<double> with, without, flushed;
      for (int i = 0; i <= 2 * repeats_; ++i) {
        const qry_edit edit = sphere(i * 41 % 300 - 150, 30, i * 59 % 300 - 150, one.radius, uint32_t(1 + i % 250));
        double ours = 0, theirs = 0;
        const auto edit_ours = [&] { ours = ms_of([&] { attached.edit(edit); }); };
        if (i % 2) edit_ours();  // what comes first after a flush finds cold caches
        theirs = ms_of([&] { alone.edit(edit); });
        if (i % 2 == 0) edit_ours();
        const double flush = ms_of([&] { require(qry_world_flush(attached.get()), "qry_world_flush"); });
        if (i == 0) continue;  // it makes memory
        with.push_back(ours);
        without.push_back(theirs);
        flushed.push_back(flush);
      }
      const std::string row = "stroke of radius " + std::to_string(one.radius);
      add(row + ", no file", median(without), "ms");
      add(row + ", attached", median(with), "ms");
      add(row + ", flushed", median(flushed), "ms");
    }
    const double ms = ms_of([&] { require(qry_world_detach(attached.get()), "qry_world_detach"); });
    add("strokes, detached", ms, "ms");
    const World opened(context_, home_, path);
    const qry_world_state state = opened.state(), expected = alone.state();
    if (state.voxel_count != expected.voxel_count || state.history_length != expected.history_length)
      give_up("strokes: the file has not what the world had");
  }

  // What an edit before it adds to a picture of 1920 x 1080, which is copied to the host: the edit, and letting shaders
  // see it.
  void frames() {
    const World world(context_, home_);
    world.reserve(4u << 20, 1u << 19);
    for (int i = 0; i < 200; ++i)
      world.submit(sphere(i * 37 % 400 - 200, i * 53 % 100 - 50, i * 71 % 400 - 200, 10 + i % 30, uint32_t(1 + i)));
    qry_render_info info = QRY_RENDER_INFO_INIT;
    info.width = small_ ? 192 : 1920, info.height = small_ ? 108 : 1080;
    info.camera.position[0] = 300, info.camera.position[1] = 220, info.camera.position[2] = 420;
    info.camera.target[0] = info.camera.target[1] = info.camera.target[2] = 0;
    std::vector<uint8_t> rgba(size_t(info.width) * info.height * 4);
    const auto draw = [&] {
      require(qry_world_render(world.get(), &info, rgba.data(), rgba.size(), 0), "qry_world_render");
    };
    draw();
    for (const int radius : {8, 32, 64, 128}) {
      if (small_ && radius > 32) break;
      std::vector<double> alone, with_edit;
      for (int i = 0; i < 4 * repeats_; ++i) {
        alone.push_back(ms_of(draw));
        const qry_edit edit = sphere(i * 7 % 50, 30, i * 5 % 40, radius, uint32_t(1 + i % 200));
        with_edit.push_back(ms_of([&] {
          if (home_ == QRY_HOME_HOST) world.edit(edit);
          else world.submit(edit);
          draw();
        }));
      }
      const std::string row = "picture after a sphere of radius " + std::to_string(radius);
      add(row, median(with_edit), "ms");
      add(row + ", more than without", median(with_edit) - median(alone), "ms");
    }
    if (home_ == QRY_HOME_DEVICE && !world.home().in_place) give_up("pictures: they were made of a copy");
    // A stroke: a dab a frame, beside as many frames without.
    std::vector<double> alone, with_dab;
    for (int i = 0; i < 200; ++i) alone.push_back(ms_of(draw));
    for (int i = 0; i < 200; ++i) {
      const qry_edit dab = sphere(i - 100, 40, i * 3 % 50, small_ ? 16 : 64, uint32_t(1 + i));
      with_dab.push_back(ms_of([&] {
        if (home_ == QRY_HOME_HOST) world.edit(dab);
        else world.submit(dab);
        draw();
      }));
    }
    const auto tell = [&](const char* row, const std::vector<double>& times) {
      add(row, median(times), "ms");
      add(std::string(row) + ", the worst", *std::max_element(times.begin(), times.end()), "ms");
    };
    tell("frame of 200 alone", alone);
    tell("frame of 200 with a dab of radius 64 each", with_dab);
  }

  void box() {
    const uint64_t before = resident_bytes();
    const World world(context_, home_);
    qry_edit edit = QRY_EDIT_INIT;
    edit.mode = QRY_MODE_FILL;
    for (int axis = 0; axis < 3; ++axis) edit.a[axis] = -500, edit.b[axis] = 499;
    if (qry_world_edit(world.get(), &edit, nullptr) == QRY_ERROR_FULL) {
      std::printf("box of 10^9 voxels: refused: %s\n", qry_last_error());
      return;
    }
    add("box of 10^9 voxels: resident memory", double(resident_bytes() - before) / 1e6, "MB");
    note_memory("box of 10^9 voxels", world);
    const double undone_cold = ms_of([&] { world.undo(); });
    const double ms = ms_of([&] { world.edit(edit); });
    world.expect_voxels(1000000000, "box of 10^9 voxels");
    add("box of 10^9 voxels", ms, "ms");
    add("box of 10^9 voxels, undone", undone_cold, "ms");
    // While it was planned, the undone one could still be redone: its bricks were there twice.
    add("box of 10^9 voxels, undone and made again: resident memory", double(resident_bytes() - before) / 1e6, "MB");
    if (home_ == QRY_HOME_HOST) return;
    const World warm(context_, home_);
    warm.reserve(4u << 20, 1u << 19);
    std::vector<double> made, undone;
    for (int i = 0; i <= repeats_; ++i) {
      const double one = ms_of([&] { warm.edit(edit); });
      warm.expect_voxels(1000000000, "box of 10^9 voxels, warm");
      const qry_home_state before_undo = warm.home();
      const double back = ms_of([&] { warm.undo(); });
      if (i == 0) continue;
      made.push_back(one);
      undone.push_back(back);
      if (i == repeats_)
        add("box of 10^9 voxels, undone, bytes over the bus",
            double(warm.home().bytes_to_device + warm.home().bytes_from_device - before_undo.bytes_to_device -
                   before_undo.bytes_from_device),
            "bytes");
    }
    add("box of 10^9 voxels, warm", median(made), "ms");
    add("box of 10^9 voxels, warm, undone", median(undone), "ms");
  }

  // Bricks of one voxel, as many free before them as there are: those of a step that was undone and left behind.
  void trim() {
    const int32_t edge = small_ ? 32 : 160;  // bricks along each axis
    List first, second;
    for (int32_t z = 0; z < edge; ++z)
      for (int32_t y = 0; y < edge; ++y)
        for (int32_t x = 0; x < edge; ++x) {
          first.add(x * 8, y * 8, z * 8);
          second.add(x * 8 + 1, y * 8, z * 8);
        }
    const size_t count = first.materials.size();
    const std::string row = "trim, " + std::to_string(count) + " bricks, as many gone";
    std::vector<double> times;
    double bytes = 0;
    for (int i = 0; i < repeats_; ++i) {
      const World world(context_, home_);
      const auto write = [&](const List& list) {
        require(qry_world_set_voxels(world.get(), 0, list.xyz.data(), list.materials.data(), count, nullptr),
                "qry_world_set_voxels");
      };
      write(first);
      world.undo();
      write(second);
      const uint64_t before = world.home().device_bytes;
      times.push_back(ms_of([&] { require(qry_world_trim(world.get()), "qry_world_trim"); }));
      bytes = double(before) - double(world.home().device_bytes);
      world.expect_voxels(count, row);
    }
    add(row, median(times), "ms");
    if (home_ == QRY_HOME_HOST) return;
    add(row + ", given back", bytes / 1e6, "MB");
    if (home_ == QRY_HOME_DEVICE) add("copy within the device", quarry::bench::cuda_copy_rate() / 1e9, "GB/s");
  }

  // Two hollow balls of 20 million voxels each, of which a tenth is in both, combined; their materials stay theirs.
  void algebra() {
    const int radius = small_ ? 40 : 400, wall = small_ ? 4 : 10, apart = radius / 4;
    const auto hollow = [&](const World& world, int x, uint32_t material) {
      for (const int r : {radius, radius - wall}) {
        qry_edit ball = sphere(x, 0, 0, r, material);
        if (r != radius) ball.mode = QRY_MODE_REMOVE;
        world.edit(ball);
      }
    };
    const World ours(context_, home_), theirs(context_, home_);
    hollow(ours, 0, 7);
    hollow(theirs, apart, 9);
    ours.reserve(1u << 20, 1u << 19);
    qry_world_state before = QRY_WORLD_STATE_INIT;
    require(qry_world_get_state(ours.get(), &before), "qry_world_get_state");
    add("algebra, voxels of each", double(before.voxel_count) / 1e6, "million");
    struct Kind {
      uint32_t mode;
      const char* name;
    };
    for (const Kind& kind : {Kind{QRY_COMBINE_UNION, "union"}, Kind{QRY_COMBINE_INTERSECTION, "intersection"},
                             Kind{QRY_COMBINE_DIFFERENCE, "difference"}}) {
      std::vector<double> times;
      for (int i = 0; i <= repeats_; ++i) {  // the first makes memory
        uint64_t changed = 0;
        const double ms = ms_of([&] {
          require(qry_world_combine(ours.get(), 0, theirs.get(), kind.mode, nullptr, &changed), "qry_world_combine");
        });
        if (changed == 0) give_up(std::string("algebra: a ") + kind.name + " changed nothing");
        if (i > 0) times.push_back(ms);
        ours.undo();
        ours.expect_voxels(before.voxel_count, kind.name);
      }
      add(std::string("algebra, ") + kind.name, median(times), "ms");
    }
    std::vector<double> compared, summed;
    for (int i = 0; i <= repeats_; ++i) {  // the first makes memory
      qry_comparison found = QRY_COMPARISON_INIT;
      qry_world_sums sums = QRY_WORLD_SUMS_INIT;
      compared.push_back(
          ms_of([&] { require(qry_world_compare(ours.get(), theirs.get(), 0, &found), "qry_world_compare"); }));
      summed.push_back(ms_of([&] { require(qry_world_get_sums(ours.get(), &sums), "qry_world_get_sums"); }));
      if (found.removed.voxel_count + found.recoloured.voxel_count + found.alike_count != before.voxel_count)
        give_up("algebra: a comparison loses voxels");
      if (sums.voxel_count != before.voxel_count) give_up("algebra: sums are not of all voxels");
    }
    add("algebra, compared", median({compared.begin() + 1, compared.end()}), "ms");
    add("algebra, summed up", median({summed.begin() + 1, summed.end()}), "ms");
    parts();
  }

  // Of nine hollow balls side by side, of 10^7 voxels together, and 500 crumbs in each: connected parts with their
  // sizes, boxes and materials, and the world without the crumbs.
  void parts() {
    const int radius = small_ ? 20 : 103, wall = small_ ? 3 : 9, apart = 2 * radius + 10, crumbs = small_ ? 20 : 500;
    const World world(context_, home_);
    std::vector<int32_t> xyz;
    std::vector<uint8_t> materials;
    for (int ball = 0; ball < 9; ++ball) {
      const int x = (ball % 3 - 1) * apart, y = (ball / 3 - 1) * apart;
      for (const int r : {radius, radius - wall}) {
        qry_edit edit = sphere(x, y, 0, r, uint32_t(7 + ball % 2));
        if (r != radius) edit.mode = QRY_MODE_REMOVE;
        world.edit(edit);
      }
      const int side = radius / 2;  // of a cube within the hollow, with a crumb at every other place of some
      for (int i = 0; i < crumbs; ++i) {
        const int at = i * 2 * 31;
        xyz.insert(xyz.end(), {x + at % side / 2 * 2, y + at / side % side / 2 * 2, at / side / side % side / 2 * 2});
        materials.push_back(9);
      }
    }
    require(qry_world_set_voxels(world.get(), 0, xyz.data(), materials.data(), materials.size(), nullptr),
            "qry_world_set_voxels");
    qry_world_state before = QRY_WORLD_STATE_INIT;
    require(qry_world_get_state(world.get(), &before), "qry_world_get_state");
    add("algebra, voxels of parts", double(before.voxel_count) / 1e6, "million");
    for (const uint32_t neighbours : {6u, 26u}) {
      std::vector<qry_part> found(size_t(1) << 16);
      std::vector<double> times;
      for (int i = 0; i <= repeats_; ++i) {  // the first makes memory
        uint64_t count = found.size(), voxels = 0;
        const double ms = ms_of([&] {
          require(qry_world_find_parts(world.get(), neighbours, nullptr, found.data(), &count), "qry_world_find_parts");
        });
        for (uint64_t part = 0; part < count; ++part) voxels += found[part].voxel_count;
        if (count < 10 || voxels != before.voxel_count) give_up("algebra: parts do not have all voxels");
        if (i > 0) times.push_back(ms);
        if (i == 0) add("algebra, parts through " + std::to_string(neighbours), double(count), "parts");
      }
      add("algebra, connected parts of 10^7 voxels through " + std::to_string(neighbours), median(times), "ms");
    }
    std::vector<double> times;
    for (int i = 0; i <= repeats_; ++i) {
      uint64_t changed = 0;
      const double ms = ms_of(
          [&] { require(qry_world_keep_parts(world.get(), 0, 6, 9, 0, nullptr, &changed), "qry_world_keep_parts"); });
      if (changed == 0) give_up("algebra: no part was removed");
      if (i > 0) times.push_back(ms);
      world.undo();
      world.expect_voxels(before.voxel_count, "keep parts");
    }
    add("algebra, the nine largest of these parts kept", median(times), "ms");
  }

  // A scene of 160 turned and overlapping balls, opened as one volume: what flattening takes at its home, and on the
  // host. The two worlds have the same voxels.
  void flatten() {
    const TemporaryFolder folder;
    const std::string path = (folder.path() / "turned.vox").string();
    const quarry::bench::TurnedScene scene = quarry::bench::turned_scene(small_);
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(scene.vox.data()), std::streamsize(scene.vox.size()));
    file.close();
    add("flatten, voxels of " + std::to_string(scene.instances) + " instances", double(scene.placed) / 1e6, "million");
    const std::string row = "flatten to " + std::to_string(scene.voxels) + " voxels";
    std::vector<double> times, rooms, host_times, opened;
    for (int i = 0; i <= repeats_; ++i) {  // the first loads kernels
      const auto flattening_of = [](const World& world) {
        qry_flatten_state flattening = QRY_FLATTEN_STATE_INIT;
        qry_home_state home = QRY_HOME_STATE_INIT;
        home.next = &flattening;
        require(qry_world_get_home(world.get(), &home), "qry_world_get_home");
        if (!flattening.flattened) give_up("flatten: the world was not flattened");
        return flattening;
      };
      const auto begin = std::chrono::steady_clock::now();
      const World world(context_, home_, path, QRY_OPEN_FLATTEN);
      const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
      world.expect_voxels(scene.voxels, row);
      if (home_ != QRY_HOME_HOST) {
        const World host(context_, QRY_HOME_HOST, path, QRY_OPEN_FLATTEN);
        expect_same(world, host, row, i == 0);
        if (i > 0) host_times.push_back(flattening_of(host).ms);
      }
      if (i == 0) continue;
      times.push_back(flattening_of(world).ms);
      rooms.push_back(flattening_of(world).room_ms);
      opened.push_back(ms);
    }
    add(row, median(times), "ms");
    if (home_ != QRY_HOME_HOST) {
      add(row + ", memory for it", median(rooms), "ms");
      add(row + ", by the host", median(host_times), "ms");
    }
    add(row + ", with reading the file", median(opened), "ms");
  }

  // Two worlds: their counts, and, if they are read, all of their voxels.
  static void expect_same(const World& one, const World& other, const std::string& row, bool read) {
    const qry_world_state state = one.state(), expected = other.state();
    if (state.voxel_count != expected.voxel_count || state.brick_count != expected.brick_count ||
        !std::equal(state.min, state.min + 3, expected.min) || !std::equal(state.max, state.max + 3, expected.max))
      give_up(row + ": the two worlds have not the same voxels, bricks and bounds");
    constexpr int32_t kPlanes = 32;
    for (int32_t z = state.min[2]; read && z <= state.max[2]; z += kPlanes) {
      const int32_t min[3] = {state.min[0], state.min[1], z},
                    max[3] = {state.max[0], state.max[1], std::min(z + kPlanes - 1, state.max[2])};
      size_t size = 1;
      for (int axis = 0; axis < 3; ++axis) size *= size_t(max[axis] - min[axis]) + 1;
      std::vector<uint8_t> voxels(size), its(size);
      require(qry_world_read_region(one.get(), min, max, voxels.data(), size), "qry_world_read_region");
      require(qry_world_read_region(other.get(), min, max, its.data(), size), "qry_world_read_region");
      if (voxels != its) give_up(row + ": the two worlds differ from z " + std::to_string(z) + " on");
    }
  }

  // Rays from all around at a ball with a rough surface, as a sensor or a listener casts them; most hit.
  void rays(qry_context* context, uint64_t count) {
    const World world(context, home_);
    world.edit(sphere(0, 0, 0, 100, 9));
    for (int i = 0; i < 400; ++i) {
      const auto at = [&](int factor) { return int32_t((i * factor) % 211) - 105; };
      qry_edit bump = sphere(at(37), at(53), at(89), 7, uint32_t(1 + i % 200));
      world.edit(bump);
    }
    std::vector<qry_ray> list(count);
    uint64_t state = 7;
    const auto random = [&] {
      state = state * 6364136223846793005u + 1442695040888963407u;
      return float(double(state >> 40) / double(1 << 24)) * 2 - 1;
    };
    for (qry_ray& ray : list)
      for (int axis = 0; axis < 3; ++axis) {
        ray.origin[axis] = 250 * random();
        ray.direction[axis] = 60 * random() - ray.origin[axis];
      }
    std::vector<qry_hit> hits(count);
    std::vector<double> times;
    for (int i = 0; i <= repeats_; ++i) {  // the first makes pipelines and memory
      const double ms =
          ms_of([&] { require(qry_world_trace(world.get(), list.data(), count, hits.data()), "qry_world_trace"); });
      if (i > 0) times.push_back(ms);
    }
    uint64_t hit = 0;
    for (const qry_hit& one : hits) hit += one.t >= 0;
    if (hit < count / 2) give_up("rays: only " + std::to_string(hit) + " of " + std::to_string(count) + " hit");
    add("rays in one list", double(count) / median(times) / 1e3, "million rays a second");
    if (home_ != QRY_HOME_DEVICE) return;
    const CudaArray<qry_ray> its_rays(list);
    const CudaArray<qry_hit> its_hits(count);
    if (!its_rays.get() || !its_hits.get()) give_up("rays: no device memory");
    times.clear();
    constexpr int kCalls = 16;  // that do not wait for each other
    for (int i = 0; i <= repeats_; ++i) {
      const double ms = ms_of([&] {
        for (int call = 0; call < kCalls; ++call)
          require(qry_world_cuda_trace(world.get(), its_rays.get(), count, its_hits.get(), nullptr),
                  "qry_world_cuda_trace");
        quarry::bench::cuda_wait();
      });
      if (i > 0) times.push_back(ms / kCalls);
    }
    const std::vector<qry_hit> there = its_hits.values();
    for (uint64_t i = 0; i < count; ++i)
      if (there[i].t != hits[i].t || there[i].material != hits[i].material)
        give_up("rays: hits in the device's memory differ");
    add("rays in one list, device pointers", double(count) / median(times) / 1e3, "million rays a second");
  }

  // Through a world of which the budget holds a part.
  void flight(const std::string& path, uint64_t host_bytes) {
    if (budget_bytes_ == 0 || home_ == QRY_HOME_HOST) give_up("flight: it needs --budget, and a device");
    quarry::bench::fly({path, home_, budget_bytes_, host_bytes, small_},
                       [&](const std::string& row, double value, const char* unit) { add(row, value, unit); });
  }

  // A world file that keeps to a budget, edited in its middle and far away in turn: what it costs that one grid holds a
  // window of it. Of a copy.
  void window(qry_context* context, const std::string& path) {
    if (budget_bytes_ == 0) give_up("window: it needs --budget");
    const std::string copy = path + ".window.quarry";
    std::filesystem::copy_file(path, copy, std::filesystem::copy_options::overwrite_existing);
    qry_device_budget_info budget = QRY_DEVICE_BUDGET_INFO_INIT;
    budget.bytes = budget_bytes_;
    qry_world_home_info home_info = QRY_WORLD_HOME_INFO_INIT;
    home_info.home = home_;
    home_info.next = &budget;
    qry_open_info info = QRY_OPEN_INFO_INIT;
    info.path = copy.c_str();
    info.next = &home_info;
    qry_world* world = nullptr;
    add("window: opened", ms_of([&] { require(qry_world_open(context, &info, &world), "qry_world_open"); }), "ms");
    qry_world_state state = QRY_WORLD_STATE_INIT;
    require(qry_world_get_state(world, &state), "qry_world_get_state");
    const uint64_t before = state.voxel_count;
    std::array<int32_t, 3> middle{};
    for (size_t axis = 0; axis < 3; ++axis) middle[axis] = int32_t((int64_t(state.min[axis]) + state.max[axis]) / 2);
    std::vector<double> here, there, back, stays;
    uint64_t more = 0;
    const auto edit = [&](int32_t x, int32_t y, int32_t z, bool adds) {
      qry_edit ball = sphere(x, y, z, 64, 7);
      if (!adds) ball.mode = QRY_MODE_REMOVE;
      return ms_of([&] {
        uint64_t changed = 0;
        require(qry_world_edit(world, &ball, &changed), "qry_world_edit");
        more += adds ? changed : ~changed + 1;
      });
    };
    constexpr int32_t kFar = 1'000'000;
    for (int i = 0; i < repeats_; ++i) {
      const double first = edit(middle[0] + i * 40, middle[1], middle[2], false);
      (i ? back : here).push_back(first);
      stays.push_back(edit(middle[0] + i * 40, middle[1] + 90, middle[2], false));
      there.push_back(edit(middle[0] + kFar + i * 40, middle[1], middle[2], true));
    }
    add("window: an edit of radius 64, the first", median(here), "ms");
    add("window: the same beside it", median(stays), "ms");
    add("window: a million voxels away, where the window moves to", median(there), "ms");
    if (!back.empty()) add("window: back again", median(back), "ms");
    require(qry_world_get_state(world, &state), "qry_world_get_state");
    if (state.voxel_count != before + more) give_up("window: the world has another number of voxels");
    qry_world_destroy(&world);
    std::filesystem::remove(copy);
  }

  // A world file, opened and pictured, each time in a context of its own; then grown and eroded by a voxel. Memory is
  // what the process has at its peak and afterwards beyond what it had before; each file is a run of its own.
  // `resolution`: of a mesh.
  void open(const std::string& path, int32_t resolution) {
    std::vector<double> opened, pictured, grown, eroded;
    for (int i = 0; i < repeats_; ++i) {
      const uint64_t before = resident_bytes();
      qry_context* context = nullptr;
      require(qry_context_create(QRY_ABI_VERSION, nullptr, &context), "qry_context_create");
      {
        const World first(context, home_);  // makes the devices
        qry_world_home_info home_info = QRY_WORLD_HOME_INFO_INIT;
        home_info.home = home_;
        qry_open_info info = QRY_OPEN_INFO_INIT;
        info.next = &home_info;
        info.path = path.c_str();
        info.resolution = resolution;
        qry_world* world = nullptr;
        const double ms = ms_of([&] { require(qry_world_open(context, &info, &world), "qry_world_open"); });
        opened.push_back(ms);
        if (i == 0) {
          add("open, host's memory at its peak", double(peak_bytes()) / 1e6, "MB");
          add("open, host's memory more than before", (double(resident_bytes()) - double(before)) / 1e6, "MB");
        }
        pictured.push_back(ms + ms_of([&] {
                             qry_render_info picture = QRY_RENDER_INFO_INIT;
                             picture.width = small_ ? 192 : 1920, picture.height = small_ ? 108 : 1080;
                             qry_world_state state = QRY_WORLD_STATE_INIT;
                             require(qry_world_get_state(world, &state), "qry_world_get_state");
                             for (int axis = 0; axis < 3; ++axis) {
                               picture.camera.target[axis] = (state.min[axis] + state.max[axis]) / 2.0;
                               picture.camera.position[axis] =
                                   state.max[axis] + 0.7 * (double(state.max[axis]) - state.min[axis]) + 10;
                             }
                             std::vector<uint8_t> pixels(size_t(picture.width) * picture.height * 4);
                             require(qry_world_render(world, &picture, pixels.data(), pixels.size(), 0),
                                     "qry_world_render");
                           }));
        qry_world_state state = QRY_WORLD_STATE_INIT;
        require(qry_world_get_state(world, &state), "qry_world_get_state");
        if (i == 0) {
          add("open, voxels", double(state.voxel_count) / 1e6, "million");
          if (home_ != QRY_HOME_HOST) {
            qry_home_state there = QRY_HOME_STATE_INIT;
            require(qry_world_get_home(world, &there), "qry_world_get_home");
            add("open, device's memory", double(there.device_bytes) / 1e6, "MB");
          }
        }
        const auto morph = [&](auto call, std::vector<double>& times) {
          for (int round = 0; round < 8; ++round) {  // the first make memory: also for what the one before has undone
            uint64_t changed = 0;
            const double took = ms_of([&] { require(call(world, 0, 26, 1, nullptr, &changed), "grow or erode"); });
            if (round > 2) times.push_back(took);
            require(qry_world_undo(world, nullptr), "qry_world_undo");
          }
        };
        morph(qry_world_dilate, grown);
        morph(qry_world_erode, eroded);
        qry_world_destroy(&world);
      }
      qry_context_destroy(&context);
    }
    add("grow by 26 neighbours", median(grown), "ms");
    add("erode by 26 neighbours", median(eroded), "ms");
    add("open", median(opened), "ms");
    add("open and the first picture", median(pictured), "ms");
  }

  Json take() { return {{"rows", std::move(rows_)}, {"memory", std::move(memory_)}}; }

 private:
  void measure_list(const std::string& name, List& list) {
    for (const bool shuffled : {false, true}) {
      if (shuffled) list.shuffle();
      const std::string row = name + (shuffled ? ", shuffled" : ", in scan order");
      std::vector<double> times;
      for (int i = 0; i < repeats_; ++i) {
        const World world(context_, home_);
        times.push_back(ms_of([&] {
          require(qry_world_set_voxels(world.get(), 0, list.xyz.data(), list.materials.data(), list.materials.size(),
                                       nullptr),
                  "qry_world_set_voxels");
        }));
        world.expect_voxels(list.materials.size(), row);
      }
      add(row, double(list.materials.size()) / median(times) / 1e3, "million voxels a second");
    }
  }
  void add(const std::string& row, double value, const char* unit) {
    std::fprintf(stderr, "%-40s %12.3f %s\n", row.c_str(), value, unit);
    rows_.push_back({{"row", row}, {"value", value}, {"unit", unit}});
  }
  void note_memory(const std::string& row, const World& world) {
    if (home_ != QRY_HOME_HOST) {
      memory_[row] = {{"device", world.home().device_bytes}, {"host, resident", resident_bytes()}};
      return;
    }
    qry_memory_state memory = QRY_MEMORY_STATE_INIT;
    require(qry_world_get_memory(world.get(), &memory), "qry_world_get_memory");
    memory_[row] = {{"grid", memory.grid_bytes},
                    {"bricks", memory.mask_bytes + memory.material_bytes},
                    {"pyramid", memory.pyramid_bytes},
                    {"scene", memory.scene_bytes},
                    {"history", memory.history_bytes}};
  }

  qry_context* context_;
  int repeats_;
  bool small_;
  uint32_t home_;
  uint64_t budget_bytes_;
  Json rows_ = Json::array(), memory_ = Json::object();
};

// A size as `quarry bench` takes it, which has checked it.
uint64_t bytes_of(const char* text) {
  char* end = nullptr;
  const double number = std::strtod(text, &end);
  const int letter = std::toupper(static_cast<unsigned char>(*end));
  const int shift = letter == 'K' ? 10 : letter == 'M' ? 20 : letter == 'G' ? 30 : 0;
  return uint64_t(number * double(uint64_t(1) << shift));
}

int run(int count, char** values) {
  std::string replays, session = "small";
  int repeats = 5;  // checked by `quarry bench`, as all options are
  uint64_t ray_count = 0;
  bool as_json = false, small = false, pictures = false;
  std::string only, file;
  uint32_t home = QRY_HOME_AUTOMATIC;
  uint64_t budget_bytes = 0, host_bytes = 0;
  int32_t resolution = 256;
  for (int i = 1; i < count; ++i) {
    const std::string word = values[i];
    if (word == "--json") as_json = true;
    else if (word == "--small") small = true;
    else if (word == "--replays" && i + 1 < count) replays = values[++i];
    else if (word == "--session" && i + 1 < count) session = values[++i];
    else if (word == "--rays" && i + 1 < count) ray_count = std::strtoull(values[++i], nullptr, 10);
    else if (word == "--pictures") pictures = true;
    else if (word == "--open" && i + 1 < count) file = values[++i];
    else if (word == "--resolution" && i + 1 < count) resolution = std::atoi(values[++i]);
    else if (word == "--budget" && i + 1 < count) budget_bytes = bytes_of(values[++i]);
    else if (word == "--host-memory" && i + 1 < count) host_bytes = bytes_of(values[++i]);
    else if (word == "--only" && i + 1 < count) only = values[++i];
    else if (word == "--home" && i + 1 < count) {
      const std::string name = values[++i];
      home = name == "device"     ? QRY_HOME_DEVICE
             : name == "emulated" ? QRY_HOME_EMULATED
             : name == "host"     ? QRY_HOME_HOST
                                  : QRY_HOME_AUTOMATIC;
    } else if (word == "--repeats" && i + 1 < count) repeats = std::max(1, std::atoi(values[++i]));
    else if (word != "world") give_up("no such option: " + word + "; see `quarry bench --help`");
  }
  qry_context* context = nullptr;
  require(qry_context_create(QRY_ABI_VERSION, nullptr, &context), "qry_context_create");
  home = World(context, home).home().home;  // the one that was chosen
  Rows rows(context, repeats, small, home, budget_bytes);
  if (!file.empty()) {
    if (only == "strokes") rows.strokes(file);
    else if (only == "flight") rows.flight(file, host_bytes);
    else if (only == "window") rows.window(context, file);
    else rows.open(file, resolution);
  } else if (replays.empty()) {
    std::fprintf(stderr, "without --replays FOLDER the rows of recorded sessions are left out\n");
  } else {
    rows.session(replays, session, false, only == "attached");
    rows.session(replays, session, true, only == "attached");
  }
  if (session == "small" && file.empty()) {  // larger ones are a run of their own
    const auto wanted = [&](const char* group) { return only.empty() || only == group; };
    if (wanted("lists")) rows.lists();
    if (wanted("spheres")) rows.spheres();
    if (wanted("spheres") && home != QRY_HOME_HOST) rows.warm_spheres();
    if (wanted("strokes")) rows.strokes({});
    if (wanted("box") && !small) rows.box();
    if (wanted("trim")) rows.trim();
    if (wanted("algebra")) rows.algebra();
    if (wanted("flatten")) rows.flatten();
  }
  if (ray_count) rows.rays(context, ray_count);
  if (pictures) rows.frames();
  Json result = rows.take();
  result["bench"] = "world";
  result["repeats"] = repeats;
  result["home"] = home == QRY_HOME_DEVICE ? "device" : home == QRY_HOME_EMULATED ? "emulated" : "host";
  result["peak_bytes"] = peak_bytes();
  if (as_json) std::printf("%s\n", result.dump(2).c_str());
  qry_context_destroy(&context);
  return 0;
}

}  // namespace

int main(int count, char** values) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a run of minutes shows its rows as they come
  try {
    return run(count, values);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "quarry bench world: %s\n", e.what());
    return 1;
  }
}
