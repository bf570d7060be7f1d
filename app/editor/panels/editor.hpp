// SPDX-License-Identifier: Apache-2.0
// editor.hpp - the editor as one struct: what is open, where one looks from, which tool is in the hand. Panels, keys
// and scripts work on it; editor.cpp turns it into frames.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/editor/panels/file_dialog.hpp"
#include "app/editor/panels/messages.hpp"
#include "app/editor/panels/questions.hpp"
#include "app/editor/panels/refinement.hpp"
#include "app/editor/panels/statistics.hpp"
#include "app/editor/panels/viewport.hpp"
#include "app/editor/session/document_session.hpp"
#include "app/editor/session/recovery.hpp"
#include "app/editor/session/tiling.hpp"
#include "app/editor/session/tools.hpp"
#include "app/editor/window/frame_log.hpp"
#include "app/editor/window/imgui_layer.hpp"
#include "app/editor/window/presenter.hpp"
#include "engine/render/orbit_camera.hpp"
#include "engine/render/ray_marcher.hpp"

namespace quarry::app {

// A whole picture, or a step of its light paths, under way in tiles: one submission of it would let input wait for as
// long as it takes. Input is taken between tiles; what is left is dropped when something changes. What was shown before
// shines through where none is yet.
struct Refinement {
  Tiling tiles;
  FrameRequest::Scene scene;  // of each tile, but for which one
  double rays = 0;            // in the tile under way
  double ms = 0;              // of the tiles that are done
};

struct Editor {
  Editor(Window& window, engine::Device& device, engine::SharingMode sharing, std::filesystem::path recovery);
  ~Editor();

  Window& window;
  engine::Device& device;
  engine::SharingMode sharing;
  std::unique_ptr<engine::Renderer> renderer;
  std::unique_ptr<engine::PathTracer> tracer;  // once it was asked for
  std::unique_ptr<ImGuiLayer> imgui;
  std::unique_ptr<Presenter> presenter;
  std::shared_ptr<engine::SharedWorld> shared, prepared;  // of the document, and of one being made
  Session session;
  OrbitCamera camera;
  Brush brush;
  engine::RenderSettings settings;
  Messages messages;
  Viewport viewport{session, camera, brush, messages};
  FileDialog dialog;
  Statistics statistics;
  Resolution resolution;
  Convergence convergence;
  bool panels_shown = true, help_shown = false, quit = false;
  bool unattended = false;  // a script or --frames drives: no questions are asked, what would be lost is a warning
  double frame_ms = 0;
  Questions questions;

  Result<void> set_up();
  // One frame, or only the next tile of a picture under way, as long as there is nothing to hear and the window was
  // shown a short while ago. `screenshot`: a frame, and the window's picture is kept for Presenter::take_screenshot.
  Result<void> frame(bool screenshot);
  bool settled() const;         // nothing is left to draw: no events wait, the picture is whole
  double idle_seconds() const;  // how long the next frame may wait for an event
  double seconds_since_frame() const;

  bool due() const;  // a frame should come though nothing has happened

  void redraw() { drawn_.reset(); }  // the next frame makes the picture anew

  void frame_all();
  void start_new();
  bool open(const std::filesystem::path& file);
  // A question or a menu is open. It has keys, mouse and what is dropped on the window to itself.
  bool modal() const;
  // Writes the document back into the file that it came from, asking first if something would be lost; asks for a name
  // if there is none.
  bool save();
  bool write_back_anyway();  // the answer to questions.save_question
  bool save_as(const std::filesystem::path& file);
  bool recover(const std::filesystem::path& file);  // unsaved work of a session that ended
  std::filesystem::path suggested_name() const;
  // Runs `then` at once if nothing is unsaved, else after the user has answered.
  void ask_before_leaving(std::function<void()> then);

 private:
  void handle_keys(const std::vector<InputEvent>& events, bool asked);
  // Of which file the user has agreed to which.
  std::pair<std::filesystem::path, std::vector<std::string>> accepted_losses_;
  void take_statistics();
  bool converging() const;  // paths are still wanted
  bool software() const { return device.info().type == VK_PHYSICAL_DEVICE_TYPE_CPU; }
  PixelRect scene_pixels() const;
  void process_input(double seconds);  // all input until now, and the panels after it
  // What this frame itself is to draw; none, and perhaps refinement_, if it is nothing or comes in tiles.
  Result<std::optional<FrameRequest::Scene>> next_picture(const PixelRect& pixels);
  Result<std::optional<FrameRequest::Scene>> next_paths(FrameRequest::Scene scene);
  double first_cost() const;  // of a whole picture, before any was measured
  void take_cost(double ms);
  void refine(FrameRequest::Scene scene, double guessed_ms);
  Result<void> next_tile();
  struct PictureKey {
    OrbitCamera camera;
    uint64_t world = 0, document = 0;
    engine::DebugView view{};
    int width = 0, height = 0;
    float exposure = 0, sun = 0, sky = 0;
    const void* shared = nullptr;
    friend bool operator==(const PictureKey&, const PictureKey&) = default;
  };
  PictureKey key_of(const PixelRect& pixels) const;
  std::optional<PictureKey> drawn_;
  std::optional<Refinement> refinement_;  // of drawn_
  TileCost picture_cost_, path_cost_;
  uint64_t measured_ = 0;  // of the presenter's pictures
  FrameLog log_;
  std::chrono::steady_clock::time_point last_frame_, shown_;  // a frame's beginning and end
  double tiles_alone_ = 0;                                    // seconds after it
  int frames_to_draw_ = 3;
};

}  // namespace quarry::app
