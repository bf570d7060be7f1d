// SPDX-License-Identifier: Apache-2.0
// frame.hpp - everything around the viewport, drawn anew each frame. Each panel is handed what it shows and changes,
// not the Editor.
#pragma once

#include "app/editor/panels/actions.hpp"

namespace quarry::app {

struct Brush;
struct Editor;
struct Messages;
class Session;

// Lays the window out, draws all panels and dialogs, and tells the viewport where it is.
void draw_panels(Editor& editor);

// Its parts, one file each.
// panels/tools.cpp: modes, shapes, palette, material.
void draw_tools(Brush& brush, Session& session, Messages& messages, const Perform& perform);
// panels/scene.cpp: layers, instances, history.
void draw_scene(Session& session, Messages& messages);

// A heading over a group of widgets.
void panel_heading(const char* text);
// A button that shows whether its choice is the present one.
bool choice_button(const char* label, bool chosen, float width);

}  // namespace quarry::app
