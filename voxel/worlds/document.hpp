// SPDX-License-Identifier: Apache-2.0
// document.hpp - a scene with its world and its history. An edit changes one volume, and only the affected world bricks
// are flattened again. Each change of voxels or palette is a record of the history; a step is one record with the
// following ones that continue it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "voxel/worlds/edit.hpp"
#include "voxel/worlds/scene.hpp"
#include "voxel/worlds/voxel_writes.hpp"
#include "voxel/worlds/world.hpp"

namespace quarry {

class Document {
 public:
  // A world is built in batches of so many bricks.
  static constexpr size_t kBatchBricks = 1u << 16;
  // Flattens the scene's visible instances into the world. Errors: out_of_bounds, full, out_of_memory, cancelled.
  static Result<Document> create(Scene scene, const WorldMemory& memory = {}, const Progress& progress = {});
  // The same without a world: its world stays empty, whatever the scene shows. For scenes that are only kept.
  static Result<Document> create_unshown(Scene scene);
  static Result<Document> create_empty(const WorldMemory& memory = {});  // one empty volume at the origin
  Document(Document&&) noexcept;
  Document& operator=(Document&&) noexcept;
  ~Document();

  // As World's, with the bricks of the volumes and of the history. A change of voxels unpacks the world first, and it
  // stays so if the change is then refused.
  Result<void> shrink_to_fit();
  Result<void> pack();
  Result<void> unpack();

  // What world, volumes and history hold, by a pass over all of their handles.
  struct Holdings {
    uint64_t keys = 0, full_keys = 0;  // of the grid; those of them whose brick is full of one material
    uint64_t bricks = 0;               // of the pool, each once; those full of one material once for each material
    uint64_t history_bricks = 0;       // those of them that neither the world nor a volume has
    uint64_t history_changes = 0;
    // Besides the pool: lists of volumes, records, and bricks that are not in the pool.
    uint64_t scene_bytes = 0, history_bytes = 0;
  };
  Holdings holdings() const;

  const Scene& scene() const;
  const World& world() const;
  World& world();

  // Persists a change elsewhere, for example in a file. Called after the document has the change and before its history
  // does, with the record, or with those of the step, oldest first. If it fails, the change fails with its error:
  // scene, world and history are as before.
  using Persist = std::function<Result<void>(std::span<const UndoRecord> records)>;

  // Applies one edit to one volume (coordinates in that volume's own axes). Deterministic. A failed edit changes
  // nothing. An edit that would change no voxel gives an empty record and no history entry. Records that could be
  // redone are dropped. The record lives until the next call that changes the history. Only visible instances are
  // flattened and checked against the world's bounds. `continues`: the record joins the step of the previous one, if
  // there is one. Errors: invalid_argument (no such volume, radius), out_of_bounds (a flattened voxel would leave the
  // world), full, out_of_memory.
  Result<const UndoRecord*> apply(uint32_t volume, const Edit& edit, uint32_t threads = 0, bool continues = false,
                                  const Persist& persist = {});
  // Writes whole bricks in the volume's axes, as one entry of the history (stamps, imports). Errors: as apply, and
  // invalid_argument for a duplicate coordinate.
  Result<const UndoRecord*> write(uint32_t volume, std::span<const World::BrickWrite> writes, std::string label,
                                  uint32_t threads = 0);
  // The same for a list of voxels in any order; and for what `change` makes of the bricks at `places`, which rise
  // strictly (voxel_writes.hpp). An entry of the history only if a voxel differs. Errors: as apply.
  Result<const UndoRecord*> write(uint32_t volume, const VoxelWrites& writes, std::string label, uint32_t threads = 0);
  Result<const UndoRecord*> write(uint32_t volume, std::span<const Int3> places,
                                  const std::function<void(size_t, Brick&)>& change, std::string label,
                                  uint32_t threads = 0, const Persist& persist = {});
  // The same for whole bricks that rise strictly, none where one goes; they are copied.
  Result<const UndoRecord*> write(uint32_t volume, std::span<const BrickPut> puts, std::string label,
                                  uint32_t threads = 0, const Persist& persist = {});
  // Replaces the palette, as one entry of the history; no entry if nothing changes.
  Result<const UndoRecord*> change_palette(const Palette& palette, const Persist& persist = {});
  bool can_undo() const;
  bool can_redo() const;
  // Undoes or redoes one step, all of it or nothing. Returns its records, which live until the next call that changes
  // the history. Errors: invalid_argument (no such step); full, out_of_memory, changing nothing.
  Result<std::span<const UndoRecord>> undo(const Persist& persist = {});
  Result<std::span<const UndoRecord>> redo(const Persist& persist = {});
  // The history as in the world file: records[0 .. position) are applied, the rest can be redone.
  const std::vector<UndoRecord>& history() const;
  size_t history_position() const;
  // Their bricks are moved to the world's pool, or to no world's if that gets no memory. Of more than the budget the
  // oldest steps go. Errors: out_of_memory; then the history is as before.
  Result<void> restore_history(std::vector<UndoRecord> records, size_t position);
  // Steps that a file has and the history has not: dropped for the budget, or never read. recall_older(): all records
  // of the step before the oldest one, when none is applied; it is applied then. recall_newer(): of the step after the
  // newest one, when all are applied; it is undone then. The budget holds again after the next change, or
  // set_history_budget(). Errors: invalid_argument (steps are applied, or can be redone), out_of_memory; then the
  // history is as before.
  // begin_after(): of a document whose file has a history of which it was given nothing: so many of the oldest have
  // gone.
  void begin_after(uint64_t records);
  Result<void> recall_older(std::vector<UndoRecord> step);
  Result<void> recall_newer(std::vector<UndoRecord> step);
  // The most that the history may take, in bytes; 0 (the default): no limit. A step takes its records, and of the
  // bricks before it and those after it the more, so undo and redo change nothing of the sum. When a step is added, and
  // here, the oldest steps go until the rest fits, and their bricks with them. The step that undo takes next stays,
  // whatever its size, with all its parts. Where that is not enough, here, those go that redo reaches last; a history
  // of which nothing is applied keeps the step that redo takes next. Undo beyond what is kept: there is nothing to
  // undo. Cost: a pass over the records here, and over each new one. Throws std::bad_alloc; then all is as before.
  void set_history_budget(uint64_t bytes);
  uint64_t history_budget() const;
  uint64_t history_size_bytes() const;  // the sum that the budget limits; without one by a pass over the records
  uint64_t dropped_steps() const;       // for the budget, since the document was made
  size_t step_count() const;            // steps of the history
  size_t step_position() const;         // applied steps; a step that is applied in part counts
  void set_palette(Palette palette);    // no history entry: for palettes that are only shown

  // A file that follows the document, whose scene and history it has now: brought up to date by what unsaved() tells,
  // and then follow() again. Edits cost what they did. What is over the history's budget goes by this call alone, so
  // that the file gets every step first.
  void follow();
  void unfollow();  // there is no such file any more; the budget holds
  // By a document with the scene and history of another, after restore_history(): it is followed as that is.
  void continue_from(const Document& other);
  // What has changed since. Throws std::bad_alloc.
  struct Unsaved {
    size_t kept = 0;     // the first records of the history, which the file has too; it has none of the others
    bool moved = false;  // another part of the history is applied than in the file
    // By volume: regions of 8^3 bricks, each once, rising, outside of which no voxel has changed.
    std::map<uint32_t, std::vector<Int3>> regions;
  };
  Unsaved unsaved() const;
  uint64_t dropped_records() const;  // the oldest ones, for the budget, since the document was made
  uint64_t version() const;

 private:
  struct State;
  explicit Document(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quarry
