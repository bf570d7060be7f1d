// SPDX-License-Identifier: Apache-2.0
// write.hpp - a Scene as a MagicaVoxel .vox file: the inverse of the reader (vox/read.hpp), whose rules of axes and
// pivots it shares.
//
// Volumes become models in their order, instances transform nodes in theirs, group paths groups. A volume that does not
// fit a model (256 on each axis) becomes several, and each of its instances a group of them: nothing is cut off.
// Palette, materials, layers, names, cameras, and what the reader had left in the metadata go along; docs/formats.md
// says what is lost.
#pragma once

#include <filesystem>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "voxel/io/files/atomic_file.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::io {

constexpr int32_t kVoxModelEdge = 256;  // what MagicaVoxel loads, and what a byte counts

// Memory: 16 bytes a brick. Errors: invalid_argument (an instance of a volume that is not there), out_of_bounds (an
// instance farther than 2^24 from the origin), unsupported (more than 4 GiB, or more nodes than a reader takes), io,
// cancelled.
Result<void> write_vox(const Scene& scene, const Destination& to, const Progress& progress);

}  // namespace quarry::io
