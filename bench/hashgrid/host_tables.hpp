// SPDX-License-Identifier: Apache-2.0
// host_tables.hpp - hash tables of the host behind one face, so that the benchmark asks the same of each: the grid on
// host threads, and the tables a user has at hand. Not a place for tuning: every baseline does what its manual says is
// fastest for a batch.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace quarry::bench {

// Every call is one batch. Counts come back so that a wrong table is noticed. No call may be made beside another.
class HostTable {
 public:
  virtual ~HostTable() = default;
  // An empty table with room for `capacity` keys (0: none, it is to grow as it goes). Frees what was there.
  virtual Result<void> make(uint64_t capacity) = 0;
  virtual uint64_t insert(std::span<const uint32_t> keys, std::span<const uint32_t> values) = 0;  // how many were new
  // values_out[i]: the value, or the reserved 0xFFFFFFFF. Returns how many were there.
  virtual uint64_t find(std::span<const uint32_t> keys, std::span<uint32_t> values_out) = 0;
  virtual uint64_t assign(std::span<const uint32_t> keys, std::span<const uint32_t> values) = 0;  // how many were there
  virtual uint64_t find_or_insert(std::span<const uint32_t> keys, std::span<uint32_t> values) = 0;  // how many were new
  virtual uint64_t erase(std::span<const uint32_t> keys) = 0;                                       // how many went
  // All pairs, into arrays that are empty when it is called.
  virtual void enumerate(std::vector<uint32_t>& keys, std::vector<uint32_t>& values) = 0;
  virtual void clear() = 0;
};

// One of the tables that are measured: the grid at a load factor, or a baseline.
struct BenchTable {
  std::string name;
  uint32_t threads;  // 1 where the table allows no more
  std::unique_ptr<HostTable> table;
};

// The grid at a load factor, and the baselines this build has. `missing`: names of those it lacks, with the package
// that has them.
BenchTable grid_table(double max_load_factor);
std::vector<BenchTable> baselines(std::vector<std::string>& missing);

}  // namespace quarry::bench
