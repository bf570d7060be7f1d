// SPDX-License-Identifier: Apache-2.0
// volume_changes.cpp - whole volumes by voxel/operations.
#include "app/editor/session/volume_changes.hpp"

#include <array>
#include <span>
#include <vector>

namespace quarry::app {
using engine::DeviceHome;

namespace {

// How far two looks are from each other: colours in sRGB bytes, the other properties on the same scale.
double distance(const Material& a, const Material& b) {
  const double differences[] = {double(a.r) - b.r,
                                double(a.g) - b.g,
                                double(a.b) - b.b,
                                double(a.a) - b.a,
                                64.0 * (double(a.roughness) - double(b.roughness)),
                                255.0 * (double(a.metalness) - double(b.metalness)),
                                255.0 * (double(a.emission) - double(b.emission)),
                                255.0 * (double(a.transparency) - double(b.transparency)),
                                64.0 * (double(a.ior) - double(b.ior))};
  double sum = 0;
  for (const double d : differences) sum += d * d;
  return sum;
}

// The material of the palette that looks most like it; of several the lowest, but `own` before all, its own number.
uint8_t nearest(const Material& material, uint8_t own, const Palette& palette) {
  uint8_t best = own;
  double least = distance(material, palette.materials[own]);
  for (size_t m = 1; m < 256; ++m)
    if (const double d = distance(material, palette.materials[m]); d < least) least = d, best = uint8_t(m);
  return best;
}

MaterialTable all_nearest(const Palette& own, const Palette& palette) {
  MaterialTable to{};
  for (size_t m = 1; m < 256; ++m) to[m] = nearest(own.materials[m], uint8_t(m), palette);
  return to;
}

// Those that look like none of the palette.
std::vector<uint8_t> replaced_by(const MaterialTable& to, const Palette& own, const Palette& palette) {
  std::vector<uint8_t> replaced;
  for (size_t m = 1; m < 256; ++m)
    if (!(palette.materials[to[m]] == own.materials[m])) replaced.push_back(uint8_t(m));
  return replaced;
}

// Replaces the materials by the nearest of the palette. Returns how many of those in use have no equal there.
uint32_t use_palette(BrickMap& bricks, const Palette& own, const Palette& palette) {
  std::array<bool, 256> used{};
  for (const auto& [at, brick] : bricks.bricks())
    for (const uint8_t material : brick.materials) used[material] = true;
  const MaterialTable to = all_nearest(own, palette);
  uint32_t count = 0;
  for (const uint8_t material : replaced_by(to, own, palette)) count += used[material];
  bricks = remapped(bricks, to);
  return count;
}

// How many of the materials a voxel has: the device compares the world with itself, where these look different, all at
// once, then each half of them.
Result<uint32_t> used_of(DeviceHome& home, std::span<const uint8_t> materials) {
  if (materials.empty()) return 0u;
  std::array<uint32_t, 512> looks{};
  for (const uint8_t material : materials) looks[material] = 1;
  QRY_TRY_ASSIGN(const auto found, home.compare(home, looks));
  if (found.recoloured.voxels == 0) return 0u;
  if (materials.size() == 1) return 1u;
  const size_t half = materials.size() / 2;
  QRY_TRY_ASSIGN(const uint32_t first, used_of(home, materials.first(half)));
  QRY_TRY_ASSIGN(const uint32_t second, used_of(home, materials.subspan(half)));
  return first + second;
}

const char* label_of(BooleanKind kind) {
  return kind == BooleanKind::union_of ? "unite" : kind == BooleanKind::intersection ? "intersect" : "subtract";
}

device::Combination combination_of(BooleanKind kind) {
  return kind == BooleanKind::union_of       ? device::Combination::union_of
         : kind == BooleanKind::intersection ? device::Combination::intersection
                                             : device::Combination::difference;
}

// So many steps of one voxel, until one changes nothing.
std::function<Result<void>(DeviceHome&)> there(Result<uint64_t> (DeviceHome::*step)(uint32_t), Connectivity neighbours,
                                               uint32_t steps) {
  return [=](DeviceHome& home) -> Result<void> {
    for (uint32_t i = 0; i < steps; ++i) {
      QRY_TRY_ASSIGN(const uint64_t ticket, (home.*step)(uint32_t(neighbours)));
      QRY_TRY_ASSIGN(const auto change, home.wait(ticket));
      if (!change.step) break;
    }
    return {};
  };
}

}  // namespace

std::optional<BooleanKind> boolean_from_name(std::string_view name) {
  if (name == "unite") return BooleanKind::union_of;
  if (name == "intersect") return BooleanKind::intersection;
  if (name == "subtract") return BooleanKind::difference;
  return {};
}

VolumeChange grow(Connectivity neighbours, uint32_t steps) {
  return {"grow", [=](const BrickMap& bricks) { return dilate(bricks, neighbours, steps); },
          there(&DeviceHome::grow, neighbours, steps)};
}

VolumeChange erode_by(Connectivity neighbours, uint32_t steps) {
  return {"erode", [=](const BrickMap& bricks) { return erode(bricks, neighbours, steps); },
          there(&DeviceHome::erode, neighbours, steps)};
}

VolumeChange keep(const PartChoice& choice) {
  return {choice.most == UINT64_MAX ? "drop parts" : "keep parts",
          [=](const BrickMap& bricks) { return keep_parts(bricks, choice); },
          [=](DeviceHome& home) -> Result<void> {
            QRY_TRY_ASSIGN(const uint64_t ticket,
                           home.keep_parts(uint32_t(choice.neighbours), choice.most, choice.least));
            QRY_TRY(home.wait(ticket));
            return {};
          }};
}

Result<VolumeChange> combined(const Scene& other, const Instance& instance, const Palette& palette, BooleanKind kind,
                              uint32_t& replaced) {
  QRY_TRY_ASSIGN(BrickMap bricks, flatten_for_world(other, true));
  replaced = kind == BooleanKind::union_of ? use_palette(bricks, other.palette, palette) : 0;
  if (!instance.rotation.identity() || instance.offset != Int3{}) {
    // The world's voxel v is the volume's back(v - offset).
    Scene moved;
    moved.volumes.push_back({"other", std::move(bricks), {}});
    moved.instances.emplace_back();
    Instance& placed = moved.instances.back();
    placed.rotation = instance.rotation.inverse();
    placed.offset = placed.rotation.apply_to_cell(Int3{} - instance.offset) - placed.rotation.apply_to_cell(Int3{});
    QRY_TRY_ASSIGN(bricks, flatten_for_world(moved, true));
  }
  const auto theirs = std::make_shared<const BrickMap>(std::move(bricks));
  return VolumeChange{label_of(kind),
                      [=](const BrickMap& ours) -> Result<BrickMap> { return boolean(ours, *theirs, kind); },
                      {},
                      [=](DeviceHome& home) -> Result<void> {
                        QRY_TRY_ASSIGN(const uint64_t ticket,
                                       home.combine(*theirs, combination_of(kind), label_of(kind)));
                        QRY_TRY(home.wait(ticket));
                        return {};
                      },
                      kind == BooleanKind::union_of ? theirs->bricks().size() : 0};
}

Result<VolumeChange> combined_there(const std::shared_ptr<DeviceHome>& other, const Palette& others,
                                    const Palette& palette, BooleanKind kind, uint32_t& replaced) {
  const bool unites = kind == BooleanKind::union_of;
  const MaterialTable to = all_nearest(others, palette);
  replaced = 0;
  if (unites) {
    QRY_TRY_ASSIGN(replaced, used_of(*other, replaced_by(to, others, palette)));
  }
  const auto combination = combination_of(kind);
  return VolumeChange{label_of(kind),
                      [=](const BrickMap& ours) -> Result<BrickMap> {
                        QRY_TRY_ASSIGN(const BrickMap theirs, other->bricks());
                        return boolean(ours, unites ? remapped(theirs, to) : theirs, kind);
                      },
                      [=](DeviceHome& home) -> Result<void> {
                        QRY_TRY_ASSIGN(const uint64_t ticket, home.combine(*other, combination, &to));
                        QRY_TRY(home.wait(ticket));
                        return {};
                      }};
}

}  // namespace quarry::app
