// SPDX-License-Identifier: Apache-2.0
// cuda_stream.cuh - for kernels of the caller's own: the stream of a CUDA executor, and the device it is on.
#pragma once

#include <cuda_runtime_api.h>

#include "base/cuda/device.cuh"
#include "hashgrid/executor.hpp"

namespace quarry::hashgrid {

// The stream all work of a CUDA executor runs in: what is launched on it runs between its bulk calls, in order. Null
// for other executors. Lives as long as the executor. The device must be current where it is used: gpu::DeviceScope.
cudaStream_t cuda_stream_of(const Executor& executor);

// The device that a CUDA executor works on; ordinal -1 for other executors.
gpu::CudaDevice cuda_device_of(const Executor& executor);

}  // namespace quarry::hashgrid
