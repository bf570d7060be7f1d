// SPDX-License-Identifier: Apache-2.0
// info_box.hpp - `quarry info --box`: what is in a box of a file.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "app/console/load.hpp"
#include "voxel/io/formats.hpp"

namespace quarry::app {

// The visible voxels of the box (world axes, y up). Of a world file only the chunks are read that can have some.
Result<nlohmann::json> describe_box(const std::string& file, const io::Format& format, const LoadOptions& load,
                                    const Box3& box);
void print_box(const nlohmann::json& described);

}  // namespace quarry::app
