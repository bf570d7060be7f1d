// SPDX-License-Identifier: Apache-2.0
// visible_regions.hpp - the visible voxels of a scene, flattened into world bricks box by box. The scene is in memory,
// or in a .quarry file that is too large for that. The writers of grids (grids/write.hpp) and of meshes
// (surface_source.hpp) use it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "voxel/io/quarry/reader.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::io {

class VisibleRegions {
 public:
  // For a scene in memory, which must outlive this object. One box contains all. Errors: out_of_bounds (flatten).
  static Result<VisibleRegions> of(const Scene& scene, const Progress& progress);
  // For a world file. `bounds` are those of each volume's voxels. `available_bytes` tells how many bytes may be
  // allocated in addition to the process's memory. The references must outlive this object. Errors: out_of_bounds (a
  // visible instance reaches beyond kSceneMin and kSceneMax). `visible_only` false: hidden instances and layers count
  // too.
  static Result<VisibleRegions> of(StoreReader& store, const std::vector<Box3>& bounds,
                                   const std::function<uint64_t()>& available_bytes, const Progress& progress,
                                   bool visible_only = true);
  // The same for who has not read the file before: a volume's bounds are those of its chunks. So it is out_of_bounds,
  // too, if only a chunk reaches outside the world, and none of its voxels.
  static Result<VisibleRegions> of_chunks(StoreReader& store, uint64_t available_bytes, const Progress& progress,
                                          bool visible_only);

  const Scene& scene() const { return *scene_; }  // perhaps without bricks
  Box3 bounds() const { return bounds_; }         // of the visible voxels; empty if there are none
  // The bytes that may be allocated now.
  uint64_t available_bytes() const { return available_bytes_ ? available_bytes_() : uint64_t(1) << 40; }
  // Returns the last of the layers of bricks along an axis (0: x, 2: z) that fit memory together, from layer `first`
  // on. Errors: out_of_memory with the numbers if not even one layer fits.
  Result<int32_t> last_layer(size_t axis, int32_t first) const;
  // Returns at least the bricks of layers [first, last] along the axis. Those bricks are whole.
  Result<BrickMap> layers(size_t axis, int32_t first, int32_t last) const;
  // Shows the visible bricks in a box of world bricks, rising in each call: as many boxes as it must be so that each
  // fits memory, in any order. Errors: those of `take`; out_of_memory if what a single brick is made from does not fit.
  using TakeBricks = std::function<Result<void>(const std::vector<BrickPut>& bricks)>;
  Result<void> visit(const Box3& bricks, const TakeBricks& take) const;
  // The same for a world file, with where each brick is from. Boxes are smaller: also what is made in one fits.
  struct ShownBrick {
    Int3 brick;
    SharedBrick value;
    // The brick of a volume that is shown as it is, in the scene's own world by the same handle; none: it is made of
    // parts, or full of one material.
    struct Source {
      uint32_t volume;
      Int3 brick;
    };
    std::optional<Source> source = std::nullopt;
  };
  using TakeShown = std::function<Result<void>(const std::vector<ShownBrick>& bricks)>;
  Result<void> visit_shown(const Box3& bricks, const TakeShown& take) const;
  // Whether a box fits into so many bytes, so that visit() shows it at once if it has them.
  Result<bool> fits(const Box3& bricks, uint64_t bytes) const;
  uint64_t read_regions() const { return regions_; }  // how often voxels were read so far

 private:
  struct Piece {
    uint32_t volume;
    Box3 chunks;
  };
  // Reads the volumes' bricks for boxes that fit memory, which all of `bricks` is cut into. Of a world file.
  // `with_made`: what is made of the bricks must fit, too.
  using TakePart = std::function<Result<void>(const Scene& some, const Box3& bricks)>;
  Result<void> visit_parts(const Box3& bricks, bool with_made, const TakePart& take) const;
  // About how many bricks' memory it takes to place what is visible in a box of world voxels. `most`: enough is known.
  Result<uint64_t> made_in(const Box3& box, uint64_t most) const;
  std::vector<Piece> pieces_of(size_t axis, int32_t first, int32_t last) const;
  std::vector<Piece> pieces_of(const Box3& box) const;  // of world voxels
  Result<uint64_t> bricks_of(const std::vector<Piece>& pieces) const;
  bool counts(const Instance& instance) const;  // and it shows a voxel

  const Scene* scene_ = nullptr;
  Progress progress_;
  Box3 bounds_;
  BrickMap whole_;  // of a scene in memory
  StoreReader* store_ = nullptr;
  bool visible_only_ = true;
  std::vector<Box3> volume_bounds_;
  std::function<uint64_t()> available_bytes_;
  mutable uint64_t regions_ = 0;
};

// Returns at least the visible bricks that meet a box of world voxels; they are whole. Of a world file's chunks it
// reads only those from which an instance can place voxels into the box. `bricks_read`: how many the file has in these.
// Memory: those bricks, twice. Errors: those of StoreReader::read; out_of_bounds (what was read reaches beyond
// kSceneMin and kSceneMax); cancelled.
Result<BrickMap> visible_in_box(StoreReader& store, const Box3& voxels, uint64_t* bricks_read,
                                const Progress& progress);
// The same for many boxes, by all threads together. `take` gets each box's bricks, several threads at once, and how
// many were read for them; `put` is called for each box after that, in their order, by one thread at a time. `bounds`:
// where each volume's voxels are; instances that are elsewhere cost nothing. At most `most_waiting` boxes (at least 1)
// are read and not put. Memory: those boxes' bricks, twice. Errors: the same, and those of the steps.
struct BoxSteps {
  std::function<Result<void>(size_t box, const BrickMap& bricks, uint64_t bricks_read)> take;
  std::function<Result<void>(size_t box)> put;
};
Result<void> visible_in_boxes(StoreReader& store, std::span<const Box3> boxes, const std::vector<Box3>& bounds,
                              const BoxSteps& steps, const Progress& progress, size_t most_waiting);

}  // namespace quarry::io
