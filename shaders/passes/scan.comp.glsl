#version 460
// SPDX-License-Identifier: Apache-2.0
// scan.comp.glsl - words -> the sum of all words before each, or up to each, modulo 2^32. A workgroup has one tile.
#extension GL_GOOGLE_include_directive : require

#include "shaders/library/scan.glsl"

uint sum_of(uvec4 words) { return words.x + words.y + words.z + words.w; }

uint qry_scan_quad(uint tile, uint quad) { return sum_of(qry_scan_read(push.from, tile, quad, kQryScanTile)); }

void sum_up(uint tile) {
  const uint words = qry_scan_words(tile);
  const uint64_t from = qry_scan_address(push.from, tile);
  uvec4 read[kQryScanQuads];
  // A full tile's words are asked for together, with no branch between them.
  if (words == kQryScanTile) {
    [[unroll]] for (uint i = 0u; i < kQryScanQuads; ++i) read[i] = QryScanQuads(from).at[qry_scan_own_quad(i)];
  } else {
    [[unroll]] for (uint i = 0u; i < kQryScanQuads; ++i) read[i] =
        qry_scan_read(push.from, tile, qry_scan_own_quad(i), words);
  }
  uint own = 0u;
  [[unroll]] for (uint i = 0u; i < kQryScanQuads; ++i) own += sum_of(read[i]);
  // The tile's sum is what others wait for, so it comes before the sums within the subgroup.
  uint ahead = qry_scan_in_tile(tile, subgroupAdd(own));
  if (!kQryScanStriped) ahead += subgroupExclusiveAdd(own);
  [[unroll]] for (uint i = 0u; i < kQryScanQuads; ++i) {
    const uvec4 quad = read[i];
    const uint sum = sum_of(quad);
    uint before = ahead;
    if (kQryScanStriped) {
      const uint up_to = subgroupInclusiveAdd(sum);
      before += up_to - sum;
      ahead += subgroupBroadcast(up_to, gl_SubgroupSize - 1u);
    } else ahead += sum;
    read[i] = before + uvec4(0u, quad.x, quad.x + quad.y, quad.x + quad.y + quad.z);
    if (push.inclusive != 0u) read[i] += quad;
  }
  const uint before = qry_scan_before(tile);
  const uint64_t to = qry_scan_address(push.to, tile);
  if (words == kQryScanTile) {
    [[unroll]] for (uint i = 0u; i < kQryScanQuads; ++i) QryScanQuads(to).at[qry_scan_own_quad(i)] = read[i] + before;
  } else {
    [[unroll]] for (uint i = 0u; i < kQryScanQuads; ++i) [[unroll]] for (uint k = 0u; k < 4u; ++k) {
      const uint at = 4u * qry_scan_own_quad(i) + k;
      if (at < words) QryScanWords(to).at[at] = read[i][k] + before;
    }
  }
  if (push.sum != 0ul && tile + 1u == push.tiles && qry_scan_first())
    QryScanWords(push.sum).at[0] = before + qry_scan_own;
}

void main() {
  const uint tile = qry_scan_take();
  if (tile < push.tiles) sum_up(tile);
  qry_scan_clear();
}
