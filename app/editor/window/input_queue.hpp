// SPDX-License-Identifier: Apache-2.0
// input_queue.hpp - the user's input, cut into pieces that one frame of Dear ImGui can tell apart.
//
//   window's events --take_piece--> one kind of thing --give--> Dear ImGui (a frame of it) -> keys, viewport -> the
//   next piece ...
//
// Dear ImGui 1.86 takes one mouse position and one state of every button and key per frame. It sees nothing in between.
// If a press, a move and a release fall into one frame, it sees only the last position, with the button up. A dragged
// slider then stays where it was pressed. (From 1.87 on it has its own queue.) A frame of Dear ImGui that is not shown
// costs little, so each piece gets one.
#pragma once

#include <deque>
#include <vector>

#include "app/editor/window/glfw_window.hpp"

struct ImGuiIO;

namespace quarry::app {

// Takes from the front of `events` what one frame can tell apart: moves in a row, or letters; or one press or release
// of a button or a key, one turn of the wheel, one event of another kind. No event is lost, and their order stays. The
// result is empty if there were no events.
std::vector<InputEvent> take_piece(std::deque<InputEvent>& events);

// The mouse position and the pressed buttons and keys, as Dear ImGui gets them for the next frame.
class InputState {
 public:
  // Tells `io`, and writes the mouse position into presses and releases of its buttons.
  void give(ImGuiIO& io, std::vector<InputEvent>& piece);

 private:
  double mouse_x_ = -1e30, mouse_y_ = -1e30;
};

}  // namespace quarry::app
