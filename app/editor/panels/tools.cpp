// SPDX-License-Identifier: Apache-2.0
// tools.cpp - the left panel: the mouse's mode, the palette, and the chosen material.
#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/editor/panels/actions.hpp"
#include "app/editor/panels/frame.hpp"
#include "app/editor/panels/messages.hpp"
#include "app/editor/session/document_session.hpp"
#include "app/editor/session/tools.hpp"

namespace quarry::app {
namespace {

ImU32 swatch_color(const Material& material) { return IM_COL32(material.r, material.g, material.b, 255); }

void draw_brush(Brush& brush, const Perform& perform) {
  const float gap = ImGui::GetStyle().ItemSpacing.x;
  const float half = (ImGui::GetContentRegionAvail().x - gap) / 2,
              third = (ImGui::GetContentRegionAvail().x - 2 * gap) / 3;
  const auto choose = [&](const char* label, Action action, bool chosen, bool first, bool of_three = false) {
    if (!first) ImGui::SameLine();
    if (choice_button(label, chosen, of_three ? third : half)) perform(action);
    if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", chord_text(action).c_str());
  };
  panel_heading("TOOL");
  choose("Add", Action::mode_add, brush.mode == Mode::add, true);
  choose("Remove", Action::mode_remove, brush.mode == Mode::remove, false);
  choose("Paint", Action::mode_paint, brush.mode == Mode::paint, true);
  choose("Replace", Action::mode_replace, brush.mode == Mode::replace, false);
  panel_heading("SHAPE");
  choose("Sphere", Action::shape_sphere, brush.shape == BrushShape::sphere, true);
  choose("Cube", Action::shape_cube, brush.shape == BrushShape::cube, false);
  choose("Box", Action::shape_box, brush.shape == BrushShape::box, true, true);
  choose("Line", Action::shape_line, brush.shape == BrushShape::line, false, true);
  choose("Bucket", Action::shape_connected, brush.shape == BrushShape::connected, false, true);
  ImGui::SetNextItemWidth(-1);
  ImGui::BeginDisabled(brush.shape == BrushShape::box || brush.shape == BrushShape::connected);
  ImGui::SliderInt("##radius", &brush.radius, 0, kLargestBrush, brush.radius == 0 ? "one voxel" : "radius %d",
                   ImGuiSliderFlags_Logarithmic | ImGuiSliderFlags_AlwaysClamp);
  ImGui::EndDisabled();
}

// One widget for all 256 swatches. A button each would take a quarter of a frame's work.
void draw_palette(Brush& brush, const Palette& palette) {
  panel_heading("PALETTE");
  constexpr int kColumns = 16, kRows = 16;
  const float cell = ImGui::GetContentRegionAvail().x / kColumns;
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  ImGui::InvisibleButton("palette", {cell * kColumns, cell * kRows});
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const auto corner = [&](int index) {
    const int column = index % kColumns, row = index / kColumns;
    return ImVec2{origin.x + cell * float(column), origin.y + cell * float(row)};
  };
  for (int i = 1; i < 256; ++i) {
    const ImVec2 at = corner(i);
    list.AddRectFilled({at.x + 1, at.y + 1}, {at.x + cell - 1, at.y + cell - 1},
                       swatch_color(palette.materials[size_t(i)]), 2);
  }
  if (ImGui::IsItemHovered()) {
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    const int column = std::clamp(int((mouse.x - origin.x) / cell), 0, kColumns - 1),
              row = std::clamp(int((mouse.y - origin.y) / cell), 0, kRows - 1);
    const int index = row * kColumns + column;
    if (index > 0) {
      const Material& material = palette.materials[size_t(index)];
      const std::string& name = palette.names[size_t(index)];
      ImGui::SetTooltip("%d %s\n#%02X%02X%02X", index, name.c_str(), material.r, material.g, material.b);
      if (ImGui::IsItemActive() || ImGui::IsItemClicked()) brush.material = uint8_t(index);
    }
  }
  const ImVec2 chosen = corner(brush.material);
  list.AddRect({chosen.x - 1, chosen.y - 1}, {chosen.x + cell + 1, chosen.y + cell + 1}, IM_COL32(0, 0, 0, 255), 3, 0,
               3);
  list.AddRect({chosen.x, chosen.y}, {chosen.x + cell, chosen.y + cell}, IM_COL32(255, 255, 255, 255), 3, 0, 1.5f);
}

// Dragging shows the change at once. When the mouse button is released, the change becomes a step of the history and is
// committed to the file.
void draw_material(const Brush& brush, Session& session, Messages& messages) {
  const size_t index = brush.material;
  Palette palette = session.scene().palette;
  Material& material = palette.materials[index];
  panel_heading(
      fmt::format("MATERIAL {}{}{}", index, palette.names[index].empty() ? "" : "  ", palette.names[index]).c_str());
  bool changed = false, finished = false;
  const auto note = [&](bool now) {
    changed |= now;
    finished |= ImGui::IsItemDeactivatedAfterEdit();
  };
  const float label = ImGui::GetFontSize() * 5.4f;
  const auto row = [&](const char* name) {
    ImGui::AlignTextToFramePadding();
    ImGui::TextDisabled("%s", name);
    ImGui::SameLine(label);
    ImGui::SetNextItemWidth(-1);
  };
  float color[3] = {float(material.r) / 255, float(material.g) / 255, float(material.b) / 255};
  row("Colour");
  note(ImGui::ColorEdit3("##color", color, ImGuiColorEditFlags_DisplayHex | ImGuiColorEditFlags_PickerHueWheel));
  const auto byte = [](float value) { return uint8_t(std::lround(std::clamp(value, 0.0f, 1.0f) * 255)); };
  material.r = byte(color[0]), material.g = byte(color[1]), material.b = byte(color[2]);
  row("Rough");
  note(ImGui::SliderFloat("##rough", &material.roughness, 0, 1, "%.2f", ImGuiSliderFlags_AlwaysClamp));
  row("Metal");
  note(ImGui::SliderFloat("##metal", &material.metalness, 0, 1, "%.2f", ImGuiSliderFlags_AlwaysClamp));
  row("Glow");
  note(ImGui::SliderFloat("##glow", &material.emission, 0, 16, "%.2f",
                          ImGuiSliderFlags_AlwaysClamp | ImGuiSliderFlags_Logarithmic));
  row("Clear");
  note(ImGui::SliderFloat("##clear", &material.transparency, 0, 1, "%.2f", ImGuiSliderFlags_AlwaysClamp));
  if (changed) session.preview_palette(palette);
  if (finished) messages.report(session.set_palette(palette));  // one step, from press to release
}

}  // namespace

void draw_tools(Brush& brush, Session& session, Messages& messages, const Perform& perform) {
  draw_brush(brush, perform);
  draw_palette(brush, session.scene().palette);
  draw_material(brush, session, messages);
}

}  // namespace quarry::app
