// SPDX-License-Identifier: Apache-2.0
// actions.cpp - the table of shortcuts, and what each action does.
#include "app/editor/panels/actions.hpp"

#include <fmt/format.h>

#include "app/console/terminal.hpp"
#include "app/editor/panels/editor.hpp"

namespace quarry::app {
namespace {

constexpr Shortcut kShortcuts[] = {
    {Action::new_document, "ctrl+n", "New"},
    {Action::open, "ctrl+o", "Open..."},
    {Action::save, "ctrl+s", "Save"},
    {Action::save_as, "ctrl+shift+s", "Save as..."},
    {Action::quit, "ctrl+q", "Quit"},
    {Action::undo, "ctrl+z", "Undo"},
    {Action::redo, "ctrl+shift+z", "Redo"},
    {Action::redo, "ctrl+y", "Redo"},
    {Action::frame_all, "f", "Show everything"},
    {Action::view_front, "7", "From the front"},
    {Action::view_right, "8", "From the right"},
    {Action::view_top, "9", "From above"},
    {Action::next_debug_view, "v", "Next debug view"},
    {Action::toggle_paths, "p", "Trace light paths while nothing moves"},
    {Action::toggle_panels, "tab", "Hide or show the panels"},
    {Action::help, "f1", "Keys and mouse"},
    {Action::mode_add, "1", "Add"},
    {Action::mode_remove, "2", "Remove"},
    {Action::mode_paint, "3", "Paint"},
    {Action::mode_replace, "4", "Replace"},
    {Action::shape_sphere, "q", "Sphere"},
    {Action::shape_cube, "w", "Cube"},
    {Action::shape_box, "e", "Box"},
    {Action::shape_line, "r", "Line"},
    {Action::shape_connected, "t", "Bucket: what is connected"},
    {Action::radius_down, "[", "Smaller brush"},
    {Action::radius_up, "]", "Larger brush"},
    {Action::cancel, "escape", "Let go"},
};

// For menus and help. Of an action's rows, the first is shown.
const Shortcut* first_row(Action action) {
  for (const Shortcut& row : kShortcuts)
    if (row.action == action) return &row;
  return nullptr;
}

void change_volume(Editor& editor, const VolumeChange& change) {
  editor.viewport.cancel_stroke();
  const auto changed = editor.session.change(change);
  if (!changed) editor.messages.complain(changed.error());
  else editor.messages.say(fmt::format("{}: {} voxels", change.label, with_commas(*changed)));
}

}  // namespace

std::span<const Shortcut> shortcuts() { return kShortcuts; }

const Shortcut* shortcut_of(KeyChord chord) {
  for (const Shortcut& row : kShortcuts)
    if (const auto named = key_chord(row.chord); named && *named == chord) return &row;
  return nullptr;
}

std::string chord_text(Action action) {
  const Shortcut* row = first_row(action);
  const auto chord = row ? key_chord(row->chord) : Result<KeyChord>(KeyChord{});
  return row && chord ? shown_chord(*chord) : "";
}

void perform(Editor& editor, Action action) {
  switch (action) {
    case Action::new_document: editor.ask_before_leaving([&editor] { editor.start_new(); }); break;
    case Action::open: editor.ask_before_leaving([&editor] { editor.dialog.show_open(); }); break;
    case Action::save: editor.save(); break;
    case Action::save_as: editor.dialog.show_save(editor.suggested_name()); break;
    case Action::quit: editor.ask_before_leaving([&editor] { editor.quit = true; }); break;
    case Action::undo: editor.messages.report(editor.session.undo()); break;
    case Action::redo: editor.messages.report(editor.session.redo()); break;
    case Action::grow: change_volume(editor, grow(Connectivity::faces, 1)); break;
    case Action::erode: change_volume(editor, erode_by(Connectivity::faces, 1)); break;
    case Action::drop_parts: change_volume(editor, keep({Connectivity::corners, 1, 0})); break;
    case Action::unite: editor.dialog.show_combine(BooleanKind::union_of); break;
    case Action::intersect: editor.dialog.show_combine(BooleanKind::intersection); break;
    case Action::subtract: editor.dialog.show_combine(BooleanKind::difference); break;
    case Action::frame_all: editor.frame_all(); break;
    case Action::view_front: editor.camera.azimuth = 0, editor.camera.elevation = 0; break;
    case Action::view_right: editor.camera.azimuth = 90, editor.camera.elevation = 0; break;
    case Action::view_top: editor.camera.azimuth = 0, editor.camera.elevation = 89; break;
    case Action::next_debug_view: {
      const auto count = uint32_t(engine::debug_view_names().size());
      editor.settings.view = static_cast<engine::DebugView>((uint32_t(editor.settings.view) + 1) % count);
      break;
    }
    case Action::toggle_paths:
      editor.convergence.wanted = editor.convergence.wanted ? 0 : kUsualPaths;
      editor.redraw();
      break;
    case Action::toggle_panels: editor.panels_shown = !editor.panels_shown; break;
    case Action::help: editor.help_shown = !editor.help_shown; break;
    case Action::mode_add: editor.brush.mode = Mode::add; break;
    case Action::mode_remove: editor.brush.mode = Mode::remove; break;
    case Action::mode_paint: editor.brush.mode = Mode::paint; break;
    case Action::mode_replace: editor.brush.mode = Mode::replace; break;
    case Action::shape_sphere: editor.brush.shape = BrushShape::sphere; break;
    case Action::shape_cube: editor.brush.shape = BrushShape::cube; break;
    case Action::shape_box: editor.brush.shape = BrushShape::box; break;
    case Action::shape_line: editor.brush.shape = BrushShape::line; break;
    case Action::shape_connected: editor.brush.shape = BrushShape::connected; break;
    // Small radii change by one, large ones by an eighth, so that the largest is not a thousand presses away.
    case Action::radius_up:
      editor.brush.radius = std::min(editor.brush.radius + std::max(1, editor.brush.radius / 8), kLargestBrush);
      break;
    case Action::radius_down:
      editor.brush.radius = std::max(editor.brush.radius - std::max(1, editor.brush.radius / 9), 0);
      break;
    case Action::cancel:
      editor.viewport.cancel_stroke();
      editor.help_shown = false;
      break;
  }
}

}  // namespace quarry::app
