// SPDX-License-Identifier: Apache-2.0
// visible_regions.hpp - the visible voxels of a scene, laid into world bricks box by box: of a scene in memory, or of a
// .quarry file that is too large for that. What writers of grids (grids/write.hpp) and of meshes (surface_source.hpp)
// stand on.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "voxel/io/quarry/reader.hpp"
#include "voxel/worlds/scene.hpp"

namespace quarry::io {

class VisibleRegions {
 public:
  // Of a scene in memory, which must live as long: one box has it all. Errors: out_of_bounds (flatten).
  static Result<VisibleRegions> of(const Scene& scene, const Progress& progress);
  // Of a world file. `bounds`: of each volume's voxels. `available_bytes`: how many bytes may be taken beside what the
  // process holds. The references must live as long. Errors: out_of_bounds (a visible instance reaches outside the
  // world).
  static Result<VisibleRegions> of(StoreReader& store, const std::vector<Box3>& bounds,
                                   const std::function<uint64_t()>& available_bytes, const Progress& progress);

  const Scene& scene() const { return *scene_; }  // perhaps without bricks
  Box3 bounds() const { return bounds_; }         // of the visible voxels; empty if there are none
  // Bytes that may be taken now.
  uint64_t available_bytes() const { return available_bytes_ ? available_bytes_() : uint64_t(1) << 40; }
  // From layer `first` of bricks along an axis on (0: x, 2: z): the last layer of those that fit memory together.
  // Errors: out_of_memory with the numbers if not even one layer does.
  Result<int32_t> last_layer(size_t axis, int32_t first) const;
  // At least the bricks of layers [first, last] along the axis, those whole.
  Result<BrickMap> layers(size_t axis, int32_t first, int32_t last) const;
  uint64_t read_regions() const { return regions_; }  // calls of layers() so far

 private:
  struct Piece {
    uint32_t volume;
    Box3 chunks;
  };
  std::vector<Piece> pieces_of(size_t axis, int32_t first, int32_t last) const;

  const Scene* scene_ = nullptr;
  Progress progress_;
  Box3 bounds_;
  BrickMap whole_;  // of a scene in memory
  StoreReader* store_ = nullptr;
  std::vector<Box3> volume_bounds_;
  std::function<uint64_t()> available_bytes_;
  mutable uint64_t regions_ = 0;
};

}  // namespace quarry::io
