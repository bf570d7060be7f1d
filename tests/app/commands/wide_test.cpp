// SPDX-License-Identifier: Apache-2.0
// wide_test.cpp - scenes that are larger than the world that one grid holds, or that lie elsewhere: converted,
// described, compared and drawn.
#include <catch2/catch.hpp>
#include <fstream>
#include <random>
#include <set>

#include "engine/pictures/png_file.hpp"
#include "tests/app/program_output.hpp"
#include "tests/app/sanitized.hpp"
#include "tests/file_bytes.hpp"
#include "voxel/generate/scenes.hpp"
#include "voxel/io/quarry/store.hpp"

namespace wide_test {

using namespace quarry;
using namespace quarry::test;
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

std::string done(const std::vector<std::string>& words) {
  const Outcome outcome = run_quarry(words);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome.out;
}

void ball(BrickMap& bricks, Int3 at, int32_t radius, uint8_t material) {
  for (int32_t x = -radius; x <= radius; ++x)
    for (int32_t y = -radius; y <= radius; ++y)
      for (int32_t z = -radius; z <= radius; ++z)
        if (x * x + y * y + z * z <= radius * radius) bricks.set(at + Int3{x, y, z}, material);
}

// Balls that are volumes of their own; flat: a square plate that faces z.
struct Ball {
  Int3 at;
  int32_t radius;
  uint8_t material;
  bool flat = false;
};
std::string balls(const fs::path& file, const std::vector<Ball>& all) {
  Scene scene;
  for (const Ball& its : all) {
    Volume volume;
    if (!its.flat) ball(volume.bricks, {}, its.radius, its.material);
    for (int32_t x = its.flat ? -its.radius : 1; x <= its.radius * its.flat; ++x)
      for (int32_t y = -its.radius; y <= its.radius; ++y) volume.bricks.set({x, y, 0}, its.material);
    Instance& instance = scene.instances.emplace_back();
    instance.volume = uint32_t(scene.volumes.size());
    instance.offset = its.at;
    scene.volumes.push_back(std::move(volume));
  }
  REQUIRE(io::Store::save(scene, file));
  return file.string();
}

}  // namespace

TEST_CASE(
    "wide scenes: points over 60,000 voxels are converted, as a whole and in parts, and nothing is lost on the way") {
  const fs::path dir = scratch_dir("wide-points");
  const std::string points = (dir / "p.xyz").string();
  const char* const little = kSanitized ? "400M" : "48M";  // for work region by region
  std::mt19937 random(5);
  std::set<std::tuple<uint32_t, uint32_t, uint32_t>> cells;
  {
    std::ofstream out(points);
    for (int i = 0; i < 3000; ++i) {
      const auto x = uint32_t(random() % 60000), y = uint32_t(random() % 60000), z = uint32_t(random() % 300);
      cells.emplace(x, y, z);
      out << x << ' ' << y << ' ' << z << " 200 " << (i % 3) * 100 << " 50\n";
    }
  }
  const std::string whole = (dir / "whole.quarry").string();
  done({"convert", points, "-o", whole, "--voxel-size", "1"});
  done({"convert", points, "-o", (dir / "parts.quarry").string(), "--voxel-size", "1", "--memory", little});
  done({"validate", whole});
  const json facts = json::parse(done({"info", "--json", whole}));
  CHECK(facts["voxels"] == cells.size());
  CHECK(facts["grid"].is_null());
  CHECK(facts["world"]["bricks"] <= cells.size());
  CHECK(int(facts["max"][0]) - int(facts["min"][0]) > 59000);
  CHECK(has(done({"info", whole}), "none: it reaches beyond"));
  CHECK(json::parse(done({"info", "--json", (dir / "parts.quarry").string()}))["pos_sum"] == facts["pos_sum"]);
  done({"diff", whole, (dir / "parts.quarry").string()});
  // Through other formats and back, and by steps that look at all of it.
  for (const char* name : {"p.vox", "p.vdb"}) {
    const std::string other = (dir / name).string();
    done({"convert", whole, "-o", other});
    done({"diff", "--shape", whole, other});
  }
  done({"convert", whole, whole, "-o", (dir / "union.quarry").string(), "--union"});
  done({"diff", whole, (dir / "union.quarry").string()});
  done({"convert", whole, "-o", (dir / "grown.quarry").string(), "--grow", "1", "--memory", little});
  done({"convert", (dir / "grown.quarry").string(), "-o", (dir / "back.quarry").string(), "--erode", "1"});
  CHECK(json::parse(done({"diff", "--shape", "--json", whole, (dir / "back.quarry").string()}))["removed"] == 0);
  // A part of it that fits a world has a grid again.
  done({"convert", whole, "-o", (dir / "crop.quarry").string(), "--crop", "-8000,-4000,0,8000,4000,400"});
  CHECK(json::parse(done({"info", "--json", (dir / "crop.quarry").string()}))["grid"]["live"] > 0);
  done({"convert", whole, "-o", (dir / "surface.ply").string(), "--memory", little});
  done({"convert", whole, "-o", (dir / "whole.ply").string()});
  CHECK((file_bytes(dir / "surface.ply") == file_bytes(dir / "whole.ply")));
  const std::string farther = balls(dir / "farther.quarry", {{{0, 0, 0}, 1, 1}, {{2'000'000, 0, 0}, 1, 1}});
  for (const char* memory : {"1G", little}) {
    const Outcome none = run_quarry({"convert", farther, "-o", (dir / "n.glb").string(), "--memory", memory});
    CHECK(none.code == 1);
    CHECK(has(none.err, "a surface is made of those within 1048568"));
    CHECK(!fs::exists(dir / "n.glb"));
  }
  const Outcome refused = run_quarry({"convert", points, "-o", (dir / "n.quarry").string(), "--voxel-size", "0.01"});
  CHECK(refused.code == 1);
  CHECK(has(refused.err, "more than 1048576 along the longest edge"));
}

TEST_CASE("wide scenes: what lies far from the origin has the very picture that it has there") {
  if (!can_render()) return;
  const fs::path dir = scratch_dir("wide-far");
  const std::vector<Ball> here{{{0, 0, 0}, 20, 3}, {{24, 30, -9}, 9, 7}, {{-30, -20, 12}, 12, 12}};
  std::vector<Ball> there = here;
  const Int3 off{640'000, -128'000, 1'280'000};
  for (Ball& ball : there) ball.at = ball.at + off;
  const std::string near = balls(dir / "near.quarry", here), far = balls(dir / "far.quarry", there);
  const auto picture = [&](const std::string& file, Int3 by, std::vector<std::string> more) {
    const std::string out = (dir / (fs::path(file).stem().string() + ".png")).string();
    std::vector<std::string> words{"render", file, "-o", out, "--size", "80x60", "--validation", "--json"};
    const auto triple = [&](Int3 at) {
      return std::to_string(at.x + by.x) + "," + std::to_string(at.y + by.y) + "," + std::to_string(at.z + by.z);
    };
    words.insert(words.end(), {"--camera", triple({90, 40, 70}), "--target", triple({0, 0, 0})});
    words.insert(words.end(), more.begin(), more.end());
    const json said = json::parse(done(words));
    CHECK(said["validation_errors"] == 0);
    CHECK(said["halved"] == 0);
    CHECK(said["pages"].is_null() == (by == Int3{}));
    CHECK(said["voxels"] > 1000);
    return file_bytes(out);
  };
  CHECK((picture(far, off, {}) == picture(near, {}, {})));
  const std::vector<std::string> paths{"--spp", "2", "--bounces", "2"};
  CHECK((picture(far, off, paths) == picture(near, {}, paths)));
  // At home in a device's memory, which host threads stand in for.
  const Outcome emulated =
      run_quarry({"render", far, "-o", (dir / "e.png").string(), "--size", "80x60", "--home", "emulated", "--camera",
                  "640090,-127960,1280070", "--target", "640000,-128000,1280000"});
  INFO(emulated.err);
  if (emulated.code != 0) {  // a GPU does not read host threads' memory
    CHECK(has(emulated.err, "only where shaders read that memory"));
    return;
  }
  (void)picture(near, {}, {});
  CHECK((file_bytes(dir / "e.png") == file_bytes(dir / "near.png")));
}

TEST_CASE("wide scenes: near the eye voxels are drawn as they are, and what is behind them is the halved rest") {
  if (!can_render()) return;
  const fs::path dir = scratch_dir("wide-two");
  // A ball before the eye; a plate far behind it, which it hides in part; and one voxel behind the eye that keeps the
  // scene as large where one of the two is missing.
  const Ball front{{0, 0, 0}, 10, 3}, behind{{0, 10, -9'600}, 1'300, 5, true}, mark{{0, 0, 9'000}, 0, 9};
  const std::string both = balls(dir / "both.quarry", {front, behind, mark}),
                    only_far = balls(dir / "far.quarry", {mark, behind}),
                    only_near = balls(dir / "near.quarry", {front});
  const auto picture = [&](const std::string& file, const char* background) {
    const std::string out = (dir / (fs::path(file).stem().string() + ".png")).string();
    const json said =
        json::parse(done({"render", file, "-o", out, "--size", "160x120", "--background", background, "--camera",
                          "3,2,100", "--target", "3,2,0", "--fov", "28", "--json", "--validation", "--memory", "1G"}));
    CHECK(said["validation_errors"] == 0);
    CHECK(said["halved"] == (file == only_near ? 0 : 1));
    return *engine::read_png(out);
  };
  const engine::Picture all = picture(both, "sky"), far = picture(only_far, "sky"), near = picture(only_near, "none"),
                        empty = picture(balls(dir / "none.quarry", {mark, {{0, 0, -9'600}, 0, 9}}), "sky");
  size_t of_near = 0, of_far = 0, at_edges = 0;
  for (size_t i = 0; i < all.rgba.size(); i += 4) {
    const auto same = [&](const engine::Picture& other) {
      return std::equal(all.rgba.begin() + std::ptrdiff_t(i), all.rgba.begin() + std::ptrdiff_t(i) + 3,
                        other.rgba.begin() + std::ptrdiff_t(i));
    };
    const uint8_t alpha = near.rgba[i + 3];
    if (alpha == 255) {
      ++of_near;
      REQUIRE(same(near));
    } else if (alpha == 0) {
      // So the halved world has nothing of the near ball, whose cubes would look out behind it.
      REQUIRE(same(far));
      of_far += !same(empty);
    } else {
      ++at_edges;
    }
  }
  CHECK(of_near > 1000);
  CHECK(of_far > 200);
  CHECK(at_edges > 50);
  // The far world's file is gone with the program.
  for (const std::string& name : names_in(dir)) CHECK((name.ends_with(".quarry") || name.ends_with(".png")));

  // What the two cannot be is said.
  const Outcome grid = run_quarry({"render", both, "-o", (dir / "g.png").string(), "--view", "load"});
  CHECK(grid.code == 1);
  CHECK(has(grid.err, "larger than one grid"));
  // The frames of a turn have worlds of their own where the eye is.
  done({"render", both, "-o", (dir / "turn-{part}.png").string(), "--size", "40x30", "--turntable", "3", "--samples",
        "1"});
  CHECK(fs::exists(dir / "turn-3.png"));
}

}  // namespace wide_test
