// SPDX-License-Identifier: Apache-2.0
// salvage.hpp - a damaged .quarry file read past its damage: pages of the database are looked at one by one, whatever
// the trees above them say, and every row that is whole is kept. quarry/read.cpp is the reader for sound files; this
// one never writes.
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

// Reads `file` and what a program that was killed left beside it: the log of the last edits (FILE-wal), and the journal
// that undoes an edit that was not finished (FILE-journal). Nothing is changed on disk. A chunk is taken only if its
// checksum is right. What of the two was not used is said. `warnings` may be null. Errors: not_found, io, conflict
// (somebody edits it), out_of_memory, malformed_input (nothing is left of it). Memory: the file's bytes once, and the
// scene.
Result<Scene> salvage_store(const std::filesystem::path& file, Salvage& salvage, std::vector<std::string>* warnings,
                            const Progress& progress = {});

// The same from bytes of the database and of the two beside it.
Result<Scene> salvage_database(std::span<const uint8_t> database, const DatabaseJournals& journals,
                               uint64_t memory_limit, Salvage& salvage, std::vector<std::string>* warnings,
                               const Progress& progress = {});

}  // namespace quarry::io
