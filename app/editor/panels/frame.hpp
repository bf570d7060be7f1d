// SPDX-License-Identifier: Apache-2.0
// frame.hpp - everything around the viewport, drawn anew each frame from the Editor's state.
#pragma once

namespace quarry::app {

struct Editor;

// Lays the window out, draws all panels and dialogs, and tells the viewport where it is.
void draw_panels(Editor& editor);

// Its parts, one file each.
void draw_tools(Editor& editor);       // panels/tools.cpp: modes, shapes, palette, material
void draw_statistics(Editor& editor);  // panels/statistics.cpp
void draw_scene(Editor& editor);       // panels/scene.cpp: layers, instances, history

// A heading over a group of widgets.
void panel_heading(const char* text);
// A button that shows whether its choice is the present one.
bool choice_button(const char* label, bool chosen, float width);

}  // namespace quarry::app
