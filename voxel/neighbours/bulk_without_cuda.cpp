// SPDX-License-Identifier: Apache-2.0
// bulk_without_cuda.cpp - replaces bulk_cuda.cu in builds without a CUDA toolkit, where no executor is a CUDA one.
#include "voxel/neighbours/bulk_stage.hpp"

namespace quarry::neighbour_detail {

Result<void> find_on_cuda(const hashgrid::Executor&, const hashgrid::GridView&, const uint32_t*, size_t, Neighbourhood,
                          uint32_t*) {
  return fail(ErrorCode::unsupported, "this build of Quarry has no CUDA: use the host executor");
}

}  // namespace quarry::neighbour_detail
