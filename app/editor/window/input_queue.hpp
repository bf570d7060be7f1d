// SPDX-License-Identifier: Apache-2.0
// input_queue.hpp - what the user did, cut into pieces that one frame of Dear ImGui can tell apart.
//
//   window's events --take_piece--> one kind of thing --give--> Dear ImGui (a frame of it) -> keys, viewport -> the
//   next piece ...
//
// Dear ImGui 1.86 is told one place of the mouse and one state of every button and key a frame, and asks for nothing in
// between: of a press, a way and a release within one frame it sees the last place alone, with the button up, and a
// slider that was drawn along stays where it was pressed. (From 1.87 on it has a queue of its own.) A frame of it costs
// little when it is not shown, so each piece gets one.
#pragma once

#include <deque>
#include <vector>

#include "app/editor/window/glfw_window.hpp"

struct ImGuiIO;

namespace quarry::app {

// Takes from the front of `events` what one frame can tell apart: moves in a row, or letters; or one press or release
// of a button or a key, one turn of the wheel, one event of another kind. Nothing is left out and nothing changes
// places. None: there was nothing to take.
std::vector<InputEvent> take_piece(std::deque<InputEvent>& events);

// Where the mouse is and what is pressed, as Dear ImGui is to know it in the frame that comes.
class InputState {
 public:
  // Tells `io`, and puts the mouse's place into presses and releases of its buttons.
  void give(ImGuiIO& io, std::vector<InputEvent>& piece);

 private:
  double mouse_x_ = -1e30, mouse_y_ = -1e30;
};

}  // namespace quarry::app
