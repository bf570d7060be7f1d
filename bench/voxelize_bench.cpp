// SPDX-License-Identifier: Apache-2.0
// voxelize_bench.cpp - the voxeliser's times on the host and on CUDA for one mesh: `qry_bench_voxelize FILE
// [RESOLUTION...]`. Times are from the mesh in host memory to bricks, masks and materials in host memory, median of 7
// after 2 warm-up runs; "left there": the bricks with all their materials stay in the device's memory, as for a world
// at home there; "scene" adds the making of a Scene. Every line compares the two executors' bricks, masks, materials
// and palettes.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "voxel/foreign/mesh_client.hpp"
#include "voxel/voxelize/stage.hpp"

namespace {
using namespace quarry;
using namespace quarry::voxelize_detail;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Median milliseconds of `run`, which returns a Result; exits on an error.
template <class Run>
double median_ms(int repeats, Run&& run) {
  std::vector<double> times;
  for (int i = 0; i < repeats + 2; ++i) {
    const auto start = std::chrono::steady_clock::now();
    if (const auto done = run(); !done) {
      fmt::print("failed: {}\n", done.error().message);
      std::exit(1);
    }
    if (i >= 2) times.push_back(seconds_since(start) * 1e3);
  }
  std::nth_element(times.begin(), times.begin() + std::ptrdiff_t(times.size() / 2), times.end());
  return times[times.size() / 2];
}

struct Flat {
  std::vector<std::pair<Int3, BrickMask>> bricks;
  std::vector<uint8_t> materials;
  Palette palette;
  friend bool operator==(const Flat&, const Flat&) = default;
};
Flat flat(const SurfaceResult& result) {
  Flat out;
  out.palette = result.palette;
  for (const SurfaceBlock& block : result.blocks) {
    out.bricks.insert(out.bricks.end(), block.bricks.begin(), block.bricks.end());
    out.materials.insert(out.materials.end(), block.materials.begin(), block.materials.end());
  }
  return out;
}
}  // namespace

int main(int count, char** words) {
  if (count < 2) {
    fmt::print(stderr, "usage: qry_bench_voxelize FILE [RESOLUTION...]\n");
    return 2;
  }
  std::vector<int32_t> resolutions;
  for (int i = 2; i < count; ++i) resolutions.push_back(std::atoi(words[i]));
  if (resolutions.empty()) resolutions = {256, 512, 1024, 2048};
  auto start = std::chrono::steady_clock::now();
  const auto mesh = read_mesh(words[1], {});
  if (!mesh) {
    fmt::print(stderr, "{}\n", mesh.error().message);
    return 1;
  }
  fmt::print("{}: {} triangles, read in {:.0f} ms\n", words[1], mesh->triangle_count(), seconds_since(start) * 1e3);
  start = std::chrono::steady_clock::now();
  const auto cuda = cuda_for_voxelize();
  fmt::print("CUDA: {} ({:.0f} ms to find out)\n", cuda ? "there" : cuda.error().message, seconds_since(start) * 1e3);
  fmt::print("{:>6} {:>13} {:>12} {:>9} {:>10} {:>10} {:>10} {:>13} {:>10}  {}\n", "N", "surface", "voxels", "bricks",
             "textures ms", "host ms", "cuda ms", "left there ms", "scene ms", "same");
  for (const int32_t n : resolutions)
    for (const SurfaceVoxels surface : {SurfaceVoxels::cover, SurfaceVoxels::thin}) {
      VoxelizeOptions options;
      options.resolution = n;
      options.surface = surface;
      const auto frame = voxel_frame(*mesh, options);
      if (!frame) {
        fmt::print("{:>6} {}\n", n, frame.error().message);
        continue;
      }
      start = std::chrono::steady_clock::now();
      VoxelizeJob job(*mesh, options, *frame);
      const double textures = seconds_since(start) * 1e3;
      Result<SurfaceResult> host_made = SurfaceResult{}, cuda_made = SurfaceResult{};
      const double host = median_ms(n > 1024 ? 3 : 7, [&] { return surface_on_host(job); });
      host_made = surface_on_host(job);
      const double on_cuda = cuda ? median_ms(7, [&] { return surface_on_cuda(job); }) : 0;
      const DeviceSink sink{0, [](const DeviceVoxels&) -> Result<void> { return {}; }};
      bool begun = false;
      const double left_there = cuda ? median_ms(7, [&] { return surface_to_device(job, sink, begun); }) : 0;
      const Flat witness = flat(*host_made);
      uint64_t voxels = 0;
      for (const auto& [at, mask] : witness.bricks)
        for (const uint64_t word : mask) voxels += uint64_t(std::popcount(word));
      const char* same = "no device";
      if (cuda) {
        cuda_made = surface_on_cuda(job);
        same = cuda_made && flat(*cuda_made) == witness ? "yes" : "NO";
      }
      options.executor = cuda ? VoxelizeExecutor::cuda : VoxelizeExecutor::host;
      const double scene = median_ms(3, [&] { return voxelize(*mesh, options); });
      fmt::print("{:>6} {:>13} {:>12} {:>9} {:>10.1f} {:>10.2f} {:>10.2f} {:>13.2f} {:>10.1f}  {}\n", n,
                 surface == SurfaceVoxels::thin ? "6-separating" : "26-separating", voxels, witness.bricks.size(),
                 textures, host, on_cuda, left_there, scene, same);
      std::fflush(stdout);
    }
  return 0;
}
