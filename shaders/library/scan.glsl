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
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_EXT_control_flow_attributes : require

#define QRY_GLSL 1
#include "shaders/shared/constant_ids.h"
#include "shaders/shared/scan.h"

layout(constant_id = QRY_ID_SCAN_GROUP) const uint kQryScanGroup = 256u;
layout(local_size_x_id = QRY_ID_SCAN_GROUP) in;
layout(constant_id = QRY_ID_SCAN_SPINS) const uint kQryScanSpins = 64u;
// Sums: if true, neighbouring threads read neighbouring quads, as GPUs like it; else each reads its own run of quads,
// which takes fewer sums over subgroups.
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
shared uint qry_scan_totals[kQryScanGroup];  // by subgroup: its share of this tile, then of another's

uint qry_scan_half = 0u;  // the first word of this use's half of the state
uint qry_scan_own = 0u;   // after qry_scan_in_tile: the sum of the tile

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
  const uint number = qry_scan_taken & 0x7FFFFFFFu;
  qry_scan_half = kQryScanHeader + (qry_scan_taken >> 31) * 2u * push.capacity;
  return (kQryScanTrial & kQryScanBackwards) != 0u && number < push.tiles ? push.tiles - 1u - number : number;
}

// Clears a share of what the use before this one wrote. Every workgroup calls it, at its end, because nothing waits for
// it there.
void qry_scan_clear() {
  QryScanState state = QryScanState(push.state);
  const uint groups = gl_NumWorkGroups.x * gl_NumWorkGroups.y;
  const uint number = qry_scan_taken & 0x7FFFFFFFu, half_of_use = qry_scan_taken >> 31;
  const uint other = kQryScanHeader + (1u - half_of_use) * 2u * push.capacity, old = 2u * state.at[2u - half_of_use];
  for (uint i = number * kQryScanGroup + gl_LocalInvocationIndex; i < old; i += groups * kQryScanGroup)
    state.at[other + i] = 0u;
  if (number == 0u && gl_LocalInvocationIndex == 0u) state.at[1u + half_of_use] = push.tiles;
}

uint qry_scan_word(uint tile, uint which) { return qry_scan_half + 2u * tile + which; }

// The one thread that publishes. It is asked for where the whole workgroup comes along, and nowhere deeper: behind a
// branch that parts a subgroup's threads, Vulkan lets them meet again only if all of the workgroup came to the branch.
bool qry_scan_first() { return gl_SubgroupID == 0u && gl_SubgroupInvocationID == 0u; }
void qry_scan_publish(uint tile, uint flag, uint sum) {
  if ((kQryScanTrial & kQryScanOwnersStall) != 0u) return;
  QryScanState state = QryScanState(push.state);
  atomicStore(state.at[qry_scan_word(tile, 0u)], (flag << 16) | (sum & 0xFFFFu), gl_ScopeDevice,
              gl_StorageSemanticsNone, gl_SemanticsRelaxed);
  atomicStore(state.at[qry_scan_word(tile, 1u)], (flag << 16) | (sum >> 16), gl_ScopeDevice, gl_StorageSemanticsNone,
              gl_SemanticsRelaxed);
}
// Where the owner has published, its word stays: it may already be the prefix.
void qry_scan_publish_for(uint tile, uint sum) {
  if ((kQryScanTrial & kQryScanFallbackStalls) != 0u) return;
  QryScanState state = QryScanState(push.state);
  atomicCompSwap(state.at[qry_scan_word(tile, 0u)], 0u, (kQryScanSum << 16) | (sum & 0xFFFFu));
  atomicCompSwap(state.at[qry_scan_word(tile, 1u)], 0u, (kQryScanSum << 16) | (sum >> 16));
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

// Looks back from the tiles before `end`, whose sum is added to `before`, by a subgroup whose threads stay together.
// Returns the tile that is missing, or kQryScanNone when `before` is complete.
uint qry_scan_look_back(inout uint end, inout uint before) {
  for (uint spins = 0u; end > 0u;) {
    const uint back = gl_SubgroupInvocationID;  // the nearest tile is the first thread's
    uint sum;
    const uint found = qry_scan_look(end - 1u - min(back, end - 1u), sum), flag = back < end ? found : 0u;
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

// The sum of what subgroups have in qry_scan_totals, and what those before this one have. The whole workgroup calls it.
uint qry_scan_total(out uint before) {
  uint all = 0u;
  before = 0u;
  for (uint from = 0u; from < gl_NumSubgroups; from += gl_SubgroupSize) {
    const uint at = from + gl_SubgroupInvocationID;
    const uint total = at < gl_NumSubgroups ? qry_scan_totals[min(at, gl_NumSubgroups - 1u)] : 0u;
    all += subgroupAdd(total);
    before += subgroupAdd(at < gl_SubgroupID ? total : 0u);
  }
  return all;
}

// From the sum of this subgroup's words to the sum of those before them in the tile, whose own sum is published. The
// whole workgroup calls it.
uint qry_scan_in_tile(uint tile, uint subgroup_sum) {
  if (gl_SubgroupInvocationID == 0u) qry_scan_totals[gl_SubgroupID] = subgroup_sum;
  barrier();
  uint before;
  qry_scan_own = qry_scan_total(before);  // by each subgroup for itself, so that one barrier is enough
  if (qry_scan_first() && tile > 0u) qry_scan_publish(tile, kQryScanSum, qry_scan_own);
  return before;
}

// The sum of all words before the tile, after qry_scan_in_tile. The whole workgroup calls it.
uint qry_scan_before(uint tile) {
  uint before = 0u, end = tile;
  for (;;) {
    uint missing = kQryScanNone;
    if (gl_SubgroupID == 0u) missing = qry_scan_look_back(end, before);
    if (qry_scan_first()) {
      if (missing == kQryScanNone) qry_scan_publish(tile, kQryScanPrefix, before + qry_scan_own);
      qry_scan_missing = missing;
      qry_scan_found = before;
    }
    barrier();
    missing = qry_scan_missing;
    if (missing == kQryScanNone) break;
    // Rarely: not unrolled, so that it takes no registers from the words that wait.
    uint mine = 0u;
    [[dont_unroll]] for (uint i = 0u; i < kQryScanQuads; ++i) mine += qry_scan_quad(missing, qry_scan_own_quad(i));
    mine = subgroupAdd(mine);
    if (gl_SubgroupInvocationID == 0u) qry_scan_totals[gl_SubgroupID] = mine;
    barrier();
    uint unused;
    const uint sum = qry_scan_total(unused);
    if (qry_scan_first()) qry_scan_publish_for(missing, sum);
    before += sum;
    end = missing;
  }
  return qry_scan_found;
}

#endif
