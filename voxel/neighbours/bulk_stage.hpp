// SPDX-License-Identifier: Apache-2.0
// bulk_stage.hpp - the CUDA executor's part of bulk.hpp: bulk_cuda.cu, or bulk_without_cuda.cpp in builds without it.
#pragma once

#include "voxel/neighbours/bulk.hpp"

namespace quarry::neighbour_detail {

// The arguments were checked before.
Result<void> find_on_cuda(const hashgrid::Executor& executor, const hashgrid::GridView& view, const uint32_t* bricks,
                          size_t count, Neighbourhood which, uint32_t* values_out);

}  // namespace quarry::neighbour_detail
