// SPDX-License-Identifier: Apache-2.0
// tools_test.cpp - the promises of brushes and strokes: where they work, that the shown box holds all changes, no gaps
// and no drilling.
#include "app/editor/session/tools.hpp"

#include <catch2/catch.hpp>

#include "voxel/worlds/document.hpp"

namespace tools_test {

using namespace quarry;
using namespace quarry::app;
using quarry::app::Ray;  // there is a ray of the renderer, too

namespace {

Document floor_document() {
  Scene scene;
  scene.volumes.push_back({"floor", {}, {}});
  for (int x = -20; x < 20; ++x)
    for (int z = -20; z < 20; ++z) scene.volumes[0].bricks.set({x, 0, z}, 5);
  scene.instances.push_back({});
  return std::move(*Document::create(std::move(scene)));
}

Ray straight_down(double x, double z) { return {{x, 50, z}, {0, -1, 0}}; }

PickVoxel picked_in(const Document& document) {
  return [&document](const Ray& ray) { return pick_voxel(document.world(), ray); };
}

}  // namespace

TEST_CASE("tools: adding works in front of the picked face, everything else at the picked voxel") {
  const Pick pick{{4, 0, 4}, {0, 1, 0}, 1, 5, false};
  Brush brush;
  brush.mode = Mode::add;
  CHECK(brush_voxel(brush, pick) == Int3{4, 1, 4});
  for (const Mode mode : {Mode::remove, Mode::paint, Mode::replace}) {
    brush.mode = mode;
    CHECK(brush_voxel(brush, pick) == Int3{4, 0, 4});
  }
}

TEST_CASE("tools: the box shown before an edit holds every voxel that the edit changes") {
  for (const BrushShape shape : {BrushShape::sphere, BrushShape::cube, BrushShape::box, BrushShape::line})
    for (const int radius : {0, 1, 5}) {
      Document document = std::move(*Document::create_empty());
      Brush brush;
      brush.shape = shape;
      brush.radius = radius;
      const Edit edit = brush_edit(brush, {3, -2, 7}, {-9, 4, 7});
      const auto record = document.apply(0, edit);
      REQUIRE(record);
      REQUIRE(document.world().voxel_count() > 0);
      const Box3 touched = touched_box(edit), real = document.world().bounds();
      CHECK(united(touched, real) == touched);
      // The box is no larger than necessary.
      CHECK(touched == real);
    }
}

TEST_CASE("tools: a stroke that adds stays on the plane where it began and leaves no gap") {
  Document document = floor_document();
  Brush brush;
  brush.shape = BrushShape::sphere;
  brush.radius = 1;
  const auto start = pick_voxel(document.world(), straight_down(-15.5, 0.5));
  REQUIRE(start);
  Stroke stroke(brush, *start);
  for (const Edit& edit : stroke.begin()) REQUIRE(document.apply(0, edit));
  for (const double x : {-14.5, -2.5, 9.5})
    for (const Edit& edit : stroke.move(picked_in(document), straight_down(x, 0.5))) REQUIRE(document.apply(0, edit));
  CHECK(document.world().bounds().max.y == 2);  // the centre stays at 1, whatever was added under the mouse
  for (int x = -15; x <= 9; ++x) CHECK(document.world().get({x, 1, 0}) == brush.material);
}

TEST_CASE("tools: a stroke that removes does not drill") {
  Scene scene;
  scene.volumes.push_back({"block", {}, {}});
  for (int x = 0; x < 16; ++x)
    for (int y = 0; y < 16; ++y)
      for (int z = 0; z < 16; ++z) scene.volumes[0].bricks.set({x, y, z}, 1);
  scene.instances.push_back({});
  Document document = std::move(*Document::create(std::move(scene)));
  Brush brush;
  brush.mode = Mode::remove;
  brush.shape = BrushShape::cube;
  brush.radius = 0;
  const auto start = pick_voxel(document.world(), straight_down(1.5, 8.5));
  REQUIRE(start);
  Stroke stroke(brush, *start);
  for (const Edit& edit : stroke.begin()) REQUIRE(document.apply(0, edit));
  for (const double x : {5.5, 1.5, 12.5})  // back over voxels that are already removed
    for (const Edit& edit : stroke.move(picked_in(document), straight_down(x, 8.5))) REQUIRE(document.apply(0, edit));
  for (int x = 1; x <= 12; ++x) {
    CHECK(document.world().get({x, 15, 8}) == 0);
    CHECK(document.world().get({x, 14, 8}) == 1);
  }
}

TEST_CASE("tools: replacing takes the material that the stroke began on") {
  Document document = floor_document();
  Brush brush;
  brush.mode = Mode::replace;
  brush.material = 9;
  const auto start = pick_voxel(document.world(), straight_down(0.5, 0.5));
  REQUIRE(start);
  const Stroke stroke(brush, *start);
  const auto edits = stroke.begin();
  REQUIRE(edits.size() == 1);
  CHECK(edits[0].from == 5);
  CHECK(edits[0].material == 9);
}

TEST_CASE("tools: box and line do nothing until the release, then one edit from end to end") {
  Document document = floor_document();
  for (const BrushShape shape : {BrushShape::box, BrushShape::line}) {
    Brush brush;
    brush.shape = shape;
    brush.radius = 0;
    const auto start = pick_voxel(document.world(), straight_down(2.5, 2.5));
    REQUIRE(start);
    Stroke stroke(brush, *start);
    CHECK(stroke.begin().empty());
    CHECK(stroke.move(picked_in(document), straight_down(8.5, 6.5)).empty());
    const auto edits = stroke.end();
    REQUIRE(edits.size() == 1);
    CHECK(touched_box(edits[0]) == Box3{{2, 1, 2}, {8, 1, 6}});
    CHECK(touched_box(stroke.preview()) == touched_box(edits[0]));
  }
}

TEST_CASE("tools: a click with the connected shape paints what is connected with the voxel that it meets, in add too") {
  Document document = floor_document();
  const auto start = pick_voxel(document.world(), straight_down(2.5, 2.5));
  REQUIRE(start);
  for (const Mode mode : {Mode::add, Mode::paint, Mode::remove}) {
    Brush brush;
    brush.shape = BrushShape::connected;
    brush.mode = mode;
    brush.material = 77;
    Stroke stroke(brush, *start);
    const auto edits = stroke.begin();
    REQUIRE(edits.size() == 1);
    CHECK(edits[0].a == start->voxel);
    CHECK(edits[0].mode == (mode == Mode::add ? Mode::paint : mode));
    CHECK(touched_box(edits[0]) == Box3{start->voxel, start->voxel});
    CHECK(stroke.move(picked_in(document), straight_down(8.5, 6.5)).empty());
    CHECK(stroke.end().empty());
    const uint64_t before = document.world().voxel_count();
    const auto record = document.apply(0, edits[0]);
    REQUIRE(record);
    CHECK((*record)->voxels_changed == before);  // the floor is of one piece
    CHECK(document.world().get(start->voxel) == (mode == Mode::remove ? 0 : 77));
    if (mode != Mode::remove) REQUIRE(document.undo());
  }
}

TEST_CASE("tools: every mode and shape is found by its name") {
  for (const Mode mode : {Mode::add, Mode::remove, Mode::paint, Mode::replace, Mode::fill})
    CHECK(mode_from_name(mode_name(mode)) == mode);
  for (const BrushShape shape :
       {BrushShape::sphere, BrushShape::cube, BrushShape::box, BrushShape::line, BrushShape::connected})
    CHECK(brush_shape_from_name(brush_shape_name(shape)) == shape);
  CHECK_FALSE(mode_from_name("erase"));
  CHECK_FALSE(brush_shape_from_name(""));
}

}  // namespace tools_test
