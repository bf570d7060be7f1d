// SPDX-License-Identifier: Apache-2.0
// ray_marcher.hpp - the compute ray-marcher: world in shared memory -> visibility -> shaded image.
//
//   SharedWorld (addresses of grid, masks, materials, pyramid, palette)
//     -> beams.comp.glsl   how far each tile of pixels sees nothing                       (4 B a tile)
//     -> march.comp.glsl   primary rays: t, voxel, face, material, steps, probe depth      (16 B a pixel + 8 B debug)
//     -> shadow.comp.glsl, ambient.comp.glsl   rays to the sun, to all around            (16 B a pixel)
//     -> refraction.comp.glsl  what transparent voxels show, only where the palette has any (16 B a pixel)
//     -> reflection.comp.glsl  what smooth surfaces reflect, likewise                       (16 B a pixel)
//     -> shade.comp.glsl   sun, sky, palette -> RGBA8
//     -> read-back (PNG, C API), swapchain image (app/editor) or the host engine's image
// Every pass records into a command buffer given by the caller, never submits and never waits; render() is the
// convenience that does.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/render/camera.hpp"
#include "engine/sharing/world.hpp"
#include "engine/vulkan/device.hpp"
#include "voxel/worlds/document.hpp"

namespace quarry::engine {

enum class DebugView : uint32_t { shaded, albedo, normals, depth, bricks, probe_depth, steps, material, load };
Result<DebugView> debug_view_from_name(std::string_view name);  // bad_usage with the nearest name
std::span<const char* const> debug_view_names();

// What is seen where nothing is hit. `none`: alpha says how much of the pixel is covered.
enum class Background : uint8_t { sky, color, none };

// Primary rays that start where their tile of pixels first may see something: the same picture but for single pixels at
// edges.
enum class Beams : uint8_t {
  automatic,  // where they save more than they cost
  always,     // where the device can; else as `never`
  never
};

struct RenderSettings {
  uint32_t width = 1280, height = 720;
  DebugView view = DebugView::shaded;
  float sun_direction[3] = {-0.43f, 0.77f, -0.37f};  // towards the sun; need not be unit
  float sun_strength = 3.0f, sky_strength = 1.0f;
  float sun_radius = 0.012f;  // of its disc, radians: how soft shadows are
  // sky_color from everywhere instead of day, evening or night by the sun's height.
  bool uniform_sky = false;
  float sky_color[3] = {1, 1, 1};  // linear
  Background background = Background::sky;
  float background_color[3] = {1, 1, 1};  // sRGB, 0..1: shown as it is
  bool ground = false;                    // an unseen floor under the world's lowest voxel catches shadows
  // Voxels over which, at the world's foot, 63% of the light is lost; 0: no fog.
  float fog_distance = 0;
  // Voxels over which it thins out to 1/e; 0: a third of the world's height.
  float fog_height = 0;
  bool filmic = true;                          // false: radiance is shown as it is, cut off at white
  uint32_t shadow_rays = 1, ambient_rays = 4;  // per pixel; 0: off
  float ambient_reach = 64;                    // voxels
  uint32_t samples = 1;                        // sub-pixel samples a side: 2 = 4 primary rays a pixel
  float exposure = 1.0f;
  uint32_t frame_seed = 0;
  // Path-traced pictures only (path_tracer.hpp).
  uint32_t bounces = 4;  // times a path may scatter
  // Voxels; 0: everything is sharp. The plane `focus` before the eye is sharp.
  float lens_radius = 0, focus = 0;
  // False: emissive voxels are found by scattered rays alone; the same picture, after far more paths.
  bool light_tree = true;
  // Brightest radiance that scattered light may bring; 0: no limit, and no bias.
  float firefly_limit = 0;
  Beams beams = Beams::automatic;
  bool highlight = false;  // brush preview / selection: a box drawn as an outline
  Box3 highlight_box;
};

// What a primary ray hit. `t` < 0: nothing.
struct Hit {
  float t = -1;
  Int3 voxel;
  uint32_t face = 0;  // 2*axis + (1 if entered through the + side)
  uint32_t material = 0;
  uint32_t steps = 0;
  uint32_t probe_depth = 0;
};

// A rectangle of a picture, in the picture's pixels.
struct Tile {
  uint32_t x = 0, y = 0, width = 0, height = 0;
  friend bool operator==(const Tile&, const Tile&) = default;
};

struct Picture {
  uint32_t width = 0, height = 0;
  std::vector<uint8_t> rgba;  // row 0 on top
};

class Renderer {
 public:
  // `frames`: that may be in flight at once, of record().
  static Result<std::unique_ptr<Renderer>> create(Device& device, uint32_t frames = 3);
  ~Renderer();
  // Blocking: renders and reads back. Thread safety: one thread at a time per Renderer.
  Result<Picture> render(const RenderedWorld& world, const View& view, const RenderSettings& settings);
  // Blocking: traces given rays (origins and unit directions, 3 floats each). The same traversal as march.comp.
  Result<std::vector<Hit>> trace(const RenderedWorld& world, std::span<const float> origins,
                                 std::span<const float> directions);
  // Records all passes into `commands`; the result is in `target`, a storage image in GENERAL layout with format
  // RGBA8_UNORM of settings' size, which is written by compute (barriers around it are the caller's). `frame` counts
  // frames in flight, from 0: what was recorded with the same number before must be done. `tile`: only these pixels are
  // made and written, the very same as in the whole picture, for devices that are slow: what a submission costs follows
  // its pixels. A device that is no software driver makes its pipelines for tiles when the first one is recorded, and
  // waits for that.
  Result<void> record(VkCommandBuffer commands, SharedWorld& world, const View& view, const RenderSettings& settings,
                      VkImageView target, uint32_t frame, const std::optional<Tile>& tile = {});

 private:
  struct State;
  explicit Renderer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quarry::engine
