// SPDX-License-Identifier: Apache-2.0
// change.hpp - what an edit makes of voxels: eight at a time, by words. One text for host threads and kernels.
#pragma once

#include <cstdint>

#include "hashgrid/table/outcome.hpp"
#include "voxel/shapes/shape.hpp"

namespace quarry {

constexpr uint64_t kEachByte = 0x0101010101010101u;

// Bit i: byte i of the eight is `value`.
QRY_HD constexpr uint64_t equal_bytes(uint64_t eight, uint8_t value) {
  const uint64_t x = eight ^ (kEachByte * value), low7 = kEachByte * 0x7F;
  const uint64_t zero_bytes = ~(((x & low7) + low7) | x) & (kEachByte * 0x80);
  return (zero_bytes >> 7) * 0x0102040810204080u >> 56;
}

// Byte i is 0xFF where bit i of the eight is set.
QRY_HD constexpr uint64_t widened(uint64_t eight_bits) {
  const uint64_t spread = (eight_bits * kEachByte) & 0x8040201008040201u;  // byte i: its bit i, or 0
  return ((((spread + kEachByte * 0x7F) | spread) >> 7) & kEachByte) * 0xFF;
}

// The material that voxels get; 0: they are removed.
QRY_HD constexpr uint8_t material_after(Mode mode, uint8_t material) {
  return mode == Mode::remove ? uint8_t(0) : material;
}

// Of the voxels of an octant that are in the shape: those that the mode may change, by the octant's mask.
QRY_HD constexpr uint64_t reached_by(Mode mode, uint64_t shape, uint64_t mask) {
  return mode == Mode::add ? shape & ~mask : mode == Mode::fill ? shape : shape & mask;
}

// Changes the materials of eight voxels next to each other, those of `reached` (8 bits), and returns which differ.
QRY_HD constexpr uint64_t change_eight(Mode mode, uint8_t material, uint8_t from, uint64_t reached, uint64_t& eight) {
  const uint8_t after = material_after(mode, material);
  if (mode == Mode::replace) reached &= equal_bytes(eight, from);
  reached &= ~equal_bytes(eight, after);
  const uint64_t bytes = widened(reached);
  eight = (eight & ~bytes) | (kEachByte * after & bytes);
  return reached;
}

}  // namespace quarry
