// SPDX-License-Identifier: Apache-2.0
// vox_fuzz.cpp - reads any bytes as a .vox file. The result is a consistent scene, or an error with a message, with
// little memory and no crash.
#include <cstdlib>
#include <span>

#include "voxel/io/vox/read.hpp"

using namespace quarry;

namespace {

void salvage(std::span<const uint8_t> bytes, const Result<Scene>& sound) {
  std::vector<std::string> warnings;
  io::Salvage salvage;
  const auto scene = io::parse_vox(bytes, &warnings, &salvage);
  if (!scene) {
    // A file that is read without salvage must be read with it too.
    if (scene.error().message.empty() || (sound && salvage.losses().empty())) std::abort();
    return;
  }
  for (const Instance& i : scene->instances)
    if (i.volume >= scene->volumes.size() || i.layer >= int64_t(scene->layers.size())) std::abort();
  if (!sound && salvage.losses().empty()) std::abort();  // something was wrong, so it must be reported
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> warnings;
  const auto scene = io::parse_vox({data, size}, &warnings);
  salvage({data, size}, scene);
  if (!scene) {
    if (scene.error().message.empty()) std::abort();
    return 0;
  }
  uint64_t placed = 0;
  for (const Instance& i : scene->instances) {
    if (i.volume >= scene->volumes.size() || i.layer >= int64_t(scene->layers.size())) std::abort();
    placed += scene->volumes[i.volume].bricks.voxel_count();
  }
  io::VoxFacts facts;
  if (!io::vox_facts(*scene, &facts) || facts.instances != scene->instances.size()) std::abort();
  if (placed < 20000 && scene->instances.size() < 200) (void)scene_facts(*scene, Axes::z_up);
  return 0;
}
