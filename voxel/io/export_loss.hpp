// SPDX-License-Identifier: Apache-2.0
// export_loss.hpp - what of a scene a file format has no place for, counted, so that nothing is lost in silence. Which
// formats hold what is data in the registry (Format::keeps); what every row of a kind loses by its nature (a mesh its
// inside) is docs/formats.md's to say.
#pragma once

#include <array>
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

// What counts of a volume's bricks here, gathered while they pass by.
struct VolumeSummary {
  uint64_t voxels = 0;
  Box3 bounds;                           // of the voxels
  std::array<uint8_t, 256> materials{};  // 1: there is one of it
  void add(const BrickMap& bricks);
};
// For a scene whose bricks are elsewhere.
std::vector<ExportLoss> export_losses(const Scene& scene, const std::vector<VolumeSummary>& volumes,
                                      const Format& format);

// In the order of their weight; empty if the file will hold all of the scene. Looks at every brick once if the format
// does not keep all that voxels can have.
std::vector<ExportLoss> export_losses(const Scene& scene, const Format& format);

}  // namespace quarry::io
