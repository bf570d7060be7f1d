// SPDX-License-Identifier: Apache-2.0
// input_test.cpp - input reaches Dear ImGui, keys and viewport in order and one press at a time, however much of it
// comes at once. Without that, a slider that was pressed, dragged and released during one long frame stayed where it
// was pressed.
#include "app/editor/window/input_queue.hpp"

#include <GLFW/glfw3.h>
#include <imgui.h>

#include <catch2/catch.hpp>
#include <random>
#include <string>

namespace input_test {

using namespace quarry;
using namespace quarry::app;

namespace {

using Type = InputEvent::Type;

InputEvent move(double x, double y) {
  InputEvent event;
  event.x = x, event.y = y;
  return event;
}
InputEvent button(bool down, int code = 0) {
  InputEvent event;
  event.type = Type::button, event.code = code, event.down = down;
  return event;
}
InputEvent key(int code, bool down, int modifiers = 0) {
  InputEvent event;
  event.type = Type::key, event.code = code, event.down = down, event.modifiers = modifiers;
  return event;
}
InputEvent text(char c) {
  InputEvent event;
  event.type = Type::text, event.code = static_cast<unsigned char>(c);
  return event;
}
InputEvent scroll(double steps) {
  InputEvent event;
  event.type = Type::scroll, event.y = steps;
  return event;
}

bool same(const InputEvent& a, const InputEvent& b) {
  return a.type == b.type && a.x == b.x && a.y == b.y && a.code == b.code && a.down == b.down &&
         a.modifiers == b.modifiers && a.file == b.file;
}

// A small panel without a screen.
class Panel {
 public:
  Panel() : context_(ImGui::CreateContext()) {
    ImGui::SetCurrentContext(context_);
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.DisplaySize = {400, 300};
    io.KeyMap[ImGuiKey_Backspace] = GLFW_KEY_BACKSPACE;
    io.KeyMap[ImGuiKey_LeftArrow] = GLFW_KEY_LEFT;
    unsigned char* pixels = nullptr;
    int width = 0, height = 0;
    io.Fonts->GetTexDataAsRGBA32(&pixels, &width, &height);
  }
  ~Panel() { ImGui::DestroyContext(context_); }

  void frame(std::vector<InputEvent> piece) {
    ImGui::SetCurrentContext(context_);
    ImGuiIO& io = ImGui::GetIO();
    io.DeltaTime = 1e-4f;
    state_.give(io, piece);
    ImGui::NewFrame();
    ImGui::SetNextWindowPos({0, 0});
    ImGui::SetNextWindowSize({400, 300});
    ImGui::Begin("panel", nullptr, ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove);
    ImGui::SetNextItemWidth(200);
    ImGui::SetCursorPos({20, 20});
    ImGui::SliderFloat("##slider", &slider, 0, 1);
    ImGui::SetCursorPos({20, 60});
    clicks += ImGui::Button("click", {100, 30});
    ImGui::SetCursorPos({20, 110});
    ImGui::SetNextItemWidth(200);
    ImGui::InputText("##text", words, sizeof words);
    ImGui::SetCursorPos({20, 150});
    ImGui::Checkbox("check", &checked);
    ImGui::SetCursorPos({20, 190});
    ImGui::BeginChild("list", {100, 80});
    for (int i = 0; i < 40; ++i) ImGui::Text("%d", i);
    scrolled = ImGui::GetScrollY();
    ImGui::EndChild();
    ImGui::End();
    for (const int code : {GLFW_KEY_F1, GLFW_KEY_BACKSPACE})
      pressed += ImGui::IsKeyPressed(code, false), released += ImGui::IsKeyReleased(code);
    ctrl = io.KeyCtrl;
    ImGui::EndFrame();
  }
  void all(std::deque<InputEvent> events) {
    while (!events.empty()) frame(take_piece(events));
    frame({});
  }

  float slider = 0.5f, scrolled = 0;
  int clicks = 0, pressed = 0, released = 0;
  bool checked = false, ctrl = false;
  char words[64] = "";

 private:
  ImGuiContext* context_;
  InputState state_;
};

std::deque<InputEvent> at(double x, double y, std::deque<InputEvent> more = {}) {
  more.push_front(move(x, y));
  return more;
}

}  // namespace

TEST_CASE("editor input: a press, a way and a release that come at once draw the slider along") {
  Panel slow, quick;
  const std::deque<InputEvent> drag{move(120, 30), button(true),  move(100, 30),
                                    move(150, 31), move(180, 29), button(false)};
  for (const InputEvent& event : drag) slow.frame({event});
  quick.all(drag);
  CHECK(slow.slider > 0.7f);
  CHECK(quick.slider == slow.slider);
}

TEST_CASE("editor input: a click that comes at once is one click, and two are two") {
  Panel panel;
  panel.all(at(60, 75, {button(true), button(false)}));
  CHECK(panel.clicks == 1);
  panel.all({button(true), button(false), move(61, 75), button(true), button(false)});
  CHECK(panel.clicks == 3);
}

TEST_CASE("editor input: a key that is pressed and let go of at once is seen to do both") {
  Panel panel;
  panel.all({key(GLFW_KEY_F1, true), key(GLFW_KEY_F1, false), key(GLFW_KEY_F1, true), key(GLFW_KEY_F1, false)});
  CHECK(panel.pressed == 2);
  CHECK(panel.released == 2);
}

TEST_CASE("editor input: letters and keys keep their order") {
  Panel panel;
  panel.all(at(60, 118,
               {button(true), button(false), text('a'), text('b'), key(GLFW_KEY_BACKSPACE, true), text('c'),
                key(GLFW_KEY_BACKSPACE, false), text('d')}));
  CHECK(std::string(panel.words) == "acd");
}

TEST_CASE(
    "editor input: a letter typed with a key is there when the key is let go of before the next frame, and "
    "Ctrl is held as long as it is down") {
  Panel panel;
  panel.all({key(GLFW_KEY_LEFT_CONTROL, true)});
  CHECK(panel.ctrl);  // its own press does not report it yet, its release still does
  panel.all({key(GLFW_KEY_Z, true, GLFW_MOD_CONTROL), key(GLFW_KEY_Z, false, GLFW_MOD_CONTROL)});
  CHECK(panel.ctrl);
  panel.all({key(GLFW_KEY_LEFT_CONTROL, false, GLFW_MOD_CONTROL)});
  CHECK_FALSE(panel.ctrl);
}

TEST_CASE("editor input: no event is lost or changes places, and a piece holds one press at most") {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::deque<InputEvent> events;
    for (uint32_t i = 0, count = uint32_t(random() % 40); i < count; ++i) {
      switch (random() % 8) {
        case 0: events.push_back(button(random() % 2, int(random() % 3))); break;
        case 1: events.push_back(key(int(random() % 300), random() % 2)); break;
        case 2: events.push_back(text(char('a' + random() % 26))); break;
        case 3: events.push_back(scroll(double(random() % 5) - 2)); break;
        case 4: {
          InputEvent event;
          event.type = random() % 3 == 0 ? Type::drop : random() % 2 ? Type::close : Type::redraw;
          event.file = event.type == Type::drop ? "a.vox" : "";
          events.push_back(event);
          break;
        }
        default: events.push_back(move(double(random() % 400), double(random() % 300)));
      }
    }
    std::deque<InputEvent> left = events;
    size_t next = 0;
    while (!left.empty()) {
      const std::vector<InputEvent> piece = take_piece(left);
      REQUIRE(!piece.empty());
      int presses = 0;
      for (const InputEvent& event : piece) {
        REQUIRE(next < events.size());
        REQUIRE(same(event, events[next++]));
        CHECK(event.type == piece.front().type);
        presses += event.type == Type::button || event.type == Type::key || event.type == Type::scroll ||
                   event.type == Type::drop || event.type == Type::close;
      }
      CHECK(presses <= 1);
      // Moves and letters do not wait for each other.
      if (!left.empty() && left.front().type == piece.back().type) CHECK(presses == 1);
    }
    CHECK(next == events.size());
    CHECK(take_piece(left).empty());
  }
}

TEST_CASE("editor input: whatever comes at once does what it does event by event") {
  std::mt19937 random(17);
  const double places[][2] = {{30, 30}, {120, 30}, {200, 30}, {60, 75}, {100, 118}, {28, 160}, {60, 220}, {350, 280}};
  size_t drawn = 0, typed = 0, clicked = 0;
  for (int round = 0; round < 200; ++round) {
    Panel slow, quick;
    std::deque<InputEvent> events;
    bool down = false;
    for (int i = 0; i < 40; ++i) {
      const auto& place = places[random() % std::size(places)];
      switch (random() % 6) {
        case 0:
        case 1: events.push_back(button(down = !down)); break;
        case 2: events.push_back(text(char('a' + random() % 26))); break;
        case 3:
          events.push_back(key(GLFW_KEY_BACKSPACE, true));
          events.push_back(key(GLFW_KEY_BACKSPACE, false));
          break;
        case 4: events.push_back(scroll(random() % 2 ? 1 : -1)); break;
        default: events.push_back(move(place[0], place[1]));
      }
    }
    for (const InputEvent& event : events) slow.frame({event});
    slow.frame({});
    quick.all(events);
    INFO("round " << round);
    CHECK(quick.slider == slow.slider);
    CHECK(quick.clicks == slow.clicks);
    CHECK(quick.checked == slow.checked);
    CHECK(quick.scrolled == slow.scrolled);
    CHECK(quick.pressed == slow.pressed);
    CHECK(std::string(quick.words) == slow.words);
    drawn += slow.slider != 0.5f, typed += slow.words[0] != 0, clicked += slow.clicks > 0;
  }
  CHECK(drawn > 10);
  CHECK(typed > 5);
  CHECK(clicked > 5);
}

}  // namespace input_test
