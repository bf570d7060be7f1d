// SPDX-License-Identifier: Apache-2.0
// editor.hpp - the editor as one struct: the open document, the camera, the tool in use. Panels, keys and scripts work
// on it; editor.cpp turns it into frames.
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

// A whole picture, or one step of its light paths, that is drawn in tiles. As a single submission it would make input
// wait until it is done. Input is taken between tiles. If something changes, the remaining tiles are dropped. Where no
// tile is drawn yet, the last picture still shows.
struct Refinement {
  Tiling tiles;
  FrameRequest::Scene scene;  // the scene of every tile, except which tile it is
  double rays = 0;            // rays of the tile under way
  double ms = 0;              // time of the finished tiles
};

struct Editor {
  // `home`: where documents are to be at home; with automatic on a device only if shaders read its memory. What of that
  // a document may take is `device_memory_bytes`, and `page_memory_bytes` of the host's are for its pages (WorldPlace).
  Editor(Window& window, engine::Device& device, engine::SharingMode sharing, engine::Home home,
         uint64_t device_memory_bytes, uint64_t page_memory_bytes, std::filesystem::path recovery);
  ~Editor();

  Window& window;
  engine::Device& device;
  engine::SharingMode sharing;
  std::unique_ptr<engine::Renderer> renderer;
  std::unique_ptr<engine::PathTracer> tracer;  // null until it is asked for
  std::unique_ptr<ImGuiLayer> imgui;
  std::unique_ptr<Presenter> presenter;
  std::shared_ptr<engine::SharedWorld> shared, prepared;  // the worlds of the document, and of one being made
  Session session;
  const MemoryBudget* budget = nullptr;  // for what documents are read into; null: no limit
  OrbitCamera camera;
  Brush brush;
  engine::RenderSettings settings;
  Messages messages;
  Viewport viewport{session, camera, brush, messages};
  FileDialog dialog;
  Statistics statistics;
  Resolution resolution;
  Convergence convergence;
  bool panels_shown = true, times_shown = false, help_shown = false, quit = false;
  bool unattended = false;  // a script or --frames drives: no questions are asked, losses are reported as warnings
  double frame_ms = 0;
  Questions questions;

  Result<void> set_up();
  // Draws one frame. If a picture is under way, no input waits and the window was shown a short while ago, it draws
  // only the next tile. With `screenshot` it always draws a frame, and keeps the window's picture for
  // Presenter::take_screenshot.
  Result<void> frame(bool screenshot);
  bool settled() const;         // nothing is left to draw: no events wait, the picture is whole
  double idle_seconds() const;  // how long the next frame may wait for an event
  double seconds_since_frame() const;

  bool due() const;  // a frame is due although nothing has happened

  void redraw() { drawn_.reset(); }  // the next frame draws a new picture

  void frame_all();
  void start_new();
  bool open(const std::filesystem::path& file);
  // A question or a menu is open. It alone gets keys, mouse and files dropped on the window.
  bool modal() const;
  // Session::combine(), with what came of it in the status line.
  bool combine(const std::filesystem::path& file, BooleanKind kind);
  // Writes the document back into the file that it came from. Asks first if something would be lost. Asks for a name if
  // there is no such file.
  bool save();
  bool write_back_anyway();  // the answer to questions.save_question
  bool save_as(const std::filesystem::path& file);
  bool recover(const std::filesystem::path& file);  // unsaved work of a session that ended
  std::filesystem::path suggested_name() const;
  // Runs `then` at once if nothing is unsaved, else after the user's answer.
  void ask_before_leaving(std::function<void()> then);

 private:
  void handle_keys(const std::vector<InputEvent>& events, bool asked);
  // The file, and the losses in it that the user has accepted.
  std::pair<std::filesystem::path, std::vector<std::string>> accepted_losses_;
  void say_notice();
  void take_statistics();
  void take_device_times();
  void log_session();
  bool converging() const;  // more paths are wanted
  bool software() const { return device.info().type == VK_PHYSICAL_DEVICE_TYPE_CPU; }
  PixelRect scene_pixels() const;
  void process_input(double seconds);  // takes all input until now, and draws the panels after it
  // The picture that this frame itself draws. Empty if there is none to draw, or if it is drawn in tiles (refinement_).
  Result<std::optional<FrameRequest::Scene>> next_picture(const PixelRect& pixels);
  Result<std::optional<FrameRequest::Scene>> next_paths(FrameRequest::Scene scene);
  double first_cost() const;  // estimated ms of a whole picture, before any was measured
  void take_cost(double ms);
  void refine(FrameRequest::Scene scene, double guessed_ms);
  Result<void> next_tile();
  Result<void> stream_pages();
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
  engine::RenderedWorld rendered();
  Result<void> prepare_lights();
  std::shared_ptr<DeviceWorld> on_device_;  // what frames may read
  struct Lit {
    uint64_t world = 0, document = 0;  // versions
    Int3 origin;                       // of the grid's window
    friend bool operator==(const Lit&, const Lit&) = default;
  };
  Lit lit_;  // whose lights the tracer has, of a world on a device
  std::optional<PictureKey> drawn_;
  std::optional<Refinement> refinement_;  // of the picture drawn_
  uint64_t pages_missing_ = 0;            // that pictures want, of a document in parts
  TileCost picture_cost_, path_cost_;
  uint64_t measured_ = 0;                              // the presenter's count of measured pictures
  std::pair<std::weak_ptr<DeviceWorld>, bool> timed_;  // whose edits were last told to be timed, or not
  uint64_t hand_overs_ = 0;                            // of the document's memory, when they were last counted
  std::chrono::steady_clock::time_point hand_overs_counted_;
  uint64_t published_ = 0;                                       // versions that were handed to a picture
  std::optional<std::pair<uint64_t, uint64_t>> published_last_;  // of world and document
  FrameLog log_;
  std::chrono::steady_clock::time_point last_frame_, shown_;  // a frame's beginning and end
  double tiles_alone_ = 0;                                    // seconds after shown_ in which only tiles are drawn
  int frames_to_draw_ = 3;
};

}  // namespace quarry::app
