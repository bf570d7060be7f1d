// SPDX-License-Identifier: Apache-2.0
// info_test.cpp - `quarry info` of world files of several volumes, which it never has in memory: the same answers as of
// the whole scene in memory, as --parts makes it say them.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <random>

#include "tests/app/program_output.hpp"
#include "tests/app/sanitized.hpp"
#include "tests/file_bytes.hpp"
#include "voxel/io/quarry/store.hpp"

namespace info_test {

using namespace quarry;
using namespace quarry::test;
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

using Random = std::mt19937;
int32_t number(Random& random, int32_t low, int32_t high) { return low + int32_t(random() % uint32_t(high - low + 1)); }

Rotation turned(Random& random) {
  Rotation rotation;
  std::array<uint8_t, 3> axis{0, 1, 2};
  std::shuffle(axis.begin(), axis.end(), random);
  rotation.axis = axis;
  for (auto& sign : rotation.sign) sign = random() & 1 ? int8_t(1) : int8_t(-1);
  return rotation;
}

// Volumes with scattered voxels, half-full bricks and full ones, shown turned, moved, on whole bricks, over each other,
// hidden, or not at all.
Scene crowd(uint32_t seed) {
  Random random(seed);
  Scene scene;
  scene.layers.push_back({"hidden", true});
  scene.volumes.resize(1 + seed % 6);
  for (Volume& volume : scene.volumes) {
    for (int i = 0; i < 400; ++i)
      volume.bricks.set({number(random, -60, 90), number(random, 0, 50), number(random, -40, 70)},
                        uint8_t(number(random, 1, 255)));
    for (int i = 0; i < 60; ++i)
      volume.bricks.put({number(random, -9, 12), number(random, 0, 5), number(random, -9, 12)},
                        full_brick(uint8_t(number(random, 1, 3))));
  }
  const int instances = number(random, 1, 12);
  for (int i = 0; i < instances; ++i) {
    Instance& its = scene.instances.emplace_back();
    its.volume = uint32_t(random() % scene.volumes.size());
    its.offset = {number(random, -90, 90), number(random, -90, 90), number(random, -90, 90)};
    if (random() % 2) its.offset = {its.offset.x & ~7, its.offset.y & ~7, its.offset.z & ~7};
    if (random() % 3 == 0) its.rotation = turned(random);
    if (seed % 4 == 0) its.hidden = i > 0 && random() % 4 == 0;
    if (seed % 8 == 0 && i > 0 && random() % 5 == 0) its.layer = 0;
    if (seed % 9 == 5 && i == 2) its.offset.x = 9000;  // where no grid has room
  }
  scene.overlap = seed & 1 ? OverlapRule::last_instance_wins : OverlapRule::first_instance_wins;
  return scene;
}

// What the program says of the file when it has all of it in memory. By one thread: several leave some places between
// the bricks that they make.
json in_memory(const fs::path& file) {
  json all = json::parse(run_quarry({"info", "--json", "--parts", "26", file.string()}, {{"QUARRY_THREADS", "1"}}).out);
  REQUIRE(all.contains("parts"));
  all.erase("parts");
  return all;
}

// The largest resident size of `quarry info`.
uint64_t peak_of(std::vector<std::string> words) {
  const pid_t child = fork();
  if (child == 0) {
    std::vector<char*> argv;
    std::string program = quarry_program().string();
    argv.push_back(program.data());
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    if (!std::freopen("/dev/null", "w", stdout)) _exit(126);
    execv(program.c_str(), argv.data());
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  return uint64_t(usage.ru_maxrss) * 1024;
}

}  // namespace

TEST_CASE("info: a world file of several volumes is described as the same world in memory is") {
  const fs::path dir = scratch_dir("info-several");
  for (uint32_t seed = 0; seed < (kSanitized ? 12u : 36u); ++seed) {
    CAPTURE(seed);
    const fs::path file = dir / (std::to_string(seed) + ".quarry");
    REQUIRE(io::Store::save(crowd(seed), file));
    const json expected = in_memory(file);
    const json found = info(file);
    INFO(expected.dump(1) << "\nis not\n" << found.dump(1));
    REQUIRE(found == expected);
  }
}

TEST_CASE("info: memory does not grow with what many instances show") {
  const fs::path dir = scratch_dir("info-peak");
  Random random(4);
  Scene scene;
  scene.volumes.resize(2);
  for (int32_t x = 0; x < 160; ++x)
    for (int32_t z = 0; z < 160; ++z)
      for (Volume& volume : scene.volumes) {
        Brick brick;
        for (int i = 0; i < 3; ++i) brick.set(uint32_t(random() % 512), uint8_t(number(random, 1, 9)));
        volume.bricks.put({x, int32_t(random() % 4), z}, brick);
      }
  const auto place = [&](int32_t count) {
    scene.instances.clear();
    for (int32_t i = 0; i < count; ++i) {
      Instance& its = scene.instances.emplace_back();
      its.volume = uint32_t(i & 1);
      its.offset = {-700 - i % 3, i * 61 - 2000, -700 + i % 5};
    }
  };
  place(6);
  REQUIRE(io::Store::save(scene, dir / "few.quarry"));
  place(48);
  REQUIRE(io::Store::save(scene, dir / "many.quarry"));
  const json few = info(dir / "few.quarry"), many = info(dir / "many.quarry");
  CHECK(many["voxels"] > 6 * few["voxels"].get<uint64_t>());
  CHECK(many["bricks"] > 1000000);
  if (kSanitized) return;
  const uint64_t of_few = peak_of({"info", (dir / "few.quarry").string()});
  const uint64_t of_many = peak_of({"info", (dir / "many.quarry").string()});
  INFO(of_few << " and " << of_many << " bytes");
  // The world's keys, 64 bytes each at the most; its bricks alone would be 576 each.
  CHECK(of_many < of_few + 64 * many["bricks"].get<uint64_t>());
  CHECK(of_many < uint64_t(400) << 20);
}

}  // namespace info_test
