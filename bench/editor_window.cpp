// SPDX-License-Identifier: Apache-2.0
// editor_window.cpp - starts Xvfb and the editor; sends input; reads pixels.
#include "bench/editor_window.hpp"

#include <X11/Xutil.h>
#include <X11/keysym.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <thread>

namespace quarry::bench {
namespace fs = std::filesystem;

double ms_since(Clock::time_point then) {
  return std::chrono::duration<double, std::milli>(Clock::now() - then).count();
}
void rest(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

void stop(const std::string& why) {
  fmt::print(stderr, "qry_bench_editor: {}\n", why);
  std::exit(1);
}

Child::Child(const std::function<void()>& exec) : pid_(fork()) {
  if (pid_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  exec();
  _exit(127);
}
Child::~Child() {
  if (exit_code()) return;
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
}
std::optional<int> Child::exit_code() {
  int status = 0;
  if (!code_ && waitpid(pid_, &status, WNOHANG) == pid_) code_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return code_;
}

UserScreen::UserScreen(const std::string& name) : display_(XOpenDisplay(name.c_str())) {
  if (!display_) stop("the X server " + name + " cannot be reached");
  void* xtst = dlopen("libXtst.so.6", RTLD_NOW);  // its headers are rarely installed
  if (!xtst) stop("libXtst.so.6 is missing: apt-get install libxtst6");
  button_ = reinterpret_cast<Button>(dlsym(xtst, "XTestFakeButtonEvent"));
  key_ = reinterpret_cast<Key>(dlsym(xtst, "XTestFakeKeyEvent"));
  motion_ = reinterpret_cast<Motion>(dlsym(xtst, "XTestFakeMotionEvent"));
  if (!button_ || !key_ || !motion_) stop("libXtst.so.6 lacks what sends input");
}
void UserScreen::move(int x, int y) { motion_(display_, -1, x, y, 0), XFlush(display_); }
void UserScreen::button(unsigned number, bool down) { button_(display_, number, down, 0), XFlush(display_); }
void UserScreen::press(unsigned long symbol, bool down) { key_(display_, XKeysymToKeycode(display_, symbol), down, 0); }
void UserScreen::key(unsigned long symbol) {
  press(symbol, true), press(symbol, false);
  XFlush(display_);
}
void UserScreen::chord(bool shift, unsigned long symbol) {
  press(XK_Control_L, true);
  if (shift) press(XK_Shift_L, true);
  press(symbol, true), press(symbol, false);
  if (shift) press(XK_Shift_L, false);
  press(XK_Control_L, false);
  XFlush(display_);
}
void UserScreen::type(const std::string& text) {
  for (const char c : text) key(static_cast<unsigned char>(c));  // Latin letters are their own symbols
}

void UserScreen::resize(int width, int height) {
  Window root = 0, parent = 0, largest = 0;
  Window* all = nullptr;
  unsigned count = 0;
  if (!XQueryTree(display_, DefaultRootWindow(display_), &root, &parent, &all, &count)) stop("no list of windows");
  int most = 0;
  for (unsigned i = 0; i < count; ++i) {
    XWindowAttributes facts;
    if (!XGetWindowAttributes(display_, all[i], &facts) || facts.map_state != IsViewable) continue;
    if (facts.width * facts.height > most) most = facts.width * facts.height, largest = all[i];
  }
  if (all) XFree(all);
  if (largest) XResizeWindow(display_, largest, unsigned(width), unsigned(height)), XFlush(display_);
}

std::vector<uint32_t> UserScreen::pixels(int x, int y, unsigned width, unsigned height) {
  XImage* image = XGetImage(display_, DefaultRootWindow(display_), x, y, width, height, AllPlanes, ZPixmap);
  if (!image) stop("the screen cannot be read");
  std::vector<uint32_t> all;
  for (unsigned row = 0; row < height; ++row)
    for (unsigned column = 0; column < width; ++column)
      all.push_back(uint32_t(XGetPixel(image, int(column), int(row))) & 0xFFFFFF);
  XDestroyImage(image);
  return all;
}

namespace {

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

// Comes back only where the program cannot be started. words[0]: what it is to see as its name.
void exec(const fs::path& program, std::vector<std::string>& words) {
  std::vector<char*> all;
  all.reserve(words.size() + 1);
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  execv(program.c_str(), all.data());
}

void run_to_its_end(const fs::path& program, std::vector<std::string> words) {
  Child child([&] { exec(program, words); });
  while (child.runs()) rest(0.02);
  if (child.exit_code() != 0) stop(fmt::format("{} {} failed", program.string(), words[1]));
}

}  // namespace

EditorWindow::EditorWindow(const EditorOptions& options, const std::string& format) {
  std::string scratch = (fs::temp_directory_path() / "qry-bench-editor-XXXXXX").string();
  if (!mkdtemp(scratch.data())) stop("no folder for the world to be edited");
  dir_ = scratch;
  const fs::path generated = dir_ / "spheres.quarry", world = dir_ / ("spheres." + format);
  run_to_its_end(options.program, {"quarry", "generate", "spheres", "--size", "64", "-o", generated.string()});
  if (world != generated)
    run_to_its_end(options.program, {"quarry", "convert", generated.string(), "-o", world.string()});

  int ready[2];
  if (pipe(ready) != 0) stop("no pipe");
  const fs::path script = dir_ / "script";
  if (!options.script.empty()) std::ofstream(script) << options.script;
  const std::string size = fmt::format("{}x{}", options.width, options.height), screen_size = size + "x24",
                    fd = std::to_string(ready[1]);
  server_ = std::make_unique<Child>([&] {
    const int null = open("/dev/null", O_RDWR);
    dup2(null, 1), dup2(null, 2);
    close(ready[0]);
    execlp("Xvfb", "Xvfb", "-displayfd", fd.c_str(), "-screen", "0", screen_size.c_str(), "-nolisten", "tcp", nullptr);
  });
  close(ready[1]);
  std::string number;
  for (char c; read(ready[0], &c, 1) == 1 && c != '\n';) number += c;
  close(ready[0]);
  if (number.empty()) stop("no Xvfb: apt-get install xvfb");
  display_ = ":" + number;
  editor_ = std::make_unique<Child>([&] {
    setenv("DISPLAY", display_.c_str(), 1);
    setenv("XDG_STATE_HOME", (dir_ / "state").c_str(), 1);
    setenv("QUARRY_EDITOR_LOG", log().c_str(), 1);
    unsetenv("WAYLAND_DISPLAY");
    if (chdir(dir_.c_str()) != 0) return;
    const int errors = open(complaints().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    dup2(errors, 2);
    if (!options.script.empty()) dup2(open("/dev/null", O_WRONLY), 1);  // it acknowledges each command
    std::vector<std::string> words{"quarry", "edit", world.filename().string(), "--size", size};
    if (!options.script.empty()) words.insert(words.end(), {"--script", script.string()});
    words.insert(words.end(), options.more.begin(), options.more.end());
    exec(options.program, words);
  });
  screen_ = std::make_unique<UserScreen>(display_);
  settle(*screen_, options.width, options.height, 2.5, 120);
}

EditorWindow::~EditorWindow() {
  editor_.reset();
  server_.reset();
  std::error_code ignored;
  fs::remove_all(dir_, ignored);
}

Held held_by(pid_t process) {
  const fs::path proc = fs::path("/proc") / std::to_string(process);
  const auto entries = [&](const char* folder) {
    return size_t(std::distance(fs::directory_iterator(proc / folder), fs::directory_iterator()));
  };
  Held held;
  uint64_t pages = 0, resident = 0;
  std::ifstream(proc / "statm") >> pages >> resident;
  held.resident_mb = double(resident) * double(sysconf(_SC_PAGESIZE)) / 1e6;
  held.files = entries("fd"), held.threads = entries("task");
  std::ifstream maps(proc / "maps");
  for (std::string line; std::getline(maps, line);) ++held.mappings;
  return held;
}
size_t files_in(const fs::path& folder) {
  std::error_code none;
  return size_t(std::distance(fs::directory_iterator(folder, none), fs::directory_iterator()));
}
std::string complaints_of(const EditorWindow& window) {
  std::ifstream in(window.complaints());
  const std::string all(std::istreambuf_iterator<char>(in), {});
  return all.substr(all.size() - std::min<size_t>(all.size(), 400));
}

EditorLog::EditorLog(const fs::path& file) : in_(file) { read(); }
void EditorLog::read() {
  for (char c; in_.get(c);) {
    if (c != '\n') {
      line_ += c;
      continue;
    }
    if (line_.find("\"frame\"") != std::string::npos) ++frames;
    if (line_.find("\"session\"") != std::string::npos) {
      const auto entry = nlohmann::json::parse(line_, nullptr, false);
      if (entry.contains("session")) now = entry["session"];
    }
    line_.clear();
  }
  in_.clear();
}

double at_share(const std::vector<double>& sorted, double share) {
  return sorted.empty() ? 0 : sorted[std::min(sorted.size() - 1, size_t(share * double(sorted.size())))];
}

}  // namespace quarry::bench
