// SPDX-License-Identifier: Apache-2.0
// frame.hpp - everything around the viewport, drawn anew each frame. A panel gets only what it shows and changes, not
// the Editor.
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

// The parts of the window, one file each.
// panels/tools.cpp: modes, shapes, palette, material.
void draw_tools(Brush& brush, Session& session, Messages& messages, const Perform& perform);
// panels/scene.cpp: layers, instances, history.
void draw_scene(Session& session, Messages& messages);

// A heading over a group of widgets.
void panel_heading(const char* text);
// A button that shows whether its choice is selected.
bool choice_button(const char* label, bool chosen, float width);

}  // namespace quarry::app
