// SPDX-License-Identifier: Apache-2.0
// salvage_regions_test.cpp - `quarry convert --salvage --memory`: a damaged world that does not fit is salvaged region
// by region: the same bytes, the same losses and the same exit codes as of the whole scene, within the given memory.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "tests/app/sanitized.hpp"
#include "tests/app/spawn.hpp"
#include "tests/file_bytes.hpp"
#include "tests/test_data.hpp"
#include "voxel/io/quarry/store.hpp"

namespace salvage_regions_test {

using namespace quarry;
using namespace quarry::test;
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr size_t kPage = 4096;

json event(const Outcome& outcome, const std::string& name) {
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);)
    if (json e = json::parse(line); e["event"] == name) return e;
  return {};
}
size_t files_in(const fs::path& dir) {
  return size_t(std::distance(fs::directory_iterator(dir), fs::directory_iterator()));
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Overwrites the first page and some others.
void damage(const fs::path& file, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes = file_bytes(file);
  for (const size_t page : {size_t{0}, random() % (bytes.size() / kPage), random() % (bytes.size() / kPage),
                            random() % (bytes.size() / kPage)})
    for (size_t i = 0; i < kPage; ++i) bytes[page * kPage + i] = uint8_t(random());
  write_bytes(file, bytes);
}

std::string damaged_world(const fs::path& file, const char* scene, const char* size, uint32_t seed) {
  REQUIRE(run_quarry({"generate", scene, "--size", size, "-o", file.string()}).code == 0);
  damage(file, seed);
  return file.string();
}

// The program's largest resident size, in bytes. What wait4() says would be this process's own, if that is larger.
uint64_t peak_of(std::vector<std::string> words, int& code) {
  words.insert(words.begin(), quarry_program().string());
  const pid_t child = fork();
  if (child == 0) {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    std::freopen("/dev/null", "w", stdout);
    std::freopen("/dev/null", "w", stderr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  const std::string place = "/proc/" + std::to_string(child);
  uint64_t peak = 0;
  int status = 0;
  for (bool begun = false; waitpid(child, &status, WNOHANG) == 0; usleep(1000)) {
    std::error_code error;
    begun = begun || fs::read_symlink(place + "/exe", error) == fs::canonical(quarry_program());
    if (!begun) continue;
    uint64_t size = 0, resident = 0;
    std::ifstream(place + "/statm") >> size >> resident;
    peak = std::max(peak, resident * uint64_t(sysconf(_SC_PAGESIZE)));
  }
  code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return peak;
}

}  // namespace

TEST_CASE(
    "convert: a damaged world that does not fit --memory is salvaged region by region, with the same bytes, losses and "
    "exit codes") {
  if (kSanitized) return skip("what a process holds says nothing under a sanitizer");
  const fs::path dir = scratch_dir("salvage-regions");
  const std::string terrain = damaged_world(dir / "terrain.quarry", "terrain", "500", 3),
                    menger = damaged_world(dir / "menger.quarry", "menger", "300", 4);
  const std::vector<uint8_t> before = file_bytes(terrain);
  struct Row {
    std::vector<std::string> inputs;
    std::string extension;
    std::vector<std::string> steps;
    const char* memory = "32M";
    int code = 0;
  };
  const auto made = [&](const Row& row, const char* place, const char* memory) {
    fs::create_directories(dir / place);
    std::vector<std::string> words{"convert", "--salvage", "-o",  (dir / place / ("out." + row.extension)).string(),
                                   "--json",  "--memory",  memory};
    words.insert(words.end(), row.inputs.begin(), row.inputs.end());
    words.insert(words.end(), row.steps.begin(), row.steps.end());
    const Outcome outcome = run_quarry(words);
    INFO(outcome.err << outcome.out);
    CHECK(outcome.code == row.code);
    return event(outcome, row.code == 0 ? "finished" : "failed");
  };
  for (const Row& row : {Row{{menger}, "quarry", {}},
                         {{terrain}, "quarry", {"--lod-levels", "2"}},
                         {{terrain}, "vox", {}, "44M"},
                         {{terrain}, "nrrd", {}, "44M"},
                         {{menger}, "png", {"--turn", "x90"}},
                         {{menger}, "quarry", {"--hollow", "1", "--split", "regions:200"}},
                         {{terrain, menger}, "quarry", {"--union", "--materials", "9"}},
                         {{menger}, "quarry", {"--strict"}, "44M", 3},
                         {{menger}, "nrrd", {"--strict"}, "44M", 3},
                         {{menger}, "quarry", {"--crop", "0,0,0,99,99,99", "--strict"}, "32M", 3},
                         {{menger}, "nrrd", {"--split", "regions:200", "--strict"}, "32M", 3},
                         {{terrain, menger}, "nrrd", {"--union", "--strict"}, "44M", 3}}) {
    INFO(row.inputs[0] << " to " << row.extension << (row.steps.empty() ? "" : " " + row.steps[0]));
    const json whole = made(row, "whole", "8G"), parts = made(row, "parts", row.memory);
    CHECK(parts["losses"] == whole["losses"]);
    CHECK(parts["warnings"] == whole["warnings"]);
    if (row.code == 0) {
      CHECK_FALSE(whole["losses"].empty());
      CHECK(whole["regions"] == 0);
      CHECK(parts["regions"] > 1);
      for (const char* same : {"voxels", "bytes"}) CHECK(parts[same] == whole[same]);
    } else {
      CHECK(has(whole["error"], "are lost"));
      CHECK(parts["error"] == whole["error"]);
      CHECK(files_in(dir / "whole") == 0);
    }
    CHECK(files_in(dir / "parts") == files_in(dir / "whole"));
    for (const auto& entry : fs::directory_iterator(dir / "whole")) {
      INFO(entry.path());
      CHECK((file_bytes(entry.path()) == file_bytes(dir / "parts" / entry.path().filename())));
    }
    fs::remove_all(dir / "whole");
    fs::remove_all(dir / "parts");
    CHECK(files_in(dir) == 2);
  }
  CHECK((file_bytes(terrain) == before));
}

TEST_CASE("convert: salvage region by region keeps --memory, also of a world with a long history") {
  if (kSanitized) return skip("what a process holds says nothing under a sanitizer");
  const fs::path dir = scratch_dir("salvage-peak"), file = dir / "a.quarry", out = dir / "out.quarry";
  Scene scene;
  scene.volumes.resize(1);
  scene.instances.resize(1);
  REQUIRE(io::Store::save(scene, file));
  // Boxes of noise, which does not compress: the file is larger than the memory, and half of it is history.
  std::mt19937 random(7);
  {
    auto store = io::Store::open(file);
    REQUIRE(store);
    for (int edit = 0; edit < 6; ++edit) {
      UndoRecord record;
      record.label = "noise";
      for (int32_t b = 0; b < 24 * 24 * 24; ++b) {
        Brick brick;
        for (int32_t i = 0; i < 512; ++i) brick.set(i, uint8_t(1 + random() % 255));
        const Int3 at{edit * 24 + b / 576, b / 24 % 24, b % 24};
        BrickChange change;
        change.brick = at;
        change.after = BrickPool::loose().make(brick);
        scene.volumes[0].bricks.put(at, change.after);
        record.changes.push_back(std::move(change));
      }
      REQUIRE(store->commit_edit(scene, std::span(&record, 1)));
    }
  }
  damage(file, 8);
  constexpr uint64_t kBudget = uint64_t(64) << 20;
  REQUIRE(fs::file_size(file) > kBudget);
  int code = 0;
  const uint64_t whole = peak_of({"convert", file, "-o", out, "--salvage", "--memory", "8G"}, code);
  CHECK(code == 0);
  const std::vector<uint8_t> bytes = file_bytes(out);
  fs::remove(out);
  const uint64_t parts = peak_of({"convert", file, "-o", out, "--salvage", "--memory", "64M"}, code);
  CHECK(code == 0);
  CHECK((file_bytes(out) == bytes));
  INFO("as a whole " << whole << ", region by region " << parts);
  CHECK(whole > kBudget);  // otherwise the test shows nothing
  CHECK(parts < kBudget);
}

TEST_CASE(
    "convert: salvage region by region that is stopped, or has no room on the disk, leaves nothing; killed, what the "
    "next run removes") {
  if (kSanitized) return skip("what a process holds says nothing under a sanitizer");
  const fs::path dir = scratch_dir("salvage-stopped");
  const std::string world = damaged_world(dir / "a.quarry", "menger", "729", 5);
  const std::vector<uint8_t> before = file_bytes(world);
  // Into the output itself, and by way of a world beside it.
  for (const std::string out : {"out.quarry", "out.nrrd"}) {
    INFO(out);
    Process full({"/bin/sh", "-c", "ulimit -f 4000; exec \"$0\" convert \"$1\" -o \"$2\" --salvage --memory 64M",
                  quarry_program().string(), world, (dir / out).string()});
    const Outcome no_room = full.finish(120);
    INFO(no_room.err);
    CHECK(no_room.code == 1);
    CHECK(files_in(dir) == 1);
    for (const int signal : {SIGINT, SIGKILL}) {
      Process process({quarry_program().string(), "convert", world, "-o", (dir / out).string(), "--salvage", "--memory",
                       "64M", "--json"});
      REQUIRE(process.wait_for_output("started", 60));
      for (int i = 0; i < 6000 && files_in(dir) < 2; ++i) usleep(2000);
      CHECK(files_in(dir) > 1);
      process.signal(signal);
      const Outcome outcome = process.finish(60);
      INFO(outcome.err);
      CHECK(outcome.code == (signal == SIGKILL ? 128 + SIGKILL : 130));
      CHECK((files_in(dir) == 1) == (signal == SIGINT));
      CHECK_FALSE(fs::exists(dir / out));
    }
    const fs::path small = dir / "small.quarry";
    const Outcome next = run_quarry({"generate", "menger", "--size", "9", "-o", small.string()});
    CHECK(next.code == 0);
    fs::remove(small);
    CHECK(files_in(dir) == 1);
  }
  CHECK((file_bytes(world) == before));
}

}  // namespace salvage_regions_test
