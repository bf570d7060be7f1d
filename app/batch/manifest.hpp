// SPDX-License-Identifier: Apache-2.0
// manifest.hpp - what `quarry convert --manifest FILE` writes at the end of a batch: of each job its inputs and outputs
// with sizes and checksums, or why it failed. Nothing in it tells of the machine, the day or the folders' places, so
// equal inputs and options give equal bytes.
//
// A shard writes its part beside it (FILE.json: FILE.2-of-8.json). When all parts are there, they are joined into FILE,
// whose bytes are those that one run over all inputs writes. The parts stay. A text file:
//
//   {"quarry_manifest":1,"version":"0.2.0","options":"...","names":"<checksum>","jobs":37,"shard":"2/8","files":[
//   {"index":4,"inputs":[{"file":"houses/mill.vox","bytes":812,"xxh128":"..."}],"outputs":[{...}]},
//   {"index":9,"inputs":[{"file":"houses/none.vox"}],"error":"malformed_input"}
//   ]}
//
// `shard` is only in parts. `index` counts the jobs of all shards from 1. File names are relative: those of inputs as
// in Input::relative, those of outputs from the batch's output folder. `names` is a checksum of all inputs' names in
// their order, so that parts of other inputs are noticed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "app/batch/checksum.hpp"
#include "app/batch/shard.hpp"
#include "base/result.hpp"

namespace quarry::app {

struct ManifestHead {
  std::string version;
  std::string options;  // all that outputs depend on besides the inputs
  std::string names;
  uint64_t jobs = 0;  // of all shards
  Shard shard;
};

struct ManifestEntry {
  uint64_t index = 0;
  std::vector<FileChecksum> inputs, outputs;  // an empty xxh128: not known
  std::string error;                          // the kind of failure; ""
};

// "out/done.json", 2 of 8 -> "out/done.2-of-8.json"; the file itself for 1 of 1.
std::filesystem::path manifest_part(const std::filesystem::path& file, Shard shard);

// `outputs` and what belongs to them: sidecar files, the files in a folder of pictures, sorted.
std::vector<std::filesystem::path> files_of_outputs(const std::vector<std::filesystem::path>& outputs);

// Whether the manifest and its part may be written. Errors: io (no such folder; not a regular file); conflict (a file
// of this name that is no manifest, or parts of a division into another number of shards beside it).
Result<void> check_manifest(const std::filesystem::path& file, Shard shard);
// Removes the shard's part and the manifest, which a run that begins makes anew. So what is there was written by a run
// that ended. Nothing if `file` is empty. Errors: io.
Result<void> begin_manifest(const std::filesystem::path& file, Shard shard);
// Writes the shard's part, or for 1 of 1 the manifest, whole or not at all. Errors: io, conflict (not a manifest).
Result<void> write_manifest(const std::filesystem::path& file, const ManifestHead& head,
                            std::span<const ManifestEntry> entries);

struct JoinedManifest {
  uint32_t shards = 0;
  std::vector<uint32_t> missing;  // shards without a part, the lowest first. If there are any, nothing was written.
};
// "2 of 8 parts are not there: 3/8, 5/8"
std::string missing_text(const JoinedManifest& joined);
// Joins the parts beside `file`. Any number of processes may do that at once: they write the same. If a part went
// meanwhile, because its shard was begun again, the manifest is removed. Errors: not_found (no part), conflict (parts
// of several divisions, or of other inputs, options or versions; the file is no manifest), malformed_input (a part that
// is damaged), io. Messages name the parts and what to do.
Result<JoinedManifest> join_manifest(const std::filesystem::path& file);

}  // namespace quarry::app
