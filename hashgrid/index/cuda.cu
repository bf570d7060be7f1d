// SPDX-License-Identifier: Apache-2.0
// cuda.cu - the passes as kernels.
#include "hashgrid/index/cuda.cuh"

#include "hashgrid/index/cuda_threads.cuh"
#include "hashgrid/index/passes.hpp"

namespace quarry::hashgrid {

std::unique_ptr<IndexOperations<uint32_t>> make_cuda_index32(const gpu::DeviceStream& stream,
                                                             uint32_t multiprocessors) {
  return std::make_unique<IndexPasses<CudaThreads, uint32_t>>(CudaThreads(stream, multiprocessors));
}
std::unique_ptr<IndexOperations<uint64_t>> make_cuda_index64(const gpu::DeviceStream& stream,
                                                             uint32_t multiprocessors) {
  return std::make_unique<IndexPasses<CudaThreads, uint64_t>>(CudaThreads(stream, multiprocessors));
}

}  // namespace quarry::hashgrid
