// SPDX-License-Identifier: Apache-2.0
// path_tracer.hpp - pictures whose light is followed over many bounces and converges: the same worlds, views and
// settings as Renderer's, with sun, sky, emissive voxels, reflection, refraction and fog taken seriously, and paid for
// by time.
//
//   SharedWorld -> path.comp.glsl -> sums (a float4 a pixel, kept between calls) -> path_resolve.comp.glsl -> RGBA8
//   image | floats
//
// Of RenderSettings it uses all but view, samples, shadow_rays, ambient_*, and the highlight. Literature: J. Kajiya,
// "The Rendering Equation", 1986; what the shaders add to it is said there.
#pragma once

#include <memory>
#include <vector>

#include "base/progress.hpp"
#include "engine/render/ray_marcher.hpp"

namespace quarry::engine {

// What a converged picture is made of, row 0 on top. Linear, before exposure and tone curve.
struct PathPicture {
  Picture picture;              // as it is shown
  std::vector<float> radiance;  // 4 floats a pixel: colour multiplied by coverage, coverage
  std::vector<float> albedo;    // 3 floats a pixel; these three only if asked for
  std::vector<float> normal;    // 3 floats a pixel
  std::vector<float> depth;     // voxels from the eye; infinite where nothing is hit
};

class PathTracer {
 public:
  static constexpr uint32_t kStepsAPath = 16;

  // Makes two pipelines; where the cache on disk has none of them that takes a second or two on a software device.
  static Result<std::unique_ptr<PathTracer>> create(Device& device);
  ~PathTracer();

  // Brings the light tree up to date (LightTree::update says what that costs) and sends it to the device. Call it after
  // publish() and before a new picture's first record(); else emissive voxels are found by scattered rays alone. Never
  // waits. Errors: out_of_memory, device.
  Result<void> prepare(const RenderedWorld& world);

  // Records `steps` steps after the `first_step` ones that are done, then shows the sums in `target` (as
  // Renderer::record has it; null: not yet). A step is one path in every sixteenth pixel: kStepsAPath of them are one
  // path a pixel. `steps` is a multiple of that (and so is `first_step`), or 1 for devices that are slow. first_step 0
  // begins a new picture; else world, view and settings must be those of the calls before, or the picture is a mixture.
  // `frame` counts frames in flight, 0..3. Never waits. `tile`: these steps of its pixels alone, which it alone shows
  // in `target`; both its corners must be at multiples of four pixels or at the picture's end. A step is done when each
  // of its pixels was in one tile of it; the sums are the same then.
  Result<void> record(VkCommandBuffer commands, SharedWorld& world, const View& view, const RenderSettings& settings,
                      uint32_t first_step, uint32_t steps, VkImageView target, uint32_t frame,
                      const std::optional<Tile>& tile = {});

  // Blocking: `paths` paths a pixel, in submissions of about a quarter of a second, reporting after each. `layers`:
  // albedo, normal and depth, too. The same input gives the same bytes on one driver. Errors: cancelled; else as
  // Renderer::render. One thread at a time. first_path not 0: goes on with the picture of the call before, which left
  // so many paths_done(); everything else given must be the same.
  Result<PathPicture> render(const RenderedWorld& world, const View& view, const RenderSettings& settings,
                             uint32_t paths, bool layers, const Progress& progress = {}, uint32_t first_path = 0);
  // Paths a pixel that render() has gathered, those of a cancelled call included; 0 after other errors.
  uint32_t paths_done() const;

 private:
  struct State;
  explicit PathTracer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quarry::engine
