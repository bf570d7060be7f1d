// SPDX-License-Identifier: Apache-2.0
// formats.hpp - the table of file formats: one row per format, one file per reader or writer. It also reads and writes
// for programs that need not know the format.
#pragma once

#include "voxel/io/streams/format.hpp"

namespace quarry::io {

std::span<const Format> formats();
// Finds the format by content first, then by extension. Errors: not_found (no such file), unsupported (names the
// nearest known extension). Every message of these and of the calls below begins with the file's name.
Result<const Format*> format_for_reading(const std::filesystem::path& file);
Result<const Format*> format_for_writing(const std::filesystem::path& file);

// Puts "source_format" and "source_file" into the scene's metadata unless the reader did (a .quarry file keeps those of
// the file that it was made from).
void note_source(Scene& scene, const Format& format, const std::filesystem::path& file);
// Reads any known file, and notes its source.
Result<Scene> read_scene(const std::filesystem::path& file, const ReadOptions& options = {});
// Reads the same scene region by region. Errors: unsupported (the format has no such reader), those of the reader and
// of the sink.
Result<RegionsDone> read_scene_regions(const std::filesystem::path& file, const ReadOptions& options,
                                       const RegionSink& sink);
// Writes a file, which appears whole or not at all (atomic_file.hpp).
Result<void> write_scene(const Scene& scene, const Destination& to, const Progress& progress = {});

}  // namespace quarry::io
