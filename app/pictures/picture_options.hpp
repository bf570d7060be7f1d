// SPDX-License-Identifier: Apache-2.0
// picture_options.hpp - the options of `quarry render` about a picture: light, air, lens, quality, and the camera.
#pragma once

#include <glm/vec3.hpp>
#include <optional>
#include <string>

#include "app/console/arguments.hpp"
#include "app/pictures/wide_scene.hpp"
#include "engine/render/ray_marcher.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::app {

struct PictureOptions {
  void add_to(Arguments& arguments);
  // Parses the values. Returns the exit code if something is wrong. Call it after parse().
  std::optional<int> check(const Arguments& arguments);

  // Valid after check().
  engine::RenderSettings settings;
  uint32_t paths = 0;  // paths a pixel; 0: quick shading
  // Where the eye is in the scene, and what it looks at.
  struct Eye {
    glm::dvec3 position, target;
    double vertical_fov = 45;
  };
  // For frame `frame` of `frames` round the world. If a scene camera is chosen, the scene must have it.
  Eye eye(const Scene& scene, const Box3& bounds, uint32_t frame, uint32_t frames) const;
  // Its view of a world that lies there in the scene. `with`: the picture's settings, whose lengths become the world's.
  engine::View view(const Eye& eye, const DrawnPlace& place, engine::RenderSettings& with) const;

  std::string view_name = "shaded";
  int64_t scene_camera = -1;

 private:
  std::string size_ = "1280x720", camera_, target_, outline_, sun_, sky_, background_ = "sky", tone_ = "filmic";
  double fov_ = 45, azimuth_ = 35, elevation_ = 22, exposure_ = 1, sun_strength_ = 3, sky_strength_ = 1,
         sun_size_ = 1.4, fog_ = 0, fog_height_ = 0;
  double aperture_ = 0, focus_ = 0, limit_ = 0;
  int64_t spp_ = 0, bounces_ = 4, samples_ = 2, shadow_rays_ = 1, ambient_rays_ = 4, ambient_reach_ = 64, seed_ = 0;
  bool ground_ = false;
  std::optional<glm::dvec3> eye_, at_;
};

}  // namespace quarry::app
