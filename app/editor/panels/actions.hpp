// SPDX-License-Identifier: Apache-2.0
// actions.hpp - everything a key or menu entry can ask for, one row each. Keys, menus, the help and scripts all use
// these rows.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "app/editor/window/glfw_window.hpp"

namespace quarry::app {

enum class Action : uint8_t {
  new_document,
  open,
  save,
  save_as,
  quit,
  undo,
  redo,
  grow,
  erode,
  drop_parts,
  unite,
  intersect,
  subtract,
  frame_all,
  view_front,
  view_right,
  view_top,
  next_debug_view,
  toggle_paths,
  toggle_panels,
  help,
  mode_add,
  mode_remove,
  mode_paint,
  mode_replace,
  shape_sphere,
  shape_cube,
  shape_box,
  shape_line,
  shape_connected,
  radius_up,
  radius_down,
  cancel,
};

struct Shortcut {
  Action action;
  const char* chord;  // as key_chord reads it
  const char* title;
};
std::span<const Shortcut> shortcuts();
// The action of a key, if any.
const Shortcut* shortcut_of(KeyChord chord);
// "Ctrl+Z", for menus; "" without a key.
std::string chord_text(Action action);

struct Editor;
void perform(Editor& editor, Action action);
// A function that performs actions, for a panel that has action buttons and needs nothing else of the editor.
using Perform = std::function<void(Action)>;

}  // namespace quarry::app
