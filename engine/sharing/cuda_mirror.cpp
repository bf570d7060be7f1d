#include "engine/sharing/cuda_mirror.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "engine/sharing/cuda_link.hpp"
#include "engine/sharing/ownership.hpp"
#include "engine/vulkan/timeline.hpp"

namespace quarry::engine {
namespace {

constexpr uint64_t kPieceBytes = 16u << 10;  // one CUDA block each

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

  const MemoryBlock& block_of(const WorldPiece& piece) const {
    switch (piece.part) {
      case WorldPart::grid: return grid;
      case WorldPart::masks: return masks->slabs()[piece.slab];
      case WorldPart::materials: return materials->slabs()[piece.slab];
      case WorldPart::pyramid: break;
    }
    return pyramid;
  }
  // A block of another size, or of the same when frames have to keep what the old one holds; frames under way go on reading that.
  Result<void> replace(MemoryBlock& block, size_t size_bytes, const char* label) {
    auto fresh = memory->allocate(size_bytes, label);
    if (!fresh) return tl::unexpected(fresh.error());
    if (block.data) memory->release(block);
    block = *fresh;
    return {};
  }
  Result<void> scatter_pieces(const std::vector<WorldPiece>& pieces);
};

CudaMirror::CudaMirror(std::unique_ptr<State> state) : state_(std::move(state)) {}
CudaMirror::~CudaMirror() = default;

Result<std::unique_ptr<CudaMirror>> CudaMirror::create(Device& device, SharedMemorySource& memory) {
  auto state = std::make_unique<State>();
  State& s = *state;
  s.memory = &memory;
  auto ownership = OwnershipTransfer::create(device);
  if (!ownership) return tl::unexpected(ownership.error());
  s.ownership = std::move(*ownership);
  auto ready = Timeline::create(device, "quarry world ready, from CUDA", true);
  if (!ready) return tl::unexpected(ready.error());
  s.ready = std::move(*ready);
  auto queue_fd = s.ownership->export_fd();
  if (!queue_fd) return tl::unexpected(queue_fd.error());
  auto ready_fd = s.ready->export_fd();
  if (!ready_fd) return tl::unexpected(ready_fd.error());
  auto scatter = make_cuda_scatter(device.cuda_device(), *queue_fd, *ready_fd);
  if (!scatter) return tl::unexpected(scatter.error());
  s.scatter = std::move(*scatter);
  s.masks.emplace(memory, sizeof(BrickMask), kBricksPerSlab, "masks (CUDA)");
  s.materials.emplace(memory, sizeof(BrickMaterials), kBricksPerSlab, "materials (CUDA)");
  return std::unique_ptr<CudaMirror>(new CudaMirror(std::move(state)));
}

Result<void> CudaMirror::State::scatter_pieces(const std::vector<WorldPiece>& pieces) {
  struct Part {
    uint64_t to;
    const char* from;
    uint32_t size;
  };
  std::vector<Part> parts;
  uint64_t bytes = 0;
  const auto flush = [&]() -> Result<void> {
    if (parts.empty()) return {};
    auto staging = scatter->stage(bytes, parts.size());
    if (!staging) return tl::unexpected(staging.error());
    uint32_t at = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      std::memcpy(static_cast<char*>(staging->payload) + at, parts[i].from, parts[i].size);
      staging->pieces[i] = {parts[i].to, at, parts[i].size};
      at += parts[i].size;
    }
    auto ok = scatter->run(parts.size());
    parts.clear();
    bytes = 0;
    return ok;
  };
  for (const WorldPiece& piece : pieces) {
    const uint64_t to = reinterpret_cast<uint64_t>(block_of(piece).data) + piece.offset_bytes;
    for (uint64_t done = 0; done < piece.size_bytes; done += kPieceBytes) {
      const uint64_t size = std::min(kPieceBytes, piece.size_bytes - done);
      if (bytes + size > CudaScatter::kPayloadBytes || parts.size() == CudaScatter::kPieces)
        if (auto ok = flush(); !ok) return ok;
      parts.push_back({to + done, static_cast<const char*>(piece.from) + done, uint32_t(size)});
      bytes += size;
    }
  }
  return flush();
}

Result<Device::TimelinePoint> CudaMirror::update(const World& world, WorldChanges changes) {
  State& s = *state_;
  const size_t grid_bytes = size_t(world.grid().view().page_count) * kQryPageBytes;
  if (!changes.everything && !changes.whole_grid && !changes.whole_pyramid && changes.keys.empty() && changes.regions.empty()) return s.newest;
  if (changes.everything) {  // not what the world that is there grew into: no more than it needs
    s.masks.emplace(*s.memory, sizeof(BrickMask), kBricksPerSlab, "masks (CUDA)");
    s.materials.emplace(*s.memory, sizeof(BrickMaterials), kBricksPerSlab, "materials (CUDA)");
  }
  if (auto ok = s.masks->follow(world.pool().mask_slabs()); !ok) return tl::unexpected(ok.error());
  if (auto ok = s.materials->follow(world.pool().material_slabs()); !ok) return tl::unexpected(ok.error());
  if (s.grid.size_bytes != grid_bytes) {
    if (auto ok = s.replace(s.grid, grid_bytes, "hash grid (CUDA)"); !ok) return tl::unexpected(ok.error());
    changes.whole_grid = true;
  }
  if (changes.whole_pyramid || s.pyramid.size_bytes != world.pyramid().size_bytes()) {
    if (auto ok = s.replace(s.pyramid, world.pyramid().size_bytes(), "pyramid (CUDA)"); !ok) return tl::unexpected(ok.error());
    changes.whole_pyramid = true;
  }

  const std::vector<WorldPiece> pieces = collect_pieces(world, changes);
  std::vector<SharedBuffer*> written;
  for (const WorldPiece& piece : pieces) written.push_back(static_cast<SharedBuffer*>(s.block_of(piece).owner));
  std::sort(written.begin(), written.end());
  written.erase(std::unique(written.begin(), written.end()), written.end());
  std::vector<VkBuffer> to_release, to_acquire;
  for (SharedBuffer* buffer : written) {
    if (buffer->on_queue()) to_release.push_back(buffer->buffer());
    to_acquire.push_back(buffer->buffer());
  }
  // From here to the end nothing waits: the queue, CUDA's stream and the queue again wait for each other.
  auto released = s.ownership->release(to_release);
  if (!released) return tl::unexpected(released.error());
  for (SharedBuffer* buffer : written) buffer->set_on_queue(false);
  if (auto ok = s.scatter->wait(*released); !ok) return tl::unexpected(ok.error());
  if (auto ok = s.scatter_pieces(pieces); !ok) return tl::unexpected(ok.error());
  if (auto ok = s.scatter->signal(s.ready->last() + 1); !ok) return tl::unexpected(ok.error());
  s.ready->next();
  auto acquired = s.ownership->acquire(to_acquire, s.ready->point());
  if (!acquired) return tl::unexpected(acquired.error());
  for (SharedBuffer* buffer : written) buffer->set_on_queue(true);
  return s.newest = *acquired;
}

const MemoryBlock& CudaMirror::grid() const { return state_->grid; }
const SlabArray& CudaMirror::masks() const { return *state_->masks; }
const SlabArray& CudaMirror::materials() const { return *state_->materials; }
const MemoryBlock& CudaMirror::pyramid() const { return state_->pyramid; }

}  // namespace quarry::engine
