// SPDX-License-Identifier: Apache-2.0
// error.cuh - CUDA errors as Results: the one way of every CUDA call of the project.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "base/result.hpp"

namespace quarry::gpu {

// `doing`: what was tried, for the message. Errors: out_of_memory for memory that could not be had, otherwise device.
inline Result<void> check(cudaError_t error, const char* doing) {
  if (error == cudaSuccess) return {};
  (void)cudaGetLastError();  // the thread remembers it until it is asked: the next check must not report it again
  return fail(error == cudaErrorMemoryAllocation ? ErrorCode::out_of_memory : ErrorCode::device,
              std::string("CUDA: ") + doing + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")");
}

}  // namespace quarry::gpu
