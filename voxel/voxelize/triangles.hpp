// SPDX-License-Identifier: Apache-2.0
// triangles.hpp - triangles to voxels on host threads or CUDA: all stages are sparse, memory grows with the surface.
//
// The data flow: vertices snapped to fixed point -> (brick, triangle) pairs, sorted -> each brick's triangles
// tested exactly against its voxels (voxelize/overlap.hpp) -> each voxel's colour (voxelize/texturing.hpp) -> palette
// (voxelize/palette.hpp) -> inside, if asked for (voxelize/fill.hpp) -> Scene. voxelize/host.cpp and voxelize/cuda.cu
// make the same voxels and colours, bit for bit.
//
// Vertices are snapped to odd multiples of 2^-16 voxel, so that none lies on a voxel's face or centre line. After that
// all decisions are made in integers. If a resolution is given, a quarter of a voxel is left free on each side of the
// bounds, so that their faces are well inside the first and the last layer. A voxel is set if and only if a closed
// triangle shares a point with
//   cover, 26-separating   its closed cube ("any touch", conservative): no path over faces, edges or corners leaks
//   through a closed mesh.
//                          A mesh's face that lies exactly between two layers of voxels belongs to the upper one
//                          (greater coordinate), except on the far side of the bounds, where it belongs to the last
//                          layer inside.
//   thin, 6-separating     one of the three closed segments that join the centres of its opposite faces (triangles seen
//   edge-on along
//                          a segment do not count for it): no path over faces leaks through a closed mesh.
// Solid adds the voxels whose centre is inside. Three lines through the centre, along x, y and z, vote on it. A line
// votes for inside if the crossings below the centre are odd in number (parity), or do not cancel when counted by
// direction (winding). A line whose crossings over its whole length are not even in number (or do not sum to zero) has
// met a hole and has no vote. A centre with more votes for than against is inside. For a closed mesh all three agree. A
// hole misleads at most the lines through it. Inside voxels get the most frequent material of the surface's voxels.
// Without a surface (none), a voxel is set if and only if its centre is inside, and has its own colour if the
// 26-separating surface contains it. The colour is a mean over the triangles that set the voxel, weighted by their area
// in it, of the colour at each triangle's point nearest to the voxel's centre. Textures are filtered to the voxel's
// size. Sums are integers, so the order of triangles does not matter.
#pragma once

#include "base/progress.hpp"
#include "voxel/voxelize/device_sink.hpp"
#include "voxel/voxelize/mesh.hpp"
#include "voxel/voxelize/options.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry {

struct VoxelizeOptions {
  int32_t resolution = 256;  // voxels along the longest edge of the mesh's bounds
  double voxel_size = 0;     // if > 0, it is used instead of `resolution`
  SurfaceVoxels surface = SurfaceVoxels::cover;
  FillRule fill = FillRule::none;
  VoxelizeExecutor executor = VoxelizeExecutor::automatic;
  uint32_t devices = 1;  // region by region: how many CUDA devices, the first ones, share a mesh's regions; 0: all
  uint32_t threads = 0;
  std::string name = "mesh";  // of the volume and its instance
  Progress progress;
  // If given, and no fill and not the host's threads are asked for: CUDA makes the voxels if it can, on this device,
  // whatever the size of the job, and leaves them there; the scene's volume has no brick then. May be null.
  const DeviceSink* sink = nullptr;
};

// Makes a scene with one volume, which holds the voxels, and one instance, resting on y = 0 and centred in x and z; one
// taller than 4096 voxels is centred in y, too.
// Voxels are coloured from texture, vertex colours and factors, quantised to a palette of at most 255 materials (exact
// if they suffice; the error is in the metadata). Voxels and colours depend neither on the number of threads nor on the
// executor. Metadata: voxel_size (in the mesh's units), mesh_triangles, palette_distinct (materials before
// quantisation), palette_rms_error (of sRGB bytes, 0 if exact), voxelize_surface, voxelize_fill.
// Memory: some 100 bytes a brick that the surface touches and 16 a pair of brick and triangle, in addition to the
// scene's 650 bytes a brick (inside bricks too); solid: 8 bytes for each time a line through voxels' centres crosses
// the surface, and one layer of bricks of the bounds. Thread safety: free. Jobs on CUDA run one after another, in the
// process's one context.
// Errors: invalid_argument (no triangles, not finite, resolution, no surface and no fill, too thin for any voxel),
// out_of_bounds, out_of_memory, cancelled; with VoxelizeExecutor::cuda also not_found, unsupported, full,
// device.
Result<Scene> voxelize(const Mesh& mesh, const VoxelizeOptions& options);

// Starts CUDA, which takes a few tenths of a second once in a process. So the start can run while the file is read. It
// does nothing if there is no device or if the job is likely to run on the host.
void prepare_voxelize(const VoxelizeOptions& options);

// The frame of all stages of voxelize(), public for tests: voxel coordinate = (position - origin) * scale + shift.
struct VoxelFrame {
  double origin[3] = {0, 0, 0};  // the corner of the first voxel
  double scale = 1;              // voxels per unit
  Int3 dims;                     // voxels on each axis
  Int3 shift;                    // puts the mesh on y = 0, or about it, centred in x and z
};
Result<VoxelFrame> voxel_frame(const Mesh& mesh, const VoxelizeOptions& options);

}  // namespace quarry
