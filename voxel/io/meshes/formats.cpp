// SPDX-License-Identifier: Apache-2.0
// formats.cpp - the format registry's rows for triangle meshes: read in the mesh reader's process (foreign/mesh_client.hpp), then voxelised.
#include <algorithm>
#include <cctype>
#include <cstring>
#include <string_view>
#include <thread>

#include "voxel/io/files/bytes.hpp"
#include "voxel/io/streams/format.hpp"
#include "voxel/io/meshes/write.hpp"
#include "voxel/io/points/cloud.hpp"
#include "voxel/foreign/mesh_client.hpp"
#include "voxel/voxelize/triangles.hpp"
#include "voxel/voxelize/regions.hpp"

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
  how.progress = options.progress;
  return how;
}

void name_source(const std::filesystem::path& file, Scene& scene) {
  std::string kind = file.extension().string();
  std::transform(kind.begin(), kind.end(), kind.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  scene.metadata["source_format"] = kind.empty() ? kind : kind.substr(1);
  scene.metadata["source_file"] = file.filename().string();
}

Result<Scene> read(const std::filesystem::path& file, const ReadOptions& options) {
  options.progress.say("read mesh", -1);
  const VoxelizeOptions how = voxelize_options(file, options);
  const auto mesh = [&] {
    const std::jthread starting([&how] { prepare_voxelize(how); });  // beside the other process's work
    return read_mesh(file, options);
  }();
  QRY_TRY(mesh);
  auto scene = voxelize(*mesh, how);
  if (!scene) return fail(scene.error().code, file.string() + ": " + scene.error().message);
  name_source(file, *scene);
  return scene;
}

Result<RegionsDone> read_regions(const std::filesystem::path& file, const ReadOptions& options, const RegionSink& sink) {
  options.progress.say("read mesh", -1);
  QRY_TRY_ASSIGN(const auto mesh, read_mesh(file, options));
  RegionSink with_source = sink;
  with_source.begin = [&](const Scene& scene) {
    Scene copy = scene;
    name_source(file, copy);
    return sink.begin(copy);
  };
  return voxelize_in_regions(mesh, voxelize_options(file, options), with_source);
}

// A PLY file without faces is a point cloud. One whose header is longer than this is left to the mesh reader.
bool is_point_cloud(const std::filesystem::path& file) {
  constexpr size_t kHeaderBytes = size_t(1) << 16;
  const auto head = read_file_head(file, kHeaderBytes);
  return head && ply_is_points(*head);
}
Result<Scene> read_ply(const std::filesystem::path& file, const ReadOptions& options) { return is_point_cloud(file) ? read_ply_points(file, options) : read(file, options); }

Result<RegionsDone> read_ply_regions(const std::filesystem::path& file, const ReadOptions& options, const RegionSink& sink) {
  return is_point_cloud(file) ? read_ply_points_regions(file, options, sink) : read_regions(file, options, sink);
}

bool starts_with(std::span<const uint8_t> head, std::string_view magic) {
  return head.size() >= magic.size() && std::memcmp(head.data(), magic.data(), magic.size()) == 0;
}
bool is_glb(std::span<const uint8_t> head) { return starts_with(head, "glTF"); }
bool is_fbx(std::span<const uint8_t> head) { return starts_with(head, "Kaydara FBX Binary"); }
bool is_off(std::span<const uint8_t> head) {
  return starts_with(head, "OFF\n") || starts_with(head, "OFF\r\n") || starts_with(head, "OFF ");
}
bool is_ply(std::span<const uint8_t> head) { return starts_with(head, "ply\n") || starts_with(head, "ply\r"); }

constexpr const char* kObj[] = {"obj"};
constexpr const char* kGltf[] = {"gltf", "glb"};
constexpr const char* kPly[] = {"ply"};
constexpr const char* kStl[] = {"stl"};
constexpr const char* kOff[] = {"off"};
constexpr const char* kFbx[] = {"fbx"};
constexpr const char* kDae[] = {"dae"};
constexpr const char* k3mf[] = {"3mf"};

constexpr Format kFormats[] = {
    {"obj", "Wavefront OBJ mesh", kObj, nullptr, read, write_obj, kKeepsColours | kKeepsSurfaces | kKeepsMaterialNames, false, nullptr, read_regions, write_obj_regions},
    {"gltf", "glTF 2.0 mesh", kGltf, is_glb, read, write_gltf, kKeepsColours | kKeepsSurfaces | kKeepsMaterialNames, false, nullptr, read_regions, write_gltf_regions},
    {"ply", "PLY mesh or points", kPly, is_ply, read_ply, write_ply, kKeepsColours, false, nullptr, read_ply_regions, write_ply_regions},
    {"stl", "STL mesh", kStl, nullptr, read, nullptr, 0, false, nullptr, read_regions},
    {"off", "OFF mesh", kOff, is_off, read, nullptr, 0, false, nullptr, read_regions},
    {"fbx", "Autodesk FBX mesh", kFbx, is_fbx, read, nullptr, 0, false, nullptr, read_regions},
    {"dae", "COLLADA mesh", kDae, nullptr, read, nullptr, 0, false, nullptr, read_regions},
    {"3mf", "3MF mesh", k3mf, nullptr, read, nullptr, 0, false, nullptr, read_regions},
};

}  // namespace

std::span<const Format> mesh_formats() { return kFormats; }

}  // namespace quarry::io
