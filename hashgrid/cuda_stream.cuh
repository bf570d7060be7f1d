// cuda_stream.cuh - for kernels of the caller's own: the stream of a CUDA executor, and CUDA errors as Results.
#pragma once

#include <cuda_runtime_api.h>

#include "hashgrid/cuda/device_scope.cuh"
#include "hashgrid/cuda/error.cuh"
#include "hashgrid/executor.hpp"

namespace quarry::hashgrid {

// The stream all work of a CUDA executor runs in: what is launched on it runs between its bulk calls, in order. Null for other executors.
// Lives as long as the executor.
cudaStream_t cuda_stream_of(const Executor& executor);

// The device that a CUDA executor works on, as CUDA numbers them; -1 for other executors.
int cuda_device_of(const Executor& executor);

}  // namespace quarry::hashgrid
