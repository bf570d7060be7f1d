// SPDX-License-Identifier: Apache-2.0
// input_queue.cpp - cuts the events into pieces. Moves and text are joined; each press and release is a piece of its
// own.
#include "app/editor/window/input_queue.hpp"

#include <GLFW/glfw3.h>
#include <imgui.h>

namespace quarry::app {

std::vector<InputEvent> take_piece(std::deque<InputEvent>& events) {
  using Type = InputEvent::Type;
  std::vector<InputEvent> piece;
  while (!events.empty() && (piece.empty() || events.front().type == piece.front().type)) {
    piece.push_back(std::move(events.front()));
    events.pop_front();
    const Type type = piece.front().type;
    if (type != Type::move && type != Type::text && type != Type::redraw) break;
  }
  return piece;
}

void InputState::give(ImGuiIO& io, std::vector<InputEvent>& piece) {
  using Type = InputEvent::Type;
  // An event's modifiers are those before it. If its key is itself a modifier, the event says whether that one is held.
  const auto held = [](const InputEvent& event, int left, int right, int bit) {
    return event.code == left || event.code == right ? event.down : (event.modifiers & bit) != 0;
  };
  for (InputEvent& event : piece) {
    switch (event.type) {
      case Type::move: mouse_x_ = event.x, mouse_y_ = event.y; break;
      case Type::button:
        io.MouseDown[event.code] = event.down;
        event.x = mouse_x_, event.y = mouse_y_;
        break;
      case Type::scroll:
        io.MouseWheelH += float(event.x);
        io.MouseWheel += float(event.y);
        break;
      case Type::key:
        if (event.code < 512) io.KeysDown[event.code] = event.down;
        io.KeyCtrl = held(event, GLFW_KEY_LEFT_CONTROL, GLFW_KEY_RIGHT_CONTROL, GLFW_MOD_CONTROL);
        io.KeyShift = held(event, GLFW_KEY_LEFT_SHIFT, GLFW_KEY_RIGHT_SHIFT, GLFW_MOD_SHIFT);
        io.KeyAlt = held(event, GLFW_KEY_LEFT_ALT, GLFW_KEY_RIGHT_ALT, GLFW_MOD_ALT);
        break;
      case Type::text: io.AddInputCharacter(unsigned(event.code)); break;
      case Type::drop:
      case Type::close:
      case Type::redraw: break;
    }
  }
  io.MousePos = {float(mouse_x_), float(mouse_y_)};
}

}  // namespace quarry::app
