// SPDX-License-Identifier: Apache-2.0
// scan.glsl - what stands before a workgroup's tile: the sum over all tiles before it, in the same dispatch. Words are
// then read once and written once.
//
// After D. Merrill and M. Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", 2016: workgroups take
// tiles in the order in which they begin, publish their tile's sum, look back over the tiles before theirs, a subgroup
// at once, until one has published the sum of all up to itself, and publish theirs. And after T. Smith, R. Levien and
// J. Owens, "Decoupled Fallback: A Portable Single-Pass GPU Scan", 2025: Vulkan does not promise that a workgroup which
// has begun goes on while another waits. So nobody waits for long. Who has found nothing of a tile kQryScanSpins times
// sums that tile up itself, and publishes the sum for others. Results do not depend on which of them was first, because
// both are the same sum.
//
// A sum has 32 bits and a flag, and must be read whole. 64-bit atomics are not required of devices, so it is in two
// words of 32 bits, each with one half and the flag. Two halves with the same flag are of one sum: either word holds
// nothing, then the tile's sum, then the prefix, and the first two steps have one value each for a use. No order
// between different words is relied on, hence no memory model.
//
// The state has two halves, for alternate uses. A use clears what the one before it wrote into the other half. So
// nothing is cleared between uses, no number of a use runs out, and a command buffer may be submitted again. Which half
// it is stands in the word of which the tile's number is taken, so both are read at once.
//
// Workgroups are whole subgroups of any size.
#ifndef QRY_SCAN_GLSL
#define QRY_SCAN_GLSL

#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require

#define QRY_GLSL 1
#include "shaders/shared/constant_ids.h"
#include "shaders/shared/scan.h"

layout(constant_id = QRY_ID_SCAN_GROUP) const uint kQryScanGroup = 256u;
layout(local_size_x_id = QRY_ID_SCAN_GROUP) in;
layout(constant_id = QRY_ID_SCAN_SPINS) const uint kQryScanSpins = 64u;
// If true, neighbouring threads read neighbouring quads, as GPUs like it; else each reads its own run of quads, which
// takes fewer sums over subgroups.
layout(constant_id = QRY_ID_SCAN_STRIPED) const bool kQryScanStriped = true;
// A thread's share of a tile, in four words.
layout(constant_id = QRY_ID_SCAN_QUADS) const uint kQryScanQuads = 4u;
layout(constant_id = QRY_ID_SCAN_TRIAL) const uint kQryScanTrial = 0u;

layout(push_constant, scalar) uniform QryPush { QryScanPush push; };

layout(buffer_reference, scalar, buffer_reference_align = 16) buffer QryScanState { uint at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer QryScanQuads { uvec4 at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer QryScanWords { uint at[]; };

// The including shader has this: the sum of four words of a full tile.
uint qry_scan_quad(uint tile, uint quad);

const uint kQryScanTile = kQryScanGroup * kQryScanQuads * 4u;  // words
const uint kQryScanSum = 1u, kQryScanPrefix = 2u;
const uint kQryScanNone = 0xFFFFFFFFu;

shared uint qry_scan_taken, qry_scan_missing, qry_scan_found;
shared uint qry_scan_totals[kQryScanGroup];   // by subgroup: what is before it in the tile
shared uint qry_scan_foreign[kQryScanGroup];  // by subgroup: its share of another's tile

uint qry_scan_half = 0u;  // the first word of this use's half of the state
uint qry_scan_all = 0u;   // in subgroup 0, after qry_scan_ahead: the sum of all tiles up to this one

// Addresses, because an index of a buffer is signed and a list may have more than 2^31 words.
uint64_t qry_scan_address(uint64_t list, uint tile) { return list + uint64_t(tile) * uint64_t(kQryScanTile * 4u); }
uint qry_scan_own_quad(uint i) {
  const uint first = gl_SubgroupID * gl_SubgroupSize * kQryScanQuads;
  return first + (kQryScanStriped ? i * gl_SubgroupSize + gl_SubgroupInvocationID
                                  : gl_SubgroupInvocationID * kQryScanQuads + i);
}
// How many words of the list there are in the tile.
uint qry_scan_words(uint tile) { return min(push.count - tile * kQryScanTile, kQryScanTile); }

// Reads four words of a tile which has `words` of them. Those beyond are 0.
uvec4 qry_scan_read(uint64_t list, uint tile, uint quad, uint words) {
  const uint64_t address = qry_scan_address(list, tile);
  if (4u * quad + 4u <= words) return QryScanQuads(address).at[quad];
  uvec4 read = uvec4(0u);
  for (uint i = 0u; i < 4u; ++i)
    if (4u * quad + i < words) read[i] = QryScanWords(address).at[4u * quad + i];
  return read;
}

// Takes a tile, the same for the whole workgroup. At push.tiles or beyond there is none left.
uint qry_scan_take() {
  QryScanState state = QryScanState(push.state);
  const uint groups = gl_NumWorkGroups.x * gl_NumWorkGroups.y;
  if (gl_LocalInvocationIndex == 0u) {
    const uint taken = atomicAdd(state.at[0], 1u);
    // The last to begin: nobody reads the word again in this use.
    if ((taken & 0x7FFFFFFFu) == groups - 1u) atomicAdd(state.at[0], 0x80000000u - groups);
    qry_scan_taken = taken;
  }
  barrier();
  const uint number = qry_scan_taken & 0x7FFFFFFFu, half_of_use = qry_scan_taken >> 31;
  qry_scan_half = kQryScanHeader + half_of_use * 2u * push.capacity;
  const uint other = kQryScanHeader + (1u - half_of_use) * 2u * push.capacity, old = 2u * state.at[2u - half_of_use];
  for (uint i = number * kQryScanGroup + gl_LocalInvocationIndex; i < old; i += groups * kQryScanGroup)
    state.at[other + i] = 0u;
  if (number == 0u && gl_LocalInvocationIndex == 0u) state.at[1u + half_of_use] = push.tiles;
  return (kQryScanTrial & kQryScanBackwards) != 0u && number < push.tiles ? push.tiles - 1u - number : number;
}

uint qry_scan_word(uint tile, uint which) { return qry_scan_half + 2u * tile + which; }

// The two halves of the sum are written by two threads, so that each word is always written by the same one.
void qry_scan_publish(uint tile, uint flag, uint sum) {
  if ((kQryScanTrial & kQryScanOwnersStall) != 0u) return;
  QryScanState state = QryScanState(push.state);
  for (uint which = gl_SubgroupInvocationID; which < 2u; which += gl_SubgroupSize)
    atomicStore(state.at[qry_scan_word(tile, which)], (flag << 16) | (which == 0u ? sum & 0xFFFFu : sum >> 16),
                gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed);
}
// Where the owner has published, its word stays: it may already be the prefix.
void qry_scan_publish_for(uint tile, uint sum) {
  if ((kQryScanTrial & kQryScanFallbackStalls) != 0u) return;
  QryScanState state = QryScanState(push.state);
  for (uint which = gl_SubgroupInvocationID; which < 2u; which += gl_SubgroupSize)
    atomicCompSwap(state.at[qry_scan_word(tile, which)], 0u,
                   (kQryScanSum << 16) | (which == 0u ? sum & 0xFFFFu : sum >> 16));
}
// Returns kQryScanSum, kQryScanPrefix, or 0 if the sum is not known as a whole.
uint qry_scan_look(uint tile, out uint sum) {
  QryScanState state = QryScanState(push.state);
  const uint low = atomicLoad(state.at[qry_scan_word(tile, 0u)], gl_ScopeDevice, gl_StorageSemanticsNone,
                              gl_SemanticsRelaxed),
             high = atomicLoad(state.at[qry_scan_word(tile, 1u)], gl_ScopeDevice, gl_StorageSemanticsNone,
                               gl_SemanticsRelaxed);
  sum = (low & 0xFFFFu) | (high << 16);
  return (low >> 16) == (high >> 16) ? low >> 16 : 0u;
}

// Looks back from the tiles before `end`, whose sum is added to `before`, by a subgroup. Returns the tile that is
// missing, or kQryScanNone when `before` is complete.
uint qry_scan_look_back(inout uint end, inout uint before) {
  for (uint spins = 0u; end > 0u;) {
    const uint back = gl_SubgroupInvocationID;  // the nearest tile is the first thread's
    uint sum = 0u, flag = 0u;
    if (back < end) flag = qry_scan_look(end - 1u - back, sum);
    const uint prefix = subgroupMin(flag == kQryScanPrefix ? back : kQryScanNone),
               unknown = subgroupMin(flag == 0u ? back : gl_SubgroupSize);
    const bool done = prefix < unknown;
    const uint known = done ? prefix + 1u : unknown;
    before += subgroupAdd(back < known ? sum : 0u);
    end -= known;
    if (done) return kQryScanNone;
    if (known > 0u) spins = 0u;
    else if (++spins > kQryScanSpins) return end - 1u;
  }
  return kQryScanNone;
}

// The sum of the numbers that each subgroup has in an array. Only subgroup 0 calls it.
uint qry_scan_foreign_sum() {
  uint sum = 0u;
  for (uint at = gl_SubgroupInvocationID; at < gl_NumSubgroups; at += gl_SubgroupSize) sum += qry_scan_foreign[at];
  return subgroupAdd(sum);
}

// From the sum of this subgroup's words to the sum of all words before them in the list. The whole workgroup calls it.
uint qry_scan_ahead(uint tile, uint subgroup_sum) {
  if (gl_SubgroupInvocationID == 0u) qry_scan_totals[gl_SubgroupID] = subgroup_sum;
  barrier();
  uint own = 0u, before = 0u, end = tile;
  if (gl_SubgroupID == 0u) {
    for (uint from = 0u; from < gl_NumSubgroups; from += gl_SubgroupSize) {
      const uint at = from + gl_SubgroupInvocationID;
      const uint total = at < gl_NumSubgroups ? qry_scan_totals[at] : 0u, up_to = subgroupInclusiveAdd(total);
      if (at < gl_NumSubgroups) qry_scan_totals[at] = own + up_to - total;
      own += subgroupAdd(total);
    }
    if (tile > 0u) qry_scan_publish(tile, kQryScanSum, own);
  }
  for (;;) {
    if (gl_SubgroupID == 0u) {
      const uint missing = qry_scan_look_back(end, before);
      if (missing == kQryScanNone) qry_scan_publish(tile, kQryScanPrefix, before + own);
      if (gl_SubgroupInvocationID == 0u) {
        qry_scan_missing = missing;
        qry_scan_found = before;
      }
    }
    barrier();
    const uint missing = qry_scan_missing;
    if (missing == kQryScanNone) break;
    uint mine = 0u;
    for (uint i = 0u; i < kQryScanQuads; ++i) mine += qry_scan_quad(missing, qry_scan_own_quad(i));
    mine = subgroupAdd(mine);
    if (gl_SubgroupInvocationID == 0u) qry_scan_foreign[gl_SubgroupID] = mine;
    barrier();
    if (gl_SubgroupID == 0u) {
      const uint sum = qry_scan_foreign_sum();
      qry_scan_publish_for(missing, sum);
      before += sum;
      end = missing;
    }
  }
  qry_scan_all = before + own;
  return qry_scan_found + qry_scan_totals[gl_SubgroupID];
}

// Numbers of a thread's quads become what is before each of them in the list. The whole workgroup calls it.
void qry_scan_quads_ahead(uint tile, inout uint quads[kQryScanQuads]) {
  uint subgroup_sum = 0u, before = 0u;
  if (!kQryScanStriped) {
    for (uint i = 0u; i < kQryScanQuads; ++i) subgroup_sum += quads[i];
    before = subgroupExclusiveAdd(subgroup_sum);
    subgroup_sum = subgroupAdd(subgroup_sum);
  }
  for (uint i = 0u; i < kQryScanQuads; ++i) {
    const uint own = quads[i];
    if (kQryScanStriped) {
      quads[i] = subgroup_sum + subgroupExclusiveAdd(own);
      subgroup_sum += subgroupAdd(own);
    } else {
      quads[i] = before;
      before += own;
    }
  }
  const uint ahead = qry_scan_ahead(tile, subgroup_sum);
  for (uint i = 0u; i < kQryScanQuads; ++i) quads[i] += ahead;
}

#endif
