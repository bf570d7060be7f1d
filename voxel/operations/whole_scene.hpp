// SPDX-License-Identifier: Apache-2.0
// whole_scene.hpp - whole-scene operations: a Scene in, a new Scene out, the input unchanged. Unchanged bricks are
// shared. Exact to the voxel, and the same for any number of threads. Not here: edits with undo (edit.hpp), file
// formats (io/).
//
// Scenes keep their structure (volumes, instances, layers, names) wherever that is meaningful; boolean() and what looks
// for connected parts work on visible voxels and return single volumes. Every call checks that instances refer to
// existing volumes (invalid_argument).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "voxel/operations/morphology.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry {

// The content of the box (world axes). An instance wholly inside is kept as it is; one that is partly inside gets a
// volume of its own; one with nothing inside is removed. Volumes without instances are removed too.
Result<Scene> crop(const Scene& scene, const Box3& box);

// Rotates and mirrors about the world's origin, cameras too. A quarter turn about y, from z to x: axis {2,1,0}, sign
// {1,1,-1}; a mirror in x: sign {-1,1,1}. Errors: invalid_argument (not one of the 48), out_of_bounds (an offset beyond
// 32 bits).
Result<Scene> turn(const Scene& scene, const Rotation& rotation);

// The error of a reduced palette: over all voxels, in sRGB bytes (root of the mean square, and the maximum).
struct PaletteError {
  uint32_t before = 0, after = 0;  // materials in use
  double rms = 0, worst = 0;
};

// All scenes in one: instances, layers and cameras are concatenated in the scenes' order. The overlap rule is the first
// scene's; the instances of scenes with the other rule are reversed. Equal materials become one; more than 255 are
// quantised, and `error` (may be null) reports the deviation. Metadata: the first scene's, without the entries about
// its file's palette and layers.
Result<Scene> merge(std::span<const Scene* const> scenes, PaletteError* error = nullptr);

// At most `count` (1..255) materials in use: the pair whose merging costs least, weighted by voxels, is merged until
// the count is reached. A merged material keeps the index and name of its commonest member and gets the mean look.
Result<Scene> quantise(const Scene& scene, uint32_t count, PaletteError* error = nullptr);

// Each volume without the voxels deeper than `thickness` below its surface (counted through faces).
Result<Scene> hollow(const Scene& scene, uint32_t thickness = 1);

// Each volume with its cavities filled: empty voxels that no path through faces connects with the outside. `material`
// 0: the volume's commonest. Memory: 1 byte for each brick of the volume's bounds; unsupported if these are more than
// 2^30 bricks.
Result<Scene> fill(const Scene& scene, uint8_t material = 0);

// Each volume after so many steps of dilation or erosion (morphology.hpp), by itself and in its own axes: volumes do
// not see each other. A turned instance therefore shows materials that came from the neighbour which is first in the
// axes of its volume. Errors: out_of_bounds (a voxel beyond 32 bits), cancelled.
Result<Scene> dilate(const Scene& scene, Connectivity neighbours, uint32_t steps, const Progress& progress = {});
Result<Scene> erode(const Scene& scene, Connectivity neighbours, uint32_t steps, const Progress& progress = {});

// Every voxel as a cube of n x n x n voxels (n 1..64), about the world's origin; cameras and declared sizes scale too,
// metadata "voxel_size" by 1/n. Errors: invalid_argument (n), out_of_bounds (a cell or offset beyond 32 bits). Memory:
// n^3 times the bricks.
Result<Scene> enlarge(const Scene& scene, uint32_t n);
// 1/n of the resolution (n 1..64): world cell c becomes floor(c / n), for each instance by itself. A cell is full if at
// least `threshold` (1..n^3) of its n^3 were; its material is their commonest (the lowest among equals).
Result<Scene> shrink(const Scene& scene, uint32_t n, uint32_t threshold = 1);

// One part of a split scene. Names are those of the scene, or "model-3", "colour-17", made distinct by an appended
// "-2", "-3"; regions are "x_y_z".
struct ScenePart {
  std::string name;
  Scene scene;
};
enum class SplitKind : uint8_t {
  // Each placed volume with voxels, once, at its own origin and without an instance's rotation.
  models,
  instances,  // each instance with voxels, in its place
  layers,     // the instances of each layer that has some with voxels; last, those without a layer
  materials,  // the voxels of each material in use, in their place
  regions,    // the content of each cube of edge^3 world cells that has voxels; cube (0,0,0) begins at the origin
};
// Every part keeps the palette and the metadata that still holds. Errors: invalid_argument (an edge below 1),
// unsupported (2^16 parts).
Result<std::vector<ScenePart>> split(const Scene& scene, SplitKind kind, int32_t edge = 0);

// The connected parts of the visible voxels (connected_parts.hpp), the largest first, each in its place and in one
// volume: "part-1", "part-2", ... What touches is connected, whatever volume or instance it is of. Layers and hidden
// instances are left out. Errors: unsupported (2^16 parts), out_of_bounds (flatten), cancelled.
Result<std::vector<ScenePart>> split_parts(const Scene& scene, Connectivity neighbours, const Progress& progress = {});
// Which connected parts of the visible voxels stay: the `most` largest (of equal ones the first in the order of
// connected_parts.hpp) of those that have at least `least` voxels.
struct PartChoice {
  Connectivity neighbours = Connectivity::corners;
  uint64_t most = UINT64_MAX, least = 0;
};
// The visible voxels of these parts, in one volume as split_parts() has it; but a scene that shows one volume, as it is
// and once, keeps its structure. Errors: out_of_bounds (flatten), cancelled.
Result<Scene> keep_parts(const Scene& scene, const PartChoice& choice, const Progress& progress = {});
// The same of a volume's bricks. Errors: those of ConnectedParts::find.
Result<BrickMap> keep_parts(const BrickMap& bricks, const PartChoice& choice, const Progress& progress = {});

enum class BooleanKind : uint8_t { union_of, intersection, difference };
// Combines the visible voxels of both, in world axes. Materials are those of `a` where it has the voxel. One volume,
// named `name`, in one instance. The palette is that of `a`, for union_of merged with that of `b` as in merge().
// Errors: out_of_bounds (flatten).
Result<Scene> boolean(const Scene& a, const Scene& b, BooleanKind kind, PaletteError* error = nullptr);
// The same of two volumes' bricks, whose materials are of one palette: those of `a` where it has the voxel. Bricks that
// come out as they are in `a`, or that `a` has not, are shared. Free-threaded. Cost: a pass over both lists, and 576
// bytes for each brick that is mixed. Errors: cancelled.
Result<BrickMap> boolean(const BrickMap& a, const BrickMap& b, BooleanKind kind, const Progress& progress = {});
// What is to be put into `before`, rising, so that it becomes `after`: the bricks that differ, none where one goes.
// Bricks that both share are not read. Free-threaded.
std::vector<BrickPut> differences(const BrickMap& before, const BrickMap& after);

using MaterialTable = std::array<uint8_t, 256>;  // old index -> new; [0] = 0
// The same voxels with other material indices. Where the table changes none, all bricks are shared. Free-threaded.
BrickMap remapped(const BrickMap& bricks, const MaterialTable& table);

}  // namespace quarry
