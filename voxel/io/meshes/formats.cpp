// SPDX-License-Identifier: Apache-2.0
// formats.cpp - the format registry's rows for triangle meshes. They are read in the mesh reader's process
// (foreign/mesh_client.hpp), then voxelised.
#include <algorithm>
#include <cctype>
#include <cstring>
#include <string_view>
#include <thread>

#include "voxel/foreign/mesh_client.hpp"
#include "voxel/io/files/bytes.hpp"
#include "voxel/io/meshes/write.hpp"
#include "voxel/io/points/cloud.hpp"
#include "voxel/io/streams/format.hpp"
#include "voxel/voxelize/regions.hpp"
#include "voxel/voxelize/triangles.hpp"

namespace quarry::io {
namespace {

VoxelizeOptions voxelize_options(const std::filesystem::path& file, const ReadOptions& options) {
  VoxelizeOptions how;
  how.resolution = options.resolution;
  how.voxel_size = options.voxel_size;
  how.threads = options.threads;
  how.name = file.stem().string();
  how.surface = options.surface;
  how.fill = options.fill;
  how.executor = options.executor;
  how.devices = options.devices;
  how.progress = options.progress;
  how.sink = options.sink;
  return how;
}

void name_source(const std::filesystem::path& file, Scene& scene) {
  std::string kind = file.extension().string();
  std::transform(kind.begin(), kind.end(), kind.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  scene.metadata["source_format"] = kind.empty() ? kind : kind.substr(1);
  scene.metadata["source_file"] = file.filename().string();
}

// Reads the mesh, in a process of its own. `starts`: beside it CUDA starts, if `how` is likely to use it.
Result<Mesh> read_mesh_for(const std::filesystem::path& file, const ReadOptions& options, const VoxelizeOptions& how,
                           bool starts) {
  options.progress.say("read mesh", -1);
  std::jthread starting;
  if (starts) starting = std::jthread([&how] { prepare_voxelize(how); });
  return read_mesh(file, options);
}

Result<Scene> read(const std::filesystem::path& file, const ReadOptions& options) {
  const VoxelizeOptions how = voxelize_options(file, options);
  const auto mesh = read_mesh_for(file, options, how, true);
  QRY_TRY(mesh);
  auto scene = voxelize(*mesh, how);
  if (!scene) return fail(scene.error().code, file.string() + ": " + scene.error().message);
  name_source(file, *scene);
  return scene;
}

Result<RegionsDone> read_regions(const std::filesystem::path& file, const ReadOptions& options,
                                 const RegionSink& sink) {
  const VoxelizeOptions how = voxelize_options(file, options);
  // Only if it is asked for: a budget may have no room for CUDA.
  const bool starts = how.executor == VoxelizeExecutor::cuda;
  QRY_TRY_ASSIGN(const auto mesh, read_mesh_for(file, options, how, starts));
  RegionSink with_source = sink;
  with_source.begin = [&](const Scene& scene) {
    Scene copy = scene;
    name_source(file, copy);
    return sink.begin(copy);
  };
  return voxelize_in_regions(mesh, how, with_source);
}

// A PLY file without faces is a point cloud. One whose header is longer than this is left to the mesh reader.
bool is_point_cloud(const std::filesystem::path& file) {
  constexpr size_t kHeaderBytes = size_t(1) << 16;
  const auto head = read_file_head(file, kHeaderBytes);
  return head && ply_is_points(*head);
}
Result<Scene> read_ply(const std::filesystem::path& file, const ReadOptions& options) {
  return is_point_cloud(file) ? read_ply_points(file, options) : read(file, options);
}

Result<RegionsDone> read_ply_regions(const std::filesystem::path& file, const ReadOptions& options,
                                     const RegionSink& sink) {
  return is_point_cloud(file) ? read_ply_points_regions(file, options, sink) : read_regions(file, options, sink);
}

bool starts_with(std::span<const uint8_t> head, std::string_view magic) {
  return head.size() >= magic.size() && std::memcmp(head.data(), magic.data(), magic.size()) == 0;
}
bool is_off(std::span<const uint8_t> head) {
  return starts_with(head, "OFF\n") || starts_with(head, "OFF\r\n") || starts_with(head, "OFF ");
}
bool is_ply(std::span<const uint8_t> head) { return starts_with(head, "ply\n") || starts_with(head, "ply\r"); }

// The number of voxels follows from the resolution. The cost of writing was measured on a surface of 56,000 bricks.
constexpr FormatCost kMeshCost{.memory_per_written_brick = 10500};

constexpr Format kFormats[] = {
    {
        .name = "obj",
        .title = "Wavefront OBJ mesh",
        .kind = FormatKind::mesh,
        .extensions = {"obj"},
        .read = read,
        .read_regions = read_regions,
        .write = write_obj,
        .write_regions = write_obj_regions,
        .keeps = kKeepsColours | kKeepsSurfaces | kKeepsMaterialNames,
        .cost = kMeshCost,
    },
    {
        .name = "gltf",
        .title = "glTF 2.0 mesh",
        .kind = FormatKind::mesh,
        .extensions = {"gltf", "glb"},
        .magic = "glTF",
        .read = read,
        .read_regions = read_regions,
        .write = write_gltf,
        .write_regions = write_gltf_regions,
        .keeps = kKeepsColours | kKeepsSurfaces | kKeepsMaterialNames,
        .cost = kMeshCost,
    },
    {
        .name = "ply",
        .title = "PLY mesh or points",
        .kind = FormatKind::mesh,
        .extensions = {"ply"},
        .sniff = is_ply,
        .read = read_ply,
        .read_regions = read_ply_regions,
        .write = write_ply,
        .write_regions = write_ply_regions,
        .keeps = kKeepsColours,
        .cost = kMeshCost,
    },
    {
        .name = "stl",
        .title = "STL mesh",
        .kind = FormatKind::mesh,
        .extensions = {"stl"},
        .read = read,
        .read_regions = read_regions,
        .cost = kMeshCost,
    },
    {
        .name = "off",
        .title = "OFF mesh",
        .kind = FormatKind::mesh,
        .extensions = {"off"},
        .sniff = is_off,
        .read = read,
        .read_regions = read_regions,
        .cost = kMeshCost,
    },
    {
        .name = "fbx",
        .title = "Autodesk FBX mesh",
        .kind = FormatKind::mesh,
        .extensions = {"fbx"},
        .magic = "Kaydara FBX Binary",
        .read = read,
        .read_regions = read_regions,
        .cost = kMeshCost,
    },
    {
        .name = "dae",
        .title = "COLLADA mesh",
        .kind = FormatKind::mesh,
        .extensions = {"dae"},
        .read = read,
        .read_regions = read_regions,
        .cost = kMeshCost,
    },
    {
        .name = "3mf",
        .title = "3MF mesh",
        .kind = FormatKind::mesh,
        .extensions = {"3mf"},
        .read = read,
        .read_regions = read_regions,
        .cost = kMeshCost,
    },
};

}  // namespace

std::span<const Format> mesh_formats() { return kFormats; }

}  // namespace quarry::io
