// SPDX-License-Identifier: Apache-2.0
// surface_mesh.hpp - the surface of voxels as triangles without cracks: faces of one material are merged into
// rectangles.
//
// Data flow: bricks -> faces, slice by slice -> rectangles (greedy: runs along one axis, equal runs merged along the
// other) -> triangles. Every rectangle's edge passes through all corners of others on it, so no vertex is in the middle
// of an edge. Along each piece of an edge, equally many triangles run in either direction: the mesh is closed edge by
// edge, not only visually. Greedy merging after M. Lysenko, "Meshing in a Minecraft Game" (2012); ours works on sparse
// runs instead of dense slices.
//
// Voxels are opaque or clear (material.transparency > 0). A face is made where the kind changes. So the opaque voxels'
// surface is closed by itself, the clear ones' too, and where they touch both have a face (back to back). Files are
// written elsewhere (io/meshes/write.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "base/progress.hpp"
#include "voxel/worlds/palette.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry {

struct SurfaceMesh {
  struct Part {  // all triangles of one material
    uint8_t material = 0;
    std::vector<uint32_t> indices;  // 3 per triangle, counter-clockwise from outside
  };
  std::vector<Int3> positions;  // corners of voxels, each once, rising
  std::vector<Part> parts;      // rising material; none is empty
  uint64_t faces = 0;           // of voxels, before merging
  uint64_t rectangles = 0;

  uint64_t triangle_count() const;
};

constexpr int32_t kMostSurfaceCoordinate = (1 << 20) - 8;  // corners are packed into 63 bits

// Whether a surface of these voxels, whose corners are multiplied by `scale` afterwards, can be made. Errors:
// out_of_bounds.
Result<void> check_surface_extent(const Box3& voxels, int32_t scale);

struct SurfaceMeshOptions {
  uint32_t threads = 0;
  Progress progress;
};

// Coordinates must have an absolute value below kMostSurfaceCoordinate. The mesh does not depend on the number of
// threads. Memory: 8 bytes a face of one layer of bricks for each thread, 24 a rectangle, some 80 a vertex. Errors:
// cancelled, unsupported (2^32 vertices), out_of_bounds.
Result<SurfaceMesh> surface_mesh(const BrickMap& bricks, const Palette& palette,
                                 const SurfaceMeshOptions& options = {});

}  // namespace quarry
