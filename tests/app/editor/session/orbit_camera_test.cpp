// SPDX-License-Identifier: Apache-2.0
// orbit_camera_test.cpp - the promises of the orbit camera: points and rays are inverse, panning and zooming keep the
// point under the mouse, a framed box is in view.
#include "engine/render/orbit_camera.hpp"

#include <catch2/catch.hpp>
#include <glm/geometric.hpp>

namespace orbit_camera_test {

using namespace quarry;
using namespace quarry::app;
using quarry::app::Ray;  // there is a ray of the renderer, too

TEST_CASE("camera: a point projected to the screen is met by the ray through that pixel") {
  OrbitCamera camera;
  camera.target = {10, -4, 7};
  camera.distance = 90;
  for (const double azimuth : {0.0, 35.0, 140.0, -95.0})
    for (const double elevation : {-60.0, 0.0, 25.0, 80.0}) {
      camera.azimuth = azimuth, camera.elevation = elevation;
      const glm::dvec3 point(15, 2, -3);
      const auto at = camera.project(point, 800, 600);
      REQUIRE(at);
      const Ray ray = camera.ray(at->x, at->y, 800, 600);
      // Distance of the point from the ray.
      const double along = glm::dot(point - ray.origin, ray.direction);
      CHECK(along > 0);
      CHECK(glm::distance(point, ray.origin + along * ray.direction) < 1e-3);
    }
}

TEST_CASE("camera: what is behind the eye has no place on the screen") {
  OrbitCamera camera;
  CHECK_FALSE(camera.project(2.0 * camera.position(), 640, 480));
}

TEST_CASE("camera: panning carries the target with the mouse, one pixel for one pixel") {
  OrbitCamera camera;
  camera.azimuth = 50, camera.elevation = 30;
  const glm::dvec3 before = camera.target;
  const auto start = camera.project(before, 1000, 700);
  camera.pan(37, -21, 700);
  const auto now = camera.project(before, 1000, 700);
  REQUIRE(start);
  REQUIRE(now);
  CHECK(now->x - start->x == Approx(37).margin(0.05));
  CHECK(now->y - start->y == Approx(-21).margin(0.05));
}

TEST_CASE("camera: zooming towards a point keeps its place on the screen") {
  OrbitCamera camera;
  const glm::dvec3 point(12, 9, -6);
  const auto before = camera.project(point, 900, 900);
  camera.zoom(0.5, &point);
  const auto after = camera.project(point, 900, 900);
  REQUIRE(before);
  REQUIRE(after);
  CHECK(after->x == Approx(before->x).margin(1e-2));
  CHECK(after->y == Approx(before->y).margin(1e-2));
  CHECK(after->depth == Approx(before->depth / 2).epsilon(1e-4));
}

TEST_CASE("camera: framing brings all corners of a box into view, whatever its shape and the window's") {
  for (const Box3& box :
       {Box3{{0, 0, 0}, {0, 0, 0}}, Box3{{-500, 0, -3}, {500, 20, 3}}, Box3{{100, 100, 100}, {110, 900, 110}}})
    for (const double aspect : {0.4, 1.0, 2.5}) {
      OrbitCamera camera;
      camera.frame(box, aspect);
      const uint32_t height = 500, width = uint32_t(height * aspect);
      for (int corner = 0; corner < 8; ++corner) {
        const glm::dvec3 point(corner & 1 ? box.max.x + 1.0 : box.min.x, corner & 2 ? box.max.y + 1.0 : box.min.y,
                               corner & 4 ? box.max.z + 1.0 : box.min.z);
        const auto at = camera.project(point, width, height);
        REQUIRE(at);
        CHECK((at->x >= -1 && at->x <= width + 1 && at->y >= -1 && at->y <= height + 1));
      }
    }
}

TEST_CASE("camera: elevation stops short of the poles, where up would have no direction") {
  OrbitCamera camera;
  camera.orbit(0, 1e6);
  CHECK(camera.elevation == 89);
  camera.orbit(0, -1e6);
  CHECK(camera.elevation == -89);
}

}  // namespace orbit_camera_test
