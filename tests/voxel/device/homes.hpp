// SPDX-License-Identifier: Apache-2.0
// homes.hpp - the devices on which a store is tested: host threads that stand in for one, in several orders and
// with room that is refused, and CUDA's first device where there is one.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/voxel/worlds/random_history.hpp"
#include "voxel/device/store.hpp"

namespace quarry::test {

struct DeviceHome {
  std::string name;
  std::function<Result<std::unique_ptr<device::Executor>>()> make;
  // With room and memory that are refused, and a device that is lost, where `faults` says so, whatever the device is.
  std::function<Result<std::unique_ptr<device::Executor>>(device::Emulation faults)> make_faulty;
};
// CUDA is among them where this machine has it; else that is said.
std::vector<DeviceHome> device_homes();
// Those of them on which faults are tried: host threads in one order only.
std::vector<DeviceHome> faulty_homes();

// A store on a device as check_random_history() tests it.
class DeviceTested final : public TestedStore {
 public:
  explicit DeviceTested(std::unique_ptr<device::Store> store) : store_(std::move(store)) {}
  device::Store& store() { return *store_; }

  bool makes_strokes() const override { return true; }
  uint64_t edit(const DenseEdit& dense, bool continues) override;
  uint64_t set_voxels(const std::vector<int32_t>& xyz, const std::vector<uint8_t>& materials) override;
  uint64_t write_region(Cell min, Cell max, const std::vector<uint8_t>& materials) override;
  uint64_t write_bricks(const std::vector<Cell>& bricks, const std::vector<uint8_t>& materials) override;
  bool refused_calls() override;
  std::optional<uint64_t> undo() override;
  std::optional<uint64_t> redo() override;
  void recolour(uint8_t material, uint8_t red) override;
  bool recolouring_is_a_step() const override { return false; }
  uint8_t red(uint8_t material) override { return reds_[material]; }
  bool pack() override;
  bool unpack() override;
  bool trim() override;
  bool reopen(uint32_t) override { return true; }
  StoreFacts facts() override;
  void read(Cell min, Cell max, std::vector<uint8_t>& materials) override;
  std::optional<std::vector<Cell>> bricks() override;

 private:
  uint64_t edit_alone(const Edit& edit);

  std::unique_ptr<device::Store> store_;
  std::array<uint8_t, 256> reds_{};
  uint64_t recolours_ = 0;
};

}  // namespace quarry::test
