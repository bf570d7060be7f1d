// SPDX-License-Identifier: Apache-2.0
// triangles.cpp - the stages in order, the choice between host threads and CUDA, and the frame into which a mesh is
// scaled.
#include "voxel/voxelize/triangles.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <new>

#include "voxel/voxelize/bricks.hpp"

namespace quarry {
namespace {
using namespace voxelize_detail;

constexpr int32_t kMaxDimXZ = 16384, kMaxDimY = 8192;
constexpr double kMargin = 0.25;  // of a voxel, on each side of the bounds when a resolution is given
// Work is counted in squares of half a voxel's face (several times for coloured surfaces) and triangles. A host thread
// does 1 to 2 times 10^7 of these in a second. CUDA takes 0.2 to 0.35 s to start and 0.3 s to end, once a process, and
// some milliseconds a job (docs/results: an H200 and its host).
constexpr double kColouredCosts = 8, kTriangleCosts = 4;
constexpr double kWorthStarting = 5.5e6, kWorthCuda = 1e5;  // per host thread

double work_of(const VoxelizeJob& job) {
  double squares = 0;
  for (size_t t = 0; t < job.mesh.triangle_count(); ++t) {
    double p[3][3];
    for (size_t i = 0; i < 3; ++i)
      for (size_t k = 0; k < 3; ++k)
        p[i][k] = double(job.mesh.positions[size_t(job.mesh.indices[t * 3 + i]) * 3 + k]) * job.frame.scale;
    const double a[3] = {p[1][0] - p[0][0], p[1][1] - p[0][1], p[1][2] - p[0][2]},
                 b[3] = {p[2][0] - p[0][0], p[2][1] - p[0][1], p[2][2] - p[0][2]};
    const double n[3] = {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
    squares += std::sqrt(dot(n, n));
  }
  return squares * (job.surface.uniform() ? 1 : kColouredCosts) + double(job.mesh.triangle_count()) * kTriangleCosts;
}

Result<SurfaceResult> surface_of(VoxelizeJob& job) {
  const VoxelizeExecutor wanted = job.options.executor;
  if (wanted == VoxelizeExecutor::cuda) {
    QRY_TRY(cuda_for_voxelize());
    return surface_on_cuda(job);
  }
  if (cuda_is_wanted(job) && cuda_for_voxelize()) {
    // A device that is full or fails costs time, not the result.
    auto made = surface_on_cuda(job);
    if (made || made.error().code == ErrorCode::cancelled) return made;
  }
  return surface_on_host(job);
}

Result<void> build_solid(VoxelizeJob& job, SurfaceResult& surface, BrickMap& bricks) {
  const FixedMesh mesh = fixed_mesh(job);
  InsideLayers layers(job, mesh, job.options.fill);
  layers.load(nullptr, job.mesh.triangle_count(), layers.count());
  SolidBuilder builder(surface.blocks, job.options.surface != SurfaceVoxels::none, most_frequent(surface.blocks),
                       bricks);
  for (int32_t layer = 0; layer < layers.count(); ++layer) {
    QRY_TRY(job.going());
    job.options.progress.say("voxelise", 0.96 + 0.04 * layer / layers.count());
    builder.add(layers.next(), all_bricks(job));
  }
  builder.finish();
  return job.going();
}

Result<Scene> scene_of(VoxelizeJob& job) {
  const VoxelizeOptions& o = job.options;
  if (o.sink && o.fill == FillRule::none && o.executor != VoxelizeExecutor::host) {
    bool begun = false;
    const auto made = surface_to_device(job, *o.sink, begun);
    if (made) {
      o.progress.say("voxelise", 1);
      return scene_without_bricks(job, made->palette, made->distinct, made->rms_error);
    }
    // A device that is full or fails costs time, not the result, unless the sink has some of it.
    if (begun || made.error().code == ErrorCode::cancelled) return tl::unexpected(made.error());
  }
  QRY_TRY_ASSIGN(auto surface, surface_of(job));
  job.options.progress.say("voxelise", 0.94);
  Scene scene = scene_without_bricks(job, surface.palette, surface.distinct, surface.rms_error);
  BrickMap& bricks = scene.volumes[0].bricks;
  const auto built =
      job.options.fill == FillRule::none ? build_shell(job, surface.blocks, bricks) : build_solid(job, surface, bricks);
  QRY_TRY(built);
  if (bricks.empty()) return tl::unexpected(too_thin());
  job.options.progress.say("voxelise", 1);
  return scene;
}

}  // namespace

Result<VoxelFrame> voxel_frame(const Mesh& mesh, const VoxelizeOptions& options) {
  VoxelFrame frame;
  double low[3] = {0, 0, 0}, high[3] = {0, 0, 0};
  bool any = false;
  // Only vertices that a triangle uses count, so that a stray vertex does not shrink the mesh.
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
  if (!(longest > 0))
    return fail(ErrorCode::invalid_argument, "the mesh has no extent: all its triangles lie in one point");
  if (options.voxel_size > 0) {
    if (!std::isfinite(options.voxel_size))
      return fail(ErrorCode::invalid_argument, "the voxel size must be a finite number");
    frame.scale = 1 / options.voxel_size;
  } else {
    if (options.resolution < 1)
      return fail(ErrorCode::invalid_argument,
                  "the resolution must be at least 1, not " + std::to_string(options.resolution));
    margin = kMargin;
    frame.scale = (options.resolution - 2 * margin) / longest;
  }
  double dims[3];
  for (size_t k = 0; k < 3; ++k) {
    frame.origin[k] = low[k] - margin / frame.scale;
    const double exact = (high[k] - low[k]) * frame.scale + 2 * margin;
    // An edge of a whole number of voxels must not gain a layer through the rounding of a division.
    dims[k] = std::max(1.0, std::ceil(exact - 1e-9 * exact));
  }
  if (dims[0] > kMaxDimXZ || dims[1] > kMaxDimY || dims[2] > kMaxDimXZ) {
    char text[200];
    std::snprintf(
        text, sizeof text,
        "the mesh would be %.0f x %.0f x %.0f voxels, and a world holds %d x %d x %d; use a lower resolution or larger "
        "voxels",
        dims[0], dims[1], dims[2], kMaxDimXZ, kMaxDimY, kMaxDimXZ);
    return fail(ErrorCode::out_of_bounds, text);
  }
  frame.dims = {int32_t(dims[0]), int32_t(dims[1]), int32_t(dims[2])};
  const bool too_tall = frame.dims.y > kWorldMax.y + 1;  // to rest on y = 0
  frame.shift = {-(frame.dims.x / 2), too_tall ? -(frame.dims.y / 2) : 0, -(frame.dims.z / 2)};
  return frame;
}

void prepare_voxelize(const VoxelizeOptions& options) {
  if (options.executor == VoxelizeExecutor::host) return;
  if (options.executor == VoxelizeExecutor::automatic && !options.sink) {
    // A mesh that fills its bounds is work of four to five times the square of the resolution.
    const double threads = options.threads ? options.threads : thread_count();
    if (options.voxel_size > 0 || 4.5 * options.resolution * options.resolution < threads * kWorthStarting) return;
  }
  (void)cuda_for_voxelize();
}

bool voxelize_detail::cuda_is_wanted(const VoxelizeJob& job) {
  if (job.options.executor != VoxelizeExecutor::automatic) return job.options.executor == VoxelizeExecutor::cuda;
  return work_of(job) >= job.threads * (cuda_has_started() ? kWorthCuda : kWorthStarting);
}

Result<VoxelFrame> voxelize_detail::checked_frame(const Mesh& mesh, const VoxelizeOptions& options) {
  QRY_TRY(check_mesh(mesh));
  if (options.surface == SurfaceVoxels::none && options.fill == FillRule::none)
    return fail(
        ErrorCode::invalid_argument,
        "voxelising neither the surface nor what is inside it leaves nothing; choose a fill rule, parity or winding");
  return voxel_frame(mesh, options);
}

Result<Scene> voxelize(const Mesh& mesh, const VoxelizeOptions& options) {
  QRY_TRY_ASSIGN(const auto frame, voxelize_detail::checked_frame(mesh, options));
  try {
    VoxelizeJob job(mesh, options, frame);
    return scene_of(job);
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::out_of_memory, "not enough memory to voxelise at this resolution; use a lower one");
  }
}

}  // namespace quarry
