// SPDX-License-Identifier: Apache-2.0
// cuda.hpp - the hash grid on a CUDA device, as `quarry bench hashgrid` and `qry_bench_hashgrid` run it
// (hashgrid/cuda.cu).
#pragma once

#include <string>

#include "base/progress.hpp"

namespace quarry::bench {

enum class Only : unsigned char { all, pairs, compact };

struct CudaBenchOptions {
  bool print = true;       // each row as soon as it is measured
  std::string sweep_path;  // if not empty: measures rate and depth against load factor as well, into this file, .csv
  Only only = Only::all;   // leaves out the rows of the other layout; compact: everything else too
  Progress progress{};     // each row's name as soon as it is measured; how many there will be it does not say
};

// Measures everything on device 0, which needs 16 GiB; `json` gets the record. Returns 0, 1 where an answer was wrong,
// or 2 where `progress` said to stop. Ends the process with 1 and a message where a CUDA call fails: a measurement has
// no use for half an answer.
int bench_hashgrid_cuda(const CudaBenchOptions& options, std::string* json);

}  // namespace quarry::bench
