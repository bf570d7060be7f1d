// SPDX-License-Identifier: Apache-2.0
// voxelize_bench.cpp - the voxeliser's times on the host and on CUDA for one mesh: `qry_bench_voxelize FILE
// [RESOLUTION...]`. Times are from the mesh in host memory to bricks, masks and materials in host memory, median of 7
// after 2 warm-up runs; "left there": the bricks with all their materials stay in the device's memory, as for a world
// at home there; "scene" adds the making of a Scene. Every line compares the two executors' bricks, masks, materials
// and palettes.
//
// `qry_bench_voxelize FILE --regions RESOLUTION [SIDE SKINS GIB]`: SIDE x SIDE of the mesh, each of SKINS sizes one in
// the other, region by region within GIB of memory, as `quarry convert --gpus` has it, by one CUDA device and by all.
// The bricks are dropped: writing files is apart. A run at an eighth of the resolution is compared with host threads,
// and a first run counts the voxels, untimed.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "voxel/foreign/mesh_client.hpp"
#include "voxel/voxelize/regions.hpp"
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
// Copies of the mesh side by side in x and z, each in several sizes around its middle.
Mesh herd(const Mesh& one, int side, int skins) {
  Mesh out;
  out.materials = one.materials;
  out.images = one.images;
  float low[3], high[3];
  for (size_t k = 0; k < 3; ++k) low[k] = high[k] = one.positions[k];
  for (size_t i = 0; i < one.positions.size(); ++i) {
    low[i % 3] = std::min(low[i % 3], one.positions[i]);
    high[i % 3] = std::max(high[i % 3], one.positions[i]);
  }
  const float step = 1.02f * std::max(high[0] - low[0], high[2] - low[2]);
  const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  for (int x = 0; x < side; ++x)
    for (int z = 0; z < side; ++z)
      for (int skin = 0; skin < skins; ++skin) {
        const auto first = uint32_t(out.vertex_count());
        const float scale = 1 - 0.5f * float(skin) / float(skins), moved[3] = {step * float(x), 0, step * float(z)};
        for (size_t i = 0; i < one.positions.size(); ++i) {
          const size_t k = i % 3;
          const float middle = (low[k] + high[k]) / 2;
          out.positions.push_back((one.positions[i] - middle) * scale + middle + moved[k]);
        }
        append(out.uvs, one.uvs);  // one set
        append(out.colors, one.colors);
        append(out.triangle_material, one.triangle_material);
        for (const uint32_t index : one.indices) out.indices.push_back(first + index);
      }
  return out;
}

struct Facts {
  Palette palette;
  uint64_t voxels = 0, bricks = 0, regions = 0, sum = 0;
  double seconds = 0;
};

enum class Counting : uint8_t { bricks, voxels, all_of_bricks };  // the last takes longer than making them

Result<Facts> in_regions(const Mesh& mesh, const VoxelizeOptions& options, uint64_t room_bytes, Counting counting) {
  Facts facts;
  RegionSink sink;
  sink.available_bytes = [&] { return room_bytes; };
  sink.begin = [&](const Scene& scene) -> Result<void> {
    facts.palette = scene.palette;
    return {};
  };
  const auto start = std::chrono::steady_clock::now();
  sink.take = [&](uint32_t, BrickMap&& taken) -> Result<void> {
    const BrickMap bricks = std::move(taken);
    facts.bricks += bricks.bricks().size();
    if (counting != Counting::bricks) facts.voxels += bricks.voxel_count();
    if (counting == Counting::all_of_bricks)
      for (const auto& [at, brick] : bricks.bricks()) {
        uint64_t hash = uint64_t(brick_key(at)) + 1;
        for (uint32_t i = 0; i < kVoxelsPerBrick; ++i) hash = (hash ^ brick.get(i)) * 0x100000001b3;
        facts.sum += hash;
      }
    return {};
  };
  QRY_TRY_ASSIGN(const auto done, voxelize_in_regions(mesh, options, sink));
  facts.seconds = seconds_since(start);
  facts.regions = done.regions;
  return facts;
}

int regions_bench(const Mesh& one, int argument_count, char** words) {
  const auto number = [&](int i, int otherwise) { return i < argument_count ? std::atoi(words[i]) : otherwise; };
  const int resolution = number(0, 1024), side = number(1, 1), skins = number(2, 1);
  const uint64_t room_bytes = uint64_t(number(3, 4)) << 30;
  const Mesh mesh = herd(one, side, skins);
  fmt::print("{} triangles, in regions within {} GiB\n", mesh.triangle_count(), room_bytes >> 30);
  VoxelizeOptions options;
  const auto run = [&](const char* who, VoxelizeExecutor executor, uint32_t devices, Counting counting) {
    options.executor = executor;
    options.devices = devices;
    const auto facts = in_regions(mesh, options, room_bytes, counting);
    if (!facts) {
      fmt::print("{}: {}\n", who, facts.error().message);
      std::exit(1);
    }
    fmt::print("{:<12} {:>6} {:>10} bricks {:>4} regions", who, options.resolution, facts->bricks, facts->regions);
    if (counting == Counting::bricks) fmt::print(" {:>8.3f} s\n", facts->seconds);
    else fmt::print(" {:>13} voxels\n", facts->voxels);
    std::fflush(stdout);
    return *facts;
  };
  options.resolution = std::max(64, resolution / 8);
  const Facts witness = run("host", VoxelizeExecutor::host, 1, Counting::all_of_bricks);
  for (const uint32_t devices : {1u, 0u}) {
    const Facts made =
        run(devices ? "one device" : "all devices", VoxelizeExecutor::cuda, devices, Counting::all_of_bricks);
    const bool same = made.sum == witness.sum && made.palette == witness.palette && made.voxels == witness.voxels;
    fmt::print("{}\n", same ? "the same as by the host" : "NOT THE SAME AS BY THE HOST");
    if (!same) return 1;
  }
  options.resolution = resolution;
  run("all devices", VoxelizeExecutor::cuda, 0, Counting::voxels);
  for (int round = 0; round < 2; ++round) {
    run("one device", VoxelizeExecutor::cuda, 1, Counting::bricks);
    run("all devices", VoxelizeExecutor::cuda, 0, Counting::bricks);
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) {
    fmt::print(stderr, "usage: qry_bench_voxelize FILE [RESOLUTION... | --regions RESOLUTION [SIDE SKINS GIB]]\n");
    return 2;
  }
  std::vector<int32_t> resolutions;
  const bool regions = count > 2 && std::string_view(words[2]) == "--regions";
  for (int i = 2; i < count && !regions; ++i) resolutions.push_back(std::atoi(words[i]));
  if (resolutions.empty()) resolutions = {256, 512, 1024, 2048};
  auto start = std::chrono::steady_clock::now();
  const auto mesh = read_mesh(words[1], {});
  if (!mesh) {
    fmt::print(stderr, "{}\n", mesh.error().message);
    return 1;
  }
  fmt::print("{}: {} triangles, read in {:.0f} ms\n", words[1], mesh->triangle_count(), seconds_since(start) * 1e3);
  if (regions) return regions_bench(*mesh, count - 3, words + 3);
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
