// SPDX-License-Identifier: Apache-2.0
// without_cuda.cpp - make_cuda_executor() of a build without CUDA.
#include "voxel/device/executor.hpp"

namespace quarry::device {

Result<std::unique_ptr<Executor>> make_cuda_executor(int, ShaderMemory*) {
  return fail(ErrorCode::unsupported, "this build has no CUDA: worlds are kept by the host");
}

int cuda_device_count() { return 0; }

}  // namespace quarry::device
