// SPDX-License-Identifier: Apache-2.0
// world.glsl - reads a world: its root, the occupancy pyramid, a brick by its place there or by its key, masks,
// materials, palette. The including shader must enable GL_GOOGLE_include_directive. It need not know the layout in
// memory.
//
// 64-bit occupancy words are read as two halves. A bit's number is x | y<<2 | z<<4 of the low two coordinate bits, so
// bit 1 of z selects the half.
#ifndef QRY_WORLD_GLSL
#define QRY_WORLD_GLSL

#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require

#define QRY_GLSL 1
#include "hashgrid/pairs/layout.h"
#include "shaders/shared/world_root.h"
#include "shaders/library/grid_find.glsl"
#if defined(QRY_PAGED)
#include "shaders/shared/residency.h"
#endif

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer QryRootRef { QryWorldRoot root; };
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer QryAddresses { uint64_t at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer QryWords { uvec2 at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer QryUints { uint at[]; };

struct QryMaterial {  // voxel/worlds/palette.hpp Material, 32 bytes
  uint rgba;          // sRGB bytes
  float roughness;
  float metalness;
  float emission;
  float transparency;
  float ior;
  float reserved[2];
};
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer QryPalette { QryMaterial at[256]; };

const ivec3 kVoxelBias = ivec3(int(kQryVoxelBiasXZ), int(kQryVoxelBiasY), int(kQryVoxelBiasXZ));
const ivec3 kVoxelExtent = 2 * kVoxelBias;

uint qry_key_of(ivec3 biased_voxel) {
  const uvec3 b = uvec3(biased_voxel) >> 3;
  return b.x | (b.y << 11) | (b.z << 21);
}

// Returns the pool index of the brick with this key, or kQryReservedValue if there is none.
uint qry_find_brick(const QryWorldRoot root, uint key, out uint sectors) {
  const uint brick = qry_grid_find(root.grid_words, root.grid_pages, key, sectors);
  // This also refuses the index of a brick newer than this root's slab table, because a host thread may write while
  // this frame is drawn.
  return brick < root.brick_capacity ? brick : kQryReservedValue;
}

// A node of the pyramid (voxel/bricks/occupancy.hpp): its two half masks, and the start of its children's run. It has
// three numbers and no vector. So the H200's compiler reads them through the read-only cache, by a 32-bit offset from
// the root's address, into any registers.
struct QryNode {
  uint low, high, first, spare;
};
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer QryNodes { QryNode at[]; };
uvec3 qry_node(const QryWorldRoot root, uint granule) {
  QryNodes nodes = QryNodes(root.pyramid);
  return uvec3(nodes.at[granule].low, nodes.at[granule].high, nodes.at[granule].first);
}

uvec3 qry_level3(const QryWorldRoot root, uint cell) { return qry_node(root, root.level3 + cell); }

// Counts the bits of the mask below `index`.
uint qry_child_number(uvec2 mask, uint index) {
  const bool high = (index & 32u) != 0u;
  return uint(bitCount((high ? mask.y : mask.x) & ((1u << (index & 31u)) - 1u)) + (high ? bitCount(mask.x) : 0));
}

// Reads a node's child whose bit is set. A host thread may write while this frame is drawn. Then the data may be of
// another version, but it is in the block of memory that this root knows. The same holds for bricks below.
uvec3 qry_child(const QryWorldRoot root, uvec3 node, uint index) {
  return qry_node(root, min(node.z, root.node_capacity) + qry_child_number(node.xy, index));
}

// Returns the pool index of a level-1 node's brick whose bit is set.
uint qry_level1_brick(const QryWorldRoot root, uvec3 level1, uint index) {
  return min(QryUints(root.pyramid).at[min(level1.z, root.node_capacity) * 4u + qry_child_number(level1.xy, index)],
             root.brick_capacity - 1u);
}

uint qry_pyramid_bit(uvec3 at) { return (at.x & 3u) | ((at.y & 3u) << 2) | ((at.z & 3u) << 4); }
bool qry_has_child(uvec3 node, uint index) {
  return (((index & 32u) != 0u ? node.y : node.x) >> (index & 31u) & 1u) != 0u;
}

#if defined(QRY_PAGED)
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer QryResidencyRef {
  QryResidency residency;
};
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer QryMarks { uint at[]; };

QryResidency qry_residency(const QryWorldRoot root) {
  return QryResidencyRef(root.palette + uint64_t(kQryPaletteBytes)).residency;
}
// The pages of a node of level 3 that are not there.
uvec2 qry_absent(const QryWorldRoot root, uint node) { return QryWords(qry_residency(root).absent).at[node]; }

// What is known of a page that is not there, in place of its node, of a node below, of a brick's index, of its masks.
layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer QryCoarsePages { QryCoarsePage at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer QryCoarseCellsRef { QryCoarseCell at[]; };
uvec3 qry_coarse_page(const QryWorldRoot root, uint page) {
  const uint number = QryUints(qry_residency(root).pages).at[page];
  QryCoarsePages pages = QryCoarsePages(qry_residency(root).coarse);
  return uvec3(pages.at[number].low, pages.at[number].high, number);
}
uvec3 qry_coarse_cell(const QryWorldRoot root, uvec3 page, uint index) {
  const uint cell = QryCoarsePages(qry_residency(root).coarse).at[page.z].cells[index & 63u];
  if (cell < kQryCoarseCells) return uvec3(0xFFFFFFFFu, 0xFFFFFFFFu, cell);
  QryCoarseCellsRef cells = QryCoarseCellsRef(qry_residency(root).cells);
  return uvec3(cells.at[cell - kQryCoarseCells].low, cells.at[cell - kQryCoarseCells].high, cell);
}
uint qry_coarse_brick(const QryWorldRoot root, uvec3 cell, uint index) {
  if (cell.z < kQryCoarseCells) return kQryCoarseBrick | cell.z;
  const uint four =
      QryCoarseCellsRef(qry_residency(root).cells).at[cell.z - kQryCoarseCells].materials[(index & 63u) >> 2];
  return kQryCoarseBrick | ((four >> ((index & 3u) * 8u)) & 255u);
}
uint64_t qry_coarse_masks(const QryWorldRoot root) { return qry_residency(root).cells; }

// Says that a ray has come to a page.
void qry_reach(const QryWorldRoot root, uint page) {
  QryMarks reached = QryMarks(qry_residency(root).reached);
  // Most rays come to pages that others have come to. Reading a bit is cheaper than setting it again.
  if ((reached.at[page >> 5] & (1u << (page & 31u))) == 0u) atomicOr(reached.at[page >> 5], 1u << (page & 31u));
}
#endif

// Returns the pool index of the brick at a biased voxel in the world, or kQryReservedValue if there is none: as
// qry_find_brick(), but of exactly this root's version, beside edits too.
uint qry_brick_at(const QryWorldRoot root, ivec3 biased_voxel) {
  const uvec3 at = uvec3(biased_voxel);
  uvec3 node = qry_level3(root, (at.x >> 9) | ((at.y >> 9) << 5) | ((at.z >> 9) << 9));
  const uint bit3 = qry_pyramid_bit(at >> 7), bit2 = qry_pyramid_bit(at >> 5), bit1 = qry_pyramid_bit(at >> 3);
#if defined(QRY_PAGED)
  const uint cell = (at.x >> 9) | ((at.y >> 9) << 5) | ((at.z >> 9) << 9), page = cell << 6 | bit3;
  if (qry_has_child(uvec3(qry_absent(root, cell), 0u), bit3)) {
    node = qry_coarse_page(root, page);
    if (!qry_has_child(node, bit2)) return kQryReservedValue;
    node = qry_coarse_cell(root, node, bit2);
    if (!qry_has_child(node, bit1)) return kQryReservedValue;
    qry_reach(root, page);
    return qry_coarse_brick(root, node, bit1);
  }
  if (qry_has_child(node, bit3)) qry_reach(root, page);
#endif
  if (!qry_has_child(node, bit3)) return kQryReservedValue;
  node = qry_child(root, node, bit3);
  if (!qry_has_child(node, bit2)) return kQryReservedValue;
  node = qry_child(root, node, bit2);
  return qry_has_child(node, bit1) ? qry_level1_brick(root, node, bit1) : kQryReservedValue;
}

uint64_t qry_mask_address(const QryWorldRoot root, uint brick) {
  return QryAddresses(root.mask_slabs).at[brick >> kQryBrickSlabShift] +
         uint64_t((brick & ((1u << kQryBrickSlabShift) - 1u)) * 64u);
}

uint qry_octant(ivec3 v) { return uint(((v.x >> 2) & 1) | (((v.y >> 2) & 1) << 1) | (((v.z >> 2) & 1) << 2)); }

// Reads word `index` of the packed materials (voxel/bricks/pool.hpp). A slab has 128 words for each of its bricks.
uint qry_packed_word(const QryWorldRoot root, uint index) {
  const uint shift = kQryBrickSlabShift + 7u;
  return QryUints(QryAddresses(root.material_slabs).at[index >> shift]).at[index & ((1u << shift) - 1u)];
}

// Returns the material 1..255 of a set voxel of the brick, or 0 if it is not set.
uint qry_material(const QryWorldRoot root, uint brick, ivec3 v) {
#if defined(QRY_PAGED)
  if (brick >= kQryCoarseBrick) return brick & 255u;
#endif
  const uint octant = qry_octant(v), bit = uint((v.x & 3) | ((v.y & 3) << 2) | ((v.z & 3) << 4)),
             index = octant * 64u + bit;
  if (root.packed != 0u) {
    QryWords masks = QryWords(qry_mask_address(root, brick));
    const uvec2 own = masks.at[octant];
    if ((((bit & 32u) != 0u ? own.y : own.x) >> (bit & 31u) & 1u) == 0u) return 0u;
    uint number = qry_child_number(own, bit);
    for (uint i = 0u; i < octant; ++i) number += uint(bitCount(masks.at[i].x) + bitCount(masks.at[i].y));
    return (qry_packed_word(root, qry_packed_word(root, brick) + (number >> 2)) >> ((number & 3u) * 8u)) & 255u;
  }
  const uint64_t slab = QryAddresses(root.material_slabs).at[brick >> kQryBrickSlabShift];
  const uint word = QryUints(slab + uint64_t((brick & ((1u << kQryBrickSlabShift) - 1u)) * 512u)).at[index >> 2];
  return (word >> ((index & 3u) * 8u)) & 255u;
}

#endif
