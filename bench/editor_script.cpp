// SPDX-License-Identifier: Apache-2.0
// editor_script.cpp - as many edits and published versions as are wanted, in the editor's window: a script does what
// a user does, a command a frame, and each frame shows a version of its own. The window is small, because a software
// driver's time goes into pixels. Rounds begin with a new document; what the process holds there must not grow. Not a
// user before the window: that is in editor_session.cpp. The same seed gives the same commands.
#include <fmt/format.h>

#include <random>
#include <utility>

#include "bench/editor_window.hpp"

namespace quarry::bench {
namespace fs = std::filesystem;
namespace {

constexpr int kWidth = 80, kHeight = 64;  // of the window, once it is there
constexpr double kRestSeconds = 1.5;      // where a round begins
constexpr double kStartSeconds = 20;      // for the window to come to rest, and to be made small
constexpr uint64_t kEditsARound = 2500;
constexpr const char* kViews[] = {"shaded", "normals", "depth"};

// The commands, and how many documents have been opened where each round begins.
class Script {
 public:
  Script(uint64_t edits, uint32_t seed) : random_(seed) {
    say("wait 1 {}", kStartSeconds);
    // What is made once, when it is first needed: the pipelines of all views and of light paths.
    for (int i = 0; i < 9; ++i) say("key v"), say("wait 4");
    say("paths 2"), say("wait 40 1"), say("paths 0");
    while (edits_ < edits) round();
    say("save last.quarry"), say("quit");
  }
  const std::string& text() const { return text_; }
  const std::vector<uint64_t>& rounds() const { return rounds_; }

 private:
  template <class... Values>
  void say(fmt::format_string<Values...> format, Values&&... values) {
    text_ += fmt::format(format, std::forward<Values>(values)...) + '\n';
  }
  int below(int count) { return int(random_() % uint32_t(count)); }
  bool one_in(int count) { return below(count) == 0; }
  void opens(const char* file) { say("open {}", file), ++opened_; }
  void saves(const char* file) { say("save {}", file); }

  // In one box, so that what the document needs does not grow with the session.
  void edit() {
    constexpr const char* kModes[] = {"fill", "fill", "fill", "fill", "remove", "remove", "add", "paint"};
    const char* const mode = kModes[below(8)];
    const int x = below(80) - 40, y = below(60), z = below(80) - 40, material = 1 + below(255), shape = below(20);
    const int to_x = x + below(16), to_y = y + below(16), to_z = z + below(16);
    if (shape < 11) say("sphere {} {} {} {} {} {}", mode, x, y, z, 1 + below(8), material);
    else if (shape < 16) say("box {} {} {} {} {} {} {} {}", mode, x, y, z, to_x, to_y, to_z, material);
    else if (shape < 19)
      say("line {} {} {} {} {} {} {} {} {}", mode, x, y, z, to_x, to_y, to_z, 1 + below(4), material);
    else say("connected paint {} {} {} {}", x, y, z, material);
    ++edits_;
  }
  void work(uint64_t edits) {
    for (; edits > 0; --edits) {
      edit();
      if (one_in(15)) {
        for (int steps = 1 + below(3); steps > 0; --steps) say("undo");
        say("redo");
      }
      if (one_in(40)) say("camera {} {} {}", below(360), below(60), 400 + below(800));
      if (one_in(40)) {  // a stroke by the mouse, from near: of one from far away a pixel is a large part of the world
        say("camera {} {} 120", below(360), 20 + below(40));
        say("tool {} {} {}", one_in(2) ? "fill" : "remove", one_in(2) ? "sphere" : "cube", 1 + below(3));
        const auto at = [&](int length) { return length / 2 + below(length / 5) - length / 10; };
        say("drag {} {} {} {}", at(kWidth), at(kHeight), at(kWidth), at(kHeight));
      }
      if (one_in(300)) say("view {}", kViews[below(3)]);
      if (one_in(600)) say("view shaded"), say("paths 1"), say("wait 10"), say("paths 0");
    }
  }
  void round() {
    say("new"), ++opened_;
    say("view shaded"), say("camera 30 30 400");
    say("wait 10 {}", kRestSeconds);
    rounds_.push_back(opened_);
    constexpr uint64_t kPart = kEditsARound / 5;
    say("box fill -40 -2 -40 40 0 40 7"), saves("world.quarry"), ++edits_;
    work(kPart), saves("copy.quarry");
    work(kPart), saves("export.vox");
    opens("world.quarry"), work(kPart);
    opens("export.vox"), work(kPart), saves("export.vox");
    opens("copy.quarry"), work(kPart - 1);
  }

  std::mt19937 random_;
  std::string text_;
  uint64_t edits_ = 0, opened_ = 1;  // the file that it was started with
  std::vector<uint64_t> rounds_;
};

// In MB, of what is not a file's, and of what is.
struct Resident {
  double anonymous = 0, files = 0;
};
Resident resident_of(pid_t process) {
  std::ifstream in(fs::path("/proc") / std::to_string(process) / "status");
  Resident resident;
  for (std::string line; std::getline(in, line);) {
    const auto value = [&] { return double(std::atoll(line.c_str() + line.find(':') + 1)) * 1024 / 1e6; };
    if (line.starts_with("RssAnon:")) resident.anonymous += value();
    if (line.starts_with("RssFile:") || line.starts_with("RssShmem:")) resident.files += value();
  }
  return resident;
}

}  // namespace

nlohmann::json editor_script(const EditorOptions& options, uint64_t edits, uint32_t seed) {
  const Script script(edits, seed);
  EditorOptions its = options;
  its.script = script.text();
  EditorWindow window(its, "quarry");
  Child& editor = window.editor();
  const pid_t process = editor.pid();
  window.screen().resize(kWidth, kHeight);
  const auto begun = Clock::now();
  EditorLog log(window.log());
  nlohmann::json rounds = nlohmann::json::array();
  while (editor.runs()) {
    rest(0.05);
    log.read();
    if (rounds.size() >= script.rounds().size() || log.count("opened") < script.rounds()[rounds.size()]) continue;
    rest(kRestSeconds / 2);
    log.read();
    const Held held = held_by(process);
    const Resident resident = resident_of(process);
    rounds.push_back({{"at_s", std::round(ms_since(begun) / 1000)},
                      {"edits", log.count("edits")},
                      {"published", log.count("published")},
                      {"resident_mb", held.resident_mb},
                      {"anonymous_mb", resident.anonymous},
                      {"files_mb", resident.files},
                      {"device_mb", double(log.count("device_bytes")) / 1e6},
                      {"files", held.files},
                      {"threads", held.threads},
                      {"mappings", held.mappings}});
    fmt::print(stderr, "{}\n", rounds.back().dump());  // of a session that fails there is this
  }
  log.read();
  nlohmann::json result;
  result["size"] = fmt::format("{}x{}", kWidth, kHeight);
  result["options"] = options.more;
  result["seed"] = seed;
  result["seconds"] = std::round(ms_since(begun) / 1000);
  result["home"] = log.now.value("home", std::string());
  for (const char* name : {"edits", "undone", "redone", "saved", "opened", "published"}) result[name] = log.count(name);
  result["frames"] = log.frames;
  result["rounds"] = std::move(rounds);
  result["exit_code"] = *editor.exit_code();
  result["recovery_files_left"] = files_in(window.dir() / "state" / "quarry" / "recovery");
  result["said"] = complaints_of(window);
  return result;
}

}  // namespace quarry::bench
