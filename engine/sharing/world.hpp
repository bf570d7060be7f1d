// SPDX-License-Identifier: Apache-2.0
// world.hpp - a world where shaders can read it: the addresses of grid, masks, materials, pyramid and palette, kept up
// with its edits.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/sharing/buffer.hpp"
#include "engine/vulkan/device.hpp"
#include "voxel/worlds/palette.hpp"
#include "voxel/worlds/world.hpp"

struct QryWorldRoot;  // shaders/shared/world_root.h

namespace quarry {
class Document;
}

namespace quarry::engine {

class LightTree;

// A World readable by shaders. host_import: the world's own memory, no copies. zero_copy: CUDA writes a twin of it in
// exported memory. staged: copies of what changed. One World at a time; it must go before its SharedWorld, whose memory
// it lives in, and the Device after both. One thread at a time. Every frame shows the version published before it was
// recorded, whole. In host_import the frames read the world's own memory: there World::write and clear come back only
// when the frames said to frame_submitted are done. In the other modes nothing waits.
class SharedWorld {
 public:
  static Result<std::unique_ptr<SharedWorld>> create(Device& device, SharingMode mode = SharingMode::automatic);
  ~SharedWorld();
  // What to create the World or Document with, so that it lives where this device can see it.
  WorldMemory memory() const;
  // Makes the device see the world as it is now; returns the timeline point that a frame must wait for (value 0: none).
  // Call after edits, before recording a frame. The world must have been created with memory() of this object.
  Result<Device::TimelinePoint> publish(World& world, const Palette& palette);
  void frame_submitted(uint64_t value);
  void frame_completed(uint64_t value);
  SharingMode mode() const;
  const std::string& sharing_reason() const;
  uint64_t root_address() const;  // device address of the root structure of shaders/library/world.glsl
  // The same structure, for push constants; lives as long as what root_address() points to.
  const QryWorldRoot& root() const;
  bool has_transmissive() const;  // of the palette last published: a material lets light through
  bool has_reflective() const;    // ... is smooth
  // The world's emissive faces, brought up to date with what was published last; the world and palette must be those.
  // One thread at a time.
  const LightTree& update_lights(const World& world, const Palette& palette);
  const LightTree& lights() const;  // as they were then
  uint64_t device_bytes() const;

 private:
  struct State;
  explicit SharedWorld(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// What is drawn: a world, its materials, and where the device sees both. The world must have been created with memory()
// of `shared`.
struct RenderedWorld {
  SharedWorld& shared;
  World& world;
  const Palette& palette;

  Result<Device::TimelinePoint> publish() const { return shared.publish(world, palette); }
};
RenderedWorld rendered_world(SharedWorld& shared, Document& document);

}  // namespace quarry::engine
