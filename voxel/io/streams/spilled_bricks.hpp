// SPDX-License-Identifier: Apache-2.0
// spilled_bricks.hpp - bricks of volumes that do not fit memory while a file is read whose order is not that of
// regions: they wait in a file without a name beside the output, in sorted runs, and are handed over region by region
// when all is read.
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

// One thread. A brick that is added twice is the sum of both; where both have a voxel, the later one's counts. Disk:
// 592 bytes a brick.
class SpilledBricks {
 public:
  // `beside`: the file beside which they wait (RegionSink::beside).
  explicit SpilledBricks(std::filesystem::path beside) : beside_(std::move(beside)) {}
  // False after a failure, which hand_over() tells.
  bool add(size_t volume, BrickMap&& bricks);
  // Calls sink.take for all that was added, as region_sink.hpp says; sink.begin was called before. Errors: not_found,
  // io (the waiting file); cancelled; the sink's.
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
    uint64_t at_byte, left;  // of what is still in the file: bytes from its beginning, bricks
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
// A file whose reader makes bricks in an order of its own, region by region: `parse` makes the scene, its bricks go
// aside where it is told to put them, and are handed over when it is done. Errors: parse's, the sink's, those of
// waiting on disk.
Result<RegionsDone> read_with_spilling(const ReadOptions& options, const RegionSink& sink,
                                       const std::function<Result<Scene>(const BrickLimits& limits)>& parse);

}  // namespace quarry::io
