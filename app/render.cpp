// render.cpp - `quarry render`: a PNG picture of any readable file, off-screen.
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "app/editor/camera.hpp"
#include "app/load.hpp"
#include "app/output_file.hpp"
#include "app/terminal.hpp"
#include "engine/picture_file.hpp"
#include "engine/renderer.hpp"
#include "voxel/world.hpp"

namespace quarry::app {
namespace {

struct RenderArguments {
  std::string input, output, size = "1280x720", view = "shaded", camera, target, device, sharing = "auto";
  double fov = 45, azimuth = 35, elevation = 22, exposure = 1;
  int64_t samples = 2, shadow_rays = 1, ambient_rays = 8, ambient_reach = 64, camera_number = -1;
  bool validation = false, json = false;
  LoadOptions load;
};

const std::vector<std::string> kSharingNames{"auto", "zero-copy", "host-import", "staged"};

engine::SharingMode sharing_mode(const std::string& name) {
  if (name == "zero-copy") return engine::SharingMode::zero_copy;
  if (name == "host-import") return engine::SharingMode::host_import;
  return name == "staged" ? engine::SharingMode::staged : engine::SharingMode::automatic;
}

// --camera and --target, or the scene's own camera, or a view of the whole box.
engine::View make_view(const RenderArguments& wanted, const double camera[3], const double target[3], const Scene& scene, const Box3& bounds,
                       uint32_t width, uint32_t height) {
  double position[3], at[3];
  double fov = wanted.fov;
  OrbitCamera orbit;
  orbit.azimuth = wanted.azimuth;
  orbit.elevation = wanted.elevation;
  orbit.vertical_fov = fov;
  orbit.frame(bounds, static_cast<double>(width) / height);
  orbit.position(position);
  std::copy_n(orbit.target, 3, at);
  if (wanted.camera_number >= 0) {
    const Camera& own = scene.cameras[static_cast<size_t>(wanted.camera_number)];
    std::copy_n(own.position, 3, position);
    std::copy_n(own.target, 3, at);
    fov = own.vertical_fov_degrees;
  }
  if (!wanted.camera.empty()) std::copy_n(camera, 3, position);
  if (!wanted.target.empty()) std::copy_n(target, 3, at);
  return engine::look_at(position, at, fov, width, height);
}

}  // namespace

int run_render(const CommandArguments& words) {
  RenderArguments wanted;
  Arguments arguments("render", "Make a PNG picture of a world, without a window.",
                      "  quarry render castle.vox -o castle.png\n  quarry render bunny.obj -o bunny.png --resolution 512 --size 1920x1080\n"
                      "  quarry render world.quarry -o probes.png --view probe_depth\n"
                      "  quarry render world.quarry -o gate.png --camera 40,30,120 --target 0,20,0 --fov 60\n");
  arguments.text("input", wanted.input, "IN", "File to read", true);
  arguments.text("-o,--output", wanted.output, "PNG", "Picture to write; one that is there is replaced", true);
  arguments.text("--size", wanted.size, "WxH", "Pixels (1280x720)");
  arguments.text("--view", wanted.view, "NAME", "shaded, albedo, normals, depth, bricks, probe_depth or steps (shaded)");
  arguments.text("--camera", wanted.camera, "X,Y,Z", "Eye, in voxels, y up (a view of everything)");
  arguments.text("--target", wanted.target, "X,Y,Z", "Point looked at (the middle)");
  arguments.integer("--scene-camera", wanted.camera_number, "N", "The scene's own camera with this number, from 0", 0, 1 << 20);
  arguments.real("--fov", wanted.fov, "DEGREES", "Vertical field of view (45)", 1, 170);
  arguments.real("--azimuth", wanted.azimuth, "DEGREES", "Direction of the view of everything (35)", -3600, 3600);
  arguments.real("--elevation", wanted.elevation, "DEGREES", "Height of the view of everything (22)", -89, 89);
  arguments.integer("--samples", wanted.samples, "N", "Samples a side of each pixel: 2 is 4 rays (2)", 1, 16);
  arguments.integer("--ambient-rays", wanted.ambient_rays, "N", "Ambient occlusion rays a sample, 0 for none (8)", 0, 256);
  arguments.integer("--ambient-reach", wanted.ambient_reach, "VOXELS", "Their length (64)", 1, 4096);
  arguments.integer("--shadow-rays", wanted.shadow_rays, "N", "Shadow rays a sample, 0 for none (1)", 0, 64);
  arguments.real("--exposure", wanted.exposure, "FACTOR", "Brightness (1)", 0.001, 1000);
  arguments.text("--device", wanted.device, "NAME", "Part of the Vulkan device's name (best there is)");
  arguments.text("--sharing", wanted.sharing, "MODE", "auto, zero-copy, host-import or staged (auto)");
  arguments.flag("--validation", wanted.validation, "Run under the Vulkan validation layers; their errors fail the command");
  arguments.flag("--json", wanted.json, "Print one JSON document about what was done");
  wanted.load.add_to(arguments);
  if (const auto code = arguments.parse(words)) return *code;
  if (const auto code = wanted.load.check(arguments)) return *code;
  if (const auto code = arguments.check_name("--sharing", wanted.sharing, kSharingNames)) return *code;
  const auto names = engine::debug_view_names();
  if (const auto code = arguments.check_name("--view", wanted.view, {names.begin(), names.end()})) return *code;
  engine::RenderSettings settings;
  if (!parse_size(wanted.size, settings.width, settings.height))
    return arguments.wrong(fmt::format("--size '{}' is not WIDTHxHEIGHT, each from 1 to 16384.", wanted.size));
  double camera[3]{}, target[3]{};
  if (!wanted.camera.empty() && !parse_vector(wanted.camera, camera))
    return arguments.wrong(fmt::format("--camera '{}' is not X,Y,Z.", wanted.camera));
  if (!wanted.target.empty() && !parse_vector(wanted.target, target))
    return arguments.wrong(fmt::format("--target '{}' is not X,Y,Z.", wanted.target));
  if (!wanted.output.ends_with(".png")) return arguments.wrong(fmt::format("-o '{}' does not end in .png.", wanted.output));
  settings.view = *engine::debug_view_from_name(wanted.view);
  settings.samples = static_cast<uint32_t>(wanted.samples);
  settings.shadow_rays = static_cast<uint32_t>(wanted.shadow_rays);
  settings.ambient_rays = static_cast<uint32_t>(wanted.ambient_rays);
  settings.ambient_reach = static_cast<float>(wanted.ambient_reach);
  settings.exposure = static_cast<float>(wanted.exposure);

  if (const auto free = check_output(wanted.output, true); !free) {
    say_error("", free.error());
    return kExitFailed;
  }
  // Errors of the device before the long work of reading.
  engine::DeviceOptions device_options;
  device_options.prefer = wanted.device;
  device_options.validation = wanted.validation;
  if (wanted.validation)
    device_options.log = [](int severity, const char* message) {
      if (severity > 0) fmt::print(stderr, "quarry: validation: {}\n", message);
    };
  const auto device = engine::Device::create(device_options);
  if (!device) {
    say_error("", device.error());
    return exit_code_of(device.error());
  }
  const auto shared = engine::SharedWorld::create(**device, sharing_mode(wanted.sharing));
  if (!shared) {
    say_error("", shared.error());
    return exit_code_of(shared.error());
  }
  auto scene = load_scene(wanted.input, wanted.load);
  if (!scene) return failed(wanted.input, scene.error());
  if (wanted.camera_number >= static_cast<int64_t>(scene->cameras.size()))
    return arguments.wrong(fmt::format("--scene-camera {}: the file has {} cameras.", wanted.camera_number, scene->cameras.size()));
  ProgressLine line(wanted.input);
  auto document = Document::create(std::move(*scene), (*shared)->memory(), line.progress());
  line.clear();
  if (!document) return failed(wanted.input, document.error());
  World& world = document->world();
  const auto renderer = engine::Renderer::create(**device);
  if (!renderer) {
    say_error("", renderer.error());
    return exit_code_of(renderer.error());
  }
  const engine::View view =
      make_view(wanted, camera, target, document->scene(), world.bounds(), settings.width, settings.height);
  const auto start = std::chrono::steady_clock::now();
  const auto picture = (*renderer)->render(**shared, world, document->scene().palette, view, settings);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!picture) return failed(wanted.input, picture.error());
  if (interrupt_flag().load()) return kExitCancelled;
  if (const auto written = engine::write_png(*picture, wanted.output); !written) {
    say_error(wanted.output, written.error());
    return kExitFailed;
  }

  const engine::DeviceInfo& info = (*device)->info();
  if (wanted.json) {
    const nlohmann::json out{{"input", wanted.input}, {"output", wanted.output}, {"width", settings.width}, {"height", settings.height},
                             {"view", wanted.view}, {"device", info.name}, {"driver", info.driver},
                             {"sharing", engine::to_string((*shared)->mode())}, {"sharing_reason", (*shared)->sharing_reason()},
                             {"voxels", world.voxel_count()}, {"bricks", world.brick_count()}, {"seconds", seconds},
                             {"validation_errors", (*device)->validation_errors()}};
    fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("{}: {}x{}, {} voxels in {} bricks, {:.3f} s\n", wanted.output, settings.width, settings.height,
               with_commas(world.voxel_count()), with_commas(world.brick_count()), seconds);
    fmt::print("  device   {}\n  sharing  {}: {}\n", info.name, engine::to_string((*shared)->mode()), (*shared)->sharing_reason());
  }
  if (const uint32_t errors = (*device)->validation_errors(); errors > 0) {
    say_error("", fmt::format("the validation layers report {} errors", errors));
    return kExitFailed;
  }
  return kExitDone;
}

}  // namespace quarry::app
