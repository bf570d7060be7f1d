// SPDX-License-Identifier: Apache-2.0
// doctor.cpp - `quarry doctor`: says in sentences what this machine has, and what each missing part costs. It ends with
// 1 only if nothing can be rendered. For every other missing part Quarry takes another way by itself.
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/console/arguments.hpp"
#include "app/console/terminal.hpp"
#include "base/parallel.hpp"
#include "engine/home/choice.hpp"
#include "engine/sharing/buffer.hpp"
#include "hashgrid/executor.hpp"

namespace quarry::app {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

// `lack`: something is missing; the text says what that costs.
enum class State : uint8_t { ok, lack, fatal };

const char* name_of(State state) {
  switch (state) {
    case State::ok: return "ok";
    case State::lack: return "lack";
    case State::fatal: return "fatal";
  }
  return "";
}

// One line of the report.
struct Finding {
  std::string topic;
  State state;
  std::string text;
};

class Report {
 public:
  void ok(const char* topic, std::string text) { findings_.push_back({topic, State::ok, std::move(text)}); }
  void lack(const char* topic, std::string text) { findings_.push_back({topic, State::lack, std::move(text)}); }
  void fatal(const char* topic, std::string text) { findings_.push_back({topic, State::fatal, std::move(text)}); }
  const std::vector<Finding>& findings() const { return findings_; }

 private:
  std::vector<Finding> findings_;
};

std::string machine_text() {
  std::string processor = "unknown processor";
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);)
    if (line.starts_with("model name")) {
      processor = line.substr(line.find(':') + 2);
      break;
    }
  const auto bytes = uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGE_SIZE));
  return fmt::format("{}, {} threads for Quarry, {} of memory", processor, thread_count(), bytes_text(bytes));
}

void probe_cuda(Report& report) {
  if (!QRY_WITH_CUDA) {
    report.lack("cuda",
                "this build has no CUDA: host threads build the hash grid, and Vulkan reads their memory. "
                "Building with a CUDA toolkit "
                "(nvcc on the PATH) makes bulk work on large worlds faster; nothing else is lost.");
    return;
  }
  const auto executor = hashgrid::make_cuda_executor();
  if (executor) report.ok("cuda", fmt::format("device 0 with {} multiprocessors", (*executor)->parallelism()));
  else report.lack("cuda", executor.error().message + "; host threads build the hash grid instead.");
}

std::string device_text(const engine::DeviceInfo& info) {
  return fmt::format("{} (Vulkan {}.{}, {}{})", info.name, VK_API_VERSION_MAJOR(info.api_version),
                     VK_API_VERSION_MINOR(info.api_version), info.driver,
                     info.type == VK_PHYSICAL_DEVICE_TYPE_CPU ? ", software" : "");
}

bool has_validation_layer(const engine::Device& device) {
  const auto enumerate = reinterpret_cast<PFN_vkEnumerateInstanceLayerProperties>(
      device.get_instance_proc_addr()(VK_NULL_HANDLE, "vkEnumerateInstanceLayerProperties"));
  uint32_t count = 0;
  if (!enumerate || enumerate(&count, nullptr) != VK_SUCCESS) return false;
  std::vector<VkLayerProperties> layers(count);
  if (enumerate(&count, layers.data()) < 0) return false;
  for (const VkLayerProperties& layer : layers)
    if (std::string_view(layer.layerName) == "VK_LAYER_KHRONOS_validation") return true;
  return false;
}

// Where worlds can be at home: the same question, and the same answers, as of `quarry render` and the C interface.
void probe_homes(Report& report, engine::Device* device) {
  const auto memory = [&](engine::Home home) -> Result<engine::HomeMemory> {
    QRY_TRY(engine::may_be_on_device(home));
    return engine::home_memory(home, device, engine::SharingMode::automatic);
  };
  const auto chosen = memory(engine::Home::automatic);
  if (chosen) {
    report.ok("home", chosen->reason +
                          ": `quarry render` draws .quarry files from its memory, and through the C interface edits, "
                          "undo, lists and rays are made there; other commands and the editor keep worlds on the "
                          "host");
    return;
  }
  const auto asked = memory(engine::Home::device);
  if (asked)
    report.lack("home", fmt::format("on the host, unless a device is asked for (`quarry render --home device`, "
                                    "QRY_HOME_DEVICE): {}{}.",
                                    chosen.error().message, device ? "; then a picture needs a copy" : ""));
  else
    report.lack("home", fmt::format("on the host only: {}; `quarry render --home device` and QRY_HOME_DEVICE are "
                                    "refused. Other commands and the editor keep worlds on the host anyway.",
                                    chosen.error().message));
}

// Returns the device that draws; null: there is none.
std::unique_ptr<engine::Device> probe_vulkan(Report& report) {
  const auto devices = engine::list_devices();
  if (!devices) {
    report.fatal("vulkan", devices.error().message +
                               ". Without it nothing can be rendered; convert, info and generate still work.");
    return nullptr;
  }
  size_t usable = 0;
  for (const engine::DeviceInfo& info : *devices) {
    if (info.missing.empty()) {
      ++usable;
      report.ok("vulkan", device_text(info));
    } else {
      report.lack("vulkan",
                  fmt::format("{} is not usable: it lacks {}.", device_text(info), fmt::join(info.missing, ", ")));
    }
  }
  if (usable == 0) {
    report.fatal(
        "vulkan",
        "no usable Vulkan device: nothing can be rendered. Install a GPU's driver, or mesa-vulkan-drivers for software "
        "rendering; convert, info and generate still work.");
    return nullptr;
  }
  auto device = engine::Device::create();
  if (!device) {
    report.fatal("vulkan", device.error().message);
    return nullptr;
  }
  const engine::DeviceInfo& info = (*device)->info();
  if (info.type == VK_PHYSICAL_DEVICE_TYPE_CPU)
    report.lack("device",
                fmt::format("{} is what `quarry render` uses: a picture takes seconds where a GPU takes milliseconds.",
                            info.name));
  else report.ok("device", fmt::format("{} is what `quarry render` uses", info.name));
  const auto choice = engine::choose_sharing(**device);
  if (!choice) report.fatal("sharing", choice.error().message);
  else if (choice->mode == engine::SharingMode::staged)
    report.lack("sharing", fmt::format("{}: {}; every edit is copied to the device.", engine::to_string(choice->mode),
                                       choice->reason));
  else if (choice->mode == engine::SharingMode::zero_copy)
    report.ok("sharing", fmt::format("{}: {}; a world at home on the host is copied", engine::to_string(choice->mode),
                                     choice->reason));
  else report.ok("sharing", fmt::format("{}: {}", engine::to_string(choice->mode), choice->reason));
  if (has_validation_layer(**device))
    report.ok("validation", "VK_LAYER_KHRONOS_validation is there for `--validation`");
  else report.lack("validation", "no validation layers: `--validation` is refused. Package vulkan-validationlayers.");
  return std::move(*device);
}

void probe_display(Report& report) {
  const char* x11 = std::getenv("DISPLAY");
  const char* wayland = std::getenv("WAYLAND_DISPLAY");
  if (x11 && *x11) report.ok("display", fmt::format("X11 at {}", x11));
  else if (wayland && *wayland) report.ok("display", fmt::format("Wayland at {}", wayland));
  else
    report.lack("display",
                "no display (DISPLAY and WAYLAND_DISPLAY are not set): `quarry edit` has no window to open. `xvfb-run "
                "quarry edit` "
                "gives it an invisible one; all other commands need none.");
}

void probe_mesh_reader(Report& report) {
  constexpr const char* kName = "quarry-mesh-reader";
  std::vector<fs::path> places;
  if (const char* given = std::getenv("QUARRY_MESH_READER")) places.emplace_back(given);
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error).parent_path();
  places.push_back(own / kName);
  places.push_back(own / "../libexec/quarry" / kName);
  places.push_back(own / "../libexec" / kName);
  for (const fs::path& place : places)
    if (access(place.c_str(), X_OK) == 0) {
      report.ok("meshes", "read by " + shown(place.lexically_normal()));
      return;
    }
  report.lack("meshes", fmt::format("{} is not beside this program, nor in its libexec, nor where QUARRY_MESH_READER "
                                    "says: OBJ, glTF, PLY, STL and "
                                    "other meshes cannot be read.",
                                    kName));
}

}  // namespace

int run_doctor(const CommandArguments& words) {
  bool as_json = false;
  Arguments arguments("doctor", "Say what this machine has, and what each lack costs.",
                      "  quarry doctor\n  quarry doctor --json\n");
  arguments.flag("--json", as_json, "Print one JSON document");
  if (const auto code = arguments.parse(words)) return *code;

  Report report;
  utsname system{};
  uname(&system);
  report.ok("quarry", fmt::format("{}{}", QRY_VERSION, QRY_WITH_CUDA ? " with CUDA" : ""));
  report.ok("machine", fmt::format("{}; {} {}", machine_text(), system.sysname, system.release));
  probe_cuda(report);
  const auto device = probe_vulkan(report);
  probe_homes(report, device.get());
  probe_display(report);
  probe_mesh_reader(report);

  bool fatal = false;
  json out = json::array();
  for (const Finding& finding : report.findings()) {
    fatal |= finding.state == State::fatal;
    const char* mark = finding.state == State::fatal ? "STOP" : name_of(finding.state);
    if (!as_json) fmt::print("{:<4}  {:<11} {}\n", mark, finding.topic, finding.text);
    out.push_back({{"topic", finding.topic}, {"state", name_of(finding.state)}, {"text", finding.text}});
  }
  const int code = fatal ? kExitFailed : kExitDone;
  if (as_json)
    fmt::print("{}\n",
               json{{"can_render", !fatal}, {"findings", out}}.dump(2, ' ', false, json::error_handler_t::replace));
  return code;
}

}  // namespace quarry::app
