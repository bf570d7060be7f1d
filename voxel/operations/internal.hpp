// SPDX-License-Identifier: Apache-2.0
// internal.hpp - what the files of operations/whole_scene.hpp share.
#pragma once

#include <array>
#include <vector>

#include "voxel/operations/whole_scene.hpp"

namespace quarry::operations_detail {

Result<void> check(const Scene& scene);
// Removes metadata that a reader left about a file's palette, materials or layers and that no longer holds.
void forget_file_tables(Scene& scene);

struct WeightedMaterial {
  Material material;
  uint64_t voxels = 0;
};
struct QuantisedMaterials {
  std::vector<uint32_t> cluster;    // of each input
  std::vector<Material> materials;  // of each cluster
  std::vector<uint32_t> commonest;  // the input with the most voxels in each cluster
  PaletteError error;
};
// At most `count` clusters. Inputs without voxels come last and have no weight.
QuantisedMaterials quantise_materials(const std::vector<WeightedMaterial>& inputs, uint32_t count);

}  // namespace quarry::operations_detail
