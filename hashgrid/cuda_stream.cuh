// cuda_stream.cuh - for kernels of the caller's own: the stream of a CUDA executor, and CUDA errors as Results.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "hashgrid/executor.hpp"

namespace quarry::hashgrid {

// The stream all work of a CUDA executor runs in: what is launched on it runs between its bulk calls, in order. Null for other executors.
// Lives as long as the executor.
cudaStream_t cuda_stream_of(const Executor& executor);

// `doing`: what was tried, for the message.
inline Result<void> cuda_result(cudaError_t error, const char* doing) {
  if (error == cudaSuccess) return {};
  return fail(error == cudaErrorMemoryAllocation ? ErrorCode::out_of_memory : ErrorCode::device,
              std::string("CUDA: ") + doing + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")");
}

}  // namespace quarry::hashgrid
