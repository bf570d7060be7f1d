// SPDX-License-Identifier: Apache-2.0
// look_ups_without_cuda.cpp - for a build without a CUDA toolkit.
#include "bench/readers/look_ups.hpp"

namespace quarry::bench {

Result<Summed> look_up_on_cuda(int, const LookedUp&) { return fail(ErrorCode::unsupported, "this build has no CUDA"); }
Result<double> read_on_cuda(int, const LookedUp&) { return fail(ErrorCode::unsupported, "this build has no CUDA"); }

}  // namespace quarry::bench
