// SPDX-License-Identifier: Apache-2.0
// surface_rectangles.cpp - faces by bit operations on masks, and greedy merging of rows into rectangles.
#include "voxel/operations/surface_rectangles.hpp"

#include <algorithm>
#include <bit>

namespace quarry::surface_detail {
namespace {

uint64_t face_key(int32_t u, int32_t v, uint8_t material) {
  return uint64_t(v + kBias) << 32 | uint64_t(u + kBias) << 8 | material;
}

// The voxels of one kind in a brick, and in the bricks before and after it along an axis.
struct MaskTriple {
  const BrickMask *here, *before, *behind;
};

// Bits of octant word `o`: whether the voxel's neighbour along the axis, ahead or back, is in the mask.
uint64_t neighbours(const MaskTriple& m, uint32_t axis, uint32_t o, bool ahead) {
  // In a 4^3 word, the bits whose coordinate along x, y or z is below 3.
  constexpr uint64_t kBelow3[3] = {0x7777777777777777u, 0x0fff0fff0fff0fffu, 0x0000ffffffffffffu};
  const uint32_t step = 1u << (2 * axis), octant_bit = 1u << axis;
  const uint64_t word = (*m.here)[o];
  if (ahead) {
    const uint64_t next = (o & octant_bit) ? (*m.behind)[o ^ octant_bit] : (*m.here)[o ^ octant_bit];
    return ((word >> step) & kBelow3[axis]) | ((next << (3 * step)) & ~kBelow3[axis]);
  }
  const uint64_t last = (o & octant_bit) ? (*m.here)[o ^ octant_bit] : (*m.before)[o ^ octant_bit];
  const uint64_t above0 = kBelow3[axis] << step;
  return ((word << step) & above0) | ((last >> (3 * step)) & ~above0);
}

void add_faces(uint32_t axis, Int3 at, const BrickView& brick, const MaskTriple& masks, Slices& slices) {
  const uint32_t u_axis = (axis + 1) % 3, v_axis = (axis + 2) % 3;
  const Coords base{at.x * 8, at.y * 8, at.z * 8};
  for (uint32_t w = 0; w < 8; ++w) {
    if ((*masks.here)[w] == 0) continue;
    for (const bool up : {false, true})
      for (uint64_t left = (*masks.here)[w] & ~neighbours(masks, axis, w, up); left; left &= left - 1) {
        const uint32_t index = w * 64 + uint32_t(std::countr_zero(left));
        const Coords local = coords_of(voxel_from_index(index));
        slices[2 * size_t(local[axis]) + up].push_back(
            face_key(base[u_axis] + local[u_axis], base[v_axis] + local[v_axis], brick.materials[index]));
      }
  }
}

BrickMask others(const std::optional<BrickView>& brick, const BrickMask& clear) {
  BrickMask out{};
  for (uint32_t w = 0; brick && w < 8; ++w) out[w] = brick->mask[w] & ~clear[w];
  return out;
}

}  // namespace

FaceFinder::FaceFinder(const Palette& palette) {
  for (size_t m = 1; m < 256; ++m) {
    clear_[m] = palette.materials[m].transparency > 0;
    any_clear_ |= clear_[m];
  }
}

void FaceFinder::find(uint32_t axis, Int3 at, const BrickView& brick, const std::optional<BrickView>& before,
                      const std::optional<BrickView>& next, Slices& slices) const {
  static constexpr BrickMask kNone{};
  if (!any_clear_) {
    add_faces(axis, at, brick, {&brick.mask, before ? &before->mask : &kNone, next ? &next->mask : &kNone}, slices);
    return;
  }
  const BrickMask clear_here = clear_voxels(brick), clear_before = clear_voxels(before),
                  clear_next = clear_voxels(next);
  add_faces(axis, at, brick, {&clear_here, &clear_before, &clear_next}, slices);
  const BrickMask here = others(brick, clear_here), back = others(before, clear_before),
                  front = others(next, clear_next);
  add_faces(axis, at, brick, {&here, &back, &front}, slices);
}

BrickMask FaceFinder::clear_voxels(const std::optional<BrickView>& brick) const {
  BrickMask out{};
  if (!brick) return out;
  for (uint32_t w = 0; w < 8; ++w)
    for (uint64_t left = brick->mask[w]; left; left &= left - 1) {
      const auto bit = uint32_t(std::countr_zero(left));
      if (clear_[brick->materials[w * 64 + bit]]) out[w] |= uint64_t(1) << bit;
    }
  return out;
}

void RowMerger::close_row(int32_t v, std::vector<Rectangle>& out) {
  // Both lists rise; rectangles that the row does not continue are finished.
  size_t o = 0;
  for (Rectangle& run : row_) {
    while (o < open_.size() && open_[o].u0 < run.u0) out.push_back(open_[o++]);
    if (o < open_.size() && open_[o].u0 == run.u0) {
      if (open_[o].u1 == run.u1 && open_[o].material == run.material && open_[o].v1 == v) run.v0 = open_[o].v0;
      else out.push_back(open_[o]);
      ++o;
    }
  }
  out.insert(out.end(), open_.begin() + int64_t(o), open_.end());
  open_.swap(row_);
  row_.clear();
}

void RowMerger::add(FaceKeys& faces, uint32_t axis, bool up, int32_t w, std::vector<Rectangle>& out) {
  std::sort(faces.begin(), faces.end());
  int32_t row_v = 0;
  for (const uint64_t key : faces) {
    const int32_t v = int32_t(key >> 32) - kBias, u = int32_t(key >> 8 & 0xffffffu) - kBias;
    const uint8_t material = uint8_t(key);
    if (!row_.empty() && row_v != v) close_row(row_v, out);
    row_v = v;
    if (!row_.empty() && row_.back().u1 == u && row_.back().material == material) ++row_.back().u1;
    else row_.push_back({w, u, v, u + 1, v + 1, uint8_t(axis), up, material, 0});
  }
  if (!row_.empty()) close_row(row_v, out);
}

void RowMerger::finish(std::vector<Rectangle>& out) {
  out.insert(out.end(), open_.begin(), open_.end());
  open_.clear();
}

void merge_slices(Slices& slices, uint32_t axis, int32_t along, std::vector<Rectangle>& out) {
  RowMerger merger;
  for (int32_t s = 0; s < 16; ++s) {
    merger.add(slices[size_t(s)], axis, s & 1, plane_of_slice(along, s), out);
    merger.finish(out);
  }
}

void add_layers(std::vector<BrickMap::Entry> bricks, uint32_t axis, std::vector<BrickLayer>& layers) {
  if (axis > 0)
    std::stable_sort(bricks.begin(), bricks.end(),
                     [&](const auto& a, const auto& b) { return coords_of(a.first)[axis] < coords_of(b.first)[axis]; });
  for (const auto& brick : bricks) {
    const int32_t along = coords_of(brick.first)[axis];
    if (layers.empty() || layers.back().axis != axis || layers.back().along != along)
      layers.push_back({axis, along, {}});
    layers.back().bricks.push_back(brick);
  }
}

}  // namespace quarry::surface_detail
