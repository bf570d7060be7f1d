// SPDX-License-Identifier: Apache-2.0
// drawing.hpp - what pictures need of a world at home on a device. Where shaders read its memory (DeviceHome::shares)
// that is no voxel, and elsewhere a copy. `document` is the one beside the home, which has names, palette and cameras.
#pragma once

#include <optional>

#include "engine/home/device_home.hpp"
#include "engine/home/world_pages.hpp"
#include "engine/sharing/device_blocks.hpp"
#include "engine/sharing/world.hpp"
#include "voxel/worlds/document.hpp"

namespace quarry::engine {

// What is drawn where shaders read the home's memory, which is in `blocks`. Each publish() publishes the world as it is
// then. All five must outlive the result; nothing is copied.
RenderedWorld rendered_world(SharedWorld& shared, Document& document, DeviceHome& home, DeviceBlocks& blocks);

// The same of a world with a budget. Of pages that are not there frames see the coarse level, until
// ResidentPages::stream has brought them. `device` too must outlive the result.
RenderedWorld streamed_world(SharedWorld& shared, Document& document, DeviceHome& home, DeviceBlocks& blocks,
                             Device& device);
// And of one of which some pages are not there: pictures are drawn of it in rounds, until no ray comes to a page that
// is not there. Errors: ResidentPages::shown's.
Result<RenderedWorld> drawn_in_parts(SharedWorld& shared, Document& document, DeviceHome& home, DeviceBlocks& blocks,
                                     Device& device);

// Gives the document the home's voxels, for pictures where shaders cannot read those: writes the bricks that differ.
// Blocks until it is done. Traffic: as DeviceHome::bricks. Errors: device; those of Document::write.
Result<void> copy_to_document(DeviceHome& home, Document& document);

// The document's scene with the home's voxels, which it shares with nobody. Errors: as DeviceHome::bricks.
Result<Scene> whole_scene(DeviceHome& home, const Document& document);

// What glows of it, and the bricks that touch those which do, as a world in host memory: the host finds the same lights
// in it as in all of it. Nothing if no material glows. Traffic and errors: as DeviceHome::bricks_with and
// Document::create.
Result<std::optional<Document>> glowing_part(DeviceHome& home, const Document& document);
// The same of a world of which some pages are in memory. Traffic and errors: as WorldPages::bricks_with and
// Document::create.
Result<std::optional<Document>> glowing_part(WorldPages& pages, const Document& document, const Progress& progress);

// The scene as one volume at the origin, of these bricks: what a device takes. The tree is dropped; palette, cameras
// and notes are kept.
Scene as_one_volume(Scene scene, BrickMap bricks = {});
// The same, of the visible scene's, made in `pool`. Errors: those of flatten().
Result<Scene> flattened_scene(Scene scene, const BrickPool& pool);

}  // namespace quarry::engine
