// SPDX-License-Identifier: Apache-2.0
// editor_bench.cpp - how long the editor keeps input waiting, as a user experiences it, and what hours of work leave
// behind. The built program runs in a window of its own X server (Xvfb), on the device that it chooses there, driven by
// the server's test input (XTEST).
//
//   qry_bench_editor [--quarry PROGRAM] [--tries N] [--drags N] [--size WxH] [--validation] [--json FILE]
//   qry_bench_editor --edits N [--seed N] [--home HOME] [--history-memory SIZE] [and the others]
//   qry_bench_editor --session MINUTES [--seed N] [--home HOME] [--history-memory SIZE] [and the others]
//
// Keys: an orbit by the right button, a pause of 0 to 0.8 s, then a key that selects a tool. The measured time ends
// when the tool's button has changed on the screen. Sliders: 0.3 s after an orbit, the roughness slider is pressed,
// dragged and released within 0.2 s. The input is lost if the grab is not at the place of release. The program's own
// report on its tiles and frames ($QUARRY_EDITOR_LOG) is printed too. Nothing else may run meanwhile.
//
// With --session MINUTES a user works for so long instead: editor_session.cpp. With --edits N a script makes so many:
// editor_script.cpp.
#include <X11/keysym.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <exception>

#include "bench/editor_window.hpp"

namespace {

namespace fs = std::filesystem;
using namespace quarry::bench;

void orbit(UserScreen& screen, int x, int y) {
  screen.move(x, y);
  screen.button(3, true);
  for (int i = 0; i < 10; ++i) {
    screen.move(x + 4 * i, y);
    rest(0.03);
  }
  screen.button(3, false);
}

// The position of the slider's grab in this row: the middle of the pixels that are far bluer than red, like the accent
// colour.
double grab_in(UserScreen& screen, int left, int right, int y) {
  const auto row = screen.pixels(left, y, unsigned(right - left), 1);
  double sum = 0, count = 0;
  for (size_t i = 0; i < row.size(); ++i)
    if (int(row[i] & 255) - int(row[i] >> 16) > 40) sum += double(left) + double(i), ++count;
  return count > 0 ? sum / count : -1;
}

nlohmann::json spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {{"count", values.size()},
          {"median", at_share(values, 0.5)},
          {"p95", at_share(values, 0.95)},
          {"worst", values.empty() ? 0 : values.back()}};
}

int run(int count, char** words) {
  EditorOptions options;
  options.program = fs::read_symlink("/proc/self/exe").parent_path() / "quarry";
  int tries = 100, drags = 50, &width = options.width, &height = options.height;
  double minutes = 0;
  uint32_t seed = 1;
  uint64_t edits = 0;
  std::string json_file;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const auto value = [&] {
      return i + 1 < count ? std::string(words[++i]) : (stop(word + " needs a value"), std::string());
    };
    if (word == "--quarry") options.program = fs::absolute(value());
    else if (word == "--tries") tries = std::atoi(value().c_str());
    else if (word == "--drags") drags = std::atoi(value().c_str());
    else if (word == "--json") json_file = value();
    else if (word == "--session") minutes = std::atof(value().c_str());
    else if (word == "--edits") edits = uint64_t(std::atoll(value().c_str()));
    else if (word == "--seed") seed = uint32_t(std::atol(value().c_str()));
    else if (word == "--validation") options.more.push_back(word);
    else if (word == "--home" || word == "--history-memory") options.more.insert(options.more.end(), {word, value()});
    else if (word == "--size") {
      if (std::sscanf(value().c_str(), "%dx%d", &width, &height) != 2 || width < 640 || height < 400)
        stop("--size WxH: at least 640x400");
    } else stop("unknown option " + word);
  }
  const auto report = [&](const nlohmann::json& result) {
    fmt::print("{}\n", result.dump(2));
    if (!json_file.empty()) std::ofstream(json_file) << result.dump(2) << '\n';
    return 0;
  };
  if (edits > 0) return report(editor_script(options, edits, seed));
  if (minutes > 0) return report(editor_session(options, minutes * 60, seed));
  if (width < 1000 || height < 700) stop("--size WxH: at least 1000x700, where the sliders are seen");

  EditorWindow window(options, "quarry");
  UserScreen& screen = window.screen();
  Child& editor = window.editor();
  const fs::path log = window.log();
  const auto log_begin = fs::exists(log) ? fs::file_size(log) : 0;
  const int x = width / 2, y = height * 7 / 9;

  // The tool's button is lit by key 3 (paint) and dark again by key 1 (add).
  constexpr int kButtonX = 20, kButtonY = 92;
  constexpr double kPauses[] = {0, 0.1, 0.2, 0.3, 0.5, 0.8};
  std::vector<double> seen;
  int lost = 0;
  for (int n = 0; n < tries; ++n) {
    orbit(screen, x, y);
    rest(kPauses[size_t(n) % std::size(kPauses)]);
    const auto before = screen.pixels(kButtonX, kButtonY, 1, 1);
    const auto pressed = Clock::now();
    screen.key(n % 2 == 0 ? XK_3 : XK_1);
    while (screen.pixels(kButtonX, kButtonY, 1, 1) == before && ms_since(pressed) < 6000) rest(0.001);
    if (ms_since(pressed) >= 6000) ++lost;
    seen.push_back(ms_since(pressed));
    if (!editor.runs()) stop("the editor ended");
    rest(0.4);
  }

  // The slider "Rough": pressed at 150, dragged to 130, 160 or 190.
  constexpr int kSliderLeft = 60, kSliderRight = 230, kSliderY = 540;
  int slider_lost = 0;
  std::vector<std::string> ways;
  for (int n = 0; n < drags; ++n) {
    orbit(screen, x, y);
    rest(0.3);
    const int to = n % 3 == 0 ? 130 : n % 3 == 1 ? 160 : 190;
    screen.move(150, kSliderY);
    screen.button(1, true);
    for (int i = 1; i <= 6; ++i) {
      rest(0.03);
      screen.move(150 + (to - 150) * i / 6, kSliderY);
    }
    screen.button(1, false);
    screen.move(x, y);
    rest(0.7);
    const double grab = grab_in(screen, kSliderLeft, kSliderRight, kSliderY);
    if (std::abs(grab - to) > 6) ++slider_lost, ways.push_back(fmt::format("to {}: {:.0f}", to, grab));
    if (!editor.runs()) stop("the editor ended");
  }
  if (const char* picture = std::getenv("QRY_BENCH_PICTURE"))
    if (std::system(fmt::format("import -display {} -window root {}", window.display(), picture).c_str()) != 0)
      stop("no picture");

  std::vector<double> tiles, frames_waited, frames_drawn, coarse;
  std::ifstream lines(log);
  lines.seekg(std::streamoff(log_begin));
  for (std::string line; std::getline(lines, line);) {
    const auto entry = nlohmann::json::parse(line, nullptr, false);
    if (entry.contains("tile")) tiles.push_back(entry["tile"]["ms"]);
    if (entry.contains("frame")) {
      frames_waited.push_back(entry["frame"]["waited"]);
      frames_drawn.push_back(double(entry["frame"]["heard"]) + double(entry["frame"]["prepared"]) +
                             double(entry["frame"]["drawn"]));
      if (entry["frame"]["rays"] > 0) coarse.push_back(entry["frame"]["ms"]);
    }
  }
  nlohmann::json result;
  result["size"] = fmt::format("{}x{}", width, height);
  result["key_ms"] = spread(seen);
  result["key_ms"]["within_150"] = std::count_if(seen.begin(), seen.end(), [](double ms) { return ms <= 150; });
  result["key_ms"]["lost"] = lost;
  result["slider_drags"] = {{"count", drags}, {"lost", slider_lost}, {"where", ways}};
  result["tile_ms"] = spread(tiles);
  result["moving_picture_ms"] = spread(coarse);
  result["frame_waited_ms"] = spread(frames_waited);
  result["frame_host_ms"] = spread(frames_drawn);
  return report(result);
}

}  // namespace

int main(int count, char** words) {
  try {
    return run(count, words);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "qry_bench_editor: %s\n", e.what());
    return 1;
  }
}
