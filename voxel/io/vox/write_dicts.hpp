// SPDX-License-Identifier: Apache-2.0
// write_dicts.hpp - the dictionaries for a new .vox file: layers, materials, cameras. Internal to the writer
// (vox/write.cpp). If the scene still is what the reader made of a dictionary, that dictionary is written unchanged,
// with the fields that a Scene has no place for. If the scene was changed, a new one is made from it.
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

// Returns one for each layer of the scene, in their order. Ids are distinct.
std::vector<NumberedDict> layer_dicts(const Scene& scene);
std::vector<NumberedDict> material_dicts(const Scene& scene);
std::vector<NumberedDict> camera_dicts(const Scene& scene);
// The bytes of a metadata entry of exactly `count` bytes in hex; nothing if it is missing or different.
std::optional<std::vector<uint8_t>> hex_entry(const Scene& scene, const char* key, size_t count);

}  // namespace quarry::io::vox
