// SPDX-License-Identifier: Apache-2.0
// stress_test.cpp - the hand-over under load: a world is edited, grows and shrinks while three frames are in flight, in
// every sharing mode. Each frame must show exactly the version that was published for it: nothing older, nothing newer,
// no mixture.
//
// A picture shows a board of bricks. Every version gives some bricks another material or removes them. Every version
// has its own palette, in which a colour tells version and material. So a pixel shows which data its frame has read.
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>

#include "engine/render/offscreen.hpp"
#include "engine/render/ray_marcher.hpp"
#include "engine/vulkan/functions.hpp"
#include "engine/vulkan/timeline.hpp"
#include "find_spirv.h"
#include "hashgrid/pairs/view.hpp"
#include "tests/engine/render/shader_find.hpp"
#include "tests/engine/scene_world.hpp"
#include "tests/engine/test_device.hpp"
#include "tests/test_data.hpp"

namespace stress_test {

using namespace quarry;
using namespace quarry::engine;
using quarry::test::SceneWorld;

namespace {

constexpr uint32_t kSide = 16, kInFlight = 3;  // bricks and pixels a side of the board; frames in flight
constexpr double kDistance = 4000;             // of the eye: rays are nearly parallel

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint32_t kSlower = 4;
#else
constexpr uint32_t kSlower = 1;
#endif

View board_view() {
  const double middle = kSide * 4.0;
  return look_at({middle, middle, -kDistance}, {middle, middle, 0},
                 2 * std::atan(middle / kDistance) * 180 / 3.14159265358979323846, kSide, kSide);
}

// A world and its known state. It makes the edits and gives the expected pictures.
class Board {
 public:
  Board(Device& device, SharingMode mode) : scene(device, mode), view_(board_view()) {}

  // Makes a stroke over a third of the board, adds `more` bricks elsewhere, and sets the version's palette.
  Result<void> edit(uint32_t version, uint32_t more) {
    version_ = version;
    std::vector<World::BrickWrite> writes;
    for (uint32_t i = 0; i < kSide * kSide; ++i) {
      if (random_() % 3 != 0) continue;
      cells_[i] = random_() % 4 == 0 ? 0 : uint8_t(1 + (version * 7 + i * 13) % 255);
      writes.push_back({{int(i % kSide), int(i / kSide), 0}, brick_of_material(cells_[i])});
    }
    // They are outside the picture and far apart, so that table, pool and pyramid all grow. A third of them are removed
    // later.
    for (uint32_t i = 0; i < more; ++i)
      writes.push_back({far_brick(grown_ + i), brick_of_material(uint8_t(1 + i % 255))});
    for (uint32_t i = 0; i < std::min(more, 2000u) && grown_ > 2000; i += 3) {
      const uint32_t old = grown_ - 2000 + i;
      writes.push_back({far_brick(old), Brick{}});
    }
    grown_ += more;
    for (uint32_t m = 1; m < 256; ++m) {
      Material& material = scene.palette.materials[m];
      material.r = uint8_t(m), material.g = uint8_t(version), material.b = uint8_t(version >> 8);
    }
    return scene.world().write(writes);
  }

  // The colours that a frame of this version must show, one for each brick of the board.
  std::vector<uint32_t> expected(uint32_t missed) const {
    std::vector<uint32_t> colors(kSide * kSide);
    for (uint32_t y = 0; y < kSide; ++y)
      for (uint32_t x = 0; x < kSide; ++x) {
        const float a = 2 * (float(x) + 0.5f) / kSide - 1, b = 1 - 2 * (float(y) + 0.5f) / kSide;
        float d[3];
        for (int i = 0; i < 3; ++i) d[i] = view_.forward[i] + a * view_.right[i] + b * view_.up[i];
        const float t = -view_.origin[2] / d[2];
        const uint32_t cell_x = uint32_t(std::floor((view_.origin[0] + t * d[0]) / 8)),
                       cell_y = uint32_t(std::floor((view_.origin[1] + t * d[1]) / 8));
        REQUIRE(cell_x < kSide);
        REQUIRE(cell_y < kSide);
        const uint8_t material = cells_[cell_y * kSide + cell_x];
        colors[y * kSide + x] = material ? color_of(version_, material) : missed;
      }
    return colors;
  }

  static RenderSettings settings(uint32_t pixels_a_brick = 1) {
    RenderSettings settings;
    settings.width = settings.height = kSide * pixels_a_brick;
    settings.view = DebugView::albedo;
    return settings;
  }
  const View& view() const { return view_; }

  SceneWorld scene;

 private:
  static Brick brick_of_material(uint8_t material) {
    Brick brick;
    for (uint32_t i = 0; material && i < 512; ++i) brick.set(i, material);
    // Unseen from the front: some bricks are the pool's own, the others are shared by all keys of their material.
    if (material % 2) brick.set(voxel_index({7, 7, 7}), 0);
    return brick;
  }
  static Int3 far_brick(uint32_t i) {
    return {200 + 16 * int(i % 32) + int(i >> 15), -480 + 16 * int(i / 32 % 32), 16 * int(i / 1024 % 32)};
  }
  static uint32_t color_of(uint32_t version, uint8_t material) {
    return material | (version & 255u) << 8 | (version >> 8 & 255u) << 16 | 0xFF000000u;
  }

  View view_;
  std::mt19937 random_{11};
  std::array<uint8_t, kSide * kSide> cells_{};
  uint32_t version_ = 0, grown_ = 0;
};

// Counts the bricks that look different, and gives the first of them. For bricks larger than a pixel only the middle
// counts, because their sides show at the edges.
uint32_t count_wrong(const Picture& seen, const std::vector<uint32_t>& expected, uint32_t pixels_a_brick,
                     uint32_t* first, uint32_t* first_color) {
  const uint32_t from = pixels_a_brick / 4, to = pixels_a_brick - from;
  uint32_t wrong = 0;
  for (uint32_t brick = 0; brick < kSide * kSide; ++brick) {
    bool same = true;
    uint32_t other = 0;
    for (uint32_t y = from; y < to; ++y)
      for (uint32_t x = from; x < to; ++x) {
        uint32_t color;
        std::memcpy(
            &color,
            &seen.rgba[(size_t(brick / kSide * pixels_a_brick + y) * seen.width + brick % kSide * pixels_a_brick + x) *
                       4],
            4);
        if (color != expected[brick]) same = false, other = color;
      }
    if (!same && !wrong++) *first = brick, *first_color = other;
  }
  return wrong;
}

// The colour of a pixel that hits nothing.
uint32_t missed_color(Renderer& renderer, Board& board) {
  auto picture = renderer.render(board.scene.rendered(), board.view(), board.settings());
  REQUIRE(picture);
  uint32_t color = 0;
  std::memcpy(&color, picture->rgba.data(), 4);
  return color;
}

}  // namespace

TEST_CASE(
    "hand-over: with three frames under way, while bricks come and go and tables grow, every frame shows its own "
    "version, whole",
    "[cuda]") {
  Device* device = test::test_device();
  if (!device) return;
  auto renderer = Renderer::create(*device);
  REQUIRE(renderer);
  const bool software = device->info().type == VK_PHYSICAL_DEVICE_TYPE_CPU;
  const char* wanted = std::getenv("QUARRY_STRESS_FRAMES");
  const uint32_t frames = wanted ? uint32_t(std::atoi(wanted)) : (software ? 400 : 1000) / kSlower;
  for (const SharingMode mode : test::possible_modes(*device)) {
    INFO(to_string(mode));
    Board board(*device, mode);
    const uint32_t missed = missed_color(**renderer, board);
    // On a GPU, 64 samples of a million pixels make a frame last longer than several edits.
    const uint32_t pixels_a_brick = software ? 1 : 64;
    RenderSettings settings = Board::settings(pixels_a_brick);
    settings.samples = software ? 1 : 8;
    struct Slot {
      std::unique_ptr<Offscreen> offscreen;
      std::vector<uint32_t> expected;
      uint64_t frame = 0;
    } slots[kInFlight];
    for (Slot& slot : slots) {
      auto made = Offscreen::create(*device, "stress");
      REQUIRE(made);
      slot.offscreen = std::move(*made);
    }
    uint32_t wrong = 0, still_running = 0;
    const auto finish = [&](Slot& slot) {
      if (!slot.frame) return;
      REQUIRE(slot.offscreen->wait());
      board.scene.shared().frame_completed(slot.frame);
      uint32_t brick = 0, color = 0;
      const uint32_t bad = count_wrong(slot.offscreen->picture(), slot.expected, pixels_a_brick, &brick, &color);
      if (!bad || wrong++ >= 3) return;
      const uint32_t should = slot.expected[brick];
      std::printf(
          "%s, frame %u: %u of %u bricks are wrong; number %u shows version %u, material %u, not version %u, "
          "material %u\n",
          to_string(mode), unsigned(slot.frame), bad, kSide * kSide, brick, color >> 8 & 0xFFFFu, color & 255u,
          should >> 8 & 0xFFFFu, should & 255u);
    };
    const uint32_t pages = board.scene.world().grid().view().page_count;
    uint32_t swaps = 0;
    double publish_s = 0;
    const auto start = std::chrono::steady_clock::now();
    for (uint32_t frame = 1; frame <= frames; ++frame) {
      Slot& slot = slots[frame % kInFlight];
      finish(slot);
      const void* table = board.scene.world().grid().block().data;
      const Slot& newest = slots[(frame + kInFlight - 1) % kInFlight];
      // The edit happens while a frame reads the version before it.
      if (newest.frame && !*newest.offscreen->done()) ++still_running;
      REQUIRE(board.edit(frame, 48));
      swaps += board.scene.world().grid().block().data != table;
      const auto before = std::chrono::steady_clock::now();
      auto ready = board.scene.rendered().publish();
      publish_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
      REQUIRE(ready);
      auto commands = slot.offscreen->begin();
      REQUIRE(commands);
      auto target = slot.offscreen->begin_image(settings.width, settings.height);
      REQUIRE(target);
      REQUIRE((*renderer)->record(*commands, board.scene.shared(), board.view(), settings, *target, frame % kInFlight));
      REQUIRE(slot.offscreen->read_image());
      REQUIRE(slot.offscreen->submit(*ready));
      slot.frame = frame;
      board.scene.shared().frame_submitted(frame);
      slot.expected = board.expected(missed);
    }
    for (Slot& slot : slots) finish(slot);
    board.scene.shared().frame_completed(frames);
    // No outgrown table is left.
    CHECK(board.scene.shared().device_bytes() <= board.scene.world().size_bytes());
    std::printf(
        "%s: %u frames in %.1f s, %u edits met a frame under way, table swapped %u times, publish() took %.0f "
        "us on average\n",
        to_string(mode), frames, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
        still_running, swaps, publish_s / frames * 1e6);
    CHECK(wrong == 0);
    // The whole table is right too: every brick is found where the world has it, with the same number of reads.
    const hashgrid::GridView grid = board.scene.world().grid().view();
    const std::vector<uint32_t> keys = board.scene.world().pyramid().keys();
    const auto ready = board.scene.rendered().publish();
    REQUIRE(ready);
    test::ShaderFind<QryFindPush> find_in_shader(*device, k_find_spirv);
    const std::vector<uint32_t> found = find_in_shader({board.scene.shared().root_address(), 0, 0, 0}, keys, *ready);
    uint32_t astray = 0, in_stash = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      const hashgrid::Found host = hashgrid::find(grid, keys[i]);
      astray += found[2 * i] != host.value || found[2 * i + 1] != host.sectors;
      in_stash += host.sectors > 2;
    }
    INFO(keys.size() << " bricks, " << in_stash << " of them in the stash");
    CHECK(astray == 0);
    CHECK(board.scene.world().grid().view().page_count > pages);
    CHECK(swaps >= (frames >= 400 ? 3u : 1u));
  }
}

TEST_CASE(
    "hand-over: edits and publish return while a frame that was submitted before it cannot end, whatever was edited",
    "[cuda]") {
  Device* device = test::test_device();
  if (!device) return;
  auto renderer = Renderer::create(*device);
  REQUIRE(renderer);
  for (const SharingMode mode : test::possible_modes(*device)) {
    INFO(to_string(mode));
    Board board(*device, mode);
    const uint32_t missed = missed_color(**renderer, board);
    const auto signal = reinterpret_cast<PFN_vkSignalSemaphore>(
        device->vk().vkGetDeviceProcAddr(device->handle(), "vkSignalSemaphore"));
    REQUIRE(signal);
    auto gate = Timeline::create(*device, "gate"), frame_done = Timeline::create(*device, "frame");
    REQUIRE(gate);
    REQUIRE(frame_done);
    for (uint32_t round = 0; round < 2; ++round) {
      // The frame waits for the gate, which the host opens after the calls have returned. If they have not after a
      // minute, a second thread opens it, so that a call that waits fails the test instead of hanging it. A sanitizer
      // on a busy machine needs seconds. A frame before it, which reads the table that the next edit outgrows, ends in
      // time.
      const uint64_t opening = (*gate)->next(), before_gate = (*frame_done)->next(), done = (*frame_done)->next();
      REQUIRE(device->submit(VK_NULL_HANDLE, {}, {{(*frame_done)->handle(), before_gate}}));
      board.scene.shared().frame_submitted(before_gate);
      REQUIRE(board.edit(round * 6 + 1, 3000));
      REQUIRE(board.scene.rendered().publish());
      REQUIRE(device->submit(VK_NULL_HANDLE, {{(*gate)->handle(), opening}}, {{(*frame_done)->handle(), done}}));
      board.scene.shared().frame_submitted(done);
      std::mutex mutex;
      std::condition_variable change;
      bool returned = false, late = false;
      const auto open = [&] {
        VkSemaphoreSignalInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, nullptr, (*gate)->handle(), opening};
        return signal(device->handle(), &info) == VK_SUCCESS;
      };
      std::thread watch([&] {
        std::unique_lock lock(mutex);
        if (change.wait_for(lock, std::chrono::seconds(60), [&] { return returned; })) return;
        late = true;
        open();
      });
      Result<Device::TimelinePoint> point = Device::TimelinePoint{};
      double slowest = 0;
      for (uint32_t i = 0; point && i < 5; ++i) {  // strokes first; then tables, slabs and pyramid outgrow their memory
        const auto edited = board.edit(round * 6 + i + 2, i < 2 ? 0 : 1500);
        const auto before = std::chrono::steady_clock::now();
        if (edited) point = board.scene.rendered().publish();
        else point = tl::unexpected(edited.error());
        board.scene.shared().frame_completed(before_gate);
        slowest = std::max(slowest, std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count());
      }
      {
        const std::lock_guard lock(mutex);
        returned = true;
      }
      change.notify_one();
      watch.join();
      if (!late) CHECK(open());
      REQUIRE(point);
      CHECK_FALSE(late);
      std::printf("%s: beside a frame that does not end, publish() took %.2f ms at most\n", to_string(mode),
                  slowest * 1e3);
      REQUIRE((*frame_done)->wait(done));
      board.scene.shared().frame_completed(done);
      auto picture = (*renderer)->render(board.scene.rendered(), board.view(), board.settings());
      REQUIRE(picture);
      uint32_t brick = 0, color = 0;
      CHECK(count_wrong(*picture, board.expected(missed), 1, &brick, &color) == 0);
    }
  }
}

TEST_CASE("hand-over: frames show their versions, however much is edited between recording and submitting", "[cuda]") {
  Device* device = test::test_device();
  if (!device) return;
  auto renderer = Renderer::create(*device);
  REQUIRE(renderer);
  for (const SharingMode mode : test::possible_modes(*device, {SharingMode::host_import})) {
    INFO(to_string(mode));
    Board board(*device, mode);
    const uint32_t missed = missed_color(**renderer, board);
    std::unique_ptr<Offscreen> offscreens[3];
    for (auto& offscreen : offscreens) {
      auto made = Offscreen::create(*device, "recorded early");
      REQUIRE(made);
      offscreen = std::move(*made);
    }
    uint64_t frame = 0;
    uint32_t edits = 0;
    for (uint32_t round = 0; round < 4; ++round) {
      std::vector<uint32_t> expected[3];
      Device::TimelinePoint ready[3]{};
      for (uint32_t i = 0; i < 3; ++i) {
        // The last two show one version: the second is recorded when the world has gone on, but was not published.
        if (i < 2) {
          REQUIRE(board.edit(++edits, round == 2 ? 2000 : 20));
          auto point = board.scene.rendered().publish();
          REQUIRE(point);
          ready[i] = *point;
          expected[i] = board.expected(missed);
        } else {
          ready[2] = ready[1];
          expected[2] = expected[1];
        }
        auto commands = offscreens[i]->begin();
        REQUIRE(commands);
        auto target = offscreens[i]->begin_image(kSide, kSide);
        REQUIRE(target);
        REQUIRE((*renderer)->record(*commands, board.scene.shared(), board.view(), Board::settings(), *target, i));
        REQUIRE(offscreens[i]->read_image());
        board.scene.shared().frame_submitted(++frame);
        for (uint32_t n = 0; n < 100; ++n) {
          REQUIRE(board.edit(++edits, n == 50 ? 500 : 0));
          if (i != 1 && n % 8 == 0) REQUIRE(board.scene.rendered().publish());
        }
      }
      // Submitted in their order; each shows its own version.
      for (uint32_t i = 0; i < 3; ++i) {
        REQUIRE(offscreens[i]->submit(ready[i]));
        for (uint32_t n = 0; n < 10; ++n) REQUIRE(board.edit(++edits, 0));
      }
      for (uint32_t i = 0; i < 3; ++i) {
        REQUIRE(offscreens[i]->wait());
        uint32_t brick = 0, color = 0;
        INFO("round " << round << ", frame " << i);
        CHECK(count_wrong(offscreens[i]->picture(), expected[i], 1, &brick, &color) == 0);
      }
      board.scene.shared().frame_completed(frame);
    }
    // What the frames kept is free again: a picture later the world needs no more than its own memory.
    REQUIRE(board.scene.rendered().publish());
    board.scene.shared().frame_completed(frame);
    const uint64_t before = board.scene.world().size_bytes();
    for (uint32_t n = 0; n < 300; ++n) {
      REQUIRE(board.edit(++edits, 0));
      REQUIRE(board.scene.rendered().publish());
      board.scene.shared().frame_submitted(++frame);
      board.scene.shared().frame_completed(frame);
    }
    CHECK(board.scene.world().size_bytes() == before);
    CHECK(board.scene.shared().device_bytes() <= board.scene.world().size_bytes());
  }
}

}  // namespace stress_test
