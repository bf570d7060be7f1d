// voxelize.hpp - triangles to surface voxels on host threads: sparse from the start, memory grows with the surface.
#pragma once

#include "voxel/mesh.hpp"
#include "voxel/progress.hpp"
#include "voxel/scene.hpp"

namespace quarry {

struct VoxelizeOptions {
  int32_t resolution = 256;  // voxels along the longest edge of the mesh's bounds
  double voxel_size = 0;     // > 0: wins
  uint32_t threads = 0;
  Progress progress;
};

// One volume holding every voxel whose cube a triangle touches (26-separating surface, exact triangle-box test), coloured from texture,
// vertex colours and factors, quantised to a palette of at most 255 materials; one instance, resting on y = 0 and centred in x and z.
// The same voxels and colours whatever the number of threads. Errors: invalid_argument (no triangles, not finite), out_of_bounds, cancelled.
Result<Scene> voxelize(const Mesh& mesh, const VoxelizeOptions& options);

}  // namespace quarry
