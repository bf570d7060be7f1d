// SPDX-License-Identifier: Apache-2.0
// document.hpp - a scene with its world and its history: edits act on one volume, and only the world bricks they touch
// are flattened again. What changed voxels or palette is a record of the history; a step is one record with those
// behind it that continue it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "voxel/worlds/edit.hpp"
#include "voxel/worlds/scene.hpp"
#include "voxel/worlds/world.hpp"

namespace quarry {

class Document {
 public:
  // Flattens the scene's visible instances into the world. Errors: out_of_bounds, full, out_of_memory, cancelled.
  static Result<Document> create(Scene scene, const WorldMemory& memory = {}, const Progress& progress = {});
  static Result<Document> create_empty(const WorldMemory& memory = {});  // one empty volume at the origin
  Document(Document&&) noexcept;
  Document& operator=(Document&&) noexcept;
  ~Document();

  const Scene& scene() const;
  const World& world() const;
  World& world();

  // What persists a change elsewhere, as in a file: called once the document has the change and before its history
  // does, with the record, or with those of the step, oldest first. If it fails, so does the change, with its error:
  // scene, world and history are as before.
  using Persist = std::function<Result<void>(std::span<const UndoRecord> records)>;

  // Applies one edit to one volume (coordinates in that volume's own axes). Deterministic. A failed edit changes
  // nothing. An edit that would change no voxel gives an empty record and no history entry. Records that could be
  // redone are dropped. The record lives until the next call that changes the history. Only visible instances are
  // flattened and held to the world's bounds. `continues`: in the step of the record before it, if there is one.
  // Errors: invalid_argument (no such volume, radius), out_of_bounds (a flattened voxel would leave the world), full,
  // out_of_memory.
  Result<const UndoRecord*> apply(uint32_t volume, const Edit& edit, uint32_t threads = 0, bool continues = false, const Persist& persist = {});
  // Whole bricks in the volume's axes, as one entry of the history (stamps, imports, the C API's bulk set). Errors: as
  // apply, and invalid_argument for a coordinate given twice.
  Result<const UndoRecord*> write(uint32_t volume, std::span<const World::BrickWrite> writes, std::string label);
  // Another palette, as one entry of the history; none if it is the one there is.
  Result<const UndoRecord*> change_palette(const Palette& palette, const Persist& persist = {});
  bool can_undo() const;
  bool can_redo() const;
  // One step, all of it or nothing: the records that were undone, or done again. They live until the next call that
  // changes the history.
  // Errors: invalid_argument (there is none); full, out_of_memory, changing nothing.
  Result<std::span<const UndoRecord>> undo(const Persist& persist = {});
  Result<std::span<const UndoRecord>> redo(const Persist& persist = {});
  // History as the world file keeps it: records[0 .. position) are applied, the rest can be redone.
  const std::vector<UndoRecord>& history() const;
  size_t history_position() const;
  void restore_history(std::vector<UndoRecord> records, size_t position);
  size_t step_count() const;     // those of the history
  size_t step_position() const;  // of them, those that are applied; one that is applied by half counts
  void set_palette(const Palette& palette);  // no entry of the history: for palettes that are only shown
  uint64_t version() const;

 private:
  struct State;
  explicit Document(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quarry
