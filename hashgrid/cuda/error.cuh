// error.cuh - CUDA errors as Results.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "base/result.hpp"

namespace quarry::hashgrid {

// `doing`: what was tried, for the message.
inline Result<void> cuda_result(cudaError_t error, const char* doing) {
  if (error == cudaSuccess) return {};
  return fail(error == cudaErrorMemoryAllocation ? ErrorCode::out_of_memory : ErrorCode::device,
              std::string("CUDA: ") + doing + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")");
}

}  // namespace quarry::hashgrid
