// SPDX-License-Identifier: Apache-2.0
// light_tree.cpp - finds emissive faces that touch air, brick by brick. It keeps the strongest and builds the tree over
// Morton-ordered cells.
#include "engine/sharing/light_tree.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/parallel.hpp"
#include "voxel/worlds/world.hpp"

namespace quarry::engine {

static_assert(sizeof(QryLights) == 1048 && offsetof(QryLights, powers) == 24 && sizeof(QryLightNode) == 32 &&
                  offsetof(QryLightNode, link) == 28 && sizeof(QryLightCell) == 56 &&
                  offsetof(QryLightCell, ends) == 28 && sizeof(QryLightFace) == 8,
              "the light tree's layout in C++ is not GLSL's scalar layout");

namespace {

constexpr size_t kMostChanges = size_t(1) << 20;  // keys noted; with more, examining everything is no slower
constexpr size_t kNodesAt = 1056;                 // after QryLights, aligned for 16-byte reads
constexpr size_t kTaskBricks = 512, kTasksAtOnce = 16;

float to_linear(uint8_t srgb) {
  return srgb <= 10 ? float(srgb) / 255.0f / 12.92f : std::pow((float(srgb) / 255.0f + 0.055f) / 1.055f, 2.4f);
}

std::array<float, 256> powers_of(const Palette& palette) {
  std::array<float, 256> powers{};
  for (size_t i = 1; i < 256; ++i) {
    const Material& m = palette.materials[i];
    const float power = m.emission > 0 ? m.emission * (to_linear(m.r) + to_linear(m.g) + to_linear(m.b)) / 3 : 0.0f;
    powers[i] = std::isfinite(power) ? power : 0.0f;
  }
  return powers;
}

uint64_t spread(uint64_t v) {  // moves bit i to bit 3*i, for 12 bits
  v = (v | v << 16) & 0x0000FF0000FFull;
  v = (v | v << 8) & 0x00F00F00F00Full;
  v = (v | v << 4) & 0x0C30C30C30C3ull;
  return (v | v << 2) & 0x249249249249ull;
}
uint64_t morton_of(Int3 cell) {
  return spread(uint64_t(cell.x)) | spread(uint64_t(cell.y)) << 1 | spread(uint64_t(cell.z)) << 2;
}

float total(const std::array<float, 6>& powers) { return std::accumulate(powers.begin(), powers.end(), 0.0f); }

// The exact extent of the faces of a node or cell.
struct Extent {
  std::array<int32_t, 3> low, high;
  std::array<float, 6> powers{};
};

Extent united(const Extent& a, const Extent& b) {
  Extent out;
  for (size_t i = 0; i < 3; ++i) {
    out.low[i] = std::min(a.low[i], b.low[i]);
    out.high[i] = std::max(a.high[i], b.high[i]);
  }
  for (size_t i = 0; i < 6; ++i) out.powers[i] = a.powers[i] + b.powers[i];
  return out;
}

QryLightNode packed(const Extent& e, uint32_t link) {
  QryLightNode node{};
  const uint32_t bounds[6] = {uint32_t(e.low[0]),  uint32_t(e.low[1]),  uint32_t(e.low[2]),
                              uint32_t(e.high[0]), uint32_t(e.high[1]), uint32_t(e.high[2])};
  node.power = *std::max_element(e.powers.begin(), e.powers.end());
  for (size_t i = 0; i < 3; ++i) {
    node.bounds[i] = bounds[2 * i] | bounds[2 * i + 1] << 16;
    for (size_t j = 0; j < 2; ++j) {
      const float share = std::ceil(e.powers[2 * i + j] / node.power * 65535.0f);
      node.shares[i] |= uint32_t(std::min(share, 65535.0f)) << (16 * j);
    }
  }
  node.link = link;
  return node;
}

uint32_t key_of_cell(Int3 cell) {
  return uint32_t(cell.x >> 1) | uint32_t(cell.y >> 1) << 11 | uint32_t(cell.z >> 1) << 21;
}

}  // namespace

void LightTree::note(const WorldChanges& changes) {
  everything_ = everything_ || changes.everything || changed_.size() + changes.keys.size() > kMostChanges;
  if (everything_) changed_.clear();
  else changed_.insert(changed_.end(), changes.keys.begin(), changes.keys.end());
}

void LightTree::scan_brick(const World& world, Int3 at, Found& out) const {
  const auto index = world.pyramid().find_brick(at);
  if (!index) return;
  const Brick brick = world.pool().get(*index);
  if (std::none_of(brick.materials.begin(), brick.materials.end(), [&](uint8_t m) { return powers_[m] > 0; })) return;

  const BrickMask* beside[6];
  for (int direction = 0; direction < 6; ++direction) {
    Int3 next = at;
    (direction < 2 ? next.x : direction < 4 ? next.y : next.z) += direction & 1 ? 1 : -1;
    const auto neighbour = brick_in_world(next) ? world.pyramid().find_brick(next) : std::nullopt;
    beside[direction] = neighbour ? &world.pool().mask(*neighbour) : nullptr;
  }
  const auto is_set = [&](Int3 v, uint32_t direction) {  // v is at most one step outside the brick, in that direction
    const bool inside = ((v.x | v.y | v.z) & ~7) == 0;
    const BrickMask* mask = inside ? &brick.mask : beside[direction];
    return mask && ((*mask)[octant_of(v)] >> bit_of(v) & 1u) != 0;
  };

  for (uint32_t octant = 0; octant < 8; ++octant) {
    Cell cell;
    cell.first = uint32_t(out.faces.size());
    for (uint32_t direction = 0; direction < 6; ++direction) {
      for (uint64_t left = brick.mask[octant]; left; left &= left - 1) {
        const uint32_t bit = uint32_t(std::countr_zero(left));
        const uint8_t material = brick.materials[octant * 64 + bit];
        if (!(powers_[material] > 0)) continue;
        Int3 beyond = voxel_from_index(octant * 64 + bit);
        (direction < 2 ? beyond.x : direction < 4 ? beyond.y : beyond.z) += direction & 1 ? 1 : -1;
        if (is_set(beyond, direction)) continue;
        cell.powers[direction] += powers_[material];
        out.faces.push_back({bit | uint32_t(material) << 8, cell.powers[direction]});
      }
      cell.ends[direction] = uint16_t(out.faces.size() - cell.first);
    }
    if (out.faces.size() == cell.first) continue;
    cell.at = {(at.x + 1024) * 2 + int32_t(octant & 1), (at.y + 512) * 2 + int32_t(octant >> 1 & 1),
               (at.z + 1024) * 2 + int32_t(octant >> 2)};
    cell.morton = morton_of(cell.at);
    out.cells.push_back(cell);
  }
}

LightTree::Found LightTree::scan(const World& world, const std::vector<uint32_t>& keys) const {
  Found all;
  const size_t tasks = (keys.size() + kTaskBricks - 1) / kTaskBricks;
  std::vector<Found> found(std::min(tasks, kTasksAtOnce));
  for (size_t first = 0; first < tasks; first += kTasksAtOnce) {
    const size_t count = std::min(kTasksAtOnce, tasks - first);
    parallel_for(count, 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        found[i].cells.clear();
        found[i].faces.clear();
        const size_t from = (first + i) * kTaskBricks, to = std::min(from + kTaskBricks, keys.size());
        for (size_t k = from; k < to; ++k) scan_brick(world, brick_from_key(keys[k]), found[i]);
      }
    });
    for (size_t i = 0; i < count; ++i) {
      for (Cell& cell : found[i].cells) {
        cell.first += uint32_t(all.faces.size());
        all.cells.push_back(cell);
      }
      all.faces.insert(all.faces.end(), found[i].faces.begin(), found[i].faces.end());
    }
    // A cell dropped here could not stay at the end: all cells that precede it in the order are kept already.
    if (all.faces.size() > 2 * most_faces_) keep_strongest(all);
  }
  return all;
}

void LightTree::keep_strongest(Found& found) const {
  if (found.faces.size() <= most_faces_) return;
  std::sort(found.cells.begin(), found.cells.end(), [](const Cell& a, const Cell& b) {
    const float x = total(a.powers), y = total(b.powers);
    return x != y ? x > y : a.morton < b.morton;
  });
  Found kept;
  kept.cut = true;
  for (Cell cell : found.cells) {
    if (kept.faces.size() + cell.ends[5] > most_faces_) break;
    const auto from = found.faces.begin() + cell.first;
    cell.first = uint32_t(kept.faces.size());
    kept.faces.insert(kept.faces.end(), from, from + cell.ends[5]);
    kept.cells.push_back(cell);
  }
  found = std::move(kept);
}

void LightTree::update(const World& world, const Palette& palette) {
  const std::array<float, 256> powers = powers_of(palette);
  if (powers != powers_) everything_ = true;
  powers_ = powers;
  const bool emissive = std::any_of(powers.begin(), powers.end(), [](float p) { return p > 0; });
  std::vector<uint32_t> keys = std::move(changed_);
  changed_.clear();
  const bool everything = everything_ || (cut_ && !keys.empty());
  everything_ = false;
  if (!everything && (!emissive || keys.empty())) return;

  Found found;
  if (everything) {
    if (emissive) found = scan(world, world.pyramid().keys());
    if (found.cells.empty() && cells_.empty()) return;
  } else {
    // The hidden faces of a brick's neighbours change with it.
    const size_t changed = keys.size();
    for (size_t i = 0; i < changed; ++i) {
      const Int3 at = brick_from_key(keys[i]);
      for (const Int3 step : {Int3{-1, 0, 0}, {1, 0, 0}, {0, -1, 0}, {0, 1, 0}, {0, 0, -1}, {0, 0, 1}})
        if (brick_in_world(at + step)) keys.push_back(brick_key(at + step));
    }
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    found = scan(world, keys);
    const auto scanned = [&](const Cell& cell) {
      return std::binary_search(keys.begin(), keys.end(), key_of_cell(cell.at));
    };
    if (found.cells.empty() && std::none_of(cells_.begin(), cells_.end(), scanned)) return;
    for (Cell cell : cells_) {
      if (scanned(cell)) continue;
      const auto from = faces_.begin() + cell.first;
      cell.first = uint32_t(found.faces.size());
      found.faces.insert(found.faces.end(), from, from + cell.ends[5]);
      found.cells.push_back(cell);
    }
  }
  keep_strongest(found);
  cut_ = found.cut;
  std::sort(found.cells.begin(), found.cells.end(), [](const Cell& a, const Cell& b) { return a.morton < b.morton; });
  cells_ = std::move(found.cells);
  faces_.clear();
  faces_.reserve(found.faces.size());
  for (Cell& cell : cells_) {
    const auto from = found.faces.begin() + cell.first;
    cell.first = uint32_t(faces_.size());
    faces_.insert(faces_.end(), from, from + cell.ends[5]);
  }
  static std::atomic<uint64_t> versions{0};
  version_ = ++versions;
}

uint64_t LightTree::image_bytes() const {
  if (cells_.empty()) return 0;
  return kNodesAt + (2 * cells_.size() - 1) * sizeof(QryLightNode) + cells_.size() * sizeof(QryLightCell) +
         faces_.size() * sizeof(QryLightFace);
}

std::vector<uint8_t> LightTree::image(uint64_t address) const {
  if (cells_.empty()) return {};
  const size_t node_count = 2 * cells_.size() - 1, cells_at = kNodesAt + node_count * sizeof(QryLightNode),
               faces_at = cells_at + cells_.size() * sizeof(QryLightCell);
  std::vector<uint8_t> image(image_bytes());
  QryLights lights{address + kNodesAt, address + cells_at, address + faces_at, {}};
  std::copy(powers_.begin(), powers_.end(), lights.powers);
  std::memcpy(image.data(), &lights, sizeof lights);
  std::memcpy(image.data() + faces_at, faces_.data(), faces_.size() * sizeof(QryLightFace));

  // Top down: find the cells of each node and the bit that splits its children. Children are stored after their node.
  struct Range {
    size_t begin, end;
    uint32_t link;
  };
  std::vector<Range> ranges{{0, cells_.size(), 0}};
  ranges.reserve(node_count);
  for (size_t i = 0; i < ranges.size(); ++i) {
    const auto [begin, end, link] = ranges[i];
    if (end - begin == 1) {
      ranges[i].link = uint32_t(begin) | kQryLightLeaf << 26;
      continue;
    }
    const uint32_t bit = uint32_t(std::bit_width(cells_[begin].morton ^ cells_[end - 1].morton)) - 1;
    const auto part = std::partition_point(cells_.begin() + ptrdiff_t(begin), cells_.begin() + ptrdiff_t(end),
                                           [bit](const Cell& c) { return (c.morton >> bit & 1u) == 0; });
    const size_t middle = size_t(part - cells_.begin());
    ranges[i].link = uint32_t(ranges.size()) | bit << 26;
    ranges.push_back({begin, middle, 0});
    ranges.push_back({middle, end, 0});
  }
  // Bottom up: compute where the nodes' faces are and how strong they are.
  std::vector<Extent> extents(node_count);
  for (size_t i = node_count; i-- > 0;) {
    const uint32_t index = ranges[i].link & kQryLightIndex;
    if (ranges[i].link >> 26 != kQryLightLeaf) {
      extents[i] = united(extents[index], extents[index + 1]);
    } else {
      const Cell& cell = cells_[index];
      Extent& e = extents[i];
      e.low.fill(std::numeric_limits<int32_t>::max());
      e.high.fill(0);
      e.powers = cell.powers;
      for (uint32_t face = 0, direction = 0; face < cell.ends[5]; ++face) {
        while (face >= cell.ends[direction]) ++direction;
        const uint32_t place = faces_[cell.first + face].place;
        const std::array<int32_t, 3> voxel{cell.at.x * 4 + int32_t(place & 3), cell.at.y * 4 + int32_t(place >> 2 & 3),
                                           cell.at.z * 4 + int32_t(place >> 4 & 3)};
        for (uint32_t axis = 0; axis < 3; ++axis) {
          const bool flat = axis == direction / 2;
          const int32_t low = voxel[axis] + (flat && direction % 2 ? 1 : 0);
          e.low[axis] = std::min(e.low[axis], low);
          e.high[axis] = std::max(e.high[axis], flat ? low : low + 1);
        }
      }
      QryLightCell out{};
      std::copy(cell.powers.begin(), cell.powers.end(), out.powers);
      out.first = cell.first;
      for (size_t d = 0; d < 6; ++d) out.ends[d / 2] |= uint32_t(cell.ends[d]) << (16 * (d % 2));
      out.x = uint32_t(cell.at.x), out.y = uint32_t(cell.at.y), out.z = uint32_t(cell.at.z);
      std::memcpy(image.data() + cells_at + index * sizeof out, &out, sizeof out);
    }
    const QryLightNode node = packed(extents[i], ranges[i].link);
    std::memcpy(image.data() + kNodesAt + i * sizeof node, &node, sizeof node);
  }
  return image;
}

}  // namespace quarry::engine
