// SPDX-License-Identifier: Apache-2.0
// surface_source.hpp - a visible surface for writers of meshes: its vertices and triangles are in memory, or on disk if
// it was made some layers at a time. Both have the same vertices and triangles in the same order, so the files have the
// same bytes.
#pragma once

#include <bit>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "voxel/io/quarry/visible_regions.hpp"

namespace quarry::io {

// Not thread-safe.
class SurfaceSource {
 public:
  struct Part {  // all triangles of one material
    uint8_t material = 0;
    uint64_t indices = 0;
    Box3 bounds;  // of its vertices
  };
  virtual ~SurfaceSource() = default;
  virtual uint64_t vertices() const = 0;            // at most 2^32, rising
  virtual std::span<const Part> parts() const = 0;  // by rising material; none is empty
  // Reads out.size() vertices from `first` on.
  virtual Result<void> positions(uint64_t first, std::span<Int3> out) const = 0;
  // Passes all indices of a part to `take`, in pieces of whole triangles.
  virtual Result<void> indices(size_t part, const std::function<void(std::span<const uint32_t>)>& take) const = 0;
};

// The surface of a scene in memory. Errors: those of flatten() and surface_mesh(); invalid_argument (no visible voxel,
// or an invalid mesh_scale).
Result<std::unique_ptr<SurfaceSource>> surface_of(const Scene& scene, const Progress& progress);
// The surface of some layers at a time. Memory in addition to theirs: a sixth of the room for sorting, and 16 bytes a
// vertex of the plane with the most. Disk, in the folder of `file` and without a name: 24 bytes a rectangle, some 80 a
// vertex, 4 an index. Errors: also out_of_memory, io.
Result<std::unique_ptr<SurfaceSource>> surface_of(const VisibleRegions& voxels, const std::filesystem::path& file,
                                                  const Progress& progress);

// The vertices that one part uses, numbered from 0 in their order. Memory: a fifth of a byte for each vertex of the
// surface.
class VertexNumbers {
 public:
  explicit VertexNumbers(uint64_t vertices) : used_((vertices + 63) / 64), before_(used_.size()) {}
  // Errors: those of the source.
  Result<void> use(const SurfaceSource& surface, size_t part);
  uint64_t count() const { return count_; }
  uint32_t of(uint32_t vertex) const {
    return before_[vertex >> 6] + uint32_t(std::popcount(used_[vertex >> 6] & ((uint64_t(1) << (vertex & 63)) - 1)));
  }
  // Passes their positions to `take` in order.
  Result<void> positions(const SurfaceSource& surface, const std::function<void(Int3)>& take) const;

 private:
  std::vector<uint64_t> used_;
  std::vector<uint32_t> before_;  // how many vertices before each word's are used
  uint64_t count_ = 0;
};

}  // namespace quarry::io
