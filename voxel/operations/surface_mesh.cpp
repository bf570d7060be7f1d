// SPDX-License-Identifier: Apache-2.0
// surface_mesh.cpp - layers in parallel, corners sorted along the lines of each axis, and rectangles triangulated
// through the corners on their edges.
#include "voxel/operations/surface_mesh.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <string>

#include "base/parallel.hpp"
#include "voxel/operations/surface_rectangles.hpp"

namespace quarry {
namespace {
using namespace surface_detail;

// All corners, and the corners on any line along an axis.
class Corners {
 public:
  explicit Corners(const std::vector<Rectangle>& rectangles) {
    all_.reserve(4 * rectangles.size());
    for (const Rectangle& r : rectangles)
      for (const auto& [u, v] :
           {std::pair{r.u0, r.v0}, std::pair{r.u1, r.v0}, std::pair{r.u1, r.v1}, std::pair{r.u0, r.v1}}) {
        const Coords c = corner_at(r, u, v);
        all_.push_back(pack(c[0], c[1], c[2]));
      }
    std::sort(all_.begin(), all_.end());
    all_.erase(std::unique(all_.begin(), all_.end()), all_.end());
  }
  // Call it before between(); size() must be at most 2^32.
  void make_lines() {
    for (size_t axis = 0; axis < 2; ++axis) {
      lines_[axis].reserve(all_.size());
      for (size_t i = 0; i < all_.size(); ++i) {
        const Coords c = unpack(all_[i]);
        lines_[axis].push_back({pack(c[(axis + 1) % 3], c[(axis + 2) % 3], c[axis]), uint32_t(i)});
      }
      std::sort(lines_[axis].begin(), lines_[axis].end(), [](const Entry& a, const Entry& b) { return a.key < b.key; });
    }
  }
  size_t size() const { return all_.size(); }
  Int3 position(size_t i) const {
    const Coords c = unpack(all_[i]);
    return {c[0], c[1], c[2]};
  }
  // The corners from `from` (a corner) to `end` along `axis` on its line, both included.
  void between(Coords from, size_t axis, int32_t end, std::vector<CornerOnLine>& out) const {
    out.clear();
    const int32_t a = from[(axis + 1) % 3], b = from[(axis + 2) % 3];
    const uint64_t first = pack(a, b, from[axis]), last = pack(a, b, end);
    const auto along = [](uint64_t key) { return int32_t(key & 0x1fffffu) - kBias; };
    if (axis == 2) {  // all corners are already in the order of lines along z
      for (auto it = std::lower_bound(all_.begin(), all_.end(), first); it != all_.end() && *it <= last; ++it)
        out.push_back({along(*it), uint32_t(it - all_.begin())});
      return;
    }
    const auto& line = lines_[axis];
    for (auto it =
             std::lower_bound(line.begin(), line.end(), first, [](const Entry&e, uint64_t key) { return e.key < key; });
         it != line.end() && it->key <= last; ++it)
      out.push_back({along(it->key), it->index});
  }

 private:
  struct Entry {
    uint64_t key;
    uint32_t index;
  };
  std::vector<uint64_t> all_;                // rising x, then y, then z
  std::array<std::vector<Entry>, 2> lines_;  // sorted so that a line along x, or y, is contiguous
};

std::vector<BrickLayer> layers_of(const BrickMap& bricks) {
  std::vector<BrickMap::Entry> all;
  all.reserve(bricks.bricks().size());
  for (const auto& brick : bricks.bricks()) all.push_back(brick);
  std::vector<BrickLayer> layers;
  for (uint32_t axis = 0; axis < 3; ++axis) add_layers(all, axis, layers);
  return layers;
}

}  // namespace

uint64_t SurfaceMesh::triangle_count() const {
  uint64_t n = 0;
  for (const Part& p : parts) n += p.indices.size() / 3;
  return n;
}

Result<void> check_surface_extent(const Box3& voxels, int32_t scale) {
  const int64_t most = std::min<int64_t>(kMostSurfaceCoordinate, INT32_MAX / scale - 1);
  for (const int64_t c : {voxels.min.x, voxels.min.y, voxels.min.z, voxels.max.x, voxels.max.y, voxels.max.z})
    if (c < -most || c >= most)
      return fail(ErrorCode::out_of_bounds, "a voxel lies at " + std::to_string(c) +
                                                " along an axis, and a surface is made of those within " +
                                                std::to_string(most) + " of the origin; crop it, or move it nearer");
  return {};
}

Result<SurfaceMesh> surface_mesh(const BrickMap& bricks, const Palette& palette, const SurfaceMeshOptions& options) {
  const auto stopped = [] { return fail(ErrorCode::cancelled, "stopped"); };
  options.progress.say("surface", -1);
  if (!bricks.empty()) QRY_TRY(check_surface_extent(bricks.bounds(), 1));
  const FaceFinder finder(palette);
  const std::vector<BrickLayer> layers = layers_of(bricks);
  std::vector<std::vector<Rectangle>> of_layer(layers.size());
  std::atomic<uint64_t> faces{0};
  parallel_for(
      layers.size(), 1,
      [&](size_t begin, size_t end) {
        Slices slices;
        for (size_t l = begin; l < end && !options.progress.cancelled(); ++l) {
          const BrickLayer& layer = layers[l];
          for (FaceKeys& s : slices) s.clear();
          Coords step{};
          step[layer.axis] = 1;
          const Int3 ahead{step[0], step[1], step[2]};
          for (const auto& brick : layer.bricks)
            finder.find(layer.axis, brick.first, brick.second(), bricks.find(brick.first - ahead),
                        bricks.find(brick.first + ahead), slices);
          for (const FaceKeys& s : slices) faces.fetch_add(s.size(), std::memory_order_relaxed);
          merge_slices(slices, layer.axis, layer.along, of_layer[l]);
        }
      },
      options.threads);
  if (options.progress.cancelled()) return stopped();

  // By material, in the order of the layers.
  std::array<size_t, 257> first{};
  for (const auto& list : of_layer)
    for (const Rectangle& r : list) ++first[r.material + 1u];
  for (size_t m = 0; m < 256; ++m) first[m + 1] += first[m];
  std::vector<Rectangle> rectangles(first[256]);
  std::array<size_t, 257> next = first;
  for (auto& list : of_layer) {
    for (const Rectangle& r : list) rectangles[next[r.material]++] = r;
    std::vector<Rectangle>().swap(list);
  }

  SurfaceMesh mesh;
  mesh.faces = faces;
  mesh.rectangles = rectangles.size();
  Corners corners(rectangles);
  if (corners.size() > UINT32_MAX)
    return fail(ErrorCode::unsupported,
                "the surface has more than 2^32 vertices; make it coarser or cut it into pieces");
  corners.make_lines();
  mesh.positions.resize(corners.size());
  for (size_t i = 0; i < corners.size(); ++i) mesh.positions[i] = corners.position(i);
  for (size_t m = 1; m < 256; ++m) {
    const size_t count = first[m + 1] - first[m];
    if (count == 0) continue;
    std::vector<std::vector<uint32_t>> pieces((count + kGrain - 1) / kGrain);
    parallel_for(
        pieces.size(), 1,
        [&](size_t begin, size_t end) {
          Triangulation triangulation(corners);
          for (size_t p = begin; p < end && !options.progress.cancelled(); ++p)
            for (size_t i = p * kGrain; i < std::min(count, (p + 1) * kGrain); ++i)
              triangulation.add(rectangles[first[m] + i], pieces[p]);
        },
        options.threads);
    if (options.progress.cancelled()) return stopped();
    SurfaceMesh::Part part;
    part.material = uint8_t(m);
    for (auto& piece : pieces) {
      part.indices.insert(part.indices.end(), piece.begin(), piece.end());
      std::vector<uint32_t>().swap(piece);
    }
    mesh.parts.push_back(std::move(part));
    options.progress.say("surface", double(first[m + 1]) / double(rectangles.size()));
  }
  return mesh;
}

}  // namespace quarry
