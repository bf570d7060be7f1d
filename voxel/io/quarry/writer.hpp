// SPDX-License-Identifier: Apache-2.0
// writer.hpp - writes a new .quarry file from bricks in pieces. Store::save uses it for a scene in memory, and a
// conversion without room for one. The same bricks give the same bytes, however they are divided into pieces.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "voxel/io/files/atomic_file.hpp"
#include "voxel/worlds/edit.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::io {

// Records of a history on their way to a file, asked for some at a time, oldest first, so that not all need be in
// memory. Not always the caller's thread asks, one at a time. They are used until the next call. Empty pieces are
// skipped.
struct SomeRecords {
  std::span<const UndoRecord> records;
  bool last = false;  // there are no more
};
using RecordSource = std::function<Result<SomeRecords>()>;
// Of records that are in memory.
inline RecordSource all_of(std::span<const UndoRecord> records) {
  return [records]() -> Result<SomeRecords> { return SomeRecords{records, true}; };
}

// For one thread at a time. The file appears whole, by commit(), or not at all (atomic_file.hpp). After an error the
// writer can only be destroyed. Messages begin with the file's name.
class StoreWriter {
 public:
  // Writes all of `scene` except the bricks of its volumes, which are only counted for `progress`. That must outlive
  // the writer. Its stage is "save", and nothing is reported if there are no bricks. Errors: those of Store::save.
  static Result<StoreWriter> create(const Scene& scene, const Destination& to, const Progress& progress);
  StoreWriter(StoreWriter&&) noexcept;
  StoreWriter& operator=(StoreWriter&&) noexcept;
  ~StoreWriter();

  // Appends bricks of a volume. Over all calls volumes must rise, and within one volume whole chunks (8^3 bricks) must
  // rise by x, then y, then z. They are compressed on all threads. Memory: some compressed chunks for each thread.
  // Errors: invalid_argument (another order), out_of_memory, io, cancelled.
  Result<void> append(uint32_t volume, const BrickMap& bricks);
  // Call it once, after the bricks. The first `position` records are applied in them, the rest can be redone; it is
  // asked when the source has ended. Errors: the source's, too.
  Result<void> append_history(const RecordSource& records, const std::function<size_t()>& position);
  uint64_t bricks() const;  // so far
  // Renames the file to its target. It is on disk on return, unless the destination has a DeferredSync that waits for
  // it later.
  Result<void> commit();

 private:
  struct State;
  explicit StoreWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quarry::io
