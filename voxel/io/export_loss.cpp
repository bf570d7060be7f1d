// SPDX-License-Identifier: Apache-2.0
// export_loss.cpp - counts the data that a format does not keep, by its row in the table, and writes a sentence for
// each kind.
#include "voxel/io/export_loss.hpp"

#include <algorithm>
#include <array>

namespace quarry::io {
namespace {

std::string counted(uint64_t n, const char* one, const char* many) {
  return std::to_string(n) + " " + (n == 1 ? one : many);
}

}  // namespace

std::vector<ExportLoss> export_losses(const Scene& scene, const Format& format) {
  std::vector<VolumeSummary> volumes(scene.volumes.size());
  if (format.keeps != kKeepsAll)
    for (size_t v = 0; v < volumes.size(); ++v) volumes[v].add(scene.volumes[v].bricks);
  return export_losses(scene, volumes, format);
}

std::vector<ExportLoss> export_losses(const Scene& scene, const std::vector<VolumeSummary>& volumes,
                                      const Format& format) {
  const auto lacks = [&](uint32_t what) { return (format.keeps & what) == 0; };
  std::vector<ExportLoss> out;
  const auto add = [&](const char* kind, uint64_t count, const char* one, const char* many,
                       const std::string& more = {}) {
    if (count > 0) out.push_back({kind, count, counted(count, one, many) + more});
  };

  uint64_t hidden = 0, hidden_voxels = 0, shown = 0;
  std::vector<uint8_t> placed(scene.volumes.size());
  for (const Instance& i : scene.instances) {
    if (i.volume >= scene.volumes.size()) continue;
    const uint64_t voxels = volumes[i.volume].voxels;
    placed[i.volume] = 1;
    if (voxels == 0) continue;
    if (scene.instance_visible(i)) ++shown;
    else if (++hidden; lacks(kKeepsScene)) hidden_voxels += voxels;
  }
  if (lacks(kKeepsScene)) {
    add("hidden_instances", hidden, "hidden instance", "hidden instances",
        " (" + counted(hidden_voxels, "voxel", "voxels") + ")");
    uint64_t unplaced = 0;
    for (size_t v = 0; v < scene.volumes.size(); ++v) unplaced += !placed[v] && volumes[v].voxels > 0;
    add("unplaced_models", unplaced, "model that nothing places", "models that nothing places");
    if (shown > 1) add("instances", shown, "", "instances as objects of their own");
  }
  // A scene's only model has the name of its file.
  if (lacks(kKeepsNames) && (scene.instances.size() > 1 || scene.volumes.size() > 1)) {
    uint64_t names = 0;
    for (const Volume& v : scene.volumes) names += !v.name.empty();
    for (const Instance& i : scene.instances) names += !i.name.empty();
    add("names", names, "name of a model or instance", "names of models and instances");
  }
  if (lacks(kKeepsLayers))
    add("layers",
        uint64_t(
            std::count_if(scene.layers.begin(), scene.layers.end(), [](const Layer& l) { return !l.name.empty(); })),
        "named layer", "named layers");
  if (lacks(kKeepsCameras)) add("cameras", scene.cameras.size(), "camera", "cameras");

  constexpr uint32_t kOfVoxels = kKeepsColours | kKeepsSurfaces | kKeepsMaterialNames;
  if ((format.keeps & kOfVoxels) == kOfVoxels) return out;
  std::array<uint8_t, 256> used{};
  for (size_t v = 0; v < scene.volumes.size(); ++v)
    if (placed[v])
      for (size_t m = 0; m < 256; ++m) used[m] |= uint8_t(volumes[v].materials[m] > 0);
  uint64_t colours = 0, surfaces = 0, names = 0;
  for (size_t m = 1; m < 256; ++m) {
    if (!used[m]) continue;
    Material plain;
    const Material& material = scene.palette.materials[m];
    plain.r = material.r, plain.g = material.g, plain.b = material.b, plain.a = material.a;
    ++colours;
    surfaces += !(material == plain);
    names += !scene.palette.names[m].empty();
  }
  if (lacks(kKeepsColours)) add("colours", colours, "colour", "colours");
  if (lacks(kKeepsSurfaces))
    add("surfaces", surfaces, "material's roughness, metalness, emission or transparency",
        "materials' roughness, metalness, emission or transparency");
  if (lacks(kKeepsMaterialNames)) add("material_names", names, "name of a material", "names of materials");
  return out;
}

}  // namespace quarry::io
