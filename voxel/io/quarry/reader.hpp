// SPDX-License-Identifier: Apache-2.0
// reader.hpp - reads a .quarry file in pieces, for scenes that do not fit memory. Store::read is for those that do. The
// same values and checksums are checked.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "voxel/worlds/edit.hpp"
#include "voxel/worlds/region_sink.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::io {

struct Format;       // streams/format.hpp
struct ReadOptions;  // the same
struct PackedChunk;  // codec.hpp

struct ChunkBricks {
  Int3 chunk;
  uint32_t bricks = 0;
};

// Chunks of a volume, both corners included.
struct ChunkBox {
  uint32_t volume;
  Box3 chunks;
};
// The bricks of one of them.
struct ChunkRead {
  uint32_t volume;
  std::vector<BrickPut> bricks;  // rising
};
// What is done with each piece that is read: `take` by several threads at once; then `put` by one at a time, in the
// order of the pieces, not always by the caller's thread.
struct PieceSteps {
  std::function<Result<void>(size_t piece, std::vector<ChunkRead>& chunks)> take;
  std::function<Result<void>(size_t piece)> put;
};

// What bricks a part of a record has before, or after, its changes.
struct HistoryBricks {
  struct Row {
    Int3 first;
    uint32_t count;    // of bricks along z
    uint8_t material;  // 0: none is there
  };
  std::vector<Row> full;  // of one material
  std::vector<Int3> at;   // all others, with
  std::vector<BrickMaterials> materials;
};
// A part of a record. Each brick is in one part of a record.
struct HistoryPart {
  int64_t record;  // from 1
  bool continues;  // the first part of a record that continues the step of the one before it
  const std::string& label;
  uint64_t voxels;                         // that the record changes
  std::vector<MaterialChange>& materials;  // may be taken, as
  HistoryBricks& bricks;
};
using HistoryVisit = std::function<Result<void>(HistoryPart part)>;
enum class HistorySide : uint8_t { before, after };

// A step of a file's history.
struct StepName {
  std::string label;
  uint64_t voxels = 0;  // that its records change
  uint64_t records = 0;
  bool continues = false;  // the first record asked for belongs to the step before it
};

// A step of several records that is being made, undone or redone, and of which the file has a part alone.
struct UnfinishedStep {
  int64_t position = 0;  // records that were applied before it
  bool is_new = false;   // it is made: its records go when it is taken back
};

// For one thread at a time. Nobody can edit the file during its lifetime. Messages begin with the file's name.
class StoreReader {
 public:
  // Errors and warnings: those of Store::read.
  static Result<StoreReader> open(const std::filesystem::path& file, std::vector<std::string>* warnings = nullptr);
  StoreReader(StoreReader&&) noexcept;
  StoreReader& operator=(StoreReader&&) noexcept;
  ~StoreReader();

  const Scene& scene() const;  // without bricks
  uint64_t bricks() const;     // of all volumes, by the file's counts
  // Store::fingerprint() of the same file. Errors: io, malformed_input.
  Result<uint64_t> fingerprint() const;
  // Reads all bricks, in regions of as many chunks as fit sink.available_bytes(). sink.begin is called first. Errors:
  // those of Store::read, of the sink.
  Result<RegionsDone> read_all(const RegionSink& sink, const Progress& progress);
  // Shows all chunks in any order, to several threads at once. The bricks of those that `visit` decodes are checked
  // too. Memory: some MiB a thread, whatever the world. Errors: those of Store::read.
  using Visit = std::function<Result<void>(uint32_t volume, const PackedChunk& chunk)>;
  Result<void> visit_all(const Visit& visit, const Progress& progress);
  uint64_t history_position() const;  // applied records
  // Shows the parts of all records, oldest first, with what is `after` them; or those of the applied records, newest
  // first, with what was `before` them: put over the scene in this order it becomes the one that the history began
  // with. All threads decode, one at a time visits, not always the caller's. Memory: some parts a thread. Errors: as
  // Store::read; only `after` shows whether all records are there.
  Result<void> visit_history(HistorySide side, const HistoryVisit& visit, const Progress& progress);
  // Checks the history of edits, in the memory of some parts a thread. Errors: those of Store::read with a history.
  Result<void> check_history(const Progress& progress);
  // Returns where a volume's chunks are, rising, and how many bricks each has, by the file's rows, which are checked
  // against the volume's counts. It reads no brick.
  Result<std::vector<ChunkBricks>> chunks(uint32_t volume);
  // Returns the number of bricks in a box (of chunks) of a volume, by the file's counts. It reads no brick.
  Result<uint64_t> count_bricks(uint32_t volume, const Box3& chunks);
  // Puts those bricks into `into`. At most `most_waiting` of them, or a chunk, are decoded before they are put there,
  // by as many threads as that lets work.
  Result<void> read(uint32_t volume, const Box3& chunks, BrickMap& into, const Progress& progress,
                    uint64_t most_waiting = UINT64_MAX);
  // Reads many pieces, each the chunks of some small boxes: all threads together, several pieces at a time, of which at
  // most `most_waiting` (at least 1) are read and not put. A chunk in several boxes of a piece comes as often. Errors:
  // those of read(), of the steps; what fails first in the order of the pieces. Memory: the bricks of those pieces.
  Result<void> read_pieces(std::span<const std::vector<ChunkBox>> pieces, const PieceSteps& steps,
                           const Progress& progress, size_t most_waiting);

 private:
  struct State;
  explicit StoreReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Errors: out_of_memory, with the numbers, if the bricks of all volumes do not fit the options' budget. A file that
// cannot be opened fits: who reads it says what is wrong.
Result<void> check_world_fits(const std::filesystem::path& file, const ReadOptions& options);

// The row of the table of formats.
extern const Format kQuarryFormat;

}  // namespace quarry::io
