// SPDX-License-Identifier: Apache-2.0
// palette.hpp - many looks to at most 255 materials. Exact if they suffice; else median cut, then two rounds of k-means.
// Deterministic: depends on the looks and their counts only.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "voxel/worlds/palette.hpp"
#include "voxel/voxelize/color.hpp"

namespace quarry::voxelize_detail {

struct LookCount {
  PackedLook look;
  uint64_t count;
};

struct Quantised {
  Palette palette;
  uint64_t mask = ~uint64_t(0);                   // looks that agree in these bits have the same material
  std::unordered_map<uint64_t, uint8_t> index;    // masked look -> material, 1..255
  uint8_t of(PackedLook look) const { return index.at(look & mask); }
  double rms_error = 0;                           // over all voxels, of one sRGB channel in bytes; 0: exact
};

// `looks`: distinct, in any order.
Quantised quantise(std::vector<LookCount> looks, uint32_t threads);
Material material_of(PackedLook look);

}  // namespace quarry::voxelize_detail
