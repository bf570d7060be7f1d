// SPDX-License-Identifier: Apache-2.0
// scene.cpp - layers, instances and the history of edits.
#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>

#include "app/console/terminal.hpp"
#include "app/editor/panels/frame.hpp"
#include "app/editor/panels/messages.hpp"
#include "app/editor/session/document_session.hpp"

namespace quarry::app {
namespace {

// Rows of one height in a box that scrolls. Only the visible ones are drawn, so a scene of thousands of instances costs
// nothing.
template <class Row>
void list_box(const char* name, size_t count, float max_rows, Row row) {
  const float line = ImGui::GetFrameHeight();
  const float height = line * std::clamp(float(count), 1.0f, max_rows) + ImGui::GetStyle().WindowPadding.y;
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {6, 4});
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {6, 0});
  ImGui::BeginChild(name, {0, height}, true);
  ImGuiListClipper clipper;
  clipper.Begin(int(count), line);
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      ImGui::PushID(i);
      row(uint32_t(i));
      ImGui::PopID();
    }
  ImGui::EndChild();
  ImGui::PopStyleVar(2);
}

std::string instance_title(const Scene& scene, uint32_t index) {
  const Instance& instance = scene.instances[index];
  const std::string& volume = scene.volumes[instance.volume].name;
  if (!instance.name.empty()) return instance.name;
  return volume.empty() ? fmt::format("instance {}", index)
                        : fmt::format("{}{}", volume, scene.instances.size() > 1 ? fmt::format(" #{}", index) : "");
}

}  // namespace

void draw_scene(Session& session, Messages& messages) {
  // A change of visibility creates a new document, so it waits until nothing refers to the old one.
  std::optional<std::pair<uint32_t, bool>> layer_change, instance_change;
  if (!session.scene().layers.empty()) {
    panel_heading("LAYERS");
    list_box("layers", session.scene().layers.size(), 5, [&](uint32_t i) {
      const Layer& layer = session.scene().layers[i];
      bool visible = !layer.hidden;
      if (ImGui::Checkbox(layer.name.empty() ? fmt::format("layer {}", i).c_str() : layer.name.c_str(), &visible))
        layer_change = {i, !visible};
    });
  }
  panel_heading("INSTANCES");
  list_box("instances", session.scene().instances.size(), 6, [&](uint32_t i) {
    bool visible = !session.scene().instances[i].hidden;
    if (ImGui::Checkbox("##visible", &visible)) instance_change = {i, !visible};
    ImGui::SameLine();
    ImGui::AlignTextToFramePadding();
    const std::string title = instance_title(session.scene(), i);
    if (ImGui::Selectable(title.c_str(), session.active_instance() == i)) session.set_active_instance(i);
    if (ImGui::IsItemHovered() && !session.scene().instances[i].group_path.empty())
      ImGui::SetTooltip("%s", session.scene().instances[i].group_path.c_str());
  });
  if (layer_change) messages.report(session.set_layer_hidden(layer_change->first, layer_change->second));
  if (instance_change) messages.report(session.set_instance_hidden(instance_change->first, instance_change->second));

  panel_heading("HISTORY");
  if (const uint64_t dropped = session.dropped_steps())
    ImGui::TextDisabled("%s oldest %s dropped", with_commas(dropped).c_str(), dropped == 1 ? "step" : "steps");
  const std::vector<Session::Step> steps = session.steps();
  const size_t position = session.step_position();
  std::optional<size_t> go;
  list_box("history", steps.size() + 1, 8, [&](uint32_t i) {
    // Newest on top; the last row is the state before the first edit.
    const size_t at = steps.size() - i;
    std::string label = session.dropped_steps() ? "oldest kept" : "opened";
    if (at > 0) {
      const Session::Step& step = steps[at - 1];
      label = step.label;
      if (step.voxels > 0)
        label += fmt::format("  {}{}", with_commas(step.voxels),
                             step.records > 1 ? fmt::format("  ({} parts)", step.records) : "");
    }
    if (at > position) ImGui::PushStyleColor(ImGuiCol_Text, ImGui::GetStyle().Colors[ImGuiCol_TextDisabled]);
    ImGui::AlignTextToFramePadding();
    if (ImGui::Selectable(label.c_str(), at == position)) go = at;
    if (ImGui::IsItemHovered() && ImGui::CalcTextSize(label.c_str()).x > ImGui::GetItemRectSize().x)
      ImGui::SetTooltip("%s", label.c_str());
    if (at > position) ImGui::PopStyleColor();
  });
  if (go) messages.report(session.go_to_step(*go));
}

}  // namespace quarry::app
