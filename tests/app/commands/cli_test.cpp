// SPDX-License-Identifier: Apache-2.0
// cli_test.cpp - the real program, started as by a user: exit codes, messages, files.
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>

#include "engine/pictures/png_file.hpp"
#include "tests/app/program_output.hpp"
#include "tests/file_bytes.hpp"
#include "tests/test_data.hpp"
#include "tests/voxel/io/vox/file_builder.hpp"
#include "voxel/io/formats.hpp"

namespace cli_test {

using namespace quarry;
using namespace quarry::test;
namespace fs = std::filesystem;
using nlohmann::json;

TEST_CASE("quarry: help and version go to standard output and end with 0") {
  for (const char* word : {"--help", "-h", "help", "--version"}) {
    const Outcome outcome = run_quarry({word});
    CHECK(outcome.code == 0);
    CHECK(has(outcome.out, std::string(word) == "--version" ? "quarry 0." : "Usage: quarry COMMAND"));
    CHECK(outcome.err.empty());
  }
  for (const char* command : {"edit", "convert", "render", "info", "generate", "doctor", "bench"}) {
    const Outcome outcome = run_quarry({command, "--help"});
    INFO(command);
    CHECK(outcome.code == 0);
    CHECK(has(outcome.out, "Examples:\n  quarry ") != has(outcome.out, "xvfb-run quarry bench"));
    CHECK(has(outcome.out, std::string("  quarry ") + command));
  }
}

TEST_CASE("quarry: what is not known is refused with the nearest right name and exit code 2") {
  const struct {
    std::vector<std::string> words;
    const char* expected;
  } cases[] = {
      {{}, ""},
      {{"rendr"}, "quarry: there is no command 'rendr'. Did you mean 'render'?"},
      {{"--versoin"}, "quarry: there is no option '--versoin'. Did you mean '--version'?"},
      {{"render", "a.vox", "-o", "a.png", "--sise", "3x3"},
       "quarry render: there is no option '--sise'. Did you mean '--size'?"},
      {{"render", "a.vox", "-o", "a.png", "--view", "normal"}, "Did you mean 'normals'?"},
      {{"render", "a.vox", "-o", "a.png", "--sharing", "zerocopy"}, "Did you mean 'zero-copy'?"},
      {{"render", "a.vox", "-o", "a.png", "--size", "0x4"}, "--size '0x4' is not WIDTHxHEIGHT"},
      {{"render", "a.vox", "-o", "a.png", "--camera", "1,2"}, "--camera '1,2' is not X,Y,Z"},
      {{"render", "a.vox", "-o", "a.jpg"}, "does not end in .png"},
      {{"convert", "a.vox", "-o", "a.quary"}, "quarry"},
      {{"convert", "a.vox", "-o", "d", "--to", "vxo"}, "--to 'vxo' is none of"},
      {{"convert", "a.vox", "b.vox", "-o", "c.quarry"}, "several inputs need -o DIRECTORY and --to FORMAT"},
      {{"convert", "x/a.vox", "y/a.obj", "-o", "d", "--to", "quarry"}, "would both become"},
      {{"convert", "a.obj", "-o", "b.quarry", "--resolution", "many"},
       "'many' is not a whole number from 1 to 1048576"},
      {{"convert", "a.obj", "-o", "b.quarry", "--up", "x"}, "--up 'x' is none of: y, z"},
      {{"convert", "a.raw", "-o", "b.quarry", "--raw-size", "3x4"}, "--raw-size '3x4' is no size"},
      {{"generate", "terain", "-o", "t.quarry"}, "there is no scene 'terain'. Did you mean 'terrain'?"},
      {{"generate", "terrain", "-o", "t.quarry", "--size", "1"}, "--size 1 is outside"},
      {{"bench", "hashgird"}, "there is no benchmark 'hashgird'. Did you mean 'hashgrid'?"},
      {{"info", "a.vox", "b.vox"}, "unexpected argument 'b.vox'"},
      {{"info"}, "required"},
      {{"edit", "--size", "10x10"}, "at least 640x400"},
      {{"edit", "--history-memory", "lots"}, "--history-memory 'lots' is no size"},
      {{"edit", "--memory", "lots"}, "--memory 'lots' is no size"},
  };
  const fs::path dir = scratch_dir("cli-usage");
  for (const auto& one : cases) {
    INFO((one.words.empty() ? std::string("no words") : one.words[0]) << " " << one.expected);
    const Outcome outcome = run_quarry(one.words);
    INFO(outcome.err);
    CHECK(outcome.code == 2);
    CHECK(has(outcome.err, one.expected));
  }
  CHECK_FALSE(fs::exists("b.quarry"));
  CHECK_FALSE(fs::exists("d"));
}

TEST_CASE("convert: a missing, empty or broken input ends with 1, its name and no output") {
  const fs::path dir = scratch_dir("cli-broken");
  const fs::path out = dir / "out.quarry";
  { const std::ofstream made(dir / "empty.vox"); }
  std::ofstream(dir / "header.vox") << "VOX ";
  std::ofstream(dir / "text.quarry") << "this is no database";
  std::ofstream(dir / "notes.txt") << "hello";
  fs::create_directory(dir / "folder.vox");
  for (const char* name : {"absent.vox", "empty.vox", "header.vox", "text.quarry", "notes.txt", "folder.vox"}) {
    const Outcome outcome = run_quarry({"convert", (dir / name).string(), "-o", out.string()});
    INFO(name << ": " << outcome.err);
    CHECK(outcome.code == 1);
    CHECK(has(outcome.err, "quarry: " + (dir / name).string()));
    CHECK_FALSE(fs::exists(out));
  }
  CHECK(names_in(dir).size() == 5);
}

TEST_CASE("convert: an output that is there is replaced only with --overwrite, and never by a failed conversion") {
  const fs::path dir = scratch_dir("cli-overwrite");
  const fs::path in = small_world(dir / "small.quarry"), out = dir / "out.quarry";
  std::ofstream(out) << "precious";
  Outcome outcome = run_quarry({"convert", in.string(), "-o", out.string()});
  CHECK(outcome.code == 1);
  CHECK(has(outcome.err, "--overwrite"));
  CHECK(file_text(out) == "precious");
  std::ofstream(dir / "broken.vox") << "VOX ";
  outcome = run_quarry({"convert", (dir / "broken.vox").string(), "-o", out.string(), "--overwrite"});
  CHECK(outcome.code == 1);
  CHECK(file_text(out) == "precious");
  outcome = run_quarry({"convert", in.string(), "-o", out.string(), "--overwrite"});
  CHECK(outcome.code == 0);
  CHECK(file_text(out) != "precious");
  outcome = run_quarry({"convert", out.string(), "-o", out.string(), "--overwrite"});
  CHECK(outcome.code == 1);
  CHECK(has(outcome.err, "same file"));
  outcome = run_quarry({"convert", in.string(), "-o", (dir / "nowhere" / "out.quarry").string()});
  CHECK(outcome.code == 1);
  CHECK(has(outcome.err, "there is no directory"));
}

TEST_CASE("convert: a batch writes the rest of its inputs with --keep-going, and says so by exit code 3") {
  const fs::path dir = scratch_dir("cli-batch");
  const fs::path first = small_world(dir / "first.quarry");
  fs::copy_file(first, dir / "last.quarry");
  std::ofstream(dir / "middle.vox") << "VOX ";
  const std::vector<std::string> inputs{first.string(), (dir / "middle.vox").string(), (dir / "last.quarry").string()};
  const auto batch = [&](const fs::path& out, std::vector<std::string> more) {
    std::vector<std::string> words{"convert", inputs[0], inputs[1], inputs[2], "-o", out.string(), "--to", "quarry"};
    words.insert(words.end(), more.begin(), more.end());
    return run_quarry(words);
  };
  const Outcome kept = batch(dir / "kept", {"--keep-going", "--json"});
  CHECK(kept.code == 3);
  CHECK(has(kept.err, "1 of 3 inputs failed"));
  CHECK(fs::exists(dir / "kept" / "first.quarry"));
  CHECK(fs::exists(dir / "kept" / "last.quarry"));
  CHECK(names_in(dir / "kept").size() == 2);
  std::vector<uint64_t> voxels;
  size_t failed = 0;
  for (const json& event : events(kept.out)) {
    if (event["event"] == "finished") voxels.push_back(event["voxels"].get<uint64_t>());
    if (event["event"] == "failed") failed += has(event["error"].get<std::string>(), "middle.vox");
  }
  CHECK(failed == 1);
  REQUIRE(voxels.size() == 2);
  CHECK(voxels[0] == voxels[1]);
  const Outcome stopped = batch(dir / "stopped", {"-j", "1"});
  CHECK(stopped.code == 1);
  CHECK(names_in(dir / "stopped").size() == 1);
  const Outcome none = run_quarry({"convert", inputs[1], (dir / "absent.vox").string(), "-o", (dir / "none").string(),
                                   "--to", "quarry", "--keep-going"});
  CHECK(none.code == 1);
}

TEST_CASE("convert: the same input gives the same bytes, whatever the number of threads") {
  const fs::path dir = scratch_dir("cli-deterministic");
  std::string first;
  for (const char* threads : {"1", "2", "5"}) {
    const fs::path out = dir / (std::string("t") + threads + ".quarry");
    const Outcome made =
        run_quarry({"generate", "spheres", "--size", "64", "-o", out.string()}, {{"QUARRY_THREADS", threads}});
    REQUIRE(made.code == 0);
    if (first.empty()) first = file_text(out);
    CHECK(file_text(out) == first);
  }
}

TEST_CASE("info: a world file read in one pass is described as the same world is in memory") {
  const fs::path out = scratch_dir("info_in_one_pass");
  Scene scene;
  scene.volumes.resize(1);
  for (int z = -40; z < 30; ++z)
    for (int y = 0; y < 50; ++y)
      for (int x = -20; x < 60; ++x)
        if (x * x + 2 * y * y + z * z < 1600)
          scene.volumes[0].bricks.set({x, y, z}, y < 16 ? uint8_t(7) : uint8_t(1 + (x & 3)));
  scene.instances.resize(1);
  REQUIRE(scene.volumes[0].bricks.share({0, 0, 0}).material() == 7);  // full bricks are among them
  REQUIRE(io::write_scene(scene, out / "one.quarry"));
  scene.volumes.resize(2);
  scene.instances.resize(2);
  scene.instances[1].volume = 1;  // nothing to see, but no longer one volume
  REQUIRE(io::write_scene(scene, out / "two.quarry"));
  json one = info(out / "one.quarry"), two = info(out / "two.quarry");
  CHECK(one["models"] == 1);
  CHECK(two["models"] == 2);
  for (json* each : {&one, &two})
    for (const char* different : {"file", "models", "instances", "metadata"}) each->erase(different);
  CHECK(one == two);
  CHECK(one["world"]["bytes"] > one["world"]["packed_bytes"]);
}

TEST_CASE(
    "bench: world measures edits, undo, lists, strokes with a file, a trim, algebra and flattening, and checks what is "
    "left") {
  const Outcome outcome = run_quarry({"bench", "world", "--small", "--repeats", "1", "--json"});
  CHECK(outcome.code == 0);
  const json result = json::parse(outcome.out);
  CHECK(result["bench"] == "world");
  CHECK(result["rows"].size() == 29);
  for (const json& row : result["rows"]) CHECK(row["value"] > 0);
  const Outcome wrong = run_quarry({"bench", "world", "--small", "--replays", "/nowhere"});
  CHECK(wrong.code == 1);
  CHECK(has(wrong.err, "no small.csv or facts.json in '/nowhere'"));
}

TEST_CASE("info: tells of a .vox what independent readers tell, in the file's own axes") {
  const fs::path data = data_dir();
  if (data.empty()) return skip("no test data for `quarry info` on .vox files");
  const json facts = json::parse(file_text(data / "vox_facts.json"));
  std::map<std::string, fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(data / "vox"))
    if (entry.path().extension() == ".vox") files[entry.path().filename().string()] = entry.path();
  const fs::path dir = scratch_dir("cli-info-vox");
  std::vector<std::string> convert{"convert", "--to", "quarry", "-o", dir.string()};
  for (const auto& [name, file] : files)
    if (facts.contains(name)) convert.push_back(file.string());
  REQUIRE(run_quarry(convert).code == 0);
  size_t compared = 0;
  for (const auto& [name, expected] : facts.items()) {
    if (!files.count(name)) continue;
    INFO(name);
    const Outcome outcome = run_quarry({"info", "--json", files[name].string()});
    REQUIRE(outcome.code == 0);
    const json reported = json::parse(outcome.out);
    for (const auto& [key, value] : expected.items()) {
      INFO(key);
      REQUIRE(reported.contains(key));
      CHECK(reported[key] == value);
    }
    // The world made from it holds the same voxels and colours.
    const json kept = json::parse(run_quarry({"info", "--json", (dir / files[name].stem()).string() + ".quarry"}).out);
    for (const char* key : {"placed", "flat_all", "flat_visible", "colors_used", "instances"})
      CHECK(kept[key] == expected[key]);
    CHECK(kept["axes"] == "y-up");
    CHECK(kept["format"] == "quarry");
    CHECK(kept["grid"]["live"] == kept["bricks"]);
    ++compared;
  }
  CHECK(compared == facts.size());
}

TEST_CASE("info: every broken .vox ends with a message or a warning, never by a signal") {
  const fs::path data = data_dir();
  if (data.empty()) return skip("no test data for broken .vox files");
  for (const auto& entry : fs::directory_iterator(data / "broken-vox")) {
    const Outcome outcome = run_quarry({"info", entry.path().string()}, {}, 20);
    INFO(entry.path() << " " << outcome.err);
    CHECK_FALSE(outcome.timed_out);
    CHECK((outcome.code == 0 || outcome.code == 1));
    if (outcome.code == 1) CHECK(has(outcome.err, "quarry: " + entry.path().string() + ": "));
  }
}

TEST_CASE(
    "info: --parts counts connected parts, and lists the largest with size, box and material in the file's axes") {
  const fs::path dir = scratch_dir("cli-info-parts");
  const std::string file = write_bytes(
      dir / "a.vox",
      VoxBuilder().model(8, 8, 8, {{0, 0, 0, 1}, {1, 0, 0, 2}, {2, 0, 0, 2}, {3, 1, 0, 5}, {7, 7, 7, 3}}).bytes());
  const json faces = json::parse(run_quarry({"info", "--json", "--parts", "6", file}).out);
  // File (x,y,z) with pivot 4.
  CHECK(faces["parts"] == json{{"neighbours", 6},
                               {"count", 3},
                               {"single_voxels", 2},
                               {"largest",
                                {{{"voxels", 3}, {"min", {-4, -4, -4}}, {"max", {-2, -4, -4}}, {"material", 2}},
                                 {{"voxels", 1}, {"min", {-1, -3, -4}}, {"max", {-1, -3, -4}}, {"material", 5}},
                                 {{"voxels", 1}, {"min", {3, 3, 3}}, {"max", {3, 3, 3}}, {"material", 3}}}}});
  CHECK(json::parse(run_quarry({"info", "--json", "--parts", "18", file}).out)["parts"]["count"] == 2);
  CHECK_FALSE(json::parse(run_quarry({"info", "--json", file}).out).contains("parts"));
  const Outcome text = run_quarry({"info", "--parts", "26", file});
  CHECK(text.code == 0);
  CHECK(has(text.out, "2 by 26 neighbours, 1 of them single voxels"));
  CHECK(has(text.out, "1: 4 voxels, -4,-4,-4 to -1,-3,-4, mostly material 2"));
  CHECK(run_quarry({"info", "--parts", "7", file}).code == 2);
  // A world file is described as its source; of many parts twenty are listed.
  std::vector<VoxBuilder::Voxel> dust;
  for (uint8_t i = 0; i < 30; ++i) dust.push_back({uint8_t(i % 6 * 2), uint8_t(i / 6 * 2), 0, 1});
  const std::string loose = write_bytes(dir / "b.vox", VoxBuilder().model(12, 12, 12, dust).bytes());
  REQUIRE(run_quarry({"convert", loose, "-o", (dir / "b.quarry").string()}).code == 0);
  const json many = json::parse(run_quarry({"info", "--json", "--parts", "26", (dir / "b.quarry").string()}).out);
  CHECK(many["parts"]["count"] == 30);
  CHECK(many["parts"]["single_voxels"] == 30);
  CHECK(many["parts"]["largest"].size() == 20);
  CHECK(has(run_quarry({"info", "--parts", "26", loose}).out, "and 10 smaller or equal"));
}

TEST_CASE("info: statistics of the grid agree with one another") {
  const fs::path dir = scratch_dir("cli-info");
  const json reported = json::parse(run_quarry({"info", "--json", small_world(dir / "small.quarry").string()}).out);
  CHECK(reported["voxels"] == reported["flat_visible"]);
  CHECK(reported["voxels"] == reported["world"]["voxels"]);
  const json& grid = reported["grid"];
  uint64_t keys = 0;
  for (const json& bin : grid["probe_depth"]["histogram"]) keys += bin.get<uint64_t>();
  CHECK(keys == grid["live"].get<uint64_t>());
  CHECK(grid["load_factor"].get<double>() == Approx(grid["live"].get<double>() / grid["slots"].get<double>()));
  const Outcome text = run_quarry({"info", (dir / "small.quarry").string()});
  CHECK(has(text.out, "load factor"));
  CHECK(has(text.out, "p99"));
}

TEST_CASE("info: a box has the voxels that a crop keeps, of a world file and of another one") {
  const fs::path dir = scratch_dir("cli-info-box");
  const fs::path world = dir / "city.quarry", small = dir / "small.vox";
  REQUIRE(run_quarry({"generate", "menger", "--size", "81", "-o", world.string()}).code == 0);
  (void)small_world(small);
  for (const fs::path& file : {world, small})
    for (const char* box : {"-40,0,-40,-20,12,-10", "-3,-3,-3,40,12,41", "-500,-500,-500,500,500,500", "4,4,4,4,4,4"}) {
      INFO(file << " " << box);
      const Outcome outcome = run_quarry({"info", file.string(), "--box", box, "--json"});
      INFO(outcome.err);
      REQUIRE(outcome.code == 0);
      const json described = json::parse(outcome.out);
      const fs::path cropped = dir / "cropped.quarry";
      const Outcome crop = run_quarry({"convert", file.string(), "-o", cropped.string(), "--crop", box, "--overwrite"});
      uint64_t of_materials = 0;
      for (const json& material : described["materials"]) of_materials += material["voxels"].get<uint64_t>();
      CHECK(of_materials == described["voxels"].get<uint64_t>());
      if (described["voxels"] == 0) continue;
      REQUIRE(crop.code == 0);
      const json kept = json::parse(run_quarry({"info", "--json", cropped.string()}).out);
      CHECK(described["voxels"] == kept["voxels"]);
      CHECK(described["bricks"] == kept["bricks"]);
      CHECK(described["min"] == kept["min"]);
      CHECK(described["max"] == kept["max"]);
      CHECK(described["materials"].size() == kept["colors_used"]);
    }
  // A small box does not read the whole file.
  const json read = json::parse(run_quarry({"info", world.string(), "--box", "1,1,1,5,5,5", "--json"}).out)["read"];
  CHECK(read["bricks"].get<uint64_t>() < read["of"].get<uint64_t>());
  const Outcome text = run_quarry({"info", world.string(), "--box", "0,0,0,8,8,8"});
  CHECK(has(text.out, "of the file's"));
  for (const char* wrong : {"1,2,3", "5,0,0,4,9,9", "0,0,0,1,1,x", ""}) {
    const Outcome outcome = run_quarry({"info", world.string(), "--box", wrong});
    CHECK(outcome.code == 2);
    CHECK(has(outcome.err, "X0,Y0,Z0,X1,Y1,Z1"));
  }
}

TEST_CASE("bench: the ordered index is measured beside the hash grid and sorted arrays") {
  const Outcome outcome = run_quarry({"bench", "index", "--keys", "3000", "--repeats", "1", "--json"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const json result = json::parse(outcome.out)["index"];
  std::map<std::string, json> host;
  for (const json& row : result["rows"])
    if (row["executor"] == "host") host[row["what"].get<std::string>()] = row;
  CHECK(host.size() == 12);
  CHECK(host["find, random keys"]["ratios"].size() == 2);
  CHECK(host["boxes of 16^3 bricks"]["ratios"].contains("probing the grid"));
  for (const auto& [what, row] : host) CHECK(row["million_per_s"].get<double>() > 0);
  const Outcome nothing = run_quarry({"bench", "index", "--keys", "20000", "--only", "fnid"});
  CHECK(nothing.code == 2);
  CHECK(has(nothing.err, "no row of the benchmark has 'fnid' in its name"));
}

TEST_CASE("bench: multi grids and joins are measured beside sorting and merging") {
  const Outcome outcome = run_quarry({"bench", "join", "--keys", "4096", "--repeats", "1", "--json"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const json result = json::parse(outcome.out)["join"];
  std::map<std::string, json> host;
  for (const json& row : result["rows"])
    if (row["executor"] == "host") host[row["what"].get<std::string>()] = row;
  CHECK(host.size() == 16);
  CHECK(host["join, 8 to a key"]["ratios"].contains("std::sort and a merge"));
  for (const auto& [what, row] : host) CHECK(row["million_per_s"].get<double>() > 0);
  const Outcome nothing = run_quarry({"bench", "join", "--keys", "4096", "--only", "jion"});
  CHECK(nothing.code == 2);
  CHECK(has(nothing.err, "no row of the benchmark has 'jion' in its name"));
}

TEST_CASE("bench: paged grids are measured beside a table that is used in parts") {
  const Outcome outcome =
      run_quarry({"bench", "paged", "--keys", "20000", "--repeats", "1", "--only", "any order", "--json"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const json result = json::parse(outcome.out)["paged"];
  CHECK(result["bus"]["in"].get<double>() > 0);
  REQUIRE(result["rows"].size() == 3);
  for (const json& row : result["rows"]) {
    CHECK(row["what"] == "build, any order");
    CHECK(row["pairs"] == 20000);
    CHECK(row["million_per_s"].get<double>() > 0);
    CHECK(row["bytes_in"].get<uint64_t>() >= 8 * 20000);
    CHECK(row["ratios"].contains("in parts"));
  }
  const Outcome nothing = run_quarry({"bench", "paged", "--keys", "20000", "--repeats", "1", "--only", "fnid"});
  CHECK(nothing.code == 2);
  CHECK(has(nothing.err, "no row of the benchmark has 'fnid' in its name"));
}

TEST_CASE("bench: a flight through a world in parts has no hole, and tells what its frames waited for",
          "[shader-alone]") {
  const fs::path file = scratch_dir("cli-flight") / "sponge.quarry";
  REQUIRE(run_quarry({"generate", "menger", "--size", "27", "-o", file.string()}).code == 0);
  const Outcome whole = run_quarry({"bench", "world", "--small", "--only", "flight", "--open", file.string()});
  CHECK(whole.code == 1);
  CHECK(has(whole.err, "it needs --budget"));
  if (!can_render()) return;
  const Outcome outcome = run_quarry({"bench", "world", "--small", "--only", "flight", "--open", file.string(),
                                      "--budget", "128M", "--home", "emulated", "--json"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  std::map<std::string, double> rows;
  const json result = json::parse(outcome.out);
  for (const json& row : result["rows"]) rows[row["row"]] = row["value"];
  CHECK(rows.at("flight: frames") > 0);
  CHECK(rows.at("flight: pages brought") > 0);
  CHECK(rows.at("flight: request to resident, all below") >= rows.at("flight: request to resident, 95% below"));
  CHECK(rows.at("flight: full detail at 4 stops, 95%") > 0);
  CHECK(rows.at("flight: pixels of stops that differ from the whole world's") == 0);
}

TEST_CASE("bench: rays and look-ups of a world in a device's memory are measured by kernels beside shaders") {
  if (!can_render()) return;
  const Outcome outcome =
      run_quarry({"bench", "readers", "--small", "--keys", "4000", "--repeats", "1", "--json", "--validation"});
  INFO(outcome.err);
  if (outcome.code == 1 && (has(outcome.err, "cannot import host memory") || has(outcome.err, "validation layer")))
    return skip("`quarry bench readers`: " + outcome.err);
  REQUIRE(outcome.code == 0);
  const json result = json::parse(outcome.out);
  CHECK(result["validation_errors"] == 0);
  REQUIRE(result["rays"].size() == 9);
  for (const json& camera : result["rays"]) {
    INFO(camera.dump(2));
    CHECK(camera["rays"] == 128 * 128);
    CHECK(camera["hits"]["kernel"].get<uint64_t>() > 500);
    CHECK(camera["rows"].size() == 4);
    for (const auto& [name, row] : camera["rows"].items()) CHECK(row["million_per_s"].get<double>() > 0);
    CHECK(camera["ratios"].size() == 3);
  }
  const json& worlds = result["look_ups"]["worlds"];
  REQUIRE(worlds.size() == 2);
  CHECK((worlds[0]["bricks"] == 4000 && worlds[1]["bricks"] == 250));
  for (const json& world : worlds) {
    CHECK(world["look_ups"] == 100000);
    CHECK(world["rows"]["kernel"]["million_per_s"].get<double>() > 0);
    CHECK(world["ratio"].get<double>() > 0);
  }
  const Outcome look_ups = run_quarry({"bench", "readers", "--small", "--repeats", "1", "--only", "look-ups"});
  CHECK(look_ups.code == 0);
  CHECK((has(look_ups.out, "large : small") && !has(look_ups.out, "overview")));
  const Outcome nothing = run_quarry({"bench", "readers", "--small", "--only", "rasy"});
  CHECK(nothing.code == 2);
  CHECK(has(nothing.err, "no row of the benchmark is called 'rasy'"));
  CHECK(run_quarry({"bench", "readers", "--home", "host"}).code == 2);
}

TEST_CASE("render: makes a picture of the asked size with the world in it") {
  if (!can_render()) return;
  const fs::path dir = scratch_dir("cli-render");
  const fs::path world = small_world(dir / "small.quarry");
  const Outcome outcome = run_quarry(
      {"render", world.string(), "-o", (dir / "p.png").string(), "--size", "160x100", "--samples", "1", "--json"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const json reported = json::parse(outcome.out);
  CHECK(reported["width"] == 160);
  CHECK(reported["sharing"].get<std::string>().size() > 0);
  CHECK(reported["sharing_reason"].get<std::string>().size() > 10);
  const auto picture = engine::read_png(dir / "p.png");
  REQUIRE(picture);
  CHECK(picture->width == 160);
  CHECK(picture->height == 100);
  std::map<uint32_t, int> colours;
  for (size_t i = 0; i < picture->rgba.size(); i += 4)
    ++colours[uint32_t(picture->rgba[i] >> 3) << 16 | uint32_t(picture->rgba[i + 1] >> 3) << 8 |
              uint32_t(picture->rgba[i + 2] >> 3)];
  CHECK(colours.size() > 40);
  // A picture is always overwritten; a directory is not.
  CHECK(run_quarry({"render", world.string(), "-o", (dir / "p.png").string(), "--size", "32x32", "--view", "normals"})
            .code == 0);
  CHECK(engine::read_png(dir / "p.png")->width == 32);
  fs::create_directory(dir / "d.png");
  CHECK(run_quarry({"render", world.string(), "-o", (dir / "d.png").string()}).code == 1);
}

TEST_CASE("render: an unknown device or a broken input leaves no picture") {
  const fs::path dir = scratch_dir("cli-render-bad");
  const fs::path world = small_world(dir / "small.quarry"), out = dir / "p.png";
  const Outcome device = run_quarry({"render", world.string(), "-o", out.string(), "--device", "no such device"});
  CHECK(device.code == 1);
  CHECK(device.err.starts_with("quarry: "));
  const Outcome input = run_quarry({"render", (dir / "absent.vox").string(), "-o", out.string()});
  CHECK(input.code == 1);
  CHECK_FALSE(fs::exists(out));
}

TEST_CASE("doctor: says what there is as sentences and as JSON") {
  const Outcome text = run_quarry({"doctor"});
  const Outcome machine = run_quarry({"doctor", "--json"});
  CHECK(text.code == machine.code);
  const json reported = json::parse(machine.out);
  CHECK((machine.code == 0) == reported["can_render"].get<bool>());
  std::map<std::string, int> topics;
  for (const json& finding : reported["findings"]) ++topics[finding["topic"].get<std::string>()];
  for (const char* topic : {"quarry", "machine", "cuda", "vulkan", "display", "meshes"}) CHECK(topics[topic] > 0);
  const Outcome hidden = run_quarry({"doctor", "--json"}, {{"DISPLAY", ""}, {"WAYLAND_DISPLAY", ""}});
  CHECK(has(hidden.out, "xvfb-run"));
  // Without any Vulkan driver nothing can be rendered, and exit code 1 means that.
  const Outcome bare =
      run_quarry({"doctor"}, {{"VK_ICD_FILENAMES", "/nonexistent.json"}, {"VK_DRIVER_FILES", "/nonexistent.json"}});
  CHECK(bare.code == 1);
  CHECK(has(bare.out, "STOP"));
}

TEST_CASE("bench: measures every operation of the hash grid beside ceilings and rivals and names the machine") {
  const Outcome outcome = run_quarry({"bench", "hashgrid", "--keys", "20000", "--repeats", "1", "--json"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const json reported = json::parse(outcome.out);
  const json& host = reported["host"];
  CHECK(host["rows"].size() == 4 * 15);  // loads times operations
  CHECK(host["ceilings"].size() == 1);
  CHECK(host["rivals"].size() + host["missing_rivals"].size() == 3);
  for (const json& row : host["rows"]) {
    INFO(row.dump());
    CHECK(row["million_per_s"].get<double>() > 0);
    CHECK(row["of_ceiling"].get<double>() > 0);
    CHECK(row["ratios"].size() == host["rivals"].size());
  }
  CHECK_FALSE(reported["machine"]["processor"].get<std::string>().empty());
  // A part of the table, as text.
  const Outcome finds = run_quarry({"bench", "hashgrid", "--keys", "2000", "--repeats", "1", "--only", "find, absent"});
  CHECK(finds.code == 0);
  CHECK(has(finds.out, "U: find, absent"));
  CHECK_FALSE(has(finds.out, "U: insert"));
  const Outcome nothing = run_quarry({"bench", "hashgrid", "--only", "fnid"});
  CHECK(nothing.code == 2);
  CHECK(has(nothing.err, "no row of the benchmark has 'fnid' in its name"));
}

TEST_CASE("bench: Ctrl+C ends the program that measures with 130") {
  for (const int wait_ms : {5, 60, 400}) {
    Process process({quarry_program().string(), "bench", "hashgrid", "--keys", "100000", "--repeats", "50"});
    usleep(useconds_t(wait_ms) * 1000);
    process.signal(SIGINT);
    const Outcome outcome = process.finish(60);
    INFO(wait_ms << " ms: " << outcome.err);
    CHECK_FALSE(outcome.timed_out);
    CHECK(outcome.code == 128 + SIGINT);  // its own, or that of a process that the signal ended before it listened
  }
}

TEST_CASE("bench: without the program that measures, help and list are there, and a benchmark says what is missing") {
  const std::map<std::string, std::string> without{{"QUARRY_BENCH", "/nonexistent/quarry-bench"}};
  CHECK(run_quarry({"bench", "--help"}, without).code == 0);
  const Outcome list = run_quarry({"bench", "--list"}, without);
  CHECK(list.code == 0);
  CHECK(has(list.out, "hashgrid  "));
  CHECK(has(list.out, "render  "));
  CHECK(has(list.out, "scan  "));
  CHECK(has(list.out, "readers  "));
  const Outcome outcome = run_quarry({"bench", "render", "--small"}, without);
  CHECK(outcome.code == 1);
  CHECK(outcome.out.empty());
  CHECK(outcome.err ==
        "quarry: bench: the program that measures, quarry-bench, is not at /nonexistent/quarry-bench. "
        "Reinstall Quarry, or set QUARRY_BENCH to its path.\n");
}

TEST_CASE("quarry: Ctrl+C ends a long command with 130 and without a partial file") {
  const fs::path dir = scratch_dir("cli-interrupt");
  for (const int wait_ms : {30, 120, 300}) {
    const fs::path out = dir / "big.quarry";
    Process process({quarry_program().string(), "generate", "terrain", "--size", "1024", "-o", out.string()});
    usleep(useconds_t(wait_ms) * 1000);
    process.signal(SIGINT);
    const Outcome outcome = process.finish(60);
    INFO("after " << wait_ms << " ms: " << outcome.err);
    CHECK(outcome.code == 130);
    CHECK(names_in(dir).empty());
  }
}

TEST_CASE("edit: without a display the message names DISPLAY and Xvfb") {
  const Outcome outcome = run_quarry({"edit"}, {{"DISPLAY", ""}, {"WAYLAND_DISPLAY", ""}});
  CHECK(outcome.code == 1);
  CHECK(has(outcome.err, "DISPLAY"));
  CHECK(has(outcome.err, "xvfb-run"));
  const Outcome wrong = run_quarry({"edit"}, {{"DISPLAY", ":99999"}, {"WAYLAND_DISPLAY", ""}});
  CHECK(wrong.code == 1);
  CHECK(has(wrong.err, ":99999"));
}

TEST_CASE("validate: a world file is sound only if its history is, which nobody else reads but an editor") {
  const fs::path file = scratch_dir("cli-validate-history") / "w.quarry";
  fs::copy_file(asset("compat/world-steps.quarry"), file);
  CHECK(run_quarry({"validate", file.string()}).code == 0);
  auto bytes = file_bytes(file);
  const std::string label = "paint line";
  const auto at = std::search(bytes.begin(), bytes.end(), label.begin(), label.end());
  REQUIRE(at != bytes.end());
  *at = 'f';
  write_bytes(file, bytes);
  const Outcome outcome = run_quarry({"validate", file.string()});
  CHECK(outcome.code == 1);
  CHECK(has(outcome.err, "table journal, record "));
}

}  // namespace cli_test
