// SPDX-License-Identifier: Apache-2.0
// path_tracer.hpp - path tracing: pictures that converge, with light followed over many bounces. Worlds, views and
// settings are the same as Renderer's. Sun, sky, emissive voxels, reflection, refraction and fog are simulated more
// fully, which takes more time.
//
//   SharedWorld -> path.comp.glsl -> sums (a float4 a pixel, kept between calls) -> path_resolve.comp.glsl -> RGBA8
//   image | floats
//
// It uses all of RenderSettings except view, samples, shadow_rays, ambient_* and the highlight. Literature: J. Kajiya,
// "The Rendering Equation", 1986. The shaders name the literature of their additions.
#pragma once

#include <memory>
#include <vector>

#include "base/progress.hpp"
#include "engine/render/ray_marcher.hpp"

namespace quarry::engine {

// The data of a converged picture, row 0 on top. The values are linear, before exposure and tone curve.
struct PathPicture {
  Picture picture;              // the picture to show
  std::vector<float> radiance;  // 4 floats a pixel: colour multiplied by coverage, coverage
  std::vector<float> albedo;    // 3 floats a pixel; albedo, normal and depth only on request
  std::vector<float> normal;    // 3 floats a pixel
  std::vector<float> depth;     // voxels from the eye; infinite where nothing is hit
};

class PathTracer {
 public:
  static constexpr uint32_t kStepsAPath = 16;

  // Makes two pipelines. If the cache on disk does not hold them, that takes a second or two on a software device.
  static Result<std::unique_ptr<PathTracer>> create(Device& device);
  ~PathTracer();

  // Brings the light tree up to date (LightTree::update says what that costs) and sends it to the device. Call it after
  // publish() and before a new picture's first record(). Without it only scattered rays find emissive voxels. It never
  // waits. Errors: out_of_memory, device.
  Result<void> prepare(const RenderedWorld& world);

  // Records `steps` steps after the `first_step` steps already done. It then shows the sums in `target`, as
  // Renderer::record does; with a null `target` it shows nothing. A step is one path in every sixteenth pixel.
  // kStepsAPath steps are one path a pixel. `steps` and `first_step` are multiples of kStepsAPath, or `steps` is 1 for
  // slow devices. first_step 0 begins a new picture. Otherwise world, view and settings must be the same as in the
  // earlier calls, or the picture is a mixture. `frame` counts frames in flight, 0..3. It never waits. With `tile` it
  // traces and shows only the tile's pixels. Both corners of the tile must be at multiples of four pixels or at the
  // picture's end. A step is done when each of its pixels was in one tile of that step. The sums are then the same.
  Result<void> record(VkCommandBuffer commands, SharedWorld& world, const View& view, const RenderSettings& settings,
                      uint32_t first_step, uint32_t steps, VkImageView target, uint32_t frame,
                      const std::optional<Tile>& tile = {});

  // Blocking. Traces `paths` paths a pixel in submissions of about a quarter of a second and reports after each.
  // `layers` adds albedo, normal and depth. The same input gives the same bytes on one driver. Errors: cancelled, and
  // those of Renderer::render. Only one thread may call it at a time. A first_path other than 0 continues the picture
  // of the call before. It must equal paths_done(), and all other arguments must be the same. Of a world of which some
  // pages are not there (RenderedWorld::bring_pages) the picture is the same; paths that came to such pages are traced
  // again, and the sums are kept a second time meanwhile.
  Result<PathPicture> render(const RenderedWorld& world, const View& view, const RenderSettings& settings,
                             uint32_t paths, bool layers, const Progress& progress = {}, uint32_t first_path = 0);
  // The paths a pixel that render() has gathered, including those of a cancelled call. It is 0 after other errors.
  uint32_t paths_done() const;

 private:
  struct State;
  explicit PathTracer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quarry::engine
