// voxelize.hpp - triangles to surface voxels on host threads: sparse from the start, memory grows with the surface.
//
// The way of the data: vertices snapped to fixed point -> (brick, triangle) pairs, sorted -> each brick's triangles tested exactly
// against its voxels (voxelize_overlap.hpp) -> each voxel's colour (voxelize_color.hpp) -> palette (voxelize_palette.hpp) -> Scene.
//
// Which voxels: vertices are snapped to odd multiples of 2^-16 voxel, so that none lies on a voxel's face; after that a voxel is set if
// and only if its closed cube and the closed triangle share a point, decided in integers. So a face that lies exactly between two
// layers of voxels belongs to the upper one (greater coordinate), except on the far side of the bounds, where it belongs to the last
// layer inside; everything else that a triangle touches is set ("any touch", 26-separating). Where a resolution is given, a quarter of a
// voxel is left free on each side of the bounds, so that their faces are well inside the first and the last layer.
// Which colour: the mean over the triangles that touch the voxel, weighted by their area inside it, of the colour at each triangle's
// point nearest to the voxel's centre; textures are filtered to the voxel's size. Sums are integers: no order of triangles matters.
#pragma once

#include "voxel/mesh.hpp"
#include "voxel/progress.hpp"
#include "voxel/scene.hpp"

namespace quarry {

struct VoxelizeOptions {
  int32_t resolution = 256;  // voxels along the longest edge of the mesh's bounds
  double voxel_size = 0;     // > 0: wins
  uint32_t threads = 0;
  std::string name = "mesh";  // of the volume and its instance
  Progress progress;
};

// One volume holding every voxel whose cube a triangle touches, coloured from texture, vertex colours and factors, quantised to a
// palette of at most 255 materials (exact if they suffice; the error is in the metadata); one instance, resting on y = 0 and centred
// in x and z. The same voxels and colours whatever the number of threads. Metadata: voxel_size (in the mesh's units), mesh_triangles,
// palette_distinct (looks before quantisation), palette_rms_error (of sRGB bytes, 0 if exact).
// Errors: invalid_argument (no triangles, not finite, resolution), out_of_bounds, out_of_memory, cancelled.
Result<Scene> voxelize(const Mesh& mesh, const VoxelizeOptions& options);

// What the two stages of voxelize() agree on, for tests and other executors: voxel coordinate = (position - origin) * scale + shift.
struct VoxelFrame {
  double origin[3] = {0, 0, 0};  // the corner of the first voxel
  double scale = 1;              // voxels per unit
  Int3 dims;                     // voxels on each axis
  Int3 shift;                    // puts the mesh on y = 0, centred in x and z
};
Result<VoxelFrame> voxel_frame(const Mesh& mesh, const VoxelizeOptions& options);

}  // namespace quarry
