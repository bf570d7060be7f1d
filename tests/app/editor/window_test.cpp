// SPDX-License-Identifier: Apache-2.0
// window_test.cpp - the editor's window on an invisible display: its contents, mouse and keys, and that no acknowledged
// edit is ever lost.
#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/pictures/png_file.hpp"
#include "tests/app/spawn.hpp"
#include "tests/file_bytes.hpp"
#include "tests/test_data.hpp"
#include "voxel/io/formats.hpp"
#include "voxel/io/quarry/store.hpp"

namespace window_test {

using namespace quarry;
using namespace quarry::test;
namespace fs = std::filesystem;

namespace {

constexpr int kWidth = 1000, kHeight = 680;

// The X server for all cases; empty without Xvfb.
const std::string& display() {
  static const InvisibleDisplay server(kWidth, kHeight);
  return server.name();
}

bool can_open_window() {
  if (display().empty()) {
    skip("no Xvfb for the editor's window");
    return false;
  }
  static const bool renders = run_quarry({"doctor"}).code == 0;
  if (!renders) skip("no Vulkan device for the editor's window");
  return renders;
}

struct Place {
  fs::path dir, world, recovery;
  std::map<std::string, std::string> environment() const {
    return {{"DISPLAY", display()}, {"WAYLAND_DISPLAY", ""}, {"XDG_STATE_HOME", (dir / "state").string()}};
  }
};

Place place_for(const std::string& name) {
  Place place;
  place.dir = scratch_dir(name);
  place.world = place.dir / "world.quarry";
  place.recovery = place.dir / "state" / "quarry" / "recovery";
  REQUIRE(run_quarry({"generate", "spheres", "--size", "48", "-o", place.world.string()}).code == 0);
  return place;
}

fs::path script_file(const Place& place, const std::string& text) {
  fs::path file = place.dir / "script.txt";
  std::ofstream(file) << text;
  return file;
}

std::vector<std::string> edit_words(const Place& place, const std::string& script,
                                    const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"edit"};
  if (std::find(more.begin(), more.end(), "--new") == more.end()) words.push_back(place.world.string());
  words.insert(words.end(), {"--size", std::to_string(kWidth) + "x" + std::to_string(kHeight), "--script",
                             script_file(place, script).string()});
  for (const std::string& word : more)
    if (word != "--new") words.push_back(word);
  return words;
}

Outcome run_script(const Place& place, const std::string& script, const std::vector<std::string>& more = {}) {
  return run_quarry(edit_words(place, script, more), place.environment(), 240);
}

struct Region {
  double x0, y0, x1, y1;  // as shares of the window
};
constexpr Region kScene{0.25, 0.1, 0.7, 0.9}, kTools{0, 0.05, 0.2, 0.9}, kStatistics{0.76, 0.05, 0.998, 0.45};

size_t colours_in(const engine::Picture& picture, const Region& region) {
  std::set<uint32_t> colours;
  for (auto y = uint32_t(region.y0 * picture.height); y < uint32_t(region.y1 * picture.height); ++y)
    for (auto x = uint32_t(region.x0 * picture.width); x < uint32_t(region.x1 * picture.width); ++x) {
      const uint8_t* p = &picture.rgba[(size_t(y) * picture.width + x) * 4];
      colours.insert(uint32_t(p[0]) << 16 | uint32_t(p[1]) << 8 | p[2]);
    }
  return colours.size();
}

// Counts the bright pixels on the dark panel, which are letters.
size_t letters_in(const engine::Picture& picture, const Region& region) {
  size_t bright = 0;
  for (auto y = uint32_t(region.y0 * picture.height); y < uint32_t(region.y1 * picture.height); ++y)
    for (auto x = uint32_t(region.x0 * picture.width); x < uint32_t(region.x1 * picture.width); ++x) {
      const uint8_t* p = &picture.rgba[(size_t(y) * picture.width + x) * 4];
      if (p[0] > 190 && p[1] > 190 && p[2] > 190) ++bright;
    }
  return bright;
}

size_t different(const engine::Picture& a, const engine::Picture& b, const Region& region) {
  size_t count = 0;
  for (auto y = uint32_t(region.y0 * a.height); y < uint32_t(region.y1 * a.height); ++y)
    for (auto x = uint32_t(region.x0 * a.width); x < uint32_t(region.x1 * a.width); ++x) {
      const size_t at = (size_t(y) * a.width + x) * 4;
      if (std::abs(a.rgba[at] - b.rgba[at]) + std::abs(a.rgba[at + 1] - b.rgba[at + 1]) +
              std::abs(a.rgba[at + 2] - b.rgba[at + 2]) >
          24)
        ++count;
    }
  return count;
}

struct Kept {
  uint64_t voxels;
  size_t history, position;
};
Kept kept_in(const fs::path& file) {
  std::vector<UndoRecord> history;
  size_t position = 0;
  const auto scene = io::Store::read(file, {}, &history, &position);
  REQUIRE(scene);
  const auto facts = scene_facts(*scene, Axes::y_up);
  REQUIRE(facts);
  return {facts->flat_all, history.size(), position};
}

}  // namespace

TEST_CASE("editor: shows the world, the tools and the statistics, and all change with an edit") {
  if (!can_open_window()) return;
  const Place place = place_for("editor-picture");
  const fs::path before = place.dir / "before.png", after = place.dir / "after.png", undone = place.dir / "undone.png";
  const Outcome outcome =
      run_script(place, "screenshot " + before.string() + "\nsphere add 0 16 0 14 3\nscreenshot " + after.string() +
                            "\nkey ctrl+z\nscreenshot " + undone.string() + "\nquit\n");
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(outcome.err.empty());
  const auto a = engine::read_png(before), b = engine::read_png(after), c = engine::read_png(undone);
  REQUIRE((a && b && c));
  CHECK(a->width == kWidth);
  CHECK(colours_in(*a, kScene) > 300);
  CHECK(letters_in(*a, kTools) > 100);
  CHECK(letters_in(*a, kStatistics) > 100);
  CHECK(different(*a, *b, kScene) > 3000);
  CHECK(different(*a, *b, kStatistics) > 30);  // the numbers
  CHECK(different(*a, *c, kScene) == 0);       // after undo the picture is the same, to the pixel
}

TEST_CASE(
    "editor: a table shows what the last edit took on the device, stage by stage, and times edits while it is open") {
  if (!can_open_window()) return;
  const Place place = place_for("editor-times");
  const auto picture = [&](const std::string& name) { return (place.dir / (name + ".png")).string(); };
  const std::string open_or_close = "click 770 579\n";
  const Outcome outcome =
      run_script(place,
                 "screenshot " + picture("closed") + "\n" + open_or_close + "screenshot " + picture("untimed") +
                     "\nsphere add 0 16 0 14 3\nscreenshot " + picture("timed") + "\n" + open_or_close +
                     "sphere add 0 30 0 14 4\n" + open_or_close + "screenshot " + picture("again") +
                     "\nsphere add 0 44 0 14 5\n" + "screenshot " + picture("anew") + "\nquit\n",
                 {"--home", "emulated"});
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  constexpr Region kStages{0.745, 0.868, 0.98, 0.955};  // three of them
  const auto shown = [&](const std::string& name) {
    auto png = engine::read_png(picture(name));
    REQUIRE(png);
    return *png;
  };
  const auto closed = shown("closed"), untimed = shown("untimed"), timed = shown("timed"), again = shown("again");
  CHECK(different(closed, untimed, kStages) > 100);
  CHECK(letters_in(untimed, kStages) < letters_in(timed, kStages));
  CHECK(letters_in(timed, kStages) > 50);
  CHECK(different(timed, again, kStages) == 0);  // the edit between them was not timed
  CHECK(different(timed, shown("anew"), kStages) > 0);
}

TEST_CASE("editor: a world that takes more than --gpu-memory is shown and edited as one that is there as a whole",
          "[shader-alone]") {
  if (!can_open_window()) return;
  const Place place = place_for("editor-in-parts");
  fs::remove(place.world);
  REQUIRE(run_quarry({"generate", "terrain", "--size", "512", "-o", place.world.string()}).code == 0);
  const fs::path copy = place.dir / "copy.quarry";
  fs::copy_file(place.world, copy);
  std::vector<engine::Picture> pictures;
  for (const char* const home : {"emulated", "host"}) {
    INFO(home);
    const auto picture = [&](const std::string& name) { return (place.dir / (name + home + ".png")).string(); };
    const Outcome outcome = run_script(place,
                                       "camera 40 30 260\nscreenshot " + picture("before") +
                                           "\nkey right\nsphere add 0 150 0 50 3\nscreenshot " + picture("after") +
                                           "\nkey ctrl+z\nscreenshot " + picture("undone") + "\nclick 400 300\nquit\n",
                                       {"--home", home, "--gpu-memory", "82M", "--validation"});
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    for (const char* const name : {"before", "after", "undone"}) {
      auto png = engine::read_png(picture(name));
      REQUIRE(png);
      pictures.push_back(std::move(*png));
    }
    if (home == std::string("emulated")) {
      fs::rename(place.world, place.dir / "edited.quarry");
      fs::rename(copy, place.world);
    }
  }
  CHECK(different(pictures[0], pictures[1], kScene) > 500);
  for (size_t i = 0; i < 3; ++i) CHECK(different(pictures[i], pictures[i + 3], kScene) == 0);
  CHECK(different(pictures[1], pictures[4], kStatistics) > 30);  // the pages that are there
  const Kept a = kept_in(place.dir / "edited.quarry"), b = kept_in(place.world);
  CHECK(a.voxels == b.voxels);
  CHECK(a.history == b.history);
  CHECK(a.position == b.position);
}

TEST_CASE("editor: a click adds at the voxel under the mouse, and keys choose the tool, undo and redo") {
  if (!can_open_window()) return;
  const Place place = place_for("editor-click");
  const Kept start = kept_in(place.world);
  // The middle of the window shows the middle of the scene.
  const Outcome outcome = run_script(place,
                                     "key w\nkey [\nkey [\nkey [\nkey [\n"  // cube of one voxel
                                     "click 480 360\nclick 480 400\nkey ctrl+z\nkey ctrl+y\nkey 2\nclick 430 380\n"
                                     "quit\n");
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const Kept now = kept_in(place.world);
  CHECK(now.history == 3);
  CHECK(now.position == 3);
  CHECK(now.voxels == start.voxels + 2 - 1);
}

TEST_CASE("editor: a volume grows, is eroded and combined with a file by script, each in one step") {
  if (!can_open_window()) return;
  const Place place = place_for("editor-volume");
  const fs::path copy = place.dir / "copy.quarry";
  fs::copy_file(place.world, copy);
  const Kept start = kept_in(place.world);
  const Outcome outcome =
      run_script(place, "sphere add 200 0 0 0 5\ndrop_parts 2\ngrow 2 26\nerode 1\ncombine subtract " + copy.string() +
                            "\ncombine unite " + copy.string() + "\nquit\n");
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(outcome.out.find("ok 6: combine unite") != std::string::npos);
  const Kept now = kept_in(place.world);
  CHECK(now.history == 6);
  CHECK(now.position == 6);
  CHECK(now.voxels > start.voxels);  // what was subtracted has come back, and about it is what it grew by
  const Outcome refused = run_script(place, "grow 2 7\n");
  CHECK(refused.code != 0);
  CHECK(refused.err.find("line 1: `grow 2 7`: 7 neighbours: 6, 18 or 26") != std::string::npos);
  CHECK(kept_in(place.world).voxels == now.voxels);
}

TEST_CASE("editor: dragging draws one stroke, the right button turns the view and edits nothing") {
  if (!can_open_window()) return;
  const Place place = place_for("editor-drag");
  const fs::path before = place.dir / "before.png", after = place.dir / "after.png";
  const Outcome outcome =
      run_script(place, "screenshot " + before.string() + "\ndrag 400 300 560 340 right\nscreenshot " + after.string() +
                            "\ntool paint sphere 2\nmaterial 5\ndrag 420 360 520 380\n"
                            "key ctrl+z\nquit\n");
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const auto a = engine::read_png(before), b = engine::read_png(after);
  REQUIRE((a && b));
  CHECK(different(*a, *b, kScene) > 3000);
  const Kept now = kept_in(place.world);
  CHECK(now.history >= 1);
  CHECK(now.position == 0);  // one Ctrl+Z took the whole stroke back
}

TEST_CASE("editor: debug views are chosen by key and by script") {
  if (!can_open_window()) return;
  const Place place = place_for("editor-views");
  const fs::path shaded = place.dir / "shaded.png", probes = place.dir / "probes.png", next = place.dir / "next.png";
  const Outcome outcome = run_script(place, "screenshot " + shaded.string() + "\nview probe_depth\nscreenshot " +
                                                probes.string() + "\nkey v\nscreenshot " + next.string() + "\nquit\n");
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const auto a = engine::read_png(shaded), b = engine::read_png(probes), c = engine::read_png(next);
  REQUIRE((a && b && c));
  CHECK(different(*a, *b, kScene) > 5000);
  CHECK(different(*b, *c, kScene) > 5000);
}

TEST_CASE("editor: light paths add up while nothing moves, begin anew after an edit, and are the same the next time") {
  if (!can_open_window()) return;
  const Place place = place_for("editor-paths");
  const fs::path quick = place.dir / "quick.png", traced = place.dir / "traced.png", edited = place.dir / "edited.png",
                 undone = place.dir / "undone.png";
  const Outcome outcome = run_script(place, "screenshot " + quick.string() + "\npaths 2\nscreenshot " +
                                                traced.string() + "\nsphere add 0 16 0 9 3\nscreenshot " +
                                                edited.string() + "\nundo\nscreenshot " + undone.string() + "\nquit\n");
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const auto a = engine::read_png(quick), b = engine::read_png(traced), c = engine::read_png(edited),
             d = engine::read_png(undone);
  REQUIRE((a && b && c && d));
  CHECK(different(*a, *b, kScene) > 5000);
  CHECK(different(*b, *c, kScene) > 1000);
  CHECK(different(*b, *d, kScene) == 0);
}

TEST_CASE("editor: a slider that is pressed, drawn and let go of at once ends where it was let go") {
  if (!can_open_window()) return;
  const Place place = place_for("editor-slider");
  const auto roughness = [&](const std::string& script) {
    const Outcome outcome = run_script(place, script + "quit\n");
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    const auto scene = io::Store::read(place.world);
    REQUIRE(scene);
    return scene->palette.materials[3].roughness;
  };
  const float pressed = roughness("material 3\ndrag 150 540 150 540\n"),
              drawn = roughness("material 3\ndrag 150 540 190 540\n"),
              back = roughness("material 3\ndrag 150 540 130 540\n");
  CHECK(pressed > 0.2f);
  CHECK(drawn > pressed + 0.1f);
  CHECK(back < pressed - 0.05f);
}

namespace {

// The submissions that the program logged since the last change of the picture.
struct Submissions {
  std::vector<std::array<uint32_t, 4>> tiles;  // of quick shading
  uint32_t width = 0, height = 0;
  double ms = 0;
  size_t path_tiles = 0;
};
Submissions submissions_in(const fs::path& log) {
  Submissions all;
  std::ifstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const auto entry = nlohmann::json::parse(line);
    if (entry.contains("frame") && entry["frame"]["rays"] > 0) all.tiles.clear(), all.ms = 0;
    if (!entry.contains("tile")) continue;
    const auto& tile = entry["tile"];
    if (tile["steps"] > 0) ++all.path_tiles;
    else {
      all.tiles.push_back({tile["x"], tile["y"], tile["width"], tile["height"]});
      all.width = tile["of"][0], all.height = tile["of"][1];
      all.ms += double(tile["ms"]);
    }
  }
  return all;
}

}  // namespace

TEST_CASE(
    "editor: tiles of a picture that is dropped leave nothing in the next one, and no submission is much of a "
    "slow picture") {
  if (!can_open_window()) return;
  const Place place = place_for("editor-tiles");
  const fs::path changed = place.dir / "changed.png", fresh = place.dir / "fresh.png", log = place.dir / "log";
  const auto run = [&](const std::string& script, const fs::path& picture) {
    auto environment = place.environment();
    environment["QUARRY_EDITOR_LOG"] = log.string();
    const Outcome outcome =
        run_quarry(edit_words(place, script + "move 4 4\nwait 4\ncamera 140 30\nframe\nscreenshot " + picture.string() +
                                         "\nquit\n"),
                   environment, 240);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
  };
  // The picture is dropped at its first tiles, in the middle, by an edit and its undo, by the mouse, and while light
  // paths are drawn.
  run("camera 20 10\nwait 3\ncamera 70 50\nwait 30\nsphere add 0 16 0 9 3\nwait 12\nundo\nwait 25\n"
      "drag 400 300 470 330 right\nwait 9\npaths 40\nwait 200\npaths 0\n",
      changed);
  const Submissions last = submissions_in(log);
  run("", fresh);
  const auto a = engine::read_png(changed), b = engine::read_png(fresh);
  REQUIRE((a && b));
  CHECK(colours_in(*a, kScene) > 300);
  size_t unlike = 0;
  for (auto y = uint32_t(kScene.y0 * a->height); y < uint32_t(kScene.y1 * a->height); ++y)
    for (auto x = uint32_t(kScene.x0 * a->width); x < uint32_t(kScene.x1 * a->width); ++x)
      unlike += !std::equal(&a->rgba[(size_t(y) * a->width + x) * 4], &a->rgba[(size_t(y) * a->width + x) * 4] + 3,
                            &b->rgba[(size_t(y) * b->width + x) * 4]);
  CHECK(unlike == 0);

  if (last.tiles.empty()) return skip("this device draws the picture within one frame");
  std::vector<uint8_t> seen(size_t(last.width) * last.height);
  uint32_t largest = 0;
  for (const auto& [x, y, width, height] : last.tiles) {
    largest = std::max(largest, width * height);
    for (uint32_t v = y; v < y + height; ++v)
      for (uint32_t u = x; u < x + width; ++u) ++seen[size_t(v) * last.width + u];
  }
  CHECK(std::all_of(seen.begin(), seen.end(), [](uint8_t n) { return n == 1; }));
  // A tile should take 25 ms. Its time is not known before, so tiles of sky may be larger.
  if (last.ms > 500) CHECK(largest < last.width * last.height / 3);
}

TEST_CASE("editor: the validation layers have nothing to say") {
  if (!can_open_window()) return;
  const Place place = place_for("editor-validation");
  const Outcome outcome =
      run_script(place,
                 "paths 1\nwait 3\nsphere add 0 16 0 9 3\nwait 20\n"
                 "drag 400 300 500 330 right\nwait 9\nview normals\nundo\nwait 5\nview shaded\nscreenshot " +
                     (place.dir / "v.png").string() + "\nquit\n",
                 {"--validation"});
  if (outcome.code == 1 && outcome.err.find("validation layer") != std::string::npos &&
      outcome.err.find("report") == std::string::npos)
    return skip("no validation layers: " + outcome.err);
  CHECK(outcome.code == 0);
  CHECK(outcome.err.empty());
}

TEST_CASE("editor: a document at home on a device looks, is edited and is kept as on the host, under validation") {
  if (!can_open_window()) return;
  const Place place = place_for("editor-home");
  const fs::path world = place.dir / "world-there.quarry";
  fs::copy_file(place.world, world);
  std::vector<engine::Picture> seen[2];
  for (const size_t there : {size_t(0), size_t(1)}) {
    const auto picture = [&](int number) {
      return (place.dir / ("at-" + std::to_string(there) + "-" + std::to_string(number) + ".png")).string();
    };
    const std::string script = "screenshot " + picture(0) +
                               "\nsphere add 0 16 0 14 3\ntool remove sphere 3\ndrag 400 300 560 340\n"
                               "key w\nclick 480 400\ngrow 2 18\nmove 4 4\nscreenshot " +
                               picture(1) + "\npaths 1\nwait 3\nscreenshot " + picture(2) +
                               "\npaths 0\nundo\nundo\nundo\nredo\nscreenshot " + picture(3) + "\nsave " +
                               (place.dir / ("copy-" + std::to_string(there) + ".vox")).string() + "\nquit\n";
    Place used = place;
    if (there) used.world = world;
    const Outcome outcome = run_script(used, script, {"--validation", "--home", there ? "emulated" : "host"});
    if (outcome.code == 1 && outcome.err.find("validation layer") != std::string::npos &&
        outcome.err.find("report") == std::string::npos)
      return skip("no validation layers: " + outcome.err);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK(outcome.err.find("validation:") == std::string::npos);
    for (int number = 0; number < 4; ++number) {
      const auto read = engine::read_png(picture(number));
      REQUIRE(read);
      seen[there].push_back(*read);
    }
  }
  for (size_t i = 0; i < 4; ++i) {
    INFO(i);
    CHECK(colours_in(seen[1][i], kScene) > 300);
    CHECK(different(seen[0][i], seen[1][i], kScene) == 0);
  }
  const Kept on_host = kept_in(place.world), there = kept_in(world);
  CHECK(there.voxels == on_host.voxels);
  CHECK(there.history == 4);  // a record for each step
  CHECK(there.position == 2);
  const auto one = io::Store::read(place.world), other = io::Store::read(world);
  REQUIRE((one && other));
  CHECK(scene_facts(*one, Axes::y_up)->col_sum == scene_facts(*other, Axes::y_up)->col_sum);
  CHECK(file_bytes(place.dir / "copy-0.vox") == file_bytes(place.dir / "copy-1.vox"));
}

TEST_CASE("editor: kill -9 in the middle of edits loses none that was acknowledged") {
  if (!can_open_window()) return;
  for (const char* home : {"host", "emulated"})
    for (const auto& [new_document, edits_before_kill] :
         std::initializer_list<std::pair<bool, int>>{{false, 1}, {false, 9}, {true, 1}, {true, 9}}) {
      if (home == std::string("emulated") && edits_before_kill == 1) continue;  // what begins is the same
      const Place place = place_for("editor-kill");
      std::string script;
      for (int i = 0; i < 400; ++i)
        script += "sphere add " + std::to_string(i * 9 - 1500) + " 60 0 3 " + std::to_string(1 + i % 200) + "\n";
      std::vector<std::string> words{quarry_program().string()};
      std::vector<std::string> options{"--home", home};
      if (new_document) options.emplace_back("--new");
      const auto more = edit_words(place, script, options);
      words.insert(words.end(), more.begin(), more.end());
      Process editor(words, place.environment());
      REQUIRE(editor.wait_for_output("ok " + std::to_string(edits_before_kill) + ":", 120));
      editor.signal(SIGKILL);
      const Outcome outcome = editor.finish(30);
      CHECK(outcome.code == 128 + SIGKILL);
      size_t acknowledged = 0;
      for (size_t at = outcome.out.find("ok "); at != std::string::npos; at = outcome.out.find("ok ", at + 1))
        ++acknowledged;
      CHECK(acknowledged >= size_t(edits_before_kill));
      fs::path file = place.world;
      if (new_document) {
        REQUIRE(fs::exists(place.recovery));
        for (const auto& entry : fs::directory_iterator(place.recovery))
          if (entry.path().extension() == ".quarry") file = entry.path();
        CHECK(file != place.world);
      }
      const Kept kept = kept_in(file);
      CHECK(kept.position >= acknowledged);
      CHECK(kept.position <= acknowledged + 1);  // one more may be on disk without having been announced
    }
}

TEST_CASE("editor: a script with a mistake opens no window and names the line") {
  const Place place = place_for("editor-bad-script");
  const Outcome outcome = run_script(place, "undo\nspheer add 1 2 3 4 5\n");
  CHECK(outcome.code == 2);
  CHECK(outcome.err.find("line 2") != std::string::npos);
  CHECK(outcome.err.find("'sphere'") != std::string::npos);
}

TEST_CASE("editor: --frames and --screenshot end by themselves") {
  if (!can_open_window()) return;
  const Place place = place_for("editor-frames");
  const fs::path picture = place.dir / "f.png";
  const Outcome outcome =
      run_quarry({"edit", place.world.string(), "--size", "800x500", "--frames", "4", "--screenshot", picture.string()},
                 place.environment());
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  CHECK(engine::read_png(picture));
}

namespace {

fs::path as_vox(const Place& place) {
  fs::path file = place.dir / "scene.vox";
  REQUIRE(run_quarry({"convert", place.world.string(), "-o", file.string()}).code == 0);
  return file;
}

uint64_t voxels_of(const fs::path& file) {
  const auto scene = io::read_scene(file);
  REQUIRE(scene);
  return scene_facts(*scene, Axes::y_up)->flat_all;
}

size_t recovery_files(const Place& place) {
  return fs::exists(place.recovery)
             ? size_t(std::distance(fs::directory_iterator(place.recovery), fs::directory_iterator()))
             : 0;
}

Outcome run_script_on(const Place& place, const fs::path& file, const std::string& script) {
  return run_quarry({"edit", file.string(), "--size", std::to_string(kWidth) + "x" + std::to_string(kHeight),
                     "--script", script_file(place, script).string()},
                    place.environment(), 240);
}

}  // namespace

TEST_CASE("editor: its log tells what was done, which versions pictures were given, and what is open") {
  if (!can_open_window()) return;
  const Place place = place_for("editor-log");
  const fs::path log = place.dir / "log", copy = place.dir / "copy.quarry";
  auto environment = place.environment();
  environment["QUARRY_EDITOR_LOG"] = log.string();
  const Outcome outcome =
      run_quarry(edit_words(place,
                            "wait 2\nsphere add 0 40 0 3 5\nwait 1\nsphere add 0 60 0 3 5\nundo\nundo\nredo\nsave " +
                                copy.string() + "\nopen " + place.world.string() + "\nopen " + copy.string() +
                                "\nask\nsphere add 0 80 0 3 5\nkey ctrl+o\nwait 4\nquit\n",
                            {"--home", "host"}),
                 environment, 240);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  std::vector<nlohmann::json> said;
  std::ifstream lines(log);
  for (std::string line; std::getline(lines, line);)
    if (const auto entry = nlohmann::json::parse(line); entry.contains("session")) said.push_back(entry["session"]);
  REQUIRE(said.size() > 5);
  CHECK(std::adjacent_find(said.begin(), said.end()) == said.end());
  const auto& last = said.back();
  CHECK(last["home"] == "host");
  CHECK(last["edits"] == 3);
  CHECK(last["undone"] == 2);
  CHECK(last["redone"] == 1);
  CHECK(last["saved"] == 1);
  CHECK(last["opened"] == 3);
  CHECK(last["asks"] == true);
  CHECK(last["complains"] == false);
  CHECK(last["unsaved"] == false);
  CHECK(last["voxels"] == voxels_of(copy));
  // A picture comes with each command here: the first, and after each of the nine that changed what is shown.
  CHECK(last["published"] >= 8);
  CHECK(last["published"] <= 10);
  CHECK(said.front()["asks"] == false);
  CHECK(said.front()["opened"] == 1);
}

TEST_CASE("editor: a document saved in any format is saved: nothing asks again, nothing is offered for recovery") {
  if (!can_open_window()) return;
  const Place place = place_for("editor-settled");
  const fs::path vox = as_vox(place), other = place.dir / "other.vox", never = place.dir / "never.png";
  const uint64_t before = voxels_of(vox);
  const Outcome outcome = run_script_on(place, vox, "box add 0 60 0 1 61 1 3\nsave\nquit\n");
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(voxels_of(vox) == before + 8);
  CHECK(recovery_files(place) == 0);
  // The steps of a user: quit, answer the question, choose a name; then the window closes.
  const Outcome asked =
      run_script_on(place, vox,
                    "ask\nbox add 0 70 0 1 71 1 3\nkey ctrl+shift+s\nwait 4\nkey ctrl+a\ntype " + other.string() +
                        "\nkey enter\nwait 4\nkey ctrl+q\nwait 4\nscreenshot " + never.string() + "\nquit\n");
  INFO(asked.err);
  CHECK(asked.code == 0);
  CHECK_FALSE(fs::exists(never));
  CHECK(voxels_of(other) == before + 16);
  CHECK(voxels_of(vox) == before + 8);
  CHECK(recovery_files(place) == 0);
  // Saving from the question continues with the action that waited for it.
  const Outcome quit = run_script_on(
      place, place.world,
      "ask\nnew\nbox add 0 0 0 1 1 1 3\nkey ctrl+q\nwait 4\nkey enter\nwait 4\nkey ctrl+a\ntype " +
          (place.dir / "new.vox").string() + "\nkey enter\nwait 4\nscreenshot " + never.string() + "\nquit\n");
  INFO(quit.err);
  CHECK(quit.code == 0);
  CHECK_FALSE(fs::exists(never));
  CHECK(voxels_of(place.dir / "new.vox") == 8);
  CHECK(recovery_files(place) == 0);
}

TEST_CASE(
    "editor: Ctrl+S writes back the .vox that was opened, and asks for another name where that would not be "
    "what was opened") {
  if (!can_open_window()) return;
  const Place place = place_for("editor-write-back");
  const fs::path vox = as_vox(place), mesh = place.dir / "cube.obj", never = place.dir / "never.png";
  const uint64_t before = voxels_of(vox);
  const Outcome outcome =
      run_script_on(place, vox,
                    "ask\nbox add 0 60 0 1 61 1 3\nkey ctrl+s\nwait 4\nkey ctrl+q\nwait 4\nscreenshot " +
                        never.string() + "\nquit\n");
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  CHECK_FALSE(fs::exists(never));
  CHECK(voxels_of(vox) == before + 8);
  CHECK_FALSE(fs::exists(place.dir / "scene.quarry"));
  CHECK(recovery_files(place) == 0);
  std::ofstream(mesh) << "v 0 0 0\nv 9 0 0\nv 0 9 0\nv 0 0 9\nf 1 2 3\nf 1 2 4\nf 1 3 4\nf 2 3 4\n";
  const auto bytes = file_bytes(mesh);
  const Outcome meshed = run_script_on(
      place, mesh,
      "ask\nsphere add 300 0 0 2 3\nkey ctrl+s\nwait 4\nkey enter\nwait 4\nkey ctrl+q\nwait 4\nscreenshot " +
          never.string() + "\nquit\n");
  INFO(meshed.err);
  CHECK(meshed.code == 0);
  CHECK_FALSE(fs::exists(never));
  CHECK((file_bytes(mesh) == bytes));
  CHECK(kept_in(place.dir / "cube.quarry").history == 1);
  // A script has no user to ask, so it gets a warning.
  const Outcome script = run_script_on(place, mesh, "sphere add 300 0 0 2 3\nsave\nquit\n");
  CHECK(script.code == 1);
  CHECK(script.err.find("cube.obj: what was read from it is not all that is in it") != std::string::npos);
  CHECK((file_bytes(mesh) == bytes));
}

TEST_CASE("editor: what a .vox cannot hold is said before it is written, and Escape leaves the file as it is") {
  if (!can_open_window()) return;
  const Place place = place_for("editor-loss");
  const fs::path thing = place.dir / "thing.binvox", asked = place.dir / "asked.png", plain = place.dir / "plain.png";
  Scene scene;
  scene.palette = Palette::standard();
  scene.volumes.resize(1);
  for (int x = 0; x < 8; ++x) scene.volumes[0].bricks.set({x, 0, 0}, uint8_t(10 + x));
  scene.instances.resize(1);
  REQUIRE(io::write_scene(scene, thing));
  const auto bytes = file_bytes(thing);
  // After painting, the thing has colours, which a .binvox cannot hold.
  const Outcome outcome =
      run_script_on(place, thing,
                    "ask\nbox fill 0 0 0 3 0 0 40\nscreenshot " + plain.string() + "\nkey ctrl+s\nwait 4\nscreenshot " +
                        asked.string() + "\nkey escape\nwait 4\nquit\n");
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK((file_bytes(thing) == bytes));
  const auto a = engine::read_png(plain), b = engine::read_png(asked);
  REQUIRE((a && b));
  CHECK(different(*a, *b, {0.4, 0.45, 0.6, 0.55}) > 200);  // the question
  // A script gets it as a warning.
  const Outcome script = run_script_on(place, thing, "box add 0 1 0 3 1 0 40\nsave\nquit\n");
  CHECK(script.code == 0);
  CHECK(script.err.find("not in it") != std::string::npos);
  CHECK(voxels_of(thing) == 12);
}

TEST_CASE("editor: a slider dragged from press to release is one step, undone by Ctrl+Z, also after a restart") {
  if (!can_open_window()) return;
  const Place place = place_for("editor-slider");
  const auto rough = [&] {
    const auto scene = io::read_scene(place.world);
    REQUIRE(scene);
    return scene->palette.materials[12].roughness;
  };
  const float first = rough();
  const Outcome dragged = run_script(place, "material 12\ndrag 125 540 190 540\nwait 4\nquit\n");
  INFO(dragged.err);
  REQUIRE(dragged.code == 0);
  std::vector<UndoRecord> history;
  REQUIRE(io::Store::read(place.world, {}, &history));
  REQUIRE(history.size() == 1);
  REQUIRE(history[0].materials.size() == 1);
  CHECK(history[0].materials[0].index == 12);
  CHECK(history[0].label.find("material 12: roughness ") == 0);
  CHECK(rough() != first);
  REQUIRE(run_script(place, "key ctrl+z\nquit\n").code == 0);
  CHECK(rough() == first);
  REQUIRE(run_script(place, "key ctrl+y\nquit\n").code == 0);
  CHECK(rough() == history[0].materials[0].after.roughness);
}

TEST_CASE("editor: a stroke that was drawn is one step for Ctrl+Z after a restart") {
  if (!can_open_window()) return;
  const Place place = place_for("editor-stroke-restart");
  const Kept start = kept_in(place.world);
  REQUIRE(run_script(place, "tool add sphere 2\ndrag 420 300 560 340\ndrag 420 400 560 420\nquit\n").code == 0);
  const Kept drawn = kept_in(place.world);
  REQUIRE(drawn.history > 3);
  CHECK(drawn.voxels > start.voxels);
  REQUIRE(run_script(place, "key ctrl+z\nkey ctrl+z\nquit\n").code == 0);
  CHECK(kept_in(place.world).position == 0);
  CHECK(kept_in(place.world).voxels == start.voxels);
}

TEST_CASE("editor: an open question has all keys, the mouse and the wheel to itself") {
  if (!can_open_window()) return;
  const Place place = place_for("editor-modal");
  REQUIRE(run_script(place, "box add 0 60 0 1 61 1 3\nbox add 0 70 0 1 71 1 3\nquit\n").code == 0);
  const Kept start = kept_in(place.world);
  REQUIRE(start.position == 2);
  fs::create_directories(place.recovery);
  REQUIRE(io::Store::save(*io::read_scene(place.world), place.recovery / "lost.20260101-000000.1.quarry"));
  const fs::path before = place.dir / "before.png", after = place.dir / "after.png";
  const std::string keys =
      "key tab\nkey 3\nkey ctrl+z\nkey ctrl+z\nkey 9\nkey v\nkey ctrl+n\nclick 300 100\n"
      "drag 300 100 350 110\ndrag 300 100 400 120 right\nscroll 5\nmove 300 100\nwait 4\n";
  // First the offer of the unsaved work that was found, then the dialog for a file. The scene behind darkens over a
  // sixth of a second, however many frames that is.
  for (const std::string question : {"", "key escape\nwait 4\nkey ctrl+o\nwait 4\n"}) {
    INFO(question);
    const Outcome outcome =
        run_script(place, "ask\nwait 4\n" + question + "move 300 100\nwait 4 0.5\nscreenshot " + before.string() +
                              "\n" + keys + "screenshot " + after.string() + "\nquit\n");
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    const auto a = engine::read_png(before), b = engine::read_png(after);
    REQUIRE((a && b));
    CHECK(different(*a, *b, kScene) == 0);
    CHECK(different(*a, *b, kTools) == 0);
    CHECK(kept_in(place.world).position == 2);
    CHECK(kept_in(place.world).voxels == start.voxels);
  }
  // After the answer, keys act again.
  REQUIRE(run_script(place, "ask\nwait 4\nkey escape\nwait 4\nkey ctrl+z\nquit\n").code == 0);
  CHECK(kept_in(place.world).position == 1);
  CHECK(recovery_files(place) == 1);
}

TEST_CASE("editor: a brush is as large as an edit may be, and one beyond that is refused") {
  if (!can_open_window()) return;
  const Place place = place_for("editor-brush");
  const Outcome outcome =
      run_script(place, "box fill -300 0 0 300 0 0 5\ntool remove sphere 500\nclick 480 360\nquit\n");
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(kept_in(place.world).position == 2);
  CHECK(kept_in(place.world).voxels == 0);
  for (const char* radius : {"4097", "-1", "2.5"}) {
    const Outcome refused = run_script(place, std::string("tool add sphere ") + radius + "\nquit\n");
    CHECK(refused.code == 2);
    CHECK(refused.err.find("is no radius: a whole number from 0 to 4096") != std::string::npos);
  }
  REQUIRE(run_script(place, "tool add sphere 4096\nwait 8\nmove 480 360\nwait 8\nquit\n").code == 0);
}

TEST_CASE("editor: whatever --history-memory says, undo and redo reach every step of the file") {
  if (!can_open_window()) return;
  const Place place = place_for("editor-history-memory");
  const std::string boxes = "box fill 0 0 0 20 20 20 5\nbox fill 0 0 0 10 10 10 6\nbox fill 0 0 0 5 5 5 7\nwait 4\n";
  const auto run = [&](const std::string& script, const char* memory) {
    const Outcome outcome = run_script(place, script + "quit\n", {"--history-memory", memory});
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK(outcome.err.empty());
    return kept_in(place.world);
  };
  const Kept start = kept_in(place.world), undone = run(boxes + "undo\nundo\nundo\n", "1");
  CHECK(undone.history == 3);
  CHECK(undone.position == 0);
  CHECK(undone.voxels == start.voxels);
  const Kept redone = run("redo\nredo\nredo\n", "1");
  CHECK(redone.position == 3);
  CHECK(redone.voxels > start.voxels);
  CHECK(run("undo\nundo\n", "1G").position == 1);
}

TEST_CASE("editor: a world that one grid does not hold is seen and edited wherever the camera looks") {
  if (!can_open_window()) return;
  const Place place = place_for("editor_wide");
  // Three blocks of 32^3 voxels, 60,000 from one another.
  Scene scene;
  scene.volumes.push_back({"world", {}, {}});
  scene.instances.push_back({});
  for (int32_t i = 0; i < 3; ++i)
    for (int32_t z = 0; z < 4; ++z)
      for (int32_t y = 0; y < 4; ++y)
        for (int32_t x = 0; x < 4; ++x)
          scene.volumes[0].bricks.put(Int3{7500 * (i - 1) + x, y, z}, SharedBrick::full(uint8_t(1 + 40 * i)));
  REQUIRE(io::write_scene(scene, {place.world, true}));
  const auto shot = [&](const char* name) { return (place.dir / name).string(); };
  const Outcome done = run_script(place,
                                  "look -59984 16 16\ncamera 30 20 120\nwait 20\nscreenshot " + shot("left.png") +
                                      "\nlook 60016 16 16\nwait 20\nscreenshot " + shot("right.png") +
                                      "\nlook 30000 16 16\nwait 20\nscreenshot " + shot("none.png") +
                                      "\nsphere add 60016 60 16 12 200\nlook 60016 16 16\nwait 20\nscreenshot " +
                                      shot("edited.png") + "\nundo\nlook -59984 16 16\nwait 20\nscreenshot " +
                                      shot("again.png") + "\nsphere add 16 60 16 3 200\nquit\n",
                                  {"--memory", "3G", "--validation"});
  INFO(done.err);
  REQUIRE(done.code == 0);
  const auto picture = [&](const char* name) {
    auto png = engine::read_png(shot(name));
    REQUIRE(png);
    return std::move(*png);
  };
  const auto left = picture("left.png"), right = picture("right.png"), none = picture("none.png"),
             edited = picture("edited.png"), again = picture("again.png");
  const auto differs = [](const engine::Picture& a, const engine::Picture& b) {
    size_t count = 0;
    for (auto y = uint32_t(kScene.y0 * a.height); y < uint32_t(kScene.y1 * a.height); ++y)
      for (auto x = uint32_t(kScene.x0 * a.width); x < uint32_t(kScene.x1 * a.width); ++x) {
        const size_t at = (size_t(y) * a.width + x) * 4;
        int most = 0;
        for (size_t c = 0; c < 3; ++c) most = std::max(most, std::abs(int(a.rgba[at + c]) - int(b.rgba[at + c])));
        count += most > 12;
      }
    return count;
  };
  const double pixels = (kScene.x1 - kScene.x0) * kWidth * (kScene.y1 - kScene.y0) * kHeight;
  CHECK(double(differs(left, none)) > pixels / 50);   // there is a block
  CHECK(double(differs(right, none)) > pixels / 50);  // and one at the other end
  CHECK(double(differs(edited, right)) > pixels / 200);
  CHECK(double(differs(again, left)) < pixels / 1000);
  const auto kept = io::Store::read(place.world);
  REQUIRE(kept);
  CHECK(kept->volumes[0].bricks.voxel_count() == 3 * 32768 + 123);
}

}  // namespace window_test
