// SPDX-License-Identifier: Apache-2.0
// presenter.hpp - one frame of the editor on the GPU: the ray-marched picture and the panels over it, presented in the
// window.
//
//   SharedWorld --Renderer::record--> scene image (RGBA8, storage) --blit--> swapchain image --Dear ImGui's render
//   pass--> present
//
// Up to three frames are in flight. On a software device it is one, since there a second one would only make input wait
// longer. The only waits are for the frame before these (a timeline semaphore) and for the next image of the window;
// nothing waits for the device. An object that a frame in flight may still read is retired, and destroyed when that
// frame is done.
//
// A picture that is too expensive for one frame is drawn in tiles. Each tile is a submission of its own, apart from the
// frames, one at a time. So a frame waits for one tile at most. Tiles are drawn into the scene image, over the last
// picture. The next frame shows the tiles that are done.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "app/editor/window/swapchain.hpp"
#include "engine/pictures/path_tracer.hpp"
#include "engine/vulkan/commands.hpp"
#include "engine/vulkan/device_memory.hpp"
#include "engine/vulkan/target_image.hpp"
#include "engine/vulkan/timeline.hpp"

struct ImDrawData;

namespace quarry::app {

struct PixelRect {
  int x = 0, y = 0, width = 0, height = 0;
  friend bool operator==(const PixelRect&, const PixelRect&) = default;
};

// What to show this frame.
struct FrameRequest {
  PixelRect viewport;  // where the picture goes, in pixels of the window
  // A new picture. If empty, the last one is shown again, which costs a copy.
  struct Scene {
    engine::SharedWorld* world = nullptr;
    engine::View view;
    engine::RenderSettings settings;  // width and height may be less than the viewport's: the picture is stretched
    engine::Device::TimelinePoint wait{VK_NULL_HANDLE, 0};
    // Light paths instead of quick shading; null: none. Without `show` the last picture stays on the screen, so a new
    // one begins unseen.
    engine::PathTracer* tracer = nullptr;
    uint32_t first_step = 0, steps = 0;
    bool show = true;
    std::optional<engine::Tile> tile;  // for draw_tile
  };
  std::optional<Scene> scene;
  float background[4] = {0, 0, 0, 1};
  ImDrawData* panels = nullptr;
  bool screenshot = false;  // copy the window's image; see take_screenshot
};

class Presenter {
 public:
  // Takes ownership of the surface. Sets up Dear ImGui's Vulkan backend; a context must exist.
  static Result<std::unique_ptr<Presenter>> create(engine::Device& device, engine::Renderer& renderer,
                                                   VkSurfaceKHR surface, uint32_t width, uint32_t height);
  ~Presenter();

  // Waits until a frame may begin, and destroys what is no longer read. Call it before Dear ImGui's NewFrame.
  Result<void> begin();
  // Records and submits one tile, which must be done before the next one. The first tile of a picture is drawn over the
  // last picture.
  Result<void> draw_tile(const FrameRequest::Scene& scene);
  // Waits for the tile under way, if any, at most `seconds`. False: it is not done.
  Result<bool> tile_done(double seconds);
  // Records, submits and presents. False: the window has no size, or its size changed; nothing was shown.
  Result<bool> draw(const FrameRequest& request, uint32_t window_width, uint32_t window_height);
  uint64_t submitted() const { return timeline_->last(); }  // timeline value of the newest frame
  uint64_t completed() const;                               // timeline value of the newest finished frame
  Result<void> wait_for(uint64_t value);                    // waits for frames, not for the device
  // `destroy` runs when no frame submitted until now is still in flight.
  void retire(std::function<void()> destroy);
  // The window as the last frame with `screenshot` showed it. Waits for that frame.
  Result<engine::Picture> take_screenshot();
  // GPU time of the newest finished picture in milliseconds; 0 before the first, negative if the device has no clock.
  double picture_ms() const { return picture_ms_; }
  uint64_t pictures_done() const { return pictures_done_; }  // the pictures measured this way
  // Steps of the path tracer in that picture; 0: it used quick shading.
  uint32_t picture_steps() const { return picture_steps_; }
  // GPU time of the newest finished tile, in the form of picture_ms().
  double tile_ms() const { return tile_ms_; }
  double picture_rays() const { return picture_rays_; }  // camera rays of that picture; 0: light paths
  uint32_t screen_width() const { return swapchain_.width; }
  uint32_t screen_height() const { return swapchain_.height; }

  // The number of frames in flight, and the number by which the engine knows tiles.
  static constexpr uint32_t kFrames = 3, kTileFrame = kFrames;

 private:
  struct Slot {
    std::unique_ptr<engine::Commands> commands;
    VkSemaphore acquired = VK_NULL_HANDLE;
    uint64_t value = 0;  // timeline value that this slot's frame signals
    bool has_times = false;
    uint32_t steps = 0;
    double rays = 0;
  };
  Presenter(engine::Device& device, engine::Renderer& renderer, VkSurfaceKHR surface);
  Result<void> set_up(uint32_t width, uint32_t height);
  Result<void> set_up_panels();
  Result<void> remake_swapchain(uint32_t width, uint32_t height);
  Result<engine::TargetImage*> scene_image(uint32_t width, uint32_t height);
  uint32_t slot_index() const { return uint32_t(frames_ % kFrames); }
  Result<void> record(Slot& slot, uint32_t slot_index, uint32_t image_index, const FrameRequest& request);
  Result<void> record_scene(VkCommandBuffer commands, Slot& slot, uint32_t slot_index,
                            const FrameRequest::Scene& wanted, engine::TargetImage* target);
  void blit(VkCommandBuffer commands, const engine::TargetImage& from, VkImage to, int x, int y, int right, int bottom);
  void copy_screen(VkCommandBuffer commands, VkImage image);
  Result<void> prepare_screenshot();
  double read_times(Slot& slot, uint32_t slot_index);  // 0: no times

  engine::Device& device_;
  engine::Renderer& renderer_;
  VkSurfaceKHR surface_;
  VkSurfaceFormatKHR format_{};
  VkRenderPass render_pass_ = VK_NULL_HANDLE;
  VkDescriptorPool descriptors_ = VK_NULL_HANDLE;
  std::unique_ptr<engine::Timeline> timeline_;
  VkQueryPool times_ = VK_NULL_HANDLE;
  double nanoseconds_per_tick_ = 0;
  Swapchain swapchain_;
  std::array<Slot, kFrames + 1> slots_;  // one per frame, used in turn, and one for tiles
  uint64_t frames_ = 0;
  std::vector<std::unique_ptr<engine::TargetImage>> scene_images_;
  engine::TargetImage* shown_ = nullptr;
  double picture_ms_ = 0, tile_ms_ = 0;
  uint32_t picture_steps_ = 0;
  double picture_rays_ = 0;
  uint64_t pictures_done_ = 0;
  bool panels_ready_ = false, stale_ = false;
  std::vector<std::pair<uint64_t, std::function<void()>>> retired_;
  std::vector<std::pair<uint64_t, Swapchain>> old_swapchains_;  // each with the frame before which it is destroyed
  struct {
    std::unique_ptr<engine::DeviceMemory> pixels;
    uint32_t width = 0, height = 0;
    uint64_t value = 0;
    bool bgra = false;
  } screenshot_;
};

}  // namespace quarry::app
