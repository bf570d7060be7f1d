#version 460
// SPDX-License-Identifier: Apache-2.0
// select.comp.glsl - flags -> the places of those that are set, or the items at these places, in their order; their
// number, and a dispatch over them. A workgroup has one tile.
//
// Neighbouring threads have neighbouring words, so a ballot says where each goes, and what a subgroup writes at once
// stands together in memory. Where few are selected that would be a few words a write; then they are put in order in
// shared memory first. There is little of it, because a workgroup's share decides how many run at once.
#extension GL_GOOGLE_include_directive : require

#include "shaders/library/scan.glsl"

const uint kEach = 4u * kQryScanQuads;  // words of a thread
const uint kFew = kQryScanTile / 8u;
shared uint in_order[kFew];

bool flag_set(uint flag) { return flag - push.low <= push.span; }

uint qry_scan_quad(uint tile, uint quad) {
  const uvec4 flags = qry_scan_read(push.from, tile, quad, kQryScanTile);
  return uint(flag_set(flags.x)) + uint(flag_set(flags.y)) + uint(flag_set(flags.z)) + uint(flag_set(flags.w));
}

// A thread's word `i` in the tile.
uint place_of(uint i) {
  return gl_SubgroupID * gl_SubgroupSize * kEach + i * gl_SubgroupSize + gl_SubgroupInvocationID;
}

// Of a ballot. Most devices' subgroups are in its first word, and compilers know that.
uint votes(uvec4 ballot) { return gl_SubgroupSize <= 32u ? bitCount(ballot.x) : subgroupBallotBitCount(ballot); }
uint votes_ahead(uvec4 ballot) {
  return gl_SubgroupSize <= 32u ? bitCount(ballot.x & gl_SubgroupLtMask.x) : subgroupBallotExclusiveBitCount(ballot);
}

void select_from(uint tile) {
  const uint words = qry_scan_words(tile);
  const uint64_t flags = qry_scan_address(push.from, tile);
  uint word[kEach], chosen[(kEach + 31u) / 32u], number = 0u;
  if (words == kQryScanTile) {
    [[unroll]] for (uint i = 0u; i < kEach; ++i) word[i] = QryScanWords(flags).at[place_of(i)];
  } else {
    [[unroll]] for (uint i = 0u; i < kEach; ++i) word[i] =
        place_of(i) < words ? QryScanWords(flags).at[place_of(i)] : 0u;
  }
  [[unroll]] for (uint i = 0u; i < kEach; ++i) {
    const bool is_chosen = flag_set(word[i]) && place_of(i) < words;
    chosen[i / 32u] = (i % 32u != 0u ? chosen[i / 32u] : 0u) | uint(is_chosen) << (i % 32u);
    number += uint(is_chosen);
  }
  uint at = qry_scan_in_tile(tile, subgroupAdd(number));
  // Before the look-back, which takes so long that these have come by then.
  if (push.items == 0ul) {
    [[unroll]] for (uint i = 0u; i < kEach; ++i) word[i] = tile * kQryScanTile + place_of(i);
  } else if (push.items != push.from) {
    const uint64_t items = qry_scan_address(push.items, tile);
    [[unroll]] for (uint i = 0u; i < kEach; ++i) if ((chosen[i / 32u] >> (i % 32u) & 1u) != 0u) word[i] =
        QryScanWords(items).at[place_of(i)];
  }
  const bool few = qry_scan_own <= kFew;
  if (few) [[unroll]]
    for (uint i = 0u; i < kEach; ++i) {
      const bool is_chosen = (chosen[i / 32u] >> (i % 32u) & 1u) != 0u;
      const uvec4 ballot = subgroupBallot(is_chosen);
      if (is_chosen) in_order[at + votes_ahead(ballot)] = word[i];
      at += votes(ballot);
    }
  const uint before = qry_scan_before(tile);
  if (few) {
    // From a multiple of 128 bytes on, so that a subgroup's words are in as few lines of the cache as may be.
    const uint skipped = (uint(push.to >> 2) + before) & 31u;
    for (uint i = gl_LocalInvocationIndex; i < skipped + qry_scan_own; i += kQryScanGroup) {
      const uint to = before + i - skipped;
      if (i >= skipped && to < push.room) QryScanWords(push.to + uint64_t(to) * 4ul).at[0] = in_order[i - skipped];
    }
  } else {
    at += before;
    [[unroll]] for (uint i = 0u; i < kEach; ++i) {
      const bool is_chosen = (chosen[i / 32u] >> (i % 32u) & 1u) != 0u;
      const uvec4 ballot = subgroupBallot(is_chosen);
      const uint to = at + votes_ahead(ballot);
      if (is_chosen && to < push.room) QryScanWords(push.to + uint64_t(to) * 4ul).at[0] = word[i];
      at += votes(ballot);
    }
  }
  if (tile + 1u == push.tiles && qry_scan_first()) {
    const uint all = before + qry_scan_own;
    if (push.sum != 0ul) QryScanWords(push.sum).at[0] = all;
    if (push.dispatch != 0ul) {
      const uint listed = min(all, push.room);
      const uint groups = listed / push.dispatch_group + uint(listed % push.dispatch_group != 0u),
                 wide = min(groups, kQryScanMostWide);
      QryScanWords dispatch = QryScanWords(push.dispatch);
      dispatch.at[0] = wide;
      dispatch.at[1] = wide > 0u ? (groups - 1u) / wide + 1u : 0u;
      dispatch.at[2] = 1u;
    }
  }
}

void main() {
  const uint tile = qry_scan_take();
  if (tile < push.tiles) select_from(tile);
  qry_scan_clear();
}
