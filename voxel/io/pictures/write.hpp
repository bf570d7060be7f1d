// SPDX-License-Identifier: Apache-2.0
// write.hpp - PNG pictures of voxels without a renderer: seen from above, as a height map, or layer by layer
// (docs/formats.md describes the pixels). Perspective pictures with light are elsewhere (engine/, `quarry render`).
//
// All show the box of the visible voxels: x to the right, z downwards, one pixel a column (or a voxel of the layer).
// Empty pixels are clear. The voxels may be those of a scene that does not fit memory: 12 bytes a pixel do.
// Errors: invalid_argument (nothing is visible), out_of_memory (the picture), io, cancelled, those of
// VisibleRegions.
#pragma once

#include <filesystem>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "voxel/io/files/atomic_file.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::io {

class VisibleRegions;

// Writes the colour of each column's highest voxel, RGBA of 8 bits.
Result<void> write_top_view(const Scene& scene, const Destination& to, const Progress& progress);
Result<void> write_top_view_regions(const VisibleRegions& voxels, const Destination& to, const Progress& progress);

// The range of cells of a height map of so many layers: 256, or the next power of two. `--map-height` needs this value
// to read it again.
uint32_t height_map_range(uint32_t layers);
// Writes the height of each column's highest voxel above the box's lowest layer, grey and alpha of 16 bits: value
// h * 65536 / range for cell h.
Result<void> write_height_map(const VisibleRegions& voxels, const Destination& to, const Progress& progress);

// Writes a folder with a picture of each layer, RGBA of 8 bits. "0000.png" is the lowest. The folder must not exist. It
// appears whole or not at all.
Result<void> write_slices(const VisibleRegions& voxels, const Destination& to, const Progress& progress);

}  // namespace quarry::io
