// SPDX-License-Identifier: Apache-2.0
// cuda_mirror.cpp - passes regions through pinned memory to a scatter kernel, between the release and the acquire of
// the buffers.
#include "engine/sharing/cuda_mirror.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "engine/cuda/interop.hpp"
#include "engine/sharing/ownership.hpp"
#include "engine/vulkan/timeline.hpp"

namespace quarry::engine {
namespace {

constexpr uint64_t kRegionBytes = 16u << 10;  // one CUDA block each

}  // namespace

struct CudaMirror::State {
  SharedMemorySource* memory = nullptr;
  std::unique_ptr<OwnershipTransfer> ownership;
  std::unique_ptr<Timeline> ready;
  std::unique_ptr<CudaScatter> scatter;
  std::optional<SlabArray> masks, materials;
  MemoryBlock grid, pyramid;
  Device::TimelinePoint newest{VK_NULL_HANDLE, 0};

  ~State() {
    if (ready && ready->last()) (void)ready->wait(ready->last());
    masks.reset();
    materials.reset();
    if (grid.data) memory->release(grid);
    if (pyramid.data) memory->release(pyramid);
  }

  const MemoryBlock& block_of(const CopyRegion& copy) const {
    switch (copy.part) {
      case WorldPart::grid: return grid;
      case WorldPart::masks: return masks->slabs()[copy.slab];
      case WorldPart::materials: return materials->slabs()[copy.slab];
      case WorldPart::pyramid: break;
    }
    return pyramid;
  }
  // Replaces a block by one of another size, or of the same size if frames need the old content. Frames in flight still
  // read the old block.
  Result<void> replace(MemoryBlock& block, size_t size_bytes, const char* label) {
    QRY_TRY_ASSIGN(auto fresh, memory->allocate(size_bytes, label));
    if (block.data) memory->release(block);
    block = fresh;
    return {};
  }
  Result<void> scatter_regions(const std::vector<CopyRegion>& copies);
};

CudaMirror::CudaMirror(std::unique_ptr<State> state) : state_(std::move(state)) {}
CudaMirror::~CudaMirror() = default;

Result<std::unique_ptr<CudaMirror>> CudaMirror::create(Device& device, SharedMemorySource& memory) {
  auto state = std::make_unique<State>();
  State& s = *state;
  s.memory = &memory;
  QRY_TRY_ASSIGN(auto ownership, OwnershipTransfer::create(device));
  s.ownership = std::move(ownership);
  QRY_TRY_ASSIGN(auto ready, Timeline::create(device, "quarry world ready, from CUDA", true));
  s.ready = std::move(ready);
  QRY_TRY_ASSIGN(auto queue_fd, s.ownership->export_fd());
  QRY_TRY_ASSIGN(auto ready_fd, s.ready->export_fd());
  QRY_TRY_ASSIGN(auto scatter, make_cuda_scatter(device.cuda_device(), queue_fd, ready_fd));
  s.scatter = std::move(scatter);
  s.masks.emplace(memory, sizeof(BrickMask), kBricksPerSlab, "masks (CUDA)");
  s.materials.emplace(memory, sizeof(BrickMaterials), kBricksPerSlab, "materials (CUDA)");
  return std::unique_ptr<CudaMirror>(new CudaMirror(std::move(state)));
}

Result<void> CudaMirror::State::scatter_regions(const std::vector<CopyRegion>& copies) {
  struct Part {
    uint64_t to;
    const char* from;
    uint32_t size;
  };
  std::vector<Part> parts;
  uint64_t bytes = 0;
  const auto flush = [&]() -> Result<void> {
    if (parts.empty()) return {};
    QRY_TRY_ASSIGN(auto staging, scatter->stage(bytes, parts.size()));
    uint32_t at = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      std::memcpy(static_cast<char*>(staging.payload) + at, parts[i].from, parts[i].size);
      staging.regions[i] = {parts[i].to, at, parts[i].size};
      at += parts[i].size;
    }
    auto ok = scatter->run(parts.size());
    parts.clear();
    bytes = 0;
    return ok;
  };
  for (const CopyRegion& copy : copies) {
    const uint64_t to = reinterpret_cast<uint64_t>(block_of(copy).data) + copy.offset_bytes;
    for (uint64_t done = 0; done < copy.size_bytes; done += kRegionBytes) {
      const uint64_t size = std::min(kRegionBytes, copy.size_bytes - done);
      if (bytes + size > CudaScatter::kPayloadBytes || parts.size() == CudaScatter::kRegions) QRY_TRY(flush());
      parts.push_back({to + done, static_cast<const char*>(copy.from) + done, uint32_t(size)});
      bytes += size;
    }
  }
  return flush();
}

Result<Device::TimelinePoint> CudaMirror::update(const World& world, WorldChanges changes) {
  State& s = *state_;
  const size_t grid_bytes = size_t(world.grid().view().page_count) * kQryPageBytes;
  if (!changes.everything && !changes.whole_grid && !changes.whole_pyramid && changes.keys.empty() &&
      changes.level2.empty())
    return s.newest;
  if (changes.everything) {  // new arrays, no larger than this world needs; the old world may have grown them
    s.masks.emplace(*s.memory, sizeof(BrickMask), kBricksPerSlab, "masks (CUDA)");
    s.materials.emplace(*s.memory, sizeof(BrickMaterials), kBricksPerSlab, "materials (CUDA)");
  }
  QRY_TRY(s.masks->follow(world.pool().mask_slabs()));
  QRY_TRY(s.materials->follow(world.pool().material_slabs()));
  if (s.grid.size_bytes != grid_bytes) {
    QRY_TRY(s.replace(s.grid, grid_bytes, "hash grid (CUDA)"));
    changes.whole_grid = true;
  }
  if (changes.whole_pyramid || s.pyramid.size_bytes != world.pyramid().size_bytes()) {
    QRY_TRY(s.replace(s.pyramid, world.pyramid().size_bytes(), "pyramid (CUDA)"));
    changes.whole_pyramid = true;
  }

  const std::vector<CopyRegion> copies = collect_copy_regions(world, changes);
  std::vector<SharedBuffer*> written;
  written.reserve(copies.size());
  for (const CopyRegion& copy : copies) written.push_back(static_cast<SharedBuffer*>(s.block_of(copy).owner));
  std::sort(written.begin(), written.end());
  written.erase(std::unique(written.begin(), written.end()), written.end());
  std::vector<VkBuffer> to_release, to_acquire;
  for (SharedBuffer* buffer : written) {
    if (buffer->on_queue()) to_release.push_back(buffer->buffer());
    to_acquire.push_back(buffer->buffer());
  }
  // From here on the host does not wait. The queue, CUDA's stream and the queue again wait for each other.
  QRY_TRY_ASSIGN(auto released, s.ownership->release(to_release));
  for (SharedBuffer* buffer : written) buffer->set_on_queue(false);
  QRY_TRY(s.scatter->wait(released));
  QRY_TRY(s.scatter_regions(copies));
  QRY_TRY(s.scatter->signal(s.ready->last() + 1));
  s.ready->next();
  QRY_TRY_ASSIGN(auto acquired, s.ownership->acquire(to_acquire, s.ready->point()));
  for (SharedBuffer* buffer : written) buffer->set_on_queue(true);
  return s.newest = acquired;
}

const MemoryBlock& CudaMirror::grid() const { return state_->grid; }
const SlabArray& CudaMirror::masks() const { return *state_->masks; }
const SlabArray& CudaMirror::materials() const { return *state_->materials; }
const MemoryBlock& CudaMirror::pyramid() const { return state_->pyramid; }

}  // namespace quarry::engine
