// export_loss.hpp - what of a scene a file format has no place for, counted, so that nothing is lost in silence. Which formats hold what
// is data in the registry (Format::keeps); what every row of a kind loses by its nature (a mesh its inside) is docs/formats.md's to say.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "voxel/io/format.hpp"

namespace quarry::io {

struct ExportLoss {
  const char* kind;   // "hidden_instances", for programs
  uint64_t count = 0;
  std::string text;   // "2 hidden instances (1204 voxels)", for people
};

// In the order of their weight; empty if the file will hold all of the scene. Looks at every brick once if the format does not keep
// all that voxels can have.
std::vector<ExportLoss> export_losses(const Scene& scene, const Format& format);

}  // namespace quarry::io
