// SPDX-License-Identifier: Apache-2.0
// write.hpp - the visible scene as one grid of voxels: .binvox (full or empty), .raw with an NRRD header beside it,
// .nrrd.
#pragma once

#include <filesystem>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "voxel/io/files/atomic_file.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::io {

class VisibleRegions;

// The cube from the lowest visible voxel on, its edge the longest of the scene's (what other readers of binvox expect);
// `translate` and `scale` put it back in its place. Memory beside the flattened scene: 8 bytes a voxel of one slice.
// Errors of both: invalid_argument (no visible voxel), out_of_bounds (flatten), unsupported (a grid of more than 2^36
// bytes), io, cancelled.
Result<void> write_binvox(const Scene& scene, const Destination& to, const Progress& progress);
// The same bytes, some layers of bricks at a time.
Result<void> write_binvox_regions(const VisibleRegions& voxels, const Destination& to, const Progress& progress);
// One byte a voxel, its material, 0 empty; x fastest, then y, then z; the box of the visible voxels. `.nrrd`: header
// and bytes in one file; else the header is in an .nhdr of the same stem. conflict: an .nhdr that Quarry did not write
// has that name. Memory: one slice.
Result<void> write_raw(const Scene& scene, const Destination& to, const Progress& progress);
Result<void> write_raw_regions(const VisibleRegions& voxels, const Destination& to, const Progress& progress);

}  // namespace quarry::io
