// SPDX-License-Identifier: Apache-2.0
// reader.hpp - a .quarry file read in pieces: what Store::read does for a scene that fits memory, for one that does
// not. Every value and checksum that is read is checked as there.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "voxel/worlds/region_sink.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::io {

struct Format;  // streams/format.hpp

// One thread at a time. Nobody can edit the file while it lives. Messages begin with the file's name.
class StoreReader {
 public:
  // Errors and warnings: those of Store::read.
  static Result<StoreReader> open(const std::filesystem::path& file, std::vector<std::string>* warnings = nullptr);
  StoreReader(StoreReader&&) noexcept;
  StoreReader& operator=(StoreReader&&) noexcept;
  ~StoreReader();

  const Scene& scene() const;  // without bricks
  uint64_t bricks() const;     // of all volumes, as the file counts them
  // All bricks, in regions of as many chunks as sink.available_bytes() holds; sink.begin is called before. Errors:
  // those of Store::read, of the sink.
  Result<RegionsDone> read_all(const RegionSink& sink, const Progress& progress);
  // Bricks of the chunks in a box (of chunks) of a volume, as the file counts them: reads no brick.
  Result<uint64_t> count_bricks(uint32_t volume, const Box3& chunks);
  // Puts those bricks into `into`.
  Result<void> read(uint32_t volume, const Box3& chunks, BrickMap& into, const Progress& progress);

 private:
  struct State;
  explicit StoreReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The row of the table of formats.
extern const Format kQuarryFormat;

}  // namespace quarry::io
