// SPDX-License-Identifier: Apache-2.0
// grid_find.glsl - hashgrid::find (view_impl.hpp `locate`) in GLSL, with the same probe order and bit for bit the same
// result. The including shader must define QRY_GLSL, include hashgrid/pairs/layout.h, and enable
// GL_EXT_buffer_reference, GL_EXT_scalar_block_layout and GL_EXT_shader_explicit_arithmetic_types_int64.
#ifndef QRY_GRID_FIND_GLSL
#define QRY_GRID_FIND_GLSL

// 64-bit words, so that one load reads a slot. Key and value then belong to one pair, even while another thread writes.
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer QryGridWords { uint64_t at[]; };

// Two slots of a sector.
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer QryGridPairs { u64vec2 at[]; };

uvec2 qry_slot(QryGridWords page, uint index) { return unpackUint2x32(page.at[index]); }  // x: key, y: value
bool qry_never_used(uvec2 slot) { return slot.x == 0xFFFFFFFFu && slot.y == 0xFFFFFFFFu; }

// Returns the value of `key`, or kQryReservedValue if it is absent. `locality` is the grid's (kQryPlain, kQryRows). A
// constant costs nothing. `sectors` is the number of sectors of slots read.
uint qry_grid_find_local(uint64_t grid_words, uint page_count, uint locality, uint key, out uint sectors) {
  sectors = 0u;
  if (key == kQryReservedKey) return kQryReservedValue;
  const uint stored = qry_stored_key(key, locality);
  const QryProbeSequence probes = qry_probe_sequence(stored, page_count);
  QryGridWords page = QryGridWords(grid_words + uint64_t(probes.page) * uint64_t(kQryPageBytes));
  sectors = 1u;
  // Reads the whole sector at once by two concurrent loads.
  QryGridPairs pairs = QryGridPairs(uint64_t(page) + uint64_t(probes.home_sector * kQrySlotsPerSector * kQrySlotBytes));
  const u64vec2 low = pairs.at[0], high = pairs.at[1];
  const uvec2 a = unpackUint2x32(low.x), b = unpackUint2x32(low.y), c = unpackUint2x32(high.x),
              d = unpackUint2x32(high.y);
  if (a.x == stored) return a.y;
  if (b.x == stored) return b.y;
  if (c.x == stored) return c.y;
  if (d.x == stored) return d.y;
  if (qry_never_used(a) || qry_never_used(b) || qry_never_used(c) || qry_never_used(d)) return kQryReservedValue;
  const uvec2 states = qry_slot(page, qry_state_word(probes.home_sector));
  const uint shift = qry_state_shift(probes.home_sector);
  const uint state = (shift < 32u ? states.x >> shift : states.y >> (shift - 32u)) & 3u;
  if ((state & kQryBucketSpilled) == 0u) return kQryReservedValue;
  sectors = 2u;
  for (uint i = 0u; i < kQrySlotsPerSector; ++i) {
    const uvec2 slot = qry_slot(page, probes.second_sector * kQrySlotsPerSector + i);
    if (slot.x == stored) return slot.y;
  }
  if ((state & kQryBucketToStash) == 0u) return kQryReservedValue;
  const QryStashGroup group = qry_stash_group(probes.page, page_count);
  for (uint n = 0u; n < kQryStashTries; ++n) {
    QryGridWords sector = QryGridWords(grid_words + uint64_t(qry_stash_sector(probes, group, n)) *
                                                        uint64_t(kQrySlotsPerSector * kQrySlotBytes));
    sectors = 3u + n;
    bool never = false;
    for (uint i = 0u; i < kQrySlotsPerSector; ++i) {
      const uvec2 slot = qry_slot(sector, i);
      if (slot.x == stored) return slot.y;
      never = never || qry_never_used(slot);
    }
    if (never) return kQryReservedValue;
  }
  return kQryReservedValue;
}

// For grids of plain keys.
uint qry_grid_find(uint64_t grid_words, uint page_count, uint key, out uint sectors) {
  return qry_grid_find_local(grid_words, page_count, kQryPlain, key, sectors);
}
uint qry_grid_page(uint page_count, uint key) { return qry_page(qry_stored_key(key, kQryPlain), page_count); }

#endif
