// SPDX-License-Identifier: Apache-2.0
// voxel_list_without_cuda.cpp - replaces voxel_list_cuda.cu in builds without a CUDA toolkit, where no executor is a
// CUDA one.
#include "voxel/bricks/voxel_list_stage.hpp"

namespace quarry::voxel_list_detail {
namespace {
tl::unexpected<Error> no_cuda() {
  return fail(ErrorCode::unsupported, "this build of Quarry has no CUDA: use the host executor");
}
}  // namespace

Result<uint32_t> list_keys_on_cuda(hashgrid::Executor&, const VoxelList&, MemoryBlock&, SortedVoxels&, ListFaults&) {
  return no_cuda();
}
Result<void> count_up_on_cuda(hashgrid::Executor&, uint32_t*, uint32_t) { return no_cuda(); }
Result<void> fill_on_cuda(hashgrid::Executor&, const SortedVoxels&, BrickMask*, BrickMaterials*, uint32_t) {
  return no_cuda();
}

}  // namespace quarry::voxel_list_detail
