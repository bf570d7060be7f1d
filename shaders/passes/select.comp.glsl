#version 460
// SPDX-License-Identifier: Apache-2.0
// select.comp.glsl - flags -> the places of those that are set, or the items at these places, in their order; their
// number, and a dispatch over them. A workgroup has one tile.
#extension GL_GOOGLE_include_directive : require

#include "shaders/library/scan.glsl"

bvec4 flags_set(uvec4 flags) { return lessThanEqual(flags - push.low, uvec4(push.span)); }
uint number_of(bvec4 flags) { return uint(flags.x) + uint(flags.y) + uint(flags.z) + uint(flags.w); }

uint qry_scan_quad(uint tile, uint quad) {
  return number_of(flags_set(qry_scan_read(push.from, tile, quad, kQryScanTile)));
}

void main() {
  const uint tile = qry_scan_take();
  if (tile >= push.tiles) return;
  const uint words = qry_scan_words(tile);
  uvec4 read[kQryScanQuads];
  uint ahead[kQryScanQuads];
  bvec4 chosen[kQryScanQuads];
  for (uint i = 0u; i < kQryScanQuads; ++i) {
    const uint quad = qry_scan_own_quad(i);
    read[i] = qry_scan_read(push.from, tile, quad, words);
    chosen[i] = flags_set(read[i]);
    if (4u * quad + 4u > words)
      for (uint k = 0u; k < 4u; ++k) chosen[i][k] = chosen[i][k] && 4u * quad + k < words;
    ahead[i] = number_of(chosen[i]);
  }
  qry_scan_quads_ahead(tile, ahead);
  const bool places = push.items == 0ul, other = push.items != push.from;
  for (uint i = 0u; i < kQryScanQuads; ++i) {
    const uint quad = qry_scan_own_quad(i);
    uint at = ahead[i];
    for (uint k = 0u; k < 4u; ++k)
      if (chosen[i][k]) {
        uint item = read[i][k];
        if (places) item = tile * kQryScanTile + 4u * quad + k;
        else if (other) item = QryScanWords(qry_scan_address(push.items, tile)).at[4u * quad + k];
        if (at < push.room) QryScanWords(push.to + uint64_t(at) * 4ul).at[0] = item;
        ++at;
      }
  }
  if (tile + 1u == push.tiles && gl_SubgroupID == 0u && gl_SubgroupInvocationID == 0u) {
    if (push.sum != 0ul) QryScanWords(push.sum).at[0] = qry_scan_all;
    if (push.dispatch != 0ul) {
      const uint listed = min(qry_scan_all, push.room);
      const uint groups = listed / push.dispatch_group + uint(listed % push.dispatch_group != 0u),
                 wide = min(groups, kQryScanMostWide);
      QryScanWords dispatch = QryScanWords(push.dispatch);
      dispatch.at[0] = wide;
      dispatch.at[1] = wide > 0u ? (groups - 1u) / wide + 1u : 0u;
      dispatch.at[2] = 1u;
    }
  }
}
