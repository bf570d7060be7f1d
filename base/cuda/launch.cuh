// SPDX-License-Identifier: Apache-2.0
// launch.cuh - the one function that launches kernels: with a profiler label, checked, synchronous on request.
//
// Environment: QUARRY_CUDA_SYNC=1 makes every launch wait for its stream, so that an error inside a kernel is reported
// by the launch that caused it, under its label. Slow; for debugging. Read once per process; unset, empty and 0 mean
// no.
//
// Labels are NVTX ranges of the domain "quarry" (Nsight Systems shows them beside the kernels). NVTX is a header of the
// CUDA toolkit; without a profiler attached a range is two calls through null pointers.
#pragma once

#include <cuda_runtime_api.h>
#include <nvtx3/nvtx3.hpp>

#include <cstdlib>
#include <type_traits>

#include "base/cuda/error.cuh"

namespace quarry::gpu {

struct NvtxDomain {
  static constexpr const char* name = "quarry";
};
using LabelledRange = nvtx3::scoped_range_in<NvtxDomain>;

// The shape of a launch.
struct LaunchShape {
  dim3 blocks;
  dim3 threads;             // of a block
  size_t shared_bytes = 0;  // dynamic shared memory of a block
};

inline bool launches_wait() {
  static const bool wait = [] {
    const char* const wanted = std::getenv("QUARRY_CUDA_SYNC");
    return wanted != nullptr && *wanted != '\0' && !(wanted[0] == '0' && wanted[1] == '\0');
  }();
  return wait;
}

// Launches kernel(arguments...) in `stream`, on the current device. Returns after the launch, before the kernel has run
// (but see the head of this file). `label`: what the kernel does, for error messages; a string literal, or one that
// outlives the call. Errors: device.
//
// It calls what the <<<...>>> syntax compiles to. So it tells this launch's error from an earlier one of the thread.
template <class... Parameters>
Result<void> launch(const char* label, const LaunchShape& shape, cudaStream_t stream, void (*kernel)(Parameters...),
                    std::type_identity_t<Parameters>... arguments) {
  const LabelledRange range(label);
  void* pointers[] = {const_cast<void*>(static_cast<const void*>(&arguments))..., nullptr};
  cudaError_t error = cudaLaunchKernel(reinterpret_cast<const void*>(kernel), shape.blocks, shape.threads, pointers,
                                       shape.shared_bytes, stream);
  if (error == cudaSuccess && launches_wait()) error = cudaStreamSynchronize(stream);
  return check(error, label);
}

// The same for a kernel that waits itself (cudaGridDependencySynchronize) for what was launched before it in the
// stream, so that it may be launched before that is done: programmatic dependent launch. `early`: the device can
// (compute capability 9.0).
template <class... Parameters>
Result<void> launch_early(const char* label, const LaunchShape& shape, cudaStream_t stream, bool early,
                          void (*kernel)(Parameters...), const std::type_identity_t<Parameters>&... arguments) {
  const LabelledRange range(label);
  void* pointers[] = {const_cast<void*>(static_cast<const void*>(&arguments))..., nullptr};
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = shape.blocks;
  config.blockDim = shape.threads;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = early ? 1 : 0;
  cudaError_t error = cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), pointers);
  if (error == cudaSuccess && launches_wait()) error = cudaStreamSynchronize(stream);
  return check(error, label);
}

// Allows a kernel this much dynamic shared memory. CUDA requires that above 48 KiB, static memory included. Errors:
// device.
template <class Kernel>
Result<void> allow_shared_bytes(const char* label, Kernel* kernel, size_t size_bytes) {
  return check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(size_bytes)), label);
}

}  // namespace quarry::gpu
