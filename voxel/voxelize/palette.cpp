// SPDX-License-Identifier: Apache-2.0
// palette.cpp - colour quantisation on weighted axes: materials are merged into cells until few enough are left, then
// median cut, then k-means.
#include "voxel/voxelize/palette.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/parallel.hpp"

namespace quarry::voxelize_detail {
namespace {

constexpr size_t kMaterials = 255;
constexpr size_t kMaxEntries = 1u << 14;  // the clustering's largest input; more materials are first merged into cells
constexpr size_t kAxes = 7;
using Point = std::array<int32_t, kAxes>;

// The weight of a step of one byte, in 1/8. The eye sees green best and hardly sees roughness. Emission has the highest
// weight because it distinguishes lamps.
constexpr Point kWeight{8, 10, 6, 4, 3, 4, 12};

uint32_t byte_of(PackedMaterial packed, size_t axis) { return uint32_t(packed >> (8 * axis)) & 255u; }
Point point_of(PackedMaterial packed) {
  Point p;
  for (size_t k = 0; k < kAxes; ++k) p[k] = int32_t(byte_of(packed, k)) * kWeight[k];
  return p;
}

struct Entry {
  Point point;
  uint64_t count;
};

struct Box {
  size_t begin, end;
  size_t axis = 0;
  double spread = 0;  // weighted squared deviation along the axis with the largest one
  double mean = 0;    // along that axis
};

Box measured(const std::vector<Entry>& entries, size_t begin, size_t end) {
  Box box{begin, end};
  for (size_t k = 0; k < kAxes; ++k) {
    double n = 0, sum = 0, squares = 0;
    for (size_t i = begin; i < end; ++i) {
      const double w = double(entries[i].count), x = entries[i].point[k];
      n += w;
      sum += w * x;
      squares += w * x * x;
    }
    const double spread = squares - sum * sum / n;
    if (spread > box.spread + 1e-6 * squares) box = {begin, end, k, spread, sum / n};
  }
  return box;
}

Point mean_of(const std::array<int64_t, kAxes>& sum, int64_t count) {
  Point p;
  for (size_t k = 0; k < kAxes; ++k) p[k] = int32_t((sum[k] + count / 2) / count);
  return p;
}

std::vector<Point> median_cut(std::vector<Entry>& entries) {
  std::vector<Box> boxes{measured(entries, 0, entries.size())};
  while (boxes.size() < kMaterials) {
    const auto widest =
        std::max_element(boxes.begin(), boxes.end(), [](const Box& a, const Box& b) { return a.spread < b.spread; });
    if (widest->spread <= 0) break;
    const Box box = *widest;
    const auto first = entries.begin() + std::ptrdiff_t(box.begin), last = entries.begin() + std::ptrdiff_t(box.end);
    const auto middle =
        std::stable_partition(first, last, [&](const Entry& e) { return e.point[box.axis] <= box.mean; });
    const auto cut = size_t(middle - entries.begin());
    if (cut == box.begin || cut == box.end) {
      widest->spread = 0;
      continue;
    }
    *widest = measured(entries, box.begin, cut);
    boxes.push_back(measured(entries, cut, box.end));
  }
  std::vector<Point> centres;
  for (const Box& box : boxes) {
    std::array<int64_t, kAxes> sum{};
    int64_t count = 0;
    for (size_t i = box.begin; i < box.end; ++i) {
      for (size_t k = 0; k < kAxes; ++k) sum[k] += int64_t(entries[i].count) * entries[i].point[k];
      count += int64_t(entries[i].count);
    }
    centres.push_back(mean_of(sum, count));
  }
  return centres;
}

size_t nearest(const std::vector<Point>& centres, const Point& p) {
  size_t best = 0;
  int32_t least = std::numeric_limits<int32_t>::max();  // a distance is below 7 * 3060^2
  for (size_t i = 0; i < centres.size(); ++i) {
    const int32_t* c = centres[i].data();
    // For most centres the colour alone differs enough.
    int32_t d = 0;
    for (size_t k = 0; k < 3; ++k) d += (c[k] - p[k]) * (c[k] - p[k]);
    if (d >= least) continue;
    for (size_t k = 3; k < kAxes; ++k) d += (c[k] - p[k]) * (c[k] - p[k]);
    if (d < least) least = d, best = i;
  }
  return best;
}

void refine(std::vector<Point>& centres, const std::vector<Entry>& entries, uint32_t threads) {
  std::vector<uint8_t> owner(entries.size());
  parallel_for(
      entries.size(), 1024,
      [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) owner[i] = uint8_t(nearest(centres, entries[i].point));
      },
      threads);
  std::vector<std::array<int64_t, kAxes>> sums(centres.size());
  std::vector<int64_t> counts(centres.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    for (size_t k = 0; k < kAxes; ++k) sums[owner[i]][k] += int64_t(entries[i].count) * entries[i].point[k];
    counts[owner[i]] += int64_t(entries[i].count);
  }
  for (size_t i = 0; i < centres.size(); ++i)
    if (counts[i] > 0) centres[i] = mean_of(sums[i], counts[i]);
}

// Merges materials into cells of 2^drop byte steps until few enough are left. Each entry is the mean of its cell. Its
// key is the masked material.
std::vector<Entry> merged(const std::vector<MaterialCount>& materials, uint64_t& mask, std::vector<uint64_t>& keys) {
  for (int drop = 0;; ++drop) {
    struct Sum {
      std::array<int64_t, kAxes> sum{};
      int64_t count = 0;
    };
    mask = 0x0101010101010101ull * (0xFFu & ~((1u << drop) - 1u));
    std::unordered_map<uint64_t, Sum> cells;
    for (const MaterialCount& l : materials) {
      Sum& cell = cells[l.material & mask];
      if (cells.size() > kMaxEntries && drop < 7) break;
      const Point p = point_of(l.material);
      for (size_t k = 0; k < kAxes; ++k) cell.sum[k] += int64_t(l.count) * p[k];
      cell.count += int64_t(l.count);
    }
    if (cells.size() > kMaxEntries && drop < 7) continue;
    std::vector<std::pair<uint64_t, Sum>> ordered(cells.begin(), cells.end());
    std::sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Entry> entries;
    for (const auto& [key, cell] : ordered) {
      entries.push_back({mean_of(cell.sum, cell.count), uint64_t(cell.count)});
      keys.push_back(key);
    }
    return entries;
  }
}

}  // namespace

Material material_of(PackedMaterial packed) {
  Material m;
  m.r = uint8_t(byte_of(packed, 0));
  m.g = uint8_t(byte_of(packed, 1));
  m.b = uint8_t(byte_of(packed, 2));
  m.a = uint8_t(byte_of(packed, 3));
  m.roughness = float(byte_of(packed, 4)) / 255.0f;
  m.metalness = float(byte_of(packed, 5)) / 255.0f;
  m.emission = emission_of_byte(byte_of(packed, 6));
  return m;
}

Quantised quantise(std::vector<MaterialCount> materials, uint32_t threads) {
  std::sort(materials.begin(), materials.end(),
            [](const MaterialCount& a, const MaterialCount& b) { return a.material < b.material; });
  Quantised out;
  if (materials.size() <= kMaterials) {
    for (size_t i = 0; i < materials.size(); ++i) {
      out.palette.materials[i + 1] = material_of(materials[i].material);
      out.index.emplace(materials[i].material, uint8_t(i + 1));
    }
    return out;
  }
  std::vector<uint64_t> keys;
  const std::vector<Entry> entries = merged(materials, out.mask, keys);
  std::vector<Entry> parts = entries;
  std::vector<Point> centres = median_cut(parts);
  for (int round = 0; round < 2; ++round) refine(centres, entries, threads);
  std::sort(centres.begin(), centres.end());
  centres.erase(std::unique(centres.begin(), centres.end()), centres.end());
  for (size_t i = 0; i < centres.size(); ++i) {
    PackedMaterial packed = 0;
    for (size_t k = 0; k < kAxes; ++k)
      packed |= uint64_t(std::clamp((centres[i][k] + kWeight[k] / 2) / kWeight[k], 0, 255)) << (8 * k);
    out.palette.materials[i + 1] = material_of(packed);
  }
  std::vector<uint8_t> owner(entries.size());
  parallel_for(
      entries.size(), 256,
      [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) owner[i] = uint8_t(1 + nearest(centres, entries[i].point));
      },
      threads);
  for (size_t i = 0; i < entries.size(); ++i) out.index.emplace(keys[i], owner[i]);
  double squares = 0, count = 0;
  for (size_t i = 0; i < materials.size(); ++i) {
    const Material& m = out.palette.materials[out.of(materials[i].material)];
    const double dr = double(m.r) - byte_of(materials[i].material, 0),
                 dg = double(m.g) - byte_of(materials[i].material, 1),
                 db = double(m.b) - byte_of(materials[i].material, 2);
    squares += double(materials[i].count) * (dr * dr + dg * dg + db * db);
    count += 3 * double(materials[i].count);
  }
  out.rms_error = std::sqrt(squares / count);
  return out;
}

}  // namespace quarry::voxelize_detail
