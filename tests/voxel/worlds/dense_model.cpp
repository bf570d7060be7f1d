// SPDX-License-Identifier: Apache-2.0
// dense_model.cpp - brute force: every voxel of a shape's box is asked by itself whether it is inside.
#include "tests/voxel/worlds/dense_model.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

namespace quarry::test {
namespace {

int64_t dot(const std::array<int64_t, 3>& u, const std::array<int64_t, 3>& v) {
  return u[0] * v[0] + u[1] * v[1] + u[2] * v[2];
}

std::array<int64_t, 3> between(Cell from, Cell to) {
  return {int64_t(to[0]) - from[0], int64_t(to[1]) - from[1], int64_t(to[2]) - from[2]};
}

// Distances are compared squared and times 16, because radii are quarters.
bool inside(const DenseEdit& edit, Cell v) {
  if (edit.shape == DenseShape::box) {
    for (size_t i = 0; i < 3; ++i)
      if (v[i] < std::min(edit.a[i], edit.b[i]) || v[i] > std::max(edit.a[i], edit.b[i])) return false;
    return true;
  }
  const int64_t radius2 = int64_t(edit.radius_quarters) * edit.radius_quarters;
  const std::array<int64_t, 3> from_a = between(edit.a, v);
  if (edit.shape == DenseShape::sphere) return 16 * dot(from_a, from_a) <= radius2;
  const std::array<int64_t, 3> along = between(edit.a, edit.b), from_b = between(edit.b, v);
  const int64_t length2 = dot(along, along), foot = dot(from_a, along);
  if (foot <= 0) return 16 * dot(from_a, from_a) <= radius2;
  if (foot >= length2) return 16 * dot(from_b, from_b) <= radius2;
  // Pythagoras, times the squared length.
  return 16 * (dot(from_a, from_a) * length2 - foot * foot) <= radius2 * length2;
}

uint8_t changed_by(const DenseEdit& edit, uint8_t old) {
  switch (edit.mode) {
    case DenseMode::add: return old ? old : edit.material;
    case DenseMode::remove: return 0;
    case DenseMode::paint: return old ? edit.material : old;
    case DenseMode::replace: return old && old == edit.from ? edit.material : old;
    case DenseMode::fill: return edit.material;
  }
  return old;
}

}  // namespace

std::vector<Cell> thin_line(Cell a, Cell b) {
  struct Crossing {
    int64_t number, of;  // at (2 * number + 1) / (2 * of) of the way
    size_t axis;
  };
  std::vector<Crossing> crossings;
  for (size_t axis = 0; axis < 3; ++axis) {
    const int64_t steps = std::abs(int64_t(b[axis]) - a[axis]);
    for (int64_t n = 0; n < steps; ++n) crossings.push_back({n, steps, axis});
  }
  std::sort(crossings.begin(), crossings.end(), [](const Crossing& p, const Crossing& q) {
    const int64_t left = (2 * p.number + 1) * q.of, right = (2 * q.number + 1) * p.of;
    return left != right ? left < right : p.axis < q.axis;
  });
  std::vector<Cell> cells = {a};
  Cell at = a;
  for (const Crossing& crossing : crossings) {
    at[crossing.axis] += b[crossing.axis] > a[crossing.axis] ? 1 : -1;
    cells.push_back(at);
  }
  return cells;
}

DenseModel::DenseModel(Cell min, Cell size)
    : min_(min), size_(size), voxels_(size_t(size[0]) * size_t(size[1]) * size_t(size[2])) {}

bool DenseModel::holds(Cell cell) const {
  for (size_t i = 0; i < 3; ++i)
    if (cell[i] < min_[i] || cell[i] >= min_[i] + size_[i]) return false;
  return true;
}

void DenseModel::put(size_t index, uint8_t value, std::vector<Difference>& differences) {
  if (voxels_[index] != value) differences.push_back({uint32_t(index), voxels_[index], value});
}

DenseModel::Change DenseModel::finish(std::vector<Difference> differences, bool continues) {
  const Change change{differences.size(), !differences.empty()};
  if (!change.any) return change;
  steps_.resize(position_);
  Step part{std::move(differences)};
  if (!continues || position_ == 0) {
    steps_.push_back(std::move(part));
    redo();
    return change;
  }
  put_back(part, true);
  std::vector<Difference>& all = steps_.back().voxels;
  all.insert(all.end(), part.voxels.begin(), part.voxels.end());
  return change;
}

DenseModel::Change DenseModel::apply(const DenseEdit& edit, bool continues) {
  std::vector<Difference> differences;
  if (edit.shape == DenseShape::line && edit.radius_quarters == 0) {
    for (const Cell& cell : thin_line(edit.a, edit.b))
      if (holds(cell)) put(index_of(cell), changed_by(edit, get(cell)), differences);
    return finish(std::move(differences), continues);
  }
  const int32_t reach = edit.shape == DenseShape::box ? 0 : edit.radius_quarters / 4 + 1;
  const Cell other = edit.shape == DenseShape::sphere ? edit.a : edit.b;
  Cell low, high;
  for (size_t i = 0; i < 3; ++i) {
    low[i] = std::max(min_[i], std::min(edit.a[i], other[i]) - reach);
    high[i] = std::min(max()[i], std::max(edit.a[i], other[i]) + reach);
  }
  for (int32_t z = low[2]; z <= high[2]; ++z)
    for (int32_t y = low[1]; y <= high[1]; ++y)
      for (int32_t x = low[0]; x <= high[0]; ++x)
        if (inside(edit, {x, y, z})) put(index_of({x, y, z}), changed_by(edit, get({x, y, z})), differences);
  return finish(std::move(differences), continues);
}

DenseModel::Change DenseModel::set(const std::vector<int32_t>& xyz, const std::vector<uint8_t>& materials) {
  std::map<size_t, uint8_t> last;
  for (size_t i = 0; i < materials.size(); ++i)
    last[index_of({xyz[3 * i], xyz[3 * i + 1], xyz[3 * i + 2]})] = materials[i];
  std::vector<Difference> differences;
  for (const auto& [index, material] : last) put(index, material, differences);
  return finish(std::move(differences));
}

DenseModel::Change DenseModel::set_box(Cell low, Cell high, const std::vector<uint8_t>& materials) {
  std::vector<Difference> differences;
  size_t next = 0;
  for (int32_t z = low[2]; z <= high[2]; ++z)
    for (int32_t y = low[1]; y <= high[1]; ++y)
      for (int32_t x = low[0]; x <= high[0]; ++x) put(index_of({x, y, z}), materials[next++], differences);
  return finish(std::move(differences));
}

DenseModel::Change DenseModel::set_bricks(const std::vector<Cell>& bricks, const std::vector<uint8_t>& materials) {
  std::vector<Difference> differences;
  for (size_t i = 0; i < bricks.size(); ++i)
    for (int32_t n = 0; n < 512; ++n)
      put(index_of({bricks[i][0] * 8 + n % 8, bricks[i][1] * 8 + n / 8 % 8, bricks[i][2] * 8 + n / 64}),
          materials[i * 512 + size_t(n)], differences);
  return finish(std::move(differences));
}

DenseModel::Change DenseModel::recolour(uint8_t material, uint8_t red, bool as_step) {
  if (reds_[material] == red) return {};
  if (as_step) {
    steps_.resize(position_);
    steps_.push_back({{}, material, reds_[material], red});
    redo();
  }
  reds_[material] = red;
  return {0, true};
}

void DenseModel::put_back(const Step& step, bool forth) {
  for (size_t i = 0; i < step.voxels.size(); ++i) {
    const Difference& difference = step.voxels[forth ? i : step.voxels.size() - 1 - i];
    const uint8_t old = voxels_[difference.index], now = forth ? difference.after : difference.before;
    voxels_[difference.index] = now;
    voxel_count_ += uint64_t(now != 0);
    voxel_count_ -= uint64_t(old != 0);
  }
  if (step.material) reds_[step.material] = forth ? step.red_after : step.red_before;
}

DenseModel::Change DenseModel::undo() {
  const Step& step = steps_[--position_];
  put_back(step, false);
  return {step.voxels.size(), true};
}

DenseModel::Change DenseModel::redo() {
  const Step& step = steps_[position_++];
  put_back(step, true);
  return {step.voxels.size(), true};
}

void DenseModel::forget_steps() {
  steps_.clear();
  position_ = 0;
}

// By rows of a brick, of which most are empty: sanitizers make a look at each voxel slow.
DenseModel::Summary DenseModel::summary() const {
  Summary summary;
  Cell low = max(), high = min_;
  for (int32_t z = min_[2]; z <= max()[2]; z += 8)
    for (int32_t y = min_[1]; y <= max()[1]; y += 8)
      for (int32_t x = min_[0]; x <= max()[0]; x += 8) {
        const uint64_t before = summary.voxels;
        for (int32_t row = 0; row < 64; ++row) {
          const int32_t at_y = y + row % 8, at_z = z + row / 8;
          const uint8_t* const voxels = &voxels_[index_of({x, at_y, at_z})];
          uint64_t eight = 0;
          std::memcpy(&eight, voxels, 8);
          if (eight == 0) continue;
          for (int32_t i = 0; i < 8; ++i) {
            if (!voxels[i]) continue;
            ++summary.voxels;
            low[0] = std::min(low[0], x + i), high[0] = std::max(high[0], x + i);
          }
          low[1] = std::min(low[1], at_y), high[1] = std::max(high[1], at_y);
          low[2] = std::min(low[2], at_z), high[2] = std::max(high[2], at_z);
        }
        if (summary.voxels > before) summary.bricks.push_back({x / 8, y / 8, z / 8});
      }
  if (summary.voxels) summary.low = low, summary.high = high;
  return summary;
}

}  // namespace quarry::test
