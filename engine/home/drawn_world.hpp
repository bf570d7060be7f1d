// SPDX-License-Identifier: Apache-2.0
// drawn_world.hpp - a file as a world that is drawn and not edited, at home on a device or on the host.
//
//   device   .quarry ─► chunks, decoded by all threads ─► the device's memory, which flattens the scene if it is not
//                       one volume at the origin ─► shaders: no voxel stays on the host
//            mesh ─► voxelised by CUDA ─► the device's memory, the same
//   host     any file ─► Scene ─► Document, packed ─► SharedWorld ─► shaders
//            .quarry that does not fit the memory it may take ─► WorldPages: what rays come to ─► shaders
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "engine/home/choice.hpp"
#include "engine/home/device_home.hpp"
#include "engine/home/world_pages.hpp"
#include "engine/sharing/world.hpp"
#include "voxel/worlds/document.hpp"

namespace quarry::engine {

class DrawnWorld {
 public:
  struct Request {
    std::filesystem::path file;
    Home home = Home::automatic;
    SharingMode sharing = SharingMode::automatic;
    device::Emulation emulation = {};  // of Home::emulated
    // What a world on the host may take, and what one on a device may take there. A .quarry that would take more is
    // drawn in parts.
    uint64_t memory_bytes = UINT64_MAX, device_memory_bytes = UINT64_MAX;
    // Of a .quarry, what of its scene is drawn, and where. It is drawn in parts then, whatever it takes.
    std::optional<SceneWindow> window;
    // Reads all of the file, its bricks in the pool where the reader can, or a mesh's in the sink; null: in none.
    std::function<Result<Scene>(const BrickPool* pool, const DeviceSink* sink)> read;
    // Looks at the scene before its voxels are there. An error ends the opening.
    std::function<Result<void>(const Scene& scene)> check;
    // Ends the message where the home that is asked for cannot be had: what to do.
    std::string otherwise;
  };

  // `automatic`: the device, where CUDA has one that shares its memory with `device` (home_memory) and the file is a
  // .quarry that fits there; the file's bricks are sent as they are decoded, and the host never has more than some MiB
  // a thread of them. Else the host, and home_reason() says why.
  // `device`, `emulated`: there or nowhere. Other files are read whole, sent and let go. Scenes that are not one volume
  // at the origin are flattened by the device.
  // `device` must outlive the result, and one thread at a time may use it. `warnings`: of a .quarry that is read
  // straight there. Errors: those of reading; unsupported, out_of_memory, full, out_of_bounds, device: of a home that
  // is asked for; those of Document::create.
  static Result<std::unique_ptr<DrawnWorld>> open(Device& device, const Request& request, const Progress& progress,
                                                  std::vector<std::string>* warnings);

  Home home() const { return kind_; }  // never automatic
  const std::string& home_reason() const { return reason_; }
  const SharedWorld& shared() const { return *shared_; }
  const Scene& scene() const { return document_->scene(); }  // on a device without bricks

  struct Numbers {
    Box3 bounds;
    uint64_t voxels = 0, bricks = 0, size_bytes = 0;
    bool packed = false;
  };
  const Numbers& numbers() const { return numbers_; }
  const WorldPages* pages() const { return pages_.get(); }  // null: all of the world is there

  // Lives as long as this. `progress`: of reading the pages that a picture needs, where they are not there; may cancel
  // it.
  RenderedWorld rendered(const Progress& progress = {});
  // Before paths are traced, and before rendered(): lets SharedWorld have the faces that glow. At home on a device, if
  // a material glows, all bricks are read back, piece by piece, and those that glow are in host memory for as long as
  // that takes; of a world that is drawn in parts all pages are read, and those that glow stay; the second call does
  // nothing. Errors: device, those of Document::create.
  Result<void> find_lights(const Progress& progress);

 private:
  DrawnWorld() = default;
  Result<void> settle(Device& device, const Request& request, const Progress& progress,
                      std::vector<std::string>* warnings);
  Result<void> keep_on_host(Device& device, const Request& request, const Progress& progress,
                            std::vector<std::string>* warnings);
  Result<bool> keep_pages(Device& device, const Request& request, const Progress& progress,
                          std::vector<std::string>* warnings);
  Result<void> keep_pages_there(Device& device, const Request& request, io::StoreReader file, uint64_t budget_bytes,
                                const Progress& progress);
  Result<void> draw_pages(Device& device, const Request& request, io::StoreReader file, uint64_t budget_bytes,
                          WorldPages::Exchange exchange, const Progress& progress);

  // Destroyed from the last to the first, as those want it that use others.
  std::unique_ptr<SharedWorld> shared_;
  WorldMemory memory_;
  std::optional<Document> document_;
  std::unique_ptr<DeviceBlocks> blocks_;  // of `home_`, if shaders read its memory
  std::unique_ptr<DeviceHome> home_;      // null: at home on the host
  std::optional<World> paged_;            // on the host, what is there of `pages_`
  std::unique_ptr<WorldPages> pages_;     // null: all of it is there
  Home kind_ = Home::host;
  std::string reason_;
  Numbers numbers_;
  bool lights_found_ = false;
  std::optional<Document> lit_;  // what glows of `pages_`
};

}  // namespace quarry::engine
