#include "engine/cuda_mirror.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "engine/cuda_link.hpp"
#include "engine/timeline.hpp"

namespace quarry::engine {
namespace {

constexpr uint64_t kBatchBytes = 32u << 20;  // pinned memory in use at once is two of these
constexpr uint64_t kPieceBytes = 16u << 10;  // one CUDA block each

}  // namespace

struct CudaMirror::State {
  Device* device = nullptr;
  SharedMemorySource* memory = nullptr;
  std::unique_ptr<Timeline> frames, ready;
  std::unique_ptr<CudaScatter> scatter;
  std::unique_ptr<hashgrid::Executor> executor;
  std::optional<hashgrid::Grid> grid;
  std::optional<SlabArray> masks, materials;
  bool packed = false;  // the world that masks and materials are of
  MemoryBlock pyramid;
  MemoryBlock key_memory, value_memory;  // the executor's own, for bulk calls

  ~State() {
    if (ready && ready->last()) (void)ready->wait(ready->last());
    grid.reset();
    masks.reset();
    materials.reset();
    if (pyramid.data) memory->release(pyramid);
    if (key_memory.data) executor->memory().release(key_memory);
    if (value_memory.data) executor->memory().release(value_memory);
  }

  Result<void> reserve_keys(size_t count) {
    for (MemoryBlock* block : {&key_memory, &value_memory}) {
      if (block->size_bytes >= count * 4) continue;
      if (block->data) executor->memory().release(*block);
      *block = {};
      auto fresh = executor->memory().allocate(std::max<size_t>(count * 4, 1u << 16), "mirror keys");
      if (!fresh) return tl::unexpected(fresh.error());
      *block = *fresh;
    }
    return {};
  }

  std::span<uint32_t> device_keys(size_t count) { return {static_cast<uint32_t*>(key_memory.data), count}; }
  std::span<uint32_t> device_values(size_t count) { return {static_cast<uint32_t*>(value_memory.data), count}; }

  Result<void> update_grid(const World& world, const WorldChanges& changes, uint64_t frames_value);
  Result<void> copy_pieces(const std::vector<WorldPiece>& pieces, uint64_t frames_value);
  uint64_t address_of(const WorldPiece& piece) const {
    const auto base = [&](const SlabArray& array) { return reinterpret_cast<uint64_t>(array.slabs()[piece.slab].data); };
    switch (piece.part) {
      case WorldPart::masks: return base(*masks) + piece.offset_bytes;
      case WorldPart::materials: return base(*materials) + piece.offset_bytes;
      case WorldPart::pyramid:
      case WorldPart::grid: break;
    }
    return reinterpret_cast<uint64_t>(pyramid.data) + piece.offset_bytes;
  }
};

CudaMirror::CudaMirror(std::unique_ptr<State> state) : state_(std::move(state)) {}
CudaMirror::~CudaMirror() = default;

Result<std::unique_ptr<CudaMirror>> CudaMirror::create(Device& device, SharedMemorySource& memory) {
  auto state = std::make_unique<State>();
  State& s = *state;
  s.device = &device;
  s.memory = &memory;
  auto frames = Timeline::create(device, "quarry frames, to CUDA", true);
  if (!frames) return tl::unexpected(frames.error());
  s.frames = std::move(*frames);
  auto ready = Timeline::create(device, "quarry world ready, from CUDA", true);
  if (!ready) return tl::unexpected(ready.error());
  s.ready = std::move(*ready);
  auto frames_fd = s.frames->export_fd();
  if (!frames_fd) return tl::unexpected(frames_fd.error());
  auto ready_fd = s.ready->export_fd();
  if (!ready_fd) return tl::unexpected(ready_fd.error());
  auto scatter = make_cuda_scatter(device.cuda_device(), *frames_fd, *ready_fd);
  if (!scatter) return tl::unexpected(scatter.error());
  s.scatter = std::move(*scatter);
  auto executor = hashgrid::make_cuda_executor(device.cuda_device());
  if (!executor) return tl::unexpected(executor.error());
  s.executor = std::move(*executor);
  auto grid = hashgrid::Grid::create(*s.executor, {}, &memory);
  if (!grid) return tl::unexpected(grid.error());
  s.grid.emplace(std::move(*grid));
  s.masks.emplace(memory, sizeof(BrickMask), kBricksPerSlab, "masks (CUDA)");
  s.materials.emplace(memory, sizeof(BrickMaterials), kBricksPerSlab, "materials (CUDA)");
  return std::unique_ptr<CudaMirror>(new CudaMirror(std::move(state)));
}

Result<void> CudaMirror::State::update_grid(const World& world, const WorldChanges& changes, uint64_t frames_value) {
  std::vector<uint32_t> keys, values, gone;
  if (changes.everything) {
    auto pairs = world.grid().enumerate(true);
    if (!pairs) return tl::unexpected(pairs.error());
    if (auto ok = scatter->wait_for_frames(frames_value); !ok) return ok;
    if (auto ok = grid->clear(); !ok) return ok;
    keys = std::move(pairs->keys);
    values = std::move(pairs->values);
  } else {
    if (changes.keys.empty()) return {};
    // Only keys whose value differs from what the table holds change it: painting bricks that stay changes none.
    const size_t n = changes.keys.size();
    if (auto ok = reserve_keys(n); !ok) return ok;
    if (auto ok = executor->upload(key_memory.data, changes.keys.data(), n * 4); !ok) return ok;
    if (auto ok = grid->find(device_keys(n), device_values(n)); !ok) return tl::unexpected(ok.error());
    std::vector<uint32_t> held(n);
    if (auto ok = executor->download(held.data(), value_memory.data, n * 4); !ok) return ok;
    const hashgrid::GridView view = world.grid().view();
    for (size_t i = 0; i < n; ++i) {
      const uint32_t wanted = hashgrid::find(view, changes.keys[i]).value;
      if (wanted == held[i]) continue;
      if (wanted == kQryReservedValue) {
        gone.push_back(changes.keys[i]);
      } else {
        keys.push_back(changes.keys[i]);
        values.push_back(wanted);
      }
    }
    if (keys.empty() && gone.empty()) return {};
    if (auto ok = scatter->wait_for_frames(frames_value); !ok) return ok;
  }
  if (auto ok = reserve_keys(std::max(keys.size(), gone.size())); !ok) return ok;
  if (!gone.empty()) {
    if (auto ok = executor->upload(key_memory.data, gone.data(), gone.size() * 4); !ok) return ok;
    if (auto ok = grid->erase(device_keys(gone.size())); !ok) return tl::unexpected(ok.error());
  }
  if (!keys.empty()) {
    if (auto ok = executor->upload(key_memory.data, keys.data(), keys.size() * 4); !ok) return ok;
    if (auto ok = executor->upload(value_memory.data, values.data(), values.size() * 4); !ok) return ok;
    if (auto ok = grid->assign(device_keys(keys.size()), device_values(keys.size())); !ok) return tl::unexpected(ok.error());
  }
  return {};
}

Result<void> CudaMirror::State::copy_pieces(const std::vector<WorldPiece>& pieces, uint64_t frames_value) {
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
    if (auto ok = scatter->run(bytes, parts.size(), frames_value, ready->last() + 1); !ok) return ok;
    ready->next();
    parts.clear();
    bytes = 0;
    return {};
  };
  for (const WorldPiece& piece : pieces) {
    const uint64_t to = address_of(piece);
    for (uint64_t done = 0; done < piece.size_bytes; done += kPieceBytes) {
      const uint64_t size = std::min(kPieceBytes, piece.size_bytes - done);
      if (bytes + size > kBatchBytes)
        if (auto ok = flush(); !ok) return ok;
      parts.push_back({to + done, static_cast<const char*>(piece.from) + done, uint32_t(size)});
      bytes += size;
    }
  }
  return flush();
}

Result<Device::TimelinePoint> CudaMirror::update(const World& world, WorldChanges changes) {
  State& s = *state_;
  if (!changes.everything && !changes.whole_pyramid && changes.keys.empty() && changes.regions.empty()) return s.ready->point();
  // A signal on the queue comes after everything submitted to it before, so this value stands for all frames under way.
  const uint64_t frames_value = s.frames->last() + 1;
  if (auto ok = s.device->submit(VK_NULL_HANDLE, {}, {{s.frames->handle(), frames_value}}); !ok) return tl::unexpected(ok.error());
  s.frames->next();
  if (changes.everything && (s.packed || world.packed())) {  // not a world that grew out of the one there is: no more than it needs
    s.masks.emplace(*s.memory, sizeof(BrickMask), kBricksPerSlab, "masks (CUDA)");
    s.materials.emplace(*s.memory, sizeof(BrickMaterials), kBricksPerSlab, "materials (CUDA)");
    s.packed = world.packed();
    if (s.packed) {
      if (auto ok = s.masks->fit(world.pool().mask_slabs().capacity()); !ok) return tl::unexpected(ok.error());
      if (auto ok = s.materials->fit(world.pool().material_slabs().capacity()); !ok) return tl::unexpected(ok.error());
    }
  }
  if (auto ok = s.masks->ensure(world.pool().mask_slabs().capacity()); !ok) return tl::unexpected(ok.error());
  if (auto ok = s.materials->ensure(world.pool().material_slabs().capacity()); !ok) return tl::unexpected(ok.error());
  if (changes.whole_pyramid || s.pyramid.size_bytes != world.pyramid().size_bytes()) {
    // A new block, filled before any frame is given its address; frames under way keep reading the one they were recorded with.
    auto fresh = s.memory->allocate(world.pyramid().size_bytes(), "pyramid (CUDA)");
    if (!fresh) return tl::unexpected(fresh.error());
    if (s.pyramid.data) s.memory->release(s.pyramid);
    s.pyramid = *fresh;
    changes.whole_pyramid = true;
  }
  if (auto ok = s.update_grid(world, changes, frames_value); !ok) return tl::unexpected(ok.error());
  if (auto ok = s.copy_pieces(collect_pieces(world, changes, false), frames_value); !ok) return tl::unexpected(ok.error());
  return s.ready->point();
}

const hashgrid::Grid& CudaMirror::grid() const { return *state_->grid; }
const SlabArray& CudaMirror::masks() const { return *state_->masks; }
const SlabArray& CudaMirror::materials() const { return *state_->materials; }
const MemoryBlock& CudaMirror::pyramid() const { return state_->pyramid; }

}  // namespace quarry::engine
