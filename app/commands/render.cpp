// SPDX-License-Identifier: Apache-2.0
// render.cpp - `quarry render`: renders pictures of any readable files off-screen, one after another, on one device
// with one set of pipelines.
#include <fmt/format.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <utility>

#include "app/batch/tasks.hpp"
#include "app/commands/sharing_option.hpp"
#include "app/console/inputs.hpp"
#include "app/console/load.hpp"
#include "app/console/output_file.hpp"
#include "app/console/terminal.hpp"
#include "app/pictures/picture_options.hpp"
#include "app/pictures/wide_scene.hpp"
#include "engine/home/drawn_world.hpp"
#include "engine/pictures/exr_file.hpp"
#include "engine/pictures/path_tracer.hpp"
#include "engine/pictures/png_file.hpp"

namespace quarry::app {
namespace {
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point then) { return std::chrono::duration<double>(Clock::now() - then).count(); }

struct RenderArguments {
  std::vector<std::string> inputs;
  std::string output, device, memory, gpu_memory, to = "png";
  uint64_t memory_bytes = 0, gpu_memory_bytes = UINT64_MAX;
  SharingOption sharing;
  int64_t turntable = 1;
  bool layers = false, validation = false, json = false;
  LoadOptions load;
  PictureOptions picture;
};

// One input and its pictures, one for each frame.
struct Job {
  fs::path input;
  std::vector<fs::path> outputs;
};

// How a world was drawn of which parts were in memory at a time; null if all of it was.
nlohmann::json pages_of(const engine::DrawnWorld& world) {
  if (!world.pages()) return nullptr;
  const engine::WorldPages::Counters& c = world.pages()->counters();
  return {{"budget_bytes", world.pages()->budget_bytes()},
          {"pages", c.pages},
          {"there", c.there()},
          {"bytes", c.bytes},
          {"most_bytes", c.most_bytes},
          {"brought", c.brought},
          {"left", c.left},
          {"bricks_read", c.bricks_read},
          {"rounds", c.rounds}};
}

bool is_exr(const fs::path& file) { return file.extension() == ".exr"; }

// Decides which picture goes to which file. Every name is checked before anything is rendered.
Result<std::vector<Job>> plan(const RenderArguments& parsed, const std::vector<Input>& inputs) {
  const auto frames = size_t(parsed.turntable);
  const std::string& out = parsed.output;
  std::error_code error;
  const bool picture = out.ends_with(".png") || out.ends_with(".exr");
  const bool directory = !is_template(out) && (inputs.size() > 1 || frames > 1 ||
                                               (!picture && (out.ends_with('/') || fs::is_directory(out, error))));
  if (directory && picture)
    return fail(ErrorCode::bad_usage, fmt::format("-o '{}' is one picture, and {} would be made: name a directory, "
                                                  "or a template such as 'out/{{stem}}-{{part}}.png'.",
                                                  out, inputs.size() * frames));
  const std::string name =
      directory ? (fs::path(out) / (frames > 1 ? "{dir}/{stem}-{part}." : "{dir}/{stem}.")).string() + parsed.to : out;
  if (!name.ends_with(".png") && !name.ends_with(".exr"))
    return fail(ErrorCode::bad_usage, fmt::format("-o '{}' does not end in .png or .exr.", out));
  std::map<fs::path, std::string> taken;
  std::vector<Job> jobs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Job job{inputs[i].file, {}};
    for (size_t frame = 0; frame < frames; ++frame) {
      TemplateValues values{inputs[i].relative, i + 1, inputs.size(),
                            fmt::format("{:0{}}", frame + 1, std::to_string(frames).size())};
      QRY_TRY_ASSIGN(auto file, is_template(name) ? fill_template(name, values) : Result<fs::path>(name));
      file = file.lexically_normal();
      const auto [at, fresh] = taken.try_emplace(file, shown(inputs[i].file));
      if (!fresh)
        return fail(ErrorCode::bad_usage, fmt::format("'{}' and '{}' would both become '{}'.", at->second,
                                                      shown(inputs[i].file), shown(file)));
      if (is_exr(file) && !parsed.picture.paths)
        return fail(ErrorCode::bad_usage, "an .exr holds light as it was traced: say how many paths with --spp.");
      job.outputs.push_back(std::move(file));
    }
    jobs.push_back(std::move(job));
  }
  return jobs;
}

class Batch {
 public:
  // `several`: the pictures are synced to disk together.
  Batch(const RenderArguments& parsed, bool several) : parsed_(parsed), several_(several) {}

  Result<void> open_device() {
    engine::DeviceOptions options;
    options.prefer = parsed_.device;
    options.validation = parsed_.validation;
    if (parsed_.validation)
      options.log = [](int severity, const char* message) {
        if (severity > 0) fmt::print(stderr, "quarry: validation: {}\n", message);
      };
    QRY_TRY_ASSIGN(auto device, engine::Device::create(options));
    device_ = std::move(device);
    if (parsed_.picture.paths) {
      QRY_TRY_ASSIGN(auto tracer, engine::PathTracer::create(*device_));
      tracer_ = std::move(tracer);
    } else {
      QRY_TRY_ASSIGN(auto renderer, engine::Renderer::create(*device_));
      renderer_ = std::move(renderer);
    }
    return {};
  }

  // Renders all pictures of one input. Only whole files are written. Rows for --json go to `report`.
  Result<void> run(const Job& job, nlohmann::json& report) {
    for (const fs::path& output : job.outputs) {
      if (output.has_parent_path()) QRY_TRY(deferred_sync_.make_folders(output.parent_path()));
      QRY_TRY(check_output(output, true));
    }
    const PictureOptions& picture = parsed_.picture;
    ProgressLine line(shown(job.input));
    engine::DrawnWorld::Request request;
    request.file = job.input;
    request.home = parsed_.sharing.home;
    request.sharing = parsed_.sharing.mode;
    request.memory_bytes = parsed_.memory_bytes;
    request.device_memory_bytes = parsed_.gpu_memory_bytes;
    request.read = [&](const BrickPool* pool, const DeviceSink* sink) {
      return load_scene(job.input, parsed_.load, pool, sink);
    };
    request.check = [&](const Scene& scene) -> Result<void> {
      if (picture.scene_camera < int64_t(scene.cameras.size())) return {};
      return fail(ErrorCode::bad_usage, fmt::format("--scene-camera {}: the file has {} cameras", picture.scene_camera,
                                                    scene.cameras.size()));
    };
    request.otherwise = fmt::format("; without --home {}, or with --home host, it is drawn all the same",
                                    engine::to_string(parsed_.sharing.home));
    std::vector<std::string> warnings;
    QRY_TRY_ASSIGN(auto wide, WideScene::of(job.input, line.progress()));
    Layers layers;
    if (wide) {
      QRY_TRY(request.check(wide->scene()));
      const engine::DebugView shown_view = picture.settings.view;
      if (shown_view == engine::DebugView::load || shown_view == engine::DebugView::probe_depth)
        return fail(ErrorCode::unsupported,
                    fmt::format("--view {} shows the hash grid, and the scene is larger than one grid, or lies outside "
                                "of it; quarry convert --crop or --lod makes a smaller one",
                                picture.view_name));
      if (wide->halved()) QRY_TRY(wide->make_far(job.outputs.front(), parsed_.memory_bytes, line.progress()));
    } else {
      QRY_TRY_ASSIGN(layers.all, open(request, {}, line.progress(), &warnings));
    }
    const auto frames = uint32_t(job.outputs.size());
    for (uint32_t frame = 0; frame < frames; ++frame) {
      const fs::path& output = job.outputs[frame];
      PictureOptions::Eye eye;
      if (wide) {
        eye = picture.eye(wide->scene(), wide->bounds(), frame, frames);
        QRY_TRY(open_for(*wide, wide->near(eye.position), request, line.progress(), &warnings, layers));
      } else {
        eye = picture.eye(layers.all->world->scene(), layers.all->world->numbers().bounds, frame, frames);
      }
      line.clear();
      for (const std::string& warning : std::exchange(warnings, {})) say_warning(shown(job.input), warning);
      const engine::DrawnWorld* const world = layers.near ? layers.near->world.get() : layers.all->world.get();
      const engine::DrawnWorld::Numbers& numbers = world->numbers();
      const uint64_t voxels = wide ? wide->voxels() : numbers.voxels, bricks = wide ? wide->bricks() : numbers.bricks;
      const engine::RenderSettings& settings = picture.settings;
      const auto start = Clock::now();
      Progress progress = line.progress();
      if (frames > 1) {
        // One bar for the whole turn.
        progress.report = [report = progress.report, frame, frames](std::string_view stage, double fraction) {
          report(stage, (frame + fraction) / frames);
        };
      }
      QRY_TRY(make(layers, eye, output, progress));
      const double seconds = seconds_since(start);
      if (frames > 1) progress.say("rendering", 1);
      report.push_back({{"input", shown(job.input)},
                        {"output", shown(output)},
                        {"ok", true},
                        {"width", settings.width},
                        {"height", settings.height},
                        {"view", picture.view_name},
                        {"paths", picture.paths},
                        {"device", device_->info().name},
                        {"driver", device_->info().driver},
                        {"sharing", engine::to_string(world->shared().mode())},
                        {"sharing_reason", world->shared().sharing_reason()},
                        {"home", engine::to_string(world->home())},
                        {"home_reason", world->home_reason()},
                        {"voxels", voxels},
                        {"bricks", bricks},
                        {"world_bytes", world->pages() ? world->pages()->counters().bytes : numbers.size_bytes},
                        {"packed", numbers.packed},
                        {"pages", pages_of(*world)},
                        {"halved", wide ? wide->halved() : 0},
                        {"seconds", seconds},
                        {"validation_errors", device_->validation_errors()}});
      if (parsed_.json) continue;
      line.clear();
      fmt::print("{}: {}x{}, {} voxels in {} bricks, {:.3f} s\n", shown(output), settings.width, settings.height,
                 with_commas(voxels), with_commas(bricks), seconds);
    }
    if (parsed_.json) return {};
    const engine::DrawnWorld* const world = layers.near ? layers.near->world.get() : layers.all->world.get();
    if (reported_.empty())
      fmt::print("  device   {}\n  sharing  {}: {}\n", device_->info().name, engine::to_string(world->shared().mode()),
                 world->shared().sharing_reason());
    std::string home = fmt::format("{}: {}", engine::to_string(world->home()), world->home_reason());
    if (home != reported_) fmt::print("  home     {}\n", home);
    reported_ = std::move(home);
    if (world->pages()) {
      const engine::WorldPages::Counters& c = world->pages()->counters();
      fmt::print("  memory   {} of it at most, in {} of {} pages of 128^3 voxels; {} came, {} left\n",
                 bytes_text(c.most_bytes), with_commas(c.there()), with_commas(c.pages), with_commas(c.brought),
                 with_commas(c.left));
    }
    return {};
  }

  uint32_t validation_errors() const { return device_->validation_errors(); }
  // Waits until all pictures are on disk.
  Result<void> settle() { return deferred_sync_.settle(); }

 private:
  io::DeferredSync* together() { return several_ ? &deferred_sync_ : nullptr; }

  // A world that is drawn, and where it lies in the scene.
  struct Layer {
    std::unique_ptr<engine::DrawnWorld> world;
    DrawnPlace place;
  };
  struct Layers {
    std::optional<Layer> all, near;
    std::optional<Box3> near_box;  // what `near` shows, and `all` does not
  };

  Result<Layer> open(const engine::DrawnWorld::Request& request, const DrawnPlace& place, const Progress& progress,
                     std::vector<std::string>* warnings) {
    Layer layer{nullptr, place};
    QRY_TRY_ASSIGN(layer.world, engine::DrawnWorld::open(*device_, request, progress, warnings));
    if (tracer_) QRY_TRY(layer.world->find_lights(progress));
    return layer;
  }

  // Opens the worlds of a scene that is larger than one, unless they are there.
  Result<void> open_for(const WideScene& wide, const std::optional<Box3>& near, engine::DrawnWorld::Request request,
                        const Progress& progress, std::vector<std::string>* warnings, Layers& layers) {
    if (layers.all && layers.near_box == near) return {};
    layers = {};
    const auto share = [&](uint64_t& bytes) {
      if (near && bytes != UINT64_MAX) bytes /= 2;
    };
    share(request.memory_bytes);
    share(request.device_memory_bytes);
    if (near) {
      request.window = wide.near_window(*near);
      QRY_TRY_ASSIGN(layers.near, open(request, wide.place_of(*request.window, false), progress, warnings));
    }
    if (wide.halved()) request.file = wide.far_file();
    request.window = wide.far_window(near);
    QRY_TRY_ASSIGN(layers.all, open(request, wide.place_of(*request.window, true), progress, warnings));
    layers.near_box = near;
    return {};
  }

  Result<void> make(const Layers& layers, const PictureOptions::Eye& eye, const fs::path& output,
                    const Progress& progress) {
    if (is_exr(output)) {
      if (layers.near)
        return fail(ErrorCode::unsupported,
                    "the scene is larger than one world, and its picture is put together of two: write a .png, or make "
                    "the scene smaller first (quarry convert --lod, --crop)");
      engine::RenderSettings settings = parsed_.picture.settings;
      const engine::View view = parsed_.picture.view(eye, layers.all->place, settings);
      QRY_TRY_ASSIGN(const auto traced, tracer_->render(layers.all->world->rendered(progress), view, settings,
                                                        parsed_.picture.paths, parsed_.layers, progress));
      return engine::write_exr(traced, {output, true, together()});
    }
    QRY_TRY_ASSIGN(auto picture, draw(*layers.all, eye, false, progress));
    if (layers.near) {
      QRY_TRY_ASSIGN(const auto near, draw(*layers.near, eye, true, progress));
      picture = over(near, picture);
    }
    return engine::write_png(picture, {output, true, together()});
  }

  // `before_another`: without what is behind a world.
  Result<engine::Picture> draw(const Layer& layer, const PictureOptions::Eye& eye, bool before_another,
                               const Progress& progress) {
    engine::RenderSettings settings = parsed_.picture.settings;
    if (before_another) settings.background = engine::Background::none, settings.ground = false;
    const engine::View view = parsed_.picture.view(eye, layer.place, settings);
    const engine::RenderedWorld world = layer.world->rendered(progress);
    if (tracer_) {
      QRY_TRY_ASSIGN(auto traced, tracer_->render(world, view, settings, parsed_.picture.paths, false, progress));
      return std::move(traced.picture);
    }
    QRY_TRY_ASSIGN(auto picture, renderer_->render(world, view, settings));
    if (progress.cancelled()) return fail(ErrorCode::cancelled, "stopped");
    return picture;
  }

  const RenderArguments& parsed_;
  std::unique_ptr<engine::Device> device_;
  std::unique_ptr<engine::Renderer> renderer_;
  std::unique_ptr<engine::PathTracer> tracer_;
  io::DeferredSync deferred_sync_;
  const bool several_;
  std::string reported_;  // the home that was printed last
};

}  // namespace

int run_render(const CommandArguments& words) {
  RenderArguments parsed;
  Arguments arguments("render", "Make pictures of worlds, meshes and other files, without a window.",
                      "  quarry render castle.vox -o castle.png\n"
                      "  quarry render bunny.obj -o bunny.png --resolution 512 --size 1920x1080\n"
                      "  quarry render city.quarry -o night.png --spp 512 --sun 200,-20 --exposure 3\n"
                      "  quarry render models/*.vox -o pictures --background none --ground\n"
                      "  quarry render world.quarry -o 'turn/{stem}-{part}.png' --turntable 72\n"
                      "  quarry render world.quarry -o probes.png --view probe_depth\n"
                      "  quarry render world.quarry -o gate.png --camera 40,30,120 --target 0,20,0 --fov 60\n");
  arguments.texts("input", parsed.inputs, "IN...", "Files, directories, patterns, @lists", true);
  arguments.text("-o,--output", parsed.output, "OUT",
                 "Picture (.png, .exr), directory, or template with {stem}, {dir}, {index}, {part}: the frame. One "
                 "that is there is replaced",
                 true);
  arguments.text("--to", parsed.to, "FORMAT", "Format of the pictures in a directory: png or exr (png)");
  arguments.integer("--turntable", parsed.turntable, "N", "N frames once round the world", 1, 100000);
  parsed.picture.add_to(arguments);
  arguments.flag("--layers", parsed.layers, "EXR: depth, albedo and normals, too");
  arguments.text("--device", parsed.device, "NAME", "Part of the Vulkan device's name (best there is)");
  arguments.text("--memory", parsed.memory, "SIZE",
                 "What a world on the host may take: 512M, 2G. A .quarry that would take more is drawn from the parts "
                 "that rays come to, as many as fit at a time (three quarters of what is free)");
  arguments.text("--gpu-memory", parsed.gpu_memory, "SIZE",
                 "The same for a world in a CUDA device's memory (all of it)");
  parsed.sharing.add_to(arguments,
                        "Whose memory has the world: host, device: a CUDA device's, or auto: the device's if Vulkan "
                        "draws from it and the file is a .quarry that fits; emulated: host threads stand in for the "
                        "device, to test without a GPU (auto)");
  arguments.flag("--validation", parsed.validation,
                 "Run under the Vulkan validation layers; their errors fail the command");
  arguments.flag("--json", parsed.json, "Print one JSON document about what was done");
  parsed.load.add_to(arguments);
  if (const auto code = arguments.parse(words)) return *code;
  if (const auto code = parsed.load.check(arguments)) return *code;
  if (const auto code = parsed.sharing.check(arguments)) return *code;
  if (const auto code = arguments.check_name("--to", parsed.to, {"png", "exr"})) return *code;
  if (const auto code = arguments.check_bytes("--memory", parsed.memory, parsed.memory_bytes)) return *code;
  if (const auto code = arguments.check_bytes("--gpu-memory", parsed.gpu_memory, parsed.gpu_memory_bytes)) return *code;
  if (parsed.memory_bytes == 0) parsed.memory_bytes = default_memory_limit();
  if (parsed.memory_bytes == 0) parsed.memory_bytes = UINT64_MAX;  // the system does not say what is free
  if (const auto code = parsed.picture.check(arguments)) return *code;
  const auto inputs = expand_inputs(parsed.inputs);
  if (!inputs) return failed("", inputs.error());
  const auto jobs = plan(parsed, *inputs);
  if (!jobs) {
    if (jobs.error().code == ErrorCode::bad_usage || jobs.error().code == ErrorCode::invalid_argument)
      return arguments.wrong(jobs.error().message);
    return failed("", jobs.error());
  }
  for (const Job& job : *jobs)
    for (const fs::path& output : job.outputs)
      if (is_exr(output) && !engine::can_write_exr()) {
        say_error(shown(output),
                  "this build has no OpenEXR (Debian: libopenexr-dev, then configure again); write a .png");
        return kExitFailed;
      }

  // The device is opened before the long work of reading, so that its errors come first.
  Batch batch(parsed, jobs->size() != 1 || jobs->front().outputs.size() != 1);
  if (auto opened = batch.open_device(); !opened) return failed("", opened.error());
  nlohmann::json report = nlohmann::json::array();
  size_t failures = 0;
  int last_code = kExitDone;
  for (const Job& job : *jobs) {
    const auto done = batch.run(job, report);
    if (done) continue;
    ++failures;
    last_code = failed(job.input, done.error());
    report.push_back({{"input", shown(job.input)}, {"ok", false}, {"error", done.error().message}});
    if (last_code == kExitCancelled) break;
  }
  if (parsed.json) {
    const bool single = report.size() == 1;
    if (!single || failures == 0)
      fmt::print("{}\n", (single ? report[0] : report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  if (const auto settled = batch.settle(); !settled) {
    say_error("", settled.error());
    if (last_code == kExitDone) return kExitFailed;
  }
  if (const uint32_t errors = batch.validation_errors(); errors > 0) {
    say_error("", fmt::format("the validation layers report {} errors", errors));
    return kExitFailed;
  }
  if (last_code == kExitCancelled || failures == 0) return last_code;
  if (jobs->size() == 1) return last_code;
  say_error("", fmt::format("{} of {} inputs failed", failures, jobs->size()));
  return failures < jobs->size() ? kExitSomeFailed : kExitFailed;
}

}  // namespace quarry::app
