// SPDX-License-Identifier: Apache-2.0
// palette.cpp - reduces and merges palettes: quantise(), merge().
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "voxel/operations/internal.hpp"

namespace quarry {
namespace operations_detail {
namespace {

// A material as a point: sRGB bytes, and properties on the same scale (a mirror is as far from a wall as black from
// white).
constexpr size_t kAxes = 9;
using MaterialPoint = std::array<double, kAxes>;
MaterialPoint point_of(const Material& m) {
  return {double(m.r),
          double(m.g),
          double(m.b),
          double(m.a),
          64.0 * double(m.roughness),
          255.0 * double(m.metalness),
          255.0 * std::log2(1 + std::max(0.0, double(m.emission))),
          255.0 * double(m.transparency),
          64.0 * double(m.ior)};
}
Material material_of(const MaterialPoint& l, const Material& like) {
  const auto byte = [](double v) { return uint8_t(std::clamp(std::lround(v), 0l, 255l)); };
  Material m = like;
  m.r = byte(l[0]), m.g = byte(l[1]), m.b = byte(l[2]), m.a = byte(l[3]);
  m.roughness = float(l[4] / 64), m.metalness = float(l[5] / 255), m.emission = float(std::exp2(l[6] / 255) - 1);
  m.transparency = float(l[7] / 255), m.ior = float(l[8] / 64);
  return m;
}

struct Cluster {
  MaterialPoint mean{};
  double weight = 0;
  uint32_t commonest = 0;
  uint32_t members = 1;
  bool alive = true;
  // The later cluster with the lowest merging cost, and that cost.
  uint32_t nearest = 0;
  double cost = std::numeric_limits<double>::infinity();
};

// Ward's criterion: the growth of the weighted sum of squares.
double cost_of(const Cluster& a, const Cluster& b) {
  double square = 0;
  for (size_t i = 0; i < kAxes; ++i) square += (a.mean[i] - b.mean[i]) * (a.mean[i] - b.mean[i]);
  const double both = a.weight + b.weight;
  return both > 0 ? square * a.weight * b.weight / both : 0;
}

void find_nearest(std::vector<Cluster>& clusters, size_t i) {
  clusters[i].cost = std::numeric_limits<double>::infinity();
  for (size_t j = i + 1; j < clusters.size(); ++j)
    if (clusters[j].alive)
      if (const double cost = cost_of(clusters[i], clusters[j]); cost < clusters[i].cost)
        clusters[i].cost = cost, clusters[i].nearest = uint32_t(j);
}

}  // namespace

Result<void> check(const Scene& scene) {
  for (size_t i = 0; i < scene.instances.size(); ++i)
    if (scene.instances[i].volume >= scene.volumes.size())
      return fail(ErrorCode::invalid_argument, "instance " + std::to_string(i) + " shows volume " +
                                                   std::to_string(scene.instances[i].volume) +
                                                   ", but the scene has only " + std::to_string(scene.volumes.size()));
  return {};
}

void forget_file_tables(Scene& scene) {
  for (const char* key : {"vox.material_dicts", "vox.layer_dicts", "vox.camera_dicts", "vox.index_map", "vox.rgba_256",
                          "vox.groups", "palette_distinct", "palette_rms_error"})
    scene.metadata.erase(key);
}

QuantisedMaterials quantise_materials(const std::vector<WeightedMaterial>& inputs, uint32_t count) {
  QuantisedMaterials out;
  std::vector<Cluster> clusters(inputs.size());
  std::vector<uint32_t> joined(inputs.size());  // the cluster that each was merged into; itself while alive
  std::iota(joined.begin(), joined.end(), 0u);
  size_t alive = inputs.size();
  for (size_t i = 0; i < inputs.size(); ++i) {
    clusters[i].mean = point_of(inputs[i].material);
    clusters[i].weight = double(inputs[i].voxels);
    clusters[i].commonest = uint32_t(i);
    out.error.before += inputs[i].voxels > 0;
  }
  if (alive > count)
    for (size_t i = 0; i < clusters.size(); ++i) find_nearest(clusters, i);
  for (; alive > count; --alive) {
    size_t best = 0;
    double cost = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < clusters.size(); ++i)
      if (clusters[i].alive && clusters[i].cost < cost) cost = clusters[i].cost, best = i;
    const size_t gone = clusters[best].nearest;
    Cluster& a = clusters[best];
    Cluster& b = clusters[gone];
    const double both = a.weight + b.weight;
    if (both > 0)
      for (size_t i = 0; i < kAxes; ++i) a.mean[i] = (a.mean[i] * a.weight + b.mean[i] * b.weight) / both;
    if (inputs[b.commonest].voxels > inputs[a.commonest].voxels) a.commonest = b.commonest;
    a.weight = both;
    a.members += b.members;
    b.alive = false;
    b.cost = std::numeric_limits<double>::infinity();
    joined[gone] = uint32_t(best);
    for (size_t i = 0; i < clusters.size(); ++i) {
      if (!clusters[i].alive || i == best) continue;
      if (clusters[i].nearest == gone || clusters[i].nearest == best) find_nearest(clusters, i);
      else if (i < best)
        if (const double changed = cost_of(clusters[i], a); changed < clusters[i].cost)
          clusters[i].cost = changed, clusters[i].nearest = uint32_t(best);
    }
    find_nearest(clusters, best);
  }
  std::vector<uint32_t> number(clusters.size());
  for (size_t i = 0; i < clusters.size(); ++i) {
    if (!clusters[i].alive) continue;
    number[i] = uint32_t(out.materials.size());
    const Material& like = inputs[clusters[i].commonest].material;
    out.materials.push_back(clusters[i].members == 1 ? like : material_of(clusters[i].mean, like));
    out.commonest.push_back(clusters[i].commonest);
    out.error.after += clusters[i].weight > 0;
  }
  double squares = 0, voxels = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    uint32_t root = uint32_t(i);
    while (joined[root] != root) root = joined[root];
    out.cluster.push_back(number[root]);
    const Material &was = inputs[i].material, &is = out.materials[number[root]];
    const double dr = was.r - is.r, dg = was.g - is.g, db = was.b - is.b, square = dr * dr + dg * dg + db * db;
    squares += square * double(inputs[i].voxels);
    voxels += double(inputs[i].voxels);
    if (inputs[i].voxels) out.error.worst = std::max(out.error.worst, std::sqrt(square));
  }
  out.error.rms = voxels > 0 ? std::sqrt(squares / voxels) : 0;
  return out;
}

}  // namespace operations_detail

BrickMap remapped(const BrickMap& bricks, const MaterialTable& table) {
  bool same = true;
  for (size_t m = 0; m < 256; ++m) same &= table[m] == m;
  if (same) return bricks;
  BrickMap out;
  for (const auto& [at, brick] : bricks.bricks()) {
    Brick b = brick.copy();
    for (uint8_t& m : b.materials) m = table[m];
    out.put(at, b);
  }
  return out;
}

namespace operations_detail {

MaterialCounts material_counts(std::span<const VolumeSummary> volumes) {
  MaterialCounts counts{};
  for (const VolumeSummary& volume : volumes)
    for (size_t m = 0; m < counts.size(); ++m) counts[m] += volume.materials[m];
  return counts;
}

Result<QuantisePlan> plan_quantise(const Scene& scene, const MaterialCounts& counts, uint32_t count) {
  QRY_TRY(check(scene));
  if (count < 1 || count > 255)
    return fail(ErrorCode::invalid_argument, "a palette of " + std::to_string(count) + " materials; expected 1 to 255");
  std::vector<WeightedMaterial> inputs;
  std::vector<uint8_t> index;
  for (size_t m = 1; m < 256; ++m)
    if (counts[m]) inputs.push_back({scene.palette.materials[m], counts[m]}), index.push_back(uint8_t(m));
  const QuantisedMaterials q = quantise_materials(inputs, count);
  QuantisePlan plan{scene, {}, q.error};
  std::iota(plan.table.begin(), plan.table.end(), uint8_t(0));
  if (inputs.size() <= count) return plan;
  for (size_t i = 0; i < inputs.size(); ++i) {
    plan.table[index[i]] = index[q.commonest[q.cluster[i]]];
    plan.scene.palette.materials[plan.table[index[i]]] = q.materials[q.cluster[i]];
  }
  forget_file_tables(plan.scene);
  return plan;
}

Result<MergePlan> plan_merge(std::span<const Scene* const> scenes, std::span<const MaterialCounts> counts) {
  if (scenes.empty()) return fail(ErrorCode::invalid_argument, "no scene to merge");
  // Distinct materials with their names, in the order of the scenes; used ones first.
  std::vector<WeightedMaterial> inputs;
  std::vector<std::string> names;
  constexpr uint32_t kUnused = ~0u;
  std::vector<std::array<uint32_t, 256>> input_of(scenes.size());
  for (size_t s = 0; s < scenes.size(); ++s) {
    QRY_TRY(check(*scenes[s]));
    const Palette& palette = scenes[s]->palette;
    for (size_t m = 1; m < 256; ++m) {
      input_of[s][m] = kUnused;
      if (!counts[s][m]) continue;
      size_t i = 0;
      while (i < inputs.size() && !(inputs[i].material == palette.materials[m] && names[i] == palette.names[m])) ++i;
      if (i == inputs.size()) inputs.push_back({palette.materials[m], 0}), names.push_back(palette.names[m]);
      inputs[i].voxels += counts[s][m];
      input_of[s][m] = uint32_t(i);
    }
  }
  const QuantisedMaterials q = quantise_materials(inputs, 255);

  const Scene& first = *scenes[0];
  MergePlan plan;
  plan.error = q.error;
  Scene& out = plan.scene;
  out.overlap = first.overlap;
  out.metadata = first.metadata;
  // The first scene's materials keep their indices if no material had to be dropped.
  std::vector<uint8_t> slot(q.materials.size(), 0);
  std::array<bool, 256> taken{};
  if (inputs.size() <= 255)
    for (size_t m = 255; m >= 1; --m) {
      if (counts[0][m] == 0) continue;
      uint8_t& to = slot[q.cluster[input_of[0][m]]];
      if (to) taken[to] = false;
      to = uint8_t(m);
      taken[m] = true;
    }
  out.palette = first.palette;
  size_t next = 1;
  for (size_t c = 0; c < slot.size(); ++c) {
    if (!slot[c]) {
      while (taken[next]) ++next;
      slot[c] = uint8_t(next);
      taken[next] = true;
    }
    out.palette.materials[slot[c]] = q.materials[c];
    out.palette.names[slot[c]] = names[q.commonest[c]];
  }
  for (size_t s = 0; s < scenes.size(); ++s) {
    const Scene& scene = *scenes[s];
    MaterialTable table{};
    for (size_t m = 1; m < 256; ++m)
      table[m] = input_of[s][m] == kUnused ? uint8_t(m) : slot[q.cluster[input_of[s][m]]];
    const auto volumes = uint32_t(out.volumes.size());
    const auto layers = int32_t(out.layers.size());
    for (const Volume& v : scene.volumes) {
      out.volumes.push_back({v.name, {}, v.size});
      plan.tables.push_back(table);
    }
    out.layers.insert(out.layers.end(), scene.layers.begin(), scene.layers.end());
    out.cameras.insert(out.cameras.end(), scene.cameras.begin(), scene.cameras.end());
    const auto begin = int64_t(out.instances.size());
    for (Instance i : scene.instances) {
      i.volume += volumes;
      if (i.layer >= 0) i.layer += layers;
      out.instances.push_back(std::move(i));
    }
    if (scene.overlap != out.overlap) std::reverse(out.instances.begin() + begin, out.instances.end());
  }
  if (scenes.size() > 1) forget_file_tables(out);
  return plan;
}

}  // namespace operations_detail

using namespace operations_detail;

namespace {

MaterialCounts material_counts(const Scene& scene) {
  VolumeSummary all;
  for (const Volume& v : scene.volumes) all.add(v.bricks);
  return all.materials;
}

}  // namespace

Result<Scene> quantise(const Scene& scene, uint32_t count, PaletteError* error) {
  QRY_TRY_ASSIGN(QuantisePlan plan, plan_quantise(scene, material_counts(scene), count));
  if (error) *error = plan.error;
  for (Volume& v : plan.scene.volumes) v.bricks = remapped(v.bricks, plan.table);
  return std::move(plan.scene);
}

Result<Scene> merge(std::span<const Scene* const> scenes, PaletteError* error) {
  std::vector<MaterialCounts> counts;
  for (const Scene* scene : scenes) counts.push_back(material_counts(*scene));
  QRY_TRY_ASSIGN(MergePlan plan, plan_merge(scenes, counts));
  if (error) *error = plan.error;
  size_t to = 0;
  for (const Scene* scene : scenes)
    for (const Volume& v : scene->volumes) {
      plan.scene.volumes[to].bricks = remapped(v.bricks, plan.tables[to]);
      ++to;
    }
  return std::move(plan.scene);
}

}  // namespace quarry
