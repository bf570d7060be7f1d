// SPDX-License-Identifier: Apache-2.0
// viewport.hpp - the part of the window where the world is: mouse to camera and strokes, and what is drawn over the
// picture.
#pragma once

#include <optional>
#include <vector>

#include "app/editor/session/tools.hpp"
#include "app/editor/window/glfw_window.hpp"
#include "app/editor/window/presenter.hpp"
#include "engine/render/orbit_camera.hpp"

namespace quarry::app {

struct Messages;
class Session;

class Viewport {
 public:
  // What a stroke edits and with what, and from where one looks. All outlive the viewport.
  Viewport(Session& session, OrbitCamera& camera, Brush& brush, Messages& messages)
      : session_(session), camera_(camera), brush_(brush), messages_(messages) {}

  // In window coordinates.
  double x = 0, y = 0, width = 1, height = 1;

  std::optional<Pick> hover;  // under the mouse, when the mouse is here
  bool dragging() const { return drag_ != Drag::none; }

  // Events of this frame, after Dear ImGui has seen them: what it wants is not ours. `modal`: a question has them all.
  void handle(const std::vector<InputEvent>& events, bool modal);
  void draw_overlay(float scale) const;  // of the window's content
  void cancel_stroke();
  void forget();  // another document is shown

 private:
  enum class Drag : uint8_t { none, orbit, pan, stroke };
  void press(const InputEvent& event);
  void release();
  void move(double mouse_x, double mouse_y);
  void look();
  void apply(const std::vector<Edit>& edits);
  bool inside(double mouse_x, double mouse_y) const;
  Ray ray_at(double mouse_x, double mouse_y) const;

  Session& session_;
  OrbitCamera& camera_;
  Brush& brush_;
  Messages& messages_;
  Drag drag_ = Drag::none;
  int drag_button_ = -1;
  double mouse_x_ = 0, mouse_y_ = 0;
  bool over_ = false;
  std::optional<Stroke> stroke_;
};

}  // namespace quarry::app
