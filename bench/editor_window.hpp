// SPDX-License-Identifier: Apache-2.0
// editor_window.hpp - the built editor in a window of its own X server (Xvfb), and a simulated user before it, who uses
// the server's test input (XTEST). Not what the user does: that is in editor_bench.cpp, editor_session.cpp and
// editor_script.cpp.
#pragma once

#include <X11/Xlib.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace quarry::bench {

using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point then);
void rest(double seconds);
[[noreturn]] void stop(const std::string& why);

// A child process that ends with this one.
class Child {
 public:
  explicit Child(const std::function<void()>& exec);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t pid() const { return pid_; }
  bool runs() { return !exit_code(); }
  std::optional<int> exit_code();  // none: it runs; -1: a signal ended it

 private:
  pid_t pid_;
  std::optional<int> code_;
};

// The X server's screen, and a simulated user. Symbols of keys and letters are X's.
class UserScreen {
 public:
  explicit UserScreen(const std::string& name);
  void move(int x, int y);
  void button(unsigned number, bool down);
  void key(unsigned long symbol);
  void chord(bool shift, unsigned long symbol);                                 // with Ctrl
  void type(const std::string& text);                                           // small letters, digits and dots
  void resize(int width, int height);                                           // the largest window
  std::vector<uint32_t> pixels(int x, int y, unsigned width, unsigned height);  // 0xRRGGBB, row by row

 private:
  using Button = int (*)(Display*, unsigned, int, unsigned long);
  using Key = int (*)(Display*, unsigned, int, unsigned long);
  using Motion = int (*)(Display*, int, int, int, unsigned long);
  void press(unsigned long symbol, bool down);
  Display* display_;
  Button button_;
  Key key_;
  Motion motion_;
};

struct EditorOptions {
  std::filesystem::path program;  // quarry
  int width = 1440, height = 900;
  std::vector<std::string> more;  // of `quarry edit`
  std::string script;             // its commands; empty: somebody is before the window
};

// A world of spheres, in a folder of its own that goes with this, opened in the editor, which has drawn it.
class EditorWindow {
 public:
  // `format`: ending of the file that is opened.
  EditorWindow(const EditorOptions& options, const std::string& format);
  ~EditorWindow();
  const std::filesystem::path& dir() const { return dir_; }  // the editor's working directory
  std::filesystem::path log() const { return dir_ / "log"; }
  std::filesystem::path complaints() const { return dir_ / "stderr"; }
  Child& editor() { return *editor_; }
  UserScreen& screen() { return *screen_; }
  const std::string& display() const { return display_; }

 private:
  std::filesystem::path dir_;
  std::string display_;
  std::unique_ptr<Child> server_, editor_;
  std::unique_ptr<UserScreen> screen_;
};

// What a process holds.
struct Held {
  double resident_mb = 0;
  size_t files = 0, threads = 0, mappings = 0;
};
Held held_by(pid_t process);
size_t files_in(const std::filesystem::path& folder);
std::string complaints_of(const EditorWindow& window);  // the end of what it has said on standard error

// What the editor has said in its log until now.
class EditorLog {
 public:
  explicit EditorLog(const std::filesystem::path& file);
  void read();
  uint64_t count(const char* name) const { return now.value(name, uint64_t(0)); }
  bool is(const char* name) const { return now.value(name, false); }
  uint64_t frames = 0;
  nlohmann::json now;

 private:
  std::ifstream in_;
  std::string line_;
};

double at_share(const std::vector<double>& sorted, double share);

// editor_session.cpp: hours of a user's work. `seconds`: how long.
nlohmann::json editor_session(const EditorOptions& options, double seconds, uint32_t seed);
// editor_script.cpp: so many edits by a script.
nlohmann::json editor_script(const EditorOptions& options, uint64_t edits, uint32_t seed);

}  // namespace quarry::bench
