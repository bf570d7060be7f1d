// SPDX-License-Identifier: Apache-2.0
// imgui_layer.cpp - font, theme and context of Dear ImGui. Each frame gets one piece of the events.
#include "app/editor/window/imgui_layer.hpp"

#include <GLFW/glfw3.h>
#include <imgui.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

namespace quarry::app {
namespace {

// The first of these fonts that exists is used; else Dear ImGui's own bitmap font, which is legible but not beautiful.
constexpr const char* kFonts[] = {
    "/usr/share/fonts/truetype/inter/Inter-Regular.ttf",
    "/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf",
    "/usr/share/fonts/opentype/cantarell/Cantarell-VF.otf",
    "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
    "/usr/share/fonts/truetype/liberation/LiberationSans-Regular.ttf",
    "/usr/share/fonts/truetype/freefont/FreeSans.ttf",
};

void load_font(float scale) {
  ImGuiIO& io = ImGui::GetIO();
  // Latin letters, and the punctuation of the editor's own texts.
  static const ImWchar ranges[] = {0x0020, 0x00FF, 0x2010, 0x2027, 0};
  ImFontConfig config;
  config.OversampleH = 3;
  config.OversampleV = 1;
  std::vector<std::string> candidates;
  if (const char* given = std::getenv("QUARRY_FONT")) candidates.emplace_back(given);
  candidates.insert(candidates.end(), std::begin(kFonts), std::end(kFonts));
  std::error_code error;
  for (const std::string& file : candidates)
    if (std::filesystem::is_regular_file(file, error) &&
        io.Fonts->AddFontFromFileTTF(file.c_str(), std::round(14.0f * scale), &config, ranges))
      return;
  ImFontConfig plain;
  plain.SizePixels = std::round(13.0f * scale);
  io.Fonts->AddFontDefault(&plain);
}

ImVec4 gray(float level, float alpha = 1) { return {level * 0.96f, level * 0.99f, level * 1.06f, alpha}; }

void apply_theme(float scale) {
  ImGuiStyle& style = ImGui::GetStyle();
  style = ImGuiStyle();
  ImGui::StyleColorsDark(&style);
  style.WindowPadding = {10, 10};
  style.FramePadding = {8, 4};
  style.ItemSpacing = {6, 6};
  style.ItemInnerSpacing = {6, 4};
  style.IndentSpacing = 14;
  style.ScrollbarSize = 11;
  style.GrabMinSize = 9;
  style.WindowRounding = 0;
  style.ChildRounding = 4;
  style.FrameRounding = 4;
  style.PopupRounding = 5;
  style.ScrollbarRounding = 6;
  style.GrabRounding = 4;
  style.WindowBorderSize = 0;
  style.PopupBorderSize = 1;
  style.WindowTitleAlign = {0.5f, 0.5f};
  const ImVec4 accent{0.43f, 0.66f, 0.85f, 1};
  const auto tint = [&](float alpha) { return ImVec4{accent.x, accent.y, accent.z, alpha}; };
  ImVec4* c = style.Colors;
  c[ImGuiCol_Text] = gray(0.86f);
  c[ImGuiCol_TextDisabled] = gray(0.56f);
  c[ImGuiCol_WindowBg] = gray(0.125f);
  c[ImGuiCol_ChildBg] = gray(0.105f);
  c[ImGuiCol_PopupBg] = gray(0.15f, 0.985f);
  c[ImGuiCol_MenuBarBg] = gray(0.105f);
  c[ImGuiCol_Border] = gray(0.24f, 0.8f);
  c[ImGuiCol_FrameBg] = gray(0.19f);
  c[ImGuiCol_FrameBgHovered] = gray(0.24f);
  c[ImGuiCol_FrameBgActive] = gray(0.27f);
  c[ImGuiCol_TitleBg] = c[ImGuiCol_TitleBgActive] = c[ImGuiCol_TitleBgCollapsed] = gray(0.105f);
  c[ImGuiCol_ScrollbarBg] = gray(0, 0);
  c[ImGuiCol_ScrollbarGrab] = gray(0.28f);
  c[ImGuiCol_ScrollbarGrabHovered] = gray(0.34f);
  c[ImGuiCol_ScrollbarGrabActive] = gray(0.40f);
  c[ImGuiCol_CheckMark] = accent;
  c[ImGuiCol_SliderGrab] = tint(0.75f);
  c[ImGuiCol_SliderGrabActive] = accent;
  c[ImGuiCol_Button] = gray(0.20f);
  c[ImGuiCol_ButtonHovered] = gray(0.26f);
  c[ImGuiCol_ButtonActive] = tint(0.55f);
  c[ImGuiCol_Header] = tint(0.22f);
  c[ImGuiCol_HeaderHovered] = tint(0.30f);
  c[ImGuiCol_HeaderActive] = tint(0.42f);
  c[ImGuiCol_Separator] = gray(0.22f);
  c[ImGuiCol_PlotHistogram] = tint(0.85f);
  c[ImGuiCol_TextSelectedBg] = tint(0.35f);
  c[ImGuiCol_NavHighlight] = tint(0.6f);
  c[ImGuiCol_ModalWindowDimBg] = {0.03f, 0.03f, 0.04f, 0.6f};
  style.ScaleAllSizes(scale);
}

}  // namespace

ImGuiLayer::ImGuiLayer(Window& window, float scale) : window_(window), scale_(scale) {
  IMGUI_CHECKVERSION();
  ImGui::CreateContext();
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;  // the layout is fixed, so nothing has to be remembered
  io.BackendPlatformName = "quarry";
  io.BackendFlags |= ImGuiBackendFlags_HasMouseCursors;
  io.ConfigWindowsMoveFromTitleBarOnly = true;
  const std::pair<ImGuiKey_, int> keys[] = {
      {ImGuiKey_Tab, GLFW_KEY_TAB},
      {ImGuiKey_LeftArrow, GLFW_KEY_LEFT},
      {ImGuiKey_RightArrow, GLFW_KEY_RIGHT},
      {ImGuiKey_UpArrow, GLFW_KEY_UP},
      {ImGuiKey_DownArrow, GLFW_KEY_DOWN},
      {ImGuiKey_PageUp, GLFW_KEY_PAGE_UP},
      {ImGuiKey_PageDown, GLFW_KEY_PAGE_DOWN},
      {ImGuiKey_Home, GLFW_KEY_HOME},
      {ImGuiKey_End, GLFW_KEY_END},
      {ImGuiKey_Insert, GLFW_KEY_INSERT},
      {ImGuiKey_Delete, GLFW_KEY_DELETE},
      {ImGuiKey_Backspace, GLFW_KEY_BACKSPACE},
      {ImGuiKey_Space, GLFW_KEY_SPACE},
      {ImGuiKey_Enter, GLFW_KEY_ENTER},
      {ImGuiKey_Escape, GLFW_KEY_ESCAPE},
      {ImGuiKey_KeyPadEnter, GLFW_KEY_KP_ENTER},
      {ImGuiKey_A, GLFW_KEY_A},
      {ImGuiKey_C, GLFW_KEY_C},
      {ImGuiKey_V, GLFW_KEY_V},
      {ImGuiKey_X, GLFW_KEY_X},
      {ImGuiKey_Y, GLFW_KEY_Y},
      {ImGuiKey_Z, GLFW_KEY_Z},
  };
  for (const auto& [imgui_key, key] : keys) io.KeyMap[imgui_key] = key;
  io.ClipboardUserData = this;
  io.SetClipboardTextFn = [](void* self, const char* text) {
    static_cast<ImGuiLayer*>(self)->window_.set_clipboard(text);
  };
  io.GetClipboardTextFn = [](void* data) {
    auto* self = static_cast<ImGuiLayer*>(data);
    self->clipboard_ = self->window_.clipboard();
    return self->clipboard_.c_str();
  };
  load_font(scale);
  apply_theme(scale);
}

ImGuiLayer::~ImGuiLayer() { ImGui::DestroyContext(); }

std::vector<InputEvent> ImGuiLayer::feed(double seconds_since_last) {
  ImGuiIO& io = ImGui::GetIO();
  int width = 0, height = 0, pixel_width = 0, pixel_height = 0;
  window_.size(width, height);
  window_.framebuffer_size(pixel_width, pixel_height);
  io.DisplaySize = {float(width), float(height)};
  if (width > 0 && height > 0)
    io.DisplayFramebufferScale = {float(pixel_width) / float(width), float(pixel_height) / float(height)};
  io.DeltaTime = float(std::max(1e-4, seconds_since_last));

  std::vector<InputEvent> piece = take_piece(window_.events());
  input_.give(io, piece);
  return piece;
}

}  // namespace quarry::app
