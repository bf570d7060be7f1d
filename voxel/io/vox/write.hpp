// SPDX-License-Identifier: Apache-2.0
// write.hpp - writes a Scene as a MagicaVoxel .vox file: the inverse of the reader (vox/read.hpp), whose rules of axes
// and pivots it shares.
//
// Volumes become models in their order, instances become transform nodes in theirs, and group paths become groups. A
// volume that does not fit a model (256 on each axis) becomes several, and each of its instances becomes a group of
// them, so nothing is cut off. Palette, materials, layers, names, cameras, and the reader's entries in the metadata are
// written too. docs/formats.md says what is lost.
#pragma once

#include <functional>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "voxel/io/files/atomic_file.hpp"
#include "voxel/worlds/region_sink.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::io {

class StoreReader;

constexpr int32_t kVoxModelEdge = 256;  // the limit of MagicaVoxel, and of byte coordinates

// Memory: 16 bytes a brick of a model, a third of a KiB for each model. Errors: invalid_argument (an instance of a
// missing volume), out_of_bounds (an instance farther than 2^24 from the origin), unsupported (more than 4 GiB, or more
// nodes than a reader accepts), io, cancelled.
Result<void> write_vox(const Scene& scene, const Destination& to, const Progress& progress);
// The same file of a world file whose bricks do not fit memory. `volumes`: the voxels and bounds of each. Models are
// written some layers of chunks (of 8^3 bricks, along x) at once, as many as fit `available_bytes`, but one at least:
// up to 8 MiB. A volume that becomes several models is read once more before. Errors: also those of StoreReader::read.
Result<RegionsDone> write_vox_of_world(StoreReader& store, const std::vector<VolumeSummary>& volumes,
                                       const std::function<uint64_t()>& available_bytes, const Destination& to,
                                       const Progress& progress);

}  // namespace quarry::io
