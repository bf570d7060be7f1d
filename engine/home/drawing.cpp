// SPDX-License-Identifier: Apache-2.0
// drawing.cpp - publishes a device's world for shaders, and copies its voxels where they cannot read them.
#include "engine/home/drawing.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "engine/home/resident_pages.hpp"
#include "voxel/worlds/flatten.hpp"

namespace quarry::engine {

namespace {

// What is there is published, and `residency` says what is not; null: nothing.
Result<Device::TimelinePoint> publish_parts(SharedWorld& shared, Document& document, DeviceHome& home,
                                            DeviceBlocks& blocks, Residency* residency) {
  shared.set_residency(residency);
  QRY_TRY_ASSIGN(const auto* const published, home.publish(shared.frames(), true));
  shared.set_origin(home.origin());
  return shared.publish(*published, blocks, document.scene().palette);
}

}  // namespace

RenderedWorld rendered_world(SharedWorld& shared, Document& document, DeviceHome& home, DeviceBlocks& blocks) {
  RenderedWorld drawn = rendered_world(shared, document);
  drawn.publish_device = [&shared, &document, &home, &blocks]() -> Result<Device::TimelinePoint> {
    QRY_TRY_ASSIGN(const auto* const published, home.publish(shared.frames()));
    if (home.pages()) shared.set_residency(nullptr);
    shared.set_origin(home.origin());
    return shared.publish(*published, blocks, document.scene().palette);
  };
  return drawn;
}

RenderedWorld streamed_world(SharedWorld& shared, Document& document, DeviceHome& home, DeviceBlocks& blocks,
                             Device& device) {
  RenderedWorld drawn = rendered_world(shared, document);
  drawn.publish_device = [&shared, &document, &home, &blocks, &device]() -> Result<Device::TimelinePoint> {
    const auto stay = home.stay_there();  // what is published and what is absent are of one time
    QRY_TRY_ASSIGN(Residency* const residency, home.pages()->shown(device));
    return publish_parts(shared, document, home, blocks, residency);
  };
  return drawn;
}

Result<RenderedWorld> drawn_in_parts(SharedWorld& shared, Document& document, DeviceHome& home, DeviceBlocks& blocks,
                                     Device& device) {
  ResidentPages& pages = *home.pages();
  QRY_TRY_ASSIGN(Residency* const residency, pages.shown(device));
  RenderedWorld drawn = rendered_world(shared, document);
  drawn.publish_device = [&shared, &document, &home, &blocks, residency] {
    return publish_parts(shared, document, home, blocks, residency);
  };
  drawn.bring_pages = [&pages] { return pages.bring_reached(); };
  return drawn;
}

Result<void> copy_to_document(DeviceHome& home, Document& document) {
  QRY_TRY_ASSIGN(const auto now, home.bricks(document.world().pool()));
  // What differs: bricks of both are in the same order.
  std::vector<World::BrickWrite> writes;
  const auto before = document.scene().volumes[0].bricks.bricks(), after = now.bricks();
  auto old = before.begin();
  for (auto one = after.begin(); one != after.end(); ++one) {
    for (; old != before.end() && (*old).first < (*one).first; ++old) writes.push_back({(*old).first, Brick{}});
    if (old == before.end() || (*one).first < (*old).first || !((*old).second() == (*one).second()))
      writes.push_back({(*one).first, (*one).second().copy()});
    if (old != before.end() && (*old).first == (*one).first) ++old;
  }
  for (; old != before.end(); ++old) writes.push_back({(*old).first, Brick{}});
  if (writes.empty()) return {};
  QRY_TRY(document.write(0, writes, "copy"));
  return document.restore_history({}, 0);
}

Result<Scene> whole_scene(DeviceHome& home, const Document& document) {
  Scene scene = document.scene();
  QRY_TRY_ASSIGN(scene.volumes[0].bricks, home.bricks());
  return scene;
}

namespace {

// `bricks_with`: as DeviceHome::bricks_with.
Result<std::optional<Document>> glowing_part_of(const Document& document, const auto& bricks_with) {
  std::array<bool, 256> glows{};
  const auto& materials = document.scene().palette.materials;
  for (size_t i = 1; i < glows.size(); ++i) glows[i] = materials[i].emission > 0;
  if (std::ranges::none_of(glows, [](bool one) { return one; })) return std::optional<Document>();
  Scene scene = document.scene();
  QRY_TRY_ASSIGN(scene.volumes[0].bricks, bricks_with(glows));
  QRY_TRY_ASSIGN(auto part, Document::create(std::move(scene)));
  return std::optional<Document>(std::move(part));
}

}  // namespace

Result<std::optional<Document>> glowing_part(DeviceHome& home, const Document& document) {
  return glowing_part_of(document, [&](const auto& glows) { return home.bricks_with(glows); });
}

Result<std::optional<Document>> glowing_part(WorldPages& pages, const Document& document, const Progress& progress) {
  return glowing_part_of(document, [&](const auto& glows) { return pages.bricks_with(glows, progress); });
}

Scene as_one_volume(Scene scene, BrickMap bricks) {
  scene.volumes.clear();
  scene.instances.clear();
  scene.layers.clear();
  scene.volumes.push_back(Volume{"world", std::move(bricks), {}});
  scene.instances.push_back(Instance{});
  return scene;
}

Result<Scene> flattened_scene(Scene scene, const BrickPool& pool) {
  QRY_TRY_ASSIGN(auto bricks, flatten_for_world(scene, true, pool));
  return as_one_volume(std::move(scene), std::move(bricks));
}

}  // namespace quarry::engine
