// host_groups.hpp - many keys at once on a host core: where their home buckets are, and what stands in them. A core waits for memory once
// a group, not once a key, and compares a bucket's four keys by one instruction where the processor has AVX2.
//
// Not the operations themselves: what the home bucket does not settle goes on to view_impl.hpp, key by key. Used by executor_host.cpp and
// host_pages.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quarry::hashgrid::detail {

constexpr size_t kKeysPerGroup = 32;  // about as many cache misses as a core keeps in flight

// What a look into a bucket saw: bits 0..1 the key's slot if kSeenKey, bits 4..7 the empty slots, bit 3 whether one is never-used.
constexpr uint8_t kSeenKey = 4, kSeenNever = 8;

// Bit i of each for key i.
struct GroupSeen {
  uint32_t keys = 0;    // the key stands there
  uint32_t nevers = 0;  // there is a never-used slot
};

struct GroupLook {
  // stored[i] = qry_stored_key(keys[i]). Any count. Returns whether one of the keys is the reserved one: such a key "stands" in empty slots, and
  // the caller sorts it out.
  bool (*store)(const uint32_t* keys, size_t count, uint32_t locality, uint32_t* stored);
  // sectors[i] = the sector, counted from the table's start, of a stored key's home bucket; of its second bucket.
  void (*homes)(const uint32_t* stored, size_t count, uint32_t page_count, uint32_t* sectors);
  void (*nexts)(const uint32_t* stored, size_t count, uint32_t page_count, uint32_t* sectors);
  // values[i] = what sector sectors[i] of `words` holds for stored key i, or the reserved value. Each slot is read whole, beside any writers; a bucket's
  // four slots are not read at one instant. count <= kKeysPerGroup.
  GroupSeen (*find)(const uint64_t* words, const uint32_t* stored, const uint32_t* sectors, size_t count, uint32_t* values);
  // The same, and what to write to: seen[i] as above.
  void (*buckets)(const uint64_t* words, const uint32_t* stored, const uint32_t* sectors, size_t count, uint8_t* seen, uint32_t* values);
};

// The fastest this processor can do; chosen once.
const GroupLook& group_look();

}  // namespace quarry::hashgrid::detail
