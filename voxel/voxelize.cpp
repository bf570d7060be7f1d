#include "voxel/voxelize.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <new>

#include "hashgrid/parallel.hpp"
#include "voxel/voxelize_color.hpp"
#include "voxel/voxelize_overlap.hpp"
#include "voxel/voxelize_palette.hpp"

namespace quarry {
namespace {
using namespace voxelize_detail;

constexpr int kBrickShift = kFractionBits + 3;
constexpr int32_t kMaxDimXZ = 16384, kMaxDimY = 4096;
constexpr double kMargin = 0.25;  // of a voxel, on each side of the bounds when a resolution is given
constexpr size_t kTrianglesPerPiece = 2048, kBricksPerPiece = 128;

// A brick and a triangle that touches it, in one word whose order is that of (brick x, y, z, triangle).
//   triangle 30 bits | z 11 | y 10 | x 11       brick coordinates biased by 1024, 0, 1024
using Pair = uint64_t;
constexpr int kTriangleBits = 30;
Pair pair_of(int32_t x, int32_t y, int32_t z, uint32_t triangle) {
  return uint64_t(uint32_t(x + 1024)) << (kTriangleBits + 21) | uint64_t(uint32_t(y)) << (kTriangleBits + 11) |
         uint64_t(uint32_t(z + 1024)) << kTriangleBits | triangle;
}
Int3 brick_of_pair(Pair p) {
  return {int32_t(p >> (kTriangleBits + 21)) - 1024, int32_t(p >> (kTriangleBits + 11) & 1023), int32_t(p >> kTriangleBits & 2047) - 1024};
}

// What one piece of bricks became.
struct BrickPiece {
  std::vector<std::pair<Int3, BrickMask>> bricks;
  std::vector<PackedLook> looks;  // of each set voxel in the order of the masks' bits; empty if the mesh is uniform
};

class Voxelizer {
 public:
  Voxelizer(const Mesh& mesh, const VoxelizeOptions& options, const VoxelFrame& frame)
      : mesh_(mesh), options_(options), frame_(frame), surface_(mesh), threads_(options.threads ? options.threads : thread_count()) {}

  Result<Scene> run() {
    snap_vertices();
    collect_pairs();
    if (const auto good = going(); !good) return tl::unexpected(good.error());
    sort_pairs();
    find_starts();
    voxelize_bricks();
    if (const auto good = going(); !good) return tl::unexpected(good.error());
    return build_scene();
  }

 private:
  // Runs a piece of parallel work: nothing thrown may leave it, and one report at a time comes out.
  template <class Body>
  void in_parallel(const char* stage, double from, double to, size_t count, size_t grain, Body&& body) {
    std::atomic<size_t> done{0};
    parallel_for(count, grain, [&](size_t begin, size_t end) {
      if (out_of_memory_.load(std::memory_order_relaxed) || options_.progress.cancelled()) return;
      try {
        body(begin, end);
      } catch (const std::bad_alloc&) {
        out_of_memory_.store(true, std::memory_order_relaxed);
      }
      const size_t now = done.fetch_add(end - begin, std::memory_order_relaxed) + (end - begin);
      if (options_.progress.report)
        if (const std::unique_lock lock(report_mutex_, std::try_to_lock); lock)
          options_.progress.say(stage, from + (to - from) * double(now) / double(count));
    }, threads_);
  }
  Result<void> going() const {
    if (options_.progress.cancelled()) return fail(ErrorCode::cancelled, "cancelled while voxelising");
    if (out_of_memory_) return fail(ErrorCode::out_of_memory, "not enough memory to voxelise at this resolution; use a lower one");
    return {};
  }

  void snap_vertices() {
    fixed_.resize(mesh_.positions.size());
    const int32_t dims[3] = {frame_.dims.x, frame_.dims.y, frame_.dims.z}, shift[3] = {frame_.shift.x, frame_.shift.y, frame_.shift.z};
    in_parallel("voxelise", 0, 0.02, mesh_.vertex_count(), 1 << 16, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i)
        for (size_t k = 0; k < 3; ++k) {
          const double voxels = (double(mesh_.positions[i * 3 + k]) - frame_.origin[k]) * frame_.scale;
          const int64_t odd = 2 * int64_t(std::floor(voxels * double(kUnit / 2))) + 1;
          const int64_t inside = std::clamp<int64_t>(odd, 1, dims[k] * kUnit - 1);
          fixed_[i * 3 + k] = int32_t(inside + shift[k] * kUnit);
        }
    });
  }

  FixedTriangle triangle(size_t t) const {
    FixedTriangle f;
    for (size_t i = 0; i < 3; ++i)
      for (size_t k = 0; k < 3; ++k) f.v[i][k] = fixed_[size_t(mesh_.indices[t * 3 + i]) * 3 + k];
    return f;
  }

  void collect_pairs() {
    const size_t count = mesh_.triangle_count();
    std::vector<std::vector<Pair>> found((count + kTrianglesPerPiece - 1) / kTrianglesPerPiece);
    in_parallel("voxelise", 0.02, 0.2, count, kTrianglesPerPiece, [&](size_t begin, size_t end) {
      std::vector<Pair>& out = found[begin / kTrianglesPerPiece];
      for (size_t t = begin; t < end; ++t) {
        const FixedTriangle f = triangle(t);
        visit_cells(f, kBrickShift, cells_of(f, kBrickShift),
                    [&](int32_t x, int32_t y, int32_t z) { out.push_back(pair_of(x, y, z, uint32_t(t))); });
      }
    });
    size_t total = 0;
    for (const auto& part : found) total += part.size();
    pairs_.reserve(total);
    for (auto& part : found) {
      pairs_.insert(pairs_.end(), part.begin(), part.end());
      std::vector<Pair>().swap(part);
    }
  }

  void sort_pairs() {
    // Each thread sorts a part, then neighbours merge. Pairs are distinct, so the order is the same whatever the parts.
    const size_t part = std::max<size_t>(1 << 14, (pairs_.size() + threads_ - 1) / threads_);
    const auto at = [&](size_t i) { return pairs_.begin() + std::ptrdiff_t(std::min(i, pairs_.size())); };
    in_parallel("voxelise", 0.2, 0.25, (pairs_.size() + part - 1) / part, 1,
                [&](size_t begin, size_t) { std::sort(at(begin * part), at((begin + 1) * part)); });
    for (size_t width = part; width < pairs_.size(); width *= 2)
      in_parallel("voxelise", 0.25, 0.3, (pairs_.size() + 2 * width - 1) / (2 * width), 1, [&](size_t begin, size_t) {
        std::inplace_merge(at(begin * 2 * width), at(begin * 2 * width + width), at((begin + 1) * 2 * width));
      });
  }

  void find_starts() {
    for (size_t i = 0; i < pairs_.size(); ++i)
      if (i == 0 || pairs_[i] >> kTriangleBits != pairs_[i - 1] >> kTriangleBits) starts_.push_back(i);
    starts_.push_back(pairs_.size());
  }

  void voxelize_bricks() {
    const size_t count = starts_.size() - 1;
    pieces_.resize((count + kBricksPerPiece - 1) / kBricksPerPiece);
    in_parallel("voxelise", 0.3, 0.9, count, kBricksPerPiece, [&](size_t begin, size_t end) {
      BrickPiece& piece = pieces_[begin / kBricksPerPiece];
      piece.bricks.reserve(end - begin);
      std::vector<BrickMask> masks;
      for (size_t b = begin; b < end; ++b) voxelize_brick(b, masks, piece);
    });
  }

  void voxelize_brick(size_t b, std::vector<BrickMask>& masks, BrickPiece& piece) const {
    const Int3 brick = brick_of_pair(pairs_[starts_[b]]);
    const int32_t origin[3] = {brick.x * 8, brick.y * 8, brick.z * 8};
    masks.assign(starts_[b + 1] - starts_[b], BrickMask{});
    BrickMask all{}, shared{};  // set by any triangle; set by more than one
    for (size_t i = starts_[b]; i < starts_[b + 1]; ++i) {
      const FixedTriangle f = triangle(uint32_t(pairs_[i]) & ((1u << kTriangleBits) - 1));
      CellRange range = cells_of(f, kFractionBits);
      for (int k = 0; k < 3; ++k) {
        range.lo[k] = std::max(range.lo[k], origin[k]);
        range.hi[k] = std::min(range.hi[k], origin[k] + 7);
      }
      BlockRows rows;
      overlap_block(f, kFractionBits, range, rows);
      BrickMask& mask = masks[i - starts_[b]];
      for (int32_t z = range.lo[2]; z <= range.hi[2]; ++z)
        for (int32_t y = range.lo[1]; y <= range.hi[1]; ++y) {
          // A row of eight voxels lies as two runs of four bits in two octants.
          const uint32_t bits = uint32_t(rows.row[(z - range.lo[2]) * 8 + (y - range.lo[1])]) << (range.lo[0] & 7);
          const uint32_t word = octant_of({0, y, z}), bit = bit_of({0, y, z});
          mask[word] |= uint64_t(bits & 15u) << bit;
          mask[word + 1] |= uint64_t(bits >> 4) << bit;
        }
      for (size_t w = 0; w < 8; ++w) {
        shared[w] |= all[w] & mask[w];
        all[w] |= mask[w];
      }
    }
    uint64_t any = 0;
    for (const uint64_t word : all) any |= word;
    if (!any) return;
    piece.bricks.emplace_back(brick, all);
    if (!surface_.uniform()) color_brick(b, brick, masks, all, shared, piece.looks);
  }

  void color_brick(size_t b, Int3 brick, const std::vector<BrickMask>& masks, const BrickMask& all, const BrickMask& shared,
                   std::vector<PackedLook>& looks) const {
    std::array<LookSum, kVoxelsPerBrick> sums{};
    for (size_t i = starts_[b]; i < starts_[b + 1]; ++i) {
      const uint32_t t = uint32_t(pairs_[i]) & ((1u << kTriangleBits) - 1);
      const FixedTriangle f = triangle(t);
      double corner[3][3];  // in voxels, from the brick's corner
      for (int v = 0; v < 3; ++v) {
        corner[v][0] = double(f.v[v][0] - int64_t(brick.x) * 8 * kUnit) / double(kUnit);
        corner[v][1] = double(f.v[v][1] - int64_t(brick.y) * 8 * kUnit) / double(kUnit);
        corner[v][2] = double(f.v[v][2] - int64_t(brick.z) * 8 * kUnit) / double(kUnit);
      }
      const int level = surface_.level_for(t, frame_.scale);
      for (uint32_t word = 0; word < 8; ++word)
        for (uint64_t bits = masks[i - starts_[b]][word]; bits; bits &= bits - 1) {
          const uint32_t index = word * 64 + uint32_t(std::countr_zero(bits));
          const Int3 v = voxel_from_index(index);
          const double cell[3] = {double(v.x), double(v.y), double(v.z)}, centre[3] = {v.x + 0.5, v.y + 0.5, v.z + 0.5};
          double w[3];
          nearest_point(corner, centre, w);
          // The area matters only where triangles share the voxel. One that only touches it has the least weight, not none.
          const bool one = !(shared[word] >> (index & 63u) & 1u);
          const uint64_t weight = one ? 1 : 1 + uint64_t(std::floor(area_in_cell(corner, cell) * double(1 << 20)));
          sums[index].add(surface_.at(t, w, level), weight);
        }
    }
    for (uint32_t word = 0; word < 8; ++word)
      for (uint64_t bits = all[word]; bits; bits &= bits - 1)
        looks.push_back(pack(sums[word * 64 + uint32_t(std::countr_zero(bits))].mean()));
  }

  Result<Scene> build_scene() {
    std::vector<Pair>().swap(pairs_);
    std::vector<size_t>().swap(starts_);
    std::vector<int32_t>().swap(fixed_);
    Quantised quantised;
    size_t distinct = 1;
    if (surface_.uniform()) {
      const double middle[3] = {1.0 / 3, 1.0 / 3, 1.0 / 3};
      quantised = quantise({{pack(surface_.at(0, middle, 0)), 1}}, threads_);
    } else {
      std::unordered_map<PackedLook, uint64_t> counts;
      for (const BrickPiece& piece : pieces_)
        for (size_t i = 0; i < piece.looks.size();) {
          size_t run = i + 1;
          while (run < piece.looks.size() && piece.looks[run] == piece.looks[i]) ++run;
          counts[piece.looks[i]] += run - i;
          i = run;
        }
      distinct = counts.size();
      std::vector<LookCount> looks;
      looks.reserve(distinct);
      for (const auto& [look, count] : counts) looks.push_back({look, count});
      quantised = quantise(std::move(looks), threads_);
    }
    options_.progress.say("voxelise", 0.95);

    Scene scene;
    scene.palette = quantised.palette;
    Volume& volume = scene.volumes.emplace_back();
    volume.name = options_.name;
    for (BrickPiece& piece : pieces_) {
      size_t at = 0;
      for (const auto& [where, mask] : piece.bricks) {
        Brick brick;
        brick.mask = mask;
        for (uint32_t word = 0; word < 8; ++word)
          for (uint64_t bits = mask[word]; bits; bits &= bits - 1)
            brick.materials[word * 64 + uint32_t(std::countr_zero(bits))] =
                surface_.uniform() ? uint8_t(1) : quantised.of(piece.looks[at++]);
        volume.bricks.put(where, brick);
      }
      piece = BrickPiece{};
    }
    Instance instance;
    instance.name = options_.name;
    scene.instances.push_back(instance);
    char text[64];
    std::snprintf(text, sizeof text, "%.9g", 1 / frame_.scale);
    scene.metadata["voxel_size"] = text;
    scene.metadata["mesh_triangles"] = std::to_string(mesh_.triangle_count());
    scene.metadata["palette_distinct"] = std::to_string(distinct);
    std::snprintf(text, sizeof text, "%.3f", quantised.rms_error);
    scene.metadata["palette_rms_error"] = text;
    options_.progress.say("voxelise", 1);
    return scene;
  }

  const Mesh& mesh_;
  const VoxelizeOptions& options_;
  VoxelFrame frame_;
  Surface surface_;
  uint32_t threads_;
  std::atomic<bool> out_of_memory_{false};
  std::mutex report_mutex_;
  std::vector<int32_t> fixed_;     // 3 per vertex, units of 2^-16 voxel
  std::vector<Pair> pairs_;        // sorted
  std::vector<size_t> starts_;     // of each brick in pairs_, and the end
  std::vector<BrickPiece> pieces_;
};

}  // namespace

Result<VoxelFrame> voxel_frame(const Mesh& mesh, const VoxelizeOptions& options) {
  VoxelFrame frame;
  double low[3] = {0, 0, 0}, high[3] = {0, 0, 0};
  bool any = false;
  // Only vertices that a triangle uses: a stray one must not shrink the mesh.
  for (const uint32_t index : mesh.indices) {
    for (size_t k = 0; k < 3; ++k) {
      const double value = mesh.positions[size_t(index) * 3 + k];
      low[k] = any ? std::min(low[k], value) : value;
      high[k] = any ? std::max(high[k], value) : value;
    }
    any = true;
  }
  double margin = 0;
  const double longest = std::max({high[0] - low[0], high[1] - low[1], high[2] - low[2]});
  if (!(longest > 0)) return fail(ErrorCode::invalid_argument, "the mesh has no extent: all its triangles lie in one point");
  if (options.voxel_size > 0) {
    if (!std::isfinite(options.voxel_size)) return fail(ErrorCode::invalid_argument, "the voxel size must be a finite number");
    frame.scale = 1 / options.voxel_size;
  } else {
    if (options.resolution < 1)
      return fail(ErrorCode::invalid_argument, "the resolution must be at least 1, not " + std::to_string(options.resolution));
    margin = kMargin;
    frame.scale = (options.resolution - 2 * margin) / longest;
  }
  double dims[3];
  for (size_t k = 0; k < 3; ++k) {
    frame.origin[k] = low[k] - margin / frame.scale;
    const double exact = (high[k] - low[k]) * frame.scale + 2 * margin;
    // An edge of a whole number of voxels must not gain a layer from the last digit of a division.
    dims[k] = std::max(1.0, std::ceil(exact - 1e-9 * exact));
  }
  if (dims[0] > kMaxDimXZ || dims[1] > kMaxDimY || dims[2] > kMaxDimXZ) {
    char text[200];
    std::snprintf(
        text, sizeof text,
        "the mesh would be %.0f x %.0f x %.0f voxels, and a world above y = 0 holds %d x %d x %d; use a lower resolution or larger voxels",
        dims[0], dims[1], dims[2], kMaxDimXZ, kMaxDimY, kMaxDimXZ);
    return fail(ErrorCode::out_of_bounds, text);
  }
  frame.dims = {int32_t(dims[0]), int32_t(dims[1]), int32_t(dims[2])};
  frame.shift = {-(frame.dims.x / 2), 0, -(frame.dims.z / 2)};
  return frame;
}

Result<Scene> voxelize(const Mesh& mesh, const VoxelizeOptions& options) {
  if (const auto checked = check_mesh(mesh); !checked) return tl::unexpected(checked.error());
  const auto frame = voxel_frame(mesh, options);
  if (!frame) return tl::unexpected(frame.error());
  try {
    return Voxelizer(mesh, options, *frame).run();
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "not enough memory to voxelise at this resolution; use a lower one");
  }
}

}  // namespace quarry
