// SPDX-License-Identifier: Apache-2.0
// whole_scene.hpp - whole-scene operations: a Scene in, a new Scene out, the old one untouched. Bricks that do not
// change are shared. Exact to the voxel and the same whatever the number of threads. Not here: edits with undo
// (edit.hpp), what a file format needs (io/).
//
// Scenes keep their structure (volumes, instances, layers, names) wherever the operation has a meaning for it;
// boolean() is about the voxels that one sees and gives a single volume. Every call checks that instances show volumes
// that are there (invalid_argument).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry {

// What lies in the box (world axes). An instance that lies in it whole is kept as it is, one that lies partly in it
// gets a volume of its own, one of which nothing is left goes. Volumes that nothing shows any more go too.
Result<Scene> crop(const Scene& scene, const Box3& box);

// Turns and mirrors about the world's origin, cameras too. A quarter turn about y, from z to x: axis {2,1,0}, sign
// {1,1,-1}; a mirror in x: sign {-1,1,1}. Errors: invalid_argument (not one of the 48), out_of_bounds (an offset beyond
// 32 bits).
Result<Scene> turn(const Scene& scene, const Rotation& rotation);

// How much a palette that had to become smaller is off: over all voxels, in sRGB bytes (root of the mean square, and
// the worst).
struct PaletteError {
  uint32_t before = 0, after = 0;  // materials in use
  double rms = 0, worst = 0;
};

// All scenes in one, in their order: instances, layers and cameras one behind the other, each scene's under the overlap
// rule of the first (others' instances are reversed where their rule is the other one). Equal materials become one;
// more than 255 are quantised, and `error` (may be null) says how far off they are. Metadata: the first scene's,
// without what described its file's palette and layers.
Result<Scene> merge(std::span<const Scene* const> scenes, PaletteError* error = nullptr);

// At most `count` (1..255) materials in use: the pair whose merging hurts least is merged, weighed by voxels, until
// they are so few. A merged material keeps the index and name of its commonest and the mean of the looks.
Result<Scene> quantise(const Scene& scene, uint32_t count, PaletteError* error = nullptr);

// Each volume without what is deeper than `thickness` voxels below its surface (counted through faces).
Result<Scene> hollow(const Scene& scene, uint32_t thickness = 1);

// Each volume with its cavities filled: empty voxels that no way through faces connects with the outside. `material` 0:
// the volume's commonest. Memory: 1 byte for each brick of the volume's bounds; unsupported if these are more than 2^30
// bricks.
Result<Scene> fill(const Scene& scene, uint8_t material = 0);

// Every voxel as a cube of n x n x n voxels (n 1..64), about the world's origin; cameras and declared sizes too,
// metadata "voxel_size" by 1/n.
// Errors: invalid_argument (n), out_of_bounds (a cell or offset beyond 32 bits). Memory: n^3 times the bricks.
Result<Scene> enlarge(const Scene& scene, uint32_t n);
// 1/n of the resolution (n 1..64): world cell c becomes floor(c / n), for each instance by itself. A cell is full if at
// least `threshold` (1..n^3) of its n^3 were; its material is their commonest (of equals the lowest).
Result<Scene> shrink(const Scene& scene, uint32_t n, uint32_t threshold = 1);

// A scene in pieces. Names are as the scene has them, or "model-3", "colour-17", made distinct by "-2", "-3" behind
// them; of regions "x_y_z".
struct ScenePart {
  std::string name;
  Scene scene;
};
enum class SplitKind : uint8_t {
  // Each volume that has voxels and is placed, once, upright and without instances' rotation, at its own origin.
  models,
  instances,  // each instance with voxels, in its place
  layers,     // the instances of each layer that has some with voxels; those of none last
  materials,  // the voxels of each material in use, in their place
  regions,    // what lies in each cube of edge^3 world cells that has voxels; cube (0,0,0) begins at the origin
};
// Every part keeps the palette and the metadata that still hold. Errors: invalid_argument (an edge below 1),
// unsupported (2^16 parts).
Result<std::vector<ScenePart>> split(const Scene& scene, SplitKind kind, int32_t edge = 0);

enum class BooleanKind : uint8_t { union_of, intersection, difference };
// Of the visible voxels of both, in world axes. Materials are those of `a` where it has the voxel. One volume, named
// `name`, under one instance; palette of `a`, for union_of merged with that of `b` as merge() does it. Errors:
// out_of_bounds (flatten).
Result<Scene> boolean(const Scene& a, const Scene& b, BooleanKind kind, PaletteError* error = nullptr);

}  // namespace quarry
