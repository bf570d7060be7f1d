// SPDX-License-Identifier: Apache-2.0
// cuda.hpp - the hash grid on a CUDA device, for `quarry bench hashgrid` and `qry_bench_hashgrid` (hashgrid/cuda.cu).
#pragma once

#include <string>

#include "base/progress.hpp"

namespace quarry::bench {

enum class Only : unsigned char { all, pairs, compact };

struct CudaBenchOptions {
  bool print = true;       // each row as soon as it is measured
  std::string sweep_path;  // if not empty: also measures rate and depth against load factor, into this .csv file
  Only only = Only::all;   // omits the rows of the other layout; compact: everything else too
  Progress progress{};     // each row's name as soon as it is measured; the total number is not reported
};

// Measures everything on device 0, which needs 16 GiB; `json` gets the record. Returns 0, 1 if a result was wrong, or 2
// if `progress` was cancelled. Ends the process with 1 and a message if a CUDA call fails: an incomplete measurement is
// useless.
int bench_hashgrid_cuda(const CudaBenchOptions& options, std::string* json);

}  // namespace quarry::bench
