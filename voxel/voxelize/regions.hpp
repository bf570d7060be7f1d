// SPDX-License-Identifier: Apache-2.0
// regions.hpp - triangles to voxels region by region, if all of them would not fit in memory, or several CUDA devices
// are to share them. Voxels, materials, palette and metadata are the same as from voxelize() in voxelize/triangles.hpp,
// which describes them.
//
// A region is a box of chunks (8^3 bricks). Regions are ordered by x, then y, then z, so that a world file can be
// written region by region. The data flow: pairs of brick and triangle counted by chunk -> boxes of chunks that fit
// -> each box: its triangles' pairs, voxels, packed materials -> (all boxes once, for the palette; their packed
// materials wait on disk, or are made again) -> indices -> the inside: crossings of one slab of boxes, parity or
// winding of lines along x carried from slab to slab -> bricks, passed to the sink and freed.
#pragma once

#include "voxel/voxelize/triangles.hpp"
#include "voxel/worlds/region_sink.hpp"

namespace quarry {

// Regions are made by host threads; or by `options.devices` CUDA devices, if the executor is cuda, or automatic and the
// job is large. Those have the mesh each and take the next region when they are done with one, ahead of the one that is
// being passed on, which bounds what waits. A region that does not fit a device's memory is made by the host.
// Memory: that of the mesh and 12 bytes a vertex, 6 a triangle, 4 a chunk of the bounds; solid: 208 bytes for each
// brick of the bounds' side perpendicular to x (winding: 464; 192 more if a line has met a hole) and 16 bytes a
// crossing of one slab; textured: 48 bytes a distinct material. The rest is sized by `available_bytes`, and on devices
// by half of what is free there. Disk, if textured, in several regions and by host threads: 8 bytes a voxel and 80 a
// brick of the surface. Without a place for them (sink.beside), and on devices, the mesh is voxelised twice. Thread
// safety: free. The sink is called on the calling thread. Errors: as voxelize(), those of the sink; out_of_memory with
// the numbers if even a region of a single chunk does not fit.
Result<RegionsDone> voxelize_in_regions(const Mesh& mesh, const VoxelizeOptions& options, const RegionSink& sink);

}  // namespace quarry
