// SPDX-License-Identifier: Apache-2.0
// error.cuh - CUDA errors as Results. Every CUDA call of the project is checked here, those of the driver too.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <string>

#include "base/cuda/lost.hpp"
#include "base/result.hpp"

namespace quarry::gpu {

static_assert(loses_device(cudaErrorECCUncorrectable) && loses_device(cudaErrorIllegalAddress) &&
              loses_device(cudaErrorLaunchFailure) && loses_device(CUDA_ERROR_ECC_UNCORRECTABLE) &&
              loses_device(CUDA_ERROR_ILLEGAL_ADDRESS) && loses_device(CUDA_ERROR_LAUNCH_FAILED) &&
              loses_device(CUDA_ERROR_CONTEXT_IS_DESTROYED) && !loses_device(cudaErrorMemoryAllocation) &&
              !loses_device(CUDA_ERROR_OUT_OF_MEMORY));

// An Error's code and message. `error`: the number of a failure, `reason`: CUDA's own words.
inline Error error_of(int error, const std::string& doing, const std::string& reason) {
  std::string message = "CUDA: " + doing + ": " + reason;
  if (!loses_device(error)) {
    static_assert(int(cudaErrorMemoryAllocation) == int(CUDA_ERROR_OUT_OF_MEMORY));
    return {error == cudaErrorMemoryAllocation ? ErrorCode::out_of_memory : ErrorCode::device, std::move(message)};
  }
  message +=
      "; the device is lost to this process, with all that its memory held: destroy what is there, and open files "
      "again on the host, or on the device in a new process";
  return {ErrorCode::device_lost, std::move(message)};
}

// `doing`: what was tried, for the message. Errors: out_of_memory if an allocation failed, device_lost by
// loses_device(), otherwise device.
inline Result<void> check(cudaError_t error, const char* doing) {
  if (error == cudaSuccess) return {};
  (void)cudaGetLastError();  // CUDA keeps the error until it is read: the next check must not report it again
  return tl::unexpected(
      error_of(error, doing, std::string(cudaGetErrorString(error)) + " (" + cudaGetErrorName(error) + ")"));
}
// The same of a call of the driver.
inline Result<void> check_driver(CUresult result, const std::string& doing) {
  if (result == CUDA_SUCCESS) return {};
  return tl::unexpected(error_of(result, doing, "error " + std::to_string(int(result)) + " of the driver"));
}

}  // namespace quarry::gpu
