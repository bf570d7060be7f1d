// SPDX-License-Identifier: Apache-2.0
// homes.cpp - lists the devices, and reads a store's voxels back brick by brick.
#include "tests/voxel/device/homes.hpp"

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "tests/app/sanitized.hpp"
#include "tests/voxel/taken.hpp"
#include "tests/voxel/worlds/edit_of.hpp"
#include "voxel/worlds/edit_shape.hpp"

namespace quarry::test {
namespace {

// One brick's part of a list.
struct Part {
  BrickMask voxels{};
  BrickMaterials materials{};
  void put(Int3 voxel, uint8_t material) {
    voxels[octant_of(voxel)] |= uint64_t(1) << bit_of(voxel);
    materials[voxel_index(voxel)] = material;
  }
};
using Parts = std::map<uint32_t, Part>;

uint64_t write(device::Store& store, const Parts& parts) {
  std::vector<uint32_t> keys;
  std::vector<BrickMask> voxels;
  std::vector<BrickMaterials> materials;
  for (const auto& [key, part] : parts) {
    keys.push_back(key);
    voxels.push_back(part.voxels);
    materials.push_back(part.materials);
  }
  return taken(store.write(keys, voxels, materials)).voxels;
}

// Any executor, with the faults of an emulated one. What a step lacks is written into the device's counters behind it.
class FaultyExecutor final : public device::Executor {
 public:
  FaultyExecutor(std::unique_ptr<device::Executor> its, device::Emulation faults)
      : its_(std::move(its)), faults_(std::move(faults)) {}

  Result<device::Range> reserve(size_t most_bytes, const char* label, bool for_shaders) override {
    return call(device::DeviceCall::allocation, [&] { return its_->reserve(most_bytes, label, for_shaders); });
  }
  Result<void> grow(device::Range& range, size_t size_bytes) override {
    if (size_bytes <= range.size_bytes) return {};
    if (faults_.memory_limit && its_->size_bytes() + size_bytes - range.size_bytes > faults_.memory_limit)
      return fail(ErrorCode::out_of_memory, "the test allows no more memory");
    return call(device::DeviceCall::allocation, [&] { return its_->grow(range, size_bytes); });
  }
  void release(device::Range& range) noexcept override { its_->release(range); }
  void shrink(device::Range& range, size_t size_bytes) noexcept override { its_->shrink(range, size_bytes); }
  size_t rounded(size_t size_bytes) const override { return its_->rounded(size_bytes); }
  bool shares() const override { return its_->shares(); }
  int device() const override { return its_->device(); }
  device::Outcome* outcomes() override { return its_->outcomes(); }
  Result<void> run(device::StepId step, const device::Memory& memory, const device::EditCall& edit,
                   uint64_t most_items) override {
    return call(device::DeviceCall::launch, [&]() -> Result<void> {
      QRY_TRY(its_->run(step, memory, edit, most_items));
      const uint32_t missing = faults_.refuse ? faults_.refuse(step) : 0;
      if (missing == 0) return {};
      uint32_t word = 0;
      QRY_TRY(its_->copy_out(&word, &memory.control->missing, sizeof word));
      word |= missing;
      return its_->copy_in(&memory.control->missing, &word, sizeof word);
    });
  }
  Result<uint32_t> sort(const Pairs& pairs, uint32_t count, uint32_t bits) override {
    return call(device::DeviceCall::launch, [&] { return its_->sort(pairs, count, bits); });
  }
  Result<void> trace(const RayWorld& world, const hashgrid::GridView& grid, size_t count, const FillRays& fill,
                     const TakeHits& take) override {
    return call(device::DeviceCall::launch, [&] { return its_->trace(world, grid, count, fill, take); });
  }
  Result<void> trace_there(const RayWorld& world, const hashgrid::GridView& grid, const Ray* rays, size_t count,
                           RayHit* hits) override {
    return call(device::DeviceCall::launch, [&] { return its_->trace_there(world, grid, rays, count, hits); });
  }
  Result<void> wait_for(void* stream) override {
    return call(device::DeviceCall::wait, [&] { return its_->wait_for(stream); });
  }
  Result<void> signal(void* stream) override {
    return call(device::DeviceCall::wait, [&] { return its_->signal(stream); });
  }
  Result<void> copy_in(void* to, const void* from_host, size_t size_bytes) override {
    return call(device::DeviceCall::copy, [&] { return its_->copy_in(to, from_host, size_bytes); });
  }
  Result<void> copy_in_made(uint64_t* to, size_t count, const MakeWords& make) override {
    return call(device::DeviceCall::copy, [&] { return its_->copy_in_made(to, count, make); });
  }
  Result<void> copy_in_kept(void* to, const void* from_host, size_t size_bytes) override {
    return call(device::DeviceCall::copy, [&] { return its_->copy_in_kept(to, from_host, size_bytes); });
  }
  std::shared_ptr<void> host_memory(size_t size_bytes) override { return its_->host_memory(size_bytes); }
  Result<void> copy_out(void* to_host, const void* from, size_t size_bytes) override {
    return call(device::DeviceCall::copy, [&] { return its_->copy_out(to_host, from, size_bytes); });
  }
  Result<void> copy_within(void* to, const void* from, size_t size_bytes) override {
    return call(device::DeviceCall::copy, [&] { return its_->copy_within(to, from, size_bytes); });
  }
  Result<void> wait() override {
    return call(device::DeviceCall::wait, [&] { return its_->wait(); });
  }
  uint64_t size_bytes() const override { return its_->size_bytes(); }
  void time_steps(bool on) override { its_->time_steps(on); }
  device::StepTimes take_times() override { return its_->take_times(); }

 private:
  template <class Body>
  auto call(device::DeviceCall what, const Body& body) -> decltype(body()) {
    if (lost_) return fail(ErrorCode::device_lost, "the test has lost the device");
    switch (faults_.before ? faults_.before(what) : device::Fault::none) {
      case device::Fault::none: break;
      case device::Fault::no_memory:
        if (what == device::DeviceCall::allocation) return fail(ErrorCode::out_of_memory, "the test refuses memory");
        break;
      case device::Fault::lost: lost_ = true; return fail(ErrorCode::device_lost, "the test loses the device");
    }
    auto done = body();
    traffic_ = its_->traffic();
    return done;
  }

  std::unique_ptr<device::Executor> its_;
  device::Emulation faults_;
  bool lost_ = false;
};

}  // namespace

std::vector<DeviceHome> device_homes() {
  using device::Emulation;
  std::vector<DeviceHome> homes;
  const auto emulated = [&](const char* name, uint64_t seed) {
    homes.push_back({name,
                     [seed] {
                       return device::make_emulated_executor({seed, 0, {}});
                     },
                     [seed](Emulation faults) {
                       faults.seed = seed;
                       return device::make_emulated_executor(std::move(faults));
                     }});
  };
  // $QUARRY_TEST_EXECUTOR=cuda leaves the host ones out, for runs under compute-sanitizer.
  const char* const only = std::getenv("QUARRY_TEST_EXECUTOR");
  if (!only || std::string(only) != "cuda") {
    // Each build takes one order: AddressSanitizer's the one that engine/api has everywhere, all others one that finds
    // what depends on it. QUARRY_LONG=1: both.
    constexpr bool kInOrder = kSanitized && !kThreadSanitized;
    const bool both = std::getenv("QUARRY_LONG") != nullptr;
    if (kInOrder || both) emulated("host threads", 0);
    if (!kInOrder || both) emulated("host threads in another order", 20261125);
  }
  if (device::make_cuda_executor(0)) {
    homes.push_back({"CUDA", [] { return device::make_cuda_executor(0); },
                     [](Emulation faults) -> Result<std::unique_ptr<device::Executor>> {
                       QRY_TRY_ASSIGN(auto executor, device::make_cuda_executor(0));
                       return std::make_unique<FaultyExecutor>(std::move(executor), std::move(faults));
                     }});
  } else {
    std::printf("skipped on CUDA: this machine has no CUDA device\n");
  }
  return homes;
}

std::vector<DeviceHome> faulty_homes() {
  std::vector<DeviceHome> homes = device_homes();
  if (homes.size() > 1 && homes[1].name.starts_with("host")) homes.erase(homes.begin());
  return homes;
}

uint64_t DeviceTested::edit(const DenseEdit& dense, bool continues) {
  if (continues) REQUIRE(store_->begin_step(true));
  const uint64_t voxels = edit_alone(edit_of(dense));
  REQUIRE(store_->end_step());
  return voxels;
}

uint64_t DeviceTested::edit_alone(const Edit& edit) {
  const auto shape = taken(EditShape::create(edit));
  if (const SolidShape* const solid = shape.solid())
    return taken(store_->wait(taken(store_->edit(*solid, edit)))).voxels;
  // A line without a radius is a list of voxels, with the mode.
  std::vector<uint32_t> keys;
  std::vector<BrickMask> voxels;
  for (const auto& row : taken(shape.rows(size_t(1) << 20)))
    for (uint32_t i = 0; i < row.count; ++i) {
      keys.push_back(brick_key(row.at(i)));
      voxels.push_back(shape.mask(row.at(i)));
    }
  return taken(store_->write(keys, voxels, {}, edit)).voxels;
}

uint64_t DeviceTested::set_voxels(const std::vector<int32_t>& xyz, const std::vector<uint8_t>& materials) {
  return taken(store_->write_voxels({xyz.data(), materials.data(), materials.size()})).voxels;
}

uint64_t DeviceTested::write_region(Cell min, Cell max, const std::vector<uint8_t>& materials) {
  const Box3 box{{min[0], min[1], min[2]}, {max[0], max[1], max[2]}};
  return taken(store_->write_box(box, materials.data(), device::Side::host)).voxels;
}

uint64_t DeviceTested::write_bricks(const std::vector<Cell>& bricks, const std::vector<uint8_t>& materials) {
  Parts parts;
  for (size_t i = 0; i < bricks.size(); ++i)
    for (int32_t n = 0; n < 512; ++n)
      parts[brick_key({bricks[i][0], bricks[i][1], bricks[i][2]})].put(
          {bricks[i][0] * 8 + n % 8, bricks[i][1] * 8 + n / 8 % 8, bricks[i][2] * 8 + n / 64},
          materials[i * 512 + size_t(n)]);
  return write(*store_, parts);
}

bool DeviceTested::refused_calls() {
  Edit edit;
  edit.b = {0, -4097, 0};
  REQUIRE(store_->edit(*taken(EditShape::create(edit)).solid(), edit).error().code == ErrorCode::out_of_bounds);
  edit.a = edit.b = {8190, 4095, 8190};  // in the corner brick, whose key is reserved
  REQUIRE(store_->edit(*taken(EditShape::create(edit)).solid(), edit).error().code == ErrorCode::out_of_bounds);
  REQUIRE(store_->wait(uint64_t(1) << 60).error().code == ErrorCode::invalid_argument);
  return false;
}

std::optional<uint64_t> DeviceTested::undo() {
  const uint64_t voxels = taken(store_->wait(taken(store_->undo()))).voxels;
  return voxels ? std::optional(voxels) : std::nullopt;
}
std::optional<uint64_t> DeviceTested::redo() {
  const uint64_t voxels = taken(store_->wait(taken(store_->redo()))).voxels;
  return voxels ? std::optional(voxels) : std::nullopt;
}

bool DeviceTested::trim() {
  const auto trimmed = store_->trim();
  INFO((trimmed ? std::string() : trimmed.error().message));
  REQUIRE(trimmed);
  return !store_->packed();
}

bool DeviceTested::pack() {
  const bool packs = !store_->packed();
  REQUIRE(store_->pack());
  return packs;
}
bool DeviceTested::unpack() {
  const bool unpacks = store_->packed();
  REQUIRE(store_->unpack());
  return unpacks;
}

void DeviceTested::recolour(uint8_t material, uint8_t red) {
  if (std::exchange(reds_[material], red) != red) ++recolours_;
}

StoreFacts DeviceTested::facts() {
  const device::Store::State state = taken(store_->state());
  StoreFacts facts;
  facts.version = state.version + recolours_;
  facts.voxels = state.voxels;
  facts.bricks = state.keys;
  facts.steps = state.steps;
  facts.position = state.position;
  facts.packed = store_->packed();
  facts.min = {state.bounds.min.x, state.bounds.min.y, state.bounds.min.z};
  facts.max = {state.bounds.max.x, state.bounds.max.y, state.bounds.max.z};
  return facts;
}

void DeviceTested::read(Cell min, Cell max, std::vector<uint8_t>& materials) {
  const Cell size = {max[0] - min[0] + 1, max[1] - min[1] + 1, max[2] - min[2] + 1};
  materials.assign(size_t(size[0]) * size_t(size[1]) * size_t(size[2]), 0);
  for (const device::Store::Entry& entry : taken(store_->entries())) {
    const Brick brick = taken(store_->brick(entry.index));
    bool agree = true;
    for (uint32_t n = 0; n < kVoxelsPerBrick; ++n)
      agree = agree && ((brick.mask[n >> 6] >> (n & 63u) & 1u) != 0) == (brick.materials[n] != 0);
    REQUIRE(agree);
    // A full brick is no memory.
    REQUIRE((full_material(brick) != 0) == device::is_full_index(entry.index));
    const Int3 at = brick_from_key(entry.key);
    for (uint32_t n = 0; n < kVoxelsPerBrick; ++n) {
      const Int3 voxel = Int3{at.x * 8, at.y * 8, at.z * 8} + voxel_from_index(n);
      if (voxel.x < min[0] || voxel.x > max[0] || voxel.y < min[1] || voxel.y > max[1] || voxel.z < min[2] ||
          voxel.z > max[2])
        continue;
      materials[size_t(voxel.x - min[0]) +
                size_t(size[0]) * (size_t(voxel.y - min[1]) + size_t(size[1]) * size_t(voxel.z - min[2]))] =
          brick.materials[n];
    }
  }
  std::vector<uint8_t> by_box(materials.size(), 77);
  REQUIRE(store_->read_box({{min[0], min[1], min[2]}, {max[0], max[1], max[2]}}, by_box.data(), device::Side::host));
  REQUIRE((by_box == materials));
}

std::optional<std::vector<Cell>> DeviceTested::bricks() {
  const auto entries = taken(store_->entries()), reached = taken(store_->pyramid_entries());
  REQUIRE(entries.size() == reached.size());
  std::vector<Cell> bricks;
  for (size_t i = 0; i < entries.size(); ++i) {
    REQUIRE(entries[i].key == reached[i].key);
    REQUIRE(entries[i].index == reached[i].index);
    const Int3 at = brick_from_key(entries[i].key);
    bricks.push_back({at.x, at.y, at.z});
  }
  return bricks;
}

}  // namespace quarry::test
