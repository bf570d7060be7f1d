// SPDX-License-Identifier: Apache-2.0
// script_runner.cpp - carries out a script's commands: as events of mouse and keys where these can do it, else as calls
// of the editor.
#include "app/editor/panels/script_runner.hpp"

#include <GLFW/glfw3.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cmath>
#include <cstdio>

#include "app/editor/panels/actions.hpp"
#include "base/suggest.hpp"
#include "engine/pictures/png_file.hpp"

namespace quarry::app {
namespace {

// A number beyond all integers is also beyond the world. An edit there is refused.
int whole(double number) { return std::isnan(number) ? 0 : int(std::clamp(number, double(INT_MIN), double(INT_MAX))); }

void push_move(Editor& editor, double x, double y) {
  InputEvent event;
  event.x = x, event.y = y;
  editor.window.push(event);
}
void push_button(Editor& editor, int button, bool down, int modifiers = 0) {
  InputEvent event;
  event.type = InputEvent::Type::button;
  event.code = button, event.down = down, event.modifiers = modifiers;
  editor.window.push(event);
}

Result<int> button_of(const std::string& name) {
  if (name == "left") return GLFW_MOUSE_BUTTON_LEFT;
  if (name == "right") return GLFW_MOUSE_BUTTON_RIGHT;
  if (name == "middle") return GLFW_MOUSE_BUTTON_MIDDLE;
  return fail(ErrorCode::bad_usage, fmt::format("'{}' is no mouse button: left, right or middle", name));
}

Result<Mode> mode_of(const std::string& name) {
  if (const auto mode = mode_from_name(name)) return *mode;
  return fail(ErrorCode::bad_usage, fmt::format("'{}' is none of add, remove, paint, replace, fill.{}", name,
                                                did_you_mean(name, {"add", "remove", "paint", "replace", "fill"})));
}

Result<uint8_t> material_of(double number) {
  if (number >= 1 && number <= 255) return uint8_t(number);
  return fail(ErrorCode::bad_usage, fmt::format("{} is no material: 1 to 255", number));
}

}  // namespace

Result<void> write_screenshot(Editor& editor, const std::filesystem::path& file) {
  QRY_TRY_ASSIGN(const auto picture, editor.presenter->take_screenshot());
  return engine::write_png(picture, file);
}

Result<void> ScriptRunner::start_edit(Editor& editor, const ScriptCommand& command) {
  QRY_TRY_ASSIGN(const auto mode, mode_of(command.words[1]));
  QRY_TRY_ASSIGN(const auto material, material_of(command.numbers.back()));
  const std::vector<double>& n = command.numbers;
  Edit edit;
  edit.mode = mode;
  edit.material = material;
  edit.a = edit.b = {whole(n[0]), whole(n[1]), whole(n[2])};
  if (command.words[0] == "sphere") {
    edit.shape = Shape::sphere;
    edit.radius = n[3];
  } else if (command.words[0] == "connected") {
    edit.shape = Shape::connected;
  } else {
    edit.b = {whole(n[3]), whole(n[4]), whole(n[5])};
    edit.shape = command.words[0] == "box" ? Shape::box : Shape::line;
    edit.radius = command.words[0] == "line" ? n[6] : 0;
  }
  const auto changed = editor.session.apply(edit);
  QRY_TRY(changed);
  return {};
}

namespace {

// A whole number of the script's.
Result<uint64_t> counted(double number, double most, const char* of) {
  if (number >= 1 && number <= most && number == std::floor(number)) return uint64_t(number);
  return fail(ErrorCode::bad_usage, fmt::format("{} is no number of {}: 1 to {}", number, of, most));
}

Result<void> change_volume(Editor& editor, const ScriptCommand& command) {
  const std::string& verb = command.words[0];
  if (verb == "combine") {
    const auto kind = boolean_from_name(command.words[1]);
    if (!kind)
      return fail(ErrorCode::bad_usage,
                  fmt::format("'{}' is none of unite, intersect, subtract.{}", command.words[1],
                              did_you_mean(command.words[1], {"unite", "intersect", "subtract"})));
    if (!editor.combine(command.words[2], *kind)) return fail(ErrorCode::io, editor.messages.text);
    return {};
  }
  // As the steps of `quarry convert` have it: layers by faces, parts by corners, unless said.
  const bool steps = verb == "grow" || verb == "erode";
  const double wanted = command.numbers.size() > 1 ? command.numbers[1] : steps ? 6 : 26;
  const auto neighbours = connectivity_from(wanted);
  if (!neighbours) return fail(ErrorCode::bad_usage, fmt::format("{} neighbours: 6, 18 or 26", wanted));
  QRY_TRY_ASSIGN(const uint64_t count, counted(command.numbers[0], steps ? kMostMorphologySteps : 1e15,
                                               steps                  ? "steps"
                                               : verb == "drop_parts" ? "voxels"
                                                                      : "parts"));
  QRY_TRY(editor.session.change(verb == "grow"         ? grow(*neighbours, uint32_t(count))
                                : verb == "erode"      ? erode_by(*neighbours, uint32_t(count))
                                : verb == "drop_parts" ? keep({*neighbours, UINT64_MAX, count})
                                                       : keep({*neighbours, count, 0})));
  return {};
}

}  // namespace

Result<void> ScriptRunner::start(Editor& editor, const ScriptCommand& command) {
  const std::string& verb = command.words[0];
  const std::vector<double>& n = command.numbers;
  const auto word = [&](size_t index) { return index < command.words.size() ? command.words[index] : std::string(); };
  if (verb == "sphere" || verb == "box" || verb == "line" || verb == "connected") return start_edit(editor, command);
  if (verb == "grow" || verb == "erode" || verb == "drop_parts" || verb == "keep_parts" || verb == "combine")
    return change_volume(editor, command);
  if (verb == "undo") return editor.session.undo();
  if (verb == "redo") return editor.session.redo();
  if (verb == "tool") {
    QRY_TRY_ASSIGN(const auto mode, mode_of(word(1)));
    const auto shape = brush_shape_from_name(word(2));
    if (!shape)
      return fail(ErrorCode::bad_usage, fmt::format("'{}' is none of sphere, cube, box, line, connected", word(2)));
    editor.brush.mode = mode;
    editor.brush.shape = *shape;
    if (!n.empty()) {
      if (!(n[0] >= 0 && n[0] <= kLargestBrush) || n[0] != whole(n[0]))
        return fail(ErrorCode::bad_usage,
                    fmt::format("{} is no radius: a whole number from 0 to {}", n[0], kLargestBrush));
      editor.brush.radius = whole(n[0]);
    }
    return {};
  }
  if (verb == "material") {
    QRY_TRY_ASSIGN(const auto material, material_of(n[0]));
    editor.brush.material = material;
    return {};
  }
  if (verb == "view") {
    QRY_TRY_ASSIGN(const auto view, engine::debug_view_from_name(word(1)));
    editor.settings.view = view;
    return {};
  }
  if (verb == "paths") {
    editor.convergence.wanted = uint32_t(std::clamp(whole(n[0]), 0, 1 << 20));
    editor.redraw();
    return {};
  }
  if (verb == "camera") {
    editor.camera.azimuth = n[0];
    editor.camera.elevation = std::clamp(n[1], -89.0, 89.0);
    if (n.size() > 2) editor.camera.distance = std::max(0.5, n[2]);
    return {};
  }
  if (verb == "look") {
    editor.camera.target = {n[0], n[1], n[2]};
    return {};
  }
  if (verb == "frame") editor.frame_all();
  if (verb == "move") push_move(editor, n[0], n[1]);
  if (verb == "click") {
    push_move(editor, n[0], n[1]);
    push_button(editor, GLFW_MOUSE_BUTTON_LEFT, true);
    push_button(editor, GLFW_MOUSE_BUTTON_LEFT, false);
  }
  if (verb == "drag") {
    QRY_TRY_ASSIGN(const auto button, word(5).empty() ? Result<int>(GLFW_MOUSE_BUTTON_LEFT) : button_of(word(5)));
    push_move(editor, n[0], n[1]);
    push_button(editor, button, true);
    constexpr int kSteps = 8;
    for (int i = 1; i <= kSteps; ++i)
      push_move(editor, n[0] + (n[2] - n[0]) * i / kSteps, n[1] + (n[3] - n[1]) * i / kSteps);
    push_button(editor, button, false);
  }
  if (verb == "scroll") {
    InputEvent event;
    event.type = InputEvent::Type::scroll;
    event.y = n[0];
    editor.window.push(event);
  }
  if (verb == "key") {
    QRY_TRY_ASSIGN(const auto chord, key_chord(word(1)));
    InputEvent event;
    event.type = InputEvent::Type::key;
    event.code = chord.key, event.modifiers = chord.modifiers;
    event.down = true;
    editor.window.push(event);
    event.down = false, event.modifiers = 0;
    editor.window.push(event);
  }
  if (verb == "type")
    for (const char c : word(1)) {
      InputEvent event;
      event.type = InputEvent::Type::text;
      event.code = static_cast<unsigned char>(c);
      editor.window.push(event);
    }
  if (verb == "new") editor.start_new();
  if (verb == "open" && !editor.open(word(1))) return fail(ErrorCode::io, editor.messages.text);
  if (verb == "save") {
    if (word(1).empty() && editor.session.file().empty())
      return fail(ErrorCode::bad_usage, "this document has no file yet: save FILE");
    if (!(word(1).empty() ? editor.save() : editor.save_as(word(1)))) return fail(ErrorCode::io, editor.messages.text);
  }
  if (verb == "ask") {
    editor.unattended = false;
    editor.questions.recoverable = recoverable_files(recovery_dir());
  }
  if (verb == "wait") {
    frames_left_ = whole(n[0]);
    wait_until_ = Clock::now();
    if (n.size() > 1)
      wait_until_ += std::chrono::duration_cast<Clock::duration>(Seconds(n[1] > 0 ? std::min(n[1], 3600.0) : 0.0));
  }
  if (verb == "screenshot") screenshot_ = word(1);
  if (verb == "quit") {
    editor.quit = true;
    next_ = commands_.size();
  }
  return {};
}

bool ScriptRunner::done(const Editor& editor) const {
  return editor.window.events().empty() && screenshot_.empty() && frames_left_ <= 0 && Clock::now() >= wait_until_;
}

Result<void> ScriptRunner::before_frame(Editor& editor) {
  if (running_ || next_ >= commands_.size()) return {};
  const ScriptCommand& command = commands_[next_++];
  running_ = true;
  if (auto started = start(editor, command); !started)
    return fail(started.error().code,
                fmt::format("line {}: `{}`: {}", command.line, command.text, started.error().message));
  if (command.words[0] == "quit") running_ = false;
  return {};
}

bool ScriptRunner::wants_screenshot(const Editor& editor) const { return !screenshot_.empty() && editor.settled(); }

Result<void> ScriptRunner::after_frame(Editor& editor, bool took_screenshot) {
  if (!running_) return {};
  const ScriptCommand& command = commands_[next_ - 1];
  if (took_screenshot) {
    const std::filesystem::path file = std::exchange(screenshot_, {});
    if (auto written = write_screenshot(editor, file); !written)
      return fail(written.error().code, fmt::format("line {}: {}", command.line, written.error().message));
  }
  if (frames_left_ > 0) --frames_left_;
  if (!done(editor)) return {};
  running_ = false;
  // A refused edit shows as a message in the window; a script must not go on as if nothing had happened.
  if (editor.messages.is_error)
    return fail(ErrorCode::invalid_argument,
                fmt::format("line {}: `{}`: {}", command.line, command.text, editor.messages.text));
  fmt::print("ok {}: {}\n", command.line, command.text);
  std::fflush(stdout);
  return {};
}

}  // namespace quarry::app
