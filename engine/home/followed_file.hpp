// SPDX-License-Identifier: Apache-2.0
// followed_file.hpp - a world file behind the edits of a world at either home: it has the world's scene and history as
// they were at the last flush.
//
//   edit, undo, redo: the world alone     flush: what differs ─► one transaction of the file ─► it is the same again
//
// A world at home on the host knows by its Document what the file lacks, one on a device by its DeviceHome.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/progress.hpp"
#include "engine/home/device_home.hpp"
#include "voxel/io/files/atomic_file.hpp"
#include "voxel/io/quarry/store.hpp"
#include "voxel/worlds/document.hpp"

namespace quarry::engine {

class ResidentPages;  // resident_pages.hpp

// A world: its document, and the home on a device that has the voxels; null: the document has them.
struct HomedWorld {
  Document& document;
  DeviceHome* home = nullptr;

  // The oldest records of the history that have gone, since the world was made.
  Result<uint64_t> dropped_records() const;
};

// One thread at a time. Destroying it, before the world, makes the file a single one again; the world is to be told, by
// let_go(), before it is used again.
class FollowedFile {
 public:
  // Writes all of a world: a file that can follow it, until the next edit. Of a device's world every brick is read
  // back. Errors: those of Store::save_with_history, device.
  static Result<void> write_all(const HomedWorld& world, const io::Destination& to, const Progress& progress = {});
  // `store` has the world as it is now. `written`: by write_all(), just now. `first_record`: the number in the file's
  // history of the first record that the world began with; below 0 by as many as the world had dropped when the file
  // was written. A world with a budget (DeviceHome::set_budget) may have no voxel yet, if it is not `written`: `there`
  // says whether it has them. The world must stay where it is until let_go(). Errors: device; those of
  // ResidentPages::follow.
  static Result<FollowedFile> begin(io::Store store, const HomedWorld& world, bool written, int64_t first_record,
                                    bool there = true, const Progress& progress = {});

  // Brings the file up to date: what was changed until now is on disk when it returns. Nothing is written if nothing
  // has changed. Traffic on a device: DeviceHome::unsaved(). Errors: those of Store::commit_later; device. Then the
  // file is as it was.
  Result<void> flush(const HomedWorld& world);
  // Steps that the file has and the world's history has not. recall_older(): brings it the one before its oldest step,
  // when none is applied, so that undo can take it. redo_newer(): redoes the one after its newest, when all are applied
  // and in the file; it returns the voxels that the step changes. False, nothing: there is no such step. Errors: those
  // of Store::step_before, and of the recalls of Document and DeviceHome; then nothing has changed.
  Result<bool> recall_older(const HomedWorld& world);
  Result<std::optional<uint64_t>> redo_newer(const HomedWorld& world);
  // What of the world is in the file alone comes, so that the world can do without. Errors: out_of_memory (its budget),
  // those of reading.
  static Result<void> bring_all(const HomedWorld& world);
  // The world goes on without the file. Errors: device; it is let go all the same.
  static Result<void> let_go(const HomedWorld& world);

  io::Store& store() { return state_->store; }
  // Gives the file up, to be replaced by one that has the same before anything else is called: it, or a copy.
  io::Store take();
  void replace(io::Store same);
  int64_t first_record() const { return state_->first_record; }
  // The same of the first record that the world still has. Errors: device.
  Result<int64_t> first_kept(const HomedWorld& world) const;

 private:
  // Stays where it is: pages of the world come from it.
  struct State {
    io::Store store;
    Palette palette;  // the file's
    int64_t first_record;
    ResidentPages* reader = nullptr;  // the world's pages, if it has some, which another thread reads from the file
    ~State();
    // `unfinished`: what the world is in the middle of, from its own first record on.
    Result<void> flush(const HomedWorld& world, std::optional<io::UnfinishedStep> unfinished = {});
    Result<int64_t> first_kept(const HomedWorld& world) const;
    Result<bool> recall_older(const HomedWorld& world);
    Result<std::optional<uint64_t>> redo_newer(const HomedWorld& world, bool same_step);
    Result<std::vector<UndoRecord>> records_beside(const HomedWorld& world, uint64_t at, bool before);
  };
  explicit FollowedFile(std::unique_ptr<State> state) : state_(std::move(state)) {}

  std::unique_ptr<State> state_;
};

}  // namespace quarry::engine
