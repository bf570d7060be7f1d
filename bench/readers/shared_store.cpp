// SPDX-License-Identifier: Apache-2.0
// shared_store.cpp - chooses who the kernels are, and sends bricks.
#include "bench/readers/shared_store.hpp"

#include <utility>

#include "engine/cuda/device.hpp"
#include "voxel/bricks/key.h"
#include "voxel/worlds/palette.hpp"

namespace quarry::bench {

Result<std::unique_ptr<SharedStore>> SharedStore::create(engine::Device& device, Kernels kernels) {
  std::unique_ptr<SharedStore> self(new SharedStore);
  if (kernels == Kernels::automatic) {
    QRY_TRY_ASSIGN(const auto choice, engine::choose_sharing(device));
    kernels = choice.mode == engine::SharingMode::zero_copy ? Kernels::cuda : Kernels::host_threads;
  }
  const bool cuda = kernels == Kernels::cuda;
  QRY_TRY_ASSIGN(self->blocks_, engine::DeviceBlocks::create(device, cuda));
  std::unique_ptr<device::Executor> executor;
  if (cuda) {
    std::string why;
    const int ordinal = engine::cuda_device_with_uuid(device.info().uuid, &why);
    if (ordinal < 0) return fail(ErrorCode::unsupported, why);
    QRY_TRY_ASSIGN(executor, device::make_cuda_executor(ordinal, self->blocks_.get()));
  } else {
    executor = device::make_emulated_executor({}, self->blocks_.get());
  }
  QRY_TRY_ASSIGN(self->store_, device::Store::create(std::move(executor)));
  QRY_TRY_ASSIGN(self->shared_, engine::SharedWorld::create(device));
  return self;
}

SharedStore::~SharedStore() {
  if (!store_) return;
  (void)store_->executor().wait();
  for (device::Range& range : arrays_) store_->executor().release(range);
}

Result<void> SharedStore::put(const World& world) {
  constexpr size_t kAtOnce = size_t(1) << 17;
  std::vector<uint32_t> keys;
  std::vector<BrickMaterials> materials;
  Result<void> ok;
  const auto send = [&] {
    if (ok && !keys.empty()) ok = store_->put({{}, {}, keys, materials});
    keys.clear();
    materials.clear();
  };
  world.for_each_brick([&](Int3 at, const Brick& brick) {
    keys.push_back(brick_key(at));
    materials.push_back(brick.materials);
    if (keys.size() == kAtOnce) send();
  });
  send();
  return ok;
}

Result<SharedStore::Array> SharedStore::array(size_t size_bytes, const char* label) {
  device::Executor& executor = store_->executor();
  QRY_TRY_ASSIGN(device::Range range, executor.reserve(size_bytes, label, true));
  if (auto ok = executor.grow(range, size_bytes); !ok) {
    executor.release(range);
    return tl::unexpected(ok.error());
  }
  arrays_.push_back(std::move(range));
  const device::Range& made = arrays_.back();
  return Array{made.data, made.parts.front().block.address};
}

Result<engine::Device::TimelinePoint> SharedStore::publish() {
  QRY_TRY_ASSIGN(const device::Store::Published* const published, store_->publish(shared_->frames()));
  QRY_TRY(shared_->publish(*published, *blocks_, Palette::standard()));
  // Arrays may be newer than what was published.
  return blocks_->acquire();
}

}  // namespace quarry::bench
