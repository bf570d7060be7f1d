// SPDX-License-Identifier: Apache-2.0
// palette.hpp - reduces many packed materials to at most 255. The result is exact if 255 suffice. Otherwise it is made
// by median cut and two rounds of k-means.
// It is deterministic: it depends only on the materials and their counts.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "voxel/voxelize/color.hpp"
#include "voxel/worlds/palette.hpp"

namespace quarry::voxelize_detail {

struct MaterialCount {
  PackedMaterial material;
  uint64_t count;
};

struct Quantised {
  Palette palette;
  uint64_t mask = ~uint64_t(0);                 // packed materials that agree in these bits have the same index
  std::unordered_map<uint64_t, uint8_t> index;  // masked packed material -> index, 1..255
  uint8_t of(PackedMaterial packed) const { return index.at(packed & mask); }
  double rms_error = 0;  // over all voxels, of one sRGB channel in bytes; 0: exact
};

// `materials` are distinct, in any order.
Quantised quantise(std::vector<MaterialCount> materials, uint32_t threads);
Material material_of(PackedMaterial packed);

}  // namespace quarry::voxelize_detail
