// SPDX-License-Identifier: Apache-2.0
// convert_memory_test.cpp - `quarry convert --memory`: an input that does not fit is converted region by region, to the
// same bytes and within the given memory, or the message says why it cannot.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/batch/tasks.hpp"
#include "tests/app/sanitized.hpp"
#include "tests/app/spawn.hpp"
#include "tests/test_data.hpp"
#include "tests/wavy_ball.hpp"

namespace convert_memory_test {

using namespace quarry;
using namespace quarry::test;
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}
std::vector<json> events(const std::string& out) {
  std::vector<json> list;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) list.push_back(json::parse(line));
  return list;
}
json event(const Outcome& outcome, const std::string& name) {
  for (const json& e : events(outcome.out))
    if (e["event"] == name) return e;
  return {};
}
size_t files_in(const fs::path& dir) {
  return size_t(std::distance(fs::directory_iterator(dir), fs::directory_iterator()));
}

// The folders "whole" and "parts" have the same files; then they are removed.
void same_files(const fs::path& dir) {
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(dir / "whole")) {
    INFO(entry.path());
    CHECK((bytes_of(entry.path()) == bytes_of(dir / "parts" / entry.path().filename())));
    ++files;
  }
  CHECK(files == files_in(dir / "parts"));
  fs::remove_all(dir / "whole");
  fs::remove_all(dir / "parts");
}

// The largest resident size of the program or of a child, each on its own, in bytes.
uint64_t peak_of(const std::vector<std::string>& words, int& code) {
  const pid_t child = fork();
  if (child == 0) {
    std::vector<char*> argv;
    const std::string program = quarry_program().string();
    argv.push_back(const_cast<char*>(program.c_str()));
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    std::freopen("/dev/null", "w", stdout);
    execv(program.c_str(), argv.data());
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return uint64_t(usage.ru_maxrss) * 1024;
}

}  // namespace

TEST_CASE(
    "convert: a mesh that does not fit --memory is converted region by region, to the same bytes, and that is said") {
  const fs::path dir = scratch_dir("convert-regions");
  const std::string ball = wavy_ball(dir / "ball.obj", 60, 0.4);
  for (const std::vector<std::string>& kind : {std::vector<std::string>{"--resolution", "700"},
                                               {"--resolution", "300", "--solid", "parity", "--surface", "6"}}) {
    const std::string memory = kSanitized ? "600M" : "48M";
    const auto words = [&](const std::string& out, std::vector<std::string> more) {
      std::vector<std::string> all{"convert", ball, "-o", (dir / out).string(), "--overwrite", "--executor", "host"};
      all.insert(all.end(), kind.begin(), kind.end());
      all.insert(all.end(), more.begin(), more.end());
      return all;
    };
    const Outcome whole = run_quarry(words("whole.quarry", {"--json", "--memory", "8G"}));
    CHECK(whole.code == 0);
    CHECK(event(whole, "started")["in_regions"] == false);
    CHECK(event(whole, "finished")["regions"] == 0);
    const Outcome planned = run_quarry(words("parts.quarry", {"--dry-run", "--memory", memory}));
    CHECK(planned.code == 0);
    const Outcome planned_json = run_quarry(words("parts.quarry", {"--dry-run", "--json", "--memory", memory}));
    const Outcome parts = run_quarry(words("parts.quarry", {"--json", "--memory", memory}));
    INFO(parts.err << parts.out);
    REQUIRE(parts.code == 0);
    if (kSanitized) {
      skip("how many regions: what the process holds says nothing under a sanitizer");
    } else {
      CHECK(has(planned.out, "region by region"));
      CHECK(event(planned_json, "planned")["in_regions"] == true);
      CHECK(event(parts, "started")["in_regions"] == true);
      CHECK(event(parts, "finished")["regions"] > 1);
    }
    CHECK(event(parts, "finished")["voxels"] == event(whole, "finished")["voxels"]);
    CHECK((bytes_of(dir / "parts.quarry") == bytes_of(dir / "whole.quarry")));
    for (const char* threads : {"1", "3"}) {
      CHECK(run_quarry(words("again.quarry", {"--memory", memory, "-j", threads})).code == 0);
      CHECK((bytes_of(dir / "again.quarry") == bytes_of(dir / "whole.quarry")));
    }
  }
}

TEST_CASE(
    "convert: --gpus has the devices that are there share a mesh's regions, to the same bytes; what is not there is "
    "said") {
  const fs::path dir = scratch_dir("convert-gpus");
  const std::string ball = wavy_ball(dir / "ball.obj", 40, 0.4);
  const auto run = [&](const std::string& out, std::vector<std::string> more) {
    std::vector<std::string> words{"convert", ball, "-o", (dir / out).string(), "--resolution", "500", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return run_quarry(words);
  };
  REQUIRE(run("host.quarry", {"--executor", "host"}).code == 0);
  const Outcome all = run("all.quarry", {"--gpus", "0"});
  INFO(all.err);
  REQUIRE(all.code == 0);
  CHECK(event(all, "started")["in_regions"] == true);
  CHECK((bytes_of(dir / "all.quarry") == bytes_of(dir / "host.quarry")));

  const Outcome wrong = run("wrong.quarry", {"--executor", "host", "--gpus", "2"});
  CHECK(wrong.code == 2);
  CHECK(has(wrong.err, "--gpus is for --executor cuda or auto"));
  const Outcome many = run("many.quarry", {"--executor", "cuda", "--gpus", "64"});
  CHECK(many.code == 1);
  CHECK(has(many.err, "ball.obj"));
  CHECK_FALSE(fs::exists(dir / "many.quarry"));

  const Outcome cuda = run("cuda.quarry", {"--executor", "cuda", "--gpus", "0"});
  if (cuda.code != 0) {
    CHECK((has(cuda.err, "CUDA") && !fs::exists(dir / "cuda.quarry")));
    return skip("no CUDA device to voxelise on");
  }
  CHECK(has(many.err, "64 CUDA devices were asked for"));
  CHECK(event(cuda, "finished")["regions"] > 1);
  CHECK((bytes_of(dir / "cuda.quarry") == bytes_of(dir / "host.quarry")));
}

TEST_CASE("convert: worlds, grids and meshes are made region by region, of meshes and of worlds") {
  if (kSanitized) return skip("what a process holds says nothing under a sanitizer");
  const fs::path dir = scratch_dir("convert-grids");
  const std::string ball = wavy_ball(dir / "ball.obj", 60, 0.4), world = (dir / "world.quarry").string();
  const auto made = [&](const std::string& from, const std::string& out, const char* memory) {
    const Outcome outcome = run_quarry({"convert", from, "-o", (dir / out).string(), "--resolution", "640",
                                        "--executor", "host", "--memory", memory, "--json"});
    INFO(outcome.err);
    CHECK(outcome.code == 0);
    return event(outcome, "finished");
  };
  CHECK(made(ball, "world.quarry", "8G")["regions"] == 0);
  for (const std::string& from : {ball, world})
    for (const std::string extension : {"quarry", "nrrd", "binvox", "glb"}) {
      INFO(from << " to " << extension);
      // The program's own pages count, and how many of them are in memory differs by some hundred KiB from build to
      // build: a MiB for that.
      const json whole = made(from, "whole." + extension, "8G"), parts = made(from, "parts." + extension,
                                                                              from == ball         ? "44M"
                                                                              : extension == "glb" ? "28M"
                                                                                                   : "20M");
      CHECK(whole["regions"] == 0);
      CHECK(parts["regions"] > 1);
      CHECK(parts["voxels"] == whole["voxels"]);
      CHECK(parts["losses"] == whole["losses"]);
      // A mesh contains the file's name, so both names have five letters.
      std::string one = bytes_of(dir / ("parts." + extension)), other = bytes_of(dir / ("whole." + extension));
      for (size_t at = 0; extension == "glb" && (at = one.find("\"parts\"", at)) != std::string::npos && at < 4096;)
        one.replace(at, 7, "\"whole\"");
      CHECK((one == other));
      fs::remove(dir / ("parts." + extension));
      fs::remove(dir / ("whole." + extension));
      CHECK(files_in(dir) == 2);
    }
}

TEST_CASE("convert: steps and levels of detail of what does not fit are made region by region, with the same bytes") {
  if (kSanitized) return skip("what a process holds says nothing under a sanitizer");
  const fs::path dir = scratch_dir("convert-steps");
  const std::string ball = wavy_ball(dir / "ball.obj", 60, 0.4), world = (dir / "world.quarry").string();
  REQUIRE(run_quarry({"convert", ball, "-o", world, "--resolution", "640", "--executor", "host"}).code == 0);
  const auto made = [&](const std::string& from, const fs::path& out, const std::vector<std::string>& steps,
                        const char* memory) {
    fs::create_directories(out.parent_path());
    std::vector<std::string> words{"convert",    from,   "-o",       out.string(), "--resolution", "640",
                                   "--executor", "host", "--memory", memory,       "--json"};
    words.insert(words.end(), steps.begin(), steps.end());
    const Outcome outcome = run_quarry(words);
    INFO(outcome.err);
    CHECK(outcome.code == 0);
    return event(outcome, "finished");
  };
  using Steps = std::vector<std::string>;
  for (const std::string& from : {ball, world})
    for (const auto& [extension, steps] :
         {std::pair<std::string, Steps>{"quarry",
                                        {"--grow", "1:26", "--turn", "y90", "--crop", "-200,0,-200,90,90,90"}},
          {"quarry", {"--hollow", "2", "--lod-levels", "2"}},
          {"quarry", {"--lod-levels", "1"}},
          {"glb", {"--scale", "1/2", "--mirror", "x", "--erode", "1", "--lod-levels", "1"}}}) {
      INFO(from << " to " << extension << " by " << steps[0]);
      const json whole = made(from, dir / "whole" / ("out." + extension), steps, "8G"),
                 parts = made(from, dir / "parts" / ("out." + extension), steps,
                              from == ball         ? "48M"
                              : extension == "glb" ? "32M"
                                                   : "22M");
      CHECK(whole["regions"] == 0);
      CHECK(parts["regions"] > 1);
      CHECK(parts["voxels"] == whole["voxels"]);
      CHECK(parts["bytes"] == whole["bytes"]);
      CHECK(parts["outputs"].size() == whole["outputs"].size());
      same_files(dir);
      CHECK(files_in(dir) == 2);
    }
}

TEST_CASE(
    "convert: fewer materials, several inputs and parts are made region by region, with the same bytes and losses") {
  if (kSanitized) return skip("what a process holds says nothing under a sanitizer");
  const fs::path dir = scratch_dir("convert-several");
  const std::string terrain = (dir / "terrain.quarry").string(), menger = (dir / "menger.quarry").string(),
                    ball = wavy_ball(dir / "ball.obj", 60, 0.4);
  REQUIRE(run_quarry({"generate", "terrain", "--size", "500", "-o", terrain}).code == 0);
  REQUIRE(run_quarry({"generate", "menger", "--size", "300", "-o", menger}).code == 0);
  const auto made = [&](const std::vector<std::string>& inputs, const std::string& out,
                        const std::vector<std::string>& steps, const char* memory, int code) {
    fs::create_directories(dir / fs::path(out).parent_path());
    std::vector<std::string> words{"convert",    "-o",   (dir / out).string(), "--resolution", "500",
                                   "--executor", "host", "--memory",           memory,         "--json"};
    words.insert(words.end(), inputs.begin(), inputs.end());
    words.insert(words.end(), steps.begin(), steps.end());
    const Outcome outcome = run_quarry(words);
    INFO(outcome.err << outcome.out);
    CHECK(outcome.code == code);
    return event(outcome, code == 0 ? "finished" : "failed");
  };
  struct Row {
    std::vector<std::string> inputs;
    std::string extension;
    std::vector<std::string> steps;
    const char* memory;
    int code = 0;
  };
  for (const Row& row :
       {Row{{terrain}, "quarry", {"--turn", "y90", "--materials", "3"}, "32M"},
        {{terrain, menger}, "quarry", {"--union", "--materials", "9"}, "32M"},
        {{terrain, ball, menger}, "quarry", {"--lod", "1", "--merge"}, "52M"},
        {{menger, terrain}, "nrrd", {"--difference"}, "44M"},
        {{terrain, menger}, "binvox", {"--intersection", "--mirror", "z"}, "44M"},
        {{terrain}, "quarry", {"--split", "regions:200", "--lod-levels", "1"}, "32M"},
        {{terrain, menger}, "quarry", {"--merge", "--split", "models"}, "32M"},
        {{terrain}, "nrrd", {"--materials", "3", "--split", "colours"}, "32M"},
        {{terrain, menger}, "vox", {"--merge", "--lod-levels", "1"}, "44M"},
        {{terrain, menger}, "vox", {"--materials", "9", "--union", "--split", "regions:200"}, "44M"},
        {{terrain, menger}, "png", {"--union", "--turn", "x90"}, "32M"},
        {{terrain}, "png", {"--picture", "height", "--lod-levels", "1"}, "24M"},
        {{terrain, menger}, "quarry", {"--difference", "--keep-parts", "5:6"}, "32M"},
        {{terrain}, "quarry", {"--erode", "2:26", "--drop-parts", "2"}, "32M"},
        {{menger, terrain}, "vox", {"--difference", "--drop-parts", "20:6", "--split", "parts:6"}, "44M"},
        {{terrain}, "nrrd", {"--split", "regions:300", "--strict"}, "32M", 1}}) {
    INFO(row.steps[0] << " to " << row.extension);
    const std::string out = "/out." + row.extension;
    const json whole = made(row.inputs, "whole" + out, row.steps, "8G", row.code),
               parts = made(row.inputs, "parts" + out, row.steps, row.memory, row.code);
    CHECK(parts["losses"] == whole["losses"]);
    if (row.code == 0) {
      CHECK(whole["regions"] == 0);
      CHECK(parts["regions"] > 1);
      CHECK(parts["voxels"] == whole["voxels"]);
      CHECK(parts["bytes"] == whole["bytes"]);
      CHECK(parts["outputs"].size() == whole["outputs"].size());
    } else {
      CHECK(parts["error"] == whole["error"]);
      CHECK(files_in(dir / "whole") == 0);
    }
    same_files(dir);
    CHECK(files_in(dir) == 3);
  }
}

TEST_CASE("convert: parts whose files have no name but {part} are made region by region, too") {
  if (kSanitized) return skip("what a process holds says nothing under a sanitizer");
  const fs::path dir = scratch_dir("convert-part-names");
  const std::string terrain = (dir / "terrain.quarry").string();
  REQUIRE(run_quarry({"generate", "terrain", "--size", "300", "-o", terrain}).code == 0);
  for (const auto& [place, memory] : {std::pair{"whole", "8G"}, {"parts", "24M"}}) {
    fs::create_directories(dir / place);
    const Outcome outcome =
        run_quarry({"convert", terrain, "-o", (dir / place / "{part}.quarry").string(), "--hollow", "1", "--keep-parts",
                    "3:6", "--split", "parts:6", "--memory", memory, "--json"});
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK((event(outcome, "finished")["regions"] > 0) == (place == std::string_view("parts")));
  }
  CHECK(files_in(dir / "whole") == 3);
  same_files(dir);
}

TEST_CASE("convert: the peak of a conversion region by region stays below --memory") {
  if (kSanitized) return skip("what a process holds says nothing under a sanitizer");
  const fs::path dir = scratch_dir("convert-peak");
  const std::string ball = wavy_ball(dir / "ball.obj", 60, 0.4);
  const std::vector<std::string> words{"convert",     ball,         "-o",   (dir / "out.quarry").string(),
                                       "--overwrite", "--executor", "host", "--resolution",
                                       "1800"};
  int code = 0;
  std::vector<std::string> whole = words, parts = words;
  for (const char* word : {"--memory", "8G"}) whole.emplace_back(word);
  for (const char* word : {"--memory", "64M"}) parts.emplace_back(word);
  const uint64_t whole_peak = peak_of(whole, code);
  CHECK(code == 0);
  const std::string bytes = bytes_of(dir / "out.quarry");
  const uint64_t parts_peak = peak_of(parts, code);
  CHECK(code == 0);
  CHECK((bytes_of(dir / "out.quarry") == bytes));
  INFO("as a whole " << whole_peak << ", region by region " << parts_peak);
  CHECK(whole_peak > 80u << 20);  // otherwise the test shows nothing
  CHECK(parts_peak < 64u << 20);
}

TEST_CASE("convert: what cannot be converted region by region says why when it does not fit") {
  const fs::path dir = scratch_dir("convert-whole");
  const std::string ball = wavy_ball(dir / "ball.obj", 60, 0.4);
  if (kSanitized) return skip("what a process holds says nothing under a sanitizer");
  const fs::path vox = dir / "ball.vox";
  REQUIRE(run_quarry({"convert", ball, "-o", vox.string(), "--executor", "host", "--resolution", "1200"}).code == 0);
  const Outcome whole =
      run_quarry({"convert", vox.string(), "-o", (dir / "a.quarry").string(), "--salvage", "--memory", "40M"});
  INFO(whole.err);
  CHECK(whole.code == 1);
  CHECK(has(whole.err, "MiB"));
  CHECK(has(whole.err,
            "it cannot be converted region by region: --salvage reads MagicaVoxel scene files as a whole (.quarry are "
            "not)"));
  fs::remove(vox);
  CHECK(files_in(dir) == 1);
  // The smallest possible region is one chunk.
  const Outcome least =
      run_quarry({"convert", ball, "-o", (dir / "d.quarry").string(), "--resolution", "2000", "--memory", "9M"});
  CHECK(least.code == 1);
  CHECK(has(least.err, "MiB"));
  CHECK(files_in(dir) == 1);
}

TEST_CASE("convert: stopped in the middle of its regions it leaves nothing; killed, what the next run removes") {
  const fs::path dir = scratch_dir("convert-stopped");
  const std::string ball = wavy_ball(dir / "ball.obj", 60, 0.4);
  for (const char* extension : {"quarry", "binvox"}) {
    Process process({quarry_program().string(), "convert", ball, "-o", (dir / "out").string() + "." + extension,
                     "--resolution", "6000", "--executor", "host", "--memory", kSanitized ? "800M" : "90M", "--json"});
    REQUIRE(process.started());
    REQUIRE(process.wait_for_output("started", 60));
    // Waits until it has begun to write; the temporary file's name does not matter.
    for (int i = 0; i < 600 && files_in(dir) < 2; ++i) usleep(20000);
    CHECK(files_in(dir) > 1);
    const bool kill = extension == std::string_view("binvox");
    process.signal(kill ? SIGKILL : SIGINT);
    if (!kill) process.signal(SIGINT);  // as timeout(1) does, and a terminal with a wrapper in its process group
    const Outcome outcome = process.finish(60);
    INFO(outcome.err);
    CHECK(outcome.code == (kill ? 128 + SIGKILL : 130));
    CHECK(files_in(dir) == (kill ? 2 : 1));
  }
  const Outcome next = run_quarry({"convert", ball, "-o", (dir / "small.quarry").string(), "--resolution", "32"});
  CHECK(next.code == 0);
  CHECK(has(next.err, "removed 1 unfinished file that a killed quarry had left there"));
  CHECK(files_in(dir) == 2);
}

TEST_CASE("run_batch: an item that the watch stops is begun again in its way that saves memory, if it has one") {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  app::BatchOptions options;
  options.threads = 2;
  options.memory_bytes = memory_in_use() + 200 * kMiB;
  std::vector<app::BatchItem> items(3);
  items[0].can_save_memory = items[1].can_save_memory = true;
  items[1].saves_memory = true;
  std::array<std::atomic<int>, 3> large{}, small{};
  const auto run = [&](size_t i, const app::ItemContext& context) -> Result<void> {
    ++(context.save_memory ? small : large)[i];
    if (i == 2 || context.save_memory) return {};
    const size_t bytes = 400 * kMiB;
    std::unique_ptr<char[]> held(new char[bytes]);
    for (size_t at = 0; at < bytes; at += 4096) {
      held[at] = 1;
      if (at % kMiB == 0) usleep(1500);
      if (context.cancel->load()) return fail(ErrorCode::cancelled, "stopped");
    }
    return {};
  };
  int good = 0;
  run_batch(items, options, run, [&](size_t, const Result<void>& result) { return good += result.has_value(), true; });
  CHECK(good == 3);
  CHECK(large[0] == 1);
  CHECK(small[0] == 1);
  CHECK(large[1] == 0);
  CHECK(small[1] == 1);
  CHECK(small[2] == 0);
}

}  // namespace convert_memory_test
