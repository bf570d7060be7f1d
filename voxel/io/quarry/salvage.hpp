// SPDX-License-Identifier: Apache-2.0
// salvage.hpp - reads a damaged .quarry file past its damage: the pages of the database are read one by one, without
// the trees above them, and every whole row is kept. quarry/read.cpp is the reader for sound files. This one never
// writes.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "voxel/io/sqlite/pages.hpp"
#include "voxel/io/streams/salvage.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::io {

// Reads `file` and the sidecars of a killed program: the log of the last edits (FILE-wal), and the journal that undoes
// an unfinished edit (FILE-journal). Nothing is changed on disk. A chunk is used only if its checksum is right. A
// warning names the unused parts of the two. `warnings` may be null. Errors: not_found, io, conflict (it is being
// edited), out_of_memory, malformed_input (nothing is left of it). Memory: the file's bytes once, and the scene.
Result<Scene> salvage_store(const std::filesystem::path& file, Salvage& salvage, std::vector<std::string>* warnings,
                            const Progress& progress = {});

// Does the same for the bytes of the database and of the two sidecars.
Result<Scene> salvage_database(std::span<const uint8_t> database, const DatabaseJournals& journals,
                               uint64_t memory_limit, Salvage& salvage, std::vector<std::string>* warnings,
                               const Progress& progress = {});

}  // namespace quarry::io
