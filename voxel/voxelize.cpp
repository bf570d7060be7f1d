#include "voxel/voxelize.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <new>
#include <optional>

#include "voxel/source_units.hpp"
#include "voxel/voxelize_fill.hpp"
#include "voxel/voxelize_stage.hpp"

namespace quarry {
namespace {
using namespace voxelize_detail;

constexpr int32_t kMaxDimXZ = 16384, kMaxDimY = 4096;
constexpr double kMargin = 0.25;  // of a voxel, on each side of the bounds when a resolution is given
// Work is counted in squares of half a voxel's face (of coloured surfaces several times) and triangles. A host thread does 1 to 2 times 10^7 in
// a second; CUDA takes 0.2 to 0.35 s to start and 0.3 s to end, once a process, and some milliseconds a job (docs/results: an H200 and its host).
constexpr double kColouredCosts = 8, kTriangleCosts = 4;
constexpr double kWorthStarting = 5.5e6, kWorthCuda = 1e5;  // a host thread

double work_of(const VoxelizeJob& job) {
  double squares = 0;
  for (size_t t = 0; t < job.mesh.triangle_count(); ++t) {
    double p[3][3];
    for (size_t i = 0; i < 3; ++i)
      for (size_t k = 0; k < 3; ++k) p[i][k] = double(job.mesh.positions[size_t(job.mesh.indices[t * 3 + i]) * 3 + k]) * job.frame.scale;
    const double a[3] = {p[1][0] - p[0][0], p[1][1] - p[0][1], p[1][2] - p[0][2]}, b[3] = {p[2][0] - p[0][0], p[2][1] - p[0][1], p[2][2] - p[0][2]};
    const double n[3] = {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
    squares += std::sqrt(dot(n, n));
  }
  return squares * (job.surface.uniform() ? 1 : kColouredCosts) + double(job.mesh.triangle_count()) * kTriangleCosts;
}

Result<SurfaceResult> surface_of(VoxelizeJob& job) {
  const VoxelizeExecutor wanted = job.options.executor;
  if (wanted == VoxelizeExecutor::cuda) {
    if (const auto there = cuda_for_voxelize(); !there) return tl::unexpected(there.error());
    return surface_on_cuda(job);
  }
  if (wanted == VoxelizeExecutor::automatic && work_of(job) >= job.threads * (cuda_has_started() ? kWorthCuda : kWorthStarting) &&
      cuda_for_voxelize()) {
    // A device that is full or fails costs time, not the result.
    auto made = surface_on_cuda(job);
    if (made || made.error().code == ErrorCode::cancelled) return made;
  }
  return surface_on_host(job);
}

// Walks the bricks of pieces [from, to), giving the memory of each piece back when it is past it.
class PieceWalk {
 public:
  PieceWalk(std::vector<SurfacePiece>& pieces, size_t from, size_t to) : pieces_(pieces), piece_(from), end_(to) { skip_empty(); }
  bool done() const { return piece_ == end_; }
  Int3 where() const { return pieces_[piece_].bricks[brick_].first; }
  Brick take() {
    SurfacePiece& piece = pieces_[piece_];
    Brick out;
    out.mask = piece.bricks[brick_].second;
    for (uint32_t word = 0; word < 8; ++word)
      for (uint64_t bits = out.mask[word]; bits; bits &= bits - 1)
        out.materials[word * 64 + uint32_t(std::countr_zero(bits))] = piece.materials.empty() ? uint8_t(1) : piece.materials[voxel_++];
    ++brick_;
    skip_empty();
    return out;
  }

 private:
  void skip_empty() {
    while (piece_ < end_ && brick_ == pieces_[piece_].bricks.size()) {
      pieces_[piece_++] = SurfacePiece{};
      brick_ = voxel_ = 0;
    }
  }
  std::vector<SurfacePiece>& pieces_;
  size_t piece_, end_, brick_ = 0, voxel_ = 0;
};

// Each thread makes maps of some pieces; pieces follow each other, so that the maps do too.
Result<void> build_shell(VoxelizeJob& job, SurfaceResult& surface, BrickMap& bricks) {
  constexpr size_t kPieces = 16;
  std::vector<BrickMap> parts((surface.pieces.size() + kPieces - 1) / kPieces);
  job.in_parallel(0.94, 1, surface.pieces.size(), kPieces, [&](size_t begin, size_t end) {
    BrickMap& part = parts[begin / kPieces];
    for (PieceWalk walk(surface.pieces, begin, end); !walk.done();) {
      const Int3 where = walk.where();
      part.put(where, walk.take());
    }
  });
  for (BrickMap& part : parts) bricks.append(std::move(part));
  return job.going();
}

uint8_t most_frequent(const SurfaceResult& surface) {
  std::array<uint64_t, 256> counts{};
  for (const SurfacePiece& piece : surface.pieces)
    for (const uint8_t m : piece.materials) ++counts[m];
  counts[0] = 0;
  const auto most = std::max_element(counts.begin(), counts.end());
  return *most ? uint8_t(most - counts.begin()) : uint8_t(1);
}

void add_inside(Brick& brick, const BrickMask& inside, uint8_t material) {
  for (uint32_t word = 0; word < 8; ++word) {
    for (uint64_t bits = inside[word] & ~brick.mask[word]; bits; bits &= bits - 1)
      brick.materials[word * 64 + uint32_t(std::countr_zero(bits))] = material;
    brick.mask[word] |= inside[word];
  }
}

void keep_only(Brick& brick, const BrickMask& inside) {
  for (uint32_t word = 0; word < 8; ++word) {
    for (uint64_t bits = brick.mask[word] & ~inside[word]; bits; bits &= bits - 1)
      brick.materials[word * 64 + uint32_t(std::countr_zero(bits))] = 0;
    brick.mask[word] &= inside[word];
  }
}

Result<void> build_solid(VoxelizeJob& job, SurfaceResult& surface, BrickMap& bricks) {
  const uint8_t material = most_frequent(surface);
  const bool with_surface = job.options.surface != SurfaceVoxels::none;
  InsideLayers layers(job, job.options.fill);
  PieceWalk walk(surface.pieces, 0, surface.pieces.size());
  for (int32_t layer = 0; layer < layers.count(); ++layer) {
    if (const auto good = job.going(); !good) return good;
    job.options.progress.say("voxelise", 0.96 + 0.04 * layer / layers.count());
    for (const auto& [at, inside] : layers.next()) {
      while (!walk.done() && walk.where() < at) {
        const Int3 where = walk.where();
        const Brick brick = walk.take();
        if (with_surface) bricks.put(where, brick);
      }
      Brick brick;
      if (!walk.done() && walk.where() == at) brick = walk.take();
      if (!with_surface) keep_only(brick, inside);
      add_inside(brick, inside, material);
      bricks.put(at, brick);
    }
  }
  while (!walk.done()) {
    const Int3 where = walk.where();
    const Brick brick = walk.take();
    if (with_surface) bricks.put(where, brick);
  }
  return job.going();
}

Result<Scene> scene_of(VoxelizeJob& job) {
  auto surface = surface_of(job);
  if (!surface) return tl::unexpected(surface.error());
  job.options.progress.say("voxelise", 0.94);
  Scene scene;
  scene.palette = surface->palette;
  Volume& volume = scene.volumes.emplace_back();
  volume.name = job.options.name;
  const auto built = job.options.fill == FillRule::none ? build_shell(job, *surface, volume.bricks) : build_solid(job, *surface, volume.bricks);
  if (!built) return tl::unexpected(built.error());
  if (volume.bricks.empty())
    return fail(ErrorCode::invalid_argument, "the mesh is too thin for any voxel of this kind at this resolution; use a higher one, or 26-separating voxels");
  Instance instance;
  instance.name = job.options.name;
  scene.instances.push_back(instance);
  char text[64];
  SourceUnits units{1 / job.frame.scale, {}};
  const int32_t shift[3] = {job.frame.shift.x, job.frame.shift.y, job.frame.shift.z};
  for (size_t k = 0; k < 3; ++k) units.origin[k] = job.frame.origin[k] - shift[k] * units.voxel_size;
  set_source_units(scene, units);
  scene.metadata["mesh_triangles"] = std::to_string(job.mesh.triangle_count());
  scene.metadata["palette_distinct"] = std::to_string(surface->distinct);
  std::snprintf(text, sizeof text, "%.3f", surface->rms_error);
  scene.metadata["palette_rms_error"] = text;
  scene.metadata["voxelize_surface"] = job.thin() ? "6-separating" : job.options.surface == SurfaceVoxels::cover ? "26-separating" : "none";
  scene.metadata["voxelize_fill"] = job.options.fill == FillRule::none ? "none" : job.options.fill == FillRule::parity ? "parity" : "winding";
  job.options.progress.say("voxelise", 1);
  return scene;
}

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

void prepare_voxelize(const VoxelizeOptions& options) {
  if (options.executor == VoxelizeExecutor::host) return;
  if (options.executor == VoxelizeExecutor::automatic) {
    // A mesh that fills its bounds has four to five times the square of the resolution to do.
    const double threads = options.threads ? options.threads : thread_count();
    if (options.voxel_size > 0 || 4.5 * options.resolution * options.resolution < threads * kWorthStarting) return;
  }
  (void)cuda_for_voxelize();
}

Result<Scene> voxelize(const Mesh& mesh, const VoxelizeOptions& options) {
  if (const auto checked = check_mesh(mesh); !checked) return tl::unexpected(checked.error());
  if (options.surface == SurfaceVoxels::none && options.fill == FillRule::none)
    return fail(ErrorCode::invalid_argument, "voxelising neither the surface nor what is inside it leaves nothing; choose a fill rule, parity or winding");
  const auto frame = voxel_frame(mesh, options);
  if (!frame) return tl::unexpected(frame.error());
  try {
    VoxelizeJob job(mesh, options, *frame);
    return scene_of(job);
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "not enough memory to voxelise at this resolution; use a lower one");
  }
}

}  // namespace quarry
