// mesh_formats.cpp - the format registry's rows for triangle meshes: read in the mesh reader's process (mesh.hpp), then voxelised.
#include <algorithm>
#include <cctype>
#include <cstring>
#include <string_view>

#include "voxel/io/format.hpp"
#include "voxel/io/mesh_write.hpp"
#include "voxel/mesh.hpp"
#include "voxel/voxelize.hpp"

namespace quarry::io {
namespace {

Result<Scene> read(const std::filesystem::path& file, const ReadOptions& options) {
  options.progress.say("read mesh", -1);
  const auto mesh = read_mesh(file, options);
  if (!mesh) return tl::unexpected(mesh.error());
  VoxelizeOptions how;
  how.resolution = options.resolution;
  how.voxel_size = options.voxel_size;
  how.threads = options.threads;
  how.name = file.stem().string();
  how.progress = options.progress;
  auto scene = voxelize(*mesh, how);
  if (!scene) return fail(scene.error().code, file.string() + ": " + scene.error().message);
  std::string kind = file.extension().string();
  std::transform(kind.begin(), kind.end(), kind.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  scene->metadata["source_format"] = kind.empty() ? kind : kind.substr(1);
  scene->metadata["source_file"] = file.filename().string();
  return scene;
}

bool starts_with(std::span<const uint8_t> head, std::string_view magic) {
  return head.size() >= magic.size() && std::memcmp(head.data(), magic.data(), magic.size()) == 0;
}
bool is_glb(std::span<const uint8_t> head) { return starts_with(head, "glTF"); }
bool is_fbx(std::span<const uint8_t> head) { return starts_with(head, "Kaydara FBX Binary"); }
bool is_off(std::span<const uint8_t> head) {
  return starts_with(head, "OFF\n") || starts_with(head, "OFF\r\n") || starts_with(head, "OFF ");
}
bool is_ply(std::span<const uint8_t> head) { return starts_with(head, "ply\n") || starts_with(head, "ply\r\n"); }

constexpr const char* kObj[] = {"obj"};
constexpr const char* kGltf[] = {"gltf", "glb"};
constexpr const char* kPly[] = {"ply"};
constexpr const char* kStl[] = {"stl"};
constexpr const char* kOff[] = {"off"};
constexpr const char* kFbx[] = {"fbx"};
constexpr const char* kDae[] = {"dae"};
constexpr const char* k3mf[] = {"3mf"};

constexpr Format kFormats[] = {
    {"obj", "Wavefront OBJ mesh", kObj, nullptr, read, write_obj},
    {"gltf", "glTF 2.0 mesh", kGltf, is_glb, read, write_gltf},
    {"ply", "PLY mesh", kPly, is_ply, read, write_ply},
    {"stl", "STL mesh", kStl, nullptr, read, nullptr},
    {"off", "OFF mesh", kOff, is_off, read, nullptr},
    {"fbx", "Autodesk FBX mesh", kFbx, is_fbx, read, nullptr},
    {"dae", "COLLADA mesh", kDae, nullptr, read, nullptr},
    {"3mf", "3MF mesh", k3mf, nullptr, read, nullptr},
};

}  // namespace

std::span<const Format> mesh_formats() { return kFormats; }

}  // namespace quarry::io
