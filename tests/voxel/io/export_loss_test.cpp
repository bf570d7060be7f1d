// SPDX-License-Identifier: Apache-2.0
// export_loss_test.cpp - data that a format cannot hold is counted; data that it holds is not.
#include "voxel/io/export_loss.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "tests/voxel/scene_cells.hpp"
#include "voxel/io/formats.hpp"

namespace export_loss_test {

using namespace quarry;
using namespace quarry::test;

namespace {

std::map<std::string, uint64_t> losses(const Scene& scene, const char* file) {
  const auto format = io::format_for_writing(file);
  REQUIRE(format);
  std::map<std::string, uint64_t> out;
  for (const io::ExportLoss& loss : io::export_losses(scene, **format)) {
    CHECK(loss.text.find(std::to_string(loss.count)) != std::string::npos);
    out[loss.kind] = loss.count;
  }
  return out;
}
using Counts = std::map<std::string, uint64_t>;

}  // namespace

TEST_CASE("export_losses: each kind is counted where the format has no place for it, and nowhere else") {
  Scene s = random_scene(1, 5);  // 3 named volumes, 6 named instances of which 2 are hidden, 2 named layers, a camera
  s.volumes.push_back({"spare", {}, {}});
  s.volumes[3].bricks.set({0, 0, 0}, 200);  // not placed
  s.palette.materials[2].metalness = 1;
  s.palette.materials[3].emission = 2;
  s.palette.materials[200].metalness = 1;
  s.palette.names[1] = "gold";
  CHECK(losses(s, "a.quarry").empty());
  CHECK(losses(s, "a.vox").empty());
  const Counts scene{{"hidden_instances", 2}, {"unplaced_models", 1}, {"instances", 4},
                     {"names", 10},           {"layers", 2},          {"cameras", 1}};
  Counts mesh = losses(s, "a.glb");
  CHECK(mesh == scene);
  CHECK(losses(s, "a.obj") == scene);
  Counts colours_only = scene;
  colours_only["surfaces"] = 2;
  colours_only["material_names"] = 1;
  CHECK(losses(s, "a.ply") == colours_only);
  CHECK(losses(s, "a.raw") == colours_only);
  Counts nothing = colours_only;
  nothing["colours"] = 5;
  CHECK(losses(s, "a.binvox") == nothing);
}

TEST_CASE("export_losses: the name of a scene's only model is its file's, and an empty scene loses nothing") {
  Scene s;
  s.volumes.push_back({"bunny", {}, {}});
  s.volumes[0].bricks.set({1, 2, 3}, 4);
  s.instances.push_back({0, {}, {}, -1, false, "bunny", ""});
  CHECK(losses(s, "a.glb").empty());
  CHECK(losses(s, "a.binvox") == Counts{{"colours", 1}});
  CHECK(losses(Scene{}, "a.binvox").empty());
}

}  // namespace export_loss_test
