// SPDX-License-Identifier: Apache-2.0
// volume_builder.cpp - converts colours to palette entries, spills bricks when memory runs short, and makes the
// one-volume scene.
#include "voxel/io/streams/volume_builder.hpp"

#include <cstdio>

#include "voxel/voxelize/palette.hpp"

namespace quarry::io {

void ColorTable::finish(Scene& scene, std::vector<std::string>* warnings) {
  constexpr uint64_t kRough = 230;  // 0.9, which material_of restores only nearly
  std::vector<voxelize_detail::MaterialCount> materials;
  materials.reserve(counts_.size());
  for (const auto& [rgba, voxels] : counts_) materials.push_back({uint64_t(rgba) | kRough << 32, voxels});
  const voxelize_detail::Quantised found = voxelize_detail::quantise(std::move(materials), 1);
  scene.palette = found.palette;
  for (Material& m : scene.palette.materials) m.roughness = Material{}.roughness;
  materials_.reserve(counts_.size());
  for (const auto& [rgba, voxels] : counts_) materials_.emplace(rgba, found.of(uint64_t(rgba) | kRough << 32));
  char error[32];
  std::snprintf(error, sizeof error, "%.3f", found.rms_error);
  scene.metadata["palette_distinct"] = std::to_string(counts_.size());
  scene.metadata["palette_rms_error"] = error;
  if (counts_.size() > 255)
    add_warning(warnings, std::to_string(counts_.size()) + " colours became 255 materials; a channel is off by " +
                              error + " of 255 on average (root mean square)");
  counts_.clear();
}

bool VolumeBuilder::spill() {
  // If so few bricks are too many, others use the memory, and spilling would not help.
  constexpr uint64_t kLeastBricks = 2048;
  if (bricks_.bricks().size() < kLeastBricks) return budget_.give_up();
  const bool good = budget_.spill()->add(volume_, std::move(bricks_));
  bricks_ = {};
  counted_ = 0;
  budget_.gone();
  return good;
}

BrickMap VolumeBuilder::take() {
  if (!budget_.spill()) return std::move(bricks_);
  if (!bricks_.empty()) budget_.spill()->add(volume_, std::move(bricks_));
  bricks_ = {};
  return {};
}

Int3 fitting_offset(Int3 size) {
  const auto along = [](int32_t edge, int32_t max) { return edge - 1 <= max ? 0 : -(edge / 2); };
  return {along(size.x, kWorldMax.x), along(size.y, kWorldMax.y), along(size.z, kWorldMax.z)};
}

void add_warning(std::vector<std::string>* warnings, std::string sentence) {
  constexpr size_t kMost = 50;
  if (!warnings || warnings->size() > kMost) return;
  if (warnings->size() == kMost)
    sentence = "there is more to warn of; only the first " + std::to_string(kMost) + " are listed";
  warnings->push_back(std::move(sentence));
}

void add_single_volume(Scene& scene, std::string name, BrickMap bricks, Int3 size) {
  Instance instance;
  instance.volume = uint32_t(scene.volumes.size());
  instance.offset = fitting_offset(size);
  instance.name = name;
  scene.instances.push_back(std::move(instance));
  scene.volumes.push_back({std::move(name), std::move(bricks), size});
}

Result<Scene> named_after(const std::filesystem::path& file, Result<Scene> scene) {
  if (scene) scene->volumes[0].name = scene->instances[0].name = file.stem().string();
  return scene;
}

}  // namespace quarry::io
