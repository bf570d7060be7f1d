// world.glsl - reading a world: its root, a brick by its key, the occupancy pyramid, masks, materials, palette.
// The including shader enables GL_EXT_buffer_reference, GL_EXT_scalar_block_layout, GL_GOOGLE_include_directive and
// GL_EXT_shader_explicit_arithmetic_types_int64, and has no need to know how anything lies in memory.
//
// 64-bit occupancy words are read as two halves: bit = x | y<<2 | z<<4 of the low two coordinate bits, so the half is bit 1 of z.
#ifndef QRY_WORLD_GLSL
#define QRY_WORLD_GLSL

#define QRY_GLSL 1
#include "hashgrid/layout.h"
#include "shaders/world_root.h"
#include "shaders/grid_find.glsl"

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer QryRootRef { QryWorldRoot root; };
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer QryAddresses { uint64_t at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer QryWords { uvec2 at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer QryUints { uint at[]; };

struct QryMaterial {  // voxel/palette.hpp Material, 32 bytes
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

// Of the cell's low two coordinate bits: is any bit of the aligned 2x2x2 block around it set?
uint qry_half(uvec2 word, ivec3 cell) { return (cell.z & 2) != 0 ? word.y : word.x; }
bool qry_block(uvec2 word, ivec3 cell) { return (qry_half(word, cell) & (0x00330033u << ((cell.x & 2) | ((cell.y & 2) << 2)))) != 0u; }

uint qry_key_of(ivec3 biased_voxel) {
  const uvec3 b = uvec3(biased_voxel) >> 3;
  return b.x | (b.y << 11) | (b.z << 21);
}

// Pool index of the brick with this key; kQryReservedValue if there is none.
uint qry_find_brick(const QryWorldRoot root, uint key, out uint sectors) {
  const uint brick = qry_grid_find(root.grid_words, root.grid_pages, key, sectors);
  // Also refuses the index of a brick newer than this root's slab table (a host thread may be writing while this frame is drawn).
  return brick < root.brick_capacity ? brick : kQryReservedValue;
}

// The voxel's 128^3 region: 0, its word and the address of its 64 chunk words, or the edge of an empty aligned cube around the voxel.
// From below: near surfaces the region's own word answers, and only in wide emptiness are the levels above it read.
int qry_find_region(const QryWorldRoot root, ivec3 v, out uvec2 word, out uint64_t block_address) {
  word = uvec2(0u);
  block_address = 0ul;
  const uvec3 u = uvec3(v);
  if (any(greaterThanEqual(u, uvec3(kVoxelExtent)))) return 128;  // beyond the world, whose extent is a multiple
  QryWords words = QryWords(root.pyramid);
  const uvec3 c4 = u >> 11, c3 = u >> 9, c2 = u >> 7;
  const uint region = c2.x | (c2.y << 7) | (c2.z << 13);
  word = words.at[region];
  const uint block = QryUints(root.pyramid + uint64_t(8u * (kQryLevel2Words + kQryLevel3Words + kQryLevel4Words))).at[region];
  if ((word.x | word.y) != 0u) {
    if (block >= root.block_capacity) return 128;
    block_address = QryAddresses(root.block_slabs).at[block >> kQryBlockSlabShift] + uint64_t((block & ((1u << kQryBlockSlabShift) - 1u)) * 512u);
    return 0;
  }
  const uvec2 w3 = words.at[kQryLevel2Words + (c3.x | (c3.y << 5) | (c3.z << 9))];
  if ((w3.x | w3.y) != 0u) return qry_block(w3, v >> 7) ? 128 : 256;
  const uvec2 w4 = words.at[kQryLevel2Words + kQryLevel3Words + (c4.x | (c4.y << 3) | (c4.z << 5))];
  if ((w4.x | w4.y) != 0u) return qry_block(w4, v >> 9) ? 512 : 1024;
  return 2048;
}

uint64_t qry_mask_address(const QryWorldRoot root, uint brick) {
  return QryAddresses(root.mask_slabs).at[brick >> kQryBrickSlabShift] + uint64_t((brick & ((1u << kQryBrickSlabShift) - 1u)) * 64u);
}

uint qry_octant(ivec3 v) { return uint(((v.x >> 2) & 1) | (((v.y >> 2) & 1) << 1) | (((v.z >> 2) & 1) << 2)); }

// Material 1..255 of a set voxel of the brick; 0 if it is not set.
uint qry_material(const QryWorldRoot root, uint brick, ivec3 v) {
  const uint index = qry_octant(v) * 64u + uint((v.x & 3) | ((v.y & 3) << 2) | ((v.z & 3) << 4));
  const uint64_t slab = QryAddresses(root.material_slabs).at[brick >> kQryBrickSlabShift];
  const uint word = QryUints(slab + uint64_t((brick & ((1u << kQryBrickSlabShift) - 1u)) * 512u)).at[index >> 2];
  return (word >> ((index & 3u) * 8u)) & 255u;
}

#endif
