// SPDX-License-Identifier: Apache-2.0
// ray_marcher.hpp - the compute ray-marcher: world in shared memory -> visibility -> shaded image.
//
//   SharedWorld (addresses of grid, masks, materials, pyramid, palette)
//     -> beams.comp.glsl   how far each tile of pixels sees nothing                       (4 B a tile)
//     -> march.comp.glsl   primary rays: t, voxel, face, material, steps, probe depth      (16 B a pixel + 8 B debug)
//     -> shadow.comp.glsl, ambient.comp.glsl   rays to the sun and in all directions     (16 B a pixel)
//     -> refraction.comp.glsl  light through transparent voxels, only if the palette has any (16 B a pixel)
//     -> reflection.comp.glsl  reflections of smooth surfaces, only if the palette has any   (16 B a pixel)
//     -> shade.comp.glsl   sun, sky, palette -> RGBA8
//     -> read-back (PNG, C API), swapchain image (app/editor) or the host engine's image
// Every pass records into the caller's command buffer. It never submits and never waits. render() does both for
// convenience.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/render/camera.hpp"
#include "engine/sharing/world.hpp"
#include "engine/vulkan/device.hpp"
#include "voxel/worlds/document.hpp"

namespace quarry::engine {

enum class DebugView : uint32_t { shaded, albedo, normals, depth, bricks, probe_depth, steps, material, load };
Result<DebugView> debug_view_from_name(std::string_view name);  // bad_usage with the nearest name
std::span<const char* const> debug_view_names();
// Whether its frames read the hash grid itself, and not only the pyramid (SharedWorld::frame_submitted).
inline bool reads_grid(DebugView view) { return view == DebugView::probe_depth || view == DebugView::load; }

// What a ray that hits nothing sees. With `none`, alpha is the covered share of the pixel.
enum class Background : uint8_t { sky, color, none };

// With beams, primary rays start where their tile of pixels may first see something. The picture is the same except for
// single pixels at edges.
enum class Beams : uint8_t {
  automatic,  // if they save more than they cost
  always,     // if the device can; else as `never`
  never
};

struct RenderSettings {
  uint32_t width = 1280, height = 720;
  DebugView view = DebugView::shaded;
  float sun_direction[3] = {-0.43f, 0.77f, -0.37f};  // towards the sun; need not be unit
  float sun_strength = 3.0f, sky_strength = 1.0f;
  float sun_radius = 0.012f;  // of its disc, in radians; sets how soft shadows are
  // Lights from all directions with sky_color, instead of a day, evening or night sky by the sun's height.
  bool uniform_sky = false;
  float sky_color[3] = {1, 1, 1};  // linear
  Background background = Background::sky;
  float background_color[3] = {1, 1, 1};  // sRGB, 0..1; shown unchanged
  bool ground = false;                    // an unseen floor under the world's lowest voxel catches shadows
  // The distance in voxels over which the fog at the world's foot takes 63% of the light. 0 means no fog.
  float fog_distance = 0;
  // The height in voxels over which the fog thins out to 1/e. 0 means a third of the world's height.
  float fog_height = 0;
  bool filmic = true;                          // false: radiance is shown unchanged, clipped at white
  uint32_t shadow_rays = 1, ambient_rays = 4;  // per pixel; 0: off
  float ambient_reach = 64;                    // voxels
  uint32_t samples = 1;                        // sub-pixel samples a side: 2 = 4 primary rays a pixel
  float exposure = 1.0f;
  uint32_t frame_seed = 0;
  // The next five are for path-traced pictures only (path_tracer.hpp).
  uint32_t bounces = 4;  // how often a path may scatter
  // In voxels. With lens_radius 0 everything is sharp. The plane at distance `focus` before the eye is sharp.
  float lens_radius = 0, focus = 0;
  // If false, only scattered rays find emissive voxels. The picture is the same, but needs far more paths.
  bool light_tree = true;
  // The brightest radiance that scattered light may add. 0 means no limit and no bias.
  float firefly_limit = 0;
  Beams beams = Beams::automatic;
  bool highlight = false;  // brush preview / selection: a box drawn as an outline
  Box3 highlight_box;
};

struct Ray {
  float origin[3];
  float direction[3];  // of length 1
};
// What a ray hit. `t` < 0 means nothing.
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
  // `frames` of record() may be in flight at once.
  static Result<std::unique_ptr<Renderer>> create(Device& device, uint32_t frames = 3);
  ~Renderer();
  // Blocking: renders and reads back. Only one thread at a time may use a Renderer. Of a world of which some pages are
  // not there (RenderedWorld::bring_pages) the picture is the same: it is made again until no ray came to a page that
  // is missing, in smaller tiles if those of the whole do not fit memory. Errors: out_of_memory if those of one pixel
  // do not.
  Result<Picture> render(const RenderedWorld& world, const View& view, const RenderSettings& settings);
  // Blocking: traces a list of rays with the traversal of march.comp, in pieces: the host fills and empties some while
  // the device traces others. `fill` writes rays [first, first + to.size()) of the list, to memory that is slow to
  // read; `take` gets their hits. Both are called on this thread, in the order of the list. Memory: 56 bytes a ray of
  // up to three pieces of 2^19 rays, kept for the next list. Errors: device, out_of_memory.
  using FillRays = std::function<void(size_t first, std::span<Ray> to)>;
  using TakeHits = std::function<void(size_t first, std::span<const Hit> hits)>;
  Result<void> trace(const RenderedWorld& world, size_t count, const FillRays& fill, const TakeHits& take);
  // The same for origins and unit directions, 3 floats each.
  Result<std::vector<Hit>> trace(const RenderedWorld& world, std::span<const float> origins,
                                 std::span<const float> directions);
  // Records all passes into `commands`. The result is in `target`, a storage image in GENERAL layout with format
  // RGBA8_UNORM and the settings' size. Compute writes it, and the caller records the barriers around it. `frame`
  // counts frames in flight, from 0. Earlier commands with the same number must be done. With `tile`, only its pixels
  // are made and written, the same as in the whole picture. This is for slow devices: the cost of a submission follows
  // its number of pixels. A device other than a software driver makes its pipelines for tiles when the first tile is
  // recorded, and the call waits for that.
  Result<void> record(VkCommandBuffer commands, SharedWorld& world, const View& view, const RenderSettings& settings,
                      VkImageView target, uint32_t frame, const std::optional<Tile>& tile = {});

 private:
  Result<Picture> render_paged(const RenderedWorld& world, const View& view, const RenderSettings& settings);
  struct State;
  explicit Renderer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quarry::engine
