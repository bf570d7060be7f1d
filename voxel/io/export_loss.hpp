// SPDX-License-Identifier: Apache-2.0
// export_loss.hpp - counts the parts of a scene that a file format cannot hold, so that nothing is lost silently. The
// registry states what each format keeps (Format::keeps). docs/formats.md says what all formats of a kind lose (a mesh
// loses the inside).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "voxel/io/streams/format.hpp"

namespace quarry::io {

struct ExportLoss {
  const char* kind;  // "hidden_instances", for programs
  uint64_t count = 0;
  std::string text;  // "2 hidden instances (1204 voxels)", for people
};

// For a scene whose bricks are elsewhere.
std::vector<ExportLoss> export_losses(const Scene& scene, const std::vector<VolumeSummary>& volumes,
                                      const Format& format);

// Returns the losses in the order of their weight; empty if the file will hold the whole scene. It reads every brick
// once if the format does not keep all properties of voxels.
std::vector<ExportLoss> export_losses(const Scene& scene, const Format& format);

}  // namespace quarry::io
