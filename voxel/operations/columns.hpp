// SPDX-License-Identifier: Apache-2.0
// columns.hpp - a volume's bricks in arrays, with the columns along z that they stand in, for operations that look at
// the bricks around each brick: one search a column instead of one a brick. Internal to voxel/operations.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/parallel.hpp"
#include "voxel/bricks/map.hpp"

namespace quarry::operations_detail {

class Columns {
 public:
  struct Column {
    int32_t x = 0, y = 0;
    size_t begin = 0, end = 0;  // its bricks, rising in z
  };
  // The columns at (x - 1 .. x + 1, y - 1 .. y + 1): number (dx + 1) * 3 + dy + 1. An absent one is empty.
  using Around = std::array<Column, 9>;

  Columns() = default;
  // In rising order, as BrickMap has them.
  Columns(std::vector<Int3> at, std::vector<SharedBrick> bricks) : at_(std::move(at)), bricks_(std::move(bricks)) {
    for (size_t i = 0; i < at_.size(); ++i) {
      if (columns_.empty() || columns_.back().x != at_[i].x || columns_.back().y != at_[i].y)
        columns_.push_back({at_[i].x, at_[i].y, i, i});
      columns_.back().end = i + 1;
    }
  }
  explicit Columns(const BrickMap& map) {
    std::vector<Int3> at(map.bricks().size());
    std::vector<SharedBrick> handles(at.size());
    map.visit_pieces([&](size_t first, std::span<const Int3> places, std::span<const SharedBrick> bricks) {
      std::copy(places.begin(), places.end(), at.begin() + std::ptrdiff_t(first));
      std::copy(bricks.begin(), bricks.end(), handles.begin() + std::ptrdiff_t(first));
    });
    *this = Columns(std::move(at), std::move(handles));
  }

  size_t size() const { return at_.size(); }
  Int3 at(size_t brick) const { return at_[brick]; }
  const SharedBrick& brick(size_t brick) const { return bricks_[brick]; }
  const std::vector<Column>& columns() const { return columns_; }

  Around around(int32_t x, int32_t y) const {
    Around out{};
    for (int32_t dx = -1; dx <= 1; ++dx) {
      auto it = std::lower_bound(columns_.begin(), columns_.end(), std::pair(x + dx, y - 1),
                                 [](const Column& c, const auto& to) { return std::pair(c.x, c.y) < to; });
      for (; it != columns_.end() && it->x == x + dx && it->y <= y + 1; ++it)
        out[size_t(dx + 1) * 3 + size_t(it->y - y + 1)] = *it;
    }
    return out;
  }
  // Moves the begin of each column to its first brick at z or above.
  void skip_to(Around& around, int32_t z) const {
    for (Column& c : around)
      while (c.begin != c.end && at_[c.begin].z < z) ++c.begin;
  }

  // A map of the same bricks, without those that are none. On all threads.
  BrickMap map() const {
    constexpr size_t kGrain = size_t(1) << 14;
    std::vector<BrickMap> parts((at_.size() + kGrain - 1) / kGrain);
    parallel_for(at_.size(), kGrain, [&](size_t begin, size_t end) {
      std::vector<BrickPut> puts;
      puts.reserve(end - begin);
      for (size_t i = begin; i < end; ++i)
        if (bricks_[i]) puts.push_back({at_[i], bricks_[i]});
      parts[begin / kGrain].put(puts);
    });
    BrickMap out;
    for (BrickMap& part : parts) out.append(std::move(part));
    return out;
  }

 private:
  std::vector<Int3> at_;
  std::vector<SharedBrick> bricks_;
  std::vector<Column> columns_;
};

}  // namespace quarry::operations_detail
