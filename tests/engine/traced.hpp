// SPDX-License-Identifier: Apache-2.0
// traced.hpp - shared by the tests of light paths: boxes of one material, diffuse_white, light from all directions,
// means.
#pragma once

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <glm/geometric.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "engine/pictures/path_tracer.hpp"
#include "tests/engine/scene_world.hpp"

namespace quarry::test {

inline void fill_box(SceneWorld& world, Int3 low, Int3 high, uint8_t material) {
  std::vector<std::pair<Int3, uint8_t>> voxels;
  for (int z = low.z; z <= high.z; ++z)
    for (int y = low.y; y <= high.y; ++y)
      for (int x = low.x; x <= high.x; ++x) voxels.push_back({{x, y, z}, material});
  REQUIRE(world.set(voxels));
}

// A purely diffuse material, white by default.
inline Material diffuse_white(uint8_t grey = 255) {
  Material m;
  m.r = m.g = m.b = grey;
  m.roughness = 1;
  return m;
}
inline Material lamp(float emission, uint8_t grey = 255) {
  Material m = diffuse_white(grey);
  m.emission = emission;
  return m;
}
inline double linear(uint8_t srgb) {
  return srgb <= 10 ? srgb / 255.0 / 12.92 : std::pow((srgb / 255.0 + 0.055) / 1.055, 2.4);
}

// No sun, and the same light from all directions.
inline engine::RenderSettings furnace(uint32_t width, uint32_t height) {
  engine::RenderSettings settings;
  settings.width = width;
  settings.height = height;
  settings.sun_strength = 0;
  settings.uniform_sky = true;
  return settings;
}

struct Traced {
  std::unique_ptr<engine::PathTracer> tracer;
  explicit Traced(engine::Device& device) {
    auto made = engine::PathTracer::create(device);
    REQUIRE(made);
    tracer = std::move(*made);
  }
  engine::PathPicture operator()(SceneWorld& world, const engine::View& view, const engine::RenderSettings& settings,
                                 uint32_t paths, bool layers = false) const {
    auto made = tracer->render(world.rendered(), view, settings, paths, layers);
    REQUIRE(made);
    return std::move(*made);
  }
};

inline engine::View fitted(SceneWorld& world, uint32_t width, uint32_t height) {
  glm::dvec3 position, target;
  engine::fit_camera(world.world().bounds(), 40, double(width) / height, 35, 28, position, target);
  return engine::look_at(position, target, 40, width, height);
}

inline engine::View down_at(double x, double y, double z, double fov, uint32_t width, uint32_t height) {
  return engine::look_at({x, y + 200, z}, {x, y, z}, fov, width, height);
}

inline double mean_of(const engine::PathPicture& picture) {
  double sum = 0;
  for (size_t i = 0; i < picture.radiance.size(); i += 4)
    sum += (double(picture.radiance[i]) + picture.radiance[i + 1] + picture.radiance[i + 2]) / 3;
  const size_t pixels = picture.radiance.size() / 4;
  return sum / double(pixels);
}

inline double worst_of(const engine::PathPicture& picture, double expected) {
  double worst = 0;
  for (size_t i = 0; i < picture.radiance.size(); ++i)
    if (i % 4 != 3) worst = std::max(worst, std::abs(picture.radiance[i] - expected));
  return worst;
}

using Vec = glm::dvec3;
// J. H. Lambert, 1760: the cosine-weighted share of a point's hemisphere that a polygon covers. The polygon must be
// wholly above the horizon.
inline double form_factor(Vec point, Vec normal, const std::vector<Vec>& polygon) {
  double sum = 0;
  for (size_t i = 0; i < polygon.size(); ++i) {
    const Vec a = glm::normalize(polygon[i] - point), b = glm::normalize(polygon[(i + 1) % polygon.size()] - point);
    sum += std::acos(std::clamp(glm::dot(a, b), -1.0, 1.0)) * glm::dot(glm::normalize(glm::cross(a, b)), normal);
  }
  return std::abs(sum) / (2 * 3.14159265358979);
}

}  // namespace quarry::test
