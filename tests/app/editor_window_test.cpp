// The editor's window on an invisible display: what it shows, that mouse and keys work, and that no acknowledged edit is ever lost.
#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/picture_file.hpp"
#include "tests/app/spawn.hpp"
#include "tests/test_data.hpp"
#include "voxel/io/store.hpp"

using namespace quarry;
using namespace quarry::test;
namespace fs = std::filesystem;

namespace {

constexpr int kWidth = 1000, kHeight = 680;

// One X server for all cases; empty without Xvfb.
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
  std::map<std::string, std::string> environment() const { return {{"DISPLAY", display()}, {"WAYLAND_DISPLAY", ""}, {"XDG_STATE_HOME", (dir / "state").string()}}; }
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
  const fs::path file = place.dir / "script.txt";
  std::ofstream(file) << text;
  return file;
}

std::vector<std::string> edit_words(const Place& place, const std::string& script, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"edit"};
  if (std::find(more.begin(), more.end(), "--new") == more.end()) words.push_back(place.world.string());
  words.insert(words.end(), {"--size", std::to_string(kWidth) + "x" + std::to_string(kHeight), "--script", script_file(place, script).string()});
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

// Bright pixels on the dark panel: letters.
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
      if (std::abs(a.rgba[at] - b.rgba[at]) + std::abs(a.rgba[at + 1] - b.rgba[at + 1]) + std::abs(a.rgba[at + 2] - b.rgba[at + 2]) > 24) ++count;
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
  const Outcome outcome = run_script(place, "screenshot " + before.string() + "\nsphere add 0 16 0 14 3\nscreenshot " + after.string() + "\nkey ctrl+z\nscreenshot " +
                                                undone.string() + "\nquit\n");
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
  CHECK(different(*a, *c, kScene) == 0);       // undone is as before, to the pixel
}

TEST_CASE("editor: a click adds at the voxel under the mouse, and keys choose the tool, undo and redo") {
  if (!can_open_window()) return;
  const Place place = place_for("editor-click");
  const Kept start = kept_in(place.world);
  // The middle of the window shows the middle of the scene.
  const Outcome outcome = run_script(place,
                                     "key w\nkey [\nkey [\nkey [\nkey [\n"  // cube of one voxel
                                     "click 480 360\nclick 480 400\nkey ctrl+z\nkey ctrl+y\nkey 2\nclick 430 380\nquit\n");
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const Kept now = kept_in(place.world);
  CHECK(now.history == 3);
  CHECK(now.position == 3);
  CHECK(now.voxels == start.voxels + 2 - 1);
}

TEST_CASE("editor: dragging draws one stroke, the right button turns the view and edits nothing") {
  if (!can_open_window()) return;
  const Place place = place_for("editor-drag");
  const fs::path before = place.dir / "before.png", after = place.dir / "after.png";
  const Outcome outcome = run_script(place, "screenshot " + before.string() + "\ndrag 400 300 560 340 right\nscreenshot " + after.string() +
                                                "\ntool paint sphere 2\nmaterial 5\ndrag 420 360 520 380\nkey ctrl+z\nquit\n");
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
  const Outcome outcome = run_script(
      place, "screenshot " + shaded.string() + "\nview probe_depth\nscreenshot " + probes.string() + "\nkey v\nscreenshot " + next.string() + "\nquit\n");
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
  const fs::path quick = place.dir / "quick.png", traced = place.dir / "traced.png", edited = place.dir / "edited.png", undone = place.dir / "undone.png";
  const Outcome outcome = run_script(place, "screenshot " + quick.string() + "\npaths 3\nscreenshot " + traced.string() + "\nsphere add 0 16 0 9 3\nscreenshot " +
                                                edited.string() + "\nundo\nscreenshot " + undone.string() + "\nquit\n");
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  const auto a = engine::read_png(quick), b = engine::read_png(traced), c = engine::read_png(edited), d = engine::read_png(undone);
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
  const float pressed = roughness("material 3\ndrag 150 540 150 540\n"), drawn = roughness("material 3\ndrag 150 540 190 540\n"), back = roughness("material 3\ndrag 150 540 130 540\n");
  CHECK(pressed > 0.2f);
  CHECK(drawn > pressed + 0.1f);
  CHECK(back < pressed - 0.05f);
}

namespace {

// What the program said of its submissions, from the last change of the picture on.
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

TEST_CASE("editor: tiles of a picture that is dropped leave nothing in the next one, and no submission is much of a slow picture") {
  if (!can_open_window()) return;
  const Place place = place_for("editor-tiles");
  const fs::path changed = place.dir / "changed.png", fresh = place.dir / "fresh.png", log = place.dir / "log";
  const auto run = [&](const std::string& script, const fs::path& picture) {
    auto environment = place.environment();
    environment["QUARRY_EDITOR_LOG"] = log.string();
    const Outcome outcome = run_quarry(edit_words(place, script + "camera 140 30\nscreenshot " + picture.string() + "\nquit\n"), environment, 240);
    INFO(outcome.err);
    REQUIRE(outcome.code == 0);
  };
  // Dropped at the first tiles, in the middle, by an edit and its undo, by the mouse, and with light paths on the way.
  run("camera 20 10\nwait 3\ncamera 70 50\nwait 30\nsphere add 0 16 0 9 3\nwait 12\nundo\nwait 25\ndrag 400 300 470 330 right\nwait 9\npaths 40\nwait 60\npaths 0\nwait 4\nmove 4 4\nframe\n", changed);
  const Submissions last = submissions_in(log);
  run("move 4 4\n", fresh);
  const auto a = engine::read_png(changed), b = engine::read_png(fresh);
  REQUIRE((a && b));
  CHECK(colours_in(*a, kScene) > 300);
  size_t unlike = 0;
  for (auto y = uint32_t(kScene.y0 * a->height); y < uint32_t(kScene.y1 * a->height); ++y)
    for (auto x = uint32_t(kScene.x0 * a->width); x < uint32_t(kScene.x1 * a->width); ++x)
      unlike += !std::equal(&a->rgba[(size_t(y) * a->width + x) * 4], &a->rgba[(size_t(y) * a->width + x) * 4] + 3, &b->rgba[(size_t(y) * b->width + x) * 4]);
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
  // A tile is to take 25 ms. What one takes is not known before, so sky may come in larger ones.
  if (last.ms > 500) CHECK(largest < last.width * last.height / 3);
}

TEST_CASE("editor: the validation layers have nothing to say") {
  if (!can_open_window()) return;
  const Place place = place_for("editor-validation");
  const Outcome outcome = run_script(place, "paths 1\nwait 3\nsphere add 0 16 0 9 3\nwait 20\ndrag 400 300 500 330 right\nwait 9\nview normals\nundo\nwait 5\nview shaded\nscreenshot " +
                                                (place.dir / "v.png").string() + "\nquit\n",
                                     {"--validation"});
  if (outcome.code == 1 && outcome.err.find("validation layer") != std::string::npos && outcome.err.find("report") == std::string::npos)
    return skip("no validation layers: " + outcome.err);
  CHECK(outcome.code == 0);
  CHECK(outcome.err.empty());
}

TEST_CASE("editor: kill -9 in the middle of edits loses none that was acknowledged") {
  if (!can_open_window()) return;
  for (const bool new_document : {false, true})
    for (const int edits_before_kill : {1, 9}) {
      const Place place = place_for("editor-kill");
      std::string script;
      for (int i = 0; i < 400; ++i) script += "sphere add " + std::to_string(i * 9 - 1500) + " 60 0 3 " + std::to_string(1 + i % 200) + "\n";
      std::vector<std::string> words{quarry_program().string()};
      const auto more = edit_words(place, script, new_document ? std::vector<std::string>{"--new"} : std::vector<std::string>{});
      words.insert(words.end(), more.begin(), more.end());
      Process editor(words, place.environment());
      REQUIRE(editor.wait_for_output("ok " + std::to_string(edits_before_kill) + ":", 120));
      editor.signal(SIGKILL);
      const Outcome outcome = editor.finish(30);
      CHECK(outcome.code == 128 + SIGKILL);
      size_t acknowledged = 0;
      for (size_t at = outcome.out.find("ok "); at != std::string::npos; at = outcome.out.find("ok ", at + 1)) ++acknowledged;
      CHECK(acknowledged >= static_cast<size_t>(edits_before_kill));
      fs::path file = place.world;
      if (new_document) {
        REQUIRE(fs::exists(place.recovery));
        for (const auto& entry : fs::directory_iterator(place.recovery))
          if (entry.path().extension() == ".quarry") file = entry.path();
        CHECK(file != place.world);
      }
      const Kept kept = kept_in(file);
      CHECK(kept.position >= acknowledged);
      CHECK(kept.position <= acknowledged + 1);  // one may have been on disk without having been announced
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
  const Outcome outcome = run_quarry({"edit", place.world.string(), "--size", "800x500", "--frames", "4", "--screenshot", picture.string()}, place.environment());
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  CHECK(engine::read_png(picture));
}
