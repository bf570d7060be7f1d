// SPDX-License-Identifier: Apache-2.0
// fields.hpp - the encoding of single fields in the tables of a .quarry file, and the checksums over its small tables,
// which reader and writer compute in the same way. Internal to the store.
#pragma once

#include "voxel/io/quarry/tables.hpp"

namespace quarry::io {

// Keys of the table `state`.
constexpr const char* kOverlapKey = "overlap";  // 0: the first instance wins, 1: the last
constexpr const char* kPositionKey = "history_position";
constexpr const char* kLengthKey = "history_length";
constexpr const char* kHistoryKey = "history_sum";       // of the journal's checksums
constexpr const char* kHistorySumKey = "check_history";  // over the three above, and the three below
// Of a step that is not whole, in files of version kUnfinished alone: UnfinishedStep, and the version without it.
constexpr const char *kUnfinishedFromKey = "unfinished_from", *kUnfinishedNewKey = "unfinished_new",
                     *kUnfinishedVersionKey = "unfinished_version";
// The sum over meta, layers, instances, cameras, names and sizes of volumes, overlap.
constexpr const char* kSceneSumKey = "check_scene";
constexpr const char* kPaletteSumKey = "check_palette";
constexpr const char* kVolumesSumKey = "check_volumes";  // over the chunk counts and sums of all volumes
// Files that were opened for editing also have kLogNumberKey (sqlite/journals.hpp).

// An error that says what is wrong with a table.
inline Result<void> damaged(const std::string& what) {
  return fail(ErrorCode::malformed_input, what + "; the file is damaged");
}

// The error of a row that could not be taken: damaged, if what is in it is wrong. Who takes it may lack memory, or have
// been stopped, and then the row is not to blame.
inline Error of_row(const std::string& row, Error error) {
  if (error.code != ErrorCode::malformed_input) return error;
  return damaged(row + ": " + error.message).error();
}

uint64_t scene_sum(const Scene& scene);
uint64_t palette_sum(const Palette& palette);
uint64_t volumes_sum(const StoreHead& head);
uint64_t history_state_sum(const StoreHead& head);

// The columns are in the low six bits (two for each row), the signs in the three above them (1: negative).
int64_t pack_rotation(const Rotation& r);
Rotation unpack_rotation(int64_t packed);
// r | g << 8 | b << 16 | a << 24
int64_t pack_rgba(const Material& m);

}  // namespace quarry::io
