// SPDX-License-Identifier: Apache-2.0
// flattening.hpp - what a scene of any volumes and instances shows, laid into the world of a device by the device
// itself: it gets the bricks of each volume that is shown once, and a short table of instances.
#pragma once

#include "base/progress.hpp"
#include "base/result.hpp"
#include "voxel/device/store.hpp"
#include "voxel/io/quarry/reader.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::engine {

// The store, which is empty, becomes what flatten() makes of the visible scene. With a `file` the scene has no bricks:
// they are sent as they are decoded. All threads send, and each has at most some MiB of bricks. Traffic and memory:
// device::PlacedVolumes and Store::flatten. Errors: invalid_argument and out_of_bounds as flatten()'s, which nothing
// has been made for; full, out_of_memory, device; of a file its own.
Result<device::Store::Flattened> flatten_on_device(device::Store& store, const Scene& scene, io::StoreReader* file,
                                                   const Progress& progress);

}  // namespace quarry::engine
