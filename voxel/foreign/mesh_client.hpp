// SPDX-License-Identifier: Apache-2.0
// mesh_client.hpp - meshes of any known file, read in a process of its own.
#pragma once

#include <filesystem>

#include "base/result.hpp"
#include "voxel/io/streams/format.hpp"
#include "voxel/voxelize/mesh.hpp"

namespace quarry {

// Reads a mesh in a separate process with limits on time and memory. The program is `quarry-mesh-reader`. It is looked
// for at $QUARRY_MESH_READER, else next to this executable or library, in ../libexec/quarry relative to it, or where it
// was installed. If it crashes, this process still gets one clean error that begins with the file's name. The options
// `up`, `memory_limit_bytes`, `time_limit_s`, `progress.cancel` and `warnings` are used. Any number of threads may read
// at once. Errors: not_found (file or reader), malformed_input (crash of the library, no faces, positions that are not
// finite), out_of_memory, unsupported, io (time limit), cancelled.
Result<Mesh> read_mesh(const std::filesystem::path& file, const io::ReadOptions& options);

}  // namespace quarry
