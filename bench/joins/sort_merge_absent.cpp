// SPDX-License-Identifier: Apache-2.0
// sort_merge_absent.cpp - replaces sort_merge.cu in builds without a CUDA toolkit.
#include "bench/joins/sort_merge.hpp"

namespace quarry::bench {

Result<uint64_t> sort_merge_join(hashgrid::Executor&, const uint32_t*, size_t, const uint32_t*, size_t, uint32_t*,
                                 uint32_t*, uint64_t) {
  return fail(ErrorCode::unsupported, "this build of Quarry has no CUDA: configure with a CUDA toolkit (nvcc)");
}
Result<void> sort_pairs(hashgrid::Executor&, const uint32_t*, const uint32_t*, size_t, uint32_t*, uint32_t*) {
  return fail(ErrorCode::unsupported, "this build of Quarry has no CUDA: configure with a CUDA toolkit (nvcc)");
}

}  // namespace quarry::bench
