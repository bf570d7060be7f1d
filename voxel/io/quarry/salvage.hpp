// SPDX-License-Identifier: Apache-2.0
// salvage.hpp - reads a damaged .quarry file past its damage: the pages of the database are read one by one, without
// the trees above them, and every whole row is kept. quarry/read.cpp is the reader for sound files. This one never
// writes. A scene that does not fit memory is read twice: first for all but its bricks, and where each chunk is; then
// its bricks, chunk by chunk in their order.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/memory_budget.hpp"
#include "base/progress.hpp"
#include "base/result.hpp"
#include "voxel/io/sqlite/pages.hpp"
#include "voxel/io/streams/salvage.hpp"
#include "voxel/worlds/region_sink.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::io {

// Reads `file` and the sidecars of a killed program: the log of the last edits (FILE-wal), and the journal that undoes
// an unfinished edit (FILE-journal). Nothing is changed on disk. A chunk is used only if its checksum is right. A
// warning names the unused parts of the two. `warnings` and `budget` may be null. Errors: not_found, io, conflict (it
// is being edited), out_of_memory (the bricks found do not fit the budget), malformed_input (nothing is left of it).
// Memory: 50 bytes for each page of the sidecars, and the scene.
Result<Scene> salvage_store(const std::filesystem::path& file, Salvage& salvage, std::vector<std::string>* warnings,
                            const Progress& progress = {}, const MemoryBudget* budget = nullptr);

// Reads the same scene, with the same losses and warnings, region by region. All of these are known when sink.begin is
// called. Memory: 50 bytes for each page of the sidecars, 100 for each chunk, the longest row, and the regions. Errors:
// the same, those of the sink.
Result<RegionsDone> salvage_store_regions(const std::filesystem::path& file, Salvage& salvage,
                                          std::vector<std::string>* warnings, const RegionSink& sink,
                                          const Progress& progress = {});

// Both do the same for the bytes of the database and of the two sidecars.
Result<Scene> salvage_database(const ByteSource& database, const DatabaseJournals& journals, uint64_t memory_limit,
                               Salvage& salvage, std::vector<std::string>* warnings, const Progress& progress = {});
Result<RegionsDone> salvage_database_regions(const ByteSource& database, const DatabaseJournals& journals,
                                             Salvage& salvage, std::vector<std::string>* warnings,
                                             const RegionSink& sink, const Progress& progress = {});

}  // namespace quarry::io
