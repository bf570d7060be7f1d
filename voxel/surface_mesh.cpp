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

class FaceFinder {
 public:
  FaceFinder(const BrickMap& bricks, const Palette& palette) : bricks_(bricks) {
    for (size_t m = 1; m < 256; ++m) kind_[m] = palette.materials[m].transparency > 0 ? 2 : 1;
  }

  // The brick's faces across `axis`: slices[2 * (place along the axis) + up].
  void find(uint32_t axis, Int3 at, const Brick& brick, std::array<FaceKeys, 16>& slices) const {
    const uint32_t u_axis = (axis + 1) % 3, v_axis = (axis + 2) % 3;
    Coords step{};
    step[axis] = 1;
    const Int3 ahead{step[0], step[1], step[2]};
    const Brick* next = bricks_.find(at + ahead);
    const Brick* before = bricks_.find(at - ahead);
    for (uint32_t w = 0; w < 8; ++w)
      for (uint64_t left = brick.mask[w]; left; left &= left - 1) {
        const uint32_t index = w * 64 + uint32_t(std::countr_zero(left));
        const uint8_t material = brick.materials[index];
        const Coords local = coords_of(voxel_from_index(index));
        const auto key = [&] {
          const Coords base{at.x * 8, at.y * 8, at.z * 8};
          return face_key(base[u_axis] + local[u_axis], base[v_axis] + local[v_axis], material);
        };
        for (const int32_t direction : {-1, 1}) {
          Coords other = local;
          other[axis] += direction;
          const Brick* in = other[axis] < 0 ? before : other[axis] > 7 ? next : &brick;
          other[axis] &= 7;
          const uint8_t neighbour = in ? in->materials[voxel_index({other[0], other[1], other[2]})] : uint8_t(0);
          if (kind_[neighbour] != kind_[material]) slices[size_t(2 * local[axis] + (direction > 0))].push_back(key());
        }
      }
  }

 private:
  const BrickMap& bricks_;
  std::array<uint8_t, 256> kind_{};
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
  explicit Corners(const std::vector<Rectangle>& rectangles) {
    auto& xyz = lines_[2];
    xyz.reserve(4 * rectangles.size());
    for (const Rectangle& r : rectangles)
      for (const auto& [u, v] : {std::pair{r.u0, r.v0}, std::pair{r.u1, r.v0}, std::pair{r.u1, r.v1}, std::pair{r.u0, r.v1}}) {
        const Coords c = at(r, u, v);
        xyz.push_back(pack(c[0], c[1], c[2]));
      }
    std::sort(xyz.begin(), xyz.end());
    xyz.erase(std::unique(xyz.begin(), xyz.end()), xyz.end());
    for (size_t axis = 0; axis < 2; ++axis) {
      lines_[axis].reserve(xyz.size());
      for (const uint64_t p : xyz) {
        const Coords c = unpack(p);
        lines_[axis].push_back(pack(c[(axis + 1) % 3], c[(axis + 2) % 3], c[axis]));
      }
      std::sort(lines_[axis].begin(), lines_[axis].end());
    }
  }
  static Coords at(const Rectangle& r, int32_t u, int32_t v) {
    Coords c{};
    c[r.axis] = r.w;
    c[(r.axis + 1u) % 3] = u;
    c[(r.axis + 2u) % 3] = v;
    return c;
  }
  size_t size() const { return lines_[2].size(); }
  Int3 position(size_t i) const {
    const Coords c = unpack(lines_[2][i]);
    return {c[0], c[1], c[2]};
  }
  uint32_t index(const Coords& c) const {
    const auto& xyz = lines_[2];
    return uint32_t(std::lower_bound(xyz.begin(), xyz.end(), pack(c[0], c[1], c[2])) - xyz.begin());
  }
  // The coordinates along `axis` of the corners from `from` (a corner) to `end` on its line, both included.
  void between(Coords from, size_t axis, int32_t end, std::vector<int32_t>& out) const {
    out.clear();
    const auto& line = lines_[axis];
    const int32_t a = from[(axis + 1) % 3], b = from[(axis + 2) % 3];
    const uint64_t last = pack(a, b, end);
    for (auto it = std::lower_bound(line.begin(), line.end(), pack(a, b, from[axis])); it != line.end() && *it <= last; ++it)
      out.push_back(int32_t(*it & 0x1fffffu) - kBias);
  }

 private:
  static Coords unpack(uint64_t p) { return {int32_t(p >> 42) - kBias, int32_t(p >> 21 & 0x1fffffu) - kBias, int32_t(p & 0x1fffffu) - kBias}; }
  std::array<std::vector<uint64_t>, 3> lines_;  // lines_[axis]: sorted so that a line along the axis lies together
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
    const auto index = [&](int32_t u, int32_t v) { return corners_.index(Corners::at(r, u, v)); };
    const auto triangle = [&](uint32_t a, uint32_t b, uint32_t c) {
      out.push_back(a);
      out.push_back(r.up ? b : c);
      out.push_back(r.up ? c : b);
    };
    const uint32_t left_apex = index(bottom_[1], r.v0), right_apex = index(top_[top_.size() - 2], r.v1);
    for (size_t i = 0; i + 1 < left_.size(); ++i) triangle(index(r.u0, left_[i]), left_apex, index(r.u0, left_[i + 1]));
    for (size_t i = 0; i + 1 < right_.size(); ++i) triangle(index(r.u1, right_[i]), index(r.u1, right_[i + 1]), right_apex);
    const size_t b_end = bottom_.size() - 1, t_end = top_.size() - 2;
    for (size_t b = 1, t = 0; b < b_end || t < t_end;) {
      if (b < b_end && (t == t_end || bottom_[b + 1] <= top_[t + 1])) {
        triangle(index(bottom_[b], r.v0), index(bottom_[b + 1], r.v0), index(top_[t], r.v1));
        ++b;
      } else {
        triangle(index(bottom_[b], r.v0), index(top_[t + 1], r.v1), index(top_[t], r.v1));
        ++t;
      }
    }
  }

 private:
  const Corners& corners_;
  std::vector<int32_t> bottom_, top_, left_, right_;
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
  const Corners corners(rectangles);
  if (corners.size() > UINT32_MAX) return fail(ErrorCode::unsupported, "the surface has more than 2^32 vertices; make it coarser or cut it into pieces");
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
