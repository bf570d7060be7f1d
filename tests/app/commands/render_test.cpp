// SPDX-License-Identifier: Apache-2.0
// render_test.cpp - `quarry render` as a user starts it: batches, turntables, path tracing, EXR, and the files left
// when something goes wrong.
#include <signal.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <fstream>

#include "engine/pictures/png_file.hpp"
#include "tests/app/program_output.hpp"
#include "tests/file_bytes.hpp"
#include "voxel/io/formats.hpp"

namespace render_test {

using namespace quarry;
using namespace quarry::test;
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

Outcome render(std::vector<std::string> words) {
  words.insert(words.begin(), "render");
  words.insert(words.end(), {"--size", "64x40"});
  return run_quarry(words);
}

}  // namespace

TEST_CASE("render: what cannot be meant is refused with 2 before anything is made") {
  const fs::path dir = scratch_dir("render-usage");
  const std::string out = (dir / "out").string();
  const struct {
    std::vector<std::string> words;
    const char* says;
  } rows[] = {
      {{"a.vox", "b.vox", "-o", "p.png"}, "name a directory, or a template"},
      {{"a.vox", "-o", "p.png", "--turntable", "3"}, "3 would be made"},
      {{"a.vox", "b/a.obj", "-o", out}, "would both become"},
      {{"a.vox", "-o", out + "/{stem}.png", "--turntable", "2"}, "would both become"},
      {{"a.vox", "-o", out + "/{stam}.png"}, "stem"},
      {{"a.vox", "-o", "p.png", "--spp", "4", "--view", "normals"}, "leave --spp out"},
      {{"a.vox", "-o", "p.png", "--bounces", "4"}, "--bounces needs --spp"},
      {{"a.vox", "-o", "p.exr"}, "say how many paths with --spp"},
      {{"a.vox", "-o", "p.png", "--sun", "10"}, "--sun '10' is not AZIMUTH,ELEVATION"},
      {{"a.vox", "-o", "p.png", "--sun", "10,91"}, "elevation from -90 to 90"},
      {{"a.vox", "-o", "p.png", "--background", "#12345"}, "is none of: sky, none, #RRGGBB"},
      {{"a.vox", "-o", "p.png", "--sky", "blue"}, "--sky 'blue' is not #RRGGBB"},
      {{"a.vox", "-o", "p.png", "--spp", "0"}, "--spp"},
      {{"a.vox", "-o", "p.png", "--outline", "1,2,3,4,5"}, "--outline '1,2,3,4,5' is not X,Y,Z,X,Y,Z"},
      {{"a.vox", "-o", "p.png", "--outline", "1,2,3,4,5,6.5"}, "whole numbers"},
      {{"a.vox", "-o", "p.png", "--outline", "1,2,3,4,5,6", "--spp", "2"}, "leave --spp out"},
      {{"a.vox", "-o", out + "/", "--to", "jpg"}, "--to 'jpg' is none of"},
  };
  for (const auto& row : rows) {
    const Outcome outcome = render(row.words);
    INFO(outcome.err);
    CHECK(outcome.code == 2);
    CHECK(has(outcome.err, row.says));
  }
  CHECK(names_in(dir).empty());
}

TEST_CASE("render: several inputs become a picture each, and one that fails costs only its own") {
  if (!can_render()) return;
  const fs::path dir = scratch_dir("render-batch"), out = dir / "out";
  const std::string one = small_world(dir / "one.quarry").string(), two = small_world(dir / "two.vox").string();
  std::ofstream(dir / "broken.vox") << "no voxels";
  const Outcome outcome =
      render({one, (dir / "broken.vox").string(), two, "-o", out.string(), "--samples", "1", "--json"});
  INFO(outcome.err);
  CHECK(outcome.code == 3);
  CHECK(has(outcome.err, "1 of 3 inputs failed"));
  CHECK(names_in(out) == std::vector<std::string>{"one.png", "two.png"});
  const json rows = json::parse(outcome.out);
  REQUIRE(rows.size() == 3);
  CHECK((rows[0]["ok"] == true && rows[1]["ok"] == false && rows[2]["ok"] == true));
  // The same voxels, with the palette carried through another file format, give the same scene.
  CHECK(engine::read_png(out / "one.png")->width == 64);

  // Renders a whole directory through a template.
  const Outcome again = render({dir.string(), "-o", (out / "all" / "{index}-{stem}.png").string(), "--samples", "1"});
  CHECK(again.code == 3);
  CHECK(names_in(out / "all") == std::vector<std::string>{"2-one.png", "3-two.png"});
  CHECK(render({(dir / "broken.vox").string(), "-o", (out / "b.png").string()}).code == 1);
}

TEST_CASE("render: a turntable is a frame for each angle: a quarter of it is the view from a quarter further round") {
  if (!can_render()) return;
  const fs::path dir = scratch_dir("render-turn"), out = dir / "turn";
  const std::string world = small_world(dir / "w.quarry").string();
  const Outcome outcome = render({world, "-o", out.string(), "--turntable", "4", "--camera", "80,60,0", "--target",
                                  "0,10,0", "--view", "normals", "--samples", "1"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(names_in(out) == std::vector<std::string>{"w-1.png", "w-2.png", "w-3.png", "w-4.png"});
  const char* eyes[] = {"80,60,0", "0,60,-80", "-80,60,0", "0,60,80"};
  for (int i = 0; i < 4; ++i) {
    REQUIRE(render({world, "-o", (dir / "one.png").string(), "--camera", eyes[i], "--target", "0,10,0", "--view",
                    "normals", "--samples", "1"})
                .code == 0);
    const auto turned = engine::read_png(out / ("w-" + std::to_string(i + 1) + ".png")),
               expected = engine::read_png(dir / "one.png");
    REQUIRE((turned && expected));
    size_t differing = 0;
    for (size_t p = 0; p < expected->rgba.size(); p += 4)
      differing += !std::equal(&expected->rgba[p], &expected->rgba[p] + 4, &turned->rgba[p]);
    INFO(i);
    CHECK(differing < expected->rgba.size() / 4 / 50);  // rounding of the angle moves single pixels at edges
  }
}

TEST_CASE("render: traced paths give the same bytes each time, and other bytes with another seed") {
  if (!can_render()) return;
  const fs::path dir = scratch_dir("render-spp");
  const std::string world = small_world(dir / "w.quarry").string();
  const auto trace = [&](const char* name, std::vector<std::string> more) {
    more.insert(more.begin(), {world, "-o", (dir / name).string(), "--spp", "3", "--validation"});
    const Outcome outcome = render(more);
    INFO(outcome.err);
    CHECK(outcome.code == 0);
    return file_text(dir / name);
  };
  const std::string first = trace("a.png", {});
  CHECK(first.size() > 1000);
  CHECK(trace("b.png", {}) == first);
  CHECK(trace("c.png", {"--seed", "7"}) != first);
  CHECK(trace("d.png", {"--sun", "100,5", "--fog", "100", "--aperture", "2", "--ground", "--background", "none"}) !=
        first);
}

TEST_CASE(
    "render: a transparent background has an alpha of 0, the world one of 255, and the ground's shadow lies between") {
  if (!can_render()) return;
  const fs::path dir = scratch_dir("render-alpha");
  const std::string world = small_world(dir / "w.quarry").string();
  for (const char* spp : {"", "8"}) {
    std::vector<std::string> words{
        world,       "-o", (dir / "p.png").string(), "--background", "none", "--ground", "--elevation", "35",
        "--samples", "1"};
    if (*spp) words.insert(words.end(), {"--spp", spp});
    const Outcome outcome = render(words);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    const auto picture = engine::read_png(dir / "p.png");
    REQUIRE(picture);
    size_t clear = 0, whole = 0, between = 0;
    for (size_t i = 3; i < picture->rgba.size(); i += 4)
      ++(picture->rgba[i] < 8 ? clear : picture->rgba[i] == 255 ? whole : between);
    CHECK(clear > 100);
    CHECK(whole > 400);
    CHECK(between > 20);
  }
}

TEST_CASE("render: an outline is drawn about the box and nowhere else, whichever corners name it") {
  if (!can_render()) return;
  const fs::path dir = scratch_dir("render-outline");
  const std::string world = small_world(dir / "w.quarry").string();
  const auto picture = [&](const char* name, std::vector<std::string> more) {
    more.insert(more.begin(), {world, "-o", (dir / name).string(), "--view", "albedo", "--samples", "1"});
    const Outcome outcome = render(more);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    auto read = engine::read_png(dir / name);
    REQUIRE(read);
    return read->rgba;
  };
  const auto plain = picture("plain.png", {}), boxed = picture("boxed.png", {"--outline", "4,4,4,30,20,30"});
  size_t lines = 0;
  for (size_t i = 0; i < plain.size(); i += 4) {
    if (std::equal(&plain[i], &plain[i] + 4, &boxed[i])) continue;
    ++lines;
    // The line's yellow is laid over the picture.
    CHECK(std::abs(boxed[i + 1] - 220) <= std::abs(plain[i + 1] - 220));
  }
  CHECK(lines > 20);
  CHECK(lines < 64 * 40 / 4);
  CHECK(picture("turned.png", {"--outline", "30,4,30,4,20,4"}) == boxed);
}

TEST_CASE("render: an EXR picture has the light, and with --layers depth, albedo and normals") {
  if (!can_render()) return;
  const fs::path dir = scratch_dir("render-exr");
  const std::string world = small_world(dir / "w.quarry").string(), out = (dir / "p.exr").string();
  const Outcome outcome = render({world, "-o", out, "--spp", "2", "--layers"});
  if (has(outcome.err, "no OpenEXR")) {
    CHECK(outcome.code == 1);
    CHECK_FALSE(fs::exists(out));
    return skip("this build has no OpenEXR");
  }
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const std::string bytes = file_text(out);
  CHECK(bytes.starts_with("\x76\x2f\x31\x01"));
  for (const char* channel : {"albedo.R", "normal.Z", "Z"})
    CHECK(has(bytes.substr(0, 1000), std::string(channel) + '\0'));
  CHECK(names_in(dir) == std::vector<std::string>{"p.exr", "w.quarry"});
}

// Without a CUDA device, whatever the machine has.
Outcome render_without_cuda(std::vector<std::string> words) {
  words.insert(words.begin(), "render");
  words.insert(words.end(), {"--size", "64x40", "--samples", "1"});
  return run_quarry(words, {{"CUDA_VISIBLE_DEVICES", "-1"}});
}

TEST_CASE("render: a picture from a device's memory has the same bytes as one from the host's") {
  if (!can_render()) return;
  const fs::path dir = scratch_dir("render-homes");
  const std::string city = (dir / "city.quarry").string();
  REQUIRE(run_quarry({"generate", "city", "--size", "128", "-o", city}).code == 0);
  const std::vector<std::vector<std::string>> pictures{
      {city, "--turntable", "2", "--ground", "--fog", "200", "--samples", "1"},
      {city, "--spp", "1", "--sun", "200,-20", "--scene-camera", "1"}};  // windows are lit
  bool no_device = false;
  for (const auto& picture : pictures) {
    json host;
    for (const std::string home : {"host", "emulated", "device"}) {
      if (home == "device" && no_device) continue;
      std::vector<std::string> words = picture;
      words.insert(words.end(), {"-o", (dir / home / "p-{part}.png").string(), "--home", home, "--json"});
      const Outcome outcome = render(words);
      INFO(outcome.err);
      if (home == "device" && has(outcome.err, "no home on a device")) {
        skip(outcome.err);
        no_device = true;
        continue;
      }
      REQUIRE(outcome.code == 0);
      const json all = json::parse(outcome.out), said = all.is_array() ? all[0] : all;
      CHECK(said["home"] == home);
      CHECK(!said["home_reason"].get<std::string>().empty());
      if (home == "host") host = said;
      for (const char* number : {"voxels", "bricks"}) CHECK(said[number] == host[number]);
      REQUIRE(names_in(dir / home) == names_in(dir / "host"));
      for (const std::string& name : names_in(dir / "host"))
        CHECK((file_bytes(dir / home / name) == file_bytes(dir / "host" / name)));
    }
    fs::remove_all(dir / "host");
    fs::remove_all(dir / "emulated");
    fs::remove_all(dir / "device");
  }
}

TEST_CASE("render: a world that does not fit --memory has the same bytes, a turn of it and its light paths too") {
  if (!can_render()) return;
  const fs::path dir = scratch_dir("render-memory");
  const std::string hills = (dir / "hills.quarry").string();
  REQUIRE(run_quarry({"generate", "terrain", "--size", "512", "-o", hills}).code == 0);
  const std::vector<std::vector<std::string>> pictures{{"--turntable", "2", "--samples", "1", "--elevation", "50"},
                                                       {"--spp", "1", "--elevation", "60", "--bounces", "1"}};
  for (const auto& picture : pictures) {
    for (const std::string memory : {"1G", "24M"}) {
      std::vector<std::string> words = picture;
      words.insert(words.begin(), hills);
      words.insert(words.end(),
                   {"-o", (dir / memory / "p-{part}.png").string(), "--memory", memory, "--home", "host", "--json"});
      const Outcome outcome = render(words);
      INFO(outcome.err);
      REQUIRE(outcome.code == 0);
      const json all = json::parse(outcome.out), said = all.is_array() ? all.back() : all;
      CHECK(said["home"] == "host");
      if (memory == "1G") {
        CHECK(said["pages"].is_null());
        continue;
      }
      CHECK(said["pages"]["budget_bytes"] == 24 << 20);
      CHECK(said["pages"]["most_bytes"] <= 24 << 20);
      CHECK(said["pages"]["brought"] > 0);
    }
    REQUIRE(names_in(dir / "24M") == names_in(dir / "1G"));
    for (const std::string& name : names_in(dir / "1G"))
      CHECK((file_bytes(dir / "24M" / name) == file_bytes(dir / "1G" / name)));
    fs::remove_all(dir / "1G");
    fs::remove_all(dir / "24M");
  }
  const Outcome little = render({hills, "-o", (dir / "p.png").string(), "--memory", "2M"});
  CHECK(little.code == 1);
  CHECK(has(little.err, "8 MiB at least"));
  CHECK(!fs::exists(dir / "p.png"));
  const Outcome wrong = render({hills, "-o", (dir / "p.png").string(), "--memory", "much"});
  CHECK(wrong.code == 2);
  CHECK(has(wrong.err, "is no size"));
}

TEST_CASE("render: a device that is asked for takes what is no .quarry too; left to itself, the host does") {
  if (!can_render()) return;
  const fs::path dir = scratch_dir("render-any-home");
  const std::string model = small_world(dir / "m.vox").string();
  const auto draw = [&](const std::string& home) {
    const Outcome outcome = render({model, "-o", (dir / (home + ".png")).string(), "--view", "albedo", "--samples", "1",
                                    "--home", home, "--json"});
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    return json::parse(outcome.out);
  };
  const json own = draw("auto"), asked = draw("emulated");
  CHECK(own["home"] == "host");
  CHECK(asked["home"] == "emulated");
  CHECK(own["voxels"] == asked["voxels"]);
  CHECK((file_bytes(dir / "auto.png") == file_bytes(dir / "emulated.png")));
}

TEST_CASE("render: a scene of turned and overlapping instances has the same bytes wherever it is flattened") {
  if (!can_render()) return;
  const fs::path dir = scratch_dir("render-turned");
  auto scene = io::read_scene(small_world(dir / "one.quarry"));
  REQUIRE(scene);
  scene->volumes.push_back({"block", {}, {}});
  std::vector<BrickPut> block;
  for (int32_t i = 0; i < 27; ++i) block.push_back({{i % 3, i / 3 % 3, i / 9}, SharedBrick::full(uint8_t(40 + i))});
  scene->volumes[1].bricks.put(block);
  std::array<uint8_t, 3> axis{0, 1, 2};
  for (int32_t i = 1; i < 49; ++i) {  // all 48 rotations
    Instance instance = scene->instances[0];
    instance.volume = uint32_t(i % 3 == 0);
    for (uint32_t row = 0; row < 3; ++row) instance.rotation.sign[row] = i >> row & 1 ? int8_t(1) : int8_t(-1);
    instance.rotation.axis = axis;
    if (i % 8 == 0) std::next_permutation(axis.begin(), axis.end());
    instance.offset = {i % 7 * 30 - 90, i % 4 * 8, i / 7 * 25 - 90};
    instance.hidden = i % 11 == 0;
    scene->instances.push_back(instance);
  }
  for (const OverlapRule rule : {OverlapRule::first_instance_wins, OverlapRule::last_instance_wins}) {
    scene->overlap = rule;
    const std::string file = (dir / "turned.quarry").string(), vox = (dir / "turned.vox").string();
    REQUIRE(io::write_scene(*scene, file));
    REQUIRE(io::write_scene(*scene, vox));
    json host;
    for (const std::string& from : {file, vox})
      for (const std::string home : {"host", "emulated", "device", "auto"}) {
        const std::string out = (dir / (home + ".png")).string();
        const Outcome outcome = render({from, "-o", out, "--samples", "1", "--home", home, "--json"});
        INFO(home << ", " << from << ", " << outcome.err);
        if (home == "device" && has(outcome.err, "no home on a device")) {
          skip(outcome.err);
          continue;
        }
        REQUIRE(outcome.code == 0);
        const json said = json::parse(outcome.out);
        if (home == "host") host = said;
        for (const char* number : {"voxels", "bricks"}) CHECK(said[number] == host[number]);
        CHECK((file_bytes(out) == file_bytes(dir / "host.png")));
      }
  }
}

TEST_CASE("render: a device that is asked for and not there is refused, with what to do; otherwise the host says why") {
  if (!can_render()) return;
  const fs::path dir = scratch_dir("render-no-home");
  const std::string world = small_world(dir / "w.quarry").string(), out = (dir / "p.png").string();
  const Outcome refused = render_without_cuda({world, "-o", out, "--home", "device"});
  INFO(refused.err);
  CHECK(refused.code == 1);
  CHECK(has(refused.err, "w.quarry: no home on a device: "));
  CHECK(has(refused.err, "with --home host, it is drawn"));
  CHECK(names_in(dir) == std::vector<std::string>{"w.quarry"});
  const Outcome drawn = render_without_cuda({world, "-o", out});
  INFO(drawn.err);
  CHECK(drawn.code == 0);
  CHECK(has(drawn.out, "  home     host: there is no CUDA device\n"));
  CHECK(render_without_cuda({world, "-o", out, "--home", "attic"}).code == 2);
}

TEST_CASE("render: a damaged file has the same message at every home, and no picture") {
  if (!can_render()) return;
  const fs::path dir = scratch_dir("render-damaged-home");
  const std::string out = (dir / "p.png").string();
  std::vector<uint8_t> bytes = file_bytes(small_world(dir / "whole.quarry"));
  std::fill(bytes.end() - 3000, bytes.end() - 500, uint8_t(0x5A));
  const std::string damaged = write_bytes(dir / "damaged.quarry", bytes);
  for (const std::string& file : {damaged, (dir / "missing.quarry").string()}) {
    const Outcome host = render({file, "-o", out, "--home", "host"}),
                  there = render({file, "-o", out, "--home", "emulated"});
    INFO(host.err);
    CHECK(host.code == 1);
    CHECK(there.code == 1);
    CHECK(there.err == host.err);
    CHECK_FALSE(fs::exists(out));
  }
}

TEST_CASE("render: Ctrl+C ends a long picture with 130 and leaves no file") {
  if (!can_render()) return;
  const fs::path dir = scratch_dir("render-cancel"), out = dir / "out";
  const std::string world = small_world(dir / "w.quarry").string();
  fs::create_directory(out);
  Process process({quarry_program().string(), "render", world, small_world(dir / "v.quarry").string(), "-o",
                   out.string(), "--size", "128x96", "--spp", "1000000"});
  REQUIRE(process.started());
  process.wait_for_output("nothing is printed yet", 2.5);  // by then it is tracing
  process.signal(SIGINT);
  const Outcome outcome = process.finish(60);
  INFO(outcome.err);
  CHECK(outcome.code == 130);
  CHECK(names_in(out).empty());
}

}  // namespace render_test
