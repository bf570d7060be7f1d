// SPDX-License-Identifier: Apache-2.0
// viewport.hpp - the part of the window that shows the world. It turns the mouse into camera moves and strokes, and
// draws over the picture.
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
  // The session that strokes edit, the camera, the brush and the messages. All outlive the viewport.
  Viewport(Session& session, OrbitCamera& camera, Brush& brush, Messages& messages)
      : session_(session), camera_(camera), brush_(brush), messages_(messages) {}

  // Its rectangle, in window coordinates.
  double x = 0, y = 0, width = 1, height = 1;

  std::optional<Pick> hover;  // what is under the mouse, if the mouse is here
  bool dragging() const { return drag_ != Drag::none; }

  // Handles this frame's events, after Dear ImGui has seen them. Events that Dear ImGui wants are left to it. `modal`:
  // a question has all events.
  void handle(const std::vector<InputEvent>& events, bool modal);
  void draw_overlay(float scale) const;  // `scale` of the window's content
  void cancel_stroke();
  void forget();  // another document is shown

 private:
  enum class Drag : uint8_t { none, orbit, pan, stroke };
  void press(const InputEvent& event);
  void release();
  void end_stroke();
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
