// SPDX-License-Identifier: Apache-2.0
// world_pages.hpp - a world file of which a budget of memory holds a part at a time: the pages that rays come to.
//
//   .quarry ─► one pass over its chunks ─► the coarse level of all pages (engine/sharing/coarse_level.hpp), bounds
//      │                                     │ what rays have reached
//      └──► bricks of those pages ◄──────────┘ bring() ─► grid, pool, pyramid ─► shaders
//                                               └── pages that were reached longest ago leave
//
// A page is 128^3 voxels: eight chunks of a file whose volume is at the origin. It comes as a whole; the bricks of
// turned, shifted and overlapping instances are made for it alone. So memory does not grow with the world. The way is
// Starfish's, of a table in parts of which a budget holds some, and GigaVoxels', of asking for what rays reach
// (docs/literature.md).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/progress.hpp"
#include "engine/sharing/residency.hpp"
#include "engine/sharing/world.hpp"
#include "voxel/io/quarry/reader.hpp"

namespace quarry::engine {

// What of a scene a world shows, and where: a scene may be larger than the world that one grid holds.
struct SceneWindow {
  Int3 origin{};  // the scene's voxel that is the world's (0, 0, 0): multiples of 8
  // Bricks of the scene that are shown, whole ones, but for those left out; empty: none is.
  Box3 kept{{INT32_MIN, INT32_MIN, INT32_MIN}, {INT32_MAX, INT32_MAX, INT32_MAX}}, left_out;
};

class WorldPages {
 public:
  // The least budget: some pages, their reading, and what a world has without bricks.
  static constexpr uint64_t kLeastBytes = uint64_t(8) << 20;

  // Writes bricks into the world that is drawn, those that are none too, and lets the places of what has left be used
  // again. Nothing is drawn meanwhile.
  using Exchange = std::function<Result<void>(std::span<const BrickPut> puts)>;
  // Reads all of the file's chunks once, on all threads, and holds no brick. What the window keeps of the visible scene
  // must fit the world's extent. The world that is drawn is empty, at home on the host or on a device, and `exchange`
  // writes it. `shared` must outlive the result, which tells it what is absent. Errors: those of StoreReader;
  // out_of_bounds; invalid_argument (a budget below the least); out_of_memory, device; cancelled.
  static Result<std::unique_ptr<WorldPages>> open(io::StoreReader file, Device& device, SharedWorld& shared,
                                                  const SceneWindow& window, uint64_t budget_bytes, Exchange exchange,
                                                  const Progress& progress);
  ~WorldPages();
  WorldPages(const WorldPages&) = delete;
  WorldPages& operator=(const WorldPages&) = delete;

  // The most bricks that are there at a time, if none is full of one material.
  static uint32_t most_bricks(uint64_t budget_bytes);
  const Box3& bounds() const { return bounds_; }  // of the window, in the world
  // Of all that the scene's visible instances place: voxels where several are in one place count several times.
  uint64_t voxels() const { return voxels_; }
  uint64_t bricks() const { return bricks_; }

  // Brings the pages that the commands before have reached. They must be done, and the next must be recorded after
  // publish(). Blocks while it reads, with all threads. Traffic: the chunks of those pages. Errors: those of
  // StoreReader, and of the exchange; cancelled. Then pages may be absent that were not.
  Result<PagesBrought> bring(const Progress& progress);
  // All visible bricks with a voxel of one of the materials, and the six beside each. Reads the file page by page, the
  // pages' neighbours too. Memory: what is found. Errors: those of StoreReader, cancelled.
  Result<BrickMap> bricks_with(const std::array<bool, 256>& materials, const Progress& progress);

  struct Counters {
    uint64_t pages = 0;                    // that have voxels, or may have where instances are turned
    uint64_t bytes = 0;                    // there now
    uint64_t most_bytes = 0;               // there at any time
    uint64_t brought = 0, left = 0;        // pages so far
    uint64_t bricks_read = 0, rounds = 0;  // of the file, by how many calls of bring() that brought something
    uint64_t there() const { return brought - left; }  // pages now
  };
  const Counters& counters() const { return counters_; }
  uint64_t budget_bytes() const { return budget_bytes_; }

 private:
  struct Page {
    uint64_t bytes = 0;
    uint64_t round = 0;  // of bring(), when it was reached last
    std::vector<uint32_t> keys;
  };

  WorldPages(io::StoreReader file, SharedWorld& shared, const SceneWindow& window, uint64_t budget_bytes,
             Exchange exchange)
      : file_(std::move(file)),
        shared_(&shared),
        window_(window),
        budget_bytes_(budget_bytes),
        exchange_(std::move(exchange)) {}
  Result<void> look_at_file(Device& device, const Progress& progress);
  Result<bool> make_room(uint64_t bytes);
  Box3 in_scene(const Box3& world) const;  // a box of voxels there
  std::vector<BrickPut> in_world(std::vector<BrickPut> of_scene) const;

  io::StoreReader file_;
  SharedWorld* shared_;
  SceneWindow window_;
  uint64_t budget_bytes_;
  Exchange exchange_;
  CoarseLevel coarse_;
  std::unique_ptr<Residency> residency_;
  Box3 bounds_;
  std::vector<Box3> volume_bounds_;
  uint64_t voxels_ = 0, bricks_ = 0, round_ = 0;
  std::unordered_map<uint32_t, Page> there_;
  Counters counters_;
};

}  // namespace quarry::engine
