// SPDX-License-Identifier: Apache-2.0
// viewport.cpp - turns mouse events into camera moves, picks and strokes; draws the outlines of brush, instance and
// world over the picture.
#include "app/editor/panels/viewport.hpp"

#include <GLFW/glfw3.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <glm/geometric.hpp>

#include "app/editor/panels/messages.hpp"
#include "app/editor/session/document_session.hpp"
#include "app/editor/window/imgui_layer.hpp"

namespace quarry::app {
namespace {

unsigned mode_color(Mode mode) {
  switch (mode) {
    case Mode::remove: return colors::kRemove;
    case Mode::paint: return colors::kPaint;
    case Mode::replace: return colors::kReplace;
    default: return colors::kAccent;
  }
}

unsigned with_alpha(unsigned color, unsigned alpha) { return (color & 0x00FFFFFFu) | (alpha << 24); }

}  // namespace

bool Viewport::inside(double mouse_x, double mouse_y) const {
  return mouse_x >= x && mouse_y >= y && mouse_x < x + width && mouse_y < y + height;
}

Ray Viewport::ray_at(double mouse_x, double mouse_y) const {
  return camera_.ray(mouse_x - x - 0.5, mouse_y - y - 0.5, uint32_t(std::max(1.0, width)),
                     uint32_t(std::max(1.0, height)));
}

void Viewport::forget() {
  hover.reset();
  stroke_.reset();
  drag_ = Drag::none;
  drag_button_ = -1;
}

void Viewport::handle(const std::vector<InputEvent>& events, bool modal) {
  if (modal) {
    // The question ends what was begun before it. A stroke keeps what it has done so far.
    cancel_stroke();
    hover.reset();
    over_ = false;
    for (const InputEvent& event : events)
      if (event.type == InputEvent::Type::move) mouse_x_ = event.x, mouse_y_ = event.y;
    return;
  }
  const bool wanted_elsewhere = ImGui::GetIO().WantCaptureMouse && drag_ == Drag::none;
  over_ = !wanted_elsewhere && inside(mouse_x_, mouse_y_);
  for (const InputEvent& event : events) {
    switch (event.type) {
      case InputEvent::Type::move:
        move(event.x, event.y);
        over_ = !wanted_elsewhere && inside(mouse_x_, mouse_y_);
        break;
      case InputEvent::Type::button:
        if (event.down && over_ && drag_ == Drag::none) press(event);
        else if (!event.down && event.code == drag_button_) release();
        break;
      case InputEvent::Type::scroll:
        if (over_ && event.y != 0) {
          // Moves towards the voxel under the mouse, so the user can fly to a detail without turning first.
          const auto hit = session_.pick(ray_at(mouse_x_, mouse_y_));
          const Ray ray = ray_at(mouse_x_, mouse_y_);
          const glm::dvec3 point = ray.origin + ray.direction * (hit ? hit->t : 0);
          camera_.zoom(std::pow(0.87, event.y), hit ? &point : nullptr);
        }
        break;
      default: break;
    }
  }
  look();
}

void Viewport::look() {
  if (!over_ || drag_ == Drag::orbit || drag_ == Drag::pan) {
    hover.reset();
    return;
  }
  const Ray ray = ray_at(mouse_x_, mouse_y_);
  hover = or_ground(session_.pick(ray), ray);
  // On bare ground nothing can be removed or painted.
  if (hover && hover->ground && brush_.mode != Mode::add && brush_.mode != Mode::fill) hover.reset();
}

void Viewport::press(const InputEvent& event) {
  drag_button_ = event.code;
  const bool alt = (event.modifiers & GLFW_MOD_ALT) != 0, shift = (event.modifiers & GLFW_MOD_SHIFT) != 0,
             ctrl = (event.modifiers & GLFW_MOD_CONTROL) != 0;
  if (event.code == GLFW_MOUSE_BUTTON_MIDDLE || (event.code == GLFW_MOUSE_BUTTON_RIGHT && shift) ||
      (event.code == GLFW_MOUSE_BUTTON_LEFT && alt && shift)) {
    drag_ = Drag::pan;
    return;
  }
  if (event.code == GLFW_MOUSE_BUTTON_RIGHT || (event.code == GLFW_MOUSE_BUTTON_LEFT && alt)) {
    drag_ = Drag::orbit;
    return;
  }
  mouse_x_ = event.x, mouse_y_ = event.y;
  look();
  if (!hover) {
    drag_button_ = -1;
    return;
  }
  if (ctrl) {
    if (hover->material) brush_.material = hover->material;
    drag_button_ = -1;
    return;
  }
  // Edits act on the instance under the mouse. On bare ground they act on the one chosen last.
  if (!hover->ground)
    if (const auto instance = session_.instance_at(hover->voxel)) session_.set_active_instance(*instance);
  drag_ = Drag::stroke;
  stroke_.emplace(brush_, *hover);
  if (const auto begun = session_.begin_stroke(); !begun) messages_.complain(begun.error());
  apply(stroke_->begin());
}

void Viewport::release() {
  if (drag_ == Drag::stroke && stroke_) {
    apply(stroke_->end());
    end_stroke();
  }
  drag_ = Drag::none;
  drag_button_ = -1;
}

void Viewport::end_stroke() {
  if (const auto ended = session_.end_stroke(); !ended) messages_.complain(ended.error());
  stroke_.reset();
}

void Viewport::cancel_stroke() {
  if (drag_ == Drag::stroke) end_stroke();
  stroke_.reset();
  drag_ = Drag::none;
  drag_button_ = -1;
}

void Viewport::move(double mouse_x, double mouse_y) {
  const double dx = mouse_x - mouse_x_, dy = mouse_y - mouse_y_;
  mouse_x_ = mouse_x, mouse_y_ = mouse_y;
  switch (drag_) {
    case Drag::orbit: camera_.orbit(dx, dy); break;
    case Drag::pan: camera_.pan(dx, dy, height); break;
    case Drag::stroke:
      if (stroke_)
        apply(stroke_->move([this](const Ray& ray) { return session_.pick(ray); }, ray_at(mouse_x, mouse_y)));
      break;
    case Drag::none: break;
  }
}

void Viewport::apply(const std::vector<Edit>& edits) {
  for (const Edit& edit : edits) {
    const auto changed = session_.apply(edit);
    if (!changed) {
      messages_.complain(changed.error());
      return;
    }
  }
}

void Viewport::draw_overlay(float scale) const {
  ImDrawList& list = *ImGui::GetBackgroundDrawList();
  list.PushClipRect({float(x), float(y)}, {float(x + width), float(y + height)}, true);
  const auto wide = uint32_t(std::max(1.0, width)), high = uint32_t(std::max(1.0, height));
  const float line = 1.4f * scale;
  const auto segment = [&](const glm::dvec3& a, const glm::dvec3& b, unsigned color, float thickness) {
    const auto from = camera_.project(a, wide, high), to = camera_.project(b, wide, high);
    if (from && to)
      list.AddLine({float(x + from->x), float(y + from->y)}, {float(x + to->x), float(y + to->y)}, color, thickness);
  };

  // In an empty world only the ground shows where things are.
  if (session_.shown().bricks == 0) {
    for (int i = -64; i <= 64; i += 8) {
      const unsigned color = i == 0 ? 0x60FFFFFF : 0x24FFFFFF;
      segment({i, 0, -64}, {i, 0, 64}, color, 1);
      segment({-64, 0, i}, {64, 0, i}, color, 1);
    }
  }

  // Draws the edges of a box. Those behind it have another colour.
  const auto outline = [&](const Box3& box, unsigned color, unsigned far_color, float thickness) {
    const glm::dvec3 low(box.min.x, box.min.y, box.min.z), top(box.max.x + 1.0, box.max.y + 1.0, box.max.z + 1.0),
        eye = camera_.position();
    for (int axis = 0; axis < 3; ++axis) {
      const int u = (axis + 1) % 3, v = (axis + 2) % 3;
      for (int corner = 0; corner < 4; ++corner) {
        glm::dvec3 a, b;
        const bool far_u = (corner & 1) != 0, far_v = (corner & 2) != 0;
        a[axis] = low[axis], b[axis] = top[axis];
        a[u] = b[u] = far_u ? top[u] : low[u];
        a[v] = b[v] = far_v ? top[v] : low[v];
        // An edge is in front if one of its two faces looks towards the eye.
        const bool front = (far_u ? eye[u] > top[u] : eye[u] < low[u]) || (far_v ? eye[v] > top[v] : eye[v] < low[v]);
        segment(a, b, front ? color : far_color, front ? thickness : 1.0f);
      }
    }
  };

  // With several instances, outlines the one that edits act on.
  if (session_.scene().instances.size() > 1)
    if (const Box3 box = session_.active_box(); !box.empty()) outline(box, 0x90FFFFFF, 0x2CFFFFFF, line);

  // Outlines what the brush would touch.
  if (hover || (stroke_ && drag_ == Drag::stroke)) {
    const Edit edit =
        stroke_ ? stroke_->preview() : brush_edit(brush_, brush_voxel(brush_, *hover), brush_voxel(brush_, *hover));
    const unsigned color = mode_color(brush_.mode);
    outline(touched_box(edit), color, with_alpha(color, 0x50), line);
    // A sphere brush is shown as a ball.
    if (edit.shape == Shape::sphere && edit.radius >= 1) {
      const glm::dvec3 middle(edit.a.x + 0.5, edit.a.y + 0.5, edit.a.z + 0.5);
      for (int axis = 0; axis < 3; ++axis) {
        glm::dvec3 last{};
        for (int i = 0; i <= 48; ++i) {
          const double angle = i * 2 * 3.14159265358979 / 48, r = edit.radius + 0.5;
          glm::dvec3 point = middle;
          point[(axis + 1) % 3] += r * std::cos(angle);
          point[(axis + 2) % 3] += r * std::sin(angle);
          if (i > 0) segment(last, point, with_alpha(color, 0xA0), 1.0f);
          last = point;
        }
      }
    }
  }

  // Shows the directions of the axes.
  const float reach = 26 * scale;
  const ImVec2 origin{float(x) + reach * 1.7f, float(y + height) - reach * 1.7f};
  const engine::View view = camera_.view(wide, high);
  const unsigned axis_colors[3] = {0xFF6C6CE4, 0xFF7BC48C, 0xFFD9A06A};
  const char* names[3] = {"x", "y", "z"};
  const double right_length = glm::length(glm::dvec3(view.right)), up_length = glm::length(glm::dvec3(view.up));
  for (int axis = 0; axis < 3; ++axis) {
    const ImVec2 tip{origin.x + reach * float(view.right[axis] / right_length),
                     origin.y - reach * float(view.up[axis] / up_length)};
    list.AddLine(origin, tip, axis_colors[axis], 2 * scale);
    list.AddText({tip.x + 3, tip.y - ImGui::GetFontSize() * 0.6f}, axis_colors[axis], names[axis]);
  }
  list.PopClipRect();
}

}  // namespace quarry::app
