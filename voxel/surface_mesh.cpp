#include "voxel/surface_mesh.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <string>

#include "hashgrid/parallel.hpp"

namespace quarry {
namespace {

using Coords = std::array<int32_t, 3>;

constexpr int32_t kBias = 1 << 20;  // makes coordinates positive; far beyond the world
constexpr size_t kGrain = 4096;     // rectangles made into triangles in one go

// A face rectangle: across `axis` at plane w, [u0, u1) x [v0, v1) on the next two axes. `up`: seen from the positive side.
struct Rectangle {
  int32_t w, u0, v0, u1, v1;
  uint8_t axis, up, material, reserved;
};

Coords coords_of(Int3 v) { return {v.x, v.y, v.z}; }

// Faces of one slice seen from one side: v | u | material, in this order of weight.
using FaceKeys = std::vector<uint64_t>;
uint64_t face_key(int32_t u, int32_t v, uint8_t material) { return uint64_t(v + kBias) << 32 | uint64_t(u + kBias) << 8 | material; }

// The voxels of one kind in a brick, and in the bricks before and behind it along an axis.
struct MaskTriple {
  const BrickMask *here, *before, *behind;
};

// Bits of octant word `o`: whether the voxel's neighbour along the axis, ahead or back, is in the mask.
uint64_t neighbours(const MaskTriple& m, uint32_t axis, uint32_t o, bool ahead) {
  // Of a 4^3 word, the bits whose coordinate along x, y or z is below 3.
  constexpr uint64_t kBelow3[3] = {0x7777777777777777u, 0x0fff0fff0fff0fffu, 0x0000ffffffffffffu};
  const uint32_t step = 1u << (2 * axis), octant_bit = 1u << axis;
  const uint64_t word = (*m.here)[o];
  if (ahead) {
    const uint64_t next = (o & octant_bit) ? (*m.behind)[o ^ octant_bit] : (*m.here)[o ^ octant_bit];
    return ((word >> step) & kBelow3[axis]) | ((next << (3 * step)) & ~kBelow3[axis]);
  }
  const uint64_t last = (o & octant_bit) ? (*m.here)[o ^ octant_bit] : (*m.before)[o ^ octant_bit];
  const uint64_t above0 = kBelow3[axis] << step;
  return ((word << step) & above0) | ((last >> (3 * step)) & ~above0);
}

class FaceFinder {
 public:
  FaceFinder(const BrickMap& bricks, const Palette& palette) : bricks_(bricks) {
    for (size_t m = 1; m < 256; ++m) {
      clear_[m] = palette.materials[m].transparency > 0;
      any_clear_ |= clear_[m];
    }
  }

  // The brick's faces across `axis`: slices[2 * (place along the axis) + up].
  void find(uint32_t axis, Int3 at, const Brick& brick, std::array<FaceKeys, 16>& slices) const {
    Coords step{};
    step[axis] = 1;
    const Int3 ahead{step[0], step[1], step[2]};
    const Brick* next = bricks_.find(at + ahead);
    const Brick* before = bricks_.find(at - ahead);
    static constexpr BrickMask kNone{};
    if (!any_clear_) {
      add_faces(axis, at, brick, {&brick.mask, before ? &before->mask : &kNone, next ? &next->mask : &kNone}, slices);
      return;
    }
    const BrickMask clear_here = clear_voxels(&brick), clear_before = clear_voxels(before), clear_next = clear_voxels(next);
    add_faces(axis, at, brick, {&clear_here, &clear_before, &clear_next}, slices);
    const BrickMask here = others(&brick, clear_here), back = others(before, clear_before), front = others(next, clear_next);
    add_faces(axis, at, brick, {&here, &back, &front}, slices);
  }

 private:
  BrickMask clear_voxels(const Brick* brick) const {
    BrickMask out{};
    if (!brick) return out;
    for (uint32_t w = 0; w < 8; ++w)
      for (uint64_t left = brick->mask[w]; left; left &= left - 1) {
        const auto bit = uint32_t(std::countr_zero(left));
        if (clear_[brick->materials[w * 64 + bit]]) out[w] |= uint64_t(1) << bit;
      }
    return out;
  }
  static BrickMask others(const Brick* brick, const BrickMask& clear) {
    BrickMask out{};
    for (uint32_t w = 0; brick && w < 8; ++w) out[w] = brick->mask[w] & ~clear[w];
    return out;
  }
  static void add_faces(uint32_t axis, Int3 at, const Brick& brick, const MaskTriple& masks, std::array<FaceKeys, 16>& slices) {
    const uint32_t u_axis = (axis + 1) % 3, v_axis = (axis + 2) % 3;
    const Coords base{at.x * 8, at.y * 8, at.z * 8};
    for (uint32_t w = 0; w < 8; ++w) {
      if ((*masks.here)[w] == 0) continue;
      for (const bool up : {false, true})
        for (uint64_t left = (*masks.here)[w] & ~neighbours(masks, axis, w, up); left; left &= left - 1) {
          const uint32_t index = w * 64 + uint32_t(std::countr_zero(left));
          const Coords local = coords_of(voxel_from_index(index));
          slices[size_t(2 * local[axis] + up)].push_back(face_key(base[u_axis] + local[u_axis], base[v_axis] + local[v_axis], brick.materials[index]));
        }
    }
  }

  const BrickMap& bricks_;
  std::array<bool, 256> clear_{};
  bool any_clear_ = false;
};

// Runs of a row, merged with equal runs of the row before.
void merge(FaceKeys& faces, uint32_t axis, bool up, int32_t w, std::vector<Rectangle>& out) {
  std::sort(faces.begin(), faces.end());
  std::vector<Rectangle> open, row;  // rising u0
  const auto close_row = [&](int32_t v) {
    // Both lists rise; what the row does not continue is done.
    size_t o = 0;
    for (Rectangle& run : row) {
      while (o < open.size() && open[o].u0 < run.u0) out.push_back(open[o++]);
      if (o < open.size() && open[o].u0 == run.u0) {
        if (open[o].u1 == run.u1 && open[o].material == run.material && open[o].v1 == v) run.v0 = open[o].v0;
        else out.push_back(open[o]);
        ++o;
      }
    }
    out.insert(out.end(), open.begin() + int64_t(o), open.end());
    open.swap(row);
    row.clear();
  };
  int32_t row_v = 0;
  for (const uint64_t key : faces) {
    const int32_t v = int32_t(key >> 32) - kBias, u = int32_t(key >> 8 & 0xffffffu) - kBias;
    const uint8_t material = uint8_t(key);
    if (!row.empty() && row_v != v) close_row(row_v);
    row_v = v;
    if (!row.empty() && row.back().u1 == u && row.back().material == material) ++row.back().u1;
    else row.push_back({w, u, v, u + 1, v + 1, uint8_t(axis), up, material, 0});
  }
  if (!row.empty()) close_row(row_v);
  out.insert(out.end(), open.begin(), open.end());
}

// Corners packed into 63 bits, so that they sort by the first coordinate, then the second, then the third.
uint64_t pack(int32_t a, int32_t b, int32_t c) { return uint64_t(a + kBias) << 42 | uint64_t(b + kBias) << 21 | uint64_t(c + kBias); }

// All corners, and those on any line along an axis.
class Corners {
 public:
  struct OnLine {
    int32_t along;   // the coordinate along the line
    uint32_t index;  // of the corner
  };

  explicit Corners(const std::vector<Rectangle>& rectangles) {
    all_.reserve(4 * rectangles.size());
    for (const Rectangle& r : rectangles)
      for (const auto& [u, v] : {std::pair{r.u0, r.v0}, std::pair{r.u1, r.v0}, std::pair{r.u1, r.v1}, std::pair{r.u0, r.v1}}) {
        const Coords c = at(r, u, v);
        all_.push_back(pack(c[0], c[1], c[2]));
      }
    std::sort(all_.begin(), all_.end());
    all_.erase(std::unique(all_.begin(), all_.end()), all_.end());
  }
  // Before between(); size() must be at most 2^32.
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
  static Coords at(const Rectangle& r, int32_t u, int32_t v) {
    Coords c{};
    c[r.axis] = r.w;
    c[(r.axis + 1u) % 3] = u;
    c[(r.axis + 2u) % 3] = v;
    return c;
  }
  size_t size() const { return all_.size(); }
  Int3 position(size_t i) const {
    const Coords c = unpack(all_[i]);
    return {c[0], c[1], c[2]};
  }
  // The corners from `from` (a corner) to `end` along `axis` on its line, both included.
  void between(Coords from, size_t axis, int32_t end, std::vector<OnLine>& out) const {
    out.clear();
    const int32_t a = from[(axis + 1) % 3], b = from[(axis + 2) % 3];
    const uint64_t first = pack(a, b, from[axis]), last = pack(a, b, end);
    const auto along = [](uint64_t key) { return int32_t(key & 0x1fffffu) - kBias; };
    if (axis == 2) {  // the order of all corners is that of lines along z
      for (auto it = std::lower_bound(all_.begin(), all_.end(), first); it != all_.end() && *it <= last; ++it) out.push_back({along(*it), uint32_t(it - all_.begin())});
      return;
    }
    const auto& line = lines_[axis];
    for (auto it = std::lower_bound(line.begin(), line.end(), first, [](const Entry& e, uint64_t key) { return e.key < key; }); it != line.end() && it->key <= last; ++it)
      out.push_back({along(it->key), it->index});
  }

 private:
  struct Entry {
    uint64_t key;
    uint32_t index;
  };
  static Coords unpack(uint64_t p) { return {int32_t(p >> 42) - kBias, int32_t(p >> 21 & 0x1fffffu) - kBias, int32_t(p & 0x1fffffu) - kBias}; }
  std::vector<uint64_t> all_;                // rising x, then y, then z
  std::array<std::vector<Entry>, 2> lines_;  // sorted so that a line along x, or y, lies together
};

// A rectangle with corners on its edges into triangles, none of them without area: fans close the left and the right edge, a strip
// between the bottom and the top chain does the rest.
class Triangulation {
 public:
  explicit Triangulation(const Corners& corners) : corners_(corners) {}

  void add(const Rectangle& r, std::vector<uint32_t>& out) {
    const size_t u_axis = (r.axis + 1u) % 3, v_axis = (r.axis + 2u) % 3;
    corners_.between(Corners::at(r, r.u0, r.v0), u_axis, r.u1, bottom_);
    corners_.between(Corners::at(r, r.u0, r.v1), u_axis, r.u1, top_);
    corners_.between(Corners::at(r, r.u0, r.v0), v_axis, r.v1, left_);
    corners_.between(Corners::at(r, r.u1, r.v0), v_axis, r.v1, right_);
    const auto triangle = [&](uint32_t a, uint32_t b, uint32_t c) {
      out.push_back(a);
      out.push_back(r.up ? b : c);
      out.push_back(r.up ? c : b);
    };
    const uint32_t left_apex = bottom_[1].index, right_apex = top_[top_.size() - 2].index;
    for (size_t i = 0; i + 1 < left_.size(); ++i) triangle(left_[i].index, left_apex, left_[i + 1].index);
    for (size_t i = 0; i + 1 < right_.size(); ++i) triangle(right_[i].index, right_[i + 1].index, right_apex);
    const size_t b_end = bottom_.size() - 1, t_end = top_.size() - 2;
    for (size_t b = 1, t = 0; b < b_end || t < t_end;) {
      if (b < b_end && (t == t_end || bottom_[b + 1].along <= top_[t + 1].along)) {
        triangle(bottom_[b].index, bottom_[b + 1].index, top_[t].index);
        ++b;
      } else {
        triangle(bottom_[b].index, top_[t + 1].index, top_[t].index);
        ++t;
      }
    }
  }

 private:
  const Corners& corners_;
  std::vector<Corners::OnLine> bottom_, top_, left_, right_;
};

struct BrickLayer {  // bricks with one coordinate along the axis
  uint32_t axis;
  int32_t along;
  std::vector<const BrickMap::value_type*> bricks;
};

std::vector<BrickLayer> layers_of(const BrickMap& bricks) {
  std::vector<BrickLayer> layers;
  for (uint32_t axis = 0; axis < 3; ++axis) {
    std::vector<const BrickMap::value_type*> sorted;
    sorted.reserve(bricks.bricks().size());
    for (const auto& brick : bricks.bricks()) sorted.push_back(&brick);
    if (axis > 0)
      std::stable_sort(sorted.begin(), sorted.end(), [&](const auto* a, const auto* b) { return coords_of(a->first)[axis] < coords_of(b->first)[axis]; });
    for (const auto* brick : sorted) {
      const int32_t along = coords_of(brick->first)[axis];
      if (layers.empty() || layers.back().axis != axis || layers.back().along != along) layers.push_back({axis, along, {}});
      layers.back().bricks.push_back(brick);
    }
  }
  return layers;
}

}  // namespace

uint64_t SurfaceMesh::triangle_count() const {
  uint64_t n = 0;
  for (const Part& p : parts) n += p.indices.size() / 3;
  return n;
}

Result<SurfaceMesh> surface_mesh(const BrickMap& bricks, const Palette& palette, const SurfaceMeshOptions& options) {
  const auto stopped = [] { return fail(ErrorCode::cancelled, "stopped"); };
  options.progress.say("surface", -1);
  const FaceFinder finder(bricks, palette);
  const std::vector<BrickLayer> layers = layers_of(bricks);
  std::vector<std::vector<Rectangle>> of_layer(layers.size());
  std::atomic<uint64_t> faces{0};
  parallel_for(layers.size(), 1, [&](size_t begin, size_t end) {
    std::array<FaceKeys, 16> slices;
    for (size_t l = begin; l < end && !options.progress.cancelled(); ++l) {
      const BrickLayer& layer = layers[l];
      for (FaceKeys& s : slices) s.clear();
      for (const auto* brick : layer.bricks) finder.find(layer.axis, brick->first, brick->second, slices);
      for (int32_t s = 0; s < 16; ++s) {
        faces.fetch_add(slices[size_t(s)].size(), std::memory_order_relaxed);
        merge(slices[size_t(s)], layer.axis, s & 1, layer.along * 8 + (s >> 1) + (s & 1), of_layer[l]);
      }
    }
  }, options.threads);
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
  if (corners.size() > UINT32_MAX) return fail(ErrorCode::unsupported, "the surface has more than 2^32 vertices; make it coarser or cut it into pieces");
  corners.make_lines();
  mesh.positions.resize(corners.size());
  for (size_t i = 0; i < corners.size(); ++i) mesh.positions[i] = corners.position(i);
  for (size_t m = 1; m < 256; ++m) {
    const size_t count = first[m + 1] - first[m];
    if (count == 0) continue;
    std::vector<std::vector<uint32_t>> pieces((count + kGrain - 1) / kGrain);
    parallel_for(pieces.size(), 1, [&](size_t begin, size_t end) {
      Triangulation triangulation(corners);
      for (size_t p = begin; p < end && !options.progress.cancelled(); ++p)
        for (size_t i = p * kGrain; i < std::min(count, (p + 1) * kGrain); ++i) triangulation.add(rectangles[first[m] + i], pieces[p]);
    }, options.threads);
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
