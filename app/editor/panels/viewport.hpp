// SPDX-License-Identifier: Apache-2.0
// viewport.hpp - the part of the window where the world is: mouse to camera and strokes, and what is drawn over the picture.
#pragma once

#include <optional>
#include <vector>

#include "app/editor/window/presenter.hpp"
#include "app/editor/session/tools.hpp"
#include "app/editor/window/glfw_window.hpp"

namespace quarry::app {

struct Editor;

class Viewport {
 public:
  // In window coordinates.
  double x = 0, y = 0, width = 1, height = 1;

  std::optional<Pick> hover;  // under the mouse, when the mouse is here
  bool dragging() const { return drag_ != Drag::none; }

  // Events of this frame, after Dear ImGui has seen them: what it wants is not ours.
  void handle(Editor& editor, const std::vector<InputEvent>& events);
  void draw_overlay(Editor& editor) const;
  void cancel_stroke(Editor& editor);
  void forget();  // another document is shown

 private:
  enum class Drag : uint8_t { none, orbit, pan, stroke };
  void press(Editor& editor, const InputEvent& event);
  void release(Editor& editor, const InputEvent& event);
  void move(Editor& editor, double mouse_x, double mouse_y);
  void look(Editor& editor);
  void apply(Editor& editor, const std::vector<Edit>& edits);
  bool inside(double mouse_x, double mouse_y) const;
  Ray ray_at(const Editor& editor, double mouse_x, double mouse_y) const;

  Drag drag_ = Drag::none;
  int drag_button_ = -1;
  double mouse_x_ = 0, mouse_y_ = 0;
  bool over_ = false;
  std::optional<Stroke> stroke_;
};

}  // namespace quarry::app
