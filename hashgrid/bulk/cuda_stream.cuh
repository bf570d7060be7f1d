// SPDX-License-Identifier: Apache-2.0
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

// Makes a device current for the length of a call: callers may use others.
class DeviceScope {
 public:
  explicit DeviceScope(int device) {
    cudaGetDevice(&before_);
    if (before_ != device) cudaSetDevice(device);
    now_ = device;
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;
  ~DeviceScope() {
    if (before_ != now_) cudaSetDevice(before_);
  }

 private:
  int before_ = 0, now_ = 0;
};

}  // namespace quarry::hashgrid
