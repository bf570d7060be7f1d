// SPDX-License-Identifier: Apache-2.0
// editor.cpp - a frame from events to picture; opening and saving; keys; and the cost of the next picture (resolution,
// samples, tiles).
#include "app/editor/panels/editor.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <imgui.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>

#include "app/console/load.hpp"
#include "app/console/output_file.hpp"
#include "app/console/terminal.hpp"
#include "app/editor/panels/actions.hpp"
#include "app/editor/panels/frame.hpp"
#include "engine/home/drawing.hpp"
#include "voxel/io/export_loss.hpp"

namespace quarry::app {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kStillSeconds = 0.12;                 // after this long without a change the full picture is drawn
constexpr uint64_t kStreamBytes = uint64_t(32) << 20;  // of pages that come between two frames
constexpr double kBudgetMs = 40;                       // for a whole picture that a frame waits for
constexpr double kMovingMs = 30;                       // for a picture while something moves
constexpr double kTileMs = 25;                         // for a tile, which input may have to wait for
constexpr double kTileWaitSeconds = 0.002;
constexpr double kShownSeconds = 0.1;   // how long only tiles come before the window shows them
constexpr double kInputSeconds = 0.03;  // for input before a frame
constexpr double kStatisticsSeconds = 0.1;
constexpr double kHandOverSeconds = 1;  // that they are counted over

double seconds_since(Clock::time_point then) { return std::chrono::duration<double>(Clock::now() - then).count(); }

// When the last change came to be in a file: for the window's title.
std::string kept_text(const Session& session) {
  const auto at = session.kept_at();
  return at ? fmt::format(" (kept {:%H:%M:%S})", fmt::localtime(std::chrono::system_clock::to_time_t(*at))) : "";
}

}  // namespace

Editor::Editor(Window& window_in, engine::Device& device_in, engine::SharingMode sharing_in, engine::Home home,
               uint64_t device_memory_bytes, uint64_t page_memory_bytes, std::filesystem::path recovery)
    : window(window_in),
      device(device_in),
      sharing(sharing_in),
      session(WorldPlace{[this]() -> Result<WorldMemory> {
                           QRY_TRY_ASSIGN(auto made, engine::SharedWorld::create(device, sharing));
                           prepared = std::move(made);
                           return prepared->memory();
                         },
                         [this](bool used) {
                           std::shared_ptr<engine::SharedWorld> gone =
                               used ? std::exchange(shared, std::move(prepared)) : std::move(prepared);
                           prepared.reset();
                           if (!used) return;
                           // Frames in flight may still march through the old world.
                           if (presenter)
                             presenter->retire([gone, world = std::move(on_device_)]() mutable {
                               world.reset();
                               gone.reset();
                               // What a large document leaves free between small blocks would stay with the process.
                               malloc_trim(0);
                             });
                           on_device_.reset();
                         },
                         home,
                         [this](engine::Home its_home) -> Result<engine::HomeMemory> {
                           QRY_TRY_ASSIGN(auto memory, engine::home_memory(its_home, &device, sharing));
                           if (!memory.blocks) return fail(ErrorCode::unsupported, memory.reason);
                           return memory;
                         },
                         device_memory_bytes, page_memory_bytes,
                         // Asked for by edits and stream_pages(), after which the world is published before the next
                         // frame is recorded.
                         [this](bool) -> std::optional<device::Store::Frames> {
                           if (!presenter || !shared || !presenter->wait_for(presenter->submitted())) return {};
                           shared->frame_completed(presenter->completed());
                           const uint64_t recorded = shared->frames().recorded;
                           return device::Store::Frames{recorded, recorded};
                         }},
              std::move(recovery)) {
  last_frame_ = resolution.changed = Clock::now();
}

Editor::~Editor() {
  // Frames are destroyed first, then what they read. The session's world lives in `shared`'s memory, so it must go
  // before it.
  presenter.reset();
  imgui.reset();
  tracer.reset();
  renderer.reset();
}

Result<void> Editor::set_up() {
  QRY_TRY_ASSIGN(auto made_renderer, engine::Renderer::create(device, Presenter::kFrames + 1));
  renderer = std::move(made_renderer);
  QRY_TRY_ASSIGN(auto surface, window.create_surface(device.instance()));
  imgui = std::make_unique<ImGuiLayer>(window, window.content_scale());
  int width = 0, height = 0;
  window.framebuffer_size(width, height);
  QRY_TRY_ASSIGN(auto made_presenter, Presenter::create(device, *renderer, surface, uint32_t(width), uint32_t(height)));
  presenter = std::move(made_presenter);
  return {};
}

void Editor::frame_all() { camera.frame(session.shown().bounds, viewport.width / std::max(1.0, viewport.height)); }

void Editor::start_new() {
  viewport.forget();
  if (!messages.report(session.start_new())) return;
  accepted_losses_ = {};
  camera = {};
  frame_all();
  statistics = {};
}

bool Editor::open(const std::filesystem::path& file) {
  viewport.forget();
  ProgressLine line(file.string());
  io::ReadOptions options;
  options.budget = budget;
  options.progress = line.progress();
  const bool opened = messages.report(
      session.open(file, options).map_error([&](Error e) { return with_salvage_hint(file, std::move(e)); }));
  line.clear();
  if (!opened) return false;
  accepted_losses_ = {};
  camera = {};
  frame_all();
  statistics = {};
  const std::string notice = session.take_notice();
  if (!notice.empty()) say_warning(file.string(), notice);
  messages.say(notice.empty()
                   ? fmt::format("{}: {} voxels", file.filename().string(), with_commas(session.shown().voxels))
                   : notice);
  return true;
}

bool Editor::combine(const std::filesystem::path& file, BooleanKind kind) {
  viewport.cancel_stroke();
  const auto changed = session.combine(file, kind);
  if (!changed) return messages.report(tl::unexpected(changed.error()));
  const std::string notice = session.take_notice();
  if (!notice.empty()) say_warning(file.string(), notice);
  messages.say(notice.empty() ? fmt::format("{}: {} voxels changed", file.filename().string(), with_commas(*changed))
                              : notice);
  return true;
}

bool Editor::save() {
  if (session.is_world_file()) {
    messages.say(fmt::format("Every edit is in {} already", session.file().string()));
    return true;
  }
  const auto meant = session.write_back();
  if (!meant) {
    if (unattended) return messages.report(tl::unexpected(meant.error()));
    messages.say(meant.error().message);
    dialog.show_save(suggested_name());
    return false;
  }
  if (unattended && meant->changed_on_disk)
    return messages.report(
        fail(ErrorCode::conflict,
             fmt::format("{} was changed by another program since it was opened here", session.file().string())));
  const bool accepted = meant->losses.empty() || accepted_losses_ == std::pair(session.file(), meant->losses);
  if (!unattended && (meant->changed_on_disk || !accepted)) {
    questions.save_question = *meant;
    return false;
  }
  return save_as(session.file());
}

bool Editor::write_back_anyway() {
  accepted_losses_ = {session.file(), std::exchange(questions.save_question, {})->losses};
  return save_as(session.file());
}

bool Editor::save_as(const std::filesystem::path& file) {
  // The user is told what the format cannot hold, before the document may be gone.
  std::string lost;
  if (const auto format = io::format_for_writing(file))
    if (const auto whole = (*format)->keeps == io::kKeepsAll ? Result<Scene>(session.scene()) : session.whole_scene())
      for (const io::ExportLoss& loss : io::export_losses(*whole, **format))
        lost += (lost.empty() ? "" : ", ") + loss.text;
  const std::string sidecars = replaced_sidecars(file);
  if (!messages.report(session.save_as(file))) return false;
  if (!sidecars.empty()) say_warning(file.string(), sidecars);
  if (!lost.empty()) say_warning(file.string(), "not in it, for there is no place for it in such files: " + lost);
  messages.say(fmt::format("Saved as {}{}{}", file.string(), lost.empty() ? "" : "; not in it: " + lost,
                           sidecars.empty() ? "" : "; " + sidecars));
  if (questions.after_saving && !session.unsaved()) {
    const auto next = std::exchange(questions.after_saving, {});
    next();
  }
  return true;
}

bool Editor::recover(const std::filesystem::path& file) {
  if (!messages.report(session.recover(file))) return false;
  viewport.forget();
  frame_all();
  return true;
}

std::filesystem::path Editor::suggested_name() const {
  std::filesystem::path name = session.file().empty() ? std::filesystem::path("untitled") : session.file();
  return name.replace_extension(".quarry");
}

void Editor::ask_before_leaving(std::function<void()> then) {
  if (!session.unsaved() || unattended) {
    then();
    return;
  }
  questions.after_saving = std::move(then);
}

bool Editor::modal() const {
  return questions.open() || dialog.shown() || ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopup);
}

void Editor::handle_keys(const std::vector<InputEvent>& events, bool asked) {
  for (const InputEvent& event : events) {
    if (event.type == InputEvent::Type::close) perform(*this, Action::quit);
    if (event.type == InputEvent::Type::drop && !event.file.empty() && !asked && !modal())
      ask_before_leaving([this, file = event.file] { open(file); });
    if (event.type != InputEvent::Type::key || !event.down || ImGui::GetIO().WantTextInput || asked || modal())
      continue;
    const Shortcut* row = shortcut_of({event.code, event.modifiers & 7});
    const bool may_repeat = row && (row->action == Action::undo || row->action == Action::redo ||
                                    row->action == Action::radius_up || row->action == Action::radius_down);
    if (row && (!event.repeat || may_repeat)) perform(*this, row->action);
  }
}

void Editor::say_notice() {
  const std::string notice = session.take_notice();
  if (notice.empty()) return;
  say_warning(session.title(), notice);
  messages.say(notice);
}

// Edits are timed while somebody sees it.
void Editor::take_device_times() {
  if (!session.on_device()) return;
  const DeviceWorld& world = *session.device_world();
  const bool wanted = panels_shown && times_shown;
  if (timed_.first.lock() != session.device_world() || timed_.second != wanted) {
    world.home->time_edits(wanted);
    timed_ = {session.device_world(), wanted};
  }
  const double seconds = seconds_since(hand_overs_counted_);
  if (seconds < kHandOverSeconds) return;
  const uint64_t before = std::exchange(hand_overs_, world.blocks ? world.blocks->hand_overs() : 0);
  hand_overs_counted_ = Clock::now();
  // Another document begins anew.
  statistics.hand_overs_a_second = hand_overs_ < before ? 0 : double(hand_overs_ - before) / seconds;
}

void Editor::take_statistics() {
  take_device_times();
  const Session::Shown shown = session.shown();
  if (statistics.world_version == shown.version || seconds_since(statistics.taken) < kStatisticsSeconds) return;
  statistics.voxels = shown.voxels;
  statistics.bricks = shown.bricks;
  statistics.world_bytes = shown.world_bytes;
  if (session.on_device()) {
    engine::DeviceHome& home = *session.device_world()->home;
    if (const auto grid = home.grid_stats()) statistics.grid = *grid;
    if (const auto use = home.memory_use()) {
      statistics.spare_bytes = use->spare_bytes;
      statistics.holdings = {};
      statistics.holdings.full_keys = use->full_keys;
      statistics.holdings.history_bytes = use->history_bytes;
      statistics.history_bytes = use->history_changes * sizeof(device::Record);
    }
    statistics.pages = home.pages() ? home.pages()->counters() : engine::ResidentPages::Counters();
    if (const auto state = home.state()) {
      statistics.holdings.bricks = state->store.bricks;
      statistics.holdings.history_bricks = state->history_bricks(statistics.holdings.full_keys);
      statistics.history_bytes += statistics.holdings.history_bricks * (sizeof(BrickMask) + sizeof(BrickMaterials));
      statistics.device_bytes = state->store.size_bytes;
      statistics.to_device_bytes = state->traffic.to_device_bytes;
      statistics.from_device_bytes = state->traffic.from_device_bytes;
    }
    if (const auto times = home.edit_times()) statistics.edit_times = *times;
  } else {
    const World& world = session.document().world();
    if (const auto grid = world.stats()) statistics.grid = *grid;
    statistics.spare_bytes = world.spare_bytes();
    statistics.holdings = session.document().holdings();
    statistics.history_bytes = session.document().history_size_bytes();
    statistics.device_bytes = shared->device_bytes();
  }
  statistics.world_version = shown.version;
  statistics.taken = Clock::now();
}

void Editor::log_session() {
  const Session::Done& done = session.done();
  log_.session({engine::to_string(session.at_home()), done.edits, done.undone, done.redone, done.opened, done.saved,
                published_, session.shown().voxels, statistics.history_bytes, statistics.device_bytes,
                session.unsaved(), modal(), messages.is_error});
}

bool Editor::converging() const {
  return convergence.wanted > 0 && settings.view == engine::DebugView::shaded && !convergence.done();
}
bool Editor::settled() const {
  return resolution.whole && !refinement_ && !converging() && pages_missing_ == 0 && window.events().empty() &&
         statistics.world_version == session.shown().version;
}
double Editor::seconds_since_frame() const { return seconds_since(last_frame_); }

double Editor::idle_seconds() const {
  if (frames_to_draw_ > 0 || refinement_) return 0;  // next_tile() waits for the tile under way
  if (!resolution.whole) return unattended ? 0 : std::max(0.0, kStillSeconds - seconds_since(resolution.changed));
  if (converging()) return 0;
  if (statistics.world_version != session.shown().version)
    return std::max(0.0, kStatisticsSeconds - seconds_since(statistics.taken));
  return 0.25;
}

// If nothing happens, a frame once a second is enough for messages to fade.
bool Editor::due() const { return idle_seconds() <= 0 || seconds_since_frame() >= 1; }

PixelRect Editor::scene_pixels() const {
  const ImVec2 ratio = ImGui::GetIO().DisplayFramebufferScale;
  return {int(std::lround(viewport.x * ratio.x)), int(std::lround(viewport.y * ratio.y)),
          int(std::lround(viewport.width * ratio.x)), int(std::lround(viewport.height * ratio.y))};
}

Editor::PictureKey Editor::key_of(const PixelRect& pixels) const {
  return {camera,        session.shown().version, session.document().version(), settings.view,         pixels.width,
          pixels.height, settings.exposure,       settings.sun_strength,        settings.sky_strength, shared.get()};
}

engine::RenderedWorld Editor::rendered() {
  on_device_ = session.device_world();
  if (!on_device_) return engine::rendered_world(*shared, session.document());
  if (on_device_->pages())
    return engine::streamed_world(*shared, session.document(), *on_device_->home, *on_device_->blocks, device);
  return engine::rendered_world(*shared, session.document(), *on_device_->home, *on_device_->blocks);
}

// The host looks for lights: where something glows and has changed, it reads the voxels of a device's world for as long
// as that takes.
Result<void> Editor::prepare_lights() {
  engine::RenderedWorld drawn = rendered();
  std::optional<Document> glowing;
  const PictureKey key = key_of(scene_pixels());
  const Lit now{key.world, key.document, on_device_ ? on_device_->home->origin() : Int3{}};
  if (on_device_ && !(lit_ == now)) {
    QRY_TRY_ASSIGN(glowing, engine::glowing_part(*on_device_->home, session.document()));
    if (glowing) drawn.lit = &glowing->world();
  }
  QRY_TRY(tracer->prepare(drawn));
  lit_ = now;
  return {};
}

// Brings what frames have come to that are done; the next picture shows it.
Result<void> Editor::stream_pages() {
  engine::ResidentPages* const pages = session.on_device() ? session.device_world()->pages() : nullptr;
  pages_missing_ = 0;
  if (!pages) return {};
  // Of a world that one grid does not hold: the window goes where the camera goes.
  const glm::dvec3 eye = camera.position();
  QRY_TRY_ASSIGN(const bool moved, pages->look_from({eye.x, eye.y, eye.z}));
  if (moved) drawn_.reset(), frames_to_draw_ = std::max(frames_to_draw_, 2);
  QRY_TRY_ASSIGN(const auto streamed, pages->stream(shared->frames().done, kStreamBytes));
  pages_missing_ = streamed.missing;
  if (streamed.brought > 0) drawn_.reset();
  if (streamed.brought > 0 || streamed.left > 0) statistics.world_version = ~uint64_t(0);
  if (streamed.brought > 0 || streamed.missing > 0) frames_to_draw_ = std::max(frames_to_draw_, 2);
  return {};
}

Result<std::optional<FrameRequest::Scene>> Editor::next_picture(const PixelRect& pixels) {
  auto published = rendered().publish();
  if (!published && published.error().code == ErrorCode::device_lost && session.on_device()) {
    viewport.forget();
    messages.complain(session.reopen_on_host(published.error()));
    published = rendered().publish();
  }
  QRY_TRY_ASSIGN(const auto point, published);
  const PictureKey key = key_of(pixels);
  if (const std::pair version(key.world, key.document); published_last_ != version)
    published_last_ = version, ++published_;
  const bool measured = std::exchange(measured_, presenter->pictures_done()) != presenter->pictures_done();
  if (measured && presenter->picture_steps() > 0)
    convergence.step_ms = presenter->picture_ms() / presenter->picture_steps();
  else if (measured && presenter->picture_rays() > 0)
    take_cost(presenter->picture_ms() * pixels.width * pixels.height / presenter->picture_rays());
  FrameRequest::Scene scene;
  scene.world = shared.get();
  scene.settings = settings;
  scene.settings.width = uint32_t(pixels.width);
  scene.settings.height = uint32_t(pixels.height);
  scene.view = camera.view(scene.settings.width, scene.settings.height, shared->origin());
  scene.wait = point;
  const bool changed = !drawn_ || !(*drawn_ == key);
  if (changed) {
    resolution.changed = Clock::now();
    convergence.steps = 0;
    refinement_.reset();
  } else if (refinement_) {
    return std::nullopt;
  } else if (resolution.whole) {
    return converging() ? next_paths(scene) : std::nullopt;
  } else if (!unattended && seconds_since(resolution.changed) < kStillSeconds) {
    return std::nullopt;
  }

  // Edges are smoothed where four rays a pixel are still cheap. On software devices light paths smooth them (P).
  const double cost = resolution.full_ms > 0 ? resolution.full_ms : first_cost();
  const uint32_t samples = 4 * cost <= kBudgetMs || (!changed && !software()) ? 2 : 1;
  scene.settings.samples = samples;
  double scale = 1;
  if (changed) {
    for (const double step : {1.0, 1.0 / 2, 1.0 / 3, 1.0 / 4, 1.0 / 6, 1.0 / 8, 1.0 / 12, 1.0 / 16}) {
      scale = step;
      if (cost * step * step <= (step < 1 ? kMovingMs : kBudgetMs)) break;
    }
    scene.settings.width = uint32_t(std::max(1.0, std::round(pixels.width * scale)));
    scene.settings.height = uint32_t(std::max(1.0, std::round(pixels.height * scale)));
    scene.view = camera.view(scene.settings.width, scene.settings.height, shared->origin());
  }
  resolution.scale = scale;
  resolution.tiles_ms = 0;
  drawn_ = key;
  if (scale == 1 && cost * samples * samples > kBudgetMs) {
    refine(scene, cost * samples * samples);
    return std::nullopt;
  }
  resolution.whole = scale == 1;
  return scene;
}

void Editor::refine(FrameRequest::Scene scene, double guessed_ms) {
  Refinement now;
  const double width = scene.settings.width, height = scene.settings.height;
  // The first tiles are where the user looks: at the mouse if it is over the picture, else at the middle.
  const ImVec2 mouse = ImGui::GetIO().MousePos, ratio = ImGui::GetIO().DisplayFramebufferScale;
  const double x = (mouse.x - viewport.x) * ratio.x, y = (mouse.y - viewport.y) * ratio.y;
  const bool over = x >= 0 && y >= 0 && x < width && y < height;
  now.tiles.begin(scene.settings.width, scene.settings.height, over ? x : width / 2, over ? y : height / 2);
  TileCost& cost = scene.tracer ? path_cost_ : picture_cost_;
  if (!scene.tracer || cost.ms_a_pixel() <= 0)
    cost.guess(guessed_ms / (width * height * scene.settings.samples * scene.settings.samples));
  now.scene = scene;
  refinement_ = std::move(now);
}

double Editor::first_cost() const { return software() ? 1000 : 1; }

// A measurement counts for at most four times the previous estimate, because a software driver compiles within the
// first picture.
void Editor::take_cost(double ms) {
  resolution.full_ms = std::min(ms, 4 * (resolution.full_ms > 0 ? resolution.full_ms : first_cost()));
}

Result<void> Editor::next_tile() {
  Refinement& now = *refinement_;
  QRY_TRY_ASSIGN(const auto done, presenter->tile_done(kTileWaitSeconds));
  if (!done) return {};
  shared->frame_completed(presenter->completed());
  TileCost& cost = now.scene.tracer ? path_cost_ : picture_cost_;
  const double rays_a_pixel = now.scene.tracer ? 1 : now.scene.settings.samples * now.scene.settings.samples;
  if (now.rays > 0) {
    cost.measured(presenter->tile_ms(), now.rays);
    now.ms += std::max(0.0, presenter->tile_ms());
    log_.tile(*now.scene.tile, now.scene.settings.width, now.scene.settings.height, now.scene.steps,
              presenter->tile_ms());
    now.rays = 0;
  }
  auto tile = now.tiles.next(cost.pixels_in(kTileMs) / rays_a_pixel);
  if (!tile) {
    frames_to_draw_ = std::max(frames_to_draw_, 2);
    if (!now.scene.tracer) {
      resolution.whole = true;
      resolution.tiles_ms = now.ms;
      if (now.ms > 0) take_cost(now.ms / rays_a_pixel);
      refinement_.reset();
      return {};
    }
    convergence.steps += now.scene.steps;
    if (now.ms > 0) convergence.step_ms = now.ms / now.scene.steps;
    refinement_.reset();
    return {};
  }
  now.scene.tile = tile;
  now.rays = double(tile->width) * tile->height * rays_a_pixel;
  return presenter->draw_tile(now.scene);
}

// The next steps of the converging picture. They are whole paths where these are cheap, else a sixteenth of a path. If
// that is still too much, it is drawn in tiles.
Result<std::optional<FrameRequest::Scene>> Editor::next_paths(FrameRequest::Scene scene) {
  constexpr uint32_t kAPath = engine::PathTracer::kStepsAPath, kUnseenPaths = 2, kMostAtOnce = 16;
  if (!tracer) {
    auto made = engine::PathTracer::create(device);
    if (!made) {
      convergence.wanted = 0;
      return tl::unexpected<Error>(made.error());
    }
    tracer = std::move(*made);
  }
  if (convergence.steps == 0) QRY_TRY(prepare_lights());
  const double path_ms = convergence.step_ms > 0 ? convergence.step_ms * kAPath : software() ? 16000 : 20;
  uint32_t steps = 1;
  if (convergence.steps % kAPath == 0 && path_ms <= kBudgetMs)
    steps = kAPath * std::min({uint32_t(kBudgetMs / path_ms), kMostAtOnce, convergence.wanted - convergence.paths()});
  scene.tracer = tracer.get();
  scene.first_step = convergence.steps;
  scene.steps = steps;
  // The first paths have more grain than the quick picture before them.
  scene.show = (convergence.steps + steps) / kAPath >= std::min(kUnseenPaths, convergence.wanted);
  if (steps == 1 && (software() || path_ms > kBudgetMs * kAPath)) {
    refine(scene, path_ms / kAPath);
    return std::nullopt;
  }
  convergence.steps += steps;
  return scene;
}

// Takes the input piece by piece, each in a frame of Dear ImGui. Only the last of these frames is shown. By then no
// input is left, and the panels show the effect of all of it.
void Editor::process_input(double seconds) {
  const auto begun = Clock::now();
  while (true) {
    const std::vector<InputEvent> events = imgui->feed(seconds);
    ImGui::NewFrame();
    const bool asked = modal();  // a key that answers a question does nothing else
    draw_panels(*this);
    // If a slider's panel is hidden under the mouse, the slider cannot report its release.
    if (session.previews_palette() && !ImGui::IsAnyItemActive())
      messages.report(session.set_palette(Palette(session.scene().palette)));
    handle_keys(events, asked);
    viewport.handle(events, modal());
    if (events.empty() || seconds_since(begun) > kInputSeconds) return;
    ImGui::EndFrame();
    seconds = 0;
  }
}

Result<void> Editor::frame(bool screenshot) {
  if (refinement_ && !screenshot && window.events().empty() && seconds_since(shown_) < tiles_alone_ && drawn_ &&
      *drawn_ == key_of(scene_pixels()))
    return next_tile();
  const double seconds = std::min(seconds_since(last_frame_), 0.5);
  last_frame_ = Clock::now();
  // Measured over frames in a row, not over waiting.
  if (frames_to_draw_ > 1) frame_ms = frame_ms * 0.9 + seconds * 100;
  if (!window.events().empty()) frames_to_draw_ = 3;
  else if (frames_to_draw_ > 0) --frames_to_draw_;

  // The duration of each part of the frame, for the log.
  auto lap_begun = last_frame_;
  const auto lap = [&] {
    const auto before = std::exchange(lap_begun, Clock::now());
    return std::chrono::duration<double, std::milli>(lap_begun - before).count();
  };
  QRY_TRY(presenter->begin());
  shared->frame_completed(presenter->completed());
  const double waited = lap();
  process_input(seconds);
  viewport.draw_overlay(imgui->scale());
  say_notice();
  take_statistics();
  ImGui::Render();
  window.set_cursor(ImGui::GetMouseCursor());
  window.set_title(fmt::format("{}{}{} - Quarry", session.unsaved() ? "* " : "", session.title(), kept_text(session)));

  const double input = lap();

  int width = 0, height = 0;
  window.framebuffer_size(width, height);
  FrameRequest request;
  request.viewport = scene_pixels();
  std::copy_n(kBackground, 4, request.background);
  request.panels = ImGui::GetDrawData();
  request.screenshot = screenshot;
  if (width > 0 && height > 0 && request.viewport.width > 0 && request.viewport.height > 0) {
    if (const auto streamed = stream_pages(); !streamed && streamed.error().code != ErrorCode::device_lost)
      messages.complain(streamed.error());  // what is lost is noticed by the next call
    QRY_TRY_ASSIGN(auto scene, next_picture(request.viewport));
    request.scene = scene;
    if (request.scene) frames_to_draw_ = std::max(frames_to_draw_, 2);
  }
  const double readied = lap(), rays = request.scene && !request.scene->tracer
                                           ? double(request.scene->settings.width) * request.scene->settings.height
                                           : 0;
  QRY_TRY_ASSIGN(const auto shown, presenter->draw(request, uint32_t(width), uint32_t(height)));
  const double drawn = lap();
  if (log_.on()) log_session();
  log_.frame(waited, input, readied, drawn, rays, presenter->picture_ms());
  // Frames take at most a third of the time that tiles could use.
  shown_ = Clock::now();
  tiles_alone_ = std::clamp((readied + drawn) * 2e-3, kShownSeconds, 0.5);
  if (!shown) {
    drawn_.reset();
    convergence.steps = 0;
    resolution.whole = false;
    refinement_.reset();
    frames_to_draw_ = std::max(frames_to_draw_, 2);
  }
  return {};
}

}  // namespace quarry::app
