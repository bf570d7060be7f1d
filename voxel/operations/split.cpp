// SPDX-License-Identifier: Apache-2.0
// split.cpp - one scene into several, or the connected parts of one: split(), split_parts(), keep_parts().
#include <algorithm>
#include <map>
#include <set>

#include "voxel/operations/connected_parts.hpp"
#include "voxel/operations/internal.hpp"
#include "voxel/worlds/flatten.hpp"

namespace quarry {
using namespace operations_detail;
namespace {

constexpr size_t kMaxParts = size_t(1) << 16;

Error too_many() {
  return {ErrorCode::unsupported, "it would be split into more than 65,536 parts; take larger regions"};
}

// The instances selected by `chosen`, with their volumes.
template <class Chosen>
SplitPlan with_instances(const Scene& scene, Chosen chosen) {
  SplitPlan out;
  out.scene = scene;
  out.scene.volumes.clear();
  out.scene.instances.clear();
  std::map<uint32_t, uint32_t> number;
  for (size_t i = 0; i < scene.instances.size(); ++i) {
    if (!chosen(i)) continue;
    Instance instance = scene.instances[i];
    const auto [it, fresh] = number.try_emplace(instance.volume, uint32_t(out.from.size()));
    if (fresh) {
      out.scene.volumes.push_back(scene.volumes[instance.volume]);
      out.from.push_back(instance.volume);
    }
    instance.volume = it->second;
    out.scene.instances.push_back(std::move(instance));
  }
  return out;
}

// Distinct names; an empty one becomes `otherwise`.
class PartNames {
 public:
  std::string add(std::string name, const std::string& otherwise) {
    if (name.empty()) name = otherwise;
    std::string distinct = name;
    for (size_t n = 2; !names_.insert(distinct).second; ++n) distinct = name + "-" + std::to_string(n);
    return distinct;
  }

 private:
  std::set<std::string> names_;
};

std::string numbered(const char* what, size_t n) { return std::string(what) + "-" + std::to_string(n); }

// The scene with these bricks in place of all that it shows.
Scene with_flat(const Scene& scene, const std::string& name, BrickMap bricks) {
  Scene out = scene;
  out.volumes.clear();
  out.volumes.push_back({name, std::move(bricks), {}});
  out.layers.clear();
  out.instances.assign(1, {});
  out.instances[0].name = name;
  forget_file_tables(out);
  return out;
}

}  // namespace

Result<std::vector<ScenePart>> split_parts(const Scene& scene, Connectivity neighbours, const Progress& progress) {
  QRY_TRY(check(scene));
  QRY_TRY_ASSIGN(const auto bricks, flatten(scene, true));
  QRY_TRY_ASSIGN(const auto found, ConnectedParts::find(bricks, neighbours, progress));
  const size_t count = found.parts().size();
  QRY_TRY(check_connected_parts(count));
  auto maps = found.each(count);
  std::vector<ScenePart> parts;
  Scene empty = scene;
  empty.volumes.clear();
  for (size_t i = 0; i < count; ++i) parts.push_back(connected_part(empty, i, std::move(maps[i])));
  return parts;
}

Result<Scene> keep_parts(const Scene& scene, const PartChoice& choice, const Progress& progress) {
  QRY_TRY(check(scene));
  QRY_TRY_ASSIGN(const auto bricks, flatten(scene, true));
  QRY_TRY_ASSIGN(auto kept, keep_parts(bricks, choice, progress));
  Scene out = plan_keep_parts(scene).scene;
  out.volumes[0].bricks = std::move(kept);
  return out;
}

Result<BrickMap> keep_parts(const BrickMap& bricks, const PartChoice& choice, const Progress& progress) {
  QRY_TRY_ASSIGN(const auto found, ConnectedParts::find(bricks, choice.neighbours, progress));
  return found.first(size_t(std::min<uint64_t>(found.at_least(choice.least), choice.most)));
}

namespace operations_detail {

SplitPlan plan_keep_parts(const Scene& scene) {
  if (volume_at_origin(scene, true))
    return with_instances(scene, [&](size_t i) { return scene.instance_visible(scene.instances[i]); });
  return {{}, with_flat(scene, "parts", {}), {}};
}

ScenePart connected_part(const Scene& scene, size_t number, BrickMap bricks) {
  std::string name = numbered("part", number + 1);
  Scene part = with_flat(scene, name, std::move(bricks));
  return {std::move(name), std::move(part)};
}

Result<void> check_connected_parts(size_t count) {
  if (count > kMaxParts)
    return fail(ErrorCode::unsupported,
                "it has " + std::to_string(count) + " connected parts, more than 65,536; drop the small ones first");
  return {};
}

BrickMap of_material(const BrickMap& bricks, uint8_t material) {
  BrickMap out;
  for (const auto& [at, brick] : bricks.bricks()) {
    Brick kept;
    for (uint32_t i = 0; i < kVoxelsPerBrick; ++i)
      if (brick.materials[i] == material) kept.set(i, material);
    if (!kept.empty()) out.put(at, kept);
  }
  return out;
}

Result<void> check_split(const Scene& scene, SplitKind kind, int32_t edge) {
  QRY_TRY(check(scene));
  if (kind == SplitKind::regions && edge < 1)
    return fail(ErrorCode::invalid_argument,
                "regions with an edge of " + std::to_string(edge) + " voxels; expected at least 1");
  if (scene.instances.size() > kMaxParts && (kind == SplitKind::models || kind == SplitKind::instances))
    return tl::unexpected(too_many());
  return {};
}

Result<std::vector<SplitPlan>> plan_split(const Scene& scene, std::span<const std::array<bool, 256>> used,
                                          SplitKind kind) {
  PartNames names;
  std::vector<SplitPlan> parts;
  const auto add = [&](const std::string& name, const std::string& otherwise, SplitPlan part, uint8_t material = 0) {
    part.name = names.add(name, otherwise);
    part.material = material;
    parts.push_back(std::move(part));
  };
  const auto has_voxels = [&](size_t i, size_t material = 0) { return used[scene.instances[i].volume][material]; };
  switch (kind) {
    case SplitKind::models: {
      std::set<uint32_t> done;
      for (size_t i = 0; i < scene.instances.size(); ++i) {
        const Instance& instance = scene.instances[i];
        if (!has_voxels(i) || !done.insert(instance.volume).second) continue;
        const Volume& volume = scene.volumes[instance.volume];
        SplitPlan part{{}, scene, {instance.volume}};
        part.scene.volumes = {volume};
        part.scene.cameras.clear();
        part.scene.layers.clear();
        part.scene.instances.assign(1, {});
        const std::string name = volume.name.empty() ? instance.name : volume.name;
        part.scene.instances[0].name = name;
        forget_file_tables(part.scene);
        add(name, numbered("model", instance.volume), std::move(part));
      }
      break;
    }
    case SplitKind::instances:
      for (size_t i = 0; i < scene.instances.size(); ++i)
        if (has_voxels(i))
          add(scene.instances[i].name, numbered("instance", i),
              with_instances(scene, [i](size_t n) { return n == i; }));
      break;
    case SplitKind::layers: {
      constexpr int32_t kNone = INT32_MAX;  // after all others
      const auto layer_of = [&](size_t i) { return scene.instances[i].layer < 0 ? kNone : scene.instances[i].layer; };
      std::set<int32_t> layers;
      for (size_t i = 0; i < scene.instances.size(); ++i)
        if (has_voxels(i)) layers.insert(layer_of(i));
      for (const int32_t layer : layers) {
        const std::string name = size_t(layer) < scene.layers.size() ? scene.layers[size_t(layer)].name : std::string();
        add(name, layer == kNone ? "no-layer" : numbered("layer", size_t(layer)),
            with_instances(scene, [&](size_t i) { return has_voxels(i) && layer_of(i) == layer; }));
      }
      break;
    }
    case SplitKind::materials:
      for (size_t m = 1; m < 256; ++m) {
        SplitPlan part = with_instances(scene, [&](size_t i) { return has_voxels(i, m); });
        if (!part.from.empty()) add(scene.palette.names[m], numbered("colour", m), std::move(part), uint8_t(m));
      }
      break;
    case SplitKind::regions: break;
  }
  return parts;
}

Result<void> SplitCubes::add(const Instance& instance, const BrickMap& bricks) {
  const auto divided = [this](int32_t a) { return int32_t(floor_div(a, edge_)); };
  for (const auto& [at, brick] : bricks.bricks()) {
    const Box3 box = voxel_bounds(at, brick.mask);
    const Int3 a = instance.rotation.apply_to_cell(box.min) + instance.offset,
               b = instance.rotation.apply_to_cell(box.max) + instance.offset;
    const Int3 low{divided(std::min(a.x, b.x)), divided(std::min(a.y, b.y)), divided(std::min(a.z, b.z))};
    const Int3 high{divided(std::max(a.x, b.x)), divided(std::max(a.y, b.y)), divided(std::max(a.z, b.z))};
    for (int32_t x = low.x; x <= high.x; ++x)
      for (int32_t y = low.y; y <= high.y; ++y)
        for (int32_t z = low.z; z <= high.z; ++z) cubes_.insert({x, y, z});
    if (cubes_.size() > kMaxParts) return tl::unexpected(too_many());
  }
  return {};
}

std::vector<SplitCubes::Cube> SplitCubes::all() const {
  std::vector<Cube> out;
  const auto cell = [](int64_t v) { return int32_t(std::clamp<int64_t>(v, INT32_MIN, INT32_MAX)); };
  const auto cells = [&](int64_t x, int64_t y, int64_t z) { return Int3{cell(x), cell(y), cell(z)}; };
  const auto edge = int64_t(edge_);
  for (const Int3 c : cubes_)
    out.push_back({std::to_string(c.x) + "_" + std::to_string(c.y) + "_" + std::to_string(c.z),
                   {cells(c.x * edge, c.y * edge, c.z * edge),
                    cells(c.x * edge + edge - 1, c.y * edge + edge - 1, c.z * edge + edge - 1)}});
  return out;
}

}  // namespace operations_detail

Result<std::vector<ScenePart>> split(const Scene& scene, SplitKind kind, int32_t edge) {
  QRY_TRY(check_split(scene, kind, edge));
  std::vector<ScenePart> parts;
  if (kind == SplitKind::regions) {
    SplitCubes cubes(edge);
    for (const Instance& instance : scene.instances)
      QRY_TRY(cubes.add(instance, scene.volumes[instance.volume].bricks));
    for (SplitCubes::Cube& cube : cubes.all()) {
      QRY_TRY_ASSIGN(auto part, crop(scene, cube.cells));  // which may have no voxel
      if (!part.instances.empty()) parts.push_back({std::move(cube.name), std::move(part)});
    }
    return parts;
  }
  std::vector<std::array<bool, 256>> used(scene.volumes.size());
  for (size_t v = 0; v < used.size(); ++v) {
    used[v][0] = !scene.volumes[v].bricks.empty();
    if (kind == SplitKind::materials)
      for (const auto& [at, brick] : scene.volumes[v].bricks.bricks())
        for (const uint8_t m : brick.materials)
          if (m) used[v][m] = true;
  }
  QRY_TRY_ASSIGN(auto plans, plan_split(scene, used, kind));
  for (SplitPlan& plan : plans) {
    if (plan.material)
      for (Volume& v : plan.scene.volumes) v.bricks = of_material(v.bricks, plan.material);
    parts.push_back({std::move(plan.name), std::move(plan.scene)});
  }
  return parts;
}

}  // namespace quarry
