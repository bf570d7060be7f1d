// SPDX-License-Identifier: Apache-2.0
// error.cuh - CUDA errors as Results. Every CUDA call of the project is checked here.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "base/result.hpp"

namespace quarry::gpu {

// `doing`: what was tried, for the message. Errors: out_of_memory if an allocation failed, otherwise device.
inline Result<void> check(cudaError_t error, const char* doing) {
  if (error == cudaSuccess) return {};
  (void)cudaGetLastError();  // CUDA keeps the error until it is read: the next check must not report it again
  return fail(error == cudaErrorMemoryAllocation ? ErrorCode::out_of_memory : ErrorCode::device,
              std::string("CUDA: ") + doing + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")");
}

}  // namespace quarry::gpu
