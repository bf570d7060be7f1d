// SPDX-License-Identifier: Apache-2.0
// formats.hpp - the rows that triangle meshes add to the table of file formats (voxel/io/formats.hpp).
#pragma once

#include <span>

#include "voxel/io/streams/format.hpp"

namespace quarry::io {

// Static; any thread.
std::span<const Format> mesh_formats();

}  // namespace quarry::io
