// SPDX-License-Identifier: Apache-2.0
// volume_changes.hpp - what menu and script make of a whole volume: grown, eroded, without its smaller parts, combined
// with a file. Session::change() makes a step of one. They change nothing themselves, and are free-threaded.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/home/device_home.hpp"
#include "voxel/operations/morphology.hpp"
#include "voxel/operations/whole_scene.hpp"

namespace quarry::app {

// What becomes of a volume's bricks, in its own axes; and what the history calls it.
struct VolumeChange {
  std::string label;
  std::function<Result<BrickMap>(const BrickMap&)> made;
  // The same where a device makes it of the world that it has, as edits; null: it does not. Errors: as DeviceHome's;
  // then some of the edits may have been made.
  std::function<Result<void>(engine::DeviceHome&)> made_there = {};
  // The same of a world that does not fit its budget with so many bricks more; null: what `made_there` says.
  std::function<Result<void>(engine::DeviceHome&)> made_in_parts = {};
  uint64_t more_bricks = 0;
};

std::optional<BooleanKind> boolean_from_name(std::string_view name);  // unite, intersect, subtract

// As dilate() and erode() of voxel/operations.
VolumeChange grow(Connectivity neighbours, uint32_t steps);
VolumeChange erode_by(Connectivity neighbours, uint32_t steps);
// The parts that `choice` keeps.
VolumeChange keep(const PartChoice& choice);
// Combines the instance's volume with what `other` shows, in world axes. The volume's materials win. What comes from
// `other` gets the number of an equal material of `palette`, or of the one that looks most like it; `replaced`: how
// many of its materials have no equal. Errors: out_of_bounds (flatten; or the instance moves a voxel beyond that).
Result<VolumeChange> combined(const Scene& other, const Instance& instance, const Palette& palette, BooleanKind kind,
                              uint32_t& replaced);
// The same of a volume at the origin, with a world in memory of the same device, whose palette is `others`: bricks of
// neither come to the host, if the device has room. Errors: device.
Result<VolumeChange> combined_there(const std::shared_ptr<engine::DeviceHome>& other, const Palette& others,
                                    const Palette& palette, BooleanKind kind, uint32_t& replaced);

}  // namespace quarry::app
