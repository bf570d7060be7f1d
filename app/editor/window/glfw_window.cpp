// SPDX-License-Identifier: Apache-2.0
// glfw_window.cpp - turns GLFW's callbacks into events; clipboard, cursors and the names of keys.
#include "app/editor/window/glfw_window.hpp"

#define GLFW_INCLUDE_NONE
#define GLFW_INCLUDE_VULKAN
#include <GLFW/glfw3.h>
#include <fmt/format.h>
#include <imgui.h>

#include <cctype>
#include <cstdlib>

namespace quarry::app {
namespace {

struct NamedKey {
  const char* name;
  int key;
};
constexpr NamedKey kNamedKeys[] = {
    {"escape", GLFW_KEY_ESCAPE}, {"enter", GLFW_KEY_ENTER}, {"tab", GLFW_KEY_TAB},   {"backspace", GLFW_KEY_BACKSPACE},
    {"delete", GLFW_KEY_DELETE}, {"space", GLFW_KEY_SPACE}, {"left", GLFW_KEY_LEFT}, {"right", GLFW_KEY_RIGHT},
    {"up", GLFW_KEY_UP},         {"down", GLFW_KEY_DOWN},   {"home", GLFW_KEY_HOME}, {"end", GLFW_KEY_END},
    {"f1", GLFW_KEY_F1},         {"f2", GLFW_KEY_F2},       {"f5", GLFW_KEY_F5},     {"f11", GLFW_KEY_F11},
};

std::string last_glfw_error() {
  const char* text = nullptr;
  glfwGetError(&text);
  return text ? text : "unknown reason";
}

}  // namespace

Result<std::unique_ptr<Window>> Window::create(int width, int height, const std::string& title) {
  const char* x11 = std::getenv("DISPLAY");
  const char* wayland = std::getenv("WAYLAND_DISPLAY");
  if (!(x11 && *x11) && !(wayland && *wayland))
    return fail(ErrorCode::not_found,
                "there is no display to open a window on: DISPLAY and WAYLAND_DISPLAY are not set. Start it from a "
                "desktop, or under Xvfb: "
                "xvfb-run -s '-screen 0 1280x800x24' quarry edit ...");
  if (!glfwInit())
    return fail(ErrorCode::not_found,
                fmt::format("the display {} cannot be used: {}. Check DISPLAY, or use Xvfb: xvfb-run quarry edit ...",
                            x11 ? x11 : wayland, last_glfw_error()));
  glfwWindowHint(GLFW_CLIENT_API, GLFW_NO_API);
  glfwWindowHint(GLFW_SCALE_TO_MONITOR, GLFW_TRUE);
  GLFWwindow* handle = glfwCreateWindow(width, height, title.c_str(), nullptr, nullptr);
  if (!handle) {
    const std::string reason = last_glfw_error();
    glfwTerminate();
    return fail(ErrorCode::device, fmt::format("the window could not be opened: {}", reason));
  }
  return std::unique_ptr<Window>(new Window(handle));
}

Window::Window(GLFWwindow* window) : window_(window) {
  glfwSetWindowUserPointer(window, this);
  glfwSetWindowSizeLimits(window, 640, 400, GLFW_DONT_CARE, GLFW_DONT_CARE);
  static const auto of = [](GLFWwindow* w) -> Window& { return *static_cast<Window*>(glfwGetWindowUserPointer(w)); };
  glfwSetCursorPosCallback(window, [](GLFWwindow* w, double x, double y) {
    InputEvent event;
    event.x = x, event.y = y;
    if (!of(w).ignore_user_) of(w).push(event);
  });
  glfwSetMouseButtonCallback(window, [](GLFWwindow* w, int button, int action, int modifiers) {
    InputEvent event;
    event.type = InputEvent::Type::button;
    event.code = button, event.down = action == GLFW_PRESS, event.modifiers = modifiers;
    if (!of(w).ignore_user_ && button < 3) of(w).push(event);
  });
  glfwSetScrollCallback(window, [](GLFWwindow* w, double x, double y) {
    InputEvent event;
    event.type = InputEvent::Type::scroll;
    event.x = x, event.y = y;
    if (!of(w).ignore_user_) of(w).push(event);
  });
  glfwSetKeyCallback(window, [](GLFWwindow* w, int key, int, int action, int modifiers) {
    InputEvent event;
    event.type = InputEvent::Type::key;
    event.code = key, event.down = action != GLFW_RELEASE, event.repeat = action == GLFW_REPEAT,
    event.modifiers = modifiers;
    if (!of(w).ignore_user_ && key >= 0) of(w).push(event);
  });
  glfwSetCharCallback(window, [](GLFWwindow* w, unsigned code) {
    InputEvent event;
    event.type = InputEvent::Type::text;
    event.code = int(code);
    if (!of(w).ignore_user_) of(w).push(event);
  });
  glfwSetDropCallback(window, [](GLFWwindow* w, int count, const char** files) {
    InputEvent event;
    event.type = InputEvent::Type::drop;
    if (count > 0) event.file = files[0];
    of(w).push(event);
  });
  // The window was uncovered, resized or moved to another screen. Its picture may be gone.
  static const auto redraw_of = [](GLFWwindow* w) {
    InputEvent event;
    event.type = InputEvent::Type::redraw;
    of(w).push(event);
  };
  glfwSetWindowRefreshCallback(window, [](GLFWwindow* w) { redraw_of(w); });
  glfwSetFramebufferSizeCallback(window, [](GLFWwindow* w, int, int) { redraw_of(w); });
  glfwSetWindowCloseCallback(window, [](GLFWwindow* w) {
    glfwSetWindowShouldClose(w, GLFW_FALSE);  // the editor asks about unsaved work first
    InputEvent event;
    event.type = InputEvent::Type::close;
    of(w).push(event);
  });
  const int shapes[] = {GLFW_ARROW_CURSOR,   GLFW_IBEAM_CURSOR, GLFW_ARROW_CURSOR, GLFW_VRESIZE_CURSOR,
                        GLFW_HRESIZE_CURSOR, GLFW_ARROW_CURSOR, GLFW_ARROW_CURSOR, GLFW_HAND_CURSOR};
  for (const int shape : shapes) cursors_.push_back(glfwCreateStandardCursor(shape));
}

Window::~Window() {
  for (void* cursor : cursors_)
    if (cursor) glfwDestroyCursor(static_cast<GLFWcursor*>(cursor));
  glfwDestroyWindow(window_);
  glfwTerminate();
}

std::vector<const char*> Window::instance_extensions() {
  uint32_t count = 0;
  const char** names = glfwGetRequiredInstanceExtensions(&count);
  return {names, names + count};
}

Result<VkSurfaceKHR> Window::create_surface(VkInstance instance) {
  VkSurfaceKHR surface = VK_NULL_HANDLE;
  const VkResult result = glfwCreateWindowSurface(instance, window_, nullptr, &surface);
  if (result != VK_SUCCESS)
    return fail(ErrorCode::device,
                fmt::format("Vulkan cannot draw into this window (VkResult {}): {}", int(result), last_glfw_error()));
  return surface;
}

bool Window::can_present(VkInstance instance, VkPhysicalDevice device, uint32_t queue_family) const {
  return glfwGetPhysicalDevicePresentationSupport(instance, device, queue_family) == GLFW_TRUE;
}

void Window::poll() { glfwPollEvents(); }
void Window::wait(double seconds) { glfwWaitEventsTimeout(seconds); }
void Window::size(int& width, int& height) const { glfwGetWindowSize(window_, &width, &height); }
void Window::framebuffer_size(int& width, int& height) const { glfwGetFramebufferSize(window_, &width, &height); }

float Window::content_scale() const {
  float x = 1, y = 1;
  glfwGetWindowContentScale(window_, &x, &y);
  int window_width = 1, window_height = 1, pixel_width = 1, pixel_height = 1;
  size(window_width, window_height);
  framebuffer_size(pixel_width, pixel_height);
  // On Wayland and macOS, window coordinates are points already. There the framebuffer carries the scale, and the
  // layout must not scale twice.
  const float points = window_width > 0 ? float(pixel_width) / float(window_width) : 1.0f;
  return points > 0 ? std::max(1.0f, x / points) : 1.0f;
}

void Window::set_title(const std::string& title) {
  if (title == title_) return;
  title_ = title;
  glfwSetWindowTitle(window_, title.c_str());
}

void Window::set_cursor(int imgui_cursor) {
  const bool hide = imgui_cursor == ImGuiMouseCursor_None;
  if (hide != cursor_hidden_) glfwSetInputMode(window_, GLFW_CURSOR, hide ? GLFW_CURSOR_HIDDEN : GLFW_CURSOR_NORMAL);
  cursor_hidden_ = hide;
  if (!hide && imgui_cursor >= 0 && size_t(imgui_cursor) < cursors_.size())
    glfwSetCursor(window_, static_cast<GLFWcursor*>(cursors_[size_t(imgui_cursor)]));
}

std::string Window::clipboard() const {
  const char* text = glfwGetClipboardString(window_);
  return text ? text : "";
}
void Window::set_clipboard(const char* text) { glfwSetClipboardString(window_, text); }

void Window::push(InputEvent event) { events_.push_back(std::move(event)); }

Result<KeyChord> key_chord(const std::string& name) {
  KeyChord chord;
  std::string rest = name;
  for (char& c : rest) c = char(std::tolower(static_cast<unsigned char>(c)));
  const auto take = [&](const char* prefix, int bit) {
    if (!rest.starts_with(prefix)) return false;
    rest = rest.substr(std::string_view(prefix).size());
    chord.modifiers |= bit;
    return true;
  };
  while (take("ctrl+", GLFW_MOD_CONTROL) || take("shift+", GLFW_MOD_SHIFT) || take("alt+", GLFW_MOD_ALT)) {
  }
  for (const NamedKey& named : kNamedKeys)
    if (rest == named.name) {
      chord.key = named.key;
      return chord;
    }
  if (rest.size() == 1 && rest[0] > ' ' && rest[0] < 127) {
    // GLFW names printing keys by their character on a US keyboard. Letters are capitals.
    chord.key = std::toupper(static_cast<unsigned char>(rest[0]));
    return chord;
  }
  return fail(ErrorCode::bad_usage, fmt::format("'{}' is no key: write one such as ctrl+z, f or escape", name));
}

std::string shown_chord(KeyChord chord) {
  std::string text;
  if (chord.modifiers & GLFW_MOD_CONTROL) text += "Ctrl+";
  if (chord.modifiers & GLFW_MOD_SHIFT) text += "Shift+";
  if (chord.modifiers & GLFW_MOD_ALT) text += "Alt+";
  for (const NamedKey& named : kNamedKeys)
    if (chord.key == named.key) {
      std::string key = named.name;
      key[0] = char(std::toupper(static_cast<unsigned char>(key[0])));
      return text + key;
    }
  return text + char(chord.key);
}

}  // namespace quarry::app
