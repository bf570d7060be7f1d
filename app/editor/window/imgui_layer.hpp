// SPDX-License-Identifier: Apache-2.0
// imgui_layer.hpp - Dear ImGui for this editor: its look, its fonts, and the feeding of window events into it.
#pragma once

#include <vector>

#include "app/editor/window/glfw_window.hpp"
#include "app/editor/window/input_queue.hpp"

namespace quarry::app {

class ImGuiLayer {
 public:
  ImGuiLayer(Window& window, float scale);
  ~ImGuiLayer();
  ImGuiLayer(const ImGuiLayer&) = delete;
  ImGuiLayer& operator=(const ImGuiLayer&) = delete;

  // Gives Dear ImGui the next piece of the user's input (input_queue.hpp) and returns it. Events of mouse buttons get
  // the mouse's position.
  std::vector<InputEvent> feed(double seconds_since_last);
  float scale() const { return scale_; }

 private:
  Window& window_;
  float scale_;
  InputState input_;
  std::string clipboard_;
};

// Colours used outside Dear ImGui's own widgets, 0xAABBGGRR.
namespace colors {
constexpr unsigned kAccent = 0xFFD9A86E;  // a calm blue
constexpr unsigned kAccentDim = 0x80D9A86E;
constexpr unsigned kRemove = 0xFF6A6AE0;
constexpr unsigned kPaint = 0xFF7FC8A0;
constexpr unsigned kReplace = 0xFF58B4E8;
constexpr unsigned kText = 0xFFDDD9D6;
constexpr unsigned kTextDim = 0xFF9A938D;
constexpr unsigned kError = 0xFF7A7AF0;
constexpr unsigned kBar = 0xFFB98F5C;
constexpr unsigned kBarBack = 0xFF332E2B;
}  // namespace colors
constexpr float kBackground[4] = {0.086f, 0.094f, 0.106f, 1.0f};

}  // namespace quarry::app
