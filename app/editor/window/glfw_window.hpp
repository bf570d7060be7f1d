// SPDX-License-Identifier: Apache-2.0
// glfw_window.hpp - the window, and the user's input as a queue of events. Scripts put their events into the same
// queue, so a scripted click takes the same path as a real one.
#pragma once

#include <vulkan/vulkan_core.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"

struct GLFWwindow;

namespace quarry::app {

struct InputEvent {
  enum class Type : uint8_t { move, button, scroll, key, text, drop, close, redraw };
  Type type = Type::move;
  double x = 0, y = 0;  // move: place in window coordinates; scroll: steps
  int code = 0;         // button: 0 left, 1 right, 2 middle; key: GLFW's key; text: Unicode
  bool down = false;    // button, key
  bool repeat = false;  // key
  int modifiers = 0;    // GLFW's bits
  std::string file;     // drop
};

class Window {
 public:
  // Errors: not_found without a display (the message names DISPLAY and Xvfb), device if no window can be created.
  static Result<std::unique_ptr<Window>> create(int width, int height, const std::string& title);
  ~Window();

  static std::vector<const char*> instance_extensions();  // after create
  Result<VkSurfaceKHR> create_surface(VkInstance instance);
  bool can_present(VkInstance instance, VkPhysicalDevice device, uint32_t queue_family) const;

  // Lets the system deliver events. Returns at once, or after the first event or `seconds`.
  void poll();
  void wait(double seconds);
  std::deque<InputEvent>& events() { return events_; }
  void ignore_user(bool ignore) { ignore_user_ = ignore; }  // scripts are not disturbed by a real mouse

  void size(int& width, int& height) const;              // window coordinates
  void framebuffer_size(int& width, int& height) const;  // pixels
  float content_scale() const;                           // 1 at 96 dots per inch
  void set_title(const std::string& title);
  void set_cursor(int imgui_cursor);  // ImGuiMouseCursor_
  std::string clipboard() const;
  void set_clipboard(const char* text);
  void push(InputEvent event);

 private:
  explicit Window(GLFWwindow* window);
  GLFWwindow* window_;
  std::deque<InputEvent> events_;
  std::string title_;
  std::vector<void*> cursors_;
  bool ignore_user_ = false, cursor_hidden_ = false;
};

// "ctrl+shift+z", "f", "escape" -> GLFW's key and modifiers. Errors: bad_usage.
struct KeyChord {
  int key = 0, modifiers = 0;
  friend bool operator==(const KeyChord&, const KeyChord&) = default;
};
Result<KeyChord> key_chord(const std::string& name);
std::string shown_chord(KeyChord chord);  // "Ctrl+Shift+Z"

}  // namespace quarry::app
