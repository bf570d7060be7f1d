#include "app/editor/panels/frame.hpp"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>

#include "app/editor/panels/actions.hpp"
#include "app/editor/panels/editor.hpp"
#include "app/console/terminal.hpp"

namespace quarry::app {
namespace {

constexpr ImGuiWindowFlags kFixed = ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoCollapse |
                                    ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoBringToFrontOnFocus;

void entry(Editor& editor, Action action, const char* title, bool chosen = false, bool enabled = true) {
  if (ImGui::MenuItem(title, chord_text(action).c_str(), chosen, enabled)) perform(editor, action);
}

float draw_menu(Editor& editor) {
  float height = 0;
  if (!ImGui::BeginMainMenuBar()) return height;
  height = ImGui::GetWindowHeight();
  if (ImGui::BeginMenu("File")) {
    entry(editor, Action::new_document, "New");
    entry(editor, Action::open, "Open...");
    ImGui::Separator();
    entry(editor, Action::save, "Save");
    entry(editor, Action::save_as, "Save as...");
    ImGui::Separator();
    entry(editor, Action::quit, "Quit");
    ImGui::EndMenu();
  }
  if (ImGui::BeginMenu("Edit")) {
    entry(editor, Action::undo, "Undo", false, editor.session.document().can_undo());
    entry(editor, Action::redo, "Redo", false, editor.session.document().can_redo());
    ImGui::EndMenu();
  }
  if (ImGui::BeginMenu("View")) {
    const auto names = engine::debug_view_names();
    for (size_t i = 0; i < names.size(); ++i)
      if (ImGui::MenuItem(names[i], nullptr, editor.settings.view == static_cast<engine::DebugView>(i)))
        editor.settings.view = static_cast<engine::DebugView>(i);
    ImGui::Separator();
    entry(editor, Action::toggle_paths, "Trace light paths", editor.convergence.wanted > 0);
    ImGui::Separator();
    entry(editor, Action::frame_all, "Show everything");
    entry(editor, Action::view_front, "From the front");
    entry(editor, Action::view_right, "From the right");
    entry(editor, Action::view_top, "From above");
    ImGui::Separator();
    entry(editor, Action::toggle_panels, "Panels", editor.panels_shown);
    ImGui::EndMenu();
  }
  if (ImGui::BeginMenu("Help")) {
    entry(editor, Action::help, "Keys and mouse");
    ImGui::EndMenu();
  }
  const std::string title = fmt::format("{}{}", editor.session.title(), editor.session.unsaved() ? " - not saved" : "");
  ImGui::SameLine((ImGui::GetWindowWidth() - ImGui::CalcTextSize(title.c_str()).x) / 2);
  ImGui::TextDisabled("%s", title.c_str());
  ImGui::EndMainMenuBar();
  return height;
}

std::string hint(const Editor& editor) {
  const bool spans = editor.brush.shape == BrushShape::box || editor.brush.shape == BrushShape::line;
  return fmt::format("Left: {} {}{}   Right: turn   Middle: move   Wheel: zoom   Ctrl+left: take the material", mode_name(editor.brush.mode),
                     brush_shape_name(editor.brush.shape), spans ? " (drag)" : "");
}

void draw_status(Editor& editor, float left, float top, float width, float height) {
  ImGui::SetNextWindowPos({left, top});
  ImGui::SetNextWindowSize({width, height});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {10 * editor.interface->scale(), 3 * editor.interface->scale()});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowMinSize, {1, 1});
  ImGui::PushStyleColor(ImGuiCol_WindowBg, ImGui::GetStyle().Colors[ImGuiCol_MenuBarBg]);
  ImGui::Begin("status", nullptr, kFixed | ImGuiWindowFlags_NoScrollbar);
  const double age = std::chrono::duration<double>(std::chrono::steady_clock::now() - editor.messages.since).count();
  if (!editor.messages.text.empty() && (age < 6 || (editor.messages.is_error && age < 30)))
    ImGui::TextColored(ImGui::ColorConvertU32ToFloat4(editor.messages.is_error ? colors::kError : colors::kText), "%s", editor.messages.text.c_str());
  else ImGui::TextDisabled("%s", hint(editor).c_str());
  if (const auto& at = editor.viewport.hover) {
    std::string text = fmt::format("{}, {}, {}", at->voxel.x, at->voxel.y, at->voxel.z);
    if (at->ground) text = "ground  " + text;
    else if (at->material) {
      const std::string& name = editor.session.scene().palette.names[at->material];
      text = fmt::format("{} {}   {}", name.empty() ? "material" : name, at->material, text);
    }
    ImGui::SameLine(std::max(ImGui::GetCursorPosX(), width - ImGui::CalcTextSize(text.c_str()).x - 12 * editor.interface->scale()));
    ImGui::TextUnformatted(text.c_str());
  }
  ImGui::End();
  ImGui::PopStyleColor();
  ImGui::PopStyleVar(2);
}

// A modal question in the middle of the window; the body says when it is answered.
template <class Body>
void modal(const char* title, bool wanted, Body body) {
  if (!wanted) return;
  if (!ImGui::IsPopupOpen(title)) ImGui::OpenPopup(title);
  ImGui::SetNextWindowPos(ImGui::GetMainViewport()->GetCenter(), ImGuiCond_Appearing, {0.5f, 0.5f});
  if (!ImGui::BeginPopupModal(title, nullptr, ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoSavedSettings)) return;
  if (body()) ImGui::CloseCurrentPopup();
  ImGui::EndPopup();
}

void draw_questions(Editor& editor) {
  const float wide = ImGui::GetFontSize() * 8;
  // Enter is the first button of a question that has one for it, Escape the last.
  const auto entered = [] { return ImGui::IsKeyPressed(ImGui::GetKeyIndex(ImGuiKey_Enter), false) || ImGui::IsKeyPressed(ImGui::GetKeyIndex(ImGuiKey_KeyPadEnter), false); };
  const auto escaped = [] { return ImGui::IsKeyPressed(ImGui::GetKeyIndex(ImGuiKey_Escape), false); };
  modal("Not saved", editor.after_saving && !editor.save_question && !editor.dialog.shown(), [&] {
    ImGui::Text("'%s' has changes that are in no file of yours yet.", editor.session.title().c_str());
    ImGui::Spacing();
    const bool writes_back = editor.session.write_back().has_value();
    if (writes_back) {
      if (ImGui::Button("Save", {wide, 0}) || entered()) {
        editor.save();
        return true;
      }
      ImGui::SameLine();
    }
    if (ImGui::Button("Save as...", {wide, 0}) || (!writes_back && entered())) {
      editor.dialog.show_save(editor.suggested_name());
      return true;
    }
    ImGui::SameLine();
    if (ImGui::Button("Discard", {wide, 0})) {
      const auto next = std::exchange(editor.after_saving, {});
      editor.session.discard_changes();
      next(editor);
      return true;
    }
    ImGui::SameLine();
    if (ImGui::Button("Cancel", {wide, 0}) || escaped()) {
      editor.after_saving = {};
      return true;
    }
    return false;
  });
  modal("Save###write back", editor.save_question && !editor.dialog.shown(), [&] {
    const std::string name = editor.session.file().filename().string();
    ImGui::PushTextWrapPos(wide * 5);
    if (editor.save_question->changed_on_disk)
      ImGui::TextWrapped("'%s' was changed by another program since it was opened here. Saving replaces what that program wrote.", name.c_str());
    if (!editor.save_question->losses.empty()) {
      ImGui::TextWrapped("Not all of this document will be in '%s':", name.c_str());
      constexpr size_t kShown = 12;
      for (size_t i = 0; i < std::min(editor.save_question->losses.size(), kShown); ++i) {
        ImGui::Bullet();
        ImGui::TextWrapped("%s", editor.save_question->losses[i].c_str());
      }
      if (editor.save_question->losses.size() > kShown) ImGui::TextDisabled("and %zu more", editor.save_question->losses.size() - kShown);
    }
    ImGui::PopTextWrapPos();
    ImGui::Spacing();
    if (ImGui::Button("Save anyway", {wide, 0})) {
      editor.write_back_anyway();
      return true;
    }
    ImGui::SameLine();
    if (ImGui::Button("Save as .quarry...", {wide * 1.3f, 0})) {
      editor.save_question.reset();
      editor.dialog.show_save(editor.suggested_name());
      return true;
    }
    ImGui::SameLine();
    if (ImGui::Button("Cancel", {wide, 0}) || escaped()) {
      editor.save_question.reset();
      editor.after_saving = {};
      return true;
    }
    return false;
  });
  modal("Unsaved work was found", !editor.recoverable.empty() && !editor.after_saving && !editor.save_question && !editor.dialog.shown(), [&] {
    ImGui::TextUnformatted("Quarry ended before these were saved. Every edit is still there.");
    ImGui::Spacing();
    for (size_t i = 0; i < editor.recoverable.size(); ++i) {
      ImGui::PushID(static_cast<int>(i));
      const RecoveryFile& file = editor.recoverable[i];
      ImGui::AlignTextToFramePadding();
      ImGui::Text("%s (%s)", file.title.c_str(), bytes_text(file.bytes).c_str());
      ImGui::SameLine(wide * 2.2f);
      const bool recover = ImGui::Button("Recover");
      ImGui::SameLine();
      const bool remove = ImGui::Button("Remove");
      ImGui::PopID();
      if (recover) {
        if (editor.messages.report(editor.session.recover(file.file))) {
          editor.viewport.forget();
          editor.frame_all();
          editor.recoverable.clear();
          return true;
        }
        editor.recoverable.erase(editor.recoverable.begin() + static_cast<std::ptrdiff_t>(i));
        break;
      }
      if (remove) {
        std::error_code ignored;
        std::filesystem::remove(file.file, ignored);
        editor.recoverable.erase(editor.recoverable.begin() + static_cast<std::ptrdiff_t>(i));
        break;
      }
    }
    ImGui::Spacing();
    if (ImGui::Button("Not now", {wide, 0}) || escaped()) editor.recoverable.clear();
    return editor.recoverable.empty();
  });
}

void draw_help(Editor& editor) {
  if (!editor.help_shown) return;
  ImGui::SetNextWindowPos(ImGui::GetMainViewport()->GetCenter(), ImGuiCond_Appearing, {0.5f, 0.5f});
  if (ImGui::Begin("Keys and mouse", &editor.help_shown, ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoSavedSettings)) {
    const auto row = [](const char* what, const std::string& how) {
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      ImGui::TextUnformatted(how.c_str());
      ImGui::TableNextColumn();
      ImGui::TextDisabled("%s", what);
    };
    if (ImGui::BeginTable("keys", 2)) {
      row("use the tool", "Left");
      row("take the material under the mouse", "Ctrl+Left");
      row("turn", "Right, or Alt+Left");
      row("move sideways", "Middle, or Shift+Right");
      row("come nearer", "Wheel");
      for (const Shortcut& shortcut : shortcuts())
        if (const auto chord = key_chord(shortcut.chord)) row(shortcut.title, shown_chord(*chord));
      ImGui::EndTable();
    }
  }
  ImGui::End();
}

template <class Body>
void draw_side(const char* name, float left, float top, float width, float height, Body body) {
  ImGui::SetNextWindowPos({left, top});
  ImGui::SetNextWindowSize({width, height});
  if (ImGui::Begin(name, nullptr, kFixed)) body();
  ImGui::End();
}

}  // namespace

void panel_heading(const char* text) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  if (ImGui::GetCursorPosY() > ImGui::GetStyle().WindowPadding.y + 1) {
    const float gap = ImGui::GetFontSize() * 0.35f;
    ImGui::GetWindowDrawList()->AddLine({at.x, at.y + gap}, {at.x + ImGui::GetContentRegionAvail().x, at.y + gap}, ImGui::GetColorU32(ImGuiCol_Separator));
    ImGui::Dummy({0, gap * 1.6f});
  }
  ImGui::PushStyleColor(ImGuiCol_Text, ImGui::ColorConvertU32ToFloat4(colors::kTextDim));
  ImGui::TextUnformatted(text);
  ImGui::PopStyleColor();
}

bool choice_button(const char* label, bool chosen, float width) {
  if (chosen) {
    ImGui::PushStyleColor(ImGuiCol_Button, {0.24f, 0.39f, 0.52f, 1});
    ImGui::PushStyleColor(ImGuiCol_ButtonHovered, {0.28f, 0.44f, 0.58f, 1});
  }
  const bool pressed = ImGui::Button(label, {width, 0});
  if (chosen) ImGui::PopStyleColor(2);
  return pressed;
}

void draw_panels(Editor& editor) {
  const ImVec2 window = ImGui::GetIO().DisplaySize;
  const float em = ImGui::GetFontSize();
  const Perform act = [&editor](Action action) { perform(editor, action); };
  const float menu = draw_menu(editor);
  const float status = em + 9 * editor.interface->scale();
  // In a narrow window the panels keep their width and the viewport what is left, but never less than a third.
  const float left = editor.panels_shown ? std::min(em * 16, window.x / 3) : 0, right = editor.panels_shown ? std::min(em * 19, window.x / 3) : 0;
  const float height = std::max(1.0f, window.y - menu - status);
  if (editor.panels_shown) {
    draw_side("tools", 0, menu, left, height, [&] { draw_tools(editor.brush, editor.session, editor.messages, act); });
    draw_side("facts", window.x - right, menu, right, height, [&] {
      draw_statistics({editor.statistics, editor.resolution, editor.convergence, *editor.presenter, *editor.shared, editor.device, editor.frame_ms, editor.settings.view});
      draw_scene(editor.session, editor.messages);
    });
  }
  draw_status(editor, 0, window.y - status, window.x, status);
  editor.viewport.x = left;
  editor.viewport.y = menu;
  editor.viewport.width = std::max(1.0f, window.x - left - right);
  editor.viewport.height = height;
  draw_help(editor);
  editor.dialog.draw(editor);
  draw_questions(editor);
}

}  // namespace quarry::app
