// SPDX-License-Identifier: Apache-2.0
// write.hpp - writes the visible scene as one grid of voxels: .binvox (full or empty), .raw with an NRRD header in a
// separate file, .nrrd.
#pragma once

#include <filesystem>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "voxel/io/files/atomic_file.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::io {

class VisibleRegions;

// Writes the cube from the lowest visible voxel on, with the scene's longest edge, as other readers of binvox expect.
// `translate` and `scale` restore its place. Memory in addition to the flattened scene: 8 bytes a voxel of one slice.
// Errors of both: invalid_argument (no visible voxel), out_of_bounds (flatten), unsupported (a grid of more than 2^36
// bytes), io, cancelled.
Result<void> write_binvox(const Scene& scene, const Destination& to, const Progress& progress);
// Writes the same bytes, some layers of bricks at a time.
Result<void> write_binvox_regions(const VisibleRegions& voxels, const Destination& to, const Progress& progress);
// Writes the box of the visible voxels, one byte a voxel: its material, 0 empty. x runs fastest, then y, then z.
// `.nrrd` has header and bytes in one file. Otherwise the header is in an .nhdr of the same stem. Further error:
// conflict, if an .nhdr that Quarry did not write has that name. Memory: one slice.
Result<void> write_raw(const Scene& scene, const Destination& to, const Progress& progress);
Result<void> write_raw_regions(const VisibleRegions& voxels, const Destination& to, const Progress& progress);

}  // namespace quarry::io
