// SPDX-License-Identifier: Apache-2.0
// record_batch.hpp - bricks on their way to a device: whole ones, and what records of a file's history make of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "base/result.hpp"
#include "voxel/device/store.hpp"
#include "voxel/io/quarry/reader.hpp"
#include "voxel/shapes/change.hpp"

namespace quarry::engine {

// The brick that a device has by its materials alone.
inline SharedBrick brick_of_materials(const BrickMaterials& materials, const BrickPool& pool) {
  BrickMask mask{};
  for (uint32_t i = 0; i < kVoxelsPerBrick; i += 8) {
    uint64_t eight;
    std::memcpy(&eight, &materials[i], sizeof eight);
    mask[i >> 6] |= (~equal_bytes(eight, 0) & 255u) << (i & 63u);
  }
  return pool.make(BrickView(mask, materials));
}

// Whole bricks on their way to a device.
class BrickBatch {
 public:
  void put(uint32_t key, const SharedBrick& brick) {
    if (brick && !brick.material()) {
      keys_.push_back(key);
      bricks_.push_back(brick);
    } else {
      full_keys_.push_back(key);
      full_.push_back(brick.material());
    }
  }
  // By what is sent: 33 MB at most.
  bool is_large() const { return keys_.size() >= size_t(1) << 16 || full_.size() >= size_t(1) << 20; }
  bool empty() const { return keys_.empty() && full_.empty(); }
  // Valid until the next call.
  device::Store::Bricks bricks() const { return {full_keys_, full_, keys_, {}, bricks_}; }
  void clear() {
    keys_.clear();
    full_keys_.clear();
    full_.clear();
    bricks_.clear();
  }

 private:
  std::vector<uint32_t> keys_, full_keys_;
  std::vector<uint8_t> full_;
  std::vector<SharedBrick> bricks_;
};

// Numbers of distinct keys, from 0 in the order of their coming.
class KeyNumbers {
 public:
  uint32_t add(uint32_t key) {
    if (keys_.size() * 2 >= slots_.size()) rehash(std::max<size_t>(slots_.size() * 2, 1024));
    uint32_t& slot = slots_[slot_of(key)];
    if (slot == device::kNone) {
      slot = uint32_t(keys_.size());
      keys_.push_back(key);
    }
    return slot;
  }
  // Of one that was added.
  uint32_t at(uint32_t key) const { return slots_[slot_of(key)]; }
  const std::vector<uint32_t>& keys() const { return keys_; }
  void clear() {
    keys_.clear();
    slots_.clear();
  }

 private:
  // Where it is, or would be.
  size_t slot_of(uint32_t key) const {
    size_t slot = key * size_t{0x9E3779B97F4A7C15} >> 20 & (slots_.size() - 1);
    while (slots_[slot] != device::kNone && keys_[slots_[slot]] != key) slot = (slot + 1) & (slots_.size() - 1);
    return slot;
  }
  void rehash(size_t size) {
    slots_.assign(size, device::kNone);
    for (uint32_t number = 0; number < keys_.size(); ++number) slots_[slot_of(keys_[number])] = number;
  }

  std::vector<uint32_t> keys_;
  std::vector<uint32_t> slots_;  // a table of numbers; kNone: free
};

// Of several records the one added last counts.
class RecordBatch {
 public:
  explicit RecordBatch(uint32_t threads) : threads_(threads) {}
  bool empty() const { return values_.empty(); }
  size_t size() const { return values_.size(); }
  bool is_large() const { return kept_bytes_ >= (size_t(64) << 20) || size() >= size_t(1) << 20; }
  // Bricks that are there already may come again.
  void begin_record() {
    if (numbers_.keys().empty())
      for (const uint32_t key : keys_) numbers_.add(key);
    again_ = !keys_.empty();
  }
  // Takes the part's bricks. Errors: out_of_bounds; full (a step of more bricks than a device lists at once).
  Result<void> add(io::HistoryPart& part) {
    const auto outside = [&] {
      return fail(ErrorCode::out_of_bounds,
                  "the history has a step outside of the world, '" + part.label + "': keep it at home on the host");
    };
    for (const io::HistoryBricks::Row& row : part.bricks.full) {
      const Int3 last{row.first.x, row.first.y, int32_t(int64_t(row.first.z) + row.count - 1)};
      if (!brick_in_world(row.first) || !brick_in_world(last)) return outside();
      if (size() + row.count > kMostBricks)
        return fail(ErrorCode::full, "the step '" + part.label + "' has more bricks than a device lists at once");
      for (uint32_t i = 0; i < row.count; ++i)
        put(brick_key({row.first.x, row.first.y, int32_t(row.first.z + int32_t(i))}), {nullptr, row.material});
    }
    for (size_t i = 0; i < part.bricks.at.size(); ++i) {
      if (!brick_in_world(part.bricks.at[i])) return outside();
      put(brick_key(part.bricks.at[i]), {&part.bricks.materials[i], 0});
    }
    kept_bytes_ += part.bricks.materials.size() * sizeof(BrickMaterials);
    if (!part.bricks.materials.empty()) kept_.push_back(std::move(part.bricks.materials));
    return {};
  }
  // Valid until the next call.
  device::Store::Bricks bricks() {
    std::vector<const BrickMaterials*> from;
    for (std::vector<uint32_t>* const list : {&full_keys_, &part_keys_}) list->clear();
    full_.clear();
    for (size_t i = 0; i < values_.size(); ++i) {
      if (values_[i].voxels) {
        part_keys_.push_back(keys_[i]);
        from.push_back(values_[i].voxels);
      } else {
        full_keys_.push_back(keys_[i]);
        full_.push_back(values_[i].full);
      }
    }
    materials_.resize(from.size());
    parallel_for(
        from.size(), 256,
        [&](size_t begin, size_t end) {
          for (size_t i = begin; i < end; ++i) materials_[i] = *from[i];
        },
        threads_);
    return {full_keys_, full_, part_keys_, materials_};
  }
  void clear() {
    keys_.clear();
    values_.clear();
    numbers_.clear();
    kept_.clear();
    kept_bytes_ = 0;
    again_ = false;
  }

 private:
  static constexpr size_t kMostBricks = size_t(1) << 27;
  struct Value {
    const BrickMaterials* voxels;  // null: it is full of
    uint8_t full;                  // 0: none is there
  };
  void put(uint32_t key, Value value) {
    if (again_) {
      const uint32_t number = numbers_.add(key);
      if (number < values_.size()) {
        values_[number] = value;
        return;
      }
    }
    keys_.push_back(key);
    values_.push_back(value);
  }

  uint32_t threads_;
  std::vector<uint32_t> keys_;
  std::vector<Value> values_;
  KeyNumbers numbers_;  // of the keys, from the second record on
  bool again_ = false;
  std::deque<std::vector<BrickMaterials>> kept_;  // where values are
  size_t kept_bytes_ = 0;
  std::vector<uint32_t> full_keys_, part_keys_;
  std::vector<uint8_t> full_;
  std::vector<BrickMaterials> materials_;
};

}  // namespace quarry::engine
