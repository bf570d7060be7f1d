// SPDX-License-Identifier: Apache-2.0
// world.cpp - a World that shaders can read: the root structure, and the work of each sharing mode in publish().
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "engine/sharing/device_blocks.hpp"
#include "engine/sharing/light_tree.hpp"
#include "engine/sharing/memory_source.hpp"
#include "engine/sharing/residency.hpp"
#include "engine/sharing/world.hpp"
#include "engine/sharing/world_changes.hpp"
#include "engine/vulkan/upload.hpp"
#include "shaders/shared/residency.h"
#include "shaders/shared/world_root.h"
#include "voxel/worlds/document.hpp"

namespace quarry::engine {

static_assert(sizeof(QryWorldRoot) == 88 && offsetof(QryWorldRoot, palette) == 32 &&
                  offsetof(QryWorldRoot, grid_pages) == 40 && offsetof(QryWorldRoot, box_low) == 56 &&
                  offsetof(QryWorldRoot, packed) == 80,
              "the root's layout in C++ is not GLSL's scalar layout");
static_assert((1u << kQryBrickSlabShift) == kBricksPerSlab && sizeof(OccupancyNode) == 16 && kLevel3Nodes == 1u << 14);
static_assert(-int32_t(kQryVoxelBiasXZ) == kWorldMin.x && -int32_t(kQryVoxelBiasY) == kWorldMin.y);
static_assert(sizeof(BrickMask) == 64 && sizeof(BrickMaterials) == 512 && sizeof(Material) == 32 &&
              sizeof(Palette::materials) == kQryPaletteBytes);

namespace {

// The buffer holds the root, then the palette with what shaders know of absent pages, then the two slab tables.
constexpr size_t kPaletteAt = 256, kResidencyAt = kPaletteAt + sizeof(Palette::materials),
                 kTablesAt = kResidencyAt + sizeof(QryResidency);

// Roots live in small host-visible buffers, with a new one for each change. Frames in flight still read the root that
// they were recorded with.
class RootRing {
 public:
  // Writes `image`, a root whose table addresses are still relative, to a buffer that no frame reads. Makes it current.
  Result<void> put(Device& device, std::vector<uint8_t> image, uint64_t submitted, uint64_t completed) {
    if (current_ && image == current_->image) return {};
    if (current_) current_->last_frame = submitted;
    Slot* slot = nullptr;
    for (auto& s : slots_)
      if (s.get() != current_ && s->last_frame <= completed && s->memory->size_bytes() >= image.size()) slot = s.get();
    if (!slot) {
      QRY_TRY_ASSIGN(auto memory, DeviceMemory::create(device, BufferMemory::device_mapped,
                                                       std::max<size_t>(image.size() * 2, 16384), "quarry world root"));
      slots_.push_back(std::make_unique<Slot>());
      slot = slots_.back().get();
      slot->memory = std::move(memory);
    }
    slot->image = std::move(image);
    // Addresses inside the buffer itself become absolute here.
    QryWorldRoot root;
    std::memcpy(&root, slot->image.data(), sizeof root);
    for (uint64_t* address : {&root.mask_slabs, &root.material_slabs, &root.palette})
      *address += slot->memory->address();
    auto* bytes = static_cast<uint8_t*>(slot->memory->mapped());  // slow to read
    std::memcpy(bytes, &root, sizeof root);
    std::memcpy(bytes + sizeof root, slot->image.data() + sizeof root, slot->image.size() - sizeof root);
    slot->root = root;
    current_ = slot;
    return {};
  }
  uint64_t address() const { return current_ ? current_->memory->address() : 0; }
  const QryWorldRoot& root() const {
    static const QryWorldRoot nothing{};
    return current_ ? current_->root : nothing;
  }

 private:
  struct Slot {
    std::unique_ptr<DeviceMemory> memory;
    std::vector<uint8_t> image;
    QryWorldRoot root{};  // with absolute addresses
    uint64_t last_frame = 0;
  };
  std::vector<std::unique_ptr<Slot>> slots_;
  Slot* current_ = nullptr;
};

std::vector<uint64_t> addresses_of(const SlabArray& array) {
  std::vector<uint64_t> addresses;
  for (const MemoryBlock& slab : array.slabs()) addresses.push_back(slab.device_address);
  return addresses;
}

std::vector<uint8_t> root_image(QryWorldRoot root, const Palette& palette, const Residency* residency,
                                const std::vector<uint64_t>& masks, const std::vector<uint64_t>& materials) {
  std::vector<uint8_t> image(kTablesAt + (masks.size() + materials.size()) * 8);
  root.mask_slabs = kTablesAt;
  root.material_slabs = kTablesAt + masks.size() * 8;
  uint8_t* at = image.data() + kTablesAt;
  for (const std::vector<uint64_t>* const table : {&masks, &materials})
    for (const uint64_t address : *table) {
      std::memcpy(at, &address, sizeof address);
      at += sizeof address;
    }
  root.palette = kPaletteAt;
  std::memcpy(image.data() + kPaletteAt, palette.materials.data(), sizeof palette.materials);
  if (residency) {
    const QryResidency pages = residency->root();
    std::memcpy(image.data() + kResidencyAt, &pages, sizeof pages);
  }
  std::memcpy(image.data(), &root, sizeof root);
  return image;
}

// Shaders reach the pyramid's nodes by 32-bit offsets.
Result<void> check_pyramid(uint64_t size_bytes) {
  if (size_bytes <= uint64_t(1) << 32) return {};
  return fail(ErrorCode::unsupported, "the occupancy pyramid has " + std::to_string(size_bytes >> 20) +
                                          " MiB, and what is drawn may have 4096 at most");
}

// Rays start at a box of every voxel, enlarged by the margin.
void put_box(QryWorldRoot& root, const Box3& box) {
  const Int3 low = box.empty() ? kWorldMin : box.min, beyond = box.empty() ? kWorldMin : box.max + Int3{1, 1, 1};
  const int32_t lows[3] = {low.x, low.y, low.z}, highs[3] = {beyond.x, beyond.y, beyond.z};
  for (int i = 0; i < 3; ++i) {
    root.box_low[i] = float(lows[i] - int32_t(kQryBoxMargin));
    root.box_high[i] = float(highs[i] + int32_t(kQryBoxMargin));
  }
}

// The box at which rays start: the tight box of all voxels, as at every home. Of the bricks on its faces few are looked
// into: only those that may reach beyond the ones before them.
Box3 box_of(const World& world) {
  std::vector<Int3> outermost;
  world.pyramid().brick_bounds(&outermost);
  Box3 box;
  for (const Int3 at : outermost)
    if (const Box3 most = box_of_voxels({at, at}); intersected(most, box) != most)
      box = united(box, voxel_bounds(at, world.pool().mask(*world.pyramid().find_brick(at))));
  return box;
}
// Tells whether a change of this brick can change that box.
bool bounds_box(const Box3& box, Int3 at) {
  const Int3 low = brick_of(box.min), high = brick_of(box.max);
  return box.empty() || at.x <= low.x || at.x >= high.x || at.y <= low.y || at.y >= high.y || at.z <= low.z ||
         at.z >= high.z;
}

}  // namespace

struct SharedWorld::State {
  Device* device = nullptr;
  SharingChoice host, on_device;  // of worlds at home there
  bool shows_device = false;      // the world published last is at home on a device
  std::unique_ptr<SharedMemorySource> memory;
  std::unique_ptr<Upload> upload;  // staged
  RootRing roots;
  uint64_t submitted = 0, completed = 0;
  bool transmissive = false, reflective = false;
  Residency* residency = nullptr;
  Int3 origin;
  LightTree lights;
  Device::TimelinePoint ready{VK_NULL_HANDLE, 0};
  // The world published last, and how much of it the device has seen.
  uint64_t world_seen = 0, pyramid_seen = 0;  // OccupancyPyramid::id and block_id; 0: nothing
  const void* grid_seen = nullptr;
  uint32_t grid_pages_seen = 0;                 // a table only grows; a new one may have the address of an older one
  uint64_t version_seen = 0, changed_seen = 0;  // of a world on the host, on a device
  uint64_t published_seen = 0;                  // Published::number
  Box3 box;                                     // box_of() the world

  Result<void> upload_changes(const World& world, const WorldChanges& changes);
  // Of a world of which some pages are not there, rays start at the box of all.
  Result<void> put_pages(QryWorldRoot& root, const Box3& there) const {
    if (!residency) return {};
    QRY_TRY(residency->update(submitted, completed));
    put_box(root, united(there, residency->bounds()));
    root.brick_count = std::max(root.brick_count, 1u);  // no ray may end because nothing is there yet
    return {};
  }
  void look_at(const Palette& palette) {
    transmissive = std::ranges::any_of(palette.materials, [](const Material& m) { return m.transparency > 0; });
    reflective = std::ranges::any_of(palette.materials, [](const Material& m) { return m.roughness < 0.3f; });
  }
};

Result<void> SharedWorld::State::upload_changes(const World& world, const WorldChanges& changes) {
  std::vector<Upload::Copy> copies;
  for (const CopyRegion& region : collect_copy_regions(world, changes)) {
    const MemoryBlock* block = nullptr;
    switch (region.part) {
      case WorldPart::grid: block = &world.grid().block(); break;
      case WorldPart::masks: block = &world.pool().mask_slabs().slabs()[region.slab]; break;
      case WorldPart::materials: block = &world.pool().material_slabs().slabs()[region.slab]; break;
      case WorldPart::pyramid: block = &world.pyramid().block(); break;
    }
    const auto* buffer = static_cast<const SharedBuffer*>(block->owner);
    copies.push_back({buffer->buffer(), block->device_address - buffer->device_address() + region.offset_bytes,
                      region.size_bytes, region.from});
  }
  QRY_TRY_ASSIGN(auto point, upload->submit(copies));
  ready = point;
  memory->copies_submitted(ready);
  return {};
}

SharedWorld::SharedWorld(std::unique_ptr<State> state) : state_(std::move(state)) {}
SharedWorld::~SharedWorld() = default;

Result<std::unique_ptr<SharedWorld>> SharedWorld::create(Device& device, SharingMode mode) {
  auto state = std::make_unique<State>();
  state->device = &device;
  QRY_TRY_ASSIGN(state->on_device, choose_sharing(device, mode));
  QRY_TRY_ASSIGN(state->host, choose_host_sharing(device, mode));
  state->memory = std::make_unique<SharedMemorySource>(device, state->host.mode);
  if (state->host.mode == SharingMode::staged) {
    QRY_TRY_ASSIGN(state->upload, Upload::create(device));
  }
  return std::unique_ptr<SharedWorld>(new SharedWorld(std::move(state)));
}

WorldMemory SharedWorld::memory() const {
  WorldMemory memory;
  memory.memory = state_->memory.get();
  return memory;
}

Result<Device::TimelinePoint> SharedWorld::publish(World& world, const Palette& palette) {
  State& s = *state_;
  if (world.grid().block().device_address == 0 || world.pyramid().block().device_address == 0)
    return fail(ErrorCode::invalid_argument, "this world was not created with SharedWorld::memory(), so " +
                                                 s.device->info().name + " cannot read it");

  WorldChanges changes;
  changes.everything = world.pyramid().id() != s.world_seen || world.version() < s.version_seen;
  if (changes.everything) world.drop_dirty();
  else changes.keys = world.take_dirty_keys(), changes.level2 = world.take_dirty_level2();
  changes.whole_pyramid = world.pyramid().block_id() != s.pyramid_seen;
  changes.whole_grid = world.grid().block().data != s.grid_seen || world.grid().view().page_count != s.grid_pages_seen;
  // Pages that come and go are no changes of the world: its lights are looked for in all of it.
  if (!s.residency) s.lights.note(changes);
  s.world_seen = 0;  // if anything below fails, the next call copies everything: the dirty lists are already taken
  // Of a world of which pages are not there it is not asked for (put_pages()).
  if (!s.residency && (changes.everything || std::ranges::any_of(changes.keys, [&](uint32_t key) {
                         return bounds_box(s.box, brick_from_key(key));
                       })))
    s.box = box_of(world);

  QryWorldRoot root{};
  if (s.upload && (changes.everything || changes.whole_grid || changes.whole_pyramid || !changes.keys.empty() ||
                   !changes.level2.empty()))
    QRY_TRY(s.upload_changes(world, changes));
  root.grid_words = world.grid().block().device_address;
  const SlabArray& masks = world.pool().mask_slabs();
  const SlabArray& materials = world.pool().material_slabs();
  root.packed = world.packed();
  const uint64_t bricks = root.packed ? masks.capacity() : std::min(masks.capacity(), materials.capacity());
  root.brick_capacity = uint32_t(std::min<uint64_t>(bricks, kQryReservedValue));
  const MemoryBlock& pyramid = world.pyramid().block();
  QRY_TRY(check_pyramid(pyramid.size_bytes));
  root.pyramid = pyramid.device_address;
  root.level3 = world.pyramid().level3_granule();
  // A run that starts below this capacity ends inside the block.
  root.node_capacity = uint32_t(pyramid.size_bytes / kGranuleBytes) - 64;
  root.brick_count = world.brick_count();
  root.grid_pages = world.grid().view().page_count;
  put_box(root, s.box);
  QRY_TRY(s.put_pages(root, {}));
  QRY_TRY(s.roots.put(*s.device, root_image(root, palette, s.residency, addresses_of(masks), addresses_of(materials)),
                      s.submitted, s.completed));
  s.look_at(palette);
  s.world_seen = world.pyramid().id();
  s.pyramid_seen = world.pyramid().block_id();
  s.grid_seen = world.grid().block().data;
  s.grid_pages_seen = world.grid().view().page_count;
  s.version_seen = world.version();
  s.shows_device = false;
  s.memory->published();
  return s.ready;
}

Result<Device::TimelinePoint> SharedWorld::publish(const device::Store::Published& published, DeviceBlocks& blocks,
                                                   const Palette& palette) {
  State& s = *state_;
  QryWorldRoot root{};
  root.grid_words = published.grid;
  root.grid_pages = published.grid_pages;
  root.brick_capacity = published.brick_room;
  root.packed = published.packed;
  QRY_TRY(check_pyramid(uint64_t(published.node_room) * kGranuleBytes));
  root.pyramid = published.nodes;
  root.level3 = published.level3;
  root.node_capacity = published.node_room - 64;
  root.brick_count = published.keys;
  put_box(root, published.bounds);
  QRY_TRY(s.put_pages(root, published.bounds));
  // Lights are looked for when they are wanted, in all of the world: pages that come and go do not change them.
  if (published.changed != s.changed_seen || !s.shows_device) {
    WorldChanges all;
    all.everything = true;
    s.lights.note(all);
  }
  // Memory may be new without a change of the world: after room was given back or asked for.
  if (published.number != s.published_seen) {
    QRY_TRY_ASSIGN(s.ready, blocks.acquire());
  }
  QRY_TRY(s.roots.put(*s.device, root_image(root, palette, s.residency, published.masks, published.materials),
                      s.submitted, s.completed));
  s.look_at(palette);
  s.world_seen = 0;
  s.changed_seen = published.changed;
  s.published_seen = published.number;
  s.shows_device = true;
  return s.ready;
}

void SharedWorld::set_residency(Residency* residency) {
  state_->residency = residency;
  state_->world_seen = 0;  // of a world in parts the box is not kept: the next publish() finds it, with all else
}
Residency* SharedWorld::residency() const { return state_->residency; }
Int3 SharedWorld::origin() const { return state_->origin; }
void SharedWorld::set_origin(Int3 origin) { state_->origin = origin; }

device::Store::Frames SharedWorld::frames() const { return {state_->submitted, state_->completed}; }

void SharedWorld::frame_submitted(uint64_t value, bool reads_grid) {
  state_->submitted = std::max(state_->submitted, value);
  state_->memory->frame_submitted(value, reads_grid);
}

void SharedWorld::frame_completed(uint64_t value) {
  state_->completed = std::max(state_->completed, value);
  state_->memory->frame_completed(value);
}

SharingMode SharedWorld::mode() const { return (state_->shows_device ? state_->on_device : state_->host).mode; }
const std::string& SharedWorld::sharing_reason() const {
  return (state_->shows_device ? state_->on_device : state_->host).reason;
}
uint64_t SharedWorld::root_address() const { return state_->roots.address(); }
const QryWorldRoot& SharedWorld::root() const { return state_->roots.root(); }
bool SharedWorld::has_transmissive() const { return state_->transmissive; }
bool SharedWorld::has_reflective() const { return state_->reflective; }
const LightTree& SharedWorld::update_lights(const World& world, const Palette& palette) {
  state_->lights.update(world, palette);
  return state_->lights;
}
const LightTree& SharedWorld::lights() const { return state_->lights; }
uint64_t SharedWorld::device_bytes() const { return state_->memory->size_bytes(); }

RenderedWorld rendered_world(SharedWorld& shared, Document& document) {
  return {shared, document.world(), document.scene().palette};
}

}  // namespace quarry::engine
