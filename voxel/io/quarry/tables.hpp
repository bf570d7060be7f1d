// SPDX-License-Identifier: Apache-2.0
// tables.hpp - the tables of a .quarry file: made, checked, written from a scene and read into one. Internal to the
// store. store.cpp and quarry/writer.cpp handle locking, transactions and the file itself, store_codec the blobs.
// docs/formats.md has the schema too.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/progress.hpp"
#include "voxel/io/quarry/codec.hpp"
#include "voxel/io/quarry/reader.hpp"
#include "voxel/io/quarry/writer.hpp"
#include "voxel/io/sqlite/db.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::io {

constexpr int32_t kApplicationId = 0x51727279;  // "Qrry", at byte 68 of the file
// Raised by every change of the schema or the blobs; a reader rejects a newer one. What needs which: codec.hpp. New
// files have the first version until something is written that needs another.
constexpr int64_t kSchemaVersion = kUnfinished;
constexpr int32_t kMaxChunkCoordinate = kMaxBrickCoordinate / 8;
constexpr uint64_t kBrickMemoryBytes = 650;  // of a brick in a BrickMap
constexpr uint64_t kWaitingShare = 16;       // one in so many bricks of a region waits, decoded, for its place

// The values of the rows that edits change, kept so that a commit need not read them back.
struct StoreHead {
  struct Volume {
    int64_t chunks = 0, bricks = 0;
    uint64_t sum = 0;  // of the chunks' checksums, mod 2^64; it reveals a missing chunk
  };
  std::vector<Volume> volumes;
  int64_t position = 0, length = 0;  // records of the history: applied, all
  uint64_t history_sum = 0;          // of the records' checksums, mod 2^64
  int64_t version = kPlainHistory;   // of the schema; raised by the first record that needs it; not kUnfinished
  std::optional<UnfinishedStep> unfinished;
  uint64_t bricks() const {
    uint64_t sum = 0;
    for (const Volume& volume : volumes) sum += uint64_t(volume.bricks);
    return sum;
  }
};

// Reports progress, at most some tens of times a second, the first time at once.
class ThrottledReport {
 public:
  ThrottledReport(const Progress& progress, const char* stage) : progress_(progress), stage_(stage) {}
  void at(double fraction);

 private:
  const Progress& progress_;
  const char* stage_;
  std::chrono::steady_clock::time_point next_{};
};

// Gathers chunks that come in rising order into regions as large as the sink's room allows.
class RegionGatherer {
 public:
  // After sink.begin. The sink must outlive it.
  explicit RegionGatherer(const RegionSink& sink);
  uint64_t most_waiting() const { return most_ / kWaitingShare; }  // bricks, decoded, before they are put into one
  // Where the bricks of the next chunk belong.
  Result<BrickMap*> target(uint32_t volume, uint32_t bricks);
  Result<RegionsDone> end();

 private:
  Result<void> hand_over();

  const RegionSink& sink_;
  uint64_t most_ = 1;  // bricks
  BrickMap region_;
  uint32_t volume_ = 0;
  RegionsDone done_;
};

// How many chunks threads may have at once, if so many bricks may be decoded before they are put into their maps.
size_t chunks_in_flight(uint64_t most_waiting);

// Checks that the database is a Quarry world. It rejects newer worlds, and any foreign object in the schema.
Result<void> check_schema(Db& db);
Result<void> create_schema(Db& db);

// Writes the tables of a new file in pieces: all but the bricks, then bricks of volumes in rising order, then their
// counts. The rows and their order do not depend on the pieces.
class TableWriter {
 public:
  explicit TableWriter(Db& db) : db_(db) {}
  Result<void> begin(const Scene& scene);
  // See StoreWriter::append. `written` is called after each chunk.
  Result<void> append(uint32_t volume, const BrickMap& bricks, const Progress& progress,
                      const std::function<void()>& written);
  // `position` is asked when the source has ended.
  Result<void> history(const RecordSource& records, const std::function<size_t()>& position);
  Result<void> end();
  uint64_t bricks() const { return bricks_; }

 private:
  Result<void> go_to(uint32_t volume);

  Db& db_;
  std::vector<Volume> volumes_;  // names and sizes
  StoreHead head_;
  uint32_t begun_ = 0;  // volumes that have their row; the last one is the current one
  uint64_t bricks_ = 0;
  std::optional<Int3> last_;  // chunk of the current volume
};

// A world whose bricks would take more bytes than `memory_limit` is rejected (out_of_memory). `head` is not null. Here
// and below bricks are made in `pool`; null: in each thread's BrickPool::loose().
Result<Scene> read_tables(Db& db, uint64_t memory_limit, const Progress& progress, const BrickPool* pool,
                          StoreHead* head);
// What Store::fingerprint() gives: of all that the table of the state says but the log's number, which is the checksums
// of all else.
Result<uint64_t> fingerprint_of(Db& db);
// Reads all but the bricks. `head` (not null) gets their counts and sums.
Result<Scene> read_without_chunks(Db& db, StoreHead* head);
// Reads all chunks, checked against the head: all threads decode, while one at a time reads rows. The bricks are put
// into their maps in rising order of volume, x, y, z. Before each chunk `target` is asked for the map, by one thread at
// a time, not always the caller's. At most `most_waiting` bricks are decoded, by all threads, before they are put into
// their maps; at least one chunk is.
using ChunkTarget = std::function<Result<BrickMap*>(uint32_t volume, uint32_t bricks)>;
Result<void> read_all_chunks(Db& db, const StoreHead& head, const Progress& progress, const ChunkTarget& target,
                             uint64_t most_waiting);
// Shows all chunks in any order, each to one of several threads at once, checked in the same way. Memory: some MiB a
// thread, whatever the world.
using ChunkVisit = std::function<Result<void>(uint32_t volume, const PackedChunk& chunk)>;
Result<void> visit_all_chunks(Db& db, const StoreHead& head, const Progress& progress, const ChunkVisit& visit);
// The same of those of a box, which are not checked against the head.
Result<void> visit_some_chunks(Db& db, const StoreHead& head, const ChunkBox& box, const Progress& progress,
                               const ChunkVisit& visit);
// See StoreReader::chunks.
Result<std::vector<ChunkBricks>> list_chunks(Db& db, const StoreHead& head, uint32_t volume);
// For a box of chunks, both corners included: the number of bricks, by the rows; and the bricks, at most `most_waiting`
// of them decoded before they are put into the map.
Result<uint64_t> count_chunk_bricks(Db& db, uint32_t volume, const Box3& chunks);
Result<void> read_some_chunks(Db& db, const StoreHead& head, uint32_t volume, const Box3& chunks,
                              const Progress& progress, BrickMap& into, uint64_t most_waiting);
// See StoreReader::read_pieces.
Result<void> read_chunk_pieces(Db& db, const StoreHead& head, std::span<const std::vector<ChunkBox>> pieces,
                               const PieceSteps& steps, const Progress& progress, size_t most_waiting);
// Checks that all tables agree with each other: schema, checksums, counts. It includes the blobs, without decompressing
// them, or only their rows.
enum class CheckBlobs : uint8_t { no, yes };
Result<void> check_tables(Db& db, CheckBlobs blobs);
// Reads the head alone, checked as far as is possible without reading chunks.
Result<StoreHead> read_head(Db& db);

// Writes a number that no file had before. It links the file and its log (quarry/sidecars.hpp).
Result<void> write_log_number(Db& db);
Result<void> write_palette(Db& db, const Palette& palette);
// Writes which layers and instances are hidden. The rest of the scene must be as in the file.
Result<void> write_visibility(Db& db, const Scene& scene);
// Makes the file's version this one, if it is a lower one.
Result<void> need_version(Db& db, int64_t version, StoreHead* head);
// Where the bricks of some chunks are: asked in the order of the chunks, not always by the caller's thread, one at a
// time. The map is used until the next call.
using ChunkSource = std::function<Result<const BrickMap*>(std::span<const Int3> chunks)>;
// Writes chunks of a volume again, or removes those that are empty now; all threads compress. It updates `head`, but
// not the head's tables (see write_head).
Result<void> write_chunks(Db& db, const ChunkSource& bricks, std::span<const Int3> chunks, uint32_t volume,
                          StoreHead* head);
// Writes the numbers of some volumes and those of the history, with their checksums, and whether a step is not whole.
Result<void> write_head(Db& db, const StoreHead& head, const std::set<uint32_t>& changed_volumes);

// Drops the records after the head's position and appends the source's. All threads compress those that come next while
// some are written. The bytes do not depend on the threads, nor on how the source divides the records. Errors:
// invalid_argument (the first one continues a step).
Result<void> write_records(Db& db, const RecordSource& source, StoreHead* head);
// Drops the records after the head's position.
Result<void> drop_records(Db& db, StoreHead* head);
// Takes the head's unfinished step back, as one transaction: the world and the history are as before it. Returns a
// sentence about it, without a full stop. Memory: a record, and some hundred chunks. After an error, which is one of
// reading or writing, the database is to be closed.
Result<std::string> take_back_unfinished(Db& db, StoreHead* head);
struct RecordRange {
  int64_t first = 1, last = INT64_MAX;  // from 1 on
};
// Whole steps in rising order.
Result<std::vector<UndoRecord>> read_history(Db& db, const StoreHead& head, uint64_t memory_limit,
                                             const Progress& progress, const BrickPool* pool, RecordRange range = {});
// The records of the step that ends with record `number`, or of the one that begins after it.
Result<RecordRange> step_beside(Db& db, const StoreHead& head, int64_t number, bool before);
Result<std::vector<StepName>> read_step_names(Db& db, const StoreHead& head, RecordRange range);
// See StoreReader::visit_history.
Result<void> visit_history(Db& db, const StoreHead& head, HistorySide side, const Progress& progress,
                           const HistoryVisit& visit);
// Reads the history as read_history() does and keeps nothing of it. Memory: some parts of records a thread.
Result<void> check_history(Db& db, const StoreHead& head, const Progress& progress);
// Reads schema, scene and, unless `history` is null, history: a reader's whole work on an open database.
Result<Scene> read_world(Db& db, uint64_t memory_limit, const Progress& progress, std::vector<UndoRecord>* history,
                         size_t* history_position, const BrickPool* pool = nullptr);
// True if record number `number` (from 1) of the history has this one's kind, label, volume and counts.
Result<bool> record_is(Db& db, int64_t number, const UndoRecord& record);

}  // namespace quarry::io
