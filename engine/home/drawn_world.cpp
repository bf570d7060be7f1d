// SPDX-License-Identifier: Apache-2.0
// drawn_world.cpp - opens a file straight into a device's memory, or on the host.
#include "engine/home/drawn_world.hpp"

#include <algorithm>
#include <utility>

#include "engine/home/drawing.hpp"
#include "voxel/io/formats.hpp"
#include "voxel/io/quarry/reader.hpp"

namespace quarry::engine {
namespace {

// What a brick of a world on the host takes while that is opened and packed to be drawn.
constexpr uint64_t kDrawnBrickBytes = 900;
// And of one on a device, with its pairs of the grid and its place in the pyramid.
constexpr uint64_t kThereBrickBytes = 624;

// The bricks that a file's visible instances place, at most; where it has none, those of its volumes.
Result<uint64_t> drawn_bricks(io::StoreReader& file) {
  const Scene& scene = file.scene();
  uint64_t bricks = file.bricks();
  for (uint32_t volume = 0; volume < scene.volumes.size(); ++volume) {
    const auto shown = uint64_t(std::ranges::count_if(scene.instances, [&](const Instance& instance) {
      return instance.volume == volume && scene.instance_visible(instance);
    }));
    if (shown < 2) continue;
    uint64_t its = 0;
    QRY_TRY_ASSIGN(const auto chunks, file.chunks(volume));
    for (const io::ChunkBricks& chunk : chunks) its += chunk.bricks;
    bricks += its * (shown - 1);
  }
  return bricks;
}

// A budget in which all of so many bricks would be there at a time, if that is less than the given one.
uint64_t enough(uint64_t budget_bytes, uint64_t bricks, uint64_t brick_bytes) {
  return std::min(budget_bytes, WorldPages::kLeastBytes + bricks * brick_bytes / 3 * 4);
}

// What a document beside a world that is elsewhere has of its scene.
Scene without_voxels(Scene scene) {
  if (!DeviceHome::takes(scene)) scene = as_one_volume(std::move(scene));
  scene.volumes[0].bricks.clear();
  return scene;
}

// A reason is a part of a sentence: the file has been named.
std::string without_file(const std::string& message, const std::filesystem::path& file) {
  const std::string name = file.string() + ": ";
  return message.starts_with(name) ? message.substr(name.size()) : message;
}

}  // namespace

Result<std::unique_ptr<DrawnWorld>> DrawnWorld::open(Device& device, const Request& request, const Progress& progress,
                                                     std::vector<std::string>* warnings) {
  std::unique_ptr<DrawnWorld> world(new DrawnWorld);
  QRY_TRY_ASSIGN(world->shared_, SharedWorld::create(device, request.sharing));
  world->memory_ = world->shared_->memory();
  QRY_TRY(world->settle(device, request, progress, warnings));
  if (!world->home_) QRY_TRY(world->keep_on_host(device, request, progress, warnings));
  return world;
}

// Leaves `home_` null, with the reason, if the host is to have the world.
Result<void> DrawnWorld::settle(Device& device, const Request& request, const Progress& progress,
                                std::vector<std::string>* warnings) {
  // What would be wrong at home on the host too.
  std::optional<Error> wrong;
  const auto of_file = [&]<class T>(Result<T> result) {
    if (!result) wrong = result.error();
    return result;
  };
  const auto try_device = [&]() -> Result<void> {
    QRY_TRY(may_be_on_device(request.home));
    QRY_TRY_ASSIGN(const auto* const format, of_file(io::format_for_reading(request.file)));
    std::optional<io::StoreReader> file;
    std::vector<std::string> said;
    if (format->kind == io::FormatKind::world) {
      QRY_TRY_ASSIGN(file, of_file(io::StoreReader::open(request.file, &said)));
    }
    if (!file && request.home == Home::automatic)
      return fail(ErrorCode::unsupported, "only a .quarry file goes straight into a device's memory");
    Scene scene;
    if (file) {
      scene = file->scene();
      QRY_TRY(of_file(request.check(scene)));
    }
    QRY_TRY_ASSIGN(auto there, home_memory(request.home, &device, request.sharing, request.emulation));
    blocks_ = std::move(there.blocks);
    bool in_parts = false;
    uint64_t budget_bytes = request.device_memory_bytes;
    if (format->kind == io::FormatKind::mesh) {
      const auto read = [&](const DeviceSink& sink) { return request.read(nullptr, &sink); };
      QRY_TRY_ASSIGN(home_, DeviceHome::create(std::move(there.executor), read, scene, wrong, progress, 0, 0));
      QRY_TRY(of_file(request.check(scene)));
    } else {
      if (!file) {
        QRY_TRY_ASSIGN(scene, of_file(request.read(nullptr, nullptr)));
        QRY_TRY(of_file(request.check(scene)));
      } else if (request.window || request.device_memory_bytes != UINT64_MAX) {
        QRY_TRY_ASSIGN(const uint64_t bricks, of_file(drawn_bricks(*file)));
        in_parts = request.window || bricks > request.device_memory_bytes / kThereBrickBytes;
        if (request.window) budget_bytes = enough(budget_bytes, bricks, kThereBrickBytes);
      }
      const Scene nothing = as_one_volume(scene);
      QRY_TRY_ASSIGN(
          home_, DeviceHome::create(
                     std::move(there.executor),
                     {in_parts ? nothing : scene, {}, 0, file && !in_parts ? &*file : nullptr, progress, true}, 0, 0));
    }
    QRY_TRY_ASSIGN(auto document, Document::create(without_voxels(std::move(scene)), memory_));
    document_.emplace(std::move(document));
    if (in_parts) {
      QRY_TRY(keep_pages_there(device, request, std::move(*file), budget_bytes, progress));
    } else {
      if (!home_->shares()) QRY_TRY(copy_to_document(*home_, *document_));
      QRY_TRY_ASSIGN(const auto state, home_->state());
      numbers_ = {state.store.bounds, state.store.voxels, state.store.keys, state.store.world_bytes, false};
    }
    kind_ = request.home == Home::automatic ? Home::device : request.home;
    reason_ = std::move(there.reason);
    if (warnings) warnings->insert(warnings->end(), said.begin(), said.end());
    return {};
  };
  if (const auto settled = try_device(); !settled) {
    pages_.reset();
    document_.reset();
    home_.reset();
    blocks_.reset();
    const Error& error = settled.error();
    if (wrong || fails_at_every_home(error.code)) return tl::unexpected(error);
    reason_ = without_file(error.message, request.file);
    if (request.home == Home::device || request.home == Home::emulated)
      return fail(error.code, "no home on a device: " + reason_ + request.otherwise);
  }
  return {};
}

// True: the file is a world that would take more memory than it may, and parts of it are drawn. False: it is to be read
// as a whole.
Result<bool> DrawnWorld::keep_pages(Device& device, const Request& request, const Progress& progress,
                                    std::vector<std::string>* warnings) {
  if (request.memory_bytes == UINT64_MAX && !request.window) return false;
  QRY_TRY_ASSIGN(const auto* const format, io::format_for_reading(request.file));
  if (format->kind != io::FormatKind::world) return false;
  std::vector<std::string> said;
  QRY_TRY_ASSIGN(auto file, io::StoreReader::open(request.file, &said));
  QRY_TRY_ASSIGN(const uint64_t bricks, drawn_bricks(file));
  if (bricks <= request.memory_bytes / kDrawnBrickBytes && !request.window) return false;
  const uint64_t budget_bytes =
      request.window ? enough(request.memory_bytes, bricks, kDrawnBrickBytes) : request.memory_bytes;
  Scene scene = file.scene();
  QRY_TRY(request.check(scene));
  QRY_TRY_ASSIGN(paged_, World::create(memory_));
  QRY_TRY_ASSIGN(auto document, Document::create(without_voxels(std::move(scene))));
  document_.emplace(std::move(document));
  QRY_TRY(draw_pages(
      device, request, std::move(file), budget_bytes,
      [this](std::span<const BrickPut> puts) -> Result<void> {
        QRY_TRY(paged_->write(puts));
        // Places that have been left are free when no frame can know them any more, and none is drawn now.
        QRY_TRY(shared_->publish(*paged_, document_->scene().palette));
        return {};
      },
      progress));
  if (warnings) warnings->insert(warnings->end(), said.begin(), said.end());
  return true;
}

// The world is empty, and where it is to be.
Result<void> DrawnWorld::draw_pages(Device& device, const Request& request, io::StoreReader file, uint64_t budget_bytes,
                                    WorldPages::Exchange exchange, const Progress& progress) {
  QRY_TRY_ASSIGN(pages_, WorldPages::open(std::move(file), device, *shared_, request.window.value_or(SceneWindow{}),
                                          budget_bytes, std::move(exchange), progress));
  numbers_ = {pages_->bounds(), pages_->voxels(), pages_->bricks(), 0, false};
  return {};
}

// The same in a device's memory, for `home_`, which has no voxel yet.
Result<void> DrawnWorld::keep_pages_there(Device& device, const Request& request, io::StoreReader file,
                                          uint64_t budget_bytes, const Progress& progress) {
  if (!home_->shares())
    return fail(ErrorCode::unsupported,
                "a world that takes more than its part of the device's memory is drawn only "
                "where shaders read that memory");
  // At once, so that nothing grows beyond it later.
  const uint32_t most = WorldPages::most_bricks(budget_bytes);
  home_->grow_little();
  QRY_TRY(home_->reserve(most, most));
  return draw_pages(
      device, request, std::move(file), budget_bytes,
      [this](std::span<const BrickPut> puts) -> Result<void> {
        QRY_TRY(home_->put_bricks(puts));
        QRY_TRY(home_->exchanged());
        QRY_TRY(rendered_world(*shared_, *document_, *home_, *blocks_).publish());
        return {};
      },
      progress);
}

Result<void> DrawnWorld::keep_on_host(Device& device, const Request& request, const Progress& progress,
                                      std::vector<std::string>* warnings) {
  QRY_TRY_ASSIGN(const bool in_parts, keep_pages(device, request, progress, warnings));
  if (in_parts) return {};
  QRY_TRY_ASSIGN(auto scene, request.read(&memory_.new_pool(), nullptr));
  QRY_TRY(request.check(scene));
  QRY_TRY_ASSIGN(auto document, Document::create(std::move(scene), memory_, progress));
  document_.emplace(std::move(document));
  // Drawing only reads, so a packed world serves it: the device gets a third of the bytes. A world that cannot be
  // packed, perhaps for lack of memory, is drawn as it is.
  (void)document_->pack();
  const World& world = document_->world();
  numbers_ = {world.bounds(), world.voxel_count(), world.brick_count(), world.size_bytes(), world.packed()};
  return {};
}

RenderedWorld DrawnWorld::rendered(const Progress& progress) {
  if (pages_) {
    RenderedWorld drawn = home_ ? rendered_world(*shared_, *document_, *home_, *blocks_)
                                : RenderedWorld{*shared_, *paged_, document_->scene().palette};
    // Without lights of its own the document, which has no voxel, tells that there are none.
    drawn.lit = &(lit_ ? *lit_ : *document_).world();
    drawn.bring_pages = [this, progress] { return pages_->bring(progress); };
    return drawn;
  }
  if (home_ && home_->shares()) return rendered_world(*shared_, *document_, *home_, *blocks_);
  return rendered_world(*shared_, *document_);
}

Result<void> DrawnWorld::find_lights(const Progress& progress) {
  if (lights_found_ || !((home_ && home_->shares()) || pages_)) return {};
  progress.say("looking for lights", -1);
  if (pages_) {
    QRY_TRY_ASSIGN(lit_, glowing_part(*pages_, *document_, progress));
    lights_found_ = true;
    return {};
  }
  QRY_TRY_ASSIGN(const auto glowing, glowing_part(*home_, *document_));
  if (glowing) {
    // The published version is the one that is drawn: nothing is edited.
    QRY_TRY(rendered().publish());
    shared_->update_lights(glowing->world(), document_->scene().palette);
  }
  lights_found_ = true;
  return {};
}

}  // namespace quarry::engine
