// SPDX-License-Identifier: Apache-2.0
// outcome.hpp - the result of an operation on one key, in every layout.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hashgrid/table/page.h"

// Marks functions that both host threads and CUDA kernels call.
#if defined(__CUDACC__)
#define QRY_HD __host__ __device__
#else
#define QRY_HD
#endif

namespace quarry::hashgrid {

enum class Outcome : uint8_t {
  inserted,  // the key was absent and is now present
  present,   // the key was there already (insert, find_or_insert: unchanged; find: found)
  assigned,  // the key was there and has the new value
  erased,    // the key was there and was removed
  absent,    // the key was not there
  full,      // no place for the key; nothing changed
  reserved,  // key or value is the reserved 0xFFFFFFFF; nothing changed
};

constexpr uint32_t kOutcomes = 7;  // values of Outcome

struct Found {
  uint32_t value;    // kQryReservedValue if absent
  uint32_t sectors;  // slot sectors read: the probe depth
  bool hit;
};

// A view (GridView, CompactView) of a table that nobody, this kernel included, changes while the kernel runs. Then its
// loads may be served by the L1 cache (ld.global.nc), and a look-up by one thread asks the L2 cache for each sector
// once, not twice. On host threads: the same as the view itself.
template <class View>
struct ReadOnly {
  View view;
};

}  // namespace quarry::hashgrid
