// SPDX-License-Identifier: Apache-2.0
// cuda_stream.cuh - a CUDA executor's stream and device, for the caller's own kernels.
#pragma once

#include <cuda_runtime_api.h>

#include "base/cuda/device.cuh"
#include "hashgrid/executor.hpp"

namespace quarry::hashgrid {

// The stream in which all work of a CUDA executor runs. What is launched on it runs in order with its bulk calls. Null
// for other executors. Lives as long as the executor. Make its device current before use: gpu::DeviceScope.
cudaStream_t cuda_stream_of(const Executor& executor);

// The device that a CUDA executor works on; ordinal -1 for other executors.
gpu::CudaDevice cuda_device_of(const Executor& executor);

}  // namespace quarry::hashgrid
