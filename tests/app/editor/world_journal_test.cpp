// SPDX-License-Identifier: Apache-2.0
// world_journal_test.cpp - the program's commands next to a world's journal. A log that was written for another state
// of the file is ignored by all of them. None changes a byte by reading, and the editor sets the log aside. Version
// 0.1.1 applied such edits to a restored backup, and truncated another world that was put in its place.
#include <signal.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "tests/app/program_output.hpp"
#include "tests/file_bytes.hpp"
#include "voxel/io/quarry/store.hpp"

namespace world_journal_test {

using namespace quarry;
using namespace quarry::test;
namespace fs = std::filesystem;

namespace {

// Small enough to force regions, and more than the program itself uses.
#if defined(__SANITIZE_ADDRESS__)
constexpr const char* kRegionsMemory = "300M";
#else
constexpr const char* kRegionsMemory = "64M";
#endif

std::map<std::string, std::vector<uint8_t>> all_files(const fs::path& dir) {
  std::map<std::string, std::vector<uint8_t>> bytes;
  for (const std::string& name : names_in(dir)) bytes[name] = file_bytes(dir / name);
  return bytes;
}

fs::path with_suffix(const fs::path& file, const char* suffix) { return file.string() + suffix; }

// A world, the files that its killed editor left, and another world that is larger.
struct Killed {
  fs::path dir, backup, larger;
  std::vector<uint8_t> log;
  explicit Killed(const std::string& name)
      : dir(scratch_dir(name)), backup(dir / "backup.quarry"), larger(dir / "larger.quarry") {
    const fs::path live = dir / "live.quarry";
    REQUIRE(run_quarry({"generate", "spheres", "--size", "32", "-o", backup.string()}).code == 0);
    REQUIRE(run_quarry({"generate", "terrain", "--size", "64", "-o", larger.string()}).code == 0);
    fs::copy_file(backup, live);
    auto store = io::Store::open(live);
    REQUIRE(store);
    Palette palette = Palette::standard();
    palette.names[7] = "edited";
    REQUIRE(store->commit_palette(palette));
    log = file_bytes(with_suffix(live, "-wal"));
  }
  // A folder with one of the worlds, and the log next to it.
  fs::path restored(const char* folder, const fs::path& world) const {
    fs::create_directory(dir / folder);
    fs::copy_file(world, dir / folder / "w.quarry");
    write_bytes(dir / folder / "w.quarry-wal", log);
    return dir / folder / "w.quarry";
  }
};

uint64_t voxels_of(const fs::path& file) { return info(file).at("flat_visible").get<uint64_t>(); }

}  // namespace

TEST_CASE("world journal: no command applies a log of another state, all say so, and none changes a file by reading") {
  const Killed killed("program_journal");
  const fs::path out = killed.dir / "out";
  fs::create_directory(out);
  for (const auto& [folder, world] : {std::pair("same", killed.backup), std::pair("other", killed.larger)}) {
    const fs::path file = killed.restored(folder, world);
    const auto before = all_files(file.parent_path());
    const std::string plain = run_quarry({"info", world, "--json"}).out, name = (out / folder).string();
    std::vector<std::vector<std::string>> commands{
        {"info", file},
        {"validate", file},
        {"diff", file, world},
        {"convert", file, "-o", name + ".vox"},
        {"convert", file, "-o", name + ".quarry"},
        {"convert", "--salvage", file, "-o", name + "-saved.quarry"},
        {"convert", file, "-o", name + "-regions.quarry", "--memory", kRegionsMemory}};
    if (can_render()) commands.push_back({"render", file, "-o", name + ".png", "--size", "64x64"});
    for (const auto& words : commands) {
      const Outcome outcome = run_quarry(words);
      INFO(words[0] << ": " << outcome.err);
      CHECK(outcome.code == 0);
      CHECK(has(outcome.err,
                "the log beside it was not applied: it is of another state of this world, or of another world"));
      CHECK(has(outcome.err, "the file was closed since it was last edited"));
      CHECK((all_files(file.parent_path()) == before));
    }
    CHECK(info(file).at("flat_visible") == info(world).at("flat_visible"));
    for (const char* made : {".quarry", "-saved.quarry", "-regions.quarry"})
      CHECK(run_quarry({"diff", name + made, world}).code == 0);
    CHECK(run_quarry({"validate", "--strict", file}).code == 1);
    CHECK((all_files(file.parent_path()) == before));
  }
}

TEST_CASE(
    "world journal: a world that is made where a log lies without a file keeps that log under another name and says "
    "which") {
  const Killed killed("program_journal_orphan");
  const fs::path dir = killed.dir / "place", file = dir / "w.quarry";
  fs::create_directory(dir);
  int number = 0;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"generate", "spheres", "--size", "32", "-o", file},
        {"convert", killed.larger, "-o", file}}) {
    fs::remove(file);
    write_bytes(with_suffix(file, "-wal"), killed.log);
    const std::string quarantined = "w.quarry-wal.of-another-state-" + std::to_string(++number);
    const Outcome made = run_quarry(words);
    INFO(words[0] << ": " << made.err);
    CHECK(made.code == 0);
    CHECK(has(made.err, "is kept under the name " + quarantined));
    CHECK((file_bytes(dir / quarantined) == killed.log));
    CHECK_FALSE(fs::exists(with_suffix(file, "-wal")));
    CHECK(run_quarry({"validate", "--strict", file}).code == 0);
  }
  // A file that is replaced while a foreign log is next to it.
  write_bytes(with_suffix(file, "-wal"), killed.log);
  const Outcome replaced = run_quarry({"generate", "spheres", "--size", "32", "-o", file, "--overwrite"});
  CHECK(replaced.code == 0);
  CHECK(has(replaced.err, "w.quarry-wal.of-another-state-3"));
  CHECK((file_bytes(dir / "w.quarry-wal.of-another-state-3") == killed.log));
}

TEST_CASE(
    "world journal: the editor opens a backup that was restored beside a killed editor's log as the backup, "
    "says so, and refuses a damaged one without a byte changed") {
  const InvisibleDisplay display(640, 480);
  if (display.name().empty()) return skip("no Xvfb for the editor's window");
  if (!can_render()) return;
  const Killed killed("program_journal_edit");
  const std::map<std::string, std::string> environment{
      {"DISPLAY", display.name()}, {"WAYLAND_DISPLAY", ""}, {"XDG_STATE_HOME", (killed.dir / "state").string()}};
  const auto edit = [&](const fs::path& file, const std::string& script) {
    std::ofstream(killed.dir / "script.txt") << script;
    return std::vector<std::string>{"edit",    file.string(), "--size",
                                    "640x480", "--script",    (killed.dir / "script.txt").string()};
  };
  // A real editor is killed after two edits.
  const fs::path world = killed.dir / "world.quarry";
  fs::copy_file(killed.backup, world);
  {
    auto words = edit(world, "sphere add 10 20 0 6 79\nbox add -8 20 -8 -4 24 -4 80\nwait 100000\n");
    words.insert(words.begin(), quarry_program().string());
    Process editor(words, environment);
    REQUIRE(editor.wait_for_output("ok 2:", 120));
    editor.signal(SIGKILL);
    editor.finish(20);
  }
  const auto log = file_bytes(with_suffix(world, "-wal"));
  REQUIRE(log.size() > 4096);
  for (const fs::path& other : {killed.backup, killed.larger}) {
    const fs::path file = killed.restored(other.stem().c_str(), other);
    write_bytes(with_suffix(file, "-wal"), log);
    const Outcome opened = run_quarry(edit(file, "quit\n"), environment, 240);
    INFO(opened.err);
    CHECK(opened.code == 0);
    CHECK(has(opened.err, "the log beside it was not applied"));
    CHECK(has(opened.err, "It was set aside and is called w.quarry-wal.of-another-state-1 now"));
    CHECK(names_in(file.parent_path()) == std::vector<std::string>{"w.quarry", "w.quarry-wal.of-another-state-1"});
    CHECK((file_bytes(with_suffix(file, "-wal.of-another-state-1")) == log));
    CHECK(run_quarry({"diff", file, other}).code == 0);
    CHECK(fs::file_size(file) == fs::file_size(other));
    CHECK(run_quarry({"validate", "--strict", file}).code == 0);
  }
  // With its own log, the edits are there.
  const Outcome back = run_quarry(edit(world, "quit\n"), environment, 240);
  CHECK(back.code == 0);
  CHECK_FALSE(has(back.err, "warning"));
  CHECK_FALSE(fs::exists(with_suffix(world, "-wal")));
  CHECK(voxels_of(world) > voxels_of(killed.backup));
  // Saved where a log exists without its file.
  const fs::path made = killed.dir / "made.quarry";
  write_bytes(with_suffix(made, "-wal"), log);
  const Outcome saved = run_quarry(edit(world, "save " + made.string() + "\nquit\n"), environment, 240);
  INFO(saved.err);
  CHECK(saved.code == 0);
  CHECK(has(saved.err, "is kept under the name made.quarry-wal.of-another-state-1"));
  CHECK((file_bytes(with_suffix(made, "-wal.of-another-state-1")) == log));
  CHECK(run_quarry({"diff", made, world}).code == 0);
  CHECK(run_quarry({"validate", "--strict", made}).code == 0);
  // A damaged file is refused, and everything stays as it was.
  const fs::path corrupt = killed.restored("hurt", killed.larger);
  auto bytes = file_bytes(corrupt);
  bytes[bytes.size() / 2] ^= 4;
  write_bytes(corrupt, bytes);
  const auto before = all_files(corrupt.parent_path());
  const Outcome refused = run_quarry(edit(corrupt, "quit\n"), environment, 240);
  INFO(refused.err);
  CHECK(refused.code == 1);
  CHECK(has(refused.err, "damaged"));
  CHECK(has(refused.err, "w.quarry-wal"));
  CHECK((all_files(corrupt.parent_path()) == before));
}

}  // namespace world_journal_test
