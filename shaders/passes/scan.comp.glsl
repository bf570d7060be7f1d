#version 460
// SPDX-License-Identifier: Apache-2.0
// scan.comp.glsl - words -> the sum of all words before each, or up to each, modulo 2^32. A workgroup has one tile.
#extension GL_GOOGLE_include_directive : require

#include "shaders/library/scan.glsl"

uint qry_scan_quad(uint tile, uint quad) {
  const uvec4 read = qry_scan_read(push.from, tile, quad, kQryScanTile);
  return read.x + read.y + read.z + read.w;
}

void main() {
  const uint tile = qry_scan_take();
  if (tile >= push.tiles) return;
  const uint words = qry_scan_words(tile);
  uvec4 read[kQryScanQuads];
  uint ahead[kQryScanQuads];
  for (uint i = 0u; i < kQryScanQuads; ++i) {
    read[i] = qry_scan_read(push.from, tile, qry_scan_own_quad(i), words);
    ahead[i] = read[i].x + read[i].y + read[i].z + read[i].w;
  }
  qry_scan_quads_ahead(tile, ahead);
  const uint64_t to = qry_scan_address(push.to, tile);
  for (uint i = 0u; i < kQryScanQuads; ++i) {
    const uint quad = qry_scan_own_quad(i);
    const uvec4 own = read[i];
    uvec4 result = uvec4(0u, own.x, own.x + own.y, own.x + own.y + own.z) + ahead[i];
    if (push.inclusive != 0u) result += own;
    if (4u * quad + 4u <= words) QryScanQuads(to).at[quad] = result;
    else
      for (uint k = 0u; k < 4u; ++k)
        if (4u * quad + k < words) QryScanWords(to).at[4u * quad + k] = result[k];
  }
  if (push.sum != 0ul && tile + 1u == push.tiles && gl_SubgroupID == 0u && gl_SubgroupInvocationID == 0u)
    QryScanWords(push.sum).at[0] = qry_scan_all;
}
