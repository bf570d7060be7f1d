// SPDX-License-Identifier: Apache-2.0
// statistics.cpp - the numbers of the hash grid, the world and the renderer.
#include "app/editor/panels/statistics.hpp"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>

#include "app/console/terminal.hpp"
#include "app/editor/panels/frame.hpp"
#include "app/editor/window/imgui_layer.hpp"

namespace quarry::app {
namespace {

void row(const char* name, const std::string& value, const char* tip = nullptr) {
  ImGui::TextDisabled("%s", name);
  const float width = ImGui::CalcTextSize(value.c_str()).x;
  ImGui::SameLine(std::max(ImGui::GetFontSize() * 6, ImGui::GetWindowContentRegionMax().x - width));
  ImGui::TextUnformatted(value.c_str());
  if (tip && ImGui::IsItemHovered()) {
    ImGui::BeginTooltip();
    ImGui::PushTextWrapPos(ImGui::GetFontSize() * 26);
    ImGui::TextUnformatted(tip);
    ImGui::PopTextWrapPos();
    ImGui::EndTooltip();
  }
}

// The share of keys that are found after reading one 32-byte sector, two, three and so on. Each has one bar; the last
// bar counts all deeper ones.
void draw_histogram(const hashgrid::Stats& grid) {
  constexpr size_t kBars = 8;
  uint64_t bars[kBars]{}, all = 0;
  for (size_t i = 0; i < grid.depth_histogram.size(); ++i) {
    bars[std::min(i, kBars - 1)] += grid.depth_histogram[i];
    all += grid.depth_histogram[i];
  }
  const float em = ImGui::GetFontSize(), height = em * 4.6f, width = ImGui::GetContentRegionAvail().x;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::Dummy({width, height + em * 1.1f});
  ImDrawList& list = *ImGui::GetWindowDrawList();
  list.AddRectFilled(at, {at.x + width, at.y + height}, IM_COL32(24, 26, 30, 255), 4);
  const float step = width / kBars;
  for (size_t i = 0; i < kBars; ++i) {
    const double share = all ? double(bars[i]) / double(all) : 0;
    const float left = at.x + step * float(i) + step * 0.18f, right = at.x + step * float(i + 1) - step * 0.18f;
    // Every bar that is not empty is at least a visible line.
    const float tall = share > 0 ? std::max(2.0f, float(share) * (height - em * 1.3f)) : 0;
    const float base = at.y + height - 2;
    if (share > 0) {
      list.AddRectFilled({left, base - tall}, {right, base}, i == 0 ? colors::kBar : colors::kAccent, 2);
      const std::string text = share >= 0.0995  ? fmt::format("{:.0f}%", share * 100)
                               : share >= 0.001 ? fmt::format("{:.1f}%", share * 100)
                                                : "<.1%";
      const ImVec2 size = ImGui::CalcTextSize(text.c_str());
      const float small = 0.82f;
      list.AddText(ImGui::GetFont(), em * small, {(left + right - size.x * small) / 2, base - tall - em * 0.95f},
                   colors::kText, text.c_str());
    }
    const std::string name = i + 1 == kBars ? fmt::format("{}+", i + 1) : fmt::format("{}", i + 1);
    list.AddText({(left + right - ImGui::CalcTextSize(name.c_str()).x) / 2, at.y + height + 1}, colors::kTextDim,
                 name.c_str());
  }
}

// What the last edit took on the device. Whether it is open.
bool draw_edit_times(const device::StepTimes& times) {
  panel_heading("LAST EDIT");
  if (!ImGui::TreeNodeEx("Time by stage", ImGuiTreeNodeFlags_SpanAvailWidth | ImGuiTreeNodeFlags_NoTreePushOnOpen))
    return false;
  if (times.steps().empty()) ImGui::TextDisabled("Timed from the next edit on.");
  for (const device::StepTimes::Time& time : times.steps()) {
    const std::string ms = fmt::format("{:.3f} ms", time.ms);
    row(time.name, time.launches > 1 ? fmt::format("{} x  {}", time.launches, ms) : ms);
  }
  if (!times.steps().empty())
    row("All stages", fmt::format("{:.3f} ms", times.ms()),
        "While this is open no stage is launched before the one before it is done, so edits take a little longer.");
  return true;
}

// Which of its pages a document in parts has on the device.
void draw_pages(const engine::ResidentPages::Counters& pages) {
  row("Of so much", bytes_text(pages.budget_bytes),
      "What the document may take of the device's memory (--gpu-memory).");
  row("Pages there", fmt::format("{} of {}", with_commas(pages.pages - pages.absent), with_commas(pages.pages)),
      "Of 128 x 128 x 128 voxels. The others are in the file, and seen as one voxel for each 8 x 8 x 8 until they "
      "come.");
  row("Pages kept", bytes_text(pages.host.bytes),
      fmt::format("What was read from the file stays in the host's memory, {} at most (--memory).",
                  bytes_text(pages.host.most_bytes))
          .c_str());
  row("Came / left", fmt::format("{} / {}", with_commas(pages.brought), with_commas(pages.left)));
  uint64_t all = 0, some = 0;
  for (const uint64_t count : pages.waits) all += count;
  if (all == 0) return;
  size_t most = 0;
  while (most + 1 < pages.waits.size() && (some += pages.waits[most]) * 20 < all * 19) ++most;
  row("95% waited", fmt::format("below {} ms", uint64_t(1) << most),
      "From when a picture was known to want a page until it was there.");
}

}  // namespace

void draw_statistics(const StatisticsPanel& shown) {
  const Statistics& now = shown.statistics;
  const hashgrid::Stats& grid = now.grid;
  panel_heading("HASH GRID");
  row("Live bricks", with_commas(grid.live));
  row("Slots", fmt::format("{} in {} pages", with_commas(grid.slots), grid.page_count));
  ImGui::TextDisabled("Load factor");
  ImGui::SameLine(ImGui::GetFontSize() * 6.5f);
  ImGui::ProgressBar(float(grid.load_factor), {-1, ImGui::GetFontSize() * 1.15f},
                     fmt::format("{:.3f}", grid.load_factor).c_str());
  row("In the stash", with_commas(grid.overflow_live), "Keys in the stash: they found no place in their two buckets.");
  row("Memory", bytes_text(grid.size_bytes));
  ImGui::Spacing();
  ImGui::TextDisabled("Probe depth: sectors read per brick");
  draw_histogram(grid);
  row("Mean", fmt::format("{:.3f}", grid.depth_mean));
  row("p50 / p99 / max", fmt::format("{} / {} / {}", grid.depth_p50, grid.depth_p99, grid.depth_max));

  panel_heading("WORLD");
  row("Voxels", with_commas(now.voxels));
  row("Voxels a brick", now.bricks ? fmt::format("{:.1f}", double(now.voxels) / double(now.bricks)) : "-");
  row("Memory", bytes_text(now.world_bytes), "Hash grid, brick pool and occupancy pyramid.");
  const Document::Holdings& held = now.holdings;
  row("Bricks stored", with_commas(held.bricks), "Each once, whoever has it: world, volumes, history.");
  row("Full of one material", with_commas(held.full_keys), "Bricks of the world that take no memory of their own.");
  row("Only in the history", with_commas(held.history_bricks));
  row("Records and lists", bytes_text(held.history_bytes + held.scene_bytes),
      "What the steps changed, and which bricks the volumes have.");
  const uint64_t budget = shown.history_budget;
  row("History",
      budget ? fmt::format("{} of {}", bytes_text(now.history_bytes), bytes_text(budget))
             : bytes_text(now.history_bytes),
      "Records of all steps, and bricks that undo and redo may need (--history-memory).");
  row("To spare", bytes_text(now.spare_bytes), "Room for bricks to come.");
  if (now.device_bytes) row("On the device", bytes_text(now.device_bytes));
  if (const auto& pages = now.pages; pages.budget_bytes > 0) draw_pages(pages);

  shown.times_shown = shown.session.on_device() && draw_edit_times(now.edit_times);

  panel_heading("RENDERER");
  const double tiles = shown.resolution.tiles_ms,
               picture = shown.resolution.whole && tiles > 0 ? tiles : shown.presenter.picture_ms();
  row("Picture",
      picture > 0
          ? fmt::format("{:.2f} ms{}", picture,
                        shown.resolution.scale < 1 ? fmt::format(" at {:.0f}%", shown.resolution.scale * 100) : "")
          : "-",
      "GPU time of the newest picture. While something moves fewer pixels are marched if a whole picture takes too "
      "long.");
  if (shown.convergence.wanted > 0)
    row("Light paths", fmt::format("{} of {} a pixel", shown.convergence.paths(), shown.convergence.wanted),
        "They add up while nothing moves.");
  row("Frame", shown.frame_ms > 0 ? fmt::format("{:.1f} ms", shown.frame_ms) : "-");
  const std::string& reason = shown.shared.sharing_reason();
  row("Sharing", engine::to_string(shown.shared.mode()), reason.c_str());
  if (shown.session.on_device())
    row("Over the bus", fmt::format("{} / {}", bytes_text(now.to_device_bytes), bytes_text(now.from_device_bytes)),
        "To the device and back, since the document was opened.");
  if (shown.session.on_device())
    row("Hand-overs", fmt::format("{:.1f} a second", now.hand_overs_a_second),
        "How often the world's memory goes from CUDA to Vulkan: once for each picture of a world that has changed, and "
        "never where it is the host's.");
  row("At home", engine::to_string(shown.session.at_home()), shown.session.home_reason().c_str());
  const std::string& device = shown.device.info().name;
  row("Device", device.size() > 24 ? device.substr(0, 23) + "\xE2\x80\xA6" : device, device.c_str());
  ImGui::AlignTextToFramePadding();
  ImGui::TextDisabled("View");
  ImGui::SameLine(ImGui::GetFontSize() * 6.5f);
  ImGui::SetNextItemWidth(-1);
  const auto names = engine::debug_view_names();
  const auto view = size_t(shown.view);
  if (ImGui::BeginCombo("##view", names[view])) {
    for (size_t i = 0; i < names.size(); ++i)
      if (ImGui::Selectable(names[i], i == view)) shown.view = static_cast<engine::DebugView>(i);
    ImGui::EndCombo();
  }
}

}  // namespace quarry::app
