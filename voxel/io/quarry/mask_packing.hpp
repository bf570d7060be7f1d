// SPDX-License-Identifier: Apache-2.0
// mask_packing.hpp - materials of a brick's set voxels, one behind the other in the order of their indices: as the file
// has them. Where the processor shuffles bytes (x86-64 with SSSE3), eight at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "voxel/bricks/brick.hpp"

namespace quarry::io {

// What pack_materials() may write behind its result.
constexpr size_t kPackSpare = 8;

// Returns the end of what it has written at `to`: as many bytes as the mask has bits. Any thread.
uint8_t* pack_materials(const BrickMask& mask, const BrickMaterials& materials, uint8_t* to);

// The materials of all 512 voxels, 0 where none is set, from what is packed in [from, end). Returns the end of what it
// has read; null if that is cut short or has a 0: then `materials` has anything. Reads no byte from `end` on. Any
// thread.
const uint8_t* unpack_materials(const BrickMask& mask, const uint8_t* from, const uint8_t* end,
                                BrickMaterials& materials);

// The ways to do both that this processor has, the fastest first: which is the one that they take. Any thread.
struct MaskPacking {
  uint8_t* (*pack)(const BrickMask&, const BrickMaterials&, uint8_t*);
  const uint8_t* (*unpack)(const BrickMask&, const uint8_t*, const uint8_t*, BrickMaterials&);
};
std::span<const MaskPacking> mask_packings();

}  // namespace quarry::io
