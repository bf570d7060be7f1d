// SPDX-License-Identifier: Apache-2.0
// frame.cpp - menu, status line, questions and help, and the places of the panels in the window.
#include "app/editor/panels/frame.hpp"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>

#include "app/console/terminal.hpp"
#include "app/editor/panels/actions.hpp"
#include "app/editor/panels/editor.hpp"

namespace quarry::app {
namespace {

constexpr ImGuiWindowFlags kFixed = ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize | ImGuiWindowFlags_NoMove |
                                    ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoSavedSettings |
                                    ImGuiWindowFlags_NoBringToFrontOnFocus;

// What the menu shows as chosen. The debug view is also chosen in the menu.
struct MenuShown {
  engine::DebugView& view;
  bool paths, panels;
};

float draw_menu(Session& session, const MenuShown& shown, const Perform& act) {
  const auto entry = [&](Action action, const char* title, bool chosen = false, bool enabled = true) {
    if (ImGui::MenuItem(title, chord_text(action).c_str(), chosen, enabled)) act(action);
  };
  float height = 0;
  if (!ImGui::BeginMainMenuBar()) return height;
  height = ImGui::GetWindowHeight();
  if (ImGui::BeginMenu("File")) {
    entry(Action::new_document, "New");
    entry(Action::open, "Open...");
    ImGui::Separator();
    entry(Action::save, "Save");
    entry(Action::save_as, "Save as...");
    ImGui::Separator();
    entry(Action::quit, "Quit");
    ImGui::EndMenu();
  }
  if (ImGui::BeginMenu("Edit")) {
    entry(Action::undo, "Undo", false, session.can_undo());
    entry(Action::redo, "Redo", false, session.can_redo());
    ImGui::EndMenu();
  }
  if (ImGui::BeginMenu("Volume")) {  // that of the chosen instance
    entry(Action::grow, "Grow");
    entry(Action::erode, "Erode");
    entry(Action::drop_parts, "Drop smaller parts");
    ImGui::Separator();
    entry(Action::unite, "Unite with a file...");
    entry(Action::intersect, "Intersect with a file...");
    entry(Action::subtract, "Subtract a file...");
    ImGui::EndMenu();
  }
  if (ImGui::BeginMenu("View")) {
    const auto names = engine::debug_view_names();
    for (size_t i = 0; i < names.size(); ++i)
      if (ImGui::MenuItem(names[i], nullptr, shown.view == static_cast<engine::DebugView>(i)))
        shown.view = static_cast<engine::DebugView>(i);
    ImGui::Separator();
    entry(Action::toggle_paths, "Trace light paths", shown.paths);
    ImGui::Separator();
    entry(Action::frame_all, "Show everything");
    entry(Action::view_front, "From the front");
    entry(Action::view_right, "From the right");
    entry(Action::view_top, "From above");
    ImGui::Separator();
    entry(Action::toggle_panels, "Panels", shown.panels);
    ImGui::EndMenu();
  }
  if (ImGui::BeginMenu("Help")) {
    entry(Action::help, "Keys and mouse");
    ImGui::EndMenu();
  }
  const std::string title = fmt::format("{}{}", session.title(), session.unsaved() ? " - not saved" : "");
  ImGui::SameLine((ImGui::GetWindowWidth() - ImGui::CalcTextSize(title.c_str()).x) / 2);
  ImGui::TextDisabled("%s", title.c_str());
  ImGui::EndMainMenuBar();
  return height;
}

std::string hint(const Brush& brush) {
  const bool spans = spans_drag(brush.shape);
  return fmt::format("Left: {} {}{}   Right: turn   Middle: move   Wheel: zoom   Ctrl+left: take the material",
                     mode_name(brush.mode), brush_shape_name(brush.shape), spans ? " (drag)" : "");
}

// The place of the status line, and the scale of the window's content.
struct StatusPlace {
  float left, top, width, height, scale;
};

void draw_status(const StatusPlace& place, const Messages& messages, const Brush& brush,
                 const std::optional<Pick>& hover, const Palette& palette) {
  ImGui::SetNextWindowPos({place.left, place.top});
  ImGui::SetNextWindowSize({place.width, place.height});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {10 * place.scale, 3 * place.scale});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowMinSize, {1, 1});
  ImGui::PushStyleColor(ImGuiCol_WindowBg, ImGui::GetStyle().Colors[ImGuiCol_MenuBarBg]);
  ImGui::Begin("status", nullptr, kFixed | ImGuiWindowFlags_NoScrollbar);
  const double age = std::chrono::duration<double>(std::chrono::steady_clock::now() - messages.since).count();
  if (!messages.text.empty() && (age < 6 || (messages.is_error && age < 30)))
    ImGui::TextColored(ImGui::ColorConvertU32ToFloat4(messages.is_error ? colors::kError : colors::kText), "%s",
                       messages.text.c_str());
  else ImGui::TextDisabled("%s", hint(brush).c_str());
  if (const auto& at = hover) {
    std::string text = fmt::format("{}, {}, {}", at->voxel.x, at->voxel.y, at->voxel.z);
    if (at->ground) text = "ground  " + text;
    else if (at->material) {
      const std::string& name = palette.names[at->material];
      text = fmt::format("{} {}   {}", name.empty() ? "material" : name, at->material, text);
    }
    ImGui::SameLine(
        std::max(ImGui::GetCursorPosX(), place.width - ImGui::CalcTextSize(text.c_str()).x - 12 * place.scale));
    ImGui::TextUnformatted(text.c_str());
  }
  ImGui::End();
  ImGui::PopStyleColor();
  ImGui::PopStyleVar(2);
}

// A modal question in the middle of the window. `body` returns whether it is answered.
template <class Body>
void modal(const char* title, bool wanted, Body body) {
  if (!wanted) return;
  if (!ImGui::IsPopupOpen(title)) ImGui::OpenPopup(title);
  ImGui::SetNextWindowPos(ImGui::GetMainViewport()->GetCenter(), ImGuiCond_Appearing, {0.5f, 0.5f});
  if (!ImGui::BeginPopupModal(title, nullptr, ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoSavedSettings))
    return;
  if (body()) ImGui::CloseCurrentPopup();
  ImGui::EndPopup();
}

// The actions for answers that do more than close the question.
struct Answers {
  std::function<void()> save, save_anyway;
  std::function<std::filesystem::path()> suggested_name;
  std::function<bool(const std::filesystem::path&)> recover;  // true: the file is open now
};

void draw_questions(Questions& questions, Session& session, FileDialog& dialog, const Answers& answers) {
  const float wide = ImGui::GetFontSize() * 8;
  // Enter is the question's default button, if it has one. Escape is the last button.
  const auto entered = [] {
    return ImGui::IsKeyPressed(ImGui::GetKeyIndex(ImGuiKey_Enter), false) ||
           ImGui::IsKeyPressed(ImGui::GetKeyIndex(ImGuiKey_KeyPadEnter), false);
  };
  const auto escaped = [] { return ImGui::IsKeyPressed(ImGui::GetKeyIndex(ImGuiKey_Escape), false); };
  modal("Not saved", questions.after_saving && !questions.save_question && !dialog.shown(), [&] {
    ImGui::Text("'%s' has changes that are in no file of yours yet.", session.title().c_str());
    ImGui::Spacing();
    const bool writes_back = session.write_back().has_value();
    if (writes_back) {
      if (ImGui::Button("Save", {wide, 0}) || entered()) {
        answers.save();
        return true;
      }
      ImGui::SameLine();
    }
    if (ImGui::Button("Save as...", {wide, 0}) || (!writes_back && entered())) {
      dialog.show_save(answers.suggested_name());
      return true;
    }
    ImGui::SameLine();
    if (ImGui::Button("Discard", {wide, 0})) {
      const auto next = std::exchange(questions.after_saving, {});
      session.discard_changes();
      next();
      return true;
    }
    ImGui::SameLine();
    if (ImGui::Button("Cancel", {wide, 0}) || escaped()) {
      questions.after_saving = {};
      return true;
    }
    return false;
  });
  modal("Save###write back", questions.save_question && !dialog.shown(), [&] {
    const std::string name = session.file().filename().string();
    ImGui::PushTextWrapPos(wide * 5);
    if (questions.save_question->changed_on_disk)
      ImGui::TextWrapped(
          "'%s' was changed by another program since it was opened here. Saving replaces what that program wrote.",
          name.c_str());
    if (!questions.save_question->losses.empty()) {
      ImGui::TextWrapped("Not all of this document will be in '%s':", name.c_str());
      constexpr size_t kShown = 12;
      for (size_t i = 0; i < std::min(questions.save_question->losses.size(), kShown); ++i) {
        ImGui::Bullet();
        ImGui::TextWrapped("%s", questions.save_question->losses[i].c_str());
      }
      if (questions.save_question->losses.size() > kShown)
        ImGui::TextDisabled("and %zu more", questions.save_question->losses.size() - kShown);
    }
    ImGui::PopTextWrapPos();
    ImGui::Spacing();
    if (ImGui::Button("Save anyway", {wide, 0})) {
      answers.save_anyway();
      return true;
    }
    ImGui::SameLine();
    if (ImGui::Button("Save as .quarry...", {wide * 1.3f, 0})) {
      questions.save_question.reset();
      dialog.show_save(answers.suggested_name());
      return true;
    }
    ImGui::SameLine();
    if (ImGui::Button("Cancel", {wide, 0}) || escaped()) {
      questions.save_question.reset();
      questions.after_saving = {};
      return true;
    }
    return false;
  });
  modal("Unsaved work was found",
        !questions.recoverable.empty() && !questions.after_saving && !questions.save_question && !dialog.shown(), [&] {
          ImGui::TextUnformatted("Quarry ended before these were saved. Every edit is still there.");
          ImGui::Spacing();
          for (size_t i = 0; i < questions.recoverable.size(); ++i) {
            ImGui::PushID(int(i));
            const RecoveryFile& file = questions.recoverable[i];
            ImGui::AlignTextToFramePadding();
            ImGui::Text("%s (%s)", file.title.c_str(), bytes_text(file.bytes).c_str());
            ImGui::SameLine(wide * 2.2f);
            const bool recover = ImGui::Button("Recover");
            ImGui::SameLine();
            const bool remove = ImGui::Button("Remove");
            ImGui::PopID();
            if (recover) {
              if (answers.recover(file.file)) {
                questions.recoverable.clear();
                return true;
              }
              questions.recoverable.erase(questions.recoverable.begin() + std::ptrdiff_t(i));
              break;
            }
            if (remove) {
              std::error_code ignored;
              std::filesystem::remove(file.file, ignored);
              questions.recoverable.erase(questions.recoverable.begin() + std::ptrdiff_t(i));
              break;
            }
          }
          ImGui::Spacing();
          if (ImGui::Button("Not now", {wide, 0}) || escaped()) questions.recoverable.clear();
          return questions.recoverable.empty();
        });
}

void draw_help(bool& wanted) {
  if (!wanted) return;
  ImGui::SetNextWindowPos(ImGui::GetMainViewport()->GetCenter(), ImGuiCond_Appearing, {0.5f, 0.5f});
  if (ImGui::Begin(
          "Keys and mouse", &wanted,
          ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoSavedSettings)) {
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
    ImGui::GetWindowDrawList()->AddLine({at.x, at.y + gap}, {at.x + ImGui::GetContentRegionAvail().x, at.y + gap},
                                        ImGui::GetColorU32(ImGuiCol_Separator));
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
  const float menu =
      draw_menu(editor.session, {editor.settings.view, editor.convergence.wanted > 0, editor.panels_shown}, act);
  const float status = em + 9 * editor.imgui->scale();
  // In a narrow window the panels keep their width and the viewport gets the rest, but never less than a third.
  const float left = editor.panels_shown ? std::min(em * 16, window.x / 3) : 0,
              right = editor.panels_shown ? std::min(em * 19, window.x / 3) : 0;
  const float height = std::max(1.0f, window.y - menu - status);
  if (editor.panels_shown) {
    draw_side("tools", 0, menu, left, height, [&] { draw_tools(editor.brush, editor.session, editor.messages, act); });
    draw_side("facts", window.x - right, menu, right, height, [&] {
      draw_statistics({editor.statistics, editor.resolution, editor.convergence, *editor.presenter, *editor.shared,
                       editor.session, editor.device, editor.frame_ms, editor.session.history_budget(),
                       editor.settings.view, editor.times_shown});
      draw_scene(editor.session, editor.messages);
    });
  }
  draw_status({0, window.y - status, window.x, status, editor.imgui->scale()}, editor.messages, editor.brush,
              editor.viewport.hover, editor.session.scene().palette);
  editor.viewport.x = left;
  editor.viewport.y = menu;
  editor.viewport.width = std::max(1.0f, window.x - left - right);
  editor.viewport.height = height;
  draw_help(editor.help_shown);
  // The status line has shown the error; the dialog shows it, too.
  const auto result_of = [&editor](bool done) {
    return done ? Result<void>() : fail(ErrorCode::io, editor.messages.text);
  };
  editor.dialog.draw({.open = [&](const std::filesystem::path& file) { return result_of(editor.open(file)); },
                      .save_as = [&](const std::filesystem::path& file) { return result_of(editor.save_as(file)); },
                      .combine = [&](const std::filesystem::path& file,
                                     BooleanKind kind) { return result_of(editor.combine(file, kind)); },
                      .cancelled = [&] { editor.questions.after_saving = {}; }});
  draw_questions(editor.questions, editor.session, editor.dialog,
                 {.save = [&] { editor.save(); },
                  .save_anyway = [&] { editor.write_back_anyway(); },
                  .suggested_name = [&] { return editor.suggested_name(); },
                  .recover = [&](const std::filesystem::path& file) { return editor.recover(file); }});
}

}  // namespace quarry::app
