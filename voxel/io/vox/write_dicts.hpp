// SPDX-License-Identifier: Apache-2.0
// write_dicts.hpp - the dictionaries of a .vox file to be: layers, materials, cameras. Internal to the writer
// (vox/write.cpp). Where the scene still is what the reader made of a dictionary, that dictionary goes back as it was,
// with the fields that we have no place for; where the scene was changed, a new one is made from it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "voxel/worlds/scene.hpp"

namespace quarry::io::vox {

using OwnedDict = std::vector<std::pair<std::string, std::string>>;
struct NumberedDict {
  int32_t id = 0;
  OwnedDict dict;
};

// As many as the scene has layers, in their order; ids are distinct.
std::vector<NumberedDict> layer_dicts(const Scene& scene);
std::vector<NumberedDict> material_dicts(const Scene& scene);
std::vector<NumberedDict> camera_dicts(const Scene& scene);
// The bytes of a metadata entry of exactly `count` bytes in hex; nothing if it is not there or not that.
std::optional<std::vector<uint8_t>> hex_entry(const Scene& scene, const char* key, size_t count);

}  // namespace quarry::io::vox
