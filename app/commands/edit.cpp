// SPDX-License-Identifier: Apache-2.0
// edit.cpp - `quarry edit`: opens the window, and runs frames until the user or the script is done.
#include <fmt/format.h>
#include <malloc.h>

#include <cstdlib>

#include "app/batch/tasks.hpp"
#include "app/commands/sharing_option.hpp"
#include "app/console/arguments.hpp"
#include "app/console/load.hpp"
#include "app/console/terminal.hpp"
#include "app/editor/panels/editor.hpp"
#include "app/editor/panels/script_runner.hpp"
#include "app/editor/window/vulkan_prototypes.hpp"

namespace quarry::app {
namespace {

constexpr uint64_t kPageShare = 4;  // of --memory, for pages of a document that is on a device in parts

// Each thread, the driver's too, has a heap of its own, of whose free end the C library keeps up to 64 MB: twice the
// largest block that was ever freed. A window that is open for hours keeps little: a large block is a mapping of its
// own, which goes when it is freed, and so does a heap's end.
constexpr int kMappedBytes = 1 << 20, kKeptBytes = 2 << 20;

struct EditArguments {
  std::string file, script, screenshot, size = "1440x900", device, memory, gpu_memory, history_memory;
  SharingOption sharing;
  int64_t frames = 0;
  bool validation = false;
};

int stop(const Error& error) {
  say_error("edit", error);
  return exit_code_of(error);
}

// Runs frames until the end. A screenshot requested on the command line is taken when everything else is done and the
// picture is whole.
Result<void> run(Editor& editor, const EditArguments& parsed, ScriptRunner* script) {
  int64_t frames = 0;
  bool pictured = parsed.screenshot.empty();
  while (true) {
    if (interrupt_flag().load()) return fail(ErrorCode::cancelled, "interrupted; no edit is lost");
    const double idle = editor.unattended || (script && !script->finished()) ? 0 : editor.idle_seconds();
    if (idle > 0) {
      editor.window.wait(idle);
      if (editor.window.events().empty() && !editor.due()) continue;
    } else {
      editor.window.poll();
    }
    if (script) QRY_TRY(script->before_frame(editor));
    const bool last = parsed.frames > 0 ? frames + 1 >= parsed.frames : script && script->finished();
    const bool for_script = script && script->wants_screenshot(editor);
    const bool for_user = !for_script && !pictured && (last || editor.quit) && editor.settled();
    if (editor.quit && pictured && !for_script) return {};
    QRY_TRY(editor.frame(for_script || for_user));
    ++frames;
    if (script) QRY_TRY(script->after_frame(editor, for_script));
    if (for_user) {
      QRY_TRY(write_screenshot(editor, parsed.screenshot));
      pictured = true;
    }
    if (parsed.frames > 0 && frames >= parsed.frames && pictured) return {};
    // A script without `quit` leaves the window to the user. If no user is expected, the program ends.
    if (script && script->finished()) {
      if (editor.quit && pictured) return {};
      if (parsed.frames == 0 && !parsed.screenshot.empty() && pictured) return {};
      if (parsed.frames == 0 && parsed.screenshot.empty()) {
        editor.unattended = false;
        editor.window.ignore_user(false);
      }
    }
  }
}

}  // namespace

int run_edit(const CommandArguments& words) {
  EditArguments parsed;
  LoadOptions load;
  Arguments arguments("edit", "Open the voxel editor.",
                      "  quarry edit\n  quarry edit castle.quarry\n  quarry edit castle.vox\n"
                      "  xvfb-run quarry edit world.quarry --script tour.txt --screenshot last.png\n");
  arguments.text("file", parsed.file, "FILE", "World or any readable file; without one a new world");
  arguments.text("--size", parsed.size, "WxH", "Size of the window (1440x900)");
  arguments.text("--device", parsed.device, "NAME", "Part of the Vulkan device's name (best there is)");
  parsed.sharing.add_to(
      arguments,
      "Whose memory has the world: host, device: a CUDA device's, which makes the edits, or auto: the "
      "device's if Vulkan draws from it and the document shows one volume, at the origin; emulated: "
      "host threads stand in for the device, to test without a GPU (auto)");
  arguments.text(
      "--memory", parsed.memory, "SIZE",
      "Memory of the program, such as 8G. A .quarry on the host that would take more is edited from its "
      "file; other documents must fit. Of a document that is on a device in parts a quarter of it keeps pages "
      "that were read (three quarters of what is free)");
  arguments.text("--gpu-memory", parsed.gpu_memory, "SIZE",
                 "What a document may take of a device's memory, such as 2G. A .quarry that would take more is edited "
                 "from its file: what edits and pictures need is there (all of it)");
  arguments.text("--history-memory", parsed.history_memory, "SIZE",
                 "Memory for undo and redo, such as 512M; steps that do not fit are read from the file (no limit)");
  arguments.integer("--frames", parsed.frames, "N", "End after so many frames", 0, 1 << 30);
  arguments.text("--script", parsed.script, "FILE", "Carry out the commands in FILE (app/README.md lists them)");
  arguments.text("--screenshot", parsed.screenshot, "PNG", "Picture of the window at the end");
  arguments.flag("--validation", parsed.validation,
                 "Run under the Vulkan validation layers; their errors fail the command");
  if (const auto code = arguments.parse(words)) return *code;
  if (const auto code = parsed.sharing.check(arguments)) return *code;
  uint32_t width = 0, height = 0;
  if (!parse_size(parsed.size, width, height) || width < 640 || height < 400)
    return arguments.wrong(fmt::format("--size '{}' is not WIDTHxHEIGHT, at least 640x400.", parsed.size));

  uint64_t history_bytes = 0;  // no limit
  if (const auto code = arguments.check_bytes("--history-memory", parsed.history_memory, history_bytes)) return *code;
  uint64_t memory_bytes = default_memory_limit();
  if (const auto code = arguments.check_bytes("--memory", parsed.memory, memory_bytes)) return *code;
  const MemoryBudget memory(memory_bytes, "--memory");
  uint64_t gpu_memory_bytes = UINT64_MAX;
  if (const auto code = arguments.check_bytes("--gpu-memory", parsed.gpu_memory, gpu_memory_bytes)) return *code;

  std::vector<ScriptCommand> commands;
  if (!parsed.script.empty()) {
    auto read = read_script(parsed.script);
    if (!read) {
      say_error("", read.error());
      return exit_code_of(read.error());
    }
    commands = std::move(*read);
  }
  mallopt(M_MMAP_THRESHOLD, kMappedBytes);
  mallopt(M_TRIM_THRESHOLD, kKeptBytes);
  auto window = Window::create(int(width), int(height), "Quarry");
  if (!window) return stop(window.error());

  engine::DeviceOptions options;
  options.prefer = parsed.device;
  options.instance_extensions = Window::instance_extensions();
  options.want_swapchain = true;
  options.validation = parsed.validation;
  if (parsed.validation)
    options.log = [](int severity, const char* message) {
      if (severity > 0) fmt::print(stderr, "quarry: validation: {}\n", message);
    };
  auto device = engine::Device::create(options);
  if (!device) return stop(device.error());
  if (auto loaded = load_vulkan_prototypes((*device)->get_instance_proc_addr(), (*device)->instance()); !loaded)
    return stop(loaded.error());

  int code = kExitDone;
  {
    Editor editor(**window, **device, parsed.sharing.mode, parsed.sharing.home, gpu_memory_bytes,
                  memory_bytes / kPageShare, recovery_dir());
    editor.session.set_history_budget(history_bytes);
    editor.budget = &memory;
    editor.unattended = !commands.empty() || parsed.frames > 0 || !parsed.screenshot.empty();
    (*window)->ignore_user(editor.unattended);
    if (auto ready = editor.set_up(); !ready) return stop(ready.error());
    if (parsed.file.empty()) editor.start_new();
    else if (!editor.open(parsed.file)) return kExitFailed;
    if (!editor.session.has_document()) return kExitFailed;
    if (!editor.unattended) {
      std::vector<std::pair<std::filesystem::path, Error>> damaged;
      editor.questions.recoverable = recoverable_files(recovery_dir(), &damaged);
      for (const auto& [file, error] : damaged)
        say_warning(shown(file),
                    "unsaved work that was left here cannot be opened: " + with_salvage_hint(file, error).message);
      for (const RecoveryFile& file : editor.questions.recoverable)
        for (const std::string& warning : file.warnings) say_warning(shown(file.file), warning);
    }
    ScriptRunner script(std::move(commands));
    if (auto done = run(editor, parsed, parsed.script.empty() ? nullptr : &script); !done) code = stop(done.error());
  }
  if (const uint32_t errors = (*device)->validation_errors(); errors > 0 && code == kExitDone) {
    say_error("edit", fmt::format("the validation layers report {} errors", errors));
    code = kExitFailed;
  }
  return code;
}

}  // namespace quarry::app
