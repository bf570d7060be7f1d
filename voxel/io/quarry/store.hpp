// SPDX-License-Identifier: Apache-2.0
// store.hpp - the .quarry world file: an SQLite database with the scene in tables, voxels in compressed, checksummed
// chunks and the history of edits in a journal. Every edit is a transaction: kill the program at any instant and
// nothing acknowledged is lost.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "voxel/io/files/atomic_file.hpp"
#include "voxel/worlds/document.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::io {

// One thread at a time. Messages begin with the file's name.
class Store {
 public:
  // A new file, whole or not at all (atomic_file.hpp). Without history. Errors: conflict (somebody edits it, or it must
  // not be replaced), io, cancelled, invalid_argument (a material or camera with a value that is not a number, an
  // instance of no volume).
  static Result<void> save(const Scene& scene, const Destination& to, const Progress& progress = {});
  // With a history: records[0 .. position) are applied in the scene, the rest can be redone.
  static Result<void> save_with_history(const Scene& scene, std::span<const UndoRecord> records, size_t position,
                                        const Destination& to, const Progress& progress = {});
  // Puts a copy of a world that nobody edits, with its history, where `to` is: on disk, whole or not at all, and with
  // nothing left beside it of what was there. Errors: conflict, not_found, io.
  static Result<void> copy(const std::filesystem::path& from, const Destination& to);
  // Whoever replaces a world takes away what a killed editor left beside it. A sentence about that if it cannot be had
  // whole any more, which nobody else will say; "" if it can, or nothing is there.
  static std::string damaged_sidecars(const std::filesystem::path& file);
  // What lies beside and was not its own, or lies there without a file, is kept under another name then. A sentence
  // about that; "": there is no such thing.
  static std::string foreign_sidecars(const std::filesystem::path& file);
  // Opens for editing, with an exclusive lock (conflict: somebody has it open). Errors: not_found, malformed_input,
  // unsupported (written by a newer Quarry), io; then neither the file nor what is beside it has changed. The whole
  // world is checked before. A log or journal of another state or file is set aside under another name, which
  // warnings() says. While it is open there is a `-wal` file beside it; destroying the Store folds it in.
  static Result<Store> open(const std::filesystem::path& file);
  // Reads everything, checking every checksum, with what a killed editor left beside the file; nothing is changed.
  // `history` (may be null) gets the journal and its position. `warnings`: what of those sidecars may be missing
  // (quarry/file.hpp), a sentence each.
  static Result<Scene> read(const std::filesystem::path& file, const Progress& progress = {},
                            std::vector<UndoRecord>* history = nullptr, size_t* history_position = nullptr,
                            std::vector<std::string>* warnings = nullptr);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  const std::filesystem::path& path() const;
  const std::vector<std::string>& warnings() const;  // of opening, as those of read()
  Result<Scene> read_scene(const Progress& progress, std::vector<UndoRecord>* history, size_t* history_position);
  // Acknowledged = on disk when it returns. Errors change neither file nor history: invalid_argument (another number of
  // volumes than in the file, nothing to undo), conflict (not the edit that the file's history has there), io (disk
  // full). `scene` is the scene after the edit, undo or redo; only the chunks the records touch are written, or the
  // palette. Several records, oldest first: all or none. Drops records that could be redone.
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
  Result<void> commit_palette(const Palette& palette);  // not in the history: see Document::change_palette for what is
  // Which layers and instances are hidden. `scene` is the file's own but for that. Not in the history: nothing is lost
  // by hiding.
  Result<void> commit_visibility(const Scene& scene);

 private:
  struct State;
  explicit Store(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quarry::io
