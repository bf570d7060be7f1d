// SPDX-License-Identifier: Apache-2.0
// host_ceilings.hpp - the memory rates of this machine on the threads that the grid uses, in memory of the table's
// size.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quarry::bench {

struct HostCeilings {
  double read_8 = 0, swap_8 = 0;  // random 8-byte reads and 64-bit swaps, 10^6 a second, as many in flight as possible
  double copy_gb = 0;             // GB read and written a second
};

// Allocates 2 x size_bytes and frees it. One measurement of each after a warm-up: the caller takes medians.
HostCeilings measure_host_ceilings(size_t size_bytes);

}  // namespace quarry::bench
