// SPDX-License-Identifier: Apache-2.0
// editor_bench.cpp - how long the editor keeps input waiting, as a user experiences it. The built program runs in a
// window of its own X server (Xvfb), on the device that it chooses there, driven by the server's test input (XTEST).
//
//   qry_bench_editor [--quarry PROGRAM] [--tries N] [--drags N] [--size WxH] [--validation] [--json FILE]
//
// Keys: an orbit by the right button, a pause of 0 to 0.8 s, then a key that selects a tool. The measured time ends
// when the tool's button has changed on the screen. Sliders: 0.3 s after an orbit, the roughness slider is pressed,
// dragged and released within 0.2 s. The input is lost if the grab is not at the place of release. The program's own
// report on its tiles and frames ($QUARRY_EDITOR_LOG) is printed too. Nothing else may run meanwhile.
#include <X11/Xlib.h>
#include <X11/Xutil.h>
#include <X11/keysym.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point then) {
  return std::chrono::duration<double, std::milli>(Clock::now() - then).count();
}
void rest(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

[[noreturn]] void stop(const std::string& why) {
  fmt::print(stderr, "qry_bench_editor: {}\n", why);
  std::exit(1);
}

// A child process that ends with this one.
class Child {
 public:
  explicit Child(const std::function<void()>& exec) : pid_(fork()) {
    if (pid_ != 0) return;
    exec();
    _exit(127);
  }
  ~Child() {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  bool runs() const { return waitpid(pid_, nullptr, WNOHANG) == 0; }

 private:
  pid_t pid_;
};

// The X server's screen, and a simulated user.
class UserScreen {
 public:
  explicit UserScreen(const std::string& name) : display_(XOpenDisplay(name.c_str())) {
    if (!display_) stop("the X server " + name + " cannot be reached");
    void* xtst = dlopen("libXtst.so.6", RTLD_NOW);  // its headers are rarely installed
    if (!xtst) stop("libXtst.so.6 is missing: apt-get install libxtst6");
    button_ = reinterpret_cast<Button>(dlsym(xtst, "XTestFakeButtonEvent"));
    key_ = reinterpret_cast<Key>(dlsym(xtst, "XTestFakeKeyEvent"));
    motion_ = reinterpret_cast<Motion>(dlsym(xtst, "XTestFakeMotionEvent"));
    if (!button_ || !key_ || !motion_) stop("libXtst.so.6 lacks what sends input");
  }
  void move(int x, int y) { motion_(display_, -1, x, y, 0), XFlush(display_); }
  void button(unsigned number, bool down) { button_(display_, number, down, 0), XFlush(display_); }
  void key(KeySym symbol) {
    const KeyCode code = XKeysymToKeycode(display_, symbol);
    key_(display_, code, True, 0);
    key_(display_, code, False, 0);
    XFlush(display_);
  }
  // 0xRRGGBB, row by row.
  std::vector<uint32_t> pixels(int x, int y, unsigned width, unsigned height) {
    XImage* image = XGetImage(display_, DefaultRootWindow(display_), x, y, width, height, AllPlanes, ZPixmap);
    if (!image) stop("the screen cannot be read");
    std::vector<uint32_t> all;
    for (unsigned row = 0; row < height; ++row)
      for (unsigned column = 0; column < width; ++column)
        all.push_back(uint32_t(XGetPixel(image, int(column), int(row))) & 0xFFFFFF);
    XDestroyImage(image);
    return all;
  }

 private:
  using Button = int (*)(Display*, unsigned, Bool, unsigned long);
  using Key = int (*)(Display*, unsigned, Bool, unsigned long);
  using Motion = int (*)(Display*, int, int, int, unsigned long);
  Display* display_;
  Button button_;
  Key key_;
  Motion motion_;
};

// Waits until the window's picture has not changed for `still_seconds`.
void settle(UserScreen& screen, int width, int height, double still_seconds, double most_seconds) {
  const auto begun = Clock::now();
  auto changed = begun;
  std::vector<uint32_t> last;
  while (ms_since(begun) < most_seconds * 1000) {
    std::vector<uint32_t> now;
    for (int i = 1; i < 8; ++i) {
      const auto row = screen.pixels(0, height * i / 8, unsigned(width), 1);
      now.insert(now.end(), row.begin(), row.end());
    }
    const bool blank = std::all_of(now.begin(), now.end(), [&](uint32_t p) { return p == now[0]; });
    if (now != last || blank) changed = Clock::now(), last = std::move(now);
    if (ms_since(changed) > still_seconds * 1000) return;
    rest(0.05);
  }
  stop("the window did not come to rest");
}

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

double at_share(std::vector<double> sorted, double share) {
  return sorted.empty() ? 0 : sorted[std::min(sorted.size() - 1, size_t(share * double(sorted.size())))];
}

nlohmann::json spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {{"count", values.size()},
          {"median", at_share(values, 0.5)},
          {"p95", at_share(values, 0.95)},
          {"worst", values.empty() ? 0 : values.back()}};
}

int run(int count, char** words) {
  fs::path program = fs::read_symlink("/proc/self/exe").parent_path() / "quarry";
  int tries = 100, drags = 50, width = 1440, height = 900;
  bool validation = false;
  std::string json_file;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const auto value = [&] {
      return i + 1 < count ? std::string(words[++i]) : (stop(word + " needs a value"), std::string());
    };
    if (word == "--quarry") program = value();
    else if (word == "--tries") tries = std::atoi(value().c_str());
    else if (word == "--drags") drags = std::atoi(value().c_str());
    else if (word == "--json") json_file = value();
    else if (word == "--validation") validation = true;
    else if (word == "--size") {
      if (std::sscanf(value().c_str(), "%dx%d", &width, &height) != 2 || width < 1000 || height < 700)
        stop("--size WxH: at least 1000x700");
    } else stop("unknown option " + word);
  }

  std::string scratch = (fs::temp_directory_path() / "qry-bench-editor-XXXXXX").string();
  if (!mkdtemp(scratch.data())) stop("no folder for the world to be edited");
  const fs::path dir = scratch, world = dir / "spheres.quarry", log = dir / "log";
  {
    Child generate(
        [&] { execl(program.c_str(), "quarry", "generate", "spheres", "--size", "64", "-o", world.c_str(), nullptr); });
    while (generate.runs()) rest(0.02);
  }
  if (!fs::exists(world)) stop(program.string() + " made no world");

  int ready[2];
  if (pipe(ready) != 0) stop("no pipe");
  const std::string size = fmt::format("{}x{}", width, height), screen_size = size + "x24",
                    fd = std::to_string(ready[1]);
  Child server([&] {
    const int null = open("/dev/null", O_RDWR);
    dup2(null, 1), dup2(null, 2);
    close(ready[0]);
    execlp("Xvfb", "Xvfb", "-displayfd", fd.c_str(), "-screen", "0", screen_size.c_str(), "-nolisten", "tcp", nullptr);
  });
  close(ready[1]);
  std::string number;
  for (char c; read(ready[0], &c, 1) == 1 && c != '\n';) number += c;
  if (number.empty()) stop("no Xvfb: apt-get install xvfb");
  const std::string display = ":" + number;
  Child editor([&] {
    setenv("DISPLAY", display.c_str(), 1);
    setenv("XDG_STATE_HOME", (dir / "state").c_str(), 1);
    setenv("QUARRY_EDITOR_LOG", log.c_str(), 1);
    unsetenv("WAYLAND_DISPLAY");
    execl(program.c_str(), "quarry", "edit", world.c_str(), "--size", size.c_str(),
          validation ? "--validation" : nullptr, nullptr);
  });
  UserScreen screen(display);
  settle(screen, width, height, 2.5, 120);
  const auto log_length = [&] { return fs::exists(log) ? fs::file_size(log) : 0; };
  const auto log_begin = log_length();
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
    if (std::system(fmt::format("import -display {} -window root {}", display, picture).c_str()) != 0)
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
  result["size"] = size;
  result["key_ms"] = spread(seen);
  result["key_ms"]["within_150"] = std::count_if(seen.begin(), seen.end(), [](double ms) { return ms <= 150; });
  result["key_ms"]["lost"] = lost;
  result["slider_drags"] = {{"count", drags}, {"lost", slider_lost}, {"where", ways}};
  result["tile_ms"] = spread(tiles);
  result["moving_picture_ms"] = spread(coarse);
  result["frame_waited_ms"] = spread(frames_waited);
  result["frame_host_ms"] = spread(frames_drawn);
  fmt::print("{}\n", result.dump(2));
  if (!json_file.empty()) std::ofstream(json_file) << result.dump(2) << '\n';
  fs::remove_all(dir);
  return 0;
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
