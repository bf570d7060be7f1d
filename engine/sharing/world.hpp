// SPDX-License-Identifier: Apache-2.0
// world.hpp - a world that shaders can read. It keeps the addresses of grid, masks, materials, pyramid and palette up
// to date with the world's edits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "engine/sharing/buffer.hpp"
#include "engine/vulkan/device.hpp"
#include "voxel/device/store.hpp"
#include "voxel/worlds/palette.hpp"
#include "voxel/worlds/world.hpp"

struct QryWorldRoot;  // shaders/shared/world_root.h

namespace quarry {
class Document;
}

namespace quarry::engine {

class DeviceBlocks;
class LightTree;
class Residency;

// A World readable by shaders. host_import: shaders read the world's own memory, without copies. staged: changes are
// copied. zero_copy: the world is at home on a device, and shaders read what CUDA writes. It serves one World at a
// time. The World must be destroyed before its SharedWorld, because it lives in the latter's memory, and the Device
// after both. Only one thread may use it at a time. Every frame shows exactly the version published before it was
// recorded, and no edit waits for a frame: what a published root reaches stays as it is (MemorySource::epoch). Only in
// host_import, World::write waits for submitted frames whose views show the hash grid itself.
class SharedWorld {
 public:
  static Result<std::unique_ptr<SharedWorld>> create(Device& device, SharingMode mode = SharingMode::automatic);
  ~SharedWorld();
  // The memory to create the World or Document with, so that this device can see it.
  WorldMemory memory() const;
  // Makes the device see the world as it is now. Returns the timeline point that a frame must wait for (value 0: none).
  // Call it after edits and before recording a frame. The world must have been created with memory() of this object.
  Result<Device::TimelinePoint> publish(World& world, const Palette& palette);
  // The same for a world that is at home on a device, whose blocks these are: `published` is what device::Store has
  // published for frames(). Nothing is copied.
  Result<Device::TimelinePoint> publish(const device::Store::Published& published, DeviceBlocks& blocks,
                                        const Palette& palette);
  // From the next publish() on: of the world's voxels some pages are not there, as `residency` says, which must outlive
  // that. Null: all is there. Who records frames must use what is compiled for it (Renderer
  // does), and bring what they reach.
  void set_residency(Residency* residency);
  Residency* residency() const;
  // Which voxel of a larger world the grid's voxel (0, 0, 0) is, as of the last publish(): cameras are to be seen from
  // there.
  Int3 origin() const;
  void set_origin(Int3 origin);          // before publish()
  device::Store::Frames frames() const;  // those that were recorded and that are done
  // Says that a frame was recorded with root_address(), and which timeline value it will signal. `reads_grid`: its view
  // shows the hash grid itself. To be called before the next publish().
  void frame_submitted(uint64_t value, bool reads_grid = false);
  void frame_completed(uint64_t value);
  // Of the world that was published last; before, of one at home on the host.
  SharingMode mode() const;
  const std::string& sharing_reason() const;
  uint64_t root_address() const;  // device address of the root structure of shaders/library/world.glsl
  // The same structure, for push constants. It lives as long as the structure at root_address().
  const QryWorldRoot& root() const;
  bool has_transmissive() const;  // the palette last published has a transparent material
  bool has_reflective() const;    // ... has a smooth one
  // Brings the light tree of the world's emissive faces up to date with the last publish() and returns it. The world
  // and palette must be the published ones. Only one thread may call it at a time.
  const LightTree& update_lights(const World& world, const Palette& palette);
  const LightTree& lights() const;  // as of the last update_lights()
  uint64_t device_bytes() const;

 private:
  struct State;
  explicit SharedWorld(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// What came of pages that the device has reached and that were not there (engine/sharing/residency.hpp).
enum class PagesBrought : uint8_t {
  none_missing,  // the picture is right
  some,          // it is to be made again
  too_many       // those that it needs do not fit memory together: it is to be made in smaller tiles
};

// What is drawn: a world, its materials, and the SharedWorld through which the device sees both. The world must have
// been created with memory() of `shared`.
struct RenderedWorld {
  SharedWorld& shared;
  World& world;
  const Palette& palette;

  // Of a world at home on a device, of which `world` has no voxels: instead of publishing that. Empty: there is none.
  std::function<Result<Device::TimelinePoint>()> publish_device = {};
  const World* lit = nullptr;  // where lights are looked for; null: in `world`
  // Of a world of which some pages are not there: brings those that the commands before have reached, when they are
  // done. Empty: all is there.
  std::function<Result<PagesBrought>()> bring_pages = {};

  const World& with_lights() const { return lit ? *lit : world; }
  Result<Device::TimelinePoint> publish() const {
    return publish_device ? publish_device() : shared.publish(world, palette);
  }
};
RenderedWorld rendered_world(SharedWorld& shared, Document& document);

}  // namespace quarry::engine
