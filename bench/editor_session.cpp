// SPDX-License-Identifier: Apache-2.0
// editor_session.cpp - hours of a user's work in the editor's window: random tools, sizes, places and views, undo and
// redo, and all ways to save and to open again, in rounds that begin with the same small document. What the process
// holds where a round begins must not grow. The editor's log ($QUARRY_EDITOR_LOG) says what was done; the system says
// what is held. The same seed gives the same input; what it meets on the screen depends on the machine's speed.
#include <X11/keysym.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <utility>

#include "bench/editor_window.hpp"

namespace quarry::bench {
namespace fs = std::filesystem;
namespace {

constexpr double kFrameSeconds = 0.25;  // after this time one frame is enough
constexpr double kAnswerSeconds = 120;  // an editor that does not answer for so long has failed
constexpr int kStrokesARound = 60;

class User {
 public:
  User(EditorWindow& window, const EditorOptions& options, uint32_t seed)
      : window_(window),
        screen_(window.screen()),
        log_(window.log()),
        random_(seed),
        width_(options.width),
        height_(options.height) {}

  EditorLog& log() { return log_; }
  uint64_t failed_dialogs() const { return failed_dialogs_; }

  // Waits for so many frames, so that no input queues up. Where nothing changes, one comes each second.
  void frames(uint64_t count) {
    log_.read();
    const uint64_t before = log_.frames;
    const auto begun = Clock::now();
    const auto drawn = [&] {
      return log_.frames >= before + count || (log_.frames > before && ms_since(begun) > kFrameSeconds * 1000);
    };
    if (!waits_until(drawn, kAnswerSeconds)) stop("the editor draws no frame any more: " + complaints());
  }
  template <class Done>
  bool waits_until(Done done, double seconds) {
    const auto begun = Clock::now();
    while (ms_since(begun) < seconds * 1000) {
      log_.read();
      if (done()) return true;
      if (!window_.editor().runs()) stop("the editor ended: " + complaints());
      rest(0.0005);
    }
    return false;
  }

  void work(int strokes) {
    for (int i = 0; i < strokes; ++i) {
      if (one_in(2)) choose();
      stroke();
      if (one_in(4)) exchange();
      if (one_in(5)) look_elsewhere();
      if (one_in(60)) look_otherwise();
      if (one_in(8)) screen_.key(XK_f), frames(1);
    }
  }

  // Ctrl+O or Ctrl+Shift+S, and the name. `counted`: what the log counts when it is done.
  void by_dialog(bool save, const std::string& name) {
    const char* const counted = save ? "saved" : "opened";
    if (save) fs::remove(window_.dir() / name);
    const uint64_t before = log_.count(counted);
    for (int attempt = 0; attempt < 3; ++attempt) {
      frames(2);
      screen_.chord(save, save ? XK_s : XK_o);
      if (!waits_until([&] { return log_.is("asks"); }, 20)) continue;
      frames(2);
      screen_.chord(false, XK_a);
      frames(1);
      screen_.type(name);
      frames(2);
      screen_.key(XK_Return);
      if (waits_until([&] { return log_.count(counted) > before && !log_.is("asks"); }, kAnswerSeconds)) return;
      ++failed_dialogs_;
    }
    stop(fmt::format("'{}' was not {}: {} {}", name, counted, log_.now.dump(), complaints()));
  }
  void begins_anew() {
    const uint64_t before = log_.count("opened");
    screen_.chord(false, XK_n);
    if (!waits_until([&] { return log_.count("opened") > before; }, kAnswerSeconds)) stop("no new document");
  }
  // Written back where it came from; a question is answered by no.
  void saves() {
    screen_.chord(false, XK_s);
    frames(4);
    if (log_.is("asks")) screen_.key(XK_Escape);
    waits_until([&] { return !log_.is("asks"); }, 10);
  }
  void calms_down() {
    screen_.move(width_ / 2, 8);
    screen_.key(XK_f);
    frames(4);
    rest(0.3);
    log_.read();
  }
  std::string complaints() const { return complaints_of(window_); }

 private:
  uint32_t below(uint32_t count) { return uint32_t(random_() % count); }
  bool one_in(uint32_t count) { return below(count) == 0; }

  // In the picture, more often near its middle.
  std::pair<int, int> place() {
    const int left = std::min(224, width_ / 3), right = width_ - std::min(266, width_ / 3);
    const auto between = [&](int low, int high) {
      return low + int((below(1000) + below(1000) + below(1000)) * uint32_t(high - low) / 3000);
    };
    return {between(left + 8, right - 8), between(60, height_ - 40)};
  }

  void choose() {
    constexpr unsigned long kModes[] = {XK_1, XK_1, XK_2, XK_2, XK_3, XK_4};
    constexpr unsigned long kShapes[] = {XK_q, XK_q, XK_q, XK_q, XK_w, XK_w, XK_e, XK_r, XK_t};
    screen_.key(kModes[below(std::size(kModes))]);
    const unsigned long shape = kShapes[below(std::size(kShapes))];
    screen_.key(shape);
    paints_ = shape == XK_q || shape == XK_w;
    small_moves_ = shape == XK_w;
    // Its radius is 3 at the start.
    const int radius = 1 + int(below(7));
    for (; radius_ < radius; ++radius_) screen_.key(XK_bracketright);
    for (; radius_ > radius; --radius_) screen_.key(XK_bracketleft);
    if (one_in(3)) {  // a material of the palette
      screen_.move(18 + int(below(160)), 262 + int(below(100)));
      frames(1);
      screen_.button(1, true), screen_.button(1, false);
    }
    frames(1);
  }

  // Boxes and lines are dragged, the bucket is clicked; who paints goes on for as long as it does something.
  void stroke() {
    auto [x, y] = place();
    screen_.move(x, y);
    uint64_t before = log_.count("edits");
    screen_.button(1, true);
    frames(2);
    for (uint32_t move = 0, moves = paints_ ? 16 + below(33) : 1; move < moves; ++move) {
      if (paints_ && move % 8 == 0 && log_.count("edits") == std::exchange(before, log_.count("edits"))) break;
      // A small cube that is drawn far along a plane seen at an angle is thousands of edits.
      x += int(below(small_moves_ ? 17 : 51)) - (small_moves_ ? 8 : 25);
      y += int(below(small_moves_ ? 13 : 41)) - (small_moves_ ? 6 : 20);
      screen_.move(x, y);
      frames(1);
    }
    screen_.button(1, false);
    frames(1);
  }

  void exchange() {
    for (uint32_t steps = 1 + below(4); steps > 0; --steps) screen_.chord(false, XK_z), frames(1);
    for (uint32_t steps = below(4); steps > 0; --steps) screen_.chord(true, XK_z), frames(1);
  }

  void look_elsewhere() {
    auto [x, y] = place();
    if (one_in(6)) screen_.key(XK_9), frames(1);  // from above
    screen_.move(x, y);
    if (one_in(3)) {  // nearer, or back
      const unsigned way = one_in(2) ? 4 : 5;
      for (uint32_t steps = 1 + below(3); steps > 0; --steps) screen_.button(way, true), screen_.button(way, false);
      frames(1);
      return;
    }
    const unsigned with = one_in(4) ? 2 : 3;
    screen_.button(with, true);
    for (uint32_t moves = 3 + below(6); moves > 0; --moves) {
      x += int(below(61)) - 30, y += int(below(31)) - 15;
      screen_.move(x, y);
      frames(1);
    }
    screen_.button(with, false);
    frames(1);
  }

  // What users do now and then, and what makes the window, the picture or its shaders anew.
  void look_otherwise() {
    switch (below(6)) {
      case 0:
        for (const unsigned long key : {XK_7, XK_8, XK_9}) screen_.key(key), frames(2);
        break;
      case 1:  // once around the debug views
        for (int i = 0; i < 16; ++i) screen_.key(XK_v), frames(2);
        break;
      case 2:
        for (int i = 0; i < 2; ++i) screen_.key(XK_Tab), frames(3);
        break;
      case 3:
        for (int i = 0; i < 2; ++i) screen_.key(XK_F1), frames(3);
        break;
      case 4:
        screen_.resize(width_ - 60, height_ - 40), frames(6);
        screen_.resize(width_, height_), frames(6);
        break;
      case 5:  // light paths
        screen_.key(XK_p), rest(1.5);
        screen_.key(XK_p), frames(2);
        break;
      default: break;
    }
  }

  EditorWindow& window_;
  UserScreen& screen_;
  EditorLog log_;
  std::mt19937 random_;
  int width_, height_, radius_ = 3;
  bool small_moves_ = false;
  bool paints_ = true;  // a shape that makes edits all along the way
  uint64_t failed_dialogs_ = 0;
};

}  // namespace

nlohmann::json editor_session(const EditorOptions& options, double seconds, uint32_t seed) {
  EditorWindow window(options, "vox");
  User user(window, options, seed);
  const fs::path dir = window.dir();
  const pid_t process = window.editor().pid();
  const auto begun = Clock::now();
  nlohmann::json rounds = nlohmann::json::array(), minutes = rounds, last = user.log().now;
  double minute_begun = 0;
  const auto at = [&] { return ms_since(begun) / 1000; };
  const char* const kCounted[] = {"edits", "undone", "redone", "saved", "opened", "published"};
  const auto end_minute = [&] {
    user.log().read();
    nlohmann::json minute{{"at_s", std::round(at())}, {"seconds", at() - minute_begun}};
    for (const char* name : kCounted) minute[name] = user.log().count(name) - last.value(name, uint64_t(0));
    minute["resident_mb"] = held_by(process).resident_mb;
    minutes.push_back(std::move(minute));
    minute_begun = at();
    last = user.log().now;
  };

  for (uint64_t round = 0; at() < seconds; ++round) {
    // The same document, as a world and of another format, which has its volume elsewhere than at the origin, in turns.
    const bool world = round % 2 == 0;
    const fs::path work = world ? "work.quarry" : "work.vox";
    fs::copy_file(dir / (world ? "spheres.quarry" : "spheres.vox"), dir / work, fs::copy_options::overwrite_existing);
    user.by_dialog(false, work);
    user.calms_down();
    const Held held = held_by(process);
    rounds.push_back({{"at_s", std::round(at())},
                      {"opened", work},
                      {"home", user.log().now["home"]},
                      {"edits", user.log().count("edits")},
                      {"published", user.log().count("published")},
                      {"resident_mb", held.resident_mb},
                      {"device_mb", double(user.log().count("device_bytes")) / 1e6},
                      {"files", held.files},
                      {"threads", held.threads},
                      {"mappings", held.mappings},
                      {"recovery_files", files_in(dir / "state" / "quarry" / "recovery")}});
    fmt::print(stderr, "{}\n", rounds.back().dump());  // of a session that fails there is this
    user.work(kStrokesARound / 6);
    if (!world) user.saves();
    user.work(kStrokesARound / 6);
    user.by_dialog(true, "world.quarry");
    user.work(kStrokesARound / 3);
    user.by_dialog(true, "copy.quarry");  // which is edited from now on
    user.work(kStrokesARound / 6);
    user.by_dialog(true, "export.vox");
    user.by_dialog(false, "world.quarry");  // with the steps of its file
    user.work(kStrokesARound / 6);
    if (round % 3 == 2) {
      user.begins_anew();
      user.work(kStrokesARound / 10);
      user.by_dialog(true, "new.quarry");
    }
    if (at() - minute_begun >= 60) end_minute();
  }
  if (at() - minute_begun > 20) end_minute();

  nlohmann::json result;
  result["size"] = fmt::format("{}x{}", options.width, options.height);
  result["options"] = options.more;
  result["seed"] = seed;
  result["seconds"] = std::round(at());
  for (const char* name : kCounted) result[name] = user.log().count(name);
  result["frames"] = user.log().frames;
  result["failed_dialogs"] = user.failed_dialogs();
  result["minutes"] = std::move(minutes);
  // Of the first rounds, the window's memory and the driver's are being made.
  const size_t settled = std::min(rounds.size() - 1, std::max<size_t>(3, rounds.size() / 10));
  for (const char* name : {"resident_mb", "device_mb", "files", "threads", "mappings"}) {
    std::vector<double> early, late;
    for (size_t i = settled; i < rounds.size(); ++i)
      (i < settled + (rounds.size() - settled + 1) / 2 ? early : late).push_back(rounds[i][name]);
    std::sort(early.begin(), early.end()), std::sort(late.begin(), late.end());
    result["held"][name] = {{"settled", rounds[settled][name]},
                            {"last", rounds.back()[name]},
                            {"median_of_first_half", at_share(early, 0.5)},
                            {"median_of_second_half", at_share(late, 0.5)},
                            {"most", std::max(early.empty() ? 0 : early.back(), late.empty() ? 0 : late.back())}};
  }
  result["rounds"] = std::move(rounds);

  // All work is in a file of the user's, so that the editor ends without a question, and leaves nothing behind.
  user.by_dialog(true, "last.quarry");
  window.screen().chord(false, XK_q);
  const auto asked = Clock::now();
  while (window.editor().runs() && ms_since(asked) < 60'000) rest(0.05);
  const auto code = window.editor().exit_code();
  if (!code) stop("the editor did not end");
  result["exit_code"] = *code;
  result["recovery_files_left"] = files_in(dir / "state" / "quarry" / "recovery");
  result["said"] = user.complaints();
  return result;
}

}  // namespace quarry::bench
