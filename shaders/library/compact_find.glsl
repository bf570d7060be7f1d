// SPDX-License-Identifier: Apache-2.0
// compact_find.glsl - find() of hashgrid/compact/view.hpp in GLSL, with the same sectors in the same order and bit for
// bit the same result. The including shader must define QRY_GLSL, include hashgrid/compact/layout.h, and enable
// GL_EXT_buffer_reference, GL_EXT_scalar_block_layout and GL_EXT_shader_explicit_arithmetic_types_int64.
#ifndef QRY_COMPACT_FIND_GLSL
#define QRY_COMPACT_FIND_GLSL

// Two halves make a sector.
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer QryCompactHalves { uvec4 at[]; };

// Returns the entry with `tag`, 0..5, or -1. `half_sector` is the first half of a sector, which has all the tags.
int qry_compact_slot(uvec4 half_sector, uint fields, uint tag) {
  const uint bits = qry_compact_tag_bits(fields);
  for (uint slot = 0u; slot < qry_compact_entries(fields); ++slot)
    if (((half_sector[slot / fields] >> (slot % fields * bits)) & qry_compact_no_tag(fields)) == tag) return int(slot);
  return -1;
}

// Searches the key's sectors in one part. Returns true if the look-up ends here, with `value`.
bool qry_compact_find_in(uint64_t grid_words, QryCompactPart part, uint mixed, inout uint sectors, out uint value) {
  value = kQryReservedValue;
  const QryCompactPlace place = qry_compact_place(mixed, part);
  uint tag = place.tag;
  for (uint distance = 0u; distance < part.reach && tag < qry_compact_no_tag(part.fields);
       ++distance, tag += part.remainders) {
    const uint sector = part.first_page * kQrySectorsPerPage + qry_compact_sector(place.home, distance);
    QryCompactHalves halves = QryCompactHalves(grid_words + uint64_t(sector) * 32ul);
    const uvec4 low = halves.at[0], high = halves.at[1];  // both loads are concurrent
    ++sectors;
    const int slot = qry_compact_slot(low, part.fields, tag);
    if (slot >= 0) {
      const uint word = qry_compact_tag_words(part.fields) + uint(slot);
      value = word < 4u ? low[word] : high[word - 4u];
      return true;
    }
    if ((low.x & kQryCompactOverflow) == 0u) return true;
  }
  return false;
}

// Returns the value of `key`, or kQryReservedValue if it is absent. `table` is qry_compact() of the table's pages.
// `sectors` is the number of sectors read.
uint qry_compact_find(uint64_t grid_words, QryCompact table, uint key, out uint sectors) {
  sectors = 0u;
  uint value = kQryReservedValue;
  if (key == kQryReservedKey) return value;
  const uint mixed = qry_mix(key);
  if (!qry_compact_find_in(grid_words, table.table, mixed, sectors, value) && table.stash.pages != 0u)
    qry_compact_find_in(grid_words, table.stash, qry_mix(mixed), sectors, value);
  return value;
}

#endif
