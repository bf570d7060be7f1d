// compact_device.hpp - a compact table on a CUDA device, for tests that are not CUDA themselves.
#pragma once

#include <functional>
#include <vector>

#include "hashgrid/executor.hpp"

namespace quarry::hashgrid::test {

class CompactDeviceTable {
 public:
  virtual ~CompactDeviceTable() = default;
  virtual BulkReport build(const std::vector<uint32_t>& keys, const std::vector<uint32_t>& values) = 0;
  virtual BulkReport insert(const std::vector<uint32_t>& keys, const std::vector<uint32_t>& values) = 0;
  virtual BulkReport erase(const std::vector<uint32_t>& keys) = 0;
  virtual std::vector<uint32_t> find(const std::vector<uint32_t>& keys, std::vector<uint8_t>& depths) = 0;
  virtual void download(uint64_t* words, size_t count) = 0;  // the whole table
};

// Calls use(table) with a cleared table of `pages` pages; false where there is no device.
bool with_compact_device_table(uint32_t pages, const std::function<void(CompactDeviceTable&)>& use);

}  // namespace quarry::hashgrid::test
