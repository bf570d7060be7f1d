// SPDX-License-Identifier: Apache-2.0
// spilled_bricks.hpp - keeps bricks of volumes that do not fit memory, while a file is read that is not ordered by
// regions. They wait in sorted runs in an unnamed file in the folder of the output. When everything is read, they are
// passed on region by region.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "voxel/io/files/spill.hpp"
#include "voxel/worlds/region_sink.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::io {

// Not thread-safe. A brick that is added twice is the union of both. Where both have a voxel, the later one counts.
// Disk: 592 bytes a brick.
class SpilledBricks {
 public:
  // The bricks wait in the folder of the file `beside` (RegionSink::beside).
  explicit SpilledBricks(std::filesystem::path beside) : beside_(std::move(beside)) {}
  // Returns false after a failure, which hand_over() reports.
  bool add(size_t volume, BrickMap&& bricks);
  // Calls sink.take for all added bricks, as region_sink.hpp says. sink.begin must have been called before. Errors:
  // not_found, io (the waiting file); cancelled; the sink's.
  Result<RegionsDone> hand_over(const RegionSink& sink, const Progress& progress);
  Result<void> good() const { return error_ ? Result<void>(tl::unexpected(*error_)) : Result<void>(); }

 private:
  struct Record {
    Int3 at;
    uint32_t zero;
    Brick brick;
  };
  struct Run {
    size_t volume;
    uint64_t at_byte, left;  // the part still in the file: its offset in bytes, its number of bricks
    std::vector<Record> head{};
    size_t at = 0;
  };
  bool refill(Run& run, size_t block);
  std::filesystem::path beside_;
  std::unique_ptr<Spill> spill_;
  std::vector<Run> runs_;
  std::optional<Error> error_;
};

struct BrickLimits;
struct ReadOptions;
// Reads a file region by region if its reader makes bricks in its own order. `parse` makes the scene and spills its
// bricks as it is told. They are passed on when it is done. Errors: those of `parse`, of the sink, and of waiting on
// disk.
Result<RegionsDone> read_with_spilling(const ReadOptions& options, const RegionSink& sink,
                                       const std::function<Result<Scene>(const BrickLimits& limits)>& parse);

}  // namespace quarry::io
