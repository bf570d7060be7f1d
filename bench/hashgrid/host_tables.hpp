// SPDX-License-Identifier: Apache-2.0
// host_tables.hpp - hash tables of the host behind one interface, so that the benchmark makes the same calls to each:
// the grid on host threads, and common alternatives. Nothing is tuned here: every baseline does what its manual
// recommends as fastest for a batch.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace quarry::bench {

// Every call is one batch. It returns a count, so that a wrong table is noticed. Calls must not overlap.
class HostTable {
 public:
  virtual ~HostTable() = default;
  // An empty table with room for `capacity` keys (0: none, it grows on demand). Frees the previous one.
  virtual Result<void> make(uint64_t capacity) = 0;
  virtual uint64_t insert(std::span<const uint32_t> keys, std::span<const uint32_t> values) = 0;  // number new
  // values_out[i]: the value, or the reserved 0xFFFFFFFF. Returns the number of present keys.
  virtual uint64_t find(std::span<const uint32_t> keys, std::span<uint32_t> values_out) = 0;
  virtual uint64_t assign(std::span<const uint32_t> keys, std::span<const uint32_t> values) = 0;    // number present
  virtual uint64_t find_or_insert(std::span<const uint32_t> keys, std::span<uint32_t> values) = 0;  // number new
  virtual uint64_t erase(std::span<const uint32_t> keys) = 0;                                       // number erased
  // All pairs, into arrays that are empty before.
  virtual void enumerate(std::vector<uint32_t>& keys, std::vector<uint32_t>& values) = 0;
  virtual void clear() = 0;
};

// One of the measured tables: the grid at a load factor, or a baseline.
struct BenchTable {
  std::string name;
  uint32_t threads;  // 1 if the table allows no more
  std::unique_ptr<HostTable> table;
};

// The grid at a load factor, and the baselines of this build. `missing`: names of the other baselines, with the package
// of each.
BenchTable grid_table(double max_load_factor);
std::vector<BenchTable> baselines(std::vector<std::string>& missing);

}  // namespace quarry::bench
