// SPDX-License-Identifier: Apache-2.0
// writer.hpp - a new .quarry file whose bricks come in pieces: what Store::save does with a scene in memory, and what a
// conversion does that has no room for one. The same bricks give the same bytes, in however many pieces they come.
#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "voxel/io/files/atomic_file.hpp"
#include "voxel/worlds/edit.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::io {

// One thread at a time. The file appears whole, by commit(), or not at all (atomic_file.hpp). After an error there is
// nothing to do but to let it go. Messages begin with the file's name.
class StoreWriter {
 public:
  // `scene`: all but the bricks of its volumes, which are only counted (for `progress`, which must outlive the writer;
  // stage "save", and nothing is said if there are none). Errors: those of Store::save.
  static Result<StoreWriter> create(const Scene& scene, const Destination& to, const Progress& progress);
  StoreWriter(StoreWriter&&) noexcept;
  StoreWriter& operator=(StoreWriter&&) noexcept;
  ~StoreWriter();

  // Bricks of a volume: volumes rising, and of one volume whole chunks (8^3 bricks), rising by x, then y, then z over
  // all calls. Compressed on all threads; memory: some compressed chunks for each. Errors: invalid_argument (another
  // order), out_of_memory, io, cancelled.
  Result<void> append(uint32_t volume, const BrickMap& bricks);
  // After the bricks, once: records[0 .. position) are applied in them, the rest can be redone.
  Result<void> append_history(std::span<const UndoRecord> records, size_t position);
  uint64_t bricks() const;  // so far
  // In its place when it returns, and on disk, unless the destination has somebody who waits for that later.
  Result<void> commit();

 private:
  struct State;
  explicit StoreWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace quarry::io
