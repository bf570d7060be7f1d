// SPDX-License-Identifier: Apache-2.0
// attached.hpp - the file that follows a world of the C interface: open for editing, and as the world was when it was
// last flushed.
#pragma once

#include <cstdint>

#include "voxel/io/quarry/store.hpp"
#include "voxel/worlds/palette.hpp"

namespace quarry::c_api {

// One thread at a time. Destroying it makes the file a single one again.
struct AttachedFile {
  io::Store store;
  Palette palette;  // the file's
  // The number in the file's history of the first record that the world began with: below 0 by as many as the world had
  // dropped when the file was written.
  int64_t first_record = 0;
};

}  // namespace quarry::c_api
