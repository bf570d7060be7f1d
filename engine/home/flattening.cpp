// SPDX-License-Identifier: Apache-2.0
// flattening.cpp - sends the bricks of volumes, of a scene or as a file's chunks are decoded.
#include "engine/home/flattening.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "voxel/io/quarry/codec.hpp"
#include "voxel/worlds/flatten.hpp"

namespace quarry::engine {
namespace {

constexpr size_t kStoredAtOnce = size_t(1) << 14, kAtOnce = 8 * kStoredAtOnce;  // bricks: 8 MiB of materials

// Bricks on their way, of any volumes.
struct Batch {
  std::vector<device::PlacedVolumes::Row> rows;
  std::vector<Int3> at;
  std::vector<uint32_t> indices;
  std::vector<BrickMaterials> materials;

  // `full`: 0, or the material that the brick is full of.
  void put(Int3 where, uint8_t full, const BrickMaterials& its) {
    at.push_back(where);
    indices.push_back(full ? device::full_index(full) : device::kFullBricks);
    if (!full) materials.push_back(its);
  }
};

// Any number of threads put bricks, each into an array that it has taken, and send it when it is large.
class VolumeSender {
 public:
  explicit VolumeSender(device::PlacedVolumes& to) : to_(to) {}

  // fill(batch) puts bricks of the volume.
  template <class Fill>
  Result<void> add(uint32_t volume, const Fill& fill) {
    std::unique_ptr<Batch> mine = take();
    const size_t before = mine->at.size();
    QRY_TRY(fill(*mine));
    if (mine->at.size() > before) mine->rows.push_back({volume, uint32_t(mine->at.size() - before)});
    if (mine->materials.size() >= kStoredAtOnce || mine->at.size() >= kAtOnce) QRY_TRY(send(*mine));
    const std::lock_guard lock(list_lock_);
    idle_.push_back(std::move(mine));
    return {};
  }
  // When no thread puts any more.
  Result<void> send_rest() {
    for (const auto& rest : idle_) QRY_TRY(send(*rest));
    return {};
  }

 private:
  std::unique_ptr<Batch> take() {
    const std::lock_guard lock(list_lock_);
    if (idle_.empty()) return std::make_unique<Batch>();
    auto taken = std::move(idle_.back());
    idle_.pop_back();
    return taken;
  }
  Result<void> send(Batch& batch) {
    const std::lock_guard lock(send_lock_);
    QRY_TRY(to_.send({batch.rows, batch.at, batch.indices, batch.materials}));
    batch.rows.clear();
    batch.at.clear();
    batch.indices.clear();
    batch.materials.clear();
    return {};
  }

  device::PlacedVolumes& to_;
  std::mutex list_lock_, send_lock_;
  std::vector<std::unique_ptr<Batch>> idle_;
};

Result<void> send_file(VolumeSender& sender, io::StoreReader& file, const std::vector<bool>& shown,
                       const Progress& progress) {
  const auto visit = [&](uint32_t volume, const io::PackedChunk& chunk) -> Result<void> {
    if (!shown[volume]) return {};
    return sender.add(volume, [&](Batch& batch) {
      return chunk.each([&](Int3 at, const Brick& brick, uint8_t full) { batch.put(at, full, brick.materials); });
    });
  };
  return file.visit_all(visit, progress);
}

Result<void> send_volume(VolumeSender& sender, uint32_t volume, const BrickMap& bricks) {
  std::mutex lock;
  std::optional<Error> first_error;
  bricks.visit_pieces([&](size_t, std::span<const Int3> at, std::span<const SharedBrick> its) {
    const auto added = sender.add(volume, [&](Batch& batch) -> Result<void> {
      for (size_t i = 0; i < at.size(); ++i) batch.put(at[i], its[i].material(), its[i]->materials);
      return {};
    });
    if (added) return;
    const std::lock_guard hold(lock);
    if (!first_error) first_error = added.error();
  });
  if (first_error) return tl::unexpected(*first_error);
  return {};
}

}  // namespace

Result<device::Store::Flattened> flatten_on_device(device::Store& store, const Scene& scene, io::StoreReader* file,
                                                   const Progress& progress) {
  QRY_TRY(check_instances(scene));
  const std::vector<uint32_t> instances = shown_instances(scene, true);
  std::vector<device::Placement> placements;
  std::vector<bool> shown(scene.volumes.size());
  for (const uint32_t number : instances) {
    const Instance& instance = scene.instances[number];
    placements.push_back({instance.volume, instance.rotation, instance.offset});
    shown[instance.volume] = true;
  }
  std::vector<uint64_t> counts(scene.volumes.size());
  for (uint32_t volume = 0; volume < counts.size(); ++volume) {
    if (!shown[volume]) continue;
    if (!file) {
      counts[volume] = scene.volumes[volume].bricks.bricks().size();
      continue;
    }
    QRY_TRY_ASSIGN(const auto chunks, file->chunks(volume));
    for (const io::ChunkBricks& chunk : chunks) counts[volume] += chunk.bricks;
  }
  QRY_TRY_ASSIGN(const auto volumes, device::PlacedVolumes::create(store));
  QRY_TRY(volumes->begin(counts));
  VolumeSender sender(*volumes);
  if (file) QRY_TRY(send_file(sender, *file, shown, progress));
  for (uint32_t volume = 0; !file && volume < counts.size(); ++volume)
    if (shown[volume]) QRY_TRY(send_volume(sender, volume, scene.volumes[volume].bricks));
  QRY_TRY(sender.send_rest());
  progress.say("flattening", -1);
  auto made = store.flatten(*volumes, placements);
  if (!made && made.error().code == ErrorCode::out_of_bounds)
    return tl::unexpected(instance_outside(scene, instances[volumes->outside()]));
  return made;
}

}  // namespace quarry::engine
