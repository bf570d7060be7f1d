// SPDX-License-Identifier: Apache-2.0
// store.hpp - the .quarry world file: an SQLite database with the scene in tables, voxels in compressed, checksummed
// chunks and the history of edits in a journal. Every edit is a transaction: if the program is killed at any instant,
// no acknowledged edit is lost.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "voxel/io/files/atomic_file.hpp"
#include "voxel/io/quarry/reader.hpp"
#include "voxel/io/quarry/writer.hpp"
#include "voxel/worlds/document.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::io {

// For one thread at a time, but for read_pieces(), which another one may call meanwhile: the two take turns. Messages
// begin with the file's name.
class Store {
 public:
  // Writes a new file without history, whole or not at all (atomic_file.hpp). Errors: conflict (it is being edited, or
  // must not be replaced), io, cancelled, invalid_argument (a material or camera with a value that is not a number, an
  // instance of no volume).
  static Result<void> save(const Scene& scene, const Destination& to, const Progress& progress = {});
  // Does the same with a history. records[0 .. position) are applied in the scene, the rest can be redone.
  static Result<void> save_with_history(const Scene& scene, std::span<const UndoRecord> records, size_t position,
                                        const Destination& to, const Progress& progress = {});
  // The same of records that come some at a time (StoreWriter::append_history).
  static Result<void> save_with_history(const Scene& scene, const RecordSource& records,
                                        const std::function<size_t()>& position, const Destination& to,
                                        const Progress& progress = {});
  // Copies a world that nobody edits, with its history, to `to`: on disk, whole or not at all, without sidecars of the
  // old file. Errors: conflict, not_found, io.
  static Result<void> copy(const std::filesystem::path& from, const Destination& to);
  // Replacing a world removes the sidecars that a killed editor left. Returns a sentence about them if they cannot be
  // read whole any more, because nothing else reports it. Returns "" if they can, or if there are none.
  static std::string damaged_sidecars(const std::filesystem::path& file);
  // Sidecars of another file, or without a file, are then kept under another name. Returns a sentence about them; "" if
  // there are none.
  static std::string foreign_sidecars(const std::filesystem::path& file);
  // Opens for editing, with an exclusive lock (conflict: it is open elsewhere). Errors: not_found, malformed_input,
  // unsupported (written by a newer Quarry), io. After an error neither the file nor its sidecars have changed. The
  // whole world is checked first. A log or journal of another state or file is set aside under another name, which
  // warnings() reports. So is a step taken back of which a program that was killed had brought only a part here. While
  // the Store is open, the file has a `-wal` file. Destroying the Store folds it in.
  static Result<Store> open(const std::filesystem::path& file);
  // Reads everything, with the sidecars of a killed editor, and checks every checksum. Nothing is changed. `history`
  // (may be null) gets the journal and its position. `warnings` gets a sentence for each part of the sidecars that may
  // be missing (quarry/file.hpp). Volumes and history make their bricks in `pool`, so that a world that is
  // given it (WorldMemory::pool) need not copy them. `fingerprint` (may be null) gets what fingerprint() of the same
  // file is.
  static Result<Scene> read(const std::filesystem::path& file, const Progress& progress = {},
                            std::vector<UndoRecord>* history = nullptr, size_t* history_position = nullptr,
                            std::vector<std::string>* warnings = nullptr, const BrickPool* pool = nullptr,
                            uint64_t* fingerprint = nullptr);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();
  // Folds the log in, so that nothing but room for one page is needed to make it a single file, when the Store is
  // destroyed. On failure the log stays, and all that was committed is there. Errors: io (disk full).
  Result<void> fold_in();

  const std::filesystem::path& path() const;
  const std::vector<std::string>& warnings() const;  // from opening, as those of read()
  uint64_t history_length() const;                   // records, those that can be redone with them
  uint64_t history_position() const;                 // that are applied
  std::optional<UnfinishedStep> unfinished() const;  // as the last commit left it
  // The records of the step of which record number `at` (from 0) comes next, or of the step that begins there; and what
  // the steps of records [first, end) are called. Their bricks are loose. Errors: io, malformed_input, out_of_memory.
  Result<std::vector<UndoRecord>> step_before(uint64_t at);
  Result<std::vector<UndoRecord>> step_from(uint64_t at);
  Result<std::vector<StepName>> step_names(uint64_t first, uint64_t end);
  // One record of a step, by its number, from 0. Errors: as step_before().
  Result<std::vector<UndoRecord>> record(uint64_t number);
  // Two files, or states of one, that have the same: their scenes and histories are equal. It is made of their
  // checksums. Errors: io, malformed_input.
  Result<uint64_t> fingerprint();
  Result<Scene> read_scene(const Progress& progress, std::vector<UndoRecord>* history, size_t* history_position,
                           const BrickPool* pool = nullptr);
  // As StoreReader's, of the file as it is now.
  uint64_t bricks() const;
  Result<std::vector<ChunkBricks>> chunks(uint32_t volume);
  Result<void> visit_all(const StoreReader::Visit& visit, const Progress& progress);
  // The same of the chunks of a box, which are checked against their own rows alone.
  Result<void> visit_box(const ChunkBox& box, const StoreReader::Visit& visit, const Progress& progress);
  Result<void> read_pieces(std::span<const std::vector<ChunkBox>> pieces, const PieceSteps& steps,
                           const Progress& progress, size_t most_waiting);
  // The edit is on disk when this returns. Errors change neither file nor history: invalid_argument (another number of
  // volumes than in the file, nothing to undo), conflict (not the edit that the file's history has there), io (disk
  // full). `scene` is the scene after the edit, undo or redo. Only the chunks that the records touch are written, or
  // the palette. Several records, oldest first, are written all or none. Records that could be redone are dropped.
  Result<void> commit_edit(const Scene& scene, std::span<const UndoRecord> records);
  Result<void> commit_undo(const Scene& scene, std::span<const UndoRecord> records);
  Result<void> commit_redo(const Scene& scene, std::span<const UndoRecord> records);
  Result<void> commit_edit(const Scene& scene, const UndoRecord& record) {
    return commit_edit(scene, std::span(&record, 1));
  }
  Result<void> commit_undo(const Scene& scene, const UndoRecord& record) {
    return commit_undo(scene, std::span(&record, 1));
  }
  Result<void> commit_redo(const Scene& scene, const UndoRecord& record) {
    return commit_redo(scene, std::span(&record, 1));
  }
  // Brings the file to a later state of the scene, by however many edits, undos and redos it has come to be, as one
  // transaction. Errors: as commit_edit's.
  struct Later {
    uint64_t kept = 0;                    // records of the file's history that stay, from its first one on
    std::span<const UndoRecord> records;  // that follow them; none: the file's own stay, to be redone
    uint64_t position = 0;                // of all of these, how many are applied in the scene
    bool palette = false;                 // it may be another one
    // By volume: the chunks (regions of 8^3 bricks) in which voxels may differ from the file's, each once. All others
    // are not read: the scene's volumes may lack them.
    std::map<uint32_t, std::vector<Int3>> chunks;
  };
  Result<void> commit_later(const Scene& scene, const Later& later);
  // The same of records and bricks that come some at a time, so that not all need be in memory. What they return is
  // used until the next call; not always the caller's thread asks, one at a time. Errors: theirs, too.
  struct LaterPieces {
    uint64_t kept = 0;
    RecordSource records;
    std::function<Result<Later>()> rest;  // when the source has ended: all else
    std::function<Result<const BrickMap*>(uint32_t volume, std::span<const Int3> chunks)> bricks;
    // The scene is in the middle of this step. Unless a later commit follows, who opens the file finds it as it was
    // before it. Of a new one that the file knows, records after `kept` go: they were taken back.
    std::optional<UnfinishedStep> unfinished = std::nullopt;
  };
  Result<void> commit_later(const Scene& scene, const LaterPieces& later);
  Result<void> commit_palette(const Palette& palette);  // not in the history, unlike Document::change_palette
  // Writes which layers and instances are hidden. `scene` is otherwise the file's own. This is not in the history,
  // because hiding loses nothing.
  Result<void> commit_visibility(const Scene& scene);

 private:
  struct State;
  explicit Store(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quarry::io
