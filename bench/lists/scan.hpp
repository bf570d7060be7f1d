// SPDX-License-Identifier: Apache-2.0
// scan.hpp - `quarry bench scan`: running sums and selections of lists in device memory, beside two copies of the same
// list by the device, by threads and by vkCmdCopyBuffer, which move as many bytes as a sum must.
//
// Each is a dispatch, or a copy, between two timestamps. In each of `repeats` rounds all are measured one after the
// other, and the median of each is reported, after two rounds of warm-up.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"

namespace quarry::bench {

struct ScanBenchOptions {
  std::vector<uint32_t> sizes{1u << 20, 1u << 22, 1u << 24, 1u << 26, 1u << 28};  // words, multiples of 65,536
  uint32_t repeats = 20;
  std::string device;  // part of a device's name
  bool validation = false;
  Progress progress{};
};

// {"device", "driver", "repeats", "sizes": [{"words", "rows": {name: {"microseconds", "million_per_s", "of_copy"}}}]}.
// "of_copy" is the faster copy's time divided by the row's: 1 is as fast as the copy. Errors: a wrong sum or number of
// selected words makes the measurement void; those of engine::Scan::create.
Result<nlohmann::json> bench_scan(const ScanBenchOptions& options);

// The same result as a table for people.
std::string scan_table(const nlohmann::json& result);

}  // namespace quarry::bench
