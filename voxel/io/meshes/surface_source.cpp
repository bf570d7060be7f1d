// SPDX-License-Identifier: Apache-2.0
// surface_source.cpp - the surface in memory, and the same by external sorting of corners and rectangles if it does not
// fit.
#include "voxel/io/meshes/surface_source.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <tuple>

#include "base/parallel.hpp"
#include "voxel/io/files/spill.hpp"
#include "voxel/io/meshes/write.hpp"
#include "voxel/operations/surface_mesh.hpp"
#include "voxel/operations/surface_rectangles.hpp"
#include "voxel/worlds/flatten.hpp"

namespace quarry::io {
namespace {
namespace fs = std::filesystem;
using namespace surface_detail;

constexpr size_t kPositionsAtOnce = 4096;
constexpr size_t kIndicesAtOnce = 4096;  // of a material, before they are written to disk
constexpr int32_t kLayersAtOnce = 8;     // found by several threads before their rectangles are written to disk
constexpr size_t kRectanglesAtOnce = 1 << 15;

tl::unexpected<Error> nothing_visible() {
  return fail(ErrorCode::invalid_argument, "the scene has no visible voxel, so there is no surface to write");
}
tl::unexpected<Error> stopped() { return fail(ErrorCode::cancelled, "stopped"); }

// The edge of a voxel in the file's units.
Result<int32_t> scale_of(const Scene& scene) {
  const auto it = scene.metadata.find(kMeshScaleKey);
  if (it == scene.metadata.end()) return 1;
  int32_t scale = 1;
  std::from_chars(it->second.data(), it->second.data() + it->second.size(), scale);
  if (scale < 1 || scale > kMaxMeshScale)
    return fail(ErrorCode::invalid_argument,
                "the scene's metadata say '" + it->second + "' as mesh_scale, expected 1 to 65536");
  return scale;
}

Int3 scaled(Int3 p, int32_t scale) { return {p.x * scale, p.y * scale, p.z * scale}; }

class SurfaceInMemory final : public SurfaceSource {
 public:
  SurfaceInMemory(SurfaceMesh mesh, int32_t scale) : mesh_(std::move(mesh)) {
    for (Int3& p : mesh_.positions) p = scaled(p, scale);
    for (const SurfaceMesh::Part& part : mesh_.parts) {
      Box3 bounds{mesh_.positions[part.indices[0]], mesh_.positions[part.indices[0]]};
      for (const uint32_t i : part.indices) bounds = united(bounds, {mesh_.positions[i], mesh_.positions[i]});
      parts_.push_back({part.material, part.indices.size(), bounds});
    }
  }
  uint64_t vertices() const override { return mesh_.positions.size(); }
  std::span<const Part> parts() const override { return parts_; }
  Result<void> positions(uint64_t first, std::span<Int3> out) const override {
    std::copy_n(mesh_.positions.begin() + std::ptrdiff_t(first), out.size(), out.begin());
    return {};
  }
  Result<void> indices(size_t part, const std::function<void(std::span<const uint32_t>)>& take) const override {
    take(mesh_.parts[part].indices);
    return {};
  }

 private:
  SurfaceMesh mesh_;
  std::vector<Part> parts_;
};

class SurfaceOnDisk final : public SurfaceSource {
 public:
  std::unique_ptr<Spill> corners, triangles;  // packed positions; blocks of indices
  int32_t scale = 1;
  uint64_t count = 0;
  std::vector<Part> list;
  struct Block {
    uint64_t at;
    uint32_t count;
  };
  std::array<std::vector<Block>, 256> blocks;  // by material

  uint64_t vertices() const override { return count; }
  std::span<const Part> parts() const override { return list; }
  Result<void> positions(uint64_t first, std::span<Int3> out) const override {
    std::array<uint64_t, kPositionsAtOnce> packed;
    while (!out.empty()) {
      const size_t some = std::min(out.size(), packed.size());
      if (!corners->read_all(first * sizeof(uint64_t), std::span<uint64_t>(packed.data(), some)))
        return corners->good();
      for (size_t i = 0; i < some; ++i) {
        const Coords c = unpack(packed[i]);
        out[i] = scaled({c[0], c[1], c[2]}, scale);
      }
      first += some;
      out = out.subspan(some);
    }
    return {};
  }
  Result<void> indices(size_t part, const std::function<void(std::span<const uint32_t>)>& take) const override {
    std::vector<uint32_t> some;
    for (const Block& block : blocks[list[part].material]) {
      some.resize(block.count);
      if (!triangles->read_all(block.at, std::span<uint32_t>(some))) return triangles->good();
      take(some);
    }
    return {};
  }
};

// A corner sorted for one axis, and its number.
struct NumberedCorner {
  uint64_t key;
  uint64_t index;
  bool operator<(const NumberedCorner& other) const { return key < other.key; }
};

// The corners in one plane perpendicular to an axis, as Triangulation needs them. Memory: 16 bytes a corner.
class PlaneCorners {
 public:
  // No corner is below `low`.
  void begin(uint32_t axis, const Coords& low, size_t count) {
    axis_ = axis;
    low_u_ = low[(axis + 1) % 3];
    low_v_ = low[(axis + 2) % 3];
    for (std::vector<Entry>* list : {&by_u_, &by_v_}) {
      list->clear();
      if (list->capacity() > 2 * count + 1024) std::vector<Entry>().swap(*list);
      list->reserve(count);
    }
  }
  void add(int32_t u, int32_t v, uint32_t index) {  // rising u, then v
    by_u_.push_back({key(u - low_u_, v - low_v_), index});
    by_v_.push_back({key(v - low_v_, u - low_u_), index});
  }
  void finish() {
    std::sort(by_v_.begin(), by_v_.end(), [](const Entry& a, const Entry& b) { return a.key < b.key; });
  }
  void between(Coords from, size_t axis, int32_t end, std::vector<CornerOnLine>& out) const {
    out.clear();
    const int32_t u = from[(axis_ + 1) % 3] - low_u_, v = from[(axis_ + 2) % 3] - low_v_;
    const bool along_u = axis == (axis_ + 1) % 3;
    const std::vector<Entry>& list = along_u ? by_v_ : by_u_;
    const int32_t low = along_u ? low_u_ : low_v_;
    const uint32_t first = along_u ? key(v, u) : key(u, v), last = along_u ? key(v, end - low) : key(u, end - low);
    for (auto it =
             std::lower_bound(list.begin(), list.end(), first, [](const Entry&e, uint32_t k) { return e.key < k; });
         it != list.end() && it->key <= last; ++it)
      out.push_back({int32_t(it->key & 0xffffu) + low, it->index});
  }

 private:
  struct Entry {
    uint32_t key, index;
  };
  // The world is at most 2^14 wide.
  static uint32_t key(int32_t a, int32_t b) { return uint32_t(a) << 16 | uint32_t(b); }
  uint32_t axis_ = 0;
  int32_t low_u_ = 0, low_v_ = 0;
  std::vector<Entry> by_u_, by_v_;
};

// A rectangle. The order is that of surface_mesh() for one axis.
struct SortedRectangle : Rectangle {
  bool operator<(const SortedRectangle& o) const { return std::tie(w, o.up, v1, u0) < std::tie(o.w, up, o.v1, o.u0); }
};

// The data flow: slabs of layers along the two longer axes -> rectangles, and their corners -> corners sorted by x,
// which gives them their numbers, then by y and by z -> for each plane its rectangles and its corners, which are all
// that its triangles need -> indices by material. Slabs along an axis yield that axis's own rectangles, plane by plane.
// They also yield those of the next axis, whose rows rise along it: rectangles that are open at the end of a slab
// continue in the next one. So no slab is as wide and as deep as the two longer axes.
class SurfaceBuilder {
 public:
  SurfaceBuilder(const VisibleRegions& voxels, const fs::path& file, const Progress& progress)
      : voxels_(voxels),
        file_(file),
        progress_(progress),
        finder_(voxels.scene().palette),
        sort_bytes_(std::clamp<uint64_t>(voxels.available_bytes() / 24, 1 << 20, 64 << 20)) {}

  Result<std::unique_ptr<SurfaceSource>> make() {
    auto out = std::make_unique<SurfaceOnDisk>();
    QRY_TRY_ASSIGN(const auto scale, scale_of(voxels_.scene()));
    out->scale = scale;
    if (!voxels_.bounds().empty()) QRY_TRY(check_surface_extent(voxels_.bounds(), scale));
    for (std::unique_ptr<Spill>* spill : {&rectangles_, &unsorted_, &sorted_again_, &out->corners, &out->triangles}) {
      QRY_TRY_ASSIGN(auto made, Spill::create(file_));
      *spill = std::move(made);
    }
    for (auto& sort : by_plane_) sort.emplace(*rectangles_, sort_bytes_);
    corners_.emplace(*unsorted_, sort_bytes_);
    QRY_TRY(find_rectangles());
    if (found_ == 0) return nothing_visible();
    std::array<std::optional<SpilledSort<NumberedCorner>>, 3> by_axis;
    for (size_t axis = 1; axis < 3; ++axis) by_axis[axis].emplace(*sorted_again_, sort_bytes_);
    QRY_TRY(number_corners(by_axis, *out));
    for (uint32_t axis = 0; axis < 3; ++axis) QRY_TRY(triangulate(axis, by_axis[axis], *out));
    finish(*out);
    QRY_TRY(out->triangles->good());
    return std::unique_ptr<SurfaceSource>(std::move(out));
  }

 private:
  void say(double fraction) const { progress_.say("surface", fraction); }

  // The bricks of layers [from, to] along the axis, from this region and the last layers of the previous one.
  struct Window {
    uint32_t axis;
    int32_t from, to;
    const BrickMap *now, *kept;
    std::optional<BrickView> find(Int3 at) const {
      const int32_t along = coords_of(at)[axis];
      if (along > to) return std::nullopt;
      return along >= from ? now->find(at) : kept->find(at);
    }
  };

  Result<void> find_rectangles() {
    const Box3 bounds = voxels_.bounds();
    if (bounds.empty()) return nothing_visible();
    const Coords low = coords_of(brick_of(bounds.min)), high = coords_of(brick_of(bounds.max));
    uint32_t shortest = 1;
    for (const uint32_t axis : {0u, 2u})
      if (high[axis] - low[axis] < high[shortest] - low[shortest]) shortest = axis;
    std::optional<BrickMap> all;  // if everything fits at once
    double slabs_done = 0;
    for (uint32_t axis = 0; axis < 3; ++axis) {
      if (axis == shortest) continue;
      const bool sweeps = (axis + 1) % 3 == shortest;
      open_.assign(sweeps ? size_t(high[shortest] - low[shortest] + 1) : 0, {});
      BrickMap kept;             // the last two layers read
      int32_t next = low[axis];  // the first layer whose faces are not found
      for (int32_t from = low[axis]; from <= high[axis];) {
        BrickMap read;
        int32_t to = high[axis];
        if (!all) {
          QRY_TRY_ASSIGN(const auto last, voxels_.last_layer(axis, from));
          to = last;
          QRY_TRY_ASSIGN(auto some, voxels_.layers(axis, from, to));
          read = std::move(some);
          if (from == low[axis] && to == high[axis]) all = std::move(read);
        }
        // NOLINTNEXTLINE(bugprone-use-after-move): it was moved to `all`
        const Window window{axis, from, to, all ? &*all : &read, &kept};
        // The faces of the last layer need the layer after it.
        const int32_t ready = to == high[axis] ? to : to - 1;
        QRY_TRY(layers(window, axis, next, ready, low));
        if (sweeps) QRY_TRY(layers(window, shortest, from, to, low));
        say(0.5 * (slabs_done + double(to - low[axis] + 1) / double(high[axis] - low[axis] + 1)) / 2);
        next = std::max(next, ready + 1);
        if (to < high[axis]) kept = last_two(window);
        from = to + 1;
      }
      ++slabs_done;
      std::vector<Rectangle> rest;
      for (auto& layer : open_)
        for (RowMerger& merger : layer) merger.finish(rest);
      QRY_TRY(add(rest));
    }
    corners_->finish();
    open_.clear();
    return unsorted_->good();
  }

  Result<void> add(const std::vector<Rectangle>& found) {
    found_ += found.size();
    for (const Rectangle& r : found) {
      by_plane_[r.axis]->add(SortedRectangle{r});
      for (const auto& [u, v] :
           {std::pair{r.u0, r.v0}, std::pair{r.u1, r.v0}, std::pair{r.u1, r.v1}, std::pair{r.u0, r.v1}}) {
        const Coords c = corner_at(r, u, v);
        corners_->add(pack(c[0], c[1], c[2]));
      }
    }
    QRY_TRY(rectangles_->good());
    return unsorted_->good();
  }

  static BrickMap last_two(const Window& w) {
    BrickMap out;
    const auto take = [&](const BrickMap& map, bool before) {
      for (const auto& [at, brick] : map.bricks()) {
        const int32_t along = coords_of(at)[w.axis];
        if (along >= w.to - 1 && along <= w.to && (along < w.from) == before) out.put(at, brick);
      }
    };
    take(*w.now, false);
    if (w.from == w.to) take(*w.kept, true);
    return out;
  }

  // Finds the faces perpendicular to `axis` in the window's layers [first, last] along the window's axis. If the two
  // axes differ, the faces are the next rows of planes that continue after them.
  Result<void> layers(const Window& window, uint32_t axis, int32_t first, int32_t last, const Coords& low) {
    std::vector<BrickMap::Entry> bricks;
    for (const BrickMap* map : {window.kept, window.now})
      for (const auto& brick : map->bricks()) {
        const int32_t along = coords_of(brick.first)[window.axis];
        if (along >= first && along <= last && (along >= window.from) == (map == window.now)) bricks.push_back(brick);
      }
    // Along x the map's order is that of the layers, and the kept bricks precede it.
    std::vector<BrickLayer> layers;
    add_layers(std::move(bricks), axis, layers);
    Coords step{};
    step[axis] = 1;
    const Int3 ahead{step[0], step[1], step[2]};
    for (size_t done = 0; done < layers.size(); done += kLayersAtOnce) {
      const size_t count = std::min<size_t>(kLayersAtOnce, layers.size() - done);
      std::array<std::vector<Rectangle>, kLayersAtOnce> found;
      parallel_for(count, 1, [&](size_t begin, size_t end) {
        Slices slices;
        for (size_t l = begin; l < end && !progress_.cancelled(); ++l) {
          const BrickLayer& layer = layers[done + l];
          for (FaceKeys& s : slices) s.clear();
          for (const auto& brick : layer.bricks)
            finder_.find(axis, brick.first, brick.second(), window.find(brick.first - ahead),
                         window.find(brick.first + ahead), slices);
          if (axis == window.axis) {
            merge_slices(slices, axis, layer.along, found[l]);
            continue;
          }
          auto& open = open_[size_t(layer.along - low[axis])];
          for (int32_t s = 0; s < 16; ++s)
            open[size_t(s)].add(slices[size_t(s)], axis, s & 1, plane_of_slice(layer.along, s), found[l]);
        }
      });
      if (progress_.cancelled()) return stopped();
      for (size_t l = 0; l < count; ++l) QRY_TRY(add(found[l]));
    }
    return {};
  }

  size_t corners_in_plane(uint32_t axis, int32_t w) const { return in_plane_[axis][size_t(w - low_[axis])]; }

  Result<void> number_corners(std::array<std::optional<SpilledSort<NumberedCorner>>, 3>& by_axis, SurfaceOnDisk& out) {
    const Box3 bounds = voxels_.bounds();
    low_ = coords_of(bounds.min);
    for (size_t axis = 0; axis < 3; ++axis)
      in_plane_[axis].resize(size_t(coords_of(bounds.max)[axis] - low_[axis]) + 2);
    uint64_t key = 0;
    for (; corners_->next(key); ++out.count) {
      if ((out.count & 0xffff) == 0 && progress_.cancelled()) return stopped();
      const Coords c = unpack(key);
      out.corners->append_all(std::span<const uint64_t>(&key, 1));
      for (size_t axis = 0; axis < 3; ++axis) ++in_plane_[axis][size_t(c[axis] - low_[axis])];
      for (size_t axis = 1; axis < 3; ++axis)
        by_axis[axis]->add({pack(c[axis], c[(axis + 1) % 3], c[(axis + 2) % 3]), out.count});
    }
    for (size_t axis = 1; axis < 3; ++axis) by_axis[axis]->finish();
    for (const Spill* spill : {unsorted_.get(), out.corners.get(), sorted_again_.get()}) QRY_TRY(spill->good());
    if (out.count > UINT32_MAX)
      return fail(ErrorCode::unsupported,
                  "the surface has more than 2^32 vertices; make it coarser or cut it into pieces");
    corners_.reset();
    unsorted_.reset();
    return {};
  }

  // Reads corners in the order of planes perpendicular to an axis: w, u, v and number.
  class CornerStream {
   public:
    CornerStream(std::optional<SpilledSort<NumberedCorner>>& sorted, SurfaceOnDisk& surface)
        : sorted_(sorted), surface_(surface) {
      more_ = next();
    }
    // Adds the corners of plane w to `out`, whose begin() was called. w must rise from call to call.
    void plane(int32_t w, PlaneCorners& out) {
      while (more_ && at_[0] < w) more_ = next();
      for (; more_ && at_[0] == w; more_ = next()) out.add(at_[1], at_[2], index_);
      out.finish();
    }

   private:
    bool next() {
      if (sorted_) {
        NumberedCorner c{};
        if (!sorted_->next(c)) return false;
        at_ = unpack(c.key);
        index_ = uint32_t(c.index);
        return true;
      }
      if (read_ == some_.size()) {
        some_.resize(size_t(std::min<uint64_t>(kPositionsAtOnce, surface_.count - from_)));
        if (some_.empty() || !surface_.corners->read_all(from_ * sizeof(uint64_t), std::span<uint64_t>(some_)))
          return false;
        from_ += some_.size();
        read_ = 0;
      }
      at_ = unpack(some_[read_]);
      index_ = uint32_t(from_ - some_.size() + read_++);
      return true;
    }
    std::optional<SpilledSort<NumberedCorner>>& sorted_;  // empty: by x, the order of their numbers
    SurfaceOnDisk& surface_;
    std::vector<uint64_t> some_;
    uint64_t from_ = 0;
    size_t read_ = 0;
    Coords at_{};
    uint32_t index_ = 0;
    bool more_ = false;
  };

  Result<void> triangulate(uint32_t axis, std::optional<SpilledSort<NumberedCorner>>& sorted, SurfaceOnDisk& out) {
    CornerStream stream(sorted, out);
    SpilledSort<SortedRectangle>& source = *by_plane_[axis];
    source.finish();
    std::vector<Rectangle> some;
    std::vector<PlaneCorners> planes;
    std::vector<uint32_t> plane_of;  // of each rectangle
    SortedRectangle next{};
    size_t used = 0;  // planes; the last one is w
    int32_t w = 0;
    for (bool more = source.next(next); more;) {
      if (progress_.cancelled()) return stopped();
      some.clear();
      plane_of.clear();
      if (used > 1) std::swap(planes[0], planes[used - 1]);
      used = std::min<size_t>(used, 1);
      for (; more && some.size() < kRectanglesAtOnce; more = source.next(next)) {
        if (used == 0 || w != next.w) {
          w = next.w;
          if (planes.size() == used) planes.emplace_back();
          planes[used].begin(axis, low_, corners_in_plane(axis, w));
          stream.plane(w, planes[used++]);
        }
        some.push_back(next);
        plane_of.push_back(uint32_t(used - 1));
      }
      QRY_TRY(make_triangles(some, plane_of, planes, out));
      say(0.5 + 0.5 * double(made_ += some.size()) / double(found_));
    }
    by_plane_[axis].reset();
    sorted.reset();
    for (const Spill* spill : {rectangles_.get(), sorted_again_.get(), out.corners.get()}) QRY_TRY(spill->good());
    return {};
  }

  Result<void> make_triangles(const std::vector<Rectangle>& rectangles, const std::vector<uint32_t>& plane_of,
                              const std::vector<PlaneCorners>& planes, SurfaceOnDisk& out) {
    constexpr size_t kPiecesAtOnce = 64;
    struct Piece {
      std::vector<uint32_t> indices, ends;  // ends: the end of each rectangle's indices
    };
    std::vector<Piece> pieces(std::min(kPiecesAtOnce, (rectangles.size() + kGrain - 1) / kGrain));
    for (size_t done = 0; done < rectangles.size(); done += pieces.size() * kGrain) {
      const size_t count = std::min(pieces.size(), (rectangles.size() - done + kGrain - 1) / kGrain);
      parallel_for(count, 1, [&](size_t begin, size_t end) {
        for (size_t p = begin; p < end; ++p) {
          Piece& piece = pieces[p];
          piece.indices.clear();
          piece.ends.clear();
          const size_t from = done + p * kGrain, to = std::min(rectangles.size(), from + kGrain);
          for (size_t i = from; i < to;) {
            Triangulation triangulation(planes[plane_of[i]]);
            for (const uint32_t plane = plane_of[i]; i < to && plane_of[i] == plane; ++i) {
              triangulation.add(rectangles[i], piece.indices);
              piece.ends.push_back(uint32_t(piece.indices.size()));
            }
          }
        }
      });
      for (size_t p = 0; p < count; ++p) {
        uint32_t from = 0;
        for (size_t i = 0; i < pieces[p].ends.size(); ++i) {
          add_triangles(rectangles[done + p * kGrain + i],
                        std::span<const uint32_t>(pieces[p].indices).subspan(from, pieces[p].ends[i] - from), out);
          from = pieces[p].ends[i];
        }
      }
    }
    return out.triangles->good();
  }

  void add_triangles(const Rectangle& r, std::span<const uint32_t> indices, SurfaceOnDisk& out) {
    std::vector<uint32_t>& pending = pending_[r.material];
    pending.insert(pending.end(), indices.begin(), indices.end());
    const Coords low = corner_at(r, r.u0, r.v0), high = corner_at(r, r.u1, r.v1);
    const Box3 box{scaled({low[0], low[1], low[2]}, out.scale), scaled({high[0], high[1], high[2]}, out.scale)};
    bounds_[r.material] = counts_[r.material] ? united(bounds_[r.material], box) : box;
    counts_[r.material] += indices.size();
    if (pending.size() >= kIndicesAtOnce) put(r.material, out);
  }
  void put(size_t material, SurfaceOnDisk& out) {
    out.blocks[material].push_back({out.triangles->size(), uint32_t(pending_[material].size())});
    out.triangles->append_all(std::span<const uint32_t>(pending_[material]));
    pending_[material].clear();
  }
  void finish(SurfaceOnDisk& out) {
    for (size_t m = 1; m < 256; ++m) {
      if (!pending_[m].empty()) put(m, out);
      if (counts_[m]) out.list.push_back({uint8_t(m), counts_[m], bounds_[m]});
    }
  }

  const VisibleRegions& voxels_;
  const fs::path& file_;
  const Progress& progress_;
  const FaceFinder finder_;
  const uint64_t sort_bytes_;
  std::unique_ptr<Spill> rectangles_, unsorted_, sorted_again_;
  std::array<std::optional<SpilledSort<SortedRectangle>>, 3> by_plane_;  // by axis
  std::optional<SpilledSort<uint64_t>> corners_;
  std::vector<std::array<RowMerger, 16>> open_;  // by layer along the shortest axis
  uint64_t found_ = 0, made_ = 0;                // rectangles
  Coords low_{};
  std::array<std::vector<uint32_t>, 3> in_plane_;   // corners, by axis and plane from low_ on
  std::array<std::vector<uint32_t>, 256> pending_;  // by material: indices not yet on disk
  std::array<uint64_t, 256> counts_{};
  std::array<Box3, 256> bounds_{};
};

}  // namespace

Result<std::unique_ptr<SurfaceSource>> surface_of(const Scene& scene, const Progress& progress) {
  QRY_TRY_ASSIGN(const auto scale, scale_of(scene));
  QRY_TRY_ASSIGN(auto mesh, visible_surface(scene, progress));
  // Its corners rise, but not along each axis.
  Box3 bounds;
  for (const Int3 p : mesh.positions) bounds = united(bounds, {p, p});
  QRY_TRY(check_surface_extent(bounds, scale));
  return std::unique_ptr<SurfaceSource>(std::make_unique<SurfaceInMemory>(std::move(mesh), scale));
}

Result<std::unique_ptr<SurfaceSource>> surface_of(const VisibleRegions& voxels, const fs::path& file,
                                                  const Progress& progress) {
  return SurfaceBuilder(voxels, file, progress).make();
}

Result<void> VertexNumbers::use(const SurfaceSource& surface, size_t part) {
  std::fill(used_.begin(), used_.end(), 0);
  auto read = surface.indices(part, [&](std::span<const uint32_t> indices) {
    for (const uint32_t i : indices) used_[i >> 6] |= uint64_t(1) << (i & 63);
  });
  count_ = 0;
  for (size_t w = 0; w < used_.size(); ++w) {
    before_[w] = uint32_t(count_);
    count_ += uint64_t(std::popcount(used_[w]));
  }
  return read;
}

Result<void> VertexNumbers::positions(const SurfaceSource& surface, const std::function<void(Int3)>& take) const {
  std::array<Int3, kPositionsAtOnce> some;
  constexpr size_t kWords = kPositionsAtOnce / 64;
  for (size_t w = 0; w < used_.size(); w += kWords) {
    const size_t end = std::min(used_.size(), w + kWords);
    if (std::all_of(used_.begin() + std::ptrdiff_t(w), used_.begin() + std::ptrdiff_t(end),
                    [](uint64_t bits) { return bits == 0; }))
      continue;
    QRY_TRY(surface.positions(
        w * 64,
        std::span<Int3>(some.data(), size_t(std::min<uint64_t>(kPositionsAtOnce, surface.vertices() - w * 64)))));
    for (size_t i = w; i < end; ++i)
      for (uint64_t left = used_[i]; left; left &= left - 1) take(some[(i - w) * 64 + size_t(std::countr_zero(left))]);
  }
  return {};
}

}  // namespace quarry::io
