// SPDX-License-Identifier: Apache-2.0
// convert_test.cpp - `quarry convert` as a pipeline uses it: batches, skipping and resuming, memory, shards, steps,
// losses, pictures.
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <set>

#include "app/batch/tasks.hpp"
#include "base/parallel.hpp"
#include "engine/pictures/png_file.hpp"
#include "tests/app/program_output.hpp"
#include "tests/file_bytes.hpp"
#include "tests/voxel/io/vox/file_builder.hpp"
#include "voxel/io/quarry/store.hpp"

namespace convert_test {

using namespace quarry;
using namespace quarry::test;
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

// A model of `edge` voxels along each side. Different seeds give different files.
std::vector<uint8_t> model(uint8_t seed, uint8_t edge = 8) {
  std::vector<VoxBuilder::Voxel> voxels;
  for (uint8_t x = 0; x < edge; ++x)
    for (uint8_t z = 0; z <= x; ++z)
      voxels.push_back({x, uint8_t((x + seed) % edge), z, uint8_t(1 + (x + seed) % 200)});
  return VoxBuilder().model(edge, edge, edge, voxels).bytes();
}
std::set<std::string> names_below(const fs::path& dir) {
  std::set<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(dir))
    if (entry.is_regular_file()) out.insert(entry.path().lexically_relative(dir).string());
  return out;
}

}  // namespace

TEST_CASE("convert: with 3 bad files of 20 the other 17 are written, the 3 are named, and the exit code is 3") {
  const fs::path dir = scratch_dir("convert-bad");
  fs::create_directory(dir / "in");
  for (int i = 0; i < 20; ++i) {
    const std::string name = std::to_string(100 + i) + ".vox";
    if (i == 4) std::ofstream(dir / "in" / name) << "VOX ";
    else if (i == 11) std::ofstream(dir / "in" / name);
    else if (i == 17) std::ofstream(dir / "in" / name) << "not at all a model";
    else write_bytes(dir / "in" / name, model(uint8_t(i)));
  }
  for (const char* threads : {"1", "4"}) {
    const fs::path out = dir / (std::string("out") + threads);
    const Outcome outcome = run_quarry(
        {"convert", (dir / "in").string(), "-o", out.string(), "--to", "glb", "--keep-going", "-j", threads});
    INFO(outcome.err);
    CHECK(outcome.code == 3);
    CHECK(names_below(out).size() == 17);
    for (const char* bad : {"104.vox", "111.vox", "117.vox"})
      CHECK(has(outcome.err, std::string("quarry: ") + (dir / "in" / bad).string() + ": "));
    CHECK(has(outcome.err, "3 of 20 inputs failed"));
    CHECK_FALSE(has(outcome.err, "--salvage"));  // nothing can be salvaged from these
    CHECK(has(outcome.err, "Failed: "));
  }
  // The number of threads does not change the files.
  for (const std::string& name : names_below(dir / "out1"))
    CHECK(file_text(dir / "out1" / name) == file_text(dir / "out4" / name));
  const Outcome stopped =
      run_quarry({"convert", (dir / "in").string(), "-o", (dir / "stopped").string(), "--to", "glb", "-j", "1"});
  CHECK(stopped.code == 1);
  CHECK(names_below(dir / "stopped").size() == 4);
  CHECK(has(stopped.err, "15 not begun"));
}

TEST_CASE(
    "convert: directories, patterns and templates give a mirrored tree, and clashes are refused before "
    "anything is written") {
  const fs::path dir = scratch_dir("convert-names");
  fs::create_directories(dir / "in" / "red");
  fs::create_directories(dir / "in" / "blue");
  for (const char* name : {"red/a.vox", "blue/a.vox", "b.vox"}) write_bytes(dir / "in" / name, model(1));
  REQUIRE(run_quarry({"convert", (dir / "in").string(), "-o", (dir / "tree").string(), "--to", "quarry"}).code == 0);
  CHECK(names_below(dir / "tree") == std::set<std::string>{"b.quarry", "blue/a.quarry", "red/a.quarry"});
  REQUIRE(
      run_quarry({"convert", (dir / "in/**/*.vox").string(), "-o", (dir / "flat/{index}_{stem}_{ext}.glb").string()})
          .code == 0);
  CHECK(names_below(dir / "flat") == std::set<std::string>{"1_b_vox.glb", "2_a_vox.glb", "3_a_vox.glb"});
  const Outcome clash = run_quarry({"convert", (dir / "in").string(), "-o", (dir / "clash/{stem}.glb").string()});
  CHECK(clash.code == 2);
  CHECK(has(clash.err, "would both become"));
  CHECK_FALSE(fs::exists(dir / "clash"));
  write_bytes(dir / "in" / "b.quarry", {});
  const Outcome input = run_quarry({"convert", (dir / "in" / "b.vox").string(), (dir / "in" / "b.quarry").string(),
                                    "-o", (dir / "in/{stem}.quarry").string()});
  CHECK(input.code == 2);
  const Outcome unknown = run_quarry({"convert", (dir / "in").string(), "-o", (dir / "x/{stm}.glb").string()});
  CHECK(unknown.code == 2);
  CHECK(has(unknown.err, "Did you mean 'stem'?"));
  CHECK(run_quarry({"convert", (dir / "none*.vox").string(), "-o", (dir / "x").string(), "--to", "glb"}).code == 1);
  CHECK_FALSE(fs::exists(dir / "x"));
}

TEST_CASE("convert: --json gives one event a line, --report the same as one document, --dry-run writes nothing") {
  const fs::path dir = scratch_dir("convert-json");
  fs::create_directory(dir / "in");
  for (int i = 0; i < 3; ++i) write_bytes(dir / "in" / (std::to_string(i) + ".vox"), model(uint8_t(i)));
  std::ofstream(dir / "in" / "bad.vox") << "VOX ";
  const std::vector<std::string> words{
      "convert",  (dir / "in").string(),         "-o", (dir / "out").string(), "--to", "ply", "--keep-going", "--json",
      "--report", (dir / "report.json").string()};
  std::vector<std::string> dry = words;
  dry.push_back("--dry-run");
  const Outcome planned = run_quarry(dry);
  CHECK(planned.code == 0);
  CHECK(events(planned.out).size() == 4);
  CHECK_FALSE(fs::exists(dir / "out"));
  const Outcome outcome = run_quarry(words);
  CHECK(outcome.code == 3);
  std::map<std::string, int> kinds;
  for (const json& e : events(outcome.out)) ++kinds[e["event"]];
  CHECK(kinds == std::map<std::string, int>{{"started", 4}, {"finished", 3}, {"failed", 1}, {"summary", 1}});
  const json last = events(outcome.out).back();
  CHECK(last["converted"] == 3);
  CHECK(last["failed"] == 1);
  CHECK(last["exit_code"] == 3);
  const json report = json::parse(file_text(dir / "report.json"));
  REQUIRE(report["files"].size() == 4);
  CHECK(report["files"][0]["input"] == (dir / "in" / "0.vox").string());
  CHECK(report["files"][0]["voxels"] == 36);
  CHECK(report["files"][3]["event"] == "failed");
  CHECK(report["files"][3]["code"] == "malformed_input");
  CHECK(report["summary"]["failed_inputs"].size() == 1);
}

TEST_CASE("convert: --resume skips what is unchanged, and only that") {
  const fs::path dir = scratch_dir("convert-resume");
  fs::create_directory(dir / "in");
  for (int i = 0; i < 4; ++i) write_bytes(dir / "in" / (std::to_string(i) + ".vox"), model(uint8_t(i)));
  std::ofstream(dir / "in" / "t.obj") << "mtllib t.mtl\nusemtl m\nv 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n";
  std::ofstream(dir / "in" / "t.mtl") << "newmtl m\nKd 1 0 0\n";
  const auto run = [&](const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"convert",      (dir / "in").string(),
                                   "-o",           (dir / "out").string(),
                                   "--to",         "quarry",
                                   "--resume",     "--keep-going",
                                   "--resolution", "8",
                                   "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = run_quarry(words);
    const json last = events(outcome.out).back();
    return std::array<int, 3>{last["converted"], last["skipped"], last["failed"]};
  };
  using Counts = std::array<int, 3>;
  CHECK(run() == Counts{5, 0, 0});
  CHECK(run() == Counts{0, 5, 0});
  const Outcome planned = run_quarry({"convert", (dir / "in").string(), "-o", (dir / "out").string(), "--to", "quarry",
                                      "--resume", "--resolution", "8", "--dry-run"});
  CHECK(planned.code == 0);
  CHECK(has(planned.out, "0 would be converted, 5 skipped"));
  write_bytes(dir / "in" / "2.vox", model(77));  // other content
  CHECK(run() == Counts{1, 4, 0});
  std::ofstream(dir / "in" / "t.mtl") << "newmtl m\nKd 0 1 0\n";  // a file that an input names
  CHECK(run() == Counts{1, 4, 0});
  fs::remove(dir / "out" / "1.quarry");  // a missing output
  CHECK(run() == Counts{1, 4, 0});
  std::ofstream(dir / "out" / "3.quarry") << "somebody's own work";  // not from Quarry: never replaced unasked
  CHECK(run() == Counts{0, 4, 1});
  CHECK(file_text(dir / "out" / "3.quarry") == "somebody's own work");
  CHECK(run({"--overwrite"}) == Counts{1, 4, 0});
  CHECK(run({"--mirror", "x"}) == Counts{5, 0, 0});  // other options
  // A manifest that a kill cut short, and one that is not a manifest.
  std::ofstream(dir / "out" / ".quarry-resume", std::ios::app) << "{\"job\":\"0.qua";
  CHECK(run({"--mirror", "x"}) == Counts{0, 5, 0});
}

TEST_CASE("convert: Ctrl+C in a batch leaves whole files only, and --resume does the rest") {
  const fs::path dir = scratch_dir("convert-interrupt");
  fs::create_directory(dir / "in");
  for (int i = 0; i < 60; ++i) write_bytes(dir / "in" / (std::to_string(100 + i) + ".vox"), model(uint8_t(i), 120));
  const std::vector<std::string> words{
      "convert", (dir / "in").string(), "-o", (dir / "out").string(), "--to", "quarry", "--resume", "--json"};
  const Outcome whole =
      run_quarry({"convert", (dir / "in").string(), "-o", (dir / "whole").string(), "--to", "quarry"});
  REQUIRE(whole.code == 0);
  std::vector<std::string> program = words;
  program.insert(program.begin(), quarry_program().string());
  Process process(program);
  REQUIRE(process.wait_for_output("\"finished\"", 30));
  process.signal(SIGINT);
  const Outcome outcome = process.finish(60);
  CHECK(outcome.code == 130);
  const json last = events(outcome.out).back();
  CHECK(last["not_started"].get<int>() > 0);
  std::set<std::string> files = names_below(dir / "out");
  CHECK(files.erase(".quarry-resume") == 1);
  CHECK(files.size() == last["converted"].get<size_t>());
  for (const std::string& name : files) CHECK(file_text(dir / "out" / name) == file_text(dir / "whole" / name));
  const Outcome rest = run_quarry(words);
  CHECK(rest.code == 0);
  CHECK(events(rest.out).back()["skipped"] == last["converted"]);
  CHECK(names_below(dir / "out").size() == 61);
}

TEST_CASE("convert: the shards of a batch are disjoint, make the whole, and go by names alone") {
  const fs::path dir = scratch_dir("convert-shard");
  fs::create_directories(dir / "in" / "sub");
  for (int i = 0; i < 30; ++i)
    write_bytes(dir / "in" / (i % 2 ? "sub" : ".") / (std::to_string(i) + ".vox"), model(uint8_t(i)));
  const auto shard = [&](const fs::path& in, int i, int n) {
    const Outcome outcome = run_quarry({"convert", in.string(), "-o", (dir / "out").string(), "--to", "ply",
                                        "--dry-run", "--json", "--shard", std::to_string(i) + "/" + std::to_string(n)});
    REQUIRE(outcome.code == 0);
    std::set<std::string> out;
    for (const json& e : events(outcome.out)) out.insert(e["output"].get<std::string>());
    return out;
  };
  std::set<std::string> all;
  size_t sum = 0;
  for (int i = 1; i <= 4; ++i) {
    const auto part = shard(dir / "in", i, 4);
    CHECK(part.size() > 2);
    sum += part.size();
    all.insert(part.begin(), part.end());
  }
  CHECK(sum == 30);
  CHECK(all.size() == 30);
  const auto before = shard(dir / "in", 2, 4);
  fs::rename(dir / "in", dir / "elsewhere");
  CHECK(shard(dir / "elsewhere", 2, 4) == before);
  for (const char* wrong : {"0/4", "5/4", "1", "a/b", "1/0"})
    CHECK(run_quarry(
              {"convert", (dir / "elsewhere").string(), "-o", (dir / "out").string(), "--to", "ply", "--shard", wrong})
              .code == 2);
}

TEST_CASE(
    "run_batch: the watch stops what uses too much memory, lets it try again alone, and then says so with numbers") {
  // Items that really fill memory: two of 160 MiB fit one after the other but not at once; one of 400 MiB never fits.
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  app::BatchOptions options;
  options.threads = 3;
  options.memory_bytes = memory_in_use() + 260 * kMiB;
  const std::vector<app::BatchItem> items{{5, kMiB}, {4, kMiB}, {3, kMiB}};
  const uint64_t mib[] = {160, 160, 400};
  std::array<std::atomic<int>, 3> begun{};
  const auto run = [&](size_t i, const app::ItemContext& context) -> Result<void> {
    ++begun[i];
    // Taken from the system and returned to it at once, because a sanitizer's allocator would keep what an item freed.
    char* const held =
        static_cast<char*>(mmap(nullptr, mib[i] * kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (held == MAP_FAILED) return fail(ErrorCode::out_of_memory, "no memory to test with");
    bool stopped = false;
    for (uint64_t m = 0; m < mib[i] && !stopped; ++m) {
      stopped = context.cancel->load();
      std::fill_n(held + m * kMiB, kMiB, char(1));
      usleep(1500);
    }
    munmap(held, mib[i] * kMiB);
    if (stopped) return fail(ErrorCode::cancelled, "stopped");
    return {};
  };
  std::array<std::string, 3> ended;
  run_batch(items, options, run, [&](size_t i, const Result<void>& result) {
    ended[i] = result ? "done" : result.error().message;
    return true;
  });
  CHECK(ended[0] == "done");
  CHECK(ended[1] == "done");
  CHECK(has(ended[2], "needs more memory than there is for it"));
  CHECK(has(ended[2], "MiB"));
  CHECK(begun[0] + begun[1] + begun[2] > 3);
}

TEST_CASE("run_batch: no more than the threads asked for, the largest first, and nothing new after a stop") {
  std::vector<app::BatchItem> items;
  for (uint64_t i = 0; i < 40; ++i) items.push_back({1 + i, 0});
  app::BatchOptions options;
  options.threads = 3;
  std::atomic<uint32_t> threads{0}, most{0}, too_many{0};
  std::vector<size_t> order;
  run_batch(
      items, options,
      [&](size_t, const app::ItemContext& context) -> Result<void> {
        const uint32_t now = threads += context.threads;
        if (thread_count() > context.threads) ++too_many;
        uint32_t seen = most;
        while (now > seen && !most.compare_exchange_weak(seen, now)) {
        }
        usleep(500);
        threads -= context.threads;
        return {};
      },
      [&](size_t i, const Result<void>&) {
        order.push_back(i);
        return true;
      });
  CHECK(order.size() == 40);
  CHECK(order.front() >= 36);
  CHECK(most <= 3);
  CHECK(too_many == 0);
  size_t reported = 0;
  options.in_order = true;
  options.threads = 1;
  run_batch(
      items, options,
      [&](size_t i, const app::ItemContext&) -> Result<void> {
        return i == 5 ? fail(ErrorCode::io, "x") : Result<void>();
      },
      [&](size_t, const Result<void>& result) {
        ++reported;
        return result.has_value();
      });
  CHECK(reported == 6);
  std::atomic<bool> cancel{true};
  options.cancel = &cancel;
  run_batch(
      items, options, [&](size_t, const app::ItemContext&) -> Result<void> { return {}; },
      [&](size_t, const Result<void>&) { return ++reported, true; });
  CHECK(reported == 6);
}

TEST_CASE("convert: --memory makes jobs wait, and one that cannot fit fails by itself") {
  const fs::path dir = scratch_dir("convert-memory");
  const std::string world = (dir / "world.quarry").string(), large = (dir / "large.vox").string();
  REQUIRE(run_quarry({"generate", "terrain", "--size", "768", "-o", world}).code == 0);
  REQUIRE(run_quarry({"convert", world, "-o", large}).code == 0);
  for (int i = 0; i < 4; ++i) write_bytes(dir / (std::to_string(i) + ".vox"), model(uint8_t(i)));
#if defined(__SANITIZE_ADDRESS__)
  // The program alone takes 150 MiB there, and the memory that a job freed must be free for the next.
  const std::string memory = "300";
  const std::map<std::string, std::string> environment{
      {"ASAN_OPTIONS", "quarantine_size_mb=1:allocator_release_to_os_interval_ms=0"}};
#else
  const std::string memory = "48";
  const std::map<std::string, std::string> environment;
#endif
  // With this option a .vox file cannot be converted region by region.
  const Outcome outcome = run_quarry({"convert", (dir / "*.vox").string(), "-o", (dir / "out").string(), "--to", "ply",
                                      "--salvage", "--keep-going", "--memory", memory + "M", "--json"},
                                     environment);
  INFO(outcome.err);
  CHECK(outcome.code == 3);
  CHECK(names_below(dir / "out") == std::set<std::string>{"0.ply", "1.ply", "2.ply", "3.ply"});
  // It is refused before it is read, or stopped if its need is not known beforehand. Both messages have the number.
  CHECK((has(outcome.err, "large.vox: reading it takes at least") || has(outcome.err, "large.vox: needs more memory")));
  CHECK((has(outcome.err, "--memory is " + memory + " MiB") || has(outcome.err, "--memory " + memory + ".0 MiB")));
  CHECK(run_quarry({"convert", (dir / "0.vox").string(), "-o", (dir / "x.ply").string(), "--memory", "much"}).code ==
        2);
}

TEST_CASE("convert: steps are done in the order of the command line") {
  const fs::path dir = scratch_dir("convert-steps");
  const std::string a =
      write_bytes(dir / "a.vox", VoxBuilder().model(4, 4, 4, {{0, 0, 0, 1}, {1, 0, 0, 2}, {3, 3, 3, 3}}).bytes());
  const auto bounds = [&](std::vector<std::string> steps) {
    std::vector<std::string> words{"convert", a, "-o", (dir / "out.quarry").string(), "--overwrite"};
    words.insert(words.end(), steps.begin(), steps.end());
    const Outcome outcome = run_quarry(words);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    const json reported = info(dir / "out.quarry");
    return json{reported["min"], reported["max"], reported["voxels"]};
  };
  // File (x,y,z) with pivot 2 is world (x-2, z-2, 1-y): (-2,-2,1), (-1,-2,1), (1,1,-2).
  CHECK(bounds({}) == json{{-2, -2, -2}, {1, 1, 1}, 3});
  CHECK(bounds({"--crop", "-2,-2,-2,-1,5,5"}) == json{{-2, -2, 1}, {-1, -2, 1}, 2});
  CHECK(bounds({"--crop", "-2,-2,-2,-1,5,5", "--mirror", "x"}) == json{{0, -2, 1}, {1, -2, 1}, 2});
  CHECK(bounds({"--mirror", "x", "--crop", "-2,-2,-2,-1,5,5"}) == json{{-2, 1, -2}, {-2, 1, -2}, 1});
  CHECK(bounds({"--turn", "y90", "--turn", "y-90"}) == bounds({}));
  // A right-handed quarter about y takes z to x: cell (1,1,-2) goes to (-2,1,-2).
  CHECK(bounds({"--crop", "1,1,-2,1,1,-2", "--turn", "y90"}) == json{{-2, 1, -2}, {-2, 1, -2}, 1});
  CHECK(bounds({"--scale", "3"})[2] == 81);
  CHECK(bounds({"--scale", "3", "--scale", "1/3"}) == bounds({}));
  CHECK(bounds({"--scale", "4", "--lod", "2"}) == bounds({}));
  CHECK(bounds({"--scale", "4", "--hollow", "1"})[2] == 3 * 64 - 2 * 8 - 16 + 0);
  CHECK(bounds({"--scale", "4", "--hollow", "1", "--fill", "auto"})[2] == 192);
  // Two voxels side by side have 10 neighbours through faces, one has 6; through corners 34 and 26.
  CHECK(bounds({"--grow", "1"}) == json{{-3, -3, -3}, {2, 2, 2}, 3 + 10 + 6});
  CHECK(bounds({"--grow", "1:26"})[2] == 3 + 34 + 26);
  CHECK(bounds({"--grow", "2:26", "--erode", "2:26"}) == bounds({}));
  CHECK(bounds({"--erode", "1"})[2] == 0);
  CHECK(bounds({"--drop-parts", "2"}) == json{{-2, -2, 1}, {-1, -2, 1}, 2});
  CHECK(bounds({"--keep-parts", "1:6"}) == bounds({"--drop-parts", "2"}));
  CHECK(bounds({"--keep-parts", "2"}) == bounds({}));
  for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{{"--crop", "1,2,3"},
                                                                                     {"--turn", "y45"},
                                                                                     {"--mirror", "w"},
                                                                                     {"--scale", "0"},
                                                                                     {"--lod", "x"},
                                                                                     {"--hollow", "0"},
                                                                                     {"--fill", "300"},
                                                                                     {"--materials", "0"},
                                                                                     {"--grow", "0"},
                                                                                     {"--grow", "1:7"},
                                                                                     {"--erode", "1:"},
                                                                                     {"--drop-parts", ":6"},
                                                                                     {"--keep-parts", "0"},
                                                                                     {"--split", "parts:8"},
                                                                                     {"--split", "modls"},
                                                                                     {"--merge", "--union"}}) {
    std::vector<std::string> words{"convert", a, "-o", (dir / "wrong.quarry").string()};
    words.insert(words.end(), wrong.begin(), wrong.end());
    const Outcome outcome = run_quarry(words);
    INFO(wrong[0]);
    CHECK(outcome.code == 2);
    CHECK(has(outcome.err, "quarry convert: "));
  }
}

TEST_CASE("convert: inputs are merged, joined, intersected and taken from one another; a scene is split into files") {
  const fs::path dir = scratch_dir("convert-sets");
  const std::string a =
      write_bytes(dir / "a.vox", VoxBuilder().model(4, 4, 4, {{0, 0, 0, 1}, {1, 0, 0, 2}, {3, 3, 3, 3}}).bytes());
  const std::string b = write_bytes(dir / "b.vox", VoxBuilder().model(4, 4, 4, {{1, 0, 0, 9}, {2, 2, 2, 4}}).bytes());
  const auto voxels = [&](const char* step) {
    const Outcome outcome = run_quarry({"convert", a, b, step, "-o", (dir / "out.quarry").string(), "--overwrite"});
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    return info(dir / "out.quarry")["voxels"].get<int>();
  };
  CHECK(voxels("--merge") == 4);
  CHECK(info(dir / "out.quarry")["instances"] == 2);
  CHECK(voxels("--union") == 4);
  CHECK(info(dir / "out.quarry")["instances"] == 1);
  CHECK(voxels("--intersection") == 1);
  CHECK(voxels("--difference") == 2);
  REQUIRE(run_quarry({"convert", a, "-o", (dir / "parts/{stem}_{part}.vox").string(), "--split", "colours"}).code == 0);
  CHECK(names_below(dir / "parts") == std::set<std::string>{"a_colour-1.vox", "a_colour-2.vox", "a_colour-3.vox"});
  CHECK(info(dir / "parts" / "a_colour-2.vox")["voxels"] == 1);
  REQUIRE(run_quarry({"convert", a, "-o", (dir / "loose/{stem}_{part}.quarry").string(), "--split", "parts:6"}).code ==
          0);
  CHECK(names_below(dir / "loose") == std::set<std::string>{"a_part-1.quarry", "a_part-2.quarry"});
  CHECK(info(dir / "loose" / "a_part-1.quarry")["voxels"] == 2);
  REQUIRE(run_quarry(
              {"convert", a, b, "-o", (dir / "regions").string(), "--to", "quarry", "--merge", "--split", "regions:2"})
              .code == 0);
  CHECK(names_below(dir / "regions") == std::set<std::string>{"a--1_-1_0.quarry", "a-0_0_-1.quarry"});
  // Existing parts are not replaced.
  CHECK(run_quarry({"convert", a, "-o", (dir / "parts/{stem}_{part}.vox").string(), "--split", "colours"}).code == 1);
}

TEST_CASE("convert: what the output cannot hold is counted and said, and --strict refuses it") {
  const fs::path dir = scratch_dir("convert-loss");
  const std::string a = write_bytes(dir / "a.vox", VoxBuilder(200)
                                                       .model(2, 2, 2, {{0, 0, 0, 1}})
                                                       .model(2, 2, 2, {{0, 0, 0, 2}, {1, 0, 0, 2}})
                                                       .transform(0, 1, {{}})
                                                       .group(1, {2, 4})
                                                       .transform(2, 3, {{{"_t", "10 0 0"}}}, {{"_name", "door"}})
                                                       .shape(3, {{0, {}}})
                                                       .transform(4, 5, {{}}, {{"_hidden", "1"}})
                                                       .shape(5, {{1, {}}})
                                                       .bytes());
  const Outcome lossy = run_quarry({"convert", a, "-o", (dir / "a.ply").string(), "--json"});
  INFO(lossy.err);
  REQUIRE(lossy.code == 0);
  const json finished = events(lossy.out)[1];
  std::map<std::string, int> losses;
  for (const json& loss : finished["losses"]) losses[loss["kind"]] = loss["count"];
  CHECK(losses["hidden_instances"] == 1);
  CHECK(losses["names"] >= 1);
  CHECK(has(lossy.err, "warning: not kept: 1 hidden instance (2 voxels)"));
  const Outcome strict = run_quarry({"convert", a, "-o", (dir / "b.ply").string(), "--strict"});
  CHECK(strict.code == 1);
  CHECK(has(strict.err, "--strict"));
  CHECK(has(strict.err, "1 hidden instance"));
  CHECK_FALSE(fs::exists(dir / "b.ply"));
  const Outcome kept = run_quarry({"convert", a, "-o", (dir / "b.vox").string(), "--strict"});
  CHECK(kept.code == 0);
  CHECK(kept.err.empty());
}

TEST_CASE("convert: a .png is the view from above or a height map that reads back; --slices gives every layer") {
  const fs::path dir = scratch_dir("convert-png");
  const fs::path in = dir / "hill.quarry";
  REQUIRE(run_quarry({"generate", "terrain", "--size", "64", "-o", in.string()}).code == 0);
  const json world = info(in);
  const auto edge = [&](int axis) {
    return world["max"][axis].get<uint32_t>() - world["min"][axis].get<uint32_t>() + 1;
  };
  REQUIRE(run_quarry({"convert", in.string(), "-o", (dir / "top.png").string()}).code == 0);
  const auto top = engine::read_png(dir / "top.png");
  REQUIRE(top);
  CHECK(top->width == edge(0));
  CHECK(top->height == edge(2));
  REQUIRE(run_quarry({"convert", in.string(), "-o", (dir / "height.png").string(), "--picture", "height"}).code == 0);
  // Read again, the columns are as high as the highest voxels were.
  const fs::path back = dir / "back.quarry", back_height = dir / "again.png";
  REQUIRE(run_quarry({"convert", (dir / "height.png").string(), "-o", back.string()}).code == 0);
  REQUIRE(run_quarry({"convert", back.string(), "-o", back_height.string(), "--picture", "height"}).code == 0);
  CHECK(file_text(back_height) == file_text(dir / "height.png"));
  REQUIRE(run_quarry({"convert", in.string(), "-o", (dir / "layers").string(), "--slices"}).code == 0);
  CHECK(names_below(dir / "layers").size() == edge(1));
  uint64_t pixels = 0;
  for (const auto& entry : fs::directory_iterator(dir / "layers")) {
    const auto layer = engine::read_png(entry.path());
    REQUIRE(layer);
    for (size_t i = 3; i < layer->rgba.size(); i += 4) pixels += layer->rgba[i] > 0;
  }
  CHECK(pixels == world["voxels"].get<uint64_t>());
  CHECK(run_quarry({"convert", in.string(), "-o", (dir / "layers").string(), "--slices"}).code == 1);
  CHECK(run_quarry({"convert", in.string(), "-o", (dir / "x.ply").string(), "--picture", "height"}).code == 2);
}

TEST_CASE("convert: the size of a voxel and the place in the source's units go where a format holds them") {
  const fs::path dir = scratch_dir("convert-units");
  std::ofstream(dir / "t.obj") << "v 10 0 0\nv 14 0 0\nv 10 2 0\nf 1 2 3\n";
  const auto to = [&](const fs::path& from, const char* name, std::vector<std::string> more = {}) {
    std::vector<std::string> words{"convert", from.string(), "-o", (dir / name).string()};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = run_quarry(words);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    return dir / name;
  };
  const fs::path world = to(dir / "t.obj", "t.quarry", {"--voxel-size", "0.5"});
  const json reported = info(world);
  CHECK(reported["metadata"]["voxel_size"] == "0.5");
  // The first voxel's corner, transformed back, is at or just below the mesh's own.
  double origin[3] = {0, 0, 0};
  std::istringstream(reported["metadata"]["origin"].get<std::string>()) >> origin[0] >> origin[1] >> origin[2];
  const double low_x = origin[0] + reported["min"][0].get<int>() * 0.5;
  CHECK(low_x <= 10);
  CHECK(low_x > 9);
  const json again = info(to(to(world, "t.nrrd"), "back.quarry"));
  CHECK(again["metadata"]["voxel_size"] == "0.5");
  CHECK(again["metadata"]["origin"] == reported["metadata"]["origin"]);
  CHECK(again["pos_sum"] == reported["pos_sum"]);
  CHECK(has(file_text(to(world, "t.glb")), "\"voxel_size\":0.5"));
  CHECK(has(file_text(to(world, "t.ply")), "comment voxel_size 0.5, origin "));
  CHECK(has(file_text(to(world, "half.quarry", {"--lod", "1"})), "origin"));
  CHECK(info(dir / "half.quarry")["metadata"]["voxel_size"] == "1");
}

TEST_CASE(
    "convert: --salvage alone reads damaged files, says what is lost, and with --strict writes nothing and exits with "
    "3") {
  const fs::path dir = scratch_dir("convert_salvage");
  auto bytes = VoxBuilder().model(4, 4, 4, {{0, 0, 0, 1}, {1, 2, 3, 9}}).model(4, 4, 4, {{3, 3, 3, 5}}).bytes();
  bytes.resize(bytes.size() - 2);
  const std::string file = write_bytes(dir / "cut.vox", bytes), out = (dir / "out.quarry").string();
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"convert", file, "-o", out}, {"info", file}, {"validate", file}}) {
    const auto refused = run_quarry(words);
    CHECK(refused.code == 1);
    CHECK(has(refused.err, "quarry convert --salvage"));
  }
  CHECK_FALSE(fs::exists(out));
  const auto strict = run_quarry({"convert", "--salvage", "--strict", file, "-o", out});
  CHECK(strict.code == 3);
  CHECK_FALSE(fs::exists(out));
  const auto saved = run_quarry({"convert", "--salvage", "--json", file, "-o", out});
  CHECK(saved.code == 0);
  const auto list = events(saved.out);
  REQUIRE(list.size() == 3);
  CHECK(list[1].at("event") == "finished");
  std::map<std::string, uint64_t> lost;
  for (const json& loss : list[1].at("losses")) lost[loss.at("kind")] = loss.at("count");
  CHECK(lost["bytes_cut_off"] == 2);
  CHECK(lost["damaged_models"] == 1);
  CHECK_FALSE(list[1].at("warnings").empty());
  CHECK(info(out).at("models") == 2);
}

TEST_CASE(
    "convert: a world with a damaged log of edits fails everywhere with the way out, --salvage reads it, and "
    "no command changes either file") {
  const fs::path dir = scratch_dir("convert_log");
  const fs::path live = dir / "live.quarry", file = dir / "world.quarry", log = dir / "world.quarry-wal";
  Scene scene;
  scene.volumes.resize(1);
  for (int32_t x = 0; x < 100; ++x) scene.volumes[0].bricks.set({x, 0, 0}, uint8_t(1 + x % 200));
  scene.instances.resize(1);
  REQUIRE(io::Store::save(scene, live));
  {
    auto store = io::Store::open(live);
    REQUIRE(store);
    for (int i = 0; i < 6; ++i) {
      scene.palette.materials[1].r = uint8_t(i);
      REQUIRE(store->commit_palette(scene.palette));
    }
    fs::copy_file(live, file);
    fs::copy_file(live.string() + "-wal", log);
  }
  std::vector<uint8_t> bytes = file_bytes(log);
  bytes[32 + 24 + 500] ^= 4;
  write_bytes(log, bytes);
  const auto database = file_bytes(file);
  const std::string out = (dir / "out.glb").string();
  for (const std::vector<std::string>& words : {std::vector<std::string>{"info", file},
                                                {"validate", file},
                                                {"diff", file, live},
                                                {"convert", file, "-o", out},
                                                {"render", file, "-o", (dir / "p.png").string()}}) {
    const auto refused = run_quarry(words);
    INFO(words[0] << ": " << refused.err);
    CHECK(refused.code == (words[0] == "diff" ? 2 : 1));
    CHECK(has(refused.err, "world.quarry-wal, is damaged"));
    CHECK(has(refused.err, "quarry convert --salvage"));
  }
  const auto saved = run_quarry({"convert", "--salvage", file, "-o", out});
  CHECK(saved.code == 0);
  CHECK(has(saved.err, "are damaged"));
  CHECK(file_bytes(file) == database);
  CHECK(file_bytes(log) == bytes);
  // When the world is replaced, its damaged log is removed with it, and a warning says so. --strict leaves both.
  const fs::path copy = dir / "copy.quarry", copy_log = dir / "copy.quarry-wal";
  fs::copy_file(file, copy);
  fs::copy_file(log, copy_log);
  const auto strict = run_quarry({"convert", live, "-o", copy, "--overwrite", "--strict"});
  CHECK(strict.code == 1);
  CHECK(
      has(strict.err, "takes away edits beside it: the log of the last edits beside it, copy.quarry-wal, is damaged"));
  CHECK(file_bytes(copy_log) == bytes);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"convert", live, "-o", copy, "--overwrite"},
                                                {"generate", "spheres", "--size", "32", "-o", copy, "--overwrite"}}) {
    fs::copy_file(file, copy, fs::copy_options::overwrite_existing);
    fs::copy_file(log, copy_log, fs::copy_options::overwrite_existing);
    const auto replaced = run_quarry(words);
    CHECK(replaced.code == 0);
    CHECK(has(replaced.err,
              "warning: replacing the world " + copy.string() +
                  " takes away edits beside it: the log of the last edits beside it, copy.quarry-wal, is damaged"));
    CHECK(!fs::exists(copy_log));
    CHECK(run_quarry({"validate", "--strict", copy}).code == 0);
    const auto quiet = run_quarry({"convert", live, "-o", copy, "--overwrite"});
    CHECK(!has(quiet.err, "takes away"));
  }
  // The last page of the log is cut, as a killed writer leaves it. The world is read, and a warning says that an edit
  // may be missing.
  bytes = file_bytes(log);
  bytes[32 + 24 + 500] ^= 4;
  bytes.resize(bytes.size() - 100);
  write_bytes(log, bytes);
  const auto reported = run_quarry({"validate", file});
  CHECK(reported.code == 0);
  CHECK(has(reported.err, "ends in an edit that is not whole"));
  CHECK(run_quarry({"validate", "--strict", file}).code == 1);
}

TEST_CASE("convert: colours that an earlier conversion gave up are no loss of a later one") {
  const fs::path dir = scratch_dir("convert_old_loss");
  Scene scene;
  scene.volumes.resize(1);
  scene.volumes[0].bricks.set({0, 0, 0}, 3);
  scene.instances.resize(1);
  scene.metadata["palette_distinct"] = "400";
  scene.metadata["palette_rms_error"] = "1.5";
  REQUIRE(io::Store::save(scene, dir / "a.quarry"));
  for (const char* to : {"b.vox", "b.quarry"}) {
    const auto outcome = run_quarry({"convert", "--strict", dir / "a.quarry", "-o", dir / to});
    INFO(outcome.err);
    CHECK(outcome.code == 0);
    CHECK_FALSE(has(outcome.err, "colours"));
  }
  CHECK(info(dir / "b.quarry")["metadata"]["palette_distinct"] == "400");
}

TEST_CASE("convert: --lod-levels writes coarser files beside the whole, meshes in the same place and size") {
  const fs::path dir = scratch_dir("convert_lods");
  std::vector<VoxBuilder::Voxel> voxels;
  for (uint8_t x = 0; x < 16; ++x)
    for (uint8_t y = 0; y < 16; ++y)
      for (uint8_t z = 0; z < 8; ++z) voxels.push_back({x, y, z, 7});
  const std::string file = write_bytes(dir / "box.vox", VoxBuilder().model(16, 16, 8, voxels).bytes());
  for (const char* to : {"obj", "vox"})
    REQUIRE(run_quarry({"convert", file, "-o", (dir / "out").string(), "--to", to, "--lod-levels", "2"}).code == 0);
  CHECK(names_below(dir / "out") == std::set<std::string>{"box.mtl", "box.obj", "box.vox", "box_lod1.mtl",
                                                          "box_lod1.obj", "box_lod1.vox", "box_lod2.mtl",
                                                          "box_lod2.obj", "box_lod2.vox"});
  const auto bounds = [&](const char* name) {
    std::array<double, 6> box{1e9, 1e9, 1e9, -1e9, -1e9, -1e9};
    std::ifstream in(dir / "out" / name);
    size_t corners = 0;
    for (std::string word; in >> word;) {
      double p[3];
      if (word != "v" || !(in >> p[0] >> p[1] >> p[2])) continue;
      ++corners;
      for (size_t a = 0; a < 3; ++a) box[a] = std::min(box[a], p[a]), box[3 + a] = std::max(box[3 + a], p[a]);
    }
    CHECK(corners == 8);
    return box;
  };
  CHECK(bounds("box_lod1.obj") == bounds("box.obj"));
  CHECK(bounds("box_lod2.obj") == bounds("box.obj"));
  CHECK(info(dir / "out/box.vox").at("voxels") == 2048);
  CHECK(info(dir / "out/box_lod1.vox").at("voxels") == 256);
  CHECK(info(dir / "out/box_lod2.vox").at("voxels") == 32);
  // An existing output stops the job before anything is written.
  fs::remove(dir / "out/box.obj");
  const auto taken = run_quarry({"convert", file, "-o", (dir / "out/box.obj").string(), "--lod-levels", "1"});
  CHECK(taken.code == 1);
  CHECK_FALSE(fs::exists(dir / "out/box.obj"));
}

}  // namespace convert_test
